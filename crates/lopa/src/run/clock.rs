//! The clock of a run.

use std::time::Instant;

/// Seconds of computing: stopped while measurements are taken.
#[derive(Default)]
pub struct Clock {
    seconds: f64,
    since: Option<Instant>,
}

impl Clock {
    /// Starts.
    pub fn go(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Pauses.
    pub fn halt(&mut self) {
        self.seconds += self.since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
    }

    /// Adds the seconds of an earlier part of the run.
    pub fn from(&mut self, seconds: f64) {
        self.seconds += seconds;
    }

    /// Seconds so far.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}
