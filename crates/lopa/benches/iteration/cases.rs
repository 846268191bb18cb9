//! The problems that are measured, and their data for other implementations.

use std::fs;
use std::path::Path;

use lopa::config::Source;
use lopa::data::Features;
use lopa::experiment::Experiment;
use lopa::problems::{Local, Setting};
use lopa::random::{Purpose, Stream};
use lopa::scope::Scope;

use crate::bench::{Bench, dense, rows};

/// A problem with LoPA-GT on it.
pub struct Case {
    pub name: &'static str,
    pub nodes: usize,
    pub batch: usize,
    problem: &'static str,
    data: &'static str,
    /// Data of the same shape and share of zeros, where the real data is not at hand.
    stand_in: &'static str,
    /// The folder of the real data.
    folder: &'static str,
    steps: &'static str,
}

pub const CASES: &[Case] = &[
    Case {
        name: "representation-mnist",
        nodes: 8,
        batch: 50,
        problem: "name = 'representation', hidden = [28], ridge = 0.52",
        data: "name = 'mnist'",
        stand_in: "name = 'blobs', rows = 20000, features = 784, centres = 10, sparsity = 0.81",
        folder: "mnist",
        steps: "alpha = 0.1, beta = 0.1, lambda = 0.1",
    },
    Case {
        name: "hyperparameter-mnist01",
        nodes: 10,
        batch: 40,
        problem: "name = 'hyperparameter', start = -5.0",
        data: "name = 'mnist', classes = [0, 1]",
        stand_in: "name = 'blobs', rows = 12000, features = 784, centres = 2, sparsity = 0.81",
        folder: "mnist",
        steps: "alpha = 0.01, beta = 0.02, lambda = 0.02",
    },
    Case {
        name: "hyperparameter-covtype",
        nodes: 10,
        batch: 200,
        problem: "name = 'hyperparameter', start = -5.0",
        data: "name = 'covtype'",
        stand_in: "name = 'blobs', rows = 500000, features = 54, centres = 7, sparsity = 0.78",
        folder: "covtype",
        steps: "alpha = 0.01, beta = 0.02, lambda = 0.02",
    },
    Case {
        name: "hyperparameter-cifar",
        nodes: 10,
        batch: 15,
        problem: "name = 'hyperparameter', start = -5.0",
        data: "name = 'cifar10'",
        stand_in: "name = 'blobs', rows = 10000, features = 3072, centres = 10",
        folder: "cifar10",
        steps: "alpha = 0.01, beta = 0.001, lambda = 0.001",
    },
];

/// A small problem, where an algorithm's own work shows.
pub const QUADRATIC: &str = "problem = { name = 'quadratic', noise = 0.2, samples = 30 }
    network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
    run = { iterations = 1, batch = 7 }";

/// Every algorithm.
pub const ALGORITHMS: &[(&str, &str)] = &[
    ("lopa-gt", "name = 'lopa-gt', alpha = 0.001, beta = 0.1, lambda = 0.1"),
    ("lopa-lg", "name = 'lopa-lg', alpha = 0.001, beta = 0.1, lambda = 0.1"),
    ("spdb", "name = 'spdb', alpha = 0.001, beta = 0.1, lambda = 0.1, hv_steps = 4"),
    ("ma-dsbo", "name = 'ma-dsbo', alpha = 0.001, beta = 0.1, lambda = 0.1"),
    ("dgd", "name = 'dgd', alpha = 0.001"),
    ("local", "name = 'local', alpha = 0.001, beta = 0.1, lambda = 0.1"),
];

/// The case of that name.
pub fn find(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no case {name}"))
}

impl Case {
    /// On all the data with the case's batches, or on full batches of so many samples.
    pub fn bench(&self, full: Option<usize>) -> Bench {
        let Case { nodes, problem, steps, batch, .. } = self;
        let directory = std::env::var("LOPA_DATA_DIR").unwrap_or_default();
        let data = match Path::new(&directory).join(self.folder).is_dir() {
            true => self.data,
            false => self.stand_in,
        };
        let samples = full.map_or(String::new(), |samples| format!(", samples = {samples}"));
        let batch = if full.is_some() { "'full'".into() } else { batch.to_string() };
        let text = format!(
            "problem = {{ {problem} }}
             data = {{ {data}{samples} }}
             network = {{ nodes = {nodes}, graph = 'ring', weights = 'metropolis' }}
             run = {{ iterations = 1, batch = {batch} }}
             algorithm = [{{ name = 'lopa-gt', {steps} }}]"
        );
        let read = Experiment::read(&Source::new("bench", &text));
        Bench::on(read.unwrap_or_else(|error| panic!("{error}\n{text}")), directory.into())
    }

