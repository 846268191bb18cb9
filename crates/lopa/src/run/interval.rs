//! When the next checkpoint is due.

use std::time::{Duration, Instant};

use crate::experiment::CheckpointSpec;

/// By time, checkpoints get at most this share of it: one twentieth.
const SHARE: u32 = 20;

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

    /// Whether it is over after `k` iterations.
    pub fn due(&self, k: u64) -> bool {
        match self.spec.iterations {
            Some(every) => k.is_multiple_of(every),
            None => {
                let least = Duration::try_from_secs_f64(self.spec.seconds).unwrap_or(Duration::MAX);
                self.since.elapsed() >= least.max(SHARE * self.took)
            }
        }
    }

    /// Writes a checkpoint, and begins anew.
    pub fn time<R>(&mut self, write: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let done = write();
        self.since = Instant::now();
        self.took = self.since - start;
        done
    }
}
