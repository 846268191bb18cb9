//! Runs that diverge among peers end as in one process: at the same iteration, with the same bits and the
//! same diagnosis, also where numbers overflow between two looks at the variables.

use lopa::config::Source;
use lopa::engine::Note;
use lopa::experiment::{AlgorithmSpec, Experiment, Registries};
use lopa::math::random::{Purpose, Stream};
use lopa::run::Outcome;
use lopa::run::trace::Stop;

use super::cluster::{Setup, TestPolicy};
use super::faulty::Faults;
use super::{GLOBAL, PERSONAL, drawn_faults, read, seeds, single_process};

/// Every algorithm of a file, with steps of this size where it takes them.
fn wild(text: &str, size: f64, sets: &[&str]) -> Experiment {
    let all = [
        "network.nodes=3",
        "problem.n=2",
        "problem.p=2",
        "run.iterations=25",
        "run.evaluations=2",
        "run.exact=never",
        "checkpoint.iterations=4",
    ];
    let mut sets: Vec<String> = all.iter().chain(sets).map(|set| set.to_string()).collect();
    let mut experiment = read(text, &sets);
    let steps = |spec: &AlgorithmSpec| {
        let keys = ["alpha", "beta", "lambda"].into_iter();
        let keys = keys.filter(|key| spec.choice.params().contains_key(*key));
        keys.map(|key| format!("algorithm.{}.{key}={size:e}", spec.label)).collect::<Vec<_>>()
    };
    for set in experiment.algorithms.iter().flat_map(steps).collect::<Vec<_>>() {
        sets.push(set);
        let source = Source { sets: sets.clone(), ..Source::new("test", text) };
        match Experiment::read(&source, &Registries::default()) {
            Ok(wilder) => experiment = wilder,
            // Some steps are weights as well, and at most 1.
            Err(_) => drop(sets.pop()),
        }
    }
    experiment
}

/// What must be the same wherever nodes live.
fn told(outcome: &Outcome) -> (&str, Stop, Option<&String>, &str, u64, String) {
    let Outcome { algorithm, stop, diagnosis, row, digest, .. } = outcome;
    let values = format!("{:?}", row.values);
    (algorithm, *stop, diagnosis.as_ref(), digest, row.iteration, values)
}

/// Runs it among peers; returns how many runs diverged, and how many times nodes said so.
fn ends_as_in_one_process(experiment: &Experiment, seed: u64, faults: Faults) -> (usize, usize) {
    let want = single_process(experiment);
    let fates = Setup::new(experiment, seed, faults, TestPolicy::Wait).run();
    let mut overflows = 0;
    for (node, fate) in fates.iter().enumerate() {
        let done = match &fate.done {
            Ok(done) => done,
            Err(error) => panic!("seed {seed}, node {node}: {error}"),
        };
        assert!(done.iter().map(told).eq(want.iter().map(told)), "seed {seed}, node {node}");
        overflows += fate.notes.iter().filter(|n| matches!(n, Note::Overflow { .. })).count();
    }
    (want.iter().filter(|outcome| outcome.stop == Stop::Diverged).count(), overflows)
}

#[test]
fn every_algorithm_diverges_as_in_one_process() {
    for text in [PERSONAL, GLOBAL] {
        for (size, precision) in [(1e3, "f64"), (1e150, "f64"), (1e300, "f64"), (1e30, "f32")] {
            let experiment = wild(text, size, &[&format!("run.precision={precision}")]);
            let (diverged, overflows) = ends_as_in_one_process(&experiment, 0, Faults::default());
            assert!(2 * diverged > experiment.algorithms.len(), "{size:e}: only {diverged}");
            assert!(size < 1e9 || overflows > diverged, "{size:e}: {overflows} in {diverged}");
        }
    }
}

/// Among kills and losses, and where messages are compressed, lost, late, clipped or lies.
#[test]
fn whatever_becomes_of_messages_a_run_diverges_as_in_one_process() {
    let compressors = ["{name='top-k',share=0.5}", "{name='random-k',share=0.5}", "'quantise'"];
    let others = ["'bf16'", "'f16'", "'sign'", "{name='quantise',feedback=false}"];
    let compressors = compressors.iter().chain(&others);
    let mut sets: Vec<String> = compressors.map(|c| format!("messages.compress={c}")).collect();
    sets.extend(
        ["messages.late=0.3", "messages.drop=0.3", "messages.active=0.6"].map(String::from),
    );
    sets.push("messages.clip={median=1.5}".into());
    sets.push("attack={nodes=[2],kind='sign-flip'}".into());
    let (mut diverged, mut overflows) = (0, 0);
    for seed in seeds("LOPA_DIVERGING", 0..150) {
        let mut stream = Stream::new(seed, Purpose::Tuning, 4);
        let size = 10f64.powf(stream.between(2.0, 300.0));
        let messages = &sets[stream.below(sets.len())];
        let mut experiment = wild(PERSONAL, size, &[messages, "problem.noise=0.5"]);
        let first = stream.below(experiment.algorithms.len());
        experiment.algorithms.rotate_left(first);
        experiment.algorithms.truncate(2);
        let faults = drawn_faults(&mut stream, 3);
        let (lost, said) = ends_as_in_one_process(&experiment, seed, faults);
        (diverged, overflows) = (diverged + lost, overflows + said);
    }
    assert!(diverged > 150 && overflows > 100, "{diverged} diverged, {overflows} overflows");
}
