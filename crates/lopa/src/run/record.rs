//! Following a run: measuring it, hashing it, and saying when it is over.

use std::sync::atomic::Ordering;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::meter::{Meter, Reading};
use super::{Context, Job, Observer, Outcome, hex};
use crate::algorithms::Recipe;
use crate::config::Choice;
use crate::diagnose::diagnose;
use crate::engine::{Node, Simulation};
use crate::error::{Error, Result};
use crate::evaluate::{self, Point};
use crate::experiment::{Exactly, Experiment, Target};
use crate::problem::{At, Bilevel};
use crate::real::{Real, cast};
use crate::scope::Scope;
use crate::theory::course::Setup;
use crate::theory::trace::Trace;
use crate::trace::{Row, Stop};
use crate::watch::{self, Watch};

/// Iterations after which a budget that nothing was spent of is taken for a mistake: a randomly
/// truncated series may do without products for a while.
const PATIENCE: u64 = 100;

/// Seconds of computing: stopped while measurements are taken.
#[derive(Default)]
pub struct Clock {
    seconds: f64,
    since: Option<Instant>,
}

impl Clock {
    /// Computing begins.
    pub fn go(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Computing pauses.
    pub fn halt(&mut self) {
        self.seconds += self.since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
    }
}

/// Follows a run: measures it, hashes it, and says when it is over.
pub struct Record<'a, T: Real> {
    job: &'a Job<'a>,
    recipe: &'a Recipe<T>,
    judges: &'a mut [Box<dyn Bilevel<f64>>],
    context: &'a Context<'a>,
    observer: &'a mut dyn Observer,
    hasher: Sha256,
    watch: Watch,
    meter: Meter,
    measured: u64,
    row: Option<Row>,
    nodes: Vec<Vec<(&'static str, f64)>>,
    good: Vec<Point>,
    culprit: Option<watch::Culprit>,
    lyapunov: Option<Trace>,
}

impl<'a, T: Real> Record<'a, T> {
    pub fn new(
        job: &'a Job<'a>,
        recipe: &'a Recipe<T>,
        judges: &'a mut [Box<dyn Bilevel<f64>>],
        context: &'a Context<'a>,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let Experiment { run, scope, .. } = job.experiment;
        let traced = run.lyapunov && *scope == Scope::Personal;
        let lyapunov = traced.then(|| Trace::of(&job.algorithm.choice)).flatten();
        Record {
            lyapunov,
            job,
            recipe,
            judges,
            context,
            observer,
            hasher: Sha256::new(),
            watch: Watch::default(),
            meter: Meter::new(&job.experiment.run),
            measured: 0,
            row: None,
            nodes: Vec::new(),
            good: Vec::new(),
            culprit: None,
        }
    }

    /// After an iteration: is it over, is it time to measure?
    pub fn follow(&mut self, simulation: &Simulation<T>, clock: &Clock) -> Result<Option<Stop>> {
        let second_order = self.recipe.facts.second_order;
        let Reading { due, done, brink } = self.meter.read(&costs(simulation, clock), second_order);
        if simulation.k().is_multiple_of(watch::EVERY) || done.is_some() {
            self.culprit = self.watch.look(simulation.k(), simulation.nodes());
            if self.culprit.is_some() {
                return Ok(Some(Stop::Diverged));
            }
            let evaluations = self.job.experiment.run.evaluations as f64;
            self.observer.progress(simulation.k(), due / evaluations);
        }
        if self.context.interrupt.load(Ordering::Relaxed) {
            return Ok(Some(Stop::Interrupted));
        }
        if due == 0.0 && simulation.k() >= PATIENCE {
            return Err(self.endless());
        }
        if done.is_none() && (brink || due >= self.measured as f64) {
            return self.measure(simulation, clock, due);
        }
        Ok(done)
    }

    fn endless(&self) -> Error {
        let label = &self.job.algorithm.label;
        let message =
            format!("the budget limits nothing that `{label}` spends: it would never end");
        Error::config("config/endless", message)
            .at("run.budget")
            .hint("add `iterations`, or a limit on something it does spend")
    }

    /// A measurement; tells if the target is reached.
    pub fn measure(
        &mut self,
        simulation: &Simulation<T>,
        clock: &Clock,
        due: f64,
    ) -> Result<Option<Stop>> {
        let exact = self.job.experiment.run.exact == Exactly::Always;
        self.take(simulation, clock, exact)?;
        self.measured = due.floor() as u64 + 1;
        let reached = match &self.job.experiment.run.target {
            Some(target) => self.reached(target)?,
            None => false,
        };
        Ok(reached.then_some(Stop::Target))
    }

