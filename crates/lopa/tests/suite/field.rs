//! Every algorithm of the field, in both scopes, against the trajectories of an independent
//! implementation: `golden/make_field.py`.

use std::collections::BTreeMap;

use crate::common::bench::*;
use lopa::algorithms::algorithms;
use lopa::engine::Simulation;
use lopa::network::Mixing;
use lopa::problem::derivative::Counts;
use serde::Deserialize;

type Vectors = BTreeMap<String, Vec<Vec<f64>>>;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "W")]
    w: Vec<Vec<f64>>,
    init: Vectors,
    algorithms: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    label: String,
    name: String,
    scope: String,
    params: toml::Table,
    lengths: Vec<usize>,
    rounds: u64,
    floats: u64,
    cost: Cost,
    states: Vec<Vectors>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Cost {
    grad_theta_g: u64,
    hess_g: u64,
    cross_g: u64,
    grad_theta_f: u64,
    grad_x_f: u64,
    grad_x_g: u64,
}

impl Cost {
    fn between(before: &Counts, after: &Counts) -> Cost {
        Cost {
            grad_theta_g: after.grad_theta_g - before.grad_theta_g,
            hess_g: after.hess_g - before.hess_g,
            cross_g: after.cross_g - before.cross_g,
            grad_theta_f: after.grad_theta_f - before.grad_theta_f,
            grad_x_f: after.grad_x_f - before.grad_x_f,
            grad_x_g: after.grad_x_g - before.grad_x_g,
        }
    }
}

fn path(file: &str) -> String {
    format!("{}/tests/golden/field_{file}.json", env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> File {
    serde_json::from_str(&std::fs::read_to_string(path(file)).unwrap()).unwrap()
}

fn start(file: &str, golden: &File, case: &Case) -> Simulation<'static, f64> {
    let nodes = golden.w.len();
    let setup = format!(
        "scope = '{}'
         problem = {{ name = 'quadratic', file = {:?} }}
         network = {{ nodes = {nodes}, graph = 'path' }}
         run = {{ iterations = 1 }}",
        case.scope,
        path(file)
    );
    let params: Vec<String> =
        case.params.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let bench = Bench::new(&setup, &format!("name = '{}', {}", case.name, params.join(", ")));
    // The series of Neumann type ask for a length at every point of an iteration; VRDBO has two.
    let twice = case.name == "vrdbo";
    let mut lengths = case.lengths.clone();
    if twice {
        lengths = lengths.iter().enumerate().flat_map(|(t, &q)| vec![q; 1 + t.min(1)]).collect();
    }
    let from = |i: usize| ["x", "theta", "v"].map(|name| golden.init[name][i].clone());
    let node = |(i, part)| bench.node_from(i, part, from(i), &lengths);
    let nodes = bench.parts::<f64>().into_iter().enumerate().map(node).collect();
    let mixing = Mixing::from_matrix(golden.w.clone()).unwrap();
    Simulation::new(nodes, &mixing, None)
}

fn state(simulation: &Simulation<f64>) -> Vectors {
    let names = simulation.nodes()[0].algorithm.variables().into_iter().map(|(name, _)| name);
    names.map(|name| (name.to_string(), rows(simulation, name))).collect()
}

fn same(what: &str, got: &[Vec<f64>], want: &[Vec<f64>]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let off = largest(&minus(got, want));
        assert!(off <= 1e-10 * largest(want).max(1.0), "{what} of node {i} is off by {off:e}");
    }
}

fn check(file: &str, golden: &File, case: &Case) {
    let Case { label, scope, states, .. } = case;
    let mut simulation = start(file, golden, case);
    // A dual is formed when the neighbours' values arrive: that of iterate k in iteration k + 1.
    let late = |name: &str| name.starts_with("M_");
    let is_internal = |name: &str| {
        !["x", "theta"].contains(&name) && !states[1..].iter().any(|state| state.contains_key(name))
    };
    for (k, want) in states.iter().enumerate() {
        let ours = state(&simulation);
        for (name, values) in &ours {
            let what = format!("{file}, {label}, {scope}, k = {k}: {name}");
            match (want.get(name), late(name)) {
                (Some(want), false) => same(&what, values, want),
                (Some(_), true) if k > 1 => same(&what, values, &states[k - 1][name]),
                (Some(_), true) => assert_eq!(largest(&values.concat()), 0.0, "{what}"),
                // Variables that the golden file lacks: not computed yet, or internal.
                (None, _) => assert!(k == 0 || is_internal(name), "{what}"),
            }
        }
        let missing = want.keys().find(|name| !ours.contains_key(*name) && !only_global(name));
        assert_eq!(missing, None, "{file}, {label}, {scope}");
        if k + 1 < states.len() {
            let before = simulation.nodes()[0].oracle.counts();
            let (rounds, floats) = (simulation.exchanges(), simulation.floats());
            simulation.iterate();
            if k + 2 == states.len() {
                let after = simulation.nodes()[0].oracle.counts();
                assert_eq!(Cost::between(&before, &after), case.cost, "{file}, {label}, {scope}");
                assert_eq!(simulation.exchanges() - rounds, case.rounds, "{label}, {scope}");
                let links =
                    golden.w.concat().iter().filter(|&&w| w != 0.0).count() - golden.w.len();
                let sent = (simulation.floats() - floats) / links as u64;
                assert_eq!(sent, case.floats, "{label}, {scope}");
            }
        }
    }
}

/// Trackers of inner directions, which are these directions in the personal scope.
fn only_global(variable: &str) -> bool {
    ["y_theta", "y_v", "t_y", "t_theta"].contains(&variable)
}

fn check_all(file: &str) {
    let golden = read(file);
    golden.algorithms.iter().for_each(|case| check(file, &golden, case));
}

#[test]
fn on_a_path_of_three() {
    check_all("path3");
}

#[test]
fn on_a_lazy_ring_of_four() {
    check_all("ring4");
}

/// Every published algorithm has golden trajectories in every scope that it supports: here, or in
/// `golden.rs` for the personal scope of those that LoPA's paper compares.
#[test]
fn nobody_is_left_out() {
    let golden = read("path3");
    let elsewhere = [("spdb", "personal"), ("ma-dsbo", "personal")];
    for entry in algorithms().iter().filter(|entry| !entry.facts.source.starts_with("ours")) {
        let name = &entry.name[..];
        for scope in entry.facts.scopes {
            let here = |case: &Case| case.name == name && case.scope == scope.name();
            let found = golden.algorithms.iter().any(here);
            assert!(found || elsewhere.contains(&(name, scope.name())), "{name}");
        }
    }
}
