//! The problems of the comparison with other implementations.

use std::path::Path;

use lopa::config::Source;
use lopa::data::Features;
use lopa::experiment::Experiment;

use crate::bench::Bench;

/// A problem to run LoPA-GT on.
pub struct Case {
    pub name: &'static str,
    pub nodes: usize,
    pub batch: usize,
    problem: &'static str,
    data: &'static str,
    /// Synthetic data of the same shape and sparsity, used if the real data is missing.
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

/// `representation` in other shapes than that of the comparison: hidden units, then samples of a minibatch.
pub const SHAPES: &[Case] = &[
    Case {
        name: "mnist-64-128",
        batch: 128,
        problem: "name = 'representation', hidden = [64], ridge = 0.52",
        ..CASES[0]
    },
    Case {
        name: "mnist-200-256",
        batch: 256,
        problem: "name = 'representation', hidden = [200], ridge = 0.52",
        ..CASES[0]
    },
    Case {
        name: "mnist-standardised-64-128",
        batch: 128,
        problem: "name = 'representation', hidden = [64], ridge = 0.52",
        data: "name = 'mnist', scaling = 'standardise'",
        stand_in: "name = 'blobs', rows = 20000, features = 784, centres = 10, sparsity = 0.81, scaling = 'standardise'",
        ..CASES[0]
    },
    Case {
        name: "cifar-128-64",
        batch: 64,
        problem: "name = 'representation', hidden = [128], ridge = 0.52",
        data: "name = 'cifar10'",
        stand_in: "name = 'blobs', rows = 10000, features = 3072, centres = 10",
        folder: "cifar10",
        ..CASES[0]
    },
    Case {
        name: "covtype-64-256",
        batch: 256,
        problem: "name = 'representation', hidden = [64], ridge = 0.52",
        data: "name = 'covtype'",
        stand_in: "name = 'blobs', rows = 100000, features = 54, centres = 7, sparsity = 0.78",
        folder: "covtype",
        ..CASES[0]
    },
];

/// The case of that name.
pub fn find(name: &str) -> &'static Case {
    CASES
        .iter()
        .chain(SHAPES)
        .find(|case| case.name == name)
        .unwrap_or_else(|| panic!("no case {name}"))
}

impl Case {
    /// On all data with the batch size of the case, or with full batches on this many samples.
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
        let read = Experiment::read(
            &Source::new("bench", &text),
            &lopa::experiment::Registries::default(),
        );
        Bench::on(read.unwrap_or_else(|error| panic!("{error}\n{text}")), directory.into())
    }

    /// The name, how the features are stored, and the share of them that is not zero.
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
