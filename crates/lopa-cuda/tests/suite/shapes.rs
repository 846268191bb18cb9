//! Kernels for any shape agree with the processor.

use lopa::math::portable::powf;
use lopa::math::random::{Purpose, Stream};
use rayon::prelude::*;

use super::agree::{compare, compare_within, same_bits};
use super::tables;
use super::{card, hopper, run};

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

/// A case: the experiment, its sizes and its overrides.
struct Case {
    text: String,
    features: usize,
    units: usize,
    classes: usize,
    /// Of the data, and all others.
    data: Vec<String>,
    sets: Vec<String>,
}

/// Case `seed` of a range: sizes whose logarithms are uniform; bytes, numbers, shifted or sparse features; an activation, a
/// graph and an algorithm.
fn drawn(range: &Range, seed: u64) -> Case {
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
    let (mut data, mut sets) = (Vec::new(), Vec::new());
    sets.extend([
        format!("network.nodes={nodes}"),
        format!("run.batch={batch}"),
        "run.iterations=3".into(),
        "run.evaluations=1".into(),
    ]);
    let kind = stream.below(4);
    if kind == 0 {
        // Bytes: some columns of the digits, and some of their classes.
        let columns: Vec<String> =
            (0..features.min(64)).map(|at| ((at * 29 + 20) % 64).to_string()).collect();
        data.push(format!("data.columns=[{}]", columns.join(", ")));
        let classes: Vec<String> = (0..classes.min(10)).map(|class| class.to_string()).collect();
        data.push(format!("data.classes=[{}]", classes.join(", ")));
        data.push(["data.scaling=unit", "data.scaling=centre"][stream.below(2)].into());
    } else {
        let rows = (20 * nodes).max(10 * classes);
        data.extend([
            "data.name=blobs".into(),
            format!("data.features={features}"),
            format!("data.centres={classes}"),
            format!("data.rows={rows}"),
            format!("data.sparsity={}", [0.0, 0.0, 0.6][kind - 1]),
            "data.spread=0.3".into(),
        ]);
    }
    let activation = ["sigmoid", "tanh"][stream.below(2)];
    sets.push(
        ["network.graph=path", "network.graph=star", "network.graph=complete"][stream.below(3)]
            .into(),
    );
    let name = ["lopa-gt", "lopa-gt", "lopa-lg", "d-soba", "sldbo"][stream.below(5)];
    let text = FILE
        .replace("beta = 0.01", &format!("beta = {step}"))
        .replace("lambda = 0.01", &format!("lambda = {step}"))
        .replace("\"lopa-gt\"", &format!("{name:?}"))
        .replace("[9]", &format!("[{units}], activation = {activation:?}"));
    Case { text, features, units, classes, data, sets }
}

