//! The golden trajectories of the library's tests (crates/lopa/tests/golden), on a device.

use lopa::algorithms::{Start, algorithms};
use lopa::config::Source;
use lopa::data::{Dataset, Features, Samples, Target};
use lopa::engine::device::{Company, Program};
use lopa::engine::{Alone, Node};
use lopa::network::Mixing;
use lopa::problem::Bilevel;
use lopa::problem::builtin::{Local, hyperparameter, representation};
use lopa::problem::derivative::Batches;
use lopa::problem::oracle::Oracle;
use lopa::problem::scope::Scope;
use serde_json::Value;

use super::{card, experiment};

const FILE: &str = r#"
problem = { name = "quadratic" }
network = { nodes = 3, graph = "path" }
run = { iterations = 1 }
[[algorithm]]
name = "lopa-gt"
alpha = 0.1
beta = 0.1
lambda = 0.1
"#;

/// Golden names, and ours.
const NAMES: [(&str, &str, &str); 4] = [
    ("lopa_lg_z0_s", "lopa-lg", "estimate"),
    ("lopa_lg_z0_zero", "lopa-lg", "zero"),
    ("lopa_gt_z0_s", "lopa-gt", "estimate"),
    ("lopa_gt_z0_zero", "lopa-gt", "zero"),
];

fn path(file: &str) -> String {
    format!("{}/../lopa/tests/golden/{file}.json", env!("CARGO_MANIFEST_DIR"))
}

fn vector(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(vector).collect()
}

/// A vector in our order: theirs is unit by unit, ours feature by feature; biases come last in both.
fn ours(json: &Value, row: Vec<f64>) -> Vec<f64> {
    let Some(units) = json["h"].as_u64() else { return row };
    let size = |key: &str| json[key].as_u64().unwrap() as usize;
    let (inputs, outputs) = match row.len() == size("n") {
        true => (size("d"), units as usize),
        false => (units as usize, size("k")),
    };
    let weights = (0..inputs).flat_map(|q| (0..outputs).map(move |u| u * inputs + q));
    weights.chain(inputs * outputs..row.len()).map(|at| row[at]).collect()
}

