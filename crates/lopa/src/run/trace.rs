//! What a run leaves behind: rows of measurements, and how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::problem::oracle::Counts;

/// Every cost that is counted, as rows name them.
pub const COSTS: [&str; 8] =
    ["iteration", "gradients", "hessians", "jacobians", "samples", "exchanges", "bytes", "seconds"];

/// Whether more of a measure is better: of accuracies it is, of all others less.
pub fn more_is_better(measure: &str) -> bool {
    measure.ends_with("accuracy")
}

/// Whether a measure spans powers of ten: it is then compared by its logarithm.
pub fn spans_powers(measure: &str) -> bool {
    let squares = ["consensus", "theta_consensus", "theta_error", "x_error", "grad_phi_sq"];
    squares.contains(&measure)
}

/// One measurement of a run. Costs are per node (means over the nodes) where nodes may differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Iterations done.
    pub iteration: u64,
    /// Hessian-vector products a node.
    pub hessians: f64,
    /// Jacobian-vector products a node.
    pub jacobians: f64,
    /// Gradients a node, of all kinds.
    pub gradients: f64,
    /// Samples a node evaluated, each as often as it was used.
    pub samples: f64,
    /// Rounds of communication.
    pub exchanges: u64,
    /// Bytes sent over all links.
    pub bytes: u64,
    /// Seconds of computing and mixing; evaluation is not in them.
    pub seconds: f64,
    /// Measures of quality by name: `loss`, `test_accuracy`, `phi`, `grad_phi_sq`, `consensus`, …
    #[serde(flatten)]
    pub values: BTreeMap<String, f64>,
}

impl Row {
    /// A row of costs; measures of quality are added to it.
    pub fn new(counts: &Counts, nodes: usize) -> Row {
        let each = |total: u64| total as f64 / nodes as f64;
        let Counts { grad_theta_g, grad_theta_f, grad_x_f, grad_x_g, .. } = *counts;
        Row {
            iteration: 0,
            hessians: each(counts.hess_g),
            jacobians: each(counts.cross_g),
            gradients: each(grad_theta_g + grad_theta_f + grad_x_f + grad_x_g),
            samples: each(counts.samples),
            exchanges: 0,
            bytes: 0,
            seconds: 0.0,
            values: BTreeMap::new(),
        }
    }

    /// A cost or a measure by name.
    pub fn value(&self, name: &str) -> Option<f64> {
        Some(match name {
            "iteration" => self.iteration as f64,
            "hessians" => self.hessians,
            "jacobians" => self.jacobians,
            "gradients" => self.gradients,
            "samples" => self.samples,
            "exchanges" => self.exchanges as f64,
            "bytes" => self.bytes as f64,
            "seconds" => self.seconds,
            _ => return self.values.get(name).copied(),
        })
    }
}

/// How a run ended. Not an error: the rows up to there are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All iterations were done.
    Finished,
    /// A budget was used up.
    Budget,
    /// The target was reached.
    Target,
    /// Values grew beyond all bounds or stopped being numbers.
    Diverged,
    /// Somebody asked it to stop.
    Interrupted,
}

impl Stop {
    /// The word for it, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Stop::Finished => "finished",
            Stop::Budget => "budget",
            Stop::Target => "target",
            Stop::Diverged => "diverged",
            Stop::Interrupted => "interrupted",
        }
    }
}
