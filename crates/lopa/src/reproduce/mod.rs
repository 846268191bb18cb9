//! The paper's experiments: run them, sum them up, and judge what the paper says of them.

pub mod claims;
mod page;
pub mod paper;
mod sentences;
mod stats;
mod traces;

pub use page::{page, table};
pub use sentences::claims;
pub use stats::{Interval, interval, spread};
pub use traces::{Run, Traces, read};

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::data::Data;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::folder::RunFolder;
use crate::run::{Context, Observer, Outcome, World};
use crate::trace::{Row, Stop};

/// One experiment of the reproduction: what of the paper it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The figures it belongs to.
    pub figures: &'static [&'static str],
    /// The data set.
    pub dataset: &'static str,
    /// What tells it from others of the same figure: the heterogeneity, the network.
    pub variant: Option<&'static str>,
    /// `paper` or `tuned`.
    pub steps: &'static str,
    /// The experiment.
    pub experiment: Experiment,
}

/// Runs what is missing of an experiment into its folder below `runs`; false if interrupted.
pub fn complete(
    experiment: &Experiment,
    data: Option<&Data>,
    (runs, threads): (&Path, usize),
    context: &Context,
    told: &mut dyn FnMut(&str),
) -> Result<(PathBuf, bool)> {
    let mut folder = RunFolder::resume(runs, experiment, data, threads)?;
    let path = folder.path().to_path_buf();
    for &seed in &experiment.run.seeds {
        let mut rest = experiment.clone();
        rest.run.seeds = vec![seed];
        rest.algorithms.retain(|algorithm| !folder.has(&algorithm.label, seed));
        if !rest.algorithms.is_empty() {
            rest.run_on(data, context, &mut Keeper { folder: &mut folder, told })?;
        }
        if context.interrupt.load(Ordering::Relaxed) {
            folder.finish("interrupted")?;
            return Ok((path, false));
        }
    }
    folder.finish("done")?;
    Ok((path, true))
}

/// Keeps what comes of a run.
struct Keeper<'a> {
    folder: &'a mut RunFolder,
    told: &'a mut dyn FnMut(&str),
}

impl Observer for Keeper<'_> {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        self.folder.world(seed, world)
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        self.folder.row(algorithm, seed, row)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        if outcome.stop == Stop::Interrupted {
            return Ok(());
        }
        let Outcome { algorithm, seed, row, .. } = outcome;
        let how = if outcome.stop == Stop::Diverged { "diverged" } else { "done" };
        (self.told)(&format!("  {algorithm}, seed {seed}: {how} after {:.1} s", row.seconds));
        self.folder.end(outcome)
    }
}

/// What is summed up at the end of a run.
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

/// One entry a figure and algorithm: mean and standard deviation over the seeds at the end.
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
