//! Step sizes that nobody gives: trajectories of an independent implementation, and invariants.

use lopa::algorithms::parts::steps::number::{ALL, CURVATURE, SQUARE, STEPS};
use lopa::algorithms::{Start, algorithms};
use lopa::config::Source;
use lopa::engine::{Node, Simulation};
use lopa::network::Mixing;
use lopa::problem::oracle::{Batches, Oracle};
use lopa::problem::scope::Scope;
use serde_json::Value;

use crate::common::bench::rows;
use crate::common::golden::{Golden, matrix, vector};

/// The nodes of a golden run at its start, and W.
fn start(golden: &Golden, name: &str) -> Simulation<'static, f64> {
    let (algorithm, scope) = match name.split_at(7) {
        (algorithm, "-personal") => (algorithm, Scope::Personal),
        (algorithm, "-global") => (algorithm, Scope::Global),
        other => panic!("unknown run {other:?}"),
    };
    let text = format!("algorithm = {{ name = '{algorithm}', lazy = false }}");
    let source = Source::new("test", text);
    let section = source.root().unwrap().required("algorithm").unwrap();
    let choice = algorithms().read(section).unwrap();
    let init = &golden.json()["init"];
    let node = |(i, part)| {
        let mut oracle = Oracle::new(part, Batches::all(None), false, 0, i);
        let [x, theta, v] = ["x", "theta", "v"].map(|of| vector(&init[of][i]).into());
        let start = Start { x, theta, v, rows: None, scope, oracle: &mut oracle };
        let algorithm = choice.build.start(start).unwrap();
        Node { algorithm, oracle }
    };
    let nodes = golden.parts().into_iter().enumerate().map(node).collect();
    let w = matrix(&golden.json()["runs"][name]["W"]);
    Simulation::new(nodes, &Mixing::from_matrix(w).unwrap(), None)
}

fn close(got: f64, want: f64, size: f64, what: &str) {
    assert!((got - want).abs() <= 1e-8 * size.max(1e-3), "{what}: {got} is not {want}");
}

/// Every variable and every step of every iteration.
fn compare(file: &str) {
    let golden = Golden::read(file);
    for (name, run) in golden.json()["runs"].as_object().unwrap() {
        let mut simulation = start(&golden, name);
        let states = run["states"].as_array().unwrap();
        for (i, rule) in rows(&simulation, "rule").iter().enumerate() {
            close(rule[CURVATURE], vector(&states[0]["L"])[i], rule[CURVATURE], name);
        }
        for (k, state) in states[1..].iter().enumerate() {
            simulation.iterate();
            let rules = rows(&simulation, "rule");
            let what = |of: &str, i| format!("{file}, {name}, k = {k}: {of} of node {i}");
            for (i, rule) in rules.iter().enumerate() {
                assert_eq!(rule.len(), ALL);
                let of = |key: &str| vector(&state["steps"][key])[i];
                let all = [("alpha", STEPS[0]), ("beta", STEPS[1]), ("beta", STEPS[2]), ("E", SQUARE)];
                for (key, at) in all {
                    close(rule[at], of(key), of(key), &what(key, i));
                }
            }
            for of in ["x", "theta", "v"] {
                let ours = rows(&simulation, of);
                for (i, (ours, want)) in ours.iter().zip(matrix(&state[of])).enumerate() {
                    let size = want.iter().fold(0.0f64, |most, entry| entry.abs().max(most));
                    let pairs = ours.iter().zip(&want);
                    pairs.for_each(|(ours, want)| close(*ours, *want, size, &what(of, i)));
                }
            }
            counts(&simulation, state, k);
        }
    }
}

/// Probes are made in the same iterations: those of the next iteration at the end of this one.
fn counts(simulation: &Simulation<f64>, state: &Value, k: usize) {
    for (i, node) in simulation.nodes().iter().enumerate() {
        let probes = node.oracle.counts().hess_g - (k as u64 + 2);
        let known = vector(&state["steps"]["probes"])[i] as u64;
        assert!((known..=known + 1).contains(&probes), "k = {k}, node {i}: {probes}, {known}");
    }
}

#[test]
fn the_golden_quadratic() {
    compare("steps-quadratic");
}

#[test]
fn the_golden_logistic_regression() {
    compare("steps-logistic");
}
