//! Which finished runs of a run folder a command means.

use std::path::Path;

use lopa::error::{Error, Result};
use lopa::folder::model::Model;
use lopa::folder::{ResultEntry, RunReader};

use crate::args::ModelArgs;

/// The finished runs in a run folder; there is at least one.
pub struct Finished {
    pub folder: RunReader,
    results: Vec<ResultEntry>,
}

impl Finished {
    pub fn open(folder: &Path) -> Result<Finished> {
        let folder = RunReader::open(folder)?;
        let results = folder.results()?;
        if results.is_empty() {
            let message = "no run in this folder has ended: its results are empty";
            return Err(Error::storage("storage/read", message)
                .at(folder.path().join("results.json").display().to_string())
                .hint("let it end: the command that started it resumes it"));
        }
        Ok(Finished { folder, results })
    }

    /// The runs of the algorithm and seed asked for, or all.
    pub fn runs(&self, args: &ModelArgs) -> Result<Vec<&ResultEntry>> {
        let unknown = |flag: &str, message: String, known: Vec<String>| {
            Error::config("config/unknown-name", message)
                .at(flag)
                .hint(format!("it has: {}", known.join(", ")))
        };
        let mut runs: Vec<&ResultEntry> = self.results.iter().collect();
        if let Some(wanted) = &args.algorithm {
            let known = names(&one_each(&runs));
            runs.retain(|run| run.algorithm == *wanted);
            if runs.is_empty() {
                let message = format!("the run has no algorithm `{wanted}`");
                return Err(unknown("--algorithm", message, known));
            }
        }
        if let Some(wanted) = args.seed {
            let mut known: Vec<String> = runs.iter().map(|run| run.seed.to_string()).collect();
            known.dedup();
            runs.retain(|run| run.seed == wanted);
            if runs.is_empty() {
                return Err(unknown("--seed", format!("the run has no seed {wanted}"), known));
            }
        }
        Ok(runs)
    }

    /// The models a run ended with.
    pub fn model(&self, run: &ResultEntry) -> Result<Model> {
        self.folder.model(&run.algorithm, run.seed)
    }

    /// How many raw features a model of this folder takes, if it predicts.
    pub fn features(&self, model: &Model) -> Result<usize> {
        if model.about.classes.is_empty() {
            let message =
                format!("models of the problem `{}` predict nothing", model.about.problem);
            return Err(Error::config("config/no-meaning", message)
                .at(self.folder.path().display().to_string())
                .hint("choose a run on labelled data"));
        }
        Ok(model.about.features)
    }
}

/// The first run of each algorithm.
pub fn one_each<'a>(runs: &[&'a ResultEntry]) -> Vec<&'a ResultEntry> {
    let mut first: Vec<&ResultEntry> = Vec::new();
    for run in runs {
        if first.iter().all(|other| other.algorithm != run.algorithm) {
            first.push(run);
        }
    }
    first
}

/// The algorithms of some runs.
pub fn names(runs: &[&ResultEntry]) -> Vec<String> {
    runs.iter().map(|run| run.algorithm.clone()).collect()
}
