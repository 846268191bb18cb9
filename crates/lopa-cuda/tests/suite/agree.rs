//! A device computes the same as the processor.

use lopa::run::evaluate::Point;

use super::{card, hopper, run, tables};

const QUADRATIC: &str = r#"
problem = { name = "quadratic", n = 7, p = 5, noise = 0.3, samples = 40 }
network = { nodes = 6, graph = "ring" }
run = { iterations = 200, batch = 8, evaluations = 3 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.05
beta = { over_sqrt = 0.5 }
lambda = 0.3
"#;

const LAYER: &str = r#"
problem = { name = "representation", hidden = [9] }
data = "digits"
partition = { name = "dirichlet-class", alpha = 1.0 }
network = { nodes = 5, graph = "star" }
run = { iterations = 200, batch = 6, precision = "f32", evaluations = 3 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.1
lambda = 0.1
"#;

const LINEAR: &str = r#"
problem = { name = "hyperparameter" }
data = "digits"
network = { nodes = 5, graph = "complete" }
run = { iterations = 200, batch = 7, evaluations = 3 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.1
lambda = 0.1
"#;

const CLEANING: &str = r#"
problem = { name = "hyper-cleaning", ridge = 0.02 }
data = "digits"
network = { nodes = 5, graph = "complete" }
run = { iterations = 60, batch = 7, evaluations = 3 }
[[algorithm]]
name = "lopa-gt"
alpha = 20.0
beta = 0.1
lambda = 0.1
"#;

/// Every problem in every shape, every algorithm, in both precisions.
const CASES: &[(&str, &[&str])] = &[
    (QUADRATIC, &[]),
    (QUADRATIC, &["run.precision=f32", "run.shared_samples=true"]),
    (QUADRATIC, &["run.batch=full", "algorithm.lopa-gt.name=lopa-lg"]),
    (QUADRATIC, &["algorithm.lopa-gt.name=local", "network.graph=path"]),
    (LAYER, &[]),
    (LAYER, &["problem.activation=tanh", "problem.hidden=[40]", "run.precision=f64"]),
    (LAYER, &["problem.validation=0.3", "algorithm.lopa-gt.name=lopa-lg"]),
    (LAYER, &["data.scaling=standardise", "run.shared_samples=true"]),
    (LAYER, &["problem.bias=false", "problem.hidden=[40]"]),
    (LAYER, &["problem.hidden=[70, 35]", "problem.activation=relu", "run.iterations=20"]),
    (LAYER, &["problem.hidden=[12, 34, 5]", "problem.bias=false", "run.precision=f64"]),
    (LAYER, &["problem.loss=logistic", "data.classes=[3, 8]", "run.precision=f64"]),
    (LINEAR, &["problem.bias=true"]),
    (LINEAR, &["problem.bias=true", "data.scaling=centre", "run.precision=f32"]),
    (LINEAR, &["problem.bias=true", "problem.strength=class"]),
    (LINEAR, &["problem.groups=[3, 21, 40]", "problem.bias=true", "data.classes=[1, 4, 7]"]),
    (LINEAR, &["problem.loss=softmax", "data.classes=[3, 8]", "problem.strength=class"]),
    (CLEANING, &[]),
    (CLEANING, &["problem.bias=false", "problem.start=-0.5", "run.precision=f32"]),
    (CLEANING, &["data.scaling=standardise", "run.shared_samples=true", "run.batch=40"]),
    (CLEANING, &["problem.loss=logistic", "data.classes=[3, 8]", "data.scaling=centre"]),
    (CLEANING, &["algorithm.lopa-gt.name=lopa-lg", "data.classes=[1, 4, 7]", "run.precision=f32"]),
    (LINEAR, &[]),
    (LINEAR, &["run.precision=f32", "algorithm.lopa-gt.name=local"]),
    (LINEAR, &["data.classes=[0, 1]", "data.scaling=centre", "run.precision=f32"]),
    (LINEAR, &["data.classes=[4, 9]", "data.columns=[20, 21, 28, 35, 42, 43]"]),
    (
        LINEAR,
        &[
            "data.columns=[20, 21, 28, 35, 42]",
            "run.precision=f32",
            "network.nodes=70",
            "run.iterations=60",
        ],
    ),
    (LINEAR, &["data.scaling=centre", "run.precision=f32"]),
    (LINEAR, &["data.scaling=standardise", "run.precision=f32"]),
    (LINEAR, &["data.classes=[1, 4, 7]", "data.scaling=centre", "run.precision=f32"]),
    (LINEAR, &["data.classes=[1, 4, 7]", "data.scaling=standardise", "run.precision=f32"]),
    // Enough nodes for one block each, with several classes.
    (
        LINEAR,
        &["data.scaling=standardise", "run.precision=f32", "network.nodes=70", "run.iterations=60"],
    ),
    (
        LINEAR,
        &["data.classes=[1, 4, 7]", "run.precision=f32", "network.nodes=70", "run.iterations=60"],
    ),
    (
        LINEAR,
        &[
            "data.classes=[1, 4, 7]",
            "data.scaling=standardise",
            "run.precision=f32",
            "network.nodes=70",
            "run.iterations=60",
        ],
    ),
];

/// `LINEAR` on more features than a warp takes at once.
const PIXELS: &[&[&str]] = &[
    &["run.iterations=40", "run.batch=19", "run.precision=f32", "data.classes=[0, 1]"],
    &["run.iterations=40", "run.batch=19", "run.precision=f32"],
];

/// DGD moves θ, or x and θ.
const DESCENT: &[(&str, &[&str])] = &[
    (QUADRATIC, &["run.batch=full"]),
    (LAYER, &[]),
    (LAYER, &["run.precision=f64", "problem.activation=tanh"]),
    (LINEAR, &["run.precision=f32"]),
    (LINEAR, &["data.classes=[3, 8]"]),
];

const SOBA: &[(&str, &[&str])] =
    &[(QUADRATIC, &["run.precision=f32"]), (LAYER, &[]), (LINEAR, &["data.classes=[3, 8]"])];

const IMAGES: &str = r#"
problem = { name = "representation", hidden = [28] }
data = "mnist"
network = { nodes = 4, graph = "ring" }
run = { iterations = 200, batch = 6, precision = "f32", evaluations = 3 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.02
beta = 0.1
lambda = 0.1
"#;

/// Runs on tensor cores: every algorithm and activation, fewer units, classes and samples than the
/// maximum, many neighbours, and more nodes than clusters.
const TENSOR: &[&[&str]] = &[
    &[],
    &["problem.activation=tanh", "network.graph=complete", "run.batch=50"],
    &["problem.validation=0.3", "algorithm.lopa-gt.name=lopa-lg", "network.graph=path"],
    &["algorithm.lopa-gt.name=local", "data.classes=[1, 4, 7]", "problem.hidden=[17]"],
    &["run.shared_samples=true", "network.graph=path", "run.batch=17"],
    &["network.nodes=20", "network.graph=star"],
];

/// The largest difference over the largest entry.
fn apart(ours: &[f64], theirs: &[f64]) -> f64 {
    let size = theirs.iter().fold(1e-30, |most: f64, value| most.max(value.abs()));
    let gap = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    gap.fold(0.0, |most: f64, gap| if gap > most || gap.is_nan() { gap } else { most }) / size
}

pub fn compare(text: &str, sets: &[&str], device: &str) {
    let single = sets.contains(&"run.precision=f32")
        || text.contains("f32") && !sets.contains(&"run.precision=f64");
    let (points, losses) = if single { (1e-4, 1e-5) } else { (1e-10, 1e-11) };
    compare_within(text, sets, device, (points, losses));
}

/// The same with other tolerances, of points and of losses.
pub fn compare_within(text: &str, sets: &[&str], device: &str, (points, losses): (f64, f64)) {
    let there = format!("run.device={device}");
    // Nothing that is compared here needs exact solves.
    let sets = &[sets, &["run.exact=never"]].concat()[..];
    let (ours, our_rows) = run(text, &[sets, &[&there]].concat()).unwrap();
    let (theirs, their_rows) = run(text, sets).unwrap();
    let what = format!("{sets:?} of {}", text.lines().nth(1).unwrap());
    assert_eq!(our_rows.len(), their_rows.len(), "{what}");
    for (ours, theirs) in our_rows.iter().zip(&their_rows) {
        for cost in
            ["iteration", "exchanges", "bytes", "hessians", "jacobians", "gradients", "samples"]
        {
            assert_eq!(ours.value(cost), theirs.value(cost), "{cost}: {what}");
        }
        for step in ["step_alpha", "step_beta", "step_lambda", "curvature", "cuts", "lag"] {
            let (ours, theirs) = (ours.value(step), theirs.value(step));
            let gap = ours.zip(theirs).map_or(0.0, |(a, b)| (a - b).abs() / b.abs().max(1e-30));
            assert!(ours.is_some() == theirs.is_some() && gap <= points, "{step} by {gap}: {what}");
        }
        let (ours, theirs) = (ours.value("loss").unwrap(), theirs.value("loss").unwrap());
        assert!((ours / theirs - 1.0).abs() < losses, "loss {ours}, {theirs}: {what}");
    }
    assert_eq!(ours.stop, theirs.stop, "{what}");
    for ((x, theta), (their_x, their_theta)) in
        ours.models.iter().zip::<&Vec<Point>>(&theirs.models)
    {
        assert!(apart(x, their_x) < points, "x by {:e}: {what}", apart(x, their_x));
        assert!(
            apart(theta, their_theta) < points,
            "theta by {:e}: {what}",
            apart(theta, their_theta)
        );
    }
}

/// Regressions: bytes and other numbers, one number to predict and several, on a card with one block per node as well.
const NUMBERS: &[(&str, bool, usize, usize, &[&str])] = &[
    (LAYER, false, 30, 1, &[]),
    (LAYER, true, 33, 3, &["problem.loss=huber", "problem.delta=0.5", "run.precision=f64"]),
    (LAYER, true, 32, 20, &["problem.hidden=[20, 9]", "problem.activation=relu"]),
    (LINEAR, false, 30, 1, &["problem.bias=true", "run.precision=f32"]),
    (LINEAR, true, 140, 2, &["problem.loss=huber"]),
    (LINEAR, true, 31, 10, &["run.precision=f32", "network.nodes=66", "run.batch=3"]),
    (LINEAR, false, 24, 17, &["problem.strength=class", "problem.bias=true"]),
    (CLEANING, true, 20, 1, &["problem.loss=huber", "algorithm.lopa-gt.alpha=1.0"]),
    (CLEANING, false, 20, 3, &["algorithm.lopa-gt.alpha=1.0", "run.precision=f32"]),
];

fn numbers(device: &str) {
    for &(text, whole, features, outputs, sets) in NUMBERS {
        let data = tables::sets(whole, features, outputs);
        let text = text.replace("data = \"digits\"\n", "").replace("\npartition", "\n# partition");
        let sets: Vec<&str> = data.iter().map(String::as_str).chain(sets.iter().copied()).collect();
        match device {
            "bits" => same_bits(&text, &sets),
            _ => compare(&text, &sets, device),
        }
    }
}

type Case = (String, &'static [&'static str]);

fn pixels() -> impl Iterator<Item = Case> {
    PIXELS.iter().map(|&sets| (LINEAR.replace("digits", "mnist"), sets))
}

fn every_shape() -> impl Iterator<Item = Case> {
    let cases = CASES.iter().map(|&(text, sets)| (text.to_string(), sets));
    cases.chain(pixels())
}

fn every_algorithm() -> impl Iterator<Item = Case> {
    let soba = SOBA.iter().map(|&(text, sets)| (soba(text), sets));
    let descent = DESCENT
        .iter()
        .map(|&(text, sets)| (text.to_string(), sets))
        .chain(pixels())
        .map(|(text, sets)| (descent(&text), sets));
    every_shape().chain(soba).chain(descent)
}

fn descent(text: &str) -> String {
    let steps = "name = \"lopa-gt\"\nalpha";
    let at = text.find(steps).unwrap();
    format!("{}name = \"dgd\"\nalpha = 0.05\n", &text[..at])
}

pub fn soba(text: &str) -> String {
    text.replace("name = \"lopa-gt\"", "name = \"d-soba\"")
}

#[test]
fn the_emulation_agrees_with_the_processor() {
    every_algorithm().for_each(|(text, sets)| compare(&text, sets, "emulated"));
    numbers("emulated");
}

#[test]
fn a_card_agrees_with_the_processor() {
    if card() {
        every_algorithm().for_each(|(text, sets)| compare(&text, sets, "cuda"));
        numbers("cuda");
    }
}

/// The kernels of any model on linear ones.
pub fn layers() {
    let linear = every_shape().filter(|(text, _)| !text.contains("quadratic"));
    for (text, sets) in linear.filter(|(text, _)| !text.contains("representation")) {
        compare(&text, &[sets, &["run.precision=f32", "run.iterations=12"]].concat(), "layers");
    }
    // Scores in parts, by classes that fill one tile or several; one column, by one warp for each row or by several.
    let wide = "data = { name = \"blobs\", features = 900, rows = 200, spread = 0.3 }";
    for (features, classes) in [(900, 2), (900, 7), (900, 12), (900, 40), (400, 2), (2600, 2)] {
        let [features, centres] =
            [format!("data.features={features}"), format!("data.centres={classes}")];
        let sets = [&features, &centres, "run.precision=f32", "run.iterations=5"];
        compare(&LINEAR.replace("data = \"digits\"", wide), &sets, "layers");
    }
    for (text, sets) in pixels() {
        let [rounded, precise] = ["tf32", "f32"].map(|precision| {
            let precision = format!("run.precision={precision}");
            let sets = [sets, &["run.iterations=10", "run.device=layers", &precision]].concat();
            run(&text, &sets).unwrap().0.models[0].0.clone()
        });
        let off = apart(&rounded, &precise);
        assert!((1e-9..1e-3).contains(&off), "{off:e}");
    }
}

#[test]
fn emulated_tensor_cores_agree_with_the_processor() {
    let fewer = ["run.iterations=12"];
    for sets in &TENSOR[..5] {
        compare(IMAGES, &[sets, &fewer[..]].concat(), "emulated-tensor");
    }
    compare(&soba(IMAGES), &fewer, "emulated-tensor");
}

#[test]
fn tensor_cores_agree_with_the_processor() {
    if !hopper() {
        return;
    }
    TENSOR.iter().for_each(|sets| compare(IMAGES, sets, "tensor"));
    compare(&soba(IMAGES), &[], "tensor");
    for sets in TENSOR {
        let digest = |more: &'static str| {
            run(IMAGES, &[sets, &["run.device=tensor", more][..]].concat()).unwrap().0.digest
        };
        let first = digest("run.evaluations=3");
        assert_eq!(first, digest("run.evaluations=3"), "a card repeats itself: {sets:?}");
    }
}

/// Shapes that tensor cores do not support use plain kernels.
#[test]
fn tensor_cores_serve_what_they_have_room_for() {
    for sets in [
        &["problem.hidden=[29]"][..],
        &["run.batch=51"],
        &["data.scaling=centre"],
        &["run.precision=f64"],
    ] {
        let error = run(IMAGES, &[sets, &["run.device=emulated-tensor"]].concat()).unwrap_err();
        assert_eq!(error.id, "device/refused", "{sets:?}: {error}");
    }
    let error = run(LINEAR, &["run.device=emulated-tensor"]).unwrap_err();
    assert_eq!(error.id, "device/refused", "{error}");
}

/// Every variable at every measurement, to the bit.
#[test]
fn a_card_and_its_emulation_have_the_same_bits() {
    if !card() {
        return;
    }
    every_algorithm().for_each(|(text, sets)| same_bits(&text, sets));
    numbers("bits");
}

pub fn same_bits(text: &str, sets: &[&str]) {
    let digest = |device| run(text, &[sets, &[device][..]].concat()).unwrap().0.digest;
    let first = digest("run.device=plain");
    assert_eq!(first, digest("run.device=plain"), "a card repeats itself: {sets:?} of {text}");
    assert_eq!(first, digest("run.device=emulated"), "{sets:?} of {text}");
}
