//! Variations of a quadratic, and of a logistic regression, and runs on them.

use rayon::ThreadPool;
use toml::{Table, Value};

use super::gradient::Gradient;
use super::tilted::tilt;
use crate::theory::{Scheme, Steps};
use lopa::algorithms::{AnyMethod, algorithms};
use lopa::config::{Choice, Source};
use lopa::data::Data;
use lopa::engine::Simulation;
use lopa::error::{Error, Result};
use lopa::experiment::{BatchSpec, EachBatch, Experiment, Registries};
use lopa::network::graphs;
use lopa::problem::Bilevel;
use lopa::problem::builtin::problems;
use lopa::run::{Context, World};
use lopa_study::practical::course::{LinearGradient, mean_x};
use lopa_study::practical::snapshot::{distance_sq, norm_sq};

/// The error id of a run that diverged.
pub(super) const DIVERGED: &str = "theory/diverged";

/// The default experiment to vary: eight quadratics on a ring.
const BASE: &str = "
name = 'rates'
problem = { name = 'quadratic', n = 5, p = 5, condition = 2, heterogeneity = 0.5, samples = 50 }
network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
run = { iterations = 1 }
algorithm = [{ name = 'lopa-gt', alpha = 0.02, beta = 0.9, lambda = 0.9 }]";

/// A problem that is not quadratic: eight nodes learn five strengths of regularisation for two
/// overlapping classes; half of the nodes have more of one class, half more of the other. Φ and its
/// gradient are found by exact solves.
const LOGISTIC: &str = "
name = 'rates-logistic'
problem = { name = 'hyperparameter', start = -1.0 }
partition = { name = 'label-proportion', first = 0.7, second = 0.3, spread = 0.0, samples = 40 }
network = { nodes = 8, graph = 'ring', weights = 'lazy-metropolis' }
run = { iterations = 1 }
algorithm = [{ name = 'lopa-gt', alpha = 0.02, beta = 0.3, lambda = 0.3 }]
[data]
name = 'blobs'
rows = 2000
features = 5
centres = 2
spread = 1.5
test = 0.0
scaling = 'standardise'
seed = ";

fn read(text: impl Into<String>) -> Experiment {
    let source = Source::new("rates", text);
    Experiment::read(&source, &Registries::default()).expect("the built-in experiment is valid")
}

/// The built-in quadratic.
pub fn base() -> Experiment {
    read(BASE)
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
        Trial { experiment: self.base.clone(), seed, data: None, tilt: 0.0, equal: false }
    }

    /// The logistic regression, to vary: other data on every seed.
    pub fn logistic(&self, seed: u64) -> Result<Trial> {
        let experiment = read(format!("{LOGISTIC}{seed}"));
        let interrupt = false.into();
        let context =
            Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
        let data = experiment.load_data(&context)?;
        Ok(Trial { experiment, seed, data, tilt: 0.0, equal: false })
    }
}

/// A variation of the experiment on one seed.
pub struct Trial {
    experiment: Experiment,
    seed: u64,
    data: Option<Data>,
    tilt: f64,
    equal: bool,
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
    /// The iterations that were measured: all where ∇Φ is cheap, otherwise the first hundred and then ever
    /// fewer.
    at: Vec<u64>,
    /// ‖∇Φ(x̄^k)‖² at these k.
    pub squares: Vec<f64>,
    /// Hessian-vector products per node up to each iteration.
    pub hessians: Vec<f64>,
    /// Σ_i ‖∇Φ_i − ∇Φ‖² at the end.
    pub b_sq: f64,
}

impl Watched {
    /// The mean over k = 0 … K.
    pub fn average(&self, last: u64) -> f64 {
        self.between(0, last + 1)
    }

    /// The mean over the second half.
    pub fn floor(&self) -> f64 {
        let end = self.at.last().map_or(0, |last| last + 1);
        self.between(end / 2, end)
    }

