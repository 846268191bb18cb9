//! The theory against values computed by hand, against itself, and against hundreds of runs.

mod bounds;
mod constants;
mod hand;
mod recursions;

use std::io::Write;

use lopa::config::Source;
use lopa::experiment::Experiment;
use lopa::math::random::{Purpose, Stream};
use lopa::run::Setup;
use lopa::run::{Context, World};
use lopa_paper::theory::Study;
use serde_json::{Value, json};

/// Quadratics in a file, and an experiment with them.
pub struct Quadratics {
    _file: tempfile::NamedTempFile,
    pub experiment: Experiment,
    pub world: World,
}

impl Quadratics {
    /// `data` as in a quadratic's file; `setup` is the rest of the experiment.
    pub fn new(nodes: usize, data: &Value, noise: f64, setup: &str) -> Quadratics {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{}", json!({ "data": data })).unwrap();
        let text = format!(
            "problem = {{ name = 'quadratic', file = {:?}, noise = {noise}, samples = 20 }}
             network = {{ nodes = {nodes}, graph = 'complete', weights = 'lazy-metropolis' }}
             {setup}",
            file.path()
        );
        let experiment =
            Experiment::read(&Source::new("test", &text), &lopa::experiment::Registries::default())
                .unwrap();
        let world = experiment.world(None, experiment.run.seeds[0]).unwrap();
        Quadratics { _file: file, experiment, world }
    }

    pub fn setup(&self) -> Setup<'_> {
        let seed = self.experiment.run.seeds[0];
        Setup { experiment: &self.experiment, data: None, world: &self.world, seed, pool: None }
    }

    pub fn study(&self, limit: u64) -> Study<'_> {
        Study::new(self.setup(), limit).unwrap()
    }
}

/// A study of an experiment with bundled or synthetic data.
pub fn with_study<R>(text: &str, limit: u64, look: impl FnOnce(&Study) -> R) -> R {
    let experiment =
        Experiment::read(&Source::new("test", text), &lopa::experiment::Registries::default())
            .unwrap();
    let interrupt = Default::default();
    let context = Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
    let data = experiment.load_data(&context).unwrap();
    let seed = experiment.run.seeds[0];
    let world = experiment.world(data.as_ref(), seed).unwrap();
    let setup =
        Setup { experiment: &experiment, data: data.as_ref(), world: &world, seed, pool: None };
    look(&Study::new(setup, limit).unwrap())
}

/// Coefficients of random quadratics that differ between nodes: curvatures of g between 0.5 and
/// 1.5, a coupling B of size `coupling`.
pub fn random(nodes: usize, n: usize, p: usize, coupling: f64, seed: u64) -> Value {
    let mut stream = Stream::new(seed, Purpose::Problem, 77);
    let mut positive = |size: usize| -> Vec<Vec<f64>> {
        // A diagonal matrix rotated in one plane: symmetric, with known eigenvalues.
        let mut m = vec![vec![0.0; size]; size];
        (0..size).for_each(|j| m[j][j] = stream.between(0.5, 1.5));
        if size > 1 {
            let (s, c) = stream.between(0.0, 3.0).sin_cos();
            let (a, b) = (m[0][0], m[1][1]);
            m[0][0] = c * c * a + s * s * b;
            m[1][1] = s * s * a + c * c * b;
            m[0][1] = c * s * (a - b);
            m[1][0] = m[0][1];
        }
        m
    };
    let a: Vec<_> = (0..nodes).map(|_| positive(p)).collect();
    let r: Vec<_> = (0..nodes).map(|_| positive(n)).collect();
    let mut stream = Stream::new(seed, Purpose::Problem, 78);
    let mut table = |rows: usize, cols: usize, size: f64| -> Vec<Vec<Vec<f64>>> {
        let mut row = || (0..cols).map(|_| size * stream.normal()).collect::<Vec<_>>();
        (0..nodes).map(|_| (0..rows).map(|_| row()).collect()).collect()
    };
    let flat =
        |t: Vec<Vec<Vec<f64>>>| t.into_iter().map(|mut rows| rows.remove(0)).collect::<Vec<_>>();
    let (b, d) = (table(p, n, coupling), table(p, p, 0.5));
    let (c, e) = (flat(table(1, p, 1.0)), flat(table(1, p, 1.0)));
    let q = flat(table(1, n, 1.0));
    json!({ "A": a, "B": b, "c": c, "D": d, "e": e, "R": r, "q": q })
}
