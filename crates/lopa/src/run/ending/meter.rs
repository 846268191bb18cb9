//! How much of its budget a run has spent.

use crate::experiment::{RunSpec, Until};
use crate::run::trace::{Row, Stop};
use crate::store::bytes::{Reader, Writer};

/// How much of its budget a run has spent.
pub struct Meter {
    limits: Vec<Limit>,
    until: Until,
    evaluations: f64,
}

struct Limit {
    name: &'static str,
    most: f64,
    spent: f64,
    stride: f64, // the largest cost of an iteration so far
    cut: bool,   // whether it is lower than in the file
}

/// A reading of the meter.
pub struct Reading {
    /// The number of measurements due at this point of the budget.
    pub due: f64,
    /// How the run ends, if the budget is used up.
    pub done: Option<Stop>,
    /// Whether the next iteration may pass a limit at which a comparison at equal budgets needs a
    /// measurement.
    pub brink: bool,
}

impl Meter {
    /// With nothing spent.
    pub fn new(run: &RunSpec) -> Meter {
        let limit = |(name, most)| Limit { name, most, spent: 0.0, stride: 0.0, cut: false };
        let limits = run.limits().map(limit).collect();
        Meter { limits, until: run.until, evaluations: run.evaluations as f64 }
    }

    /// Ends the run at this iteration at the latest; as a used-up budget, if that is before its own end.
    pub fn end_at(&mut self, iterations: f64) {
        if let Some(limit) = self.limits.iter_mut().find(|limit| limit.name == "iteration") {
            limit.cut = iterations < limit.most;
            limit.most = limit.most.min(iterations);
        }
    }

    /// Reads the costs after an iteration.
    pub fn read(&mut self, costs: &Row, second_order: bool) -> Reading {
        for limit in &mut self.limits {
            let spent = match limit.name {
                // The cost of LoPA: one at the start and one per iteration.
                "hessians" if !second_order => costs.iteration as f64 + 1.0,
                name => costs.value(name).expect("a budget names a cost"),
            };
            limit.stride = limit.stride.max(spent - limit.spent);
            limit.spent = spent;
        }
        match self.until {
            Until::First => self.until_first(),
            Until::All => self.until_all(),
        }
    }

    /// Saves the spent budget and the cost of an iteration.
    pub fn save(&self, out: &mut Writer) {
        self.limits.iter().for_each(|limit| out.reals(&[limit.spent, limit.stride]));
    }

    /// Restores the saved state; `None` if the bytes are malformed.
    pub fn restore(&mut self, bytes: &mut Reader) -> Option<()> {
        for limit in &mut self.limits {
            [limit.spent, limit.stride] = bytes.reals()?.try_into().ok()?;
        }
        Some(())
    }

    /// Whether a limit is on a cost that processes must exchange.
    pub fn is_shared(&self) -> bool {
        let known = ["iteration", "exchanges", "bytes"];
        self.limits.iter().any(|limit| !known.contains(&limit.name))
    }

    fn until_first(&self) -> Reading {
        let most = |seconds: bool| {
            let of_kind = self.limits.iter().filter(|limit| (limit.name == "seconds") == seconds);
            // Multiply first, so that rounding does not miss a measurement at a whole iteration.
            of_kind.map(|limit| limit.spent * self.evaluations / limit.most).fold(0.0, f64::max)
        };
        // Seconds differ from run to run: they decide where to measure only if there is no other
        // limit.
        let due = match most(false) {
            due if due > 0.0 => due,
            _ => most(true),
        };
        let reached = self.limits.iter().find(|limit| limit.spent >= limit.most);
        Reading { due, done: reached.map(Limit::stop), brink: false }
    }

    /// A limit on a cost that an algorithm does not have does not limit it.
    fn until_all(&self) -> Reading {
        let limits = || self.limits.iter().filter(|limit| limit.spent > 0.0);
        let share: f64 = limits().map(|limit| (limit.spent / limit.most).min(1.0)).sum();
        let due = share * self.evaluations / limits().count().max(1) as f64;
        let all = limits().all(|limit| limit.spent >= limit.most);
        let last = limits().next_back().filter(|_| all);
        Reading { due, done: last.map(Limit::stop), brink: limits().any(Limit::nears) }
    }
}

impl Limit {
    fn stop(&self) -> Stop {
        if self.name == "iteration" && !self.cut { Stop::Finished } else { Stop::Budget }
    }

    /// Whether the next iteration may pass the limit; seconds vary too much to predict this.
    fn nears(&self) -> bool {
        let within = self.spent <= self.most && self.spent + self.stride > self.most;
        within && self.name != "seconds"
    }
}
