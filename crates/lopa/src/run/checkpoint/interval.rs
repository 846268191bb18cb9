//! When the next checkpoint is due.

use std::time::{Duration, Instant};

use crate::engine::{Cluster, Expect};
use crate::error::Result;
use crate::experiment::CheckpointSpec;
use crate::math::real::Real;
use crate::run::evaluate::watch;
use crate::run::processes::Processes;

/// Checkpoints by time take at most 1 / this of the time.
const SHARE: u32 = 20;

/// Iterations between two checkpoints of a peer, by default.
const AMONG_PEERS: u64 = 100;

/// The time between two checkpoints.
pub struct Interval<'a> {
    spec: &'a CheckpointSpec,
    agreed: Option<u64>, // iterations, where all peers must have the same
    since: Instant,
    took: Duration,
}

impl<'a> Interval<'a> {
    pub fn new(spec: &'a CheckpointSpec, agreed: Option<u64>) -> Interval<'a> {
        Interval { spec, agreed, since: Instant::now(), took: Duration::ZERO }
    }

    /// Where peers may be left out, the iterations between the checkpoints of all: the longest that one of them wants, at
    /// multiples of those where all wait for each other. Then their last two have one in common.
    pub fn agreed<T: Real>(spec: &CheckpointSpec, cluster: &mut Cluster<T>) -> Result<Option<u64>> {
        if !Processes::with(cluster).leave() {
            return Ok(None);
        }
        let own = spec.iterations.unwrap_or(AMONG_PEERS).next_multiple_of(watch::EVERY);
        let all = cluster.everyone(vec![vec![own as f64]], Expect::Counts)?;
        Ok(Some(all.into_iter().flatten().fold(own as f64, f64::max) as u64))
    }

    /// Whether a checkpoint is due, by the clock of process 0. A peer counts iterations instead,
    /// because its neighbours keep the frames they sent until its next checkpoint.
    pub fn due<T: Real>(&self, cluster: &mut Cluster<T>) -> Result<bool> {
        let k = cluster.progress().k;
        let every = self.agreed.or(self.spec.iterations);
        let processes = Processes::with(cluster);
        let (wanted, peers) = (processes.want_checkpoint(), processes.are_peers());
        if let Some(every) = every.or(peers.then_some(AMONG_PEERS)) {
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
