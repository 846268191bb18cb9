//! The `[checkpoint]` section: how often a run saves its state.

use crate::params;

params! {
    /// How often a run saves its state. Results do not depend on it.
    #[derive(PartialEq)]
    pub struct CheckpointSpec {
        /// Seconds between two checkpoints; more if they would take over a twentieth of the time.
        seconds: f64 = 30.0, positive;
        /// Iterations between two checkpoints, in place of seconds, whatever they cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        iterations: Option<u64> = None, at_least(1);
    }
}
