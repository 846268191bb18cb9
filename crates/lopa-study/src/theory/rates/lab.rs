//! Variations of a quadratic, and runs on them.

use rayon::ThreadPool;
use toml::{Table, Value};

use super::tilted::tilt;
use crate::theory::course::{LinearGradient, mean_x};
use crate::theory::lyapunov::{distance_sq, norm_sq};
use crate::theory::{Scheme, Steps};
use lopa::algorithms::{AnyMethod, algorithms};
use lopa::config::{Choice, Source};
use lopa::engine::Simulation;
use lopa::error::{Error, Result};
use lopa::experiment::{BatchSpec, EachBatch, Experiment, Registries};
use lopa::network::graphs;
use lopa::problem::Bilevel;
use lopa::problems::problems;

/// The error id of a run that diverged.
pub(super) const DIVERGED: &str = "theory/diverged";

/// The default experiment to vary: eight quadratics on a ring.
const BASE: &str = "
name = 'rates'
problem = { name = 'quadratic', n = 5, p = 5, condition = 2, heterogeneity = 0.5, samples = 50 }
network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
run = { iterations = 1 }
algorithm = [{ name = 'lopa-gt', alpha = 0.02, beta = 0.9, lambda = 0.9 }]";

/// The built-in quadratic.
pub fn base() -> Experiment {
    let source = Source::new("rates", BASE);
    Experiment::read(&source, &Registries::default()).expect("the built-in experiment is valid")
}

/// Where claims are measured.
pub struct Lab<'a> {
    base: Experiment,
    /// A factor for all numbers of iterations.
    pub length: f64,
    /// Threads for the seeds.
    pub pool: Option<&'a ThreadPool>,
}

impl<'a> Lab<'a> {
    /// A lab for random quadratics.
    pub fn new(base: Experiment, length: f64, pool: Option<&'a ThreadPool>) -> Result<Lab<'a>> {
        let random =
            base.problem.name == "quadratic" && !base.problem.params().contains_key("file");
        if !random {
            let message = "rates need random quadratics, whose gradient is exact";
            return Err(Error::config("theory/not-quadratic", message)
                .at("[problem]")
                .hint("use `name = \"quadratic\"` without `file`, or no experiment file"));
        }
        Ok(Lab { base, length, pool })
    }

    /// The number of iterations, scaled by `length`.
    pub fn iterations(&self, full: u64) -> u64 {
        ((full as f64 * self.length).round() as u64).max(10)
    }

    /// The base experiment, to vary.
    pub fn trial(&self, seed: u64) -> Trial {
        Trial { experiment: self.base.clone(), seed, tilt: 0.0 }
    }
}

/// A variation of the experiment on one seed.
pub struct Trial {
    experiment: Experiment,
    seed: u64,
    tilt: f64,
}

/// Which derivatives are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// All five.
    All,
    /// ∇_x f and ∇²_xθ g: the σ_c of the paper.
    Outer,
    /// ∇_θ f, ∇_θ g and ∇²_θθ g: the σ_p of the paper.
    Inner,
}

/// The measurements of a run.
pub struct Watched {
    /// ‖∇Φ(x̄^k)‖², k = 0, 1, ….
    pub squares: Vec<f64>,
    /// Hessian-vector products per node up to each iteration.
    pub hessians: Vec<f64>,
    /// Σ_i ‖∇Φ_i − ∇Φ‖² at the end.
    pub b_sq: f64,
}

impl Watched {
    /// The mean over k = 0 … K.
    pub fn average(&self, last: u64) -> f64 {
        let some = &self.squares[..=last as usize];
        some.iter().sum::<f64>() / some.len() as f64
    }

    /// The mean over the second half.
    pub fn floor(&self) -> f64 {
        let half = &self.squares[self.squares.len() / 2..];
        half.iter().sum::<f64>() / half.len() as f64
    }
}

impl Trial {
    /// Sets a parameter of the problem.
    pub fn problem(mut self, key: &str, value: impl Into<Value>) -> Trial {
        let mut params = self.experiment.problem.params().clone();
        params.insert(key.into(), value.into());
        let chosen = problems().choose(&self.experiment.problem.name, &params);
        self.experiment.problem = chosen.expect("a parameter of the quadratic");
        self
    }

