//! Graphs that change: peers have links to all neighbours and use those of the round.

use std::collections::BTreeSet;

use lopa::engine::Note;
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};

use super::cluster::{Setup, TestPolicy};
use super::faulty::Faults;
use super::{
    GLOBAL, PERSONAL, drawn_connections, drawn_faults, drawn_messages, leave_steps_out, read,
    seeds, single_process,
};

const KINDS: [&str; 6] = [
    "one-peer-exponential",
    "random-matching",
    "{ name = 'random-matching', base = 'ring' }",
    "{ name = 'random-edges', base = 'complete', p = 0.4 }",
    "{ name = 'sequence', graphs = ['path', 'star'], every = 3 }",
    "{ name = 'sequence', graphs = ['ring', 'complete'] }",
];

/// A small random experiment on a changing graph.
fn drawn(stream: &mut Stream, symmetric: bool) -> Experiment {
    let kind = KINDS[stream.below(KINDS.len())];
    let directed = !symmetric && kind.starts_with("one-peer");
    let nodes = if directed { 3 + stream.below(4) } else { [3, 4, 4, 5][stream.below(4)] };
    let nodes = if symmetric && kind.starts_with("one-peer") { 4 } else { nodes };
    let mut sets = vec![
        format!("network.nodes={nodes}"),
        format!("network.graph={kind}"),
        "problem.n=2".into(),
        "problem.p=2".into(),
        "problem.noise=0.5".into(),
        "problem.samples=5".into(),
        "run.batch=2".into(),
        format!("run.iterations={}", 4 + stream.below(20)),
        format!("run.evaluations={}", 1 + stream.below(3)),
        "run.exact=never".into(),
        format!("checkpoint.iterations={}", 1 + stream.below(7)),
        "time={ compute = 0.001, links = 'home', stragglers = { p = 0.2, factor = 5 } }".into(),
    ];
    // Links that work in one direction carry messages as they are.
    if !kind.starts_with("one-peer") || nodes == 4 {
        let messages = drawn_messages(stream).into_iter();
        sets.extend(messages.filter(|set| !set.contains("median")));
    }
    let mut experiment = read(if stream.unit() < 0.3 { GLOBAL } else { PERSONAL }, &sets);
    let first = stream.below(experiment.algorithms.len());
    experiment.algorithms.rotate_left(first);
    experiment.algorithms.truncate(1);
    leave_steps_out(&mut experiment, stream);
    experiment
}

/// Losses, crashes and resumptions change nothing.
#[test]
fn faulty_clusters_reach_the_digest_of_one_process() {
    let (mut deaths, mut mailed) = (0, 0);
    for seed in seeds("LOPA_CLUSTERS", 0..400) {
        let mut stream = Stream::new(seed, Purpose::Tuning, 3);
        let experiment = drawn(&mut stream, false);
        let drawn_faults = if seed % 4 == 0 { drawn_connections } else { drawn_faults };
        let faults = drawn_faults(&mut stream, experiment.network.nodes);
        let graph = experiment.network.graph.to_table();
        mailed += u32::from(experiment.mails());
        let want = &single_process(&experiment)[0];
        let fates = Setup::new(&experiment, seed, faults, TestPolicy::Wait).run();
        for (node, fate) in fates.into_iter().enumerate() {
            deaths += fate.lives - 1;
            let what = format!("seed {seed}, node {node}, {graph}");
            let done = fate.done.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(done[0].digest, want.digest, "{what}");
            assert_eq!(done[0].row.bytes, want.row.bytes, "{what}");
            assert!(want.row.virtual_seconds.is_some_and(|seconds| seconds > 0.01));
            assert_eq!(done[0].row.virtual_seconds, want.row.virtual_seconds, "{what}");
            assert_eq!(done[0].messages, want.messages, "{what}");
        }
    }
    assert!(deaths > 100, "{deaths} deaths: too few faults");
    assert!(mailed > 100, "{mailed}");
}

/// Under `skip-link` both ends of a link skip it or neither does, and all nodes agree at the end.
#[test]
fn links_of_a_round_can_be_skipped() {
    let mut skips = 0;
    for seed in seeds("LOPA_CLUSTERS", 0..200) {
        let mut stream = Stream::new(seed, Purpose::Tuning, 4);
        let mut experiment = drawn(&mut stream, true);
        experiment.messages.iter_mut().for_each(|messages| messages.compress = None);
        let faults = drawn_faults(&mut stream, experiment.network.nodes);
        let fates = Setup::new(&experiment, seed, faults, TestPolicy::Skip(0.3)).run();
        let mut told = BTreeSet::new();
        for (node, fate) in fates.iter().enumerate() {
            for note in &fate.notes {
                if let Note::Skipped { peer, k, e } = *note {
                    told.insert((k, e, node, peer));
                }
            }
        }
        for &(k, e, node, peer) in &told {
            let world = experiment.world(None, experiment.run.seeds[0]).unwrap();
            let back = told.contains(&(k, e, peer, node));
            assert!(back, "seed {seed}: node {node} skipped {peer} in {k}, alone");
            assert!(world.graph.joins(node, peer));
        }
        skips += told.len();
        let digests: BTreeSet<String> = fates
            .into_iter()
            .map(|fate| match fate.done {
                Ok(mut done) => done.swap_remove(0).digest,
                Err(error) => panic!("seed {seed}: {error}"),
            })
            .collect();
        assert_eq!(digests.len(), 1, "seed {seed}");
        if told.is_empty() {
            assert!(digests.contains(&single_process(&experiment)[0].digest), "seed {seed}");
        }
    }
    assert!(skips > 100, "{skips}");
}

/// Where links work in one direction, skipping one would change the mean: it is refused by name.
#[test]
fn directed_links_cannot_be_skipped() {
    let sets = ["network.nodes=5".into(), "network.graph=one-peer-exponential".into()];
    let mut experiment = read(PERSONAL, &sets);
    experiment.run.iterations = Some(3);
    let fates = Setup::new(&experiment, 1, Faults::default(), TestPolicy::Skip(0.3)).run();
    for fate in fates {
        assert_eq!(fate.done.unwrap_err().id, "config/directed-skips");
    }
}
