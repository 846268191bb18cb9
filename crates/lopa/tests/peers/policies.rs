//! Absent neighbours, nodes that are asked to stop, and restarting all of them.

use lopa::engine::Progress;
use lopa::error::Error;
use lopa::experiment::Experiment;
use lopa::folder::RunFolder;
use lopa::math::random::{Purpose, Stream};
use lopa::run::Store;
use lopa::run::checkpoint::State;

use super::cluster::{Fate, Setup, TestPolicy};
use super::faulty::{Cut, Death, Faults, seconds};
use super::{PERSONAL, drawn, drawn_faults, read, single_process};

fn digests(experiment: &Experiment) -> Vec<String> {
    single_process(experiment).into_iter().map(|run| run.digest).collect()
}

fn failure(fate: &Fate) -> Option<&Error> {
    fate.done.as_ref().err()
}

/// Restarts all nodes on their disks: they reach the digest of one process.
fn check_resumed(experiment: &Experiment, fates: Vec<Fate>, what: &str) {
    let want = digests(experiment);
    let disks = fates.into_iter().map(|fate| fate.disk).collect();
    let setup = Setup::new(experiment, 9, Faults::default(), TestPolicy::Wait);
    for fate in (Setup { disks, ..setup }).run() {
        let done = fate.done.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(done.into_iter().map(|run| run.digest).collect::<Vec<_>>(), want, "{what}");
    }
}

#[test]
fn stopped_nodes_stop_and_all_resume_later() {
    for seed in 0..150 {
        let mut stream = Stream::new(seed, Purpose::Tuning, 3);
        let experiment = drawn(&mut stream);
        let nodes = experiment.network.nodes;
        let faults = match seed % 2 {
            0 => Faults::default(),
            _ => drawn_faults(&mut stream, nodes),
        };
        let (who, at) = (stream.below(nodes), stream.between(0.0, 1.0));
        let stops = vec![(who, at)];
        let setup = Setup::new(&experiment, seed, faults, TestPolicy::Wait);
        let fates = Setup { stops, deadline: 15.0, ..setup }.run();
        for (node, fate) in fates.iter().enumerate() {
            match failure(fate).map(|error| error.id) {
                None => {}
                Some("peers/stopped") => assert_eq!(node, who, "seed {seed}"),
                Some(id) => assert_eq!(id, "peers/lost", "seed {seed}"),
            }
        }
        check_resumed(&experiment, fates, &format!("seed {seed}"));
    }
}

fn longer(iterations: usize, every: usize) -> Experiment {
    let sets = [
        "network.nodes=4".to_string(),
        "problem.n=3".into(),
        "problem.p=2".into(),
        format!("run.iterations={iterations}"),
        "run.evaluations=2".into(),
        "run.exact=never".into(),
        format!("checkpoint.iterations={every}"),
    ];
    let mut experiment = read(PERSONAL, &sets);
    experiment.algorithms.truncate(1);
    experiment
}

#[test]
fn waiting_for_an_absent_node_ends_at_the_deadline() {
    let experiment = longer(60, 10);
    let death = Death { node: 2, at: seconds(0.5), downtime: seconds(5000.0) };
    let faults = Faults { deaths: vec![death], ..Faults::default() };
    let fates = Setup::new(&experiment, 1, faults, TestPolicy::Wait).run();
    for fate in &fates {
        let error = failure(fate).expect("no node finishes");
        assert_eq!((error.id, error.kind.exit_code()), ("peers/lost", 6));
    }
    // The error names the neighbour and the iteration.
    let error = failure(&fates[1]).unwrap();
    assert!(error.message.contains("node 2 is missing in iteration"), "{error}");
    check_resumed(&experiment, fates, "a death");
}

#[test]
fn under_stop_a_cut_link_ends_the_run_at_once() {
    let experiment = longer(60, 10);
    let cut = |from, to| Cut { from, to, since: seconds(0.3), until: seconds(0.35) };
    let faults = || Faults { cuts: vec![cut(1, 2), cut(2, 1)], reported: 1.0, ..Faults::default() };
    let fates = Setup::new(&experiment, 1, faults(), TestPolicy::Stop).run();
    assert!(fates[1..3].iter().any(|fate| failure(fate).is_some()));
    for fate in &fates {
        assert!(failure(fate).is_none_or(|error| error.id == "peers/lost"));
    }
    check_resumed(&experiment, fates, "a cut");
    let fates = Setup::new(&experiment, 1, faults(), TestPolicy::Wait).run();
    assert!(fates.iter().all(|fate| failure(fate).is_none()), "under `wait` the cut heals");
}

#[test]
fn logs_are_bounded_by_the_checkpoint_interval() {
    let largest = |iterations, every| {
        let experiment = longer(iterations, every);
        let fates = Setup::new(&experiment, 1, Faults::default(), TestPolicy::Wait).run();
        fates.iter().map(|fate| fate.disk.lock().unwrap().largest).max().unwrap()
    };
    let (short, long, rare) = (largest(100, 10), largest(400, 10), largest(400, 100));
    assert!(long <= short + 200, "{short} bytes after 100 iterations, {long} after 400");
    assert!(rare > 3 * long, "{rare} bytes: the logs are not in the checkpoints");
}

#[test]
fn finished_runs_are_not_repeated() {
    let experiment = longer(20, 5);
    let fates = Setup::new(&experiment, 1, Faults::default(), TestPolicy::Wait).run();
    let written: usize = fates.iter().map(|fate| fate.disk.lock().unwrap().written).sum();
    let disks: Vec<_> = fates.iter().map(|fate| fate.disk.clone()).collect();
    check_resumed(&experiment, fates, "finished runs");
    let again: usize = disks.iter().map(|disk| disk.lock().unwrap().written).sum();
    assert_eq!(again, written);
}

#[test]
fn a_state_stored_twice_keeps_the_measurements_of_the_first_time() {
    let experiment = longer(20, 5);
    let row = single_process(&experiment).remove(0).row;
    let runs = tempfile::tempdir().unwrap();
    let progress = Progress { k: 5, exchanges: 5, floats: 5, ..Progress::default() };
    let state = |serial, links: &[u8]| State {
        progress,
        serial,
        seconds: 1.0,
        record: vec![1],
        nodes: vec![vec![2]],
        links: links.to_vec(),
        chapter: 0,
    };
    let mut folder = RunFolder::create(runs.path(), &experiment, None, 1).unwrap();
    folder.row("lopa-gt", 1, &row).unwrap();
    folder.keep("lopa-gt", 1, state(0, b"")).unwrap();
    folder.row("lopa-gt", 1, &row).unwrap();
    folder.keep("lopa-gt", 1, state(1, b"received since")).unwrap();
    let path = folder.path().join("metrics.jsonl");
    drop(folder);
    // A row measured after the state is measured again by a run that resumes from the state.
    let mut folder = RunFolder::resume(runs.path(), &experiment, None, 1).unwrap();
    let kept = folder.kept("lopa-gt", 1, &|_| true, &mut |refused| panic!("{refused}")).unwrap();
    assert_eq!(kept, Some(state(1, b"received since")));
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
}

#[test]
fn what_peers_cannot_run_is_an_error() {
    let run = |experiment: &Experiment| {
        let fates = Setup::new(experiment, 1, Faults::default(), TestPolicy::Wait).run();
        fates.into_iter().next().unwrap().done.unwrap_err()
    };
    let mut experiment = longer(20, 5);
    experiment.run.budget.seconds = Some(5.0);
    let error = run(&experiment);
    assert_eq!((error.id, error.kind.exit_code()), ("config/seconds-among-peers", 2));
}