    /// The name, with how the features are stored.
    pub fn title(&self, bench: &Bench) -> String {
        let features = bench.data.as_ref().expect("every case has data").train.features();
        let share = features.stored() as f64 / (features.rows() * features.cols()) as f64;
        let form = match features {
            Features::Dense { .. } => "dense",
            Features::Sparse { .. } => "sparse",
        };
        format!("{} ({form}, {:.0} %)", self.name, 100.0 * share)
    }
}

/// Iterations on full batches that other implementations repeat.
const ITERATIONS: usize = 5;

/// Samples of a node for that, so that it does not take long.
const A_NODE: usize = 200;

/// Writes the case for other implementations: `all` its data to measure on, and `few` with the
/// outcome of some iterations on full batches.
pub fn export(case: &Case, dir: &str) {
    let dir = Path::new(dir).join(case.name);
    write(case, &case.bench(None), &dir.join("all"));
    let few = case.bench(Some(A_NODE * case.nodes));
    write(case, &few, &dir.join("few"));
    let simulation = few.run::<f64>(ITERATIONS);
    for name in ["x", "theta", "v"] {
        save(
            &dir.join("few").join(name),
            rows(&simulation, name).concat().iter().map(|v| v.to_le_bytes()),
        );
    }
}

fn write(case: &Case, bench: &Bench, dir: &Path) {
    fs::create_dir_all(dir).expect("a folder");
    let data = bench.data.as_ref().expect("every case has data");
    let features = data.train.features();
    let mut table = vec![0f32; features.rows() * features.cols()];
    for row in 0..features.rows() {
        features.each(row, |q, value| table[row * features.cols() + q] = value as f32);
    }
    save(&dir.join("features"), table.iter().map(|v| v.to_le_bytes()));
    save(&dir.join("labels"), data.train.labels().iter().map(|v| v.to_le_bytes()));
    save(&dir.join("mixing"), dense(&bench.world.mixing).concat().iter().map(|v| v.to_le_bytes()));
    let params = &bench.experiment.problem.params;
    let validation = params["validation"].as_float().expect("a share");
    let setting = Setting {
        nodes: case.nodes,
        seed: bench.seed(),
        scope: Scope::Personal,
        batch: None,
        data: Some(data),
        partition: &bench.world.partition.nodes,
    };
    let nodes = 0..case.nodes;
    let locals = Local::<f64>::split(case.name, validation, &setting, nodes);
    let locals = locals.expect("enough samples");
    // Nodes may differ by a sample; others want a matrix.
    let least = |of: fn(&Local<f64>) -> &[u32]| locals.iter().map(|l| of(l).len()).min();
    for (name, of) in [
        ("train", (|l| l.train.rows()) as fn(&Local<f64>) -> &[u32]),
        ("validation", |l| l.validation.rows()),
    ] {
        let count = least(of).expect("a node");
        let numbers = locals.iter().flat_map(|l| of(l)[..count].to_vec());
        save(&dir.join(name), numbers.map(u32::to_le_bytes));
    }
    let part = &bench.parts::<f64>()[0];
    let x = part.start_x(&mut Stream::new(bench.seed(), Purpose::Start, 0));
    save(&dir.join("start"), x.iter().map(|v| v.to_le_bytes()));
    let step = |name: &str| bench.choice().params[name].as_float().expect("a step size");
    let about = serde_json::json!({
        "problem": bench.experiment.problem.name,
        "nodes": case.nodes, "batch": case.batch, "iterations": ITERATIONS,
        "cols": features.cols(), "classes": data.classes.len(),
        "n": part.dims().n, "p": part.dims().p, "ridge": params.get("ridge"),
        "alpha": step("alpha"), "beta": step("beta"), "lambda": step("lambda"), "gamma": 0.4, "tau": 0.4,
    });
    fs::write(dir.join("about.json"), about.to_string()).expect("room to write");
}

fn save<const N: usize>(path: &Path, numbers: impl Iterator<Item = [u8; N]>) {
    fs::write(path, numbers.flatten().collect::<Vec<u8>>()).expect("room to write");
}
