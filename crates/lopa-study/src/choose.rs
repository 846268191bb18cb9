//! Defaults where users choose nothing: the step sizes of LoPA-GT, and the graph and the
//! minibatches of nodes. `lopa init` and the estimators of the Python package use them.
//!
//! ```text
//! β = λ = 1/L      L: the largest curvature of the g_i at the start, and with saturated hidden units
//! α                does best in short runs, of six around the limit of stability
//! ```
//!
//! α is halved as long as a run at full length fails.

use std::sync::atomic::Ordering;

use lopa::algorithms::algorithms;
use lopa::data::Data;
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{AlgorithmSpec, Experiment};
use lopa::run::trace::{Row, Stop};
use lopa::run::{Context, Listener, Outcome, Setup};
use toml::Value;

use crate::practical::{self, Point, Scheme, Steps};

/// The most rows of all nodes on which step sizes are calibrated.
pub const TRIAL_ROWS: usize = 4000;

/// Units of the hidden layer.
pub const HIDDEN: usize = 32;

/// The start of x times this: inputs of hidden units are far from 0.
const SATURATED: f64 = 10.0;

/// A run fails if its loss ends higher than this multiple of its start.
const HIGHER: f64 = 10.0;

/// How often the step of x is halved when a run fails.
pub const HALVINGS: usize = 12;

/// A node with no more rows than this uses all of them in every iteration.
const FEW: usize = 64;

/// With more nodes than this, not all are linked to each other.
const ALL: usize = 16;

/// The default graph.
pub fn graph(nodes: usize) -> &'static str {
    if nodes <= ALL { "complete" } else { "exponential" }
}

/// Rows per minibatch, for this many rows per node; `None` for all of them.
pub fn batch(rows: usize) -> Option<usize> {
    (rows > FEW).then_some(32)
}

/// Step sizes for the first algorithm of an experiment, LoPA-GT, from the curvature and from short runs on
/// some of the rows; with two digits, since more are meaningless and hard to read.
pub fn steps(experiment: &Experiment, data: Option<&Data>, context: &Context) -> Result<Steps> {
    let seed = experiment.run.seeds.first().copied().unwrap_or_default();
    let mut world = experiment.world(data, seed)?;
    let most = (TRIAL_ROWS / experiment.network.nodes).max(2);
    // A node's rows are in random order: any part of them is a fair draw.
    world.partition.nodes.iter_mut().for_each(|rows| rows.truncate(most));
    let setup = Setup { experiment, data, world: &world, seed, pool: context.pool };
    let spec = &experiment.algorithms[0];
    let own = Steps::of(&spec.choice.typed().unwrap_or_default());
    let start = practical::at_start(&setup, spec)?;
    // Once hidden units are saturated, the inner problem is steeper than it is at the start.
    let x = start.x.iter().map(|x| SATURATED * x).collect();
    let saturated = Point { x, ..start.clone() };
    let planned = experiment.run.iterations.unwrap_or(1);
    let (scheme, points) = (Scheme::GradientTracking, [&start, &saturated]);
    let found = practical::calibrate(&setup, spec, scheme, &own, &points, planned)?;
    let short = |value: f64| format!("{value:.1e}").parse().unwrap_or(value);
    let Steps { alpha, beta, lambda, .. } = found.best;
    Ok(Steps { alpha: short(alpha), beta: short(beta), lambda: short(lambda), ..found.best })
}

/// Gives all algorithms of an experiment these step sizes of x, θ and v.
pub fn set(experiment: &mut Experiment, &Steps { alpha, beta, lambda, .. }: &Steps) -> Result<()> {
    for AlgorithmSpec { choice, .. } in &mut experiment.algorithms {
        let mut params = choice.params().clone();
        for (key, value) in [("alpha", alpha), ("beta", beta), ("lambda", lambda)] {
            params.insert(key.into(), Value::Float(value));
        }
        *choice = algorithms().choose(&choice.name, &params)?;
    }
    Ok(())
}

/// The step sizes of an experiment's first algorithm.
pub fn steps_of(experiment: &Experiment) -> Steps {
    Steps::of(&experiment.algorithms[0].choice.typed().unwrap_or_default())
}

/// How a run went.
#[derive(Debug)]
pub struct Course {
    /// How it ended.
    pub outcome: Outcome,
    /// The loss of its first measurement.
    pub first: f64,
    /// The loss of its last measurement.
    pub last: f64,
}

impl Course {
    /// Whether it diverged or is about to. Where labels are noise, the loss on rows for validation
    /// rises from its start at θ = 0, but not by such a factor.
    fn lost(&self) -> bool {
        self.outcome.stop == Stop::Diverged
            || !self.last.is_finite()
            || self.last > HIGHER * self.first
    }

    fn error(&self) -> Error {
        let message = match &self.outcome.diagnosis {
            Some(why) => format!("the run diverged: {why}"),
            None => format!("the run raised the loss from {} to {}", self.first, self.last),
        };
        Error::new(Kind::Run, "run/diverged", message)
    }
}

/// Runs an experiment, and halves the step of x as long as a run fails, at most this many times.
/// The experiment keeps the steps with which no run failed.
pub fn run(
    experiment: &mut Experiment,
    data: Option<&Data>,
    context: &Context,
    listener: &mut dyn Listener,
    halvings: usize,
) -> Result<Vec<Course>> {
    for halved in 0.. {
        let mut heard = Heard { listener, losses: Vec::new() };
        let outcomes = experiment.run_on(data, context, &mut (), &mut heard)?;
        let stopped = outcomes.iter().any(|outcome| outcome.stop == Stop::Interrupted);
        if stopped || context.interrupt.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::Run, "run/interrupted", "interrupted"));
        }
        let courses: Vec<Course> =
            outcomes.into_iter().map(|outcome| course(outcome, &heard.losses)).collect();
        match courses.iter().find(|course| course.lost()) {
            None => return Ok(courses),
            Some(lost) if halved == halvings => return Err(lost.error()),
            Some(_) => {
                let steps = steps_of(experiment);
                set(experiment, &Steps { alpha: steps.alpha / 2.0, ..steps })?;
            }
        }
    }
    unreachable!("the loop ends by itself")
}

/// A loss, and its run.
type Loss = (String, u64, f64);

fn course(outcome: Outcome, losses: &[Loss]) -> Course {
    let own = || {
        let of = |loss: &&Loss| (&loss.0, loss.1) == (&outcome.algorithm, outcome.seed);
        losses.iter().filter(of).map(|loss| loss.2)
    };
    let (first, last) = (own().next(), own().next_back());
    Course { first: first.unwrap_or(f64::NAN), last: last.unwrap_or(f64::NAN), outcome }
}

/// Passes everything on, and keeps the losses.
struct Heard<'a> {
    listener: &'a mut dyn Listener,
    losses: Vec<Loss>,
}

impl Listener for Heard<'_> {
    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.listener.begin(algorithm, seed);
    }
    fn progress(&mut self, iteration: u64, fraction: f64) {
        self.listener.progress(iteration, fraction);
    }
    fn measuring(&mut self, done: usize, of: usize, exact: bool) {
        self.listener.measuring(done, of, exact);
    }
    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) {
        self.losses.extend(row.value("loss").map(|loss| (algorithm.to_string(), seed, loss)));
        self.listener.row(algorithm, seed, row);
    }
}
