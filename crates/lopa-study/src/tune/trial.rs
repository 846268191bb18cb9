//! What a search finds out, as its journal keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spec::Tried;

/// Values of some parameters.
pub type Candidate = BTreeMap<String, Tried>;

/// A finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The label of the algorithm.
    pub algorithm: String,
    /// The stage of successive halving; 0 in other searches.
    pub rung: usize,
    /// The number of the trial, from 0.
    pub trial: usize,
    /// The values tried.
    pub params: Candidate,
    /// The mean of the metric over the seeds; `None` if a run diverged or was refused.
    pub value: Option<f64>,
}

/// The step sizes that an algorithm finds itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The label of the algorithm.
    pub algorithm: String,
    /// The step sizes.
    pub found: Candidate,
}

/// The outcome of testing a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The label of the algorithm.
    pub algorithm: String,
    /// The number of the trial.
    pub confirms: usize,
    /// The seeds: neither those of the trials nor those of the run.
    pub seeds: Vec<u64>,
    /// The mean of the metric over these seeds at full length; `None` if a run diverged.
    pub value: Option<f64>,
    /// The same for the neighbour; `None` if a run diverged, or if the trial itself did.
    pub above: Option<f64>,
    /// Whether the trial is confirmed. A neighbour whose values the algorithm refuses does not
    /// count against it.
    pub stands: bool,
}

impl Confirmation {
    /// The outcome in words.
    pub fn says(&self) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let seeds = seeds.join(", ");
        match (self.stands, self.value.is_some(), self.above.is_some()) {
            (true, _, true) => format!("survives seeds {seeds}, also with steps a quarter larger"),
            (true, _, false) => format!("survives seeds {seeds}"),
            (false, false, _) => format!("diverges on at least one of seeds {seeds}"),
            (false, true, _) => {
                format!("on the edge: a quarter above it, at least one of seeds {seeds} diverges")
            }
        }
    }
}
