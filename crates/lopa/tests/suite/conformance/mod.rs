//! The public conformance tests: correct code passes, and planted mistakes are caught.

mod planted_algorithms;
mod planted_problems;

use lopa::algorithms::algorithms;
use lopa::conformance::{Counting, algorithm, problem};
use lopa::experiment::Registries;

#[allow(dead_code)]
#[path = "../../../examples/own_algorithm.rs"]
mod own_algorithm;
#[allow(dead_code)]
#[path = "../../../examples/own_problem.rs"]
mod own_problem;

#[test]
fn every_algorithm_conforms() {
    let registries = Registries::default();
    for entry in &algorithms() {
        algorithm(&registries, &entry.name).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn the_examples_conform() {
    problem(&own_problem::registries(), "problem = { name = 'ridge' }").unwrap();
    algorithm(&own_algorithm::registries(), "diffusion").unwrap();
}

#[test]
fn allocations_are_counted_here() {
    assert!(Counting::is_installed());
}

/// Network and run may be given, and a problem's own errors come through.
#[test]
fn files_are_completed_and_errors_are_passed_on() {
    let registries = Registries::default();
    let whole = "scope = 'global'\nnetwork = { nodes = 2, graph = 'complete' }\n\
                 run = { iterations = 1, batch = 'full' }\nproblem.name = 'quadratic'\n\
                 problem.n = 2\nproblem.p = 2";
    problem(&registries, whole).unwrap();
    let id = |text: &str| problem(&registries, text).unwrap_err().id;
    assert_eq!(id("problem = 'quadric'"), "config/unknown-name");
    assert_eq!(id("problem = 'meta-learning'"), "config/missing-key");
    assert_eq!(id("problem = {"), "config/syntax");
    assert_eq!(algorithm(&registries, "lopa").unwrap_err().id, "config/unknown-name");
}
