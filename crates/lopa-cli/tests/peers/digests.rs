//! Three processes on loopback give the same results as one process, bit for bit.

use crate::trio::{NAMES, QUADRATIC, Trio, results, text};

/// Runs it as three nodes and in a single process; the results must be the same.
fn same(experiment: &str, more: &[&str]) {
    let trio = Trio::new(experiment);
    let want = trio.alone(more);
    assert!(!want.is_empty() && want.iter().all(|run| run[3].is_string()), "{want:?}");
    for (name, output) in NAMES.iter().zip(trio.run(more)) {
        assert!(output.status.success(), "{name}: {}", text(&output));
        let got = results(&serde_json::from_slice(&output.stdout).unwrap());
        assert_eq!(got, want, "{name} {more:?}");
    }
}

#[test]
fn three_processes_give_the_digest_of_one() {
    same(QUADRATIC, &[]);
    same(QUADRATIC, &["--set", "run.precision=f32", "--set", "network.graph=complete"]);
}

/// Numbers overflow between two looks at the variables: the run is given up as in one process, and the next
/// algorithm goes on.
#[test]
fn a_run_that_diverges_ends_as_in_one_process() {
    let second = "\n[[algorithm]]\nname = \"lopa-lg\"\nalpha = 0.005\nbeta = 0.2\nlambda = 0.2\n";
    let wild = QUADRATIC.replace("alpha = 0.005", "alpha = 1e200") + second;
    for (experiment, code) in [(&wild, 9), (&QUADRATIC.replace("beta = 0.2", "beta = 1e200"), 1)] {
        let trio = Trio::new(experiment);
        let alone = trio.folder.lopa(&["run", "e.toml", "--out", "alone", "--format", "json"]);
        assert_eq!(alone.code, code, "{}", alone.stderr);
        let want = results(&alone.json());
        assert_eq!(want[0][2], "diverged");
        for (name, output) in NAMES.iter().zip(trio.run(&[])) {
            assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output));
            let got = results(&serde_json::from_slice(&output.stdout).unwrap());
            assert_eq!(got, want, "{name}");
            assert!(text(&output).contains("diverged at iteration"), "{}", text(&output));
        }
    }
}

#[test]
fn messages_give_the_digest_of_one_process() {
    for sets in [
        &["messages.compress={name='top-k',share=0.4}", "messages.drop=0.3"][..],
        &["messages.compress={name='quantise',bits=4}", "messages.clip={median=2.0}"],
        &["messages.late=0.3", "messages.active=0.7", "attack={nodes=[2],kind='sign-flip'}"],
        &["messages.compress='sign'", "time={compute=0.001,links='home'}"],
        &[
            "network.graph=random-matching",
            "messages.compress={name='top-k',share=0.4}",
            "messages.drop=0.3",
            "messages.late=0.3",
            "time={compute=0.001,links='home'}",
        ],
    ] {
        same(QUADRATIC, &sets.iter().flat_map(|set| ["--set", *set]).collect::<Vec<_>>());
    }
}

/// Every algorithm of the library, personal and global, with noise and minibatches.
#[test]
fn every_algorithm_gives_the_digest_of_one_process() {
    let personal = include_str!("../../../../experiments/quadratic.toml");
    let global = include_str!("../../../../experiments/quadratic-global.toml");
    let sets = [
        "network.nodes=3",
        "problem.noise=0.5",
        "problem.samples=20",
        "run.batch=4",
        "run.iterations=12",
        "run.evaluations=2",
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    same(personal, &[&sets[..], &["--set", "network.graph=path"]].concat());
    same(global, &[&sets[..], &["--set", "run.precision=f32"]].concat());
}
