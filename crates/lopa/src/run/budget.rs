//! What a run has spent, and what that is worth.

use super::clock::Clock;
use crate::engine::Cluster;
use crate::error::{Error, Result};
use crate::experiment::RunSpec;
use crate::oracle::Counts;
use crate::real::Real;
use crate::trace::{Row, Stop};

/// Iterations after which a budget that nothing was spent of is taken for a mistake: a randomly
/// truncated series may do without products for a while.
const PATIENCE: u64 = 100;

/// What all processes know: they decide alike from it.
pub struct Agreed {
    /// Costs so far, without measures of quality.
    pub costs: Row,
    /// Whether somebody asked one of them to stop.
    pub interrupted: bool,
}

/// Brings together what all nodes spent; the time is that of process 0.
pub fn agree<T: Real>(
    cluster: &mut Cluster<T>,
    clock: &Clock,
    interrupted: bool,
) -> Result<Agreed> {
    if cluster.is_whole() {
        let costs = costs(cluster, &cluster.counts(), cluster.nodes().len());
        return Ok(Agreed { costs: Row { seconds: clock.seconds(), ..costs }, interrupted });
    }
    let numbers = |counts: Counts| -> Vec<f64> {
        let counts = counts.to_array().map(|count| count as f64);
        [&counts[..], &[clock.seconds(), f64::from(interrupted)]].concat()
    };
    let ours = cluster.nodes().iter().map(|node| numbers(node.oracle.counts())).collect();
    let all = cluster.everyone(ours)?;
    let sum = |at: usize| all.iter().map(|numbers| numbers[at]).sum::<f64>();
    let counts = Counts::from_array(std::array::from_fn(|at| sum(at) as u64));
    let costs = Row { seconds: all[0][7], ..costs(cluster, &counts, all.len()) };
    Ok(Agreed { costs, interrupted: sum(8) > 0.0 })
}

/// What is known without asking anybody: iterations, rounds, bytes.
pub fn own_costs<T: Real>(cluster: &Cluster<T>) -> Row {
    costs(cluster, &Counts::default(), 1)
}

fn costs<T: Real>(cluster: &Cluster<T>, counts: &Counts, nodes: usize) -> Row {
    let progress = cluster.progress();
    Row {
        iteration: progress.k,
        exchanges: progress.exchanges,
        bytes: progress.floats * T::BYTES as u64,
        ..Row::new(counts, nodes)
    }
}

/// Whether a budget limits what processes must ask each other for.
pub fn is_shared(run: &RunSpec) -> bool {
    run.budget.limits().any(|(name, _)| !["exchanges", "bytes"].contains(&name))
}

/// How many measurements the used part of the budget is worth, and how the run ends if all of it
/// is used up.
pub fn due(run: &RunSpec, second_order: bool, spent: &Row) -> (f64, Option<Stop>) {
    let part = |(name, limit): (&'static str, f64)| {
        let spent = match name {
            // What LoPA would have spent: one at the start and one an iteration.
            "hessians" if !second_order => spent.iteration as f64 + 1.0,
            _ => spent.value(name).expect("a budget names a cost"),
        };
        (name, spent, limit)
    };
    let iterations = run.iterations.map(|most| ("iteration", most as f64));
    let parts: Vec<_> = run.budget.limits().chain(iterations).map(part).collect();
    // Multiplied first, so that rounding does not miss what is due at a whole iteration.
    let worth = |&(_, spent, limit): &(_, f64, f64)| spent * run.evaluations as f64 / limit;
    let (seconds, steady): (Vec<_>, Vec<_>) =
        parts.iter().partition(|(name, ..)| *name == "seconds");
    let most = |parts: Vec<_>| parts.into_iter().map(worth).fold(0.0, f64::max);
    // Seconds differ from run to run, so they decide where to measure only if nothing else can.
    let due = match most(steady) {
        due if due > 0.0 => due,
        _ => most(seconds),
    };
    let done = match parts.iter().find(|(_, spent, limit)| spent >= limit) {
        Some(("iteration", ..)) => Some(Stop::Finished),
        Some(_) => Some(Stop::Budget),
        None => None,
    };
    (due, done)
}

/// A budget must limit something that is spent.
pub fn check(label: &str, due: f64, k: u64) -> Result<()> {
    if due > 0.0 || k < PATIENCE {
        return Ok(());
    }
    let message = format!("the budget limits nothing that `{label}` spends: it would never end");
    Err(Error::config("config/endless", message)
        .at("run.budget")
        .hint("add `iterations`, or a limit on something it does spend"))
}
