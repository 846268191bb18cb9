//! What all processes of a run know: from the same numbers they take the same decisions.

use super::clock::Clock;
use crate::engine::Cluster;
use crate::error::Result;
use crate::math::real::Real;
use crate::problem::oracle::Counts;
use crate::run::trace::Row;

/// What all processes know.
pub struct Agreed {
    /// Costs so far, without measures of quality.
    pub costs: Row,
    /// Whether one of them was asked to stop.
    pub interrupted: bool,
}

/// Sums up what all nodes spent. The time is that of process 0. A peer knows only its own time and
/// whether it was asked to stop, and tells neither: what it tells must not depend on when.
pub fn agree<T: Real>(
    cluster: &mut Cluster<T>,
    clock: &Clock,
    interrupted: bool,
) -> Result<Agreed> {
    if cluster.is_whole() {
        let costs = costs(cluster, &cluster.counts(), cluster.nodes().len());
        return Ok(Agreed { costs: Row { seconds: clock.seconds(), ..costs }, interrupted });
    }
    let own = cluster.independent().is_some();
    let told = if own { [0.0; 2] } else { [clock.seconds(), f64::from(interrupted)] };
    let numbers = |counts: Counts| -> Vec<f64> {
        let counts = counts.to_array().map(|count| count as f64);
        [&counts[..], &told].concat()
    };
    let ours = cluster.nodes().iter().map(|node| numbers(node.oracle.counts())).collect();
    let all = cluster.everyone(ours)?;
    let sum = |at: usize| all.iter().map(|numbers| numbers[at]).sum::<f64>();
    let counts = Counts::from_array(std::array::from_fn(|at| sum(at) as u64));
    let costs = costs(cluster, &counts, all.len());
    if own {
        let costs = Row { seconds: clock.seconds(), ..costs };
        return Ok(Agreed { costs, interrupted: interrupts(cluster, interrupted) });
    }
    Ok(Agreed { costs: Row { seconds: all[0][7], ..costs }, interrupted: sum(8) > 0.0 })
}

/// Whether a run is to stop, as far as this process knows.
pub fn interrupts<T: Real>(cluster: &mut Cluster<T>, interrupted: bool) -> bool {
    cluster.independent().is_some_and(|own| interrupted || own.stopped())
}

/// The costs that this process knows without asking: iterations, rounds, bytes.
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
