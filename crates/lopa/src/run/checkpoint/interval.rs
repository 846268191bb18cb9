//! When the next checkpoint is due.

use std::time::{Duration, Instant};

use crate::engine::{Cluster, Expect};
use crate::error::Result;
use crate::evaluate::watch;
use crate::experiment::CheckpointSpec;
use crate::math::real::Real;
use crate::run::processes::Processes;

/// Checkpoints by time take at most 1 / this of the time.
const SHARE: u32 = 20;

/// Iterations between two checkpoints of a peer, by default.
const AMONG_PEERS: u64 = 100;

/// The time between two checkpoints.
pub struct Interval<'a> {
    spec: &'a CheckpointSpec,
    since: Instant,
    took: Duration,
}

impl<'a> Interval<'a> {
    pub fn new(spec: &'a CheckpointSpec) -> Interval<'a> {
        Interval { spec, since: Instant::now(), took: Duration::ZERO }
    }

    /// Whether a checkpoint is due, by the clock of process 0. A peer counts iterations instead,
    /// because its neighbours keep the frames they sent until its next checkpoint.
    pub fn due<T: Real>(&self, cluster: &mut Cluster<T>) -> Result<bool> {
        let k = cluster.progress().k;
        let every = self.spec.iterations;
        let processes = Processes::with(cluster);
        let (wanted, peers) = (processes.want_checkpoint(), processes.are_peers());
        if let Some(mut every) = every.or(peers.then_some(AMONG_PEERS)) {
            if processes.leave() {
                // Where all nodes wait for each other: then their last two have one in common.
                every = every.next_multiple_of(watch::EVERY);
            }
            return Ok(wanted || k.is_multiple_of(every));
        }
        let least = Duration::try_from_secs_f64(self.spec.seconds).unwrap_or(Duration::MAX);
        let over = self.since.elapsed() >= least.max(SHARE * self.took);
        if cluster.is_whole() || !k.is_multiple_of(watch::EVERY) {
            return Ok(over && cluster.is_whole());
        }
        let ours = vec![vec![f64::from(over)]; cluster.nodes().len()];
        Ok(cluster.everyone(ours, Expect::Counts)?[0] == [1.0])
    }

    /// Writes a checkpoint and restarts the interval.
    pub fn time<R>(&mut self, write: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let done = write();
        self.since = Instant::now();
        self.took = self.since - start;
        done
    }
}
