//! What nodes know of each other: how far all are, and for which of them the run waits.

use lopa::engine::{Cause, Connection, Picture, Waits};
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};

use super::cluster::{Fate, Setup, TestPolicy};
use super::faulty::{Cut, Death, Faults, seconds};
use super::{PERSONAL, read, single_process};

/// A run of noisy quadratics.
fn experiment(nodes: usize, graph: &str, iterations: usize) -> Experiment {
    let sets = [
        format!("network.nodes={nodes}"),
        format!("network.graph={graph}"),
        "problem.n=1".into(),
        "problem.p=2".into(),
        format!("run.iterations={iterations}"),
        format!("run.evaluations={}", iterations / 3),
        "run.exact=never".into(),
    ];
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(1);
    experiment
}

/// More iterations than there are before the faults of a test.
const ENDLESS: usize = 200_000;

/// What a node knew two seconds before its deadline, when the others had not left yet.
fn late(fate: &Fate) -> (&Picture, Waits) {
    assert!(fate.done.is_err(), "it finished alone");
    let picture = &fate.pictures[fate.pictures.len() - 8];
    (picture, picture.waits.unwrap_or_else(|| panic!("{picture:?}")))
}

fn run(experiment: &Experiment, seed: u64, faults: Faults) -> Vec<Fate> {
    let faults = Faults { calm: seconds(1e6), ..faults };
    let setup = Setup::new(experiment, seed, faults, TestPolicy::Wait);
    Setup { deadline: 60.0, watches: true, ..setup }.run()
}

/// On any graph, however far from it they are.
#[test]
fn all_nodes_name_the_one_that_died() {
    for seed in 0..15 {
        let mut stream = Stream::new(seed, Purpose::Tuning, 10);
        let nodes = 3 + stream.below(5);
        let graph = ["path", "ring", "star", "complete", "erdos-renyi"][seed as usize % 5];
        let experiment = experiment(nodes, graph, ENDLESS);
        let world = experiment.world(None, experiment.run.seeds[0]).unwrap();
        let dead = stream.below(nodes);
        let at = seconds(stream.between(0.3, 1.0));
        let (loss, reported) = (0.1 * stream.unit(), stream.unit().round());
        let deaths = vec![Death { node: dead, at, downtime: seconds(1e5) }];
        let fates = run(&experiment, seed, Faults { deaths, loss, reported, ..Faults::default() });
        for (node, fate) in fates.iter().enumerate().filter(|(node, _)| *node != dead) {
            let (picture, waits) = late(fate);
            let case =
                format!("seed {seed}, {nodes} {graph}, node {node}, dead {dead}: {picture:?}");
            assert_eq!(waits.peer, dead, "{case}");
            let causes = [Cause::Silent, Cause::Lost];
            assert_eq!(waits.cause, causes[reported as usize], "{case}");
            assert!(waits.silent > seconds(50.0) && waits.silent < seconds(61.0), "{case}");
            assert!(world.graph.neighbours(dead).contains(&waits.reporter), "{case}");
            assert_eq!(waits.waiting, waits.live, "{case}");
            for (other, sight) in picture.nodes.iter().enumerate() {
                let link = world.graph.neighbours(node).contains(&other);
                let link = match (link, other == dead && reported == 1.0) {
                    (false, _) => Connection::None,
                    (true, false) => Connection::Up,
                    (true, true) => Connection::Down,
                };
                assert_eq!(sight.link, link, "{other}: {case}");
                let rows = Some(100 + other as u64);
                assert!(sight.rows == rows || other == dead || sight.rows.is_none(), "{case}");
                // The dead node may have cut off others.
                if other != dead && sight.silent.is_some_and(|age| age < seconds(20.0)) {
                    assert!(sight.k.unwrap().abs_diff(picture.k) < nodes as u64, "{other}: {case}");
                }
            }
            let live = picture.nodes.iter().filter(|sight| {
                sight.silent.is_some_and(|age| age < seconds(0.25 * (3 + 2 * nodes) as f64))
            });
            assert_eq!(live.count(), waits.live, "{case}");
        }
    }
}

#[test]
fn a_cut_link_is_told_from_a_node_that_died() {
    for seed in 0..6 {
        let mut stream = Stream::new(seed, Purpose::Tuning, 11);
        let nodes = 4 + stream.below(4);
        let from = stream.below(nodes);
        let to = (from + 1) % nodes;
        let experiment = experiment(nodes, "ring", ENDLESS);
        let cut = |from, to| Cut { from, to, since: seconds(1.0), until: seconds(1e6) };
        let cuts = vec![cut(from, to), cut(to, from)];
        let fates = run(&experiment, seed, Faults { cuts, ..Faults::default() });
        for (node, fate) in fates.iter().enumerate() {
            let (picture, waits) = late(fate);
            let mut ends = [waits.peer, waits.reporter];
            ends.sort_unstable();
            assert_eq!(waits.cause, Cause::Cut, "seed {seed}, node {node}: {picture:?}");
            assert_eq!(ends, [from.min(to), from.max(to)], "seed {seed}, node {node}: {picture:?}");
            assert_eq!(waits.live, nodes, "seed {seed}, node {node}: {picture:?}");
        }
    }
}

/// Watching changes no result; at the end all know that all are done.
#[test]
fn a_run_that_is_watched_has_the_same_result() {
    for (policy, graph) in [(TestPolicy::Wait, "path"), (TestPolicy::Skip(500.0), "ring")] {
        let experiment = experiment(4, graph, 600);
        let want = single_process(&experiment).remove(0).digest;
        let faults = Faults { loss: 0.05, calm: seconds(1e6), ..Faults::default() };
        let setup = Setup::new(&experiment, 3, faults, policy);
        let fates = Setup { watches: true, ..setup }.run();
        for (node, fate) in fates.iter().enumerate() {
            assert_eq!(fate.done.as_ref().unwrap()[0].digest, want, "node {node}");
            assert!(fate.pictures.len() > 3, "{}", fate.pictures.len());
            let middle = &fate.pictures[fate.pictures.len() / 2];
            for sight in &middle.nodes {
                let behind = sight.k.unwrap().abs_diff(middle.k);
                assert!(behind < 300 && sight.silent.unwrap() < seconds(5.0), "{middle:?}");
            }
        }
    }
}