    /// The mean over `from` ≤ k < `end`: a value represents all k up to the next measured one.
    fn between(&self, from: u64, end: u64) -> f64 {
        let next = self.at.iter().skip(1).copied().chain([u64::MAX]);
        let weight = |at: u64, next: u64| next.min(end).saturating_sub(at.max(from)) as f64;
        let parts = self.squares.iter().zip(&self.at).zip(next);
        parts.map(|((square, &at), next)| weight(at, next) * square).sum::<f64>()
            / (end - from) as f64
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

    /// Gives all nodes the samples of node 0, from which each draws its own minibatches.
    pub fn equal(mut self) -> Trial {
        self.equal = true;
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
        match self.data {
            Some(_) => self,
            None => self.problem("noise", noise),
        }
    }

    fn world(&self) -> Result<World> {
        self.experiment.world(self.data.as_ref(), self.seed)
    }

    fn parts(&self, world: &World) -> Result<Vec<Box<dyn Bilevel<f64>>>> {
        let all = || self.experiment.setup(self.data.as_ref(), world, self.seed).parts::<f64>();
        if !self.equal {
            return Ok(tilt(all()?, self.tilt, self.seed));
        }
        (0..self.experiment.network.nodes).map(|_| Ok(all()?.swap_remove(0))).collect()
    }

    /// ρ of its network.
    pub fn rho(&self) -> Result<f64> {
        Ok(self.world()?.analysis.rho)
    }

    /// The unit of α on this seed: 1 / the largest curvature of the Φ_i, which are quadratics.
    pub fn unit(&self) -> Result<f64> {
        let mut parts = self.parts(&self.world()?)?;
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
        let world = self.world()?;
        let setup = self.experiment.setup(self.data.as_ref(), &world, self.seed);
        let nodes = setup.nodes_of(self.parts(&world)?, 0, &choice.build)?;
        let m = nodes.len() as f64;
        let mut gradient = match self.data {
            None => Gradient::Linear(LinearGradient::of(&mut self.parts(&world)?)),
            Some(_) => Gradient::solved(self.parts(&world)?, self.equal),
        };
        let mut simulation = Simulation::new(nodes, &world.mixing, None);
        let mut watched =
            Watched { at: Vec::new(), squares: Vec::new(), hessians: Vec::new(), b_sq: 0.0 };
        let mut next = 0;
        for k in 0..=iterations {
            if k < next && k < iterations {
                simulation.iterate();
                continue;
            }
            next = gradient.next(k);
            let now = norm_sq(&gradient.at(&mean_x(&simulation)));
            watched.at.push(k);
            watched.squares.push(now);
            watched.hessians.push(simulation.counts().hess_g as f64 / m);
            let first = watched.squares[0];
            if !now.is_finite() || now > 1e12 * first {
                let message = format!("{} diverged on seed {}", choice.name, self.seed);
                return Err(Error::new(lopa::error::Kind::Run, DIVERGED, message)
                    .at("lopa theory rates")
                    .hint("its curvature is too large for the claims' step sizes"));
            }
            if now <= until * first {
                break;
            }
            simulation.iterate();
        }
        let x = mean_x(&simulation);
        let common = gradient.at(&x);
        let own = self.parts(&world)?.into_iter().map(|mut part| {
            let guess = vec![0.0; part.dims().p];
            lopa::run::evaluate::exact::solve(&mut *part, &x, &guess).grad
        });
        watched.b_sq = own.map(|grad| distance_sq(&grad, &common)).sum();
        Ok(watched)
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::gentle;
    use super::*;

    #[test]
    fn a_value_stands_for_all_iterations_up_to_the_next() {
        let of = |at: &[u64], squares: &[f64]| Watched {
            at: at.to_vec(),
            squares: squares.to_vec(),
            hessians: Vec::new(),
            b_sq: 0.0,
        };
        let all = of(&[0, 1, 2, 3], &[8.0, 4.0, 2.0, 1.0]);
        assert_eq!((all.average(3), all.average(1), all.floor()), (15.0 / 4.0, 6.0, 1.5));
        // 8, 4, 4, 4, 1, 1 and the last.
        let some = of(&[0, 1, 4, 6], &[8.0, 4.0, 1.0, 2.0]);
        assert_eq!((some.average(6), some.average(2)), (24.0 / 7.0, 16.0 / 3.0));
        assert_eq!(some.floor(), (4.0 + 1.0 + 1.0 + 2.0) / 4.0);
    }

    #[test]
    fn logistic_regression_is_measured_by_exact_solves() {
        let lab = Lab::new(base(), 1.0, None).unwrap();
        let trial = lab.logistic(3).unwrap();
        let steps = gentle(1.0);
        let run = trial.lopa(Scheme::GradientTracking, steps, 2000).unwrap();
        assert!(run.at.len() < 600 && run.at.last() == Some(&2000), "{:?}", run.at);
        // Φ is not convex: the gradient grows before it falls.
        let last = run.squares[run.squares.len() - 1];
        assert!(last > 0.0 && last < 0.1 * run.squares[0], "{:?}", run.squares);
        assert!(run.b_sq > 1e-6, "nodes differ: {}", run.b_sq);
        // Equal nodes have nothing to disagree about.
        let equal = lab.logistic(3).unwrap().network(4, "complete").equal();
        let run = equal.lopa(Scheme::GradientTracking, steps, 50).unwrap();
        assert!(run.b_sq < 1e-20, "{}", run.b_sq);
    }
}
