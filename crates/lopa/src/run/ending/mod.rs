//! When a run is measured, and when it ends.
//!
//! With several processes, each decides from the same numbers, and hence alike.

mod meter;

use meter::{Meter, Reading};

use super::clock::Clock;
use super::processes::Processes;
use super::processes::agreed::{Agreed, agree, own_costs};
use super::trace::{Row, Stop};
use super::world::Job;
use crate::engine::{Cluster, Expect, Node};
use crate::error::{Error, Result};
use crate::experiment::Target;
use crate::math::real::Real;
use crate::run::evaluate::watch::{self, Culprit, Watch};
use crate::store::bytes::{Reader, Writer};

/// Iterations after which an unused budget is treated as a mistake; a randomly truncated series may
/// go without products for a while.
const PATIENCE: u64 = 100;

/// Decides when a run is measured and when it ends.
pub struct Ending<'a> {
    job: &'a Job<'a>,
    names: Vec<&'static str>, // of the variables
    watch: Watch,
    meter: Meter,
    measured: u64, // measurements so far
    /// Which variables grew without bound, once the run has diverged.
    pub culprit: Option<Culprit>,
}

/// The decision after an iteration.
pub struct Verdict {
    /// The number of measurements due at this point of the budget.
    pub due: f64,
    /// The part of the budget that is used, where it was looked at.
    pub progress: Option<f64>,
    /// Whether a measurement is due.
    pub measure: bool,
    /// How the run ends, if it does.
    pub stop: Option<Stop>,
    /// Whether a user asked for its end.
    pub interrupted: bool,
}

impl<'a> Ending<'a> {
    /// At the start of a run.
    pub fn new<T: Real>(job: &'a Job<'a>, node: &Node<T>) -> Self {
        Ending {
            job,
            names: node.watched().map(|(name, _)| name).collect(),
            watch: Watch::default(),
            meter: Meter::new(&job.setup.experiment.run),
            measured: 0,
            culprit: None,
        }
    }

    /// The run ends at this iteration at the latest.
    pub fn end_at(&mut self, iterations: u64) {
        self.meter.end_at(iterations as f64);
    }

    /// Saves its state, for a checkpoint.
    pub fn save(&self, out: &mut Writer) {
        out.u64(self.measured);
        self.meter.save(out);
        self.watch.save(&self.names, out);
    }

    /// Restores a saved state; `None` if the bytes are malformed.
    pub fn restore(&mut self, bytes: &mut Reader) -> Option<()> {
        self.measured = bytes.u64()?;
        self.meter.restore(bytes)?;
        self.watch = Watch::restore(bytes, &self.names)?;
        Some(())
    }

    /// Continues with other nodes: those that had these indices.
    pub fn regroup(&mut self, places: &[usize]) {
        self.watch.regroup(places);
    }

    /// Whether no variable has outgrown its early size so far.
    pub fn is_calm(&self) -> bool {
        self.watch.is_calm()
    }

    /// Whether the variables will be read after this iteration: then the clock must run until a
    /// device has finished it.
    pub fn reads<T: Real>(&mut self, cluster: &mut Cluster<T>, clock: &Clock) -> Result<bool> {
        // As in `judge`: processes ask each other only where a budget needs it.
        let costs = match cluster.is_whole() || self.meter.is_shared() {
            true => agree(cluster, clock, false)?.costs,
            false => own_costs(cluster),
        };
        let Reading { due, done, brink } = self.meter.read(&costs, self.second_order());
        let looks = cluster.progress().k.is_multiple_of(watch::EVERY);
        Ok(looks || done.is_some() || brink || due >= self.measured as f64)
    }

    /// The decision after an iteration.
    pub fn judge<T: Real>(
        &mut self,
        cluster: &mut Cluster<T>,
        clock: &Clock,
        interrupted: bool,
    ) -> Result<Verdict> {
        let k = cluster.progress().k;
        let looks = k.is_multiple_of(watch::EVERY);
        // Communicate with other processes only where necessary: it costs a round trip.
        let asks = cluster.is_whole() || looks || self.meter.is_shared();
        let Agreed { costs, interrupted } = match asks {
            true => agree(cluster, clock, interrupted)?,
            false => Agreed {
                costs: own_costs(cluster),
                interrupted: Processes::with(cluster).stop_here(interrupted),
            },
        };
        let Reading { due, done, brink } = self.meter.read(&costs, self.second_order());
        let mut verdict = Verdict { due, progress: None, measure: false, stop: done, interrupted };
        if looks || done.is_some() {
            let sizes = cluster.sizes()?;
            let sizes = cluster.everyone(sizes, Expect::Numbers)?;
            self.culprit = self.watch.look(k, done.is_some(), &self.names, &sizes);
            if self.culprit.is_some() {
                return Ok(Verdict { stop: Some(Stop::Diverged), interrupted: false, ..verdict });
            }
            verdict.progress = Some(due / self.job.setup.experiment.run.evaluations as f64);
        }
        if due == 0.0 && k >= PATIENCE {
            return Err(self.endless());
        }
        verdict.measure = done.is_none() && (brink || due >= self.measured as f64);
        Ok(verdict)
    }

    /// Notes a measurement; returns whether the target is reached.
    pub fn measured(&mut self, due: f64, row: &Row) -> Result<Option<Stop>> {
        self.measured = due.floor() as u64 + 1;
        let reached = match &self.job.setup.experiment.run.target {
            Some(target) => reached(target, row)?,
            None => false,
        };
        Ok(reached.then_some(Stop::Target))
    }

    fn second_order(&self) -> bool {
        self.job.algorithm.choice.build.facts.second_order
    }

    fn endless(&self) -> Error {
        let label = &self.job.algorithm.label;
        let message =
            format!("the budget limits nothing that `{label}` spends: it would never end");
        Error::config("config/endless", message)
            .at("run.budget")
            .hint("add `iterations`, or a limit on something it does spend")
    }
}

fn reached(Target { metric, at_least, at_most }: &Target, row: &Row) -> Result<bool> {
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
