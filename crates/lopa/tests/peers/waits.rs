//! Under `wait`, faults do not change results.

use std::ops::Range;

use lopa::math::random::{Purpose, Stream};

use super::cluster::{Setup, TestPolicy};
use super::{drawn, drawn_connections, drawn_faults, seeds, single_process};

fn clusters(seeds: Range<u64>, connects: bool) {
    let (mut deaths, mut written) = (0, 0);
    for seed in seeds.clone() {
        let mut stream = Stream::new(seed, Purpose::Tuning, 0);
        let experiment = drawn(&mut stream);
        let drawn_faults = if connects { drawn_connections } else { drawn_faults };
        let faults = drawn_faults(&mut stream, experiment.network.nodes);
        let want: Vec<String> =
            single_process(&experiment).into_iter().map(|run| run.digest).collect();
        let fates = Setup::new(&experiment, seed, faults, TestPolicy::Wait).run();
        for (node, fate) in fates.into_iter().enumerate() {
            deaths += fate.lives - 1;
            written += fate.disk.lock().unwrap().written;
            let done =
                fate.done.unwrap_or_else(|error| panic!("seed {seed}, node {node}: {error}"));
            let got: Vec<String> = done.into_iter().map(|run| run.digest).collect();
            assert_eq!(got, want, "seed {seed}, node {node}");
        }
    }
    let count = seeds.count();
    assert!(
        deaths >= count && written >= 5 * count,
        "{deaths} deaths, {written} checkpoints: too few faults"
    );
}

// In two halves, which run in parallel.
#[test]
fn faulty_clusters_reach_the_digest_of_one_process() {
    let Range { start, end } = seeds("LOPA_CLUSTERS", 0..5000);
    clusters(start..(start + end) / 2, false);
}

#[test]
fn more_faulty_clusters_reach_the_digest_of_one_process() {
    let Range { start, end } = seeds("LOPA_CLUSTERS", 0..5000);
    clusters((start + end) / 2..end, false);
}

#[test]
fn clusters_that_must_connect_reach_the_digest_of_one_process() {
    clusters(seeds("LOPA_CLUSTERS", 0..1000), true);
}
