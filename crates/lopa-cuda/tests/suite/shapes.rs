//! Kernels for any shape agree with the processor.

use lopa::math::portable::powf;
use lopa::math::random::{Purpose, Stream};
use rayon::prelude::*;

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

/// The largest numbers of features, units, classes, samples and nodes that are drawn, and of products of a node.
struct Range {
    features: usize,
    units: usize,
    classes: usize,
    batch: usize,
    nodes: usize,
    products: usize,
}

/// Small enough to be emulated.
const SMALL: Range =
    Range { features: 150, units: 120, classes: 40, batch: 40, nodes: 4, products: 1 << 14 };

/// All that the kernels support.
const ALL: Range =
    Range { features: 3072, units: 512, classes: 64, batch: 1024, nodes: 9, products: 1 << 24 };

/// Case `seed` of a range: sizes whose logarithms are uniform; bytes, numbers, shifted or sparse features; an activation, a
/// graph and an algorithm.
fn drawn(range: &Range, seed: u64) -> (String, Vec<String>) {
    let stream = &mut Stream::new(seed, Purpose::Data, 7);
    let mut size = |low: usize, high: usize| {
        let between = stream.below(1 << 20) as f64 / f64::from(1 << 20);
        (low as f64 * powf(high as f64 / low as f64, between)).round() as usize
    };
    let Range { features, units, classes, batch, nodes, products } = *range;
    let (mut features, mut units, mut batch) = (size(1, features), size(1, units), size(1, batch));
    let (classes, nodes) = (size(2, classes), size(2, nodes));
    // The largest is halved until the processor takes it in its stride.
    while features * units * batch > products {
        let largest = features.max(units).max(batch);
        for of in [&mut features, &mut units, &mut batch] {
            if *of == largest {
                *of = of.div_ceil(2);
            }
        }
    }
    let step = (1.0 / (units + 1) as f64).min(0.05);
    let mut sets = vec![
        format!("problem.hidden=[{units}]"),
        format!("network.nodes={nodes}"),
        format!("run.batch={batch}"),
        "run.iterations=3".into(),
        "run.evaluations=1".into(),
    ];
    let kind = stream.below(4);
    if kind == 0 {
        // Bytes: some columns of the digits, and some of their classes.
        let columns: Vec<String> =
            (0..features.min(64)).map(|at| ((at * 29 + 20) % 64).to_string()).collect();
        sets.push(format!("data.columns=[{}]", columns.join(", ")));
        let classes: Vec<String> = (0..classes.min(10)).map(|class| class.to_string()).collect();
        sets.push(format!("data.classes=[{}]", classes.join(", ")));
        sets.push(["data.scaling=unit", "data.scaling=centre"][stream.below(2)].into());
    } else {
        let rows = (20 * nodes).max(10 * classes);
        sets.extend([
            "data.name=blobs".into(),
            format!("data.features={features}"),
            format!("data.centres={classes}"),
            format!("data.rows={rows}"),
            format!("data.sparsity={}", [0.0, 0.0, 0.6][kind - 1]),
            "data.spread=0.3".into(),
        ]);
    }
    sets.push(["problem.activation=sigmoid", "problem.activation=tanh"][stream.below(2)].into());
    sets.push(
        ["network.graph=path", "network.graph=star", "network.graph=complete"][stream.below(3)]
            .into(),
    );
    let name = ["lopa-gt", "lopa-gt", "lopa-lg", "d-soba", "sldbo"][stream.below(5)];
    let text = FILE
        .replace("beta = 0.01", &format!("beta = {step}"))
        .replace("lambda = 0.01", &format!("lambda = {step}"))
        .replace("\"lopa-gt\"", &format!("{name:?}"));
    (text, sets)
}

fn draws(range: &Range, device: &str) {
    (0..200).into_par_iter().for_each(|seed| {
        let (text, sets) = drawn(range, seed);
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        compare(&text, &sets, device);
    });
}

#[test]
fn emulated_kernels_agree_with_the_processor_in_200_drawn_shapes() {
    draws(&SMALL, "emulated-general");
}

#[test]
fn kernels_agree_with_the_processor_in_200_drawn_shapes() {
    if hopper() {
        draws(&ALL, "general");
    }
}
