//! A line of `metrics.jsonl`.

use serde::{Deserialize, Serialize};

use crate::run::trace::Row;

/// A line of `metrics.jsonl`: a measurement and the run it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsRow {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// The measurement.
    #[serde(flatten)]
    pub row: Row,
}
