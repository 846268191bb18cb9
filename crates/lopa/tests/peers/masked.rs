//! Sums by masks: the same results as without, and no frame has a node's numbers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};

use super::cluster::{Fate, Setup, TestPolicy};
use super::faulty::{Death, Faults, Tamper, seconds};
use super::{read, single_process};

const NODES: [&str; 3] = ["a", "b", "c"];

/// The rows of each node: two features of very different sizes, and a label.
fn table(seed: u64) -> Vec<(f64, f64, bool)> {
    let mut stream = Stream::new(seed, Purpose::Data, 9);
    let row = |_| {
        let ill = stream.unit() < 0.5;
        let shift = f64::from(u8::from(ill)) + seed as f64;
        (1e6 * (stream.normal() + shift), 1e-3 * stream.normal() + 7.0, ill)
    };
    (0..14 + 3 * seed).map(row).collect()
}

fn files(folder: &Path) {
    for (seed, node) in (1..).zip(NODES) {
        let mut text = "u,w,ill\n".to_string();
        for (u, w, ill) in table(seed) {
            text += &format!("{u},{w},{}\n", if ill { "yes" } else { "no" });
        }
        std::fs::write(folder.join(format!("{node}.csv")), text).unwrap();
    }
}

fn experiment(folder: &Path, masked: bool) -> Experiment {
    let text = format!(
        "problem   = {{ name = 'hyperparameter', validation = 0.4 }}
         network   = {{ nodes = 3, graph = 'path' }}
         run       = {{ iterations = 10, batch = 4, evaluations = 3, exact = 'end' }}
         algorithm = [{{ name = 'lopa-gt', alpha = 0.05, beta = 0.3, lambda = 0.3 }}]
         {}
         [data]
         name = 'csv'
         path = '{}/{{node}}.csv'
         label = 'ill'
         nodes = ['a', 'b', 'c']
         classes = ['no', 'yes']
         scaling = 'standardise'
         moments = 'agreed'
         test = 0.0
         holdout = 0.2",
        if masked { "privacy = { masked = true }" } else { "" },
        folder.display()
    );
    read(&text, &[])
}

fn peers(experiment: &Experiment, faults: Faults, tamper: Option<Tamper>) -> Vec<Fate> {
    let setup = Setup::new(experiment, 3, faults, TestPolicy::Wait);
    Setup { tamper, ..setup }.run()
}

#[test]
fn masks_change_no_result_on_any_engine_and_through_crashes() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let [plain, masked] = [false, true].map(|masked| experiment(folder.path(), masked));
    let [want, single] = [&plain, &masked].map(|one| single_process(one).swap_remove(0));
    assert_eq!(want.digest, single.digest);
    for (name, value) in &want.row.values {
        let other = single.row.value(name).unwrap();
        assert!((value - other).abs() <= 1e-12 * value.abs(), "{name}: {value} and {other}");
    }
    assert_eq!(want.row.values.len(), single.row.values.len());
    let deaths = [(0, 0.3), (2, 0.9), (1, 1.5), (0, 2.5)];
    let death =
        |&(node, at): &(usize, f64)| Death { node, at: seconds(at), downtime: seconds(0.4) };
    let faults =
        Faults { deaths: deaths.iter().map(death).collect(), loss: 0.1, ..Faults::default() };
    let faults = Faults { calm: seconds(50.0), ..faults };
    let mut lives = 0;
    for fate in peers(&masked, faults, None) {
        lives += fate.lives;
        let outcome = &fate.done.unwrap()[0];
        assert_eq!(outcome.digest, want.digest);
        assert_eq!(outcome.row.values, single.row.values, "sums are exact in any order");
        assert!(outcome.nodes.is_empty(), "nobody has the measures of another");
    }
    assert!(lives > 3, "no node died");
}

/// The eight bytes of numbers that only the first node may have: its mean and sum of each column, and its rows.
fn own_numbers() -> Vec<[u8; 8]> {
    let rows = table(1);
    let n = rows.len() as f64;
    let sums = [rows.iter().map(|row| row.0).sum::<f64>(), rows.iter().map(|row| row.1).sum()];
    let means = sums.map(|sum| sum / n);
    sums.iter().chain(&means).chain([&n]).map(|number| number.to_le_bytes()).collect()
}

/// Whether a frame of any peer has one of these numbers.
fn seen(experiment: &Experiment, numbers: Vec<[u8; 8]>) -> bool {
    let found = Arc::new(AtomicBool::new(false));
    let here = found.clone();
    let look = move |from: usize, _: usize, frame: &[u8]| {
        let has = |number: &[u8; 8]| frame.windows(8).any(|bytes| bytes == number);
        here.fetch_or(numbers.iter().any(has), Ordering::Relaxed);
        vec![(from, frame.to_vec())]
    };
    let fates = peers(experiment, Faults::default(), Some(Box::new(look)));
    fates.into_iter().for_each(|fate| drop(fate.done.unwrap()));
    found.load(Ordering::Relaxed)
}

#[test]
fn no_frame_has_the_numbers_of_a_node() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    // Without a held-out share the moments are those of all rows.
    let all = |masked| {
        let mut experiment = experiment(folder.path(), masked);
        experiment.data.as_mut().unwrap().preparation.holdout = None;
        experiment
    };
    assert!(seen(&all(false), own_numbers()), "they are sent without masks");
    assert!(!seen(&all(true), own_numbers()));
}
