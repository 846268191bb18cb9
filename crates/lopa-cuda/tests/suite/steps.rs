//! Devices find the same step sizes as the processor.

use super::agree::compare_within;
use super::{card, hopper, run};

const QUADRATIC: &str = r#"
problem = { name = "quadratic", n = 7, p = 5, condition = 20, noise = 0.3, samples = 40 }
network = { nodes = 6, graph = "ring" }
run = { iterations = 200, batch = 8, evaluations = 3 }
"#;

const LAYER: &str = r#"
problem = { name = "representation", hidden = [9] }
data = "digits"
partition = { name = "dirichlet-class", alpha = 1.0 }
network = { nodes = 5, graph = "star" }
run = { iterations = 100, batch = 6, evaluations = 3 }
"#;

const LINEAR: &str = r#"
problem = { name = "hyperparameter" }
data = "digits"
network = { nodes = 5, graph = "complete" }
run = { iterations = 100, batch = 7, evaluations = 3 }
"#;

/// Names with what is given.
const METHODS: &[&str] = &[
    "name = \"lopa-gt\"\n",
    "name = \"lopa-lg\"\n",
    "name = \"local\"\n",
    "name = \"d-soba\"\n",
    "name = \"lopa-gt\"\nsteps = \"adaptive\"\n",
    "name = \"d-soba\"\nsteps = \"adaptive\"\n",
    "name = \"lopa-gt\"\nalpha = 0.02\n",
    "name = \"d-soba\"\nbeta = { over_sqrt = 0.1 }\nlambda = 0.1\n",
];

/// Full batches, so that no mean of θ is kept; several classes; more nodes than fit into one block each.
const CASES: &[(&str, &[&str])] = &[
    (QUADRATIC, &[]),
    (QUADRATIC, &["run.batch=full", "network.graph=path"]),
    (LAYER, &[]),
    (LINEAR, &["data.classes=[3, 8]"]),
    (LINEAR, &["data.scaling=centre", "run.iterations=40"]),
];

fn text(problem: &str, method: &str) -> String {
    format!("{problem}[[algorithm]]\n{method}")
}

const DOUBLE: (f64, f64) = (1e-9, 1e-10);
/// In single precision a probe may come an iteration earlier or later: rounding decides whether a direction swings back.
const SINGLE: (f64, f64) = (1e-4, 1e-5);

fn every_case(mut go: impl FnMut(&str, &[&str])) {
    for (problem, sets) in CASES {
        METHODS.iter().for_each(|method| go(&text(problem, method), sets));
    }
}

const SHORT: &[&str] = &["run.precision=f32", "run.iterations=30"];

/// Tensor cores: the head with `forward` and after it, bytes and numbers, samples that do not fill tiles.
const GENERAL: &[&[&str]] = &[
    &[],
    &["problem.hidden=[20]", "run.batch=17"],
    &["problem.hidden=[70]", "problem.activation=tanh", "data.scaling=standardise"],
];

#[test]
fn the_emulation_finds_the_steps_of_the_processor() {
    every_case(|text, sets| compare_within(text, sets, "emulated", DOUBLE));
    for problem in [QUADRATIC, LAYER, LINEAR] {
        compare_within(&text(problem, METHODS[0]), SHORT, "emulated", SINGLE);
    }
}

#[test]
fn emulated_tensor_cores_find_the_steps_of_the_processor() {
    for sets in GENERAL {
        for method in [METHODS[0], METHODS[3], METHODS[4]] {
            let sets = [sets, SHORT, &["run.iterations=8"]].concat();
            compare_within(&text(LAYER, method), &sets, "emulated-general", SINGLE);
        }
    }
}

/// With one layer and two.
pub fn layers() {
    for hidden in ["problem.hidden=[9]", "problem.hidden=[12, 7]"] {
        for method in [METHODS[0], METHODS[3], METHODS[4]] {
            let sets = [SHORT, &["run.iterations=8", hidden]].concat();
            compare_within(&text(LAYER, method), &sets, "layers", SINGLE);
        }
    }
    let sets = [SHORT, &["run.iterations=8"]].concat();
    compare_within(&text(LINEAR, METHODS[0]), &sets, "layers", SINGLE);
}

/// Products that measure curvatures are part of a budget, iteration by iteration.
#[test]
fn a_budget_of_products_ends_at_the_same_iteration() {
    let budget = ["run.iterations=1000", "run.budget.hessians=60"];
    compare_within(&text(QUADRATIC, METHODS[0]), &budget, "emulated", DOUBLE);
}

#[test]
fn a_card_finds_the_steps_of_the_processor() {
    if !card() {
        return;
    }
    every_case(|text, sets| compare_within(text, sets, "cuda", DOUBLE));
    for problem in [QUADRATIC, LAYER, LINEAR] {
        compare_within(&text(problem, METHODS[0]), SHORT, "plain", SINGLE);
    }
    // Enough nodes for one block each.
    let many = ["run.precision=f32", "network.nodes=70", "run.iterations=30"];
    compare_within(&text(LINEAR, METHODS[0]), &many, "cuda", SINGLE);
}

#[test]
fn tensor_cores_find_the_steps_of_the_processor() {
    if !hopper() {
        return;
    }
    for sets in GENERAL {
        for method in METHODS {
            let sets = [sets, SHORT].concat();
            compare_within(&text(LAYER, method), &sets, "general", SINGLE);
        }
    }
}

#[test]
fn found_steps_have_the_same_bits_on_a_card_and_in_its_emulation() {
    if !card() {
        return;
    }
    every_case(|text, sets| {
        let digest = |device| run(text, &[sets, &[device][..]].concat()).unwrap().0.digest;
        let first = digest("run.device=plain");
        assert_eq!(first, digest("run.device=plain"), "a card repeats itself: {sets:?}");
        assert_eq!(first, digest("run.device=emulated"), "{sets:?} of {text}");
    });
}
