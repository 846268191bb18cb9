//! Defaults where users choose nothing: the graph and the minibatches of nodes. `lopa init` and the estimators of
//! the Python package use them; algorithms find their step sizes themselves.

use std::sync::atomic::Ordering;

use lopa::data::Data;
use lopa::error::{Error, Kind, Result};
use lopa::experiment::Experiment;
use lopa::run::trace::{Row, Stop};
use lopa::run::{Context, Listener, Outcome};

/// The most rows of all nodes on which a new experiment is tried.
pub const TRIAL_ROWS: usize = 4000;

/// Units of the hidden layer.
pub const HIDDEN: usize = 32;

/// A run fails if its loss ends higher than this multiple of its start.
const HIGHER: f64 = 10.0;

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

/// How a run went.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// The loss of its first measurement.
    pub first: f64,
    /// The loss of its last measurement.
    pub last: f64,
}

impl Ended {
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

/// Runs an experiment; fails if a run diverges, or raises the loss far above its start.
pub fn run(
    experiment: &Experiment,
    data: Option<&Data>,
    context: &Context,
    listener: &mut dyn Listener,
) -> Result<Vec<Ended>> {
    let mut heard = Heard { listener, losses: Vec::new() };
    let outcomes = experiment.run_on(data, context, &mut (), &mut heard)?;
    let stopped = outcomes.iter().any(|outcome| outcome.stop == Stop::Interrupted);
    if stopped || context.interrupt.load(Ordering::Relaxed) {
        return Err(Error::new(Kind::Run, "run/interrupted", "interrupted"));
    }
    let runs: Vec<Ended> =
        outcomes.into_iter().map(|outcome| ended(outcome, &heard.losses)).collect();
    match runs.iter().find(|run| run.lost()) {
        None => Ok(runs),
        Some(lost) => Err(lost.error()),
    }
}

/// A loss, and its run.
type Loss = (String, u64, f64);

fn ended(outcome: Outcome, losses: &[Loss]) -> Ended {
    let own = || {
        let of = |loss: &&Loss| (&loss.0, loss.1) == (&outcome.algorithm, outcome.seed);
        losses.iter().filter(of).map(|loss| loss.2)
    };
    let (first, last) = (own().next(), own().next_back());
    Ended { first: first.unwrap_or(f64::NAN), last: last.unwrap_or(f64::NAN), outcome }
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
