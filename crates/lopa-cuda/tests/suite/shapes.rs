//! Kernels for any shape agree with the processor.

use super::agree::compare;
use super::{hopper, run};

const FILE: &str = r#"
problem = { name = "representation", hidden = [9] }
data = "digits"
network = { nodes = 3, graph = "ring" }
run = { iterations = 12, batch = 6, precision = "f32", evaluations = 2 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.01
lambda = 0.01
"#;

/// Bytes, bytes with a shift and numbers; one tile and several; few classes and many; the head in registers and apart.
const SHAPES: &[&[&str]] = &[
    &[],
    &["problem.hidden=[70]", "problem.activation=tanh", "run.batch=20"],
    &["problem.hidden=[40]", "data.scaling=standardise", "algorithm.lopa-gt.name=lopa-lg"],
    &["problem.hidden=[33]", "data.scaling=centre", "run.shared_samples=true"],
    &["problem.hidden=[110]", "data.name=blobs", "data.features=90", "data.centres=20"],
];

#[test]
fn emulated_kernels_of_any_shape_agree_with_the_processor() {
    SHAPES.iter().for_each(|sets| compare(FILE, sets, "emulated-general"));
}

#[test]
fn kernels_of_any_shape_agree_with_the_processor() {
    if !hopper() {
        return;
    }
    for sets in SHAPES {
        compare(FILE, sets, "general");
        let digest = || run(FILE, &[sets, &["run.device=general"][..]].concat()).unwrap().0.digest;
        assert_eq!(digest(), digest(), "a card repeats itself: {sets:?}");
    }
}

/// tf32 rounds factors, and is near f32.
fn rounded(device: &str, plain: &str) {
    let digest = |device: &str, precision: &str| {
        let sets = [format!("run.device={device}"), format!("run.precision={precision}")];
        let sets: Vec<&str> =
            sets.iter().map(String::as_str).chain(["problem.hidden=[40]"]).collect();
        run(FILE, &sets).unwrap().0
    };
    let [rounded, precise] = ["tf32", "f32"].map(|precision| digest(device, precision));
    let apart = |a: &[f64], b: &[f64]| {
        let top = b.iter().fold(1e-30, |top: f64, value| top.max(value.abs()));
        a.iter().zip(b).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs())) / top
    };
    let (ours, theirs) = (&rounded.models[0], &precise.models[0]);
    let off = apart(&ours.0, &theirs.0).max(apart(&ours.1, &theirs.1));
    assert!((1e-8..1e-3).contains(&off), "{device}: {off:e}");
    // Where there are no tensor cores, it is f32.
    assert_eq!(digest(plain, "tf32").digest, digest(plain, "f32").digest);
}

#[test]
fn emulated_tf32_is_near_f32() {
    rounded("emulated-general", "emulated");
}

#[test]
fn tf32_is_near_f32() {
    if hopper() {
        rounded("cuda", "plain");
    }
}