/// The same with any model: hidden layers, none or several, with biases or without; what they compute; the loss; what x
/// has an entry for; the precision.
fn any_model(range: &Range, seed: u64) -> Case {
    let mut case = drawn(range, seed);
    let stream = &mut Stream::new(seed, Purpose::Data, 8);
    let mut pick = |of: &[&'static str]| of[stream.below(of.len())];
    let kind = pick(&["representation", "representation", "hyperparameter", "hyper-cleaning"]);
    let mut keys = vec![format!("name = {kind:?}")];
    if kind == "representation" {
        let units = case.units;
        let layers = match pick(&["one", "two", "two", "three"]) {
            "one" => vec![units],
            "two" => vec![units, units.div_ceil(2) + 1],
            _ => vec![units.div_ceil(2), units, units.div_ceil(3)],
        };
        keys.push(format!("hidden = {layers:?}"));
        keys.push(format!("activation = {:?}", pick(&["sigmoid", "tanh", "relu"])));
        keys.push(pick(&["validation = 0.0", "validation = 0.4"]).into());
    }
    if kind == "hyperparameter" {
        let half = case.features / 2;
        match pick(&["feature", "class", "groups"]) {
            "groups" if half > 0 && !case.data.iter().any(|set| set.contains("columns")) => {
                keys.push(format!("groups = [{half}, {}]", case.features - half));
            }
            "class" => keys.push("strength = \"class\"".into()),
            _ => {}
        }
    }
    keys.push(pick(&["bias = true", "bias = false"]).into());
    match pick(&["classes", "two", "numbers", "numbers"]) {
        "two" => {
            keys.push(format!("loss = {:?}", pick(&["logistic", "softmax"])));
            case.data.retain(|set| !set.contains("classes") && !set.contains("centres"));
            let few = match case.data.iter().any(|set| set.contains("blobs")) {
                true => "data.centres=2",
                false => "data.classes=[3, 8]",
            };
            case.data.push(few.into());
        }
        "numbers" => {
            keys.push(pick(&["loss = \"squared\"", "loss = \"huber\", delta = 0.7"]).into());
            let whole = pick(&["whole", "not"]) == "whole";
            let (features, outputs) =
                (case.features.min(tables::FEATURES), (case.classes / 2).clamp(1, tables::OUTPUTS));
            keys.retain(|key| !key.contains("groups"));
            case.data = tables::sets(whole, features, outputs);
        }
        _ => {}
    }
    case.sets.push(format!("run.precision={}", pick(&["f32", "f64"])));
    let mut lines = case.text.lines();
    let rest = lines.find(|line| line.starts_with("problem")).map(|_| lines.collect::<Vec<_>>());
    let steps = |text: String| match kind {
        "hyper-cleaning" => text.replace("alpha = 0.02", "alpha = 5.0"),
        _ => text,
    };
    let rest = rest.unwrap_or_default().join("\n");
    case.text = steps(format!("\nproblem = {{ {} }}\n{rest}\n", keys.join(", ")));
    case
}

/// Every case, with some more overrides.
fn each(
    cases: impl IntoParallelIterator<Item = Case>,
    more: &[&str],
    go: impl Fn(&str, &[&str]) + Sync,
) {
    cases.into_par_iter().for_each(|Case { text, data, sets, .. }| {
        let own = data.iter().chain(&sets).map(String::as_str);
        go(&text, &own.chain(more.iter().copied()).collect::<Vec<_>>());
    });
}

fn draws(count: u64, range: &Range, device: &str, of: fn(&Range, u64) -> Case) {
    let cases = (0..count).into_par_iter().map(|seed| of(range, seed));
    each(cases, &[], |text, sets| compare(text, sets, device));
}

#[test]
fn emulated_kernels_agree_with_the_processor_in_200_drawn_shapes() {
    draws(200, &SMALL, "emulated-general", drawn);
}

#[test]
fn kernels_agree_with_the_processor_in_200_drawn_shapes() {
    if hopper() {
        draws(200, &ALL, "general", drawn);
    }
}

/// With one product in place of several, over more iterations: θ is 0 at first.
fn rounded_draws(count: u64, range: &Range, device: &str) {
    let cases = (0..count).into_par_iter().map(|seed| drawn(range, seed));
    each(cases, &["run.iterations=12", "run.precision=tf32"], |text, sets| {
        compare_within(text, sets, device, (1e-2, 3e-3));
    });
}

#[test]
fn emulated_kernels_in_tf32_are_near_the_processor_in_200_drawn_shapes() {
    rounded_draws(200, &SMALL, "emulated-general");
}

#[test]
fn kernels_in_tf32_are_near_the_processor_in_200_drawn_shapes() {
    if hopper() {
        rounded_draws(200, &SMALL, "general");
    }
}

#[test]
fn emulated_kernels_agree_with_the_processor_in_200_drawn_models() {
    draws(200, &SMALL, "emulated", any_model);
}

#[test]
fn kernels_agree_with_the_processor_in_200_drawn_models() {
    if card() {
        draws(200, &ALL, "plain", any_model);
    }
}

/// Of which those that run on tensor cores have other kernels than above.
#[test]
fn tensor_cores_agree_with_the_processor_in_200_drawn_models() {
    if card() {
        draws(200, &ALL, "cuda", any_model);
    }
}

/// The same shapes as the kernels for one layer, so that both are compared with the processor.
#[test]
fn kernels_of_any_model_agree_with_the_processor_in_200_drawn_shapes() {
    if card() {
        draws(200, &ALL, "layers", drawn);
        rounded_draws(200, &SMALL, "layers");
    }
}

/// Every variable, to the bit.
fn bits(models: u64) {
    let cases = (0..models).into_par_iter().map(|seed| any_model(&SMALL, seed));
    each(cases, &[], same_bits);
}

#[test]
fn a_card_and_its_emulation_have_the_same_bits_in_200_drawn_models() {
    if card() {
        bits(200);
    }
}

/// The kernels of lopa.cu.
pub fn plain() {
    bits(60);
}

/// The kernels of layers.cu in small shapes: one layer of any size, in tf32 as well, and any model.
pub fn layers(count: u64) {
    draws(count, &SMALL, "layers", drawn);
    rounded_draws(count, &SMALL, "layers");
    let models = (0..2 * count).map(|seed| any_model(&SMALL, seed));
    let models: Vec<Case> =
        models.filter(|case| case.sets.contains(&"run.precision=f32".into())).collect();
    assert!(models.len() as u64 > count / 2);
    each(models, &[], |text, sets| compare(text, sets, "layers"));
}