/// The samples of all nodes, in one table as devices need them: for each pair of keys, those of
/// each node.
fn samples(json: &Value, keys: &[[&str; 2]], label: impl Fn(f64) -> u32) -> Vec<Vec<Samples<f64>>> {
    let (mut rows, mut labels, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for [features, targets] in keys {
        let of_nodes = json["data"][*features].as_array().unwrap().iter().map(matrix);
        for (own, targets) in of_nodes.zip(matrix(&json["data"][*targets])) {
            ranges.push(rows.len() as u32..(rows.len() + own.len()) as u32);
            rows.extend(own);
            labels.extend(targets.into_iter().map(&label));
        }
    }
    let features = Features::Dense { cols: rows[0].len(), values: rows.concat() };
    let all = Dataset::new(features, labels);
    let each = ranges.into_iter().map(|range| all.samples(range.collect())).collect::<Vec<_>>();
    each.chunks(each.len() / keys.len()).map(<[_]>::to_vec).collect()
}

/// The parts of all nodes.
fn parts(file: &str, json: &Value) -> Vec<Box<dyn Bilevel<f64>>> {
    let local = |train: &Samples<f64>, validation: &Samples<f64>, classes: usize| Local {
        train: train.clone(),
        validation: validation.clone(),
        apart: !std::ptr::eq(train, validation),
        test: Dataset::new(Features::Dense { cols: train.cols(), values: vec![] }, vec![])
            .samples(vec![]),
        holdout: Dataset::new(Features::Dense { cols: train.cols(), values: vec![] }, vec![])
            .samples(vec![]),
        target: Target::Classes(classes),
        units: Vec::new(),
        judged: [false; 2],
    };
    match json["problem"].as_str().unwrap() {
        "logreg_hyper" => {
            let sign = |b: f64| u32::from(b < 0.0);
            let sets = samples(json, &[["S_train", "b_train"], ["S_val", "b_val"]], sign);
            let options = toml::from_str::<hyperparameter::Options>("").unwrap();
            let part = |(train, validation): (&Samples<f64>, &Samples<f64>)| {
                let local = local(train, validation, 2);
                Box::new(hyperparameter::Hyperparameter::new(local, &options, None).unwrap()) as _
            };
            sets[0].iter().zip(&sets[1]).map(part).collect()
        }
        "mlp_head" => {
            let sets = samples(json, &[["S", "label"]], |label| label as u32);
            let text = format!("hidden = [{}]\nridge = {}", json["h"], json["mu"]);
            let options = toml::from_str::<representation::Options>(&text).unwrap();
            let classes = json["k"].as_u64().unwrap() as usize;
            let part = |own: &Samples<f64>| {
                let local = local(own, own, classes);
                Box::new(representation::Representation::new(local, &options, None).unwrap()) as _
            };
            sets[0].iter().map(part).collect()
        }
        _ => {
            let text =
                FILE.replace("\"quadratic\"", &format!("\"quadratic\", file = {:?}", path(file)));
            let experiment = experiment(&text, &[]).unwrap();
            let world = experiment.world(None, 1).unwrap();
            experiment.setup(None, &world, 1).parts_of::<f64>(0..3).unwrap().each
        }
    }
}

fn follow(device: &str, file: &str) {
    let json: Value = serde_json::from_str(&std::fs::read_to_string(path(file)).unwrap()).unwrap();
    let mixing = Mixing::from_matrix(matrix(&json["graph"]["W"])).unwrap();
    for (name, algorithm, start) in NAMES {
        let p = &json["algorithms"][name]["params"];
        let text = format!(
            "algorithm = {{ name = '{algorithm}', alpha = {}, beta = {}, lambda = {}, gamma = {}, tau = {}, \
             start = '{start}' }}",
            p["alpha"], p["beta"], p["lambda"], p["gamma"], p["tau"]
        );
        let source = Source::new("test", text);
        let section = source.root().unwrap().required("algorithm").unwrap();
        let choice = algorithms().read(section).unwrap();
        let batches = Batches::all(None);
        let make = |(i, part): (usize, Box<dyn Bilevel<f64>>)| {
            let mut oracle = Oracle::new(part, batches, false, 0, i);
            let at = |name: &str| ours(&json, vector(&json["init"][name][i])).into();
            let [x, theta, v] = ["x", "th", "v"].map(at);
            let start =
                Start { x, theta, v, rows: None, scope: Scope::Personal, oracle: &mut oracle };
            Node { algorithm: choice.build.start(start).unwrap(), oracle }
        };
        let mut nodes: Vec<Node<f64>> =
            parts(file, &json).into_iter().enumerate().map(make).collect();
        let place = experiment(FILE, &[&format!("run.device={device}")]).unwrap().device;
        let mut alone = Alone;
        let program = Program {
            nodes: &nodes,
            company: &Company::new(&mut alone),
            mixing: &mixing,
            batches,
            shared: false,
            rounds: false,
            seed: 0,
            k: 0,
        };
        let mut device = place.build.driver().unwrap().open.get::<f64>()(program).unwrap();
        for (k, state) in json["algorithms"][name]["states"].as_array().unwrap().iter().enumerate()
        {
            device.fetch(&mut nodes).unwrap();
            for (i, node) in nodes.iter().enumerate() {
                for (variable, got) in node.algorithm.variables() {
                    let theirs = if variable == "theta" { "th" } else { variable };
                    let want = ours(&json, vector(&state[theirs][i]));
                    for (got, want) in got.iter().zip(want) {
                        let off = (got - want).abs() / (1.0 + want.abs());
                        assert!(
                            off < 1e-10,
                            "{file} {name}: {variable} at k = {k} is off by {off:e}"
                        );
                    }
                }
            }
            device.advance(&mut |_, _| Ok(())).unwrap();
        }
    }
}

const FILES: [&str; 3] = ["quadratic_path3", "logistic_ring4_mean", "mlp_path3_bias"];

#[test]
fn the_emulation_follows_the_golden_trajectories() {
    FILES.iter().for_each(|file| follow("emulated", file));
}

#[test]
fn a_card_follows_the_golden_trajectories() {
    if card() {
        FILES.iter().for_each(|file| follow("cuda", file));
    }
}