    fn reached(&self, Target { metric, at_least, at_most }: &Target) -> Result<bool> {
        let row = self.row.as_ref().expect("a row was measured");
        let value = row.value(metric).ok_or_else(|| {
            let known: Vec<_> = row.values.keys().map(String::as_str).collect();
            Error::config(
                "config/unknown-name",
                format!("the target's metric `{metric}` is not measured here"),
            )
            .at("[run.target]")
            .hint(format!("measured: {}", known.join(", ")))
        })?;
        Ok(at_least.is_some_and(|bound| value >= bound) || at_most.is_some_and(|b| value <= b))
    }

    /// One measurement.
    fn take(&mut self, simulation: &Simulation<T>, clock: &Clock, exact: bool) -> Result<()> {
        self.hash(simulation);
        let points = points(simulation);
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        let sound = points.iter().all(|(x, theta)| finite(x) && finite(theta));
        let mut row = costs(simulation, clock);
        if sound {
            let (scope, pool) = (self.job.experiment.scope, self.context.pool);
            let personal = exact && scope == Scope::Personal;
            let locals = evaluate::all(self.judges, &points, personal, pool);
            row.values = evaluate::summarise(&locals);
            if scope == Scope::Global {
                row.values.extend(evaluate::common(self.judges, &points, exact, pool));
            }
            if let Some(trace) = &mut self.lyapunov {
                let Job { experiment, data, world, seed, .. } = *self.job;
                let setup = Setup { experiment, data, world, seed, pool };
                row.values.extend(trace.measure(&setup, simulation, self.judges));
            }
            self.nodes = locals.into_iter().map(|local| local.values).collect();
            self.good = points;
        }
        if let Some(gap) = tracking(simulation) {
            row.values.insert("tracking".into(), gap);
        }
        row.values.retain(|_, value| value.is_finite());
        self.observer.row(&self.job.algorithm.label, self.job.seed, &row)?;
        self.row = Some(row);
        Ok(())
    }

    fn hash(&mut self, simulation: &Simulation<T>) {
        let mut bytes = simulation.k().to_le_bytes().to_vec();
        for node in simulation.nodes() {
            for (_, values) in node.algorithm.variables() {
                values.iter().for_each(|value| value.extend_le(&mut bytes));
            }
        }
        self.hasher.update(&bytes);
    }

    /// The last measurement, and the outcome.
    pub fn close(
        mut self,
        simulation: &Simulation<T>,
        clock: &Clock,
        stop: Stop,
    ) -> Result<Outcome> {
        let measured_here = self.row.as_ref().is_some_and(|row| row.iteration == simulation.k());
        let run = &self.job.experiment.run;
        if !(measured_here && run.exact == Exactly::Always) {
            let exact = run.exact != Exactly::Never && stop != Stop::Diverged;
            self.take(simulation, clock, exact)?;
        }
        self.observer.progress(simulation.k(), 1.0);
        let diagnosis = self.culprit.as_ref().map(|culprit| {
            let (x, theta) = &self.good[culprit.node];
            let part = &mut *self.judges[culprit.node];
            let Choice { params, .. } = &self.job.algorithm.choice;
            let why = diagnose(culprit, &self.recipe.facts, params, part, At { x, theta });
            let lambda_min = self.job.world.analysis.lambda_min;
            match self.recipe.facts.needs_lazy && lambda_min < -1e-9 {
                true => format!(
                    "{why}; or use lazy weights: the smallest eigenvalue of W is {lambda_min:.2}, \
                     and this method bears larger steps if it is not negative"
                ),
                false => why,
            }
        });
        Ok(Outcome {
            algorithm: self.job.algorithm.label.clone(),
            seed: self.job.seed,
            stop,
            diagnosis,
            row: self.row.expect("a row was measured"),
            nodes: self.nodes,
            digest: hex(&self.hasher.finalize()),
            models: points(simulation),
        })
    }
}

fn costs<T: Real>(simulation: &Simulation<T>, clock: &Clock) -> Row {
    Row {
        iteration: simulation.k(),
        exchanges: simulation.exchanges(),
        bytes: simulation.floats() * T::BYTES as u64,
        seconds: clock.seconds,
        ..Row::new(&simulation.counts(), simulation.nodes().len())
    }
}

fn points<T: Real>(simulation: &Simulation<T>) -> Vec<Point> {
    let point = |node: &Node<T>| {
        let At { x, theta } = node.algorithm.at();
        (cast(x), cast(theta))
    };
    simulation.nodes().iter().map(point).collect()
}

/// ‖mean y − mean z‖: zero to rounding, or gradient tracking is broken.
fn tracking<T: Real>(simulation: &Simulation<T>) -> Option<f64> {
    let pairs: Option<Vec<_>> =
        simulation.nodes().iter().map(|node| node.algorithm.tracked()).collect();
    let gaps: Vec<Vec<f64>> = pairs?
        .into_iter()
        .map(|(y, z)| y.iter().zip(z).map(|(&y, &z)| y.to_f64() - z.to_f64()).collect())
        .collect();
    let gap = evaluate::mean(gaps.iter().map(|gap| &gap[..]));
    Some(gap.iter().map(|g| g * g).sum::<f64>().sqrt())
}