    /// Makes nodes differ more, with the same Φ: see [`tilt`].
    pub fn tilted(mut self, size: f64) -> Trial {
        self.tilt = size;
        self
    }

    /// Sets the network; the graph must have no parameters.
    pub fn network(mut self, nodes: usize, graph: &str) -> Trial {
        self.experiment.network.nodes = nodes;
        let chosen = graphs().choose(graph, &Table::new());
        self.experiment.network.graph = chosen.expect("a graph without parameters");
        self
    }

    /// Samples derivatives one at a time instead of using all samples.
    pub fn sampled(mut self, what: Sampled, noise: f64) -> Trial {
        let one = |yes: bool| yes.then_some(1);
        let (outer, inner) = (what != Sampled::Inner, what != Sampled::Outer);
        self.experiment.run.batch = BatchSpec::Each(EachBatch {
            grad_g: one(inner),
            hess_g: one(inner),
            cross_g: one(outer),
            grad_theta_f: one(inner),
            grad_x_f: one(outer),
        });
        self.problem("noise", noise)
    }

    /// ρ of its network.
    pub fn rho(&self) -> Result<f64> {
        Ok(self.experiment.world(None, self.seed)?.analysis.rho)
    }

    /// The unit of α on this seed: 1 / the largest curvature of the Φ_i.
    pub fn unit(&self) -> Result<f64> {
        let world = self.experiment.world(None, self.seed)?;
        let mut parts = self.experiment.parts::<f64>(None, &world, self.seed)?;
        let steepest = |part: &mut Box<dyn Bilevel<f64>>| {
            LinearGradient::of(std::slice::from_mut(part)).curvatures().1
        };
        Ok(1.0 / parts.iter_mut().map(steepest).fold(0.0, f64::max))
    }

    /// Runs LoPA for a number of iterations.
    pub fn lopa(&self, scheme: Scheme, steps: Steps, iterations: u64) -> Result<Watched> {
        let Steps { alpha, beta, lambda, gamma, tau } = steps;
        let all = [("alpha", alpha), ("beta", beta), ("lambda", lambda), ("gamma", gamma)];
        let mut params: Table = all.iter().map(|(key, v)| (key.to_string(), (*v).into())).collect();
        params.insert("tau".into(), tau.into());
        let lopa = algorithms().choose(scheme.name(), &params)?;
        self.run(&lopa, iterations, f64::NEG_INFINITY)
    }

    /// Runs an algorithm for a number of iterations, or until ‖∇Φ‖² falls below the share `until` of
    /// its initial value.
    pub fn run(&self, choice: &Choice<AnyMethod>, iterations: u64, until: f64) -> Result<Watched> {
        let world = self.experiment.world(None, self.seed)?;
        let parts = || -> Result<Vec<Box<dyn Bilevel<f64>>>> {
            let parts = self.experiment.parts::<f64>(None, &world, self.seed)?;
            Ok(tilt(parts, self.tilt, self.seed))
        };
        let nodes = self.experiment.nodes_of(parts()?, 0, self.seed, &choice.build, None)?;
        let mut parts = parts()?;
        let gradient = LinearGradient::of(&mut parts);
        let mut simulation = Simulation::new(nodes, &world.mixing, None);
        let m = parts.len() as f64;
        let mut watched = Watched { squares: Vec::new(), hessians: Vec::new(), b_sq: 0.0 };
        for _ in 0..=iterations {
            let now = norm_sq(&gradient.at(&mean_x(&simulation)));
            watched.squares.push(now);
            watched.hessians.push(simulation.counts().hess_g as f64 / m);
            let first = watched.squares[0];
            if !now.is_finite() || now > 1e12 * first {
                let message = format!("{} diverged on seed {}", choice.name, self.seed);
                return Err(Error::new(lopa::error::Kind::Run, DIVERGED, message)
                    .at("lopa theory rates")
                    .hint(
                        "the curvature of this quadratic is too large for the claims' step sizes",
                    ));
            }
            if now <= until * first {
                break;
            }
            simulation.iterate();
        }
        let x = mean_x(&simulation);
        let common = gradient.at(&x);
        let own =
            parts.iter_mut().map(|part| lopa::evaluate::exact::solve(&mut **part, &x, &[]).grad);
        watched.b_sq = own.map(|grad| distance_sq(&grad, &common)).sum();
        Ok(watched)
    }
}
