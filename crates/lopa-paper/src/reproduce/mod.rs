//! The paper's experiments: their results, and verdicts on the paper's claims.

pub mod claims;
mod evidence;
mod judge;
mod page;
pub mod paper;
pub mod readings;
mod sentences;
pub mod topics;

pub use judge::judge;
pub use page::{Pages, count, once, table};
pub use sentences::claims;

use serde_json::{Value, json};

use lopa::experiment::Experiment;
use lopa::folder::Traces;
use lopa_study::seeds::Seeds;

/// One experiment of the reproduction, and which part of the paper it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The figures it belongs to.
    pub figures: &'static [&'static str],
    /// The data set.
    pub dataset: &'static str,
    /// The setting that distinguishes it within the figure: the heterogeneity or the network.
    pub variant: Option<&'static str>,
    /// `given` or `tuned`.
    pub steps: &'static str,
    /// The experiment.
    pub experiment: Experiment,
}

/// The measures that summarise the end of a run.
pub const MEASURES: [&str; 10] = [
    "loss",
    "train_accuracy",
    "test_accuracy",
    "own_test_accuracy",
    "holdout_accuracy",
    "phi",
    "grad_phi_sq",
    "consensus",
    "hessians",
    "seconds",
];

/// One entry per figure and algorithm: mean and standard deviation over the seeds at the end that did
/// not diverge.
pub fn entries(part: &Part, traces: &Traces) -> Vec<Value> {
    let mut entries = Vec::new();
    for figure in part.figures {
        for algorithm in &part.experiment.algorithms {
            let seeds = Seeds::of(&algorithm.label, traces.of(&algorithm.label));
            let mut entry = json!({
                "figure": figure,
                "dataset": part.dataset,
                "variant": part.variant,
                "algorithm": algorithm.label,
                "steps": part.steps,
                "seeds": seeds.all().iter().map(|run| run.seed).collect::<Vec<_>>(),
                "diverged": seeds.count().diverged(),
            });
            for name in MEASURES {
                entry[name] = match seeds.last(name) {
                    Some(summary) => json!({ "mean": summary.mean, "std": summary.sd }),
                    None => Value::Null,
                };
            }
            entries.push(entry);
        }
    }
    entries
}
