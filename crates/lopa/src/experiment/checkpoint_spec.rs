//! The `[checkpoint]` section: how often a run saves its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Params;
use crate::error::Fault;

/// How often a run saves its state. Results do not depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointSpec {
    /// Seconds between two checkpoints; more if they would take over a twentieth of the time.
    pub seconds: f64,
    /// Iterations between two checkpoints, in place of seconds, whatever they cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
}

impl Default for CheckpointSpec {
    fn default() -> CheckpointSpec {
        CheckpointSpec { seconds: 30.0, iterations: None }
    }
}

impl Params for CheckpointSpec {
    fn check(&self) -> Result<(), Fault> {
        let sane = self.seconds > 0.0 && self.seconds.is_finite();
        Fault::unless(sane, "seconds", self.seconds, "a positive number")?;
        let every = self.iterations.unwrap_or(1);
        Fault::unless(every > 0, "iterations", every, "at least 1")
    }
}
