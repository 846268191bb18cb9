//! The state that all processes of a run share: from the same numbers they make the same decisions.

use super::Processes;
use crate::engine::{Cluster, Expect};
use crate::error::{Error, Kind, Result};
use crate::math::real::Real;
use crate::problem::derivative::Counts;
use crate::run::clock::Clock;
use crate::run::trace::Row;

/// The state that all processes share.
pub struct Agreed {
    /// Costs so far, without measures of quality.
    pub costs: Row,
    /// Whether one of them was asked to stop.
    pub interrupted: bool,
}

/// Sums the costs of all nodes. The time is that of process 0. A peer sends neither its own time
/// nor whether it was asked to stop: its messages must not depend on when they are sent.
pub fn agree<T: Real>(
    cluster: &mut Cluster<T>,
    clock: &Clock,
    interrupted: bool,
) -> Result<Agreed> {
    if cluster.is_whole() {
        let costs = costs(cluster, &cluster.counts(), cluster.nodes().len());
        return Ok(Agreed { costs: Row { seconds: clock.seconds(), ..costs }, interrupted });
    }
    let own = Processes::with(cluster).are_peers();
    let told = if own { [0.0; 2] } else { [clock.seconds(), f64::from(interrupted)] };
    let numbers = |(at, counts): (usize, Counts)| -> Vec<f64> {
        let counts = counts.to_array().map(|count| count as f64);
        let noted = cluster.timing().into_iter().flat_map(|timing| timing.noted(at));
        counts.into_iter().chain(told).chain(noted).collect()
    };
    let ours = cluster.nodes().iter().map(|node| node.oracle.counts()).enumerate();
    let ours = ours.map(numbers).collect();
    let all = cluster.everyone(ours, Expect::Counts)?;
    pass(cluster, all.iter().map(|numbers| &numbers[TOLD..]))?;
    let sum = |at: usize| all.iter().map(|numbers| numbers[at]).sum::<f64>();
    let counts = Counts::from_array(std::array::from_fn(|at| sum(at) as u64));
    let costs = costs(cluster, &counts, all.len());
    if own {
        let costs = Row { seconds: clock.seconds(), ..costs };
        return Ok(Agreed { costs, interrupted: Processes::with(cluster).stop_here(interrupted) });
    }
    Ok(Agreed { costs: Row { seconds: all[0][7], ..costs }, interrupted: sum(8) > 0.0 })
}

/// Numbers that a node sends besides its computing times: seven counts, seconds, whether to stop.
const TOLD: usize = 9;

/// Advances all clocks by the computing times of every node in the recorded rounds.
fn pass<'n, T: Real>(
    cluster: &mut Cluster<T>,
    computed: impl Iterator<Item = &'n [f64]>,
) -> Result<()> {
    let Some(timing) = cluster.timing_mut().0 else { return Ok(()) };
    let computed: Vec<&[f64]> = computed.collect();
    if computed.iter().any(|noted| noted.len() != timing.pending()) {
        let message = "processes disagree on how many rounds there were";
        return Err(Error::new(Kind::Run, "engine/garbled", message));
    }
    timing.pass(|i, t| computed[i][t] as u64);
    Ok(())
}

/// Synchronises the clocks of all processes, before process 0 saves them.
pub fn agree_on_time<T: Real>(cluster: &mut Cluster<T>) -> Result<()> {
    let Some(timing) = cluster.timing().filter(|_| !cluster.is_whole()) else { return Ok(()) };
    let ours = (0..cluster.nodes().len()).map(|at| timing.noted(at).collect()).collect();
    let all = cluster.everyone(ours, Expect::Counts)?;
    pass(cluster, all.iter().map(|numbers| &numbers[..]))
}

/// The costs that this process has without communication: iterations, rounds, bytes.
pub fn own_costs<T: Real>(cluster: &Cluster<T>) -> Row {
    costs(cluster, &Counts::default(), 1)
}

fn costs<T: Real>(cluster: &Cluster<T>, counts: &Counts, nodes: usize) -> Row {
    let progress = cluster.progress();
    Row {
        iteration: progress.k,
        exchanges: progress.exchanges,
        bytes: progress.bytes,
        virtual_seconds: cluster.timing().map(|timing| timing.now() as f64 / 1e9),
        ..Row::new(counts, nodes)
    }
}
