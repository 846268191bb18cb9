//! Under `wait`, faults change nothing.

use std::ops::Range;
use std::time::Instant;

use lopa::random::{Purpose, Stream};

use super::cluster::{How, Setup};
use super::{drawn, drawn_faults, straight};

/// Seeds of clusters that are run; `LOPA_CLUSTERS=from..to` asks for others.
fn seeds() -> Range<u64> {
    let asked = std::env::var("LOPA_CLUSTERS").unwrap_or("0..5000".into());
    let (from, to) = asked.split_once("..").expect("from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

fn clusters(seeds: Range<u64>) {
    let began = Instant::now();
    let (mut lives, mut written) = (0, 0);
    for seed in seeds.clone() {
        let mut stream = Stream::new(seed, Purpose::Tuning, 0);
        let experiment = drawn(&mut stream);
        let faults = drawn_faults(&mut stream, experiment.network.nodes);
        let want: Vec<String> = straight(&experiment).into_iter().map(|run| run.digest).collect();
        if std::env::var("DBG").is_ok() {
            eprintln!(
                "{:?}\n{:?}\n{:?} {} {:?}",
                faults,
                experiment.network,
                experiment.algorithms.len(),
                experiment.run.iterations.unwrap_or(0),
                experiment.checkpoint
            );
        }
        let fates = Setup::new(&experiment, seed, faults, How::Wait).run();
        if std::env::var("DBG").is_ok() {
            for (node, fate) in fates.iter().enumerate() {
                eprintln!(
                    "{node}: {} lives, {:?} {:?} {:?}",
                    fate.lives,
                    fate.done.as_ref().err().map(|e| &e.message),
                    fate.notes,
                    fate.disk.lock().unwrap().written
                );
            }
        }
        for (node, fate) in fates.into_iter().enumerate() {
            lives += fate.lives;
            written += fate.disk.lock().unwrap().written;
            let done =
                fate.done.unwrap_or_else(|error| panic!("seed {seed}, node {node}: {error}"));
            let got: Vec<String> = done.into_iter().map(|run| run.digest).collect();
            assert_eq!(got, want, "seed {seed}, node {node}");
        }
    }
    eprintln!("{seeds:?}: {lives} lives, {written} checkpoints, {:?}", began.elapsed());
}

// In two halves, for two processors.
#[test]
fn faulty_clusters_come_to_the_digest_of_one_process() {
    let Range { start, end } = seeds();
    clusters(start..(start + end) / 2);
}

#[test]
fn more_faulty_clusters_come_to_the_digest_of_one_process() {
    let Range { start, end } = seeds();
    clusters((start + end) / 2..end);
}
