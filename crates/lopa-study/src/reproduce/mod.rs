//! The paper's experiments: their results, and verdicts on the paper's claims.

pub mod claims;
mod page;
pub mod paper;
mod sentences;

pub use page::{page, table};
pub use sentences::claims;

use serde_json::{Value, json};

use crate::statistics::spread;
use lopa::experiment::Experiment;
use lopa::folder::{Run, Traces};

/// One experiment of the reproduction, and which part of the paper it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The figures it belongs to.
    pub figures: &'static [&'static str],
    /// The data set.
    pub dataset: &'static str,
    /// What distinguishes it within the figure: the heterogeneity, the network.
    pub variant: Option<&'static str>,
    /// `paper` or `tuned`.
    pub steps: &'static str,
    /// The experiment.
    pub experiment: Experiment,
}

/// The measures that summarise the end of a run.
pub const MEASURES: [&str; 8] = [
    "loss",
    "train_accuracy",
    "test_accuracy",
    "phi",
    "grad_phi_sq",
    "consensus",
    "hessians",
    "seconds",
];

/// One entry per figure and algorithm: mean and standard deviation over the seeds at the end.
pub fn entries(part: &Part, traces: &Traces) -> Vec<Value> {
    let mut entries = Vec::new();
    for figure in part.figures {
        for algorithm in &part.experiment.algorithms {
            let runs = traces.of(&algorithm.label);
            let sound: Vec<&&Run> = runs.iter().filter(|run| !run.diverged).collect();
            let mut entry = json!({
                "figure": figure,
                "dataset": part.dataset,
                "variant": part.variant,
                "algorithm": algorithm.label,
                "steps": part.steps,
                "seeds": runs.iter().map(|run| run.seed).collect::<Vec<_>>(),
                "diverged": runs.len() - sound.len(),
            });
            for name in MEASURES {
                let values: Option<Vec<f64>> = sound.iter().map(|run| run.last(name)).collect();
                entry[name] = match values.filter(|values| !values.is_empty()) {
                    Some(values) => {
                        let (mean, std) = spread(&values);
                        json!({ "mean": mean, "std": std })
                    }
                    None => Value::Null,
                };
            }
            entries.push(entry);
        }
    }
    entries
}
