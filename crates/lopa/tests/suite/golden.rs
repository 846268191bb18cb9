//! Every variable of every algorithm against trajectories from an independent implementation.
//!
//! `golden/README.md` describes how they were made and in which order variables are updated.

use crate::common::golden::{Golden, run};

fn check(file: &str, name: &str) {
    let golden = Golden::read(file);
    let states = run(&golden, name);
    for (k, state) in golden.states(name).iter().enumerate() {
        for (variable, want) in state {
            let got = states[k].get(variable).unwrap_or_else(|| panic!("{name} has no {variable}"));
            for (i, (got, want)) in got.iter().zip(want).enumerate() {
                let size = want.iter().fold(1e-3f64, |size, w| size.max(w.abs()));
                for (j, (got, want)) in got.iter().zip(want).enumerate() {
                    assert!(
                        (got - want).abs() <= 1e-10 * size,
                        "{file}, {name}, k = {k}: {variable} of node {i} at {j}: {got} is not {want}"
                    );
                }
            }
        }
        assert_eq!(states[k].hessians, golden.hessians(name, k), "{file}, {name}, k = {k}");
    }
}

fn check_all(file: &str, expected: usize) {
    let names = Golden::read(file).names();
    assert_eq!(names.len(), expected, "{names:?}");
    names.iter().for_each(|name| check(file, name));
}

#[test]
fn quadratic() {
    check_all("quadratic_path3", 10);
}

#[test]
fn logistic() {
    check_all("logistic_ring4_mean", 11);
}

#[test]
fn neural_network() {
    check_all("mlp_path3_bias", 10);
}
