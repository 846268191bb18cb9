//! Which saved runs a command means.

use std::path::{Path, PathBuf};

use lopa::error::{Error, Result};
use lopa::folder::model::Model;
use lopa::folder::model_path;
use serde_json::Value;

use crate::args::ModelArgs;

/// The finished runs in a run folder.
pub struct Saved {
    pub folder: PathBuf,
    runs: Vec<Run>,
}

/// One algorithm on one seed.
pub struct Run {
    pub algorithm: String,
    pub seed: u64,
    /// Its entry in `results.json`.
    pub result: Value,
}

impl Saved {
    pub fn open(folder: &Path) -> Result<Saved> {
        let path = folder.join("results.json");
        let place = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let message = match folder.join("manifest.json").exists() {
                true => "no run in this folder came to its end".to_string(),
                false => format!("this is not a run folder: {error}"),
            };
            Error::storage("storage/read", message)
                .at(&place)
                .hint("name a folder that `lopa run` made; `lopa ls` lists them")
        })?;
        let damaged = |what: String| {
            Error::storage("storage/read", format!("the results are damaged: {what}")).at(&place)
        };
        let entries: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        let run = |result: Value| {
            let named = (result["algorithm"].as_str(), result["seed"].as_u64());
            let (Some(algorithm), Some(seed)) = named else {
                return Err(damaged("an entry has no algorithm or no seed".into()));
            };
            Ok(Run { algorithm: algorithm.to_string(), seed, result })
        };
        let runs: Vec<Run> = entries.into_iter().map(run).collect::<Result<_>>()?;
        if runs.is_empty() {
            return Err(damaged("they are empty".into()));
        }
        Ok(Saved { folder: folder.to_path_buf(), runs })
    }

    /// The runs of an algorithm and a seed; of all, where none is asked for.
    pub fn runs(&self, args: &ModelArgs) -> Result<Vec<&Run>> {
        let unknown = |flag: &str, message: String, known: Vec<String>| {
            Error::config("config/unknown-name", message)
                .at(flag)
                .hint(format!("it has: {}", known.join(", ")))
        };
        let mut runs: Vec<&Run> = self.runs.iter().collect();
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
    pub fn model(&self, run: &Run) -> Result<Model> {
        Model::load(&model_path(&self.folder, &run.algorithm, run.seed))
    }

    /// How many raw features a model of this folder takes, if it is one that predicts.
    pub fn features(&self, model: &Model) -> Result<usize> {
        if model.about.classes.is_empty() {
            let message =
                format!("models of the problem `{}` predict nothing", model.about.problem);
            return Err(Error::config("config/no-meaning", message)
                .at(self.folder.display().to_string())
                .hint("choose a run on labelled data"));
        }
        Ok(model.about.features)
    }
}

/// The first run of each algorithm.
pub fn one_each<'a>(runs: &[&'a Run]) -> Vec<&'a Run> {
    let mut first: Vec<&Run> = Vec::new();
    for run in runs {
        if first.iter().all(|other| other.algorithm != run.algorithm) {
            first.push(run);
        }
    }
    first
}

/// The algorithms of some runs.
pub fn names(runs: &[&Run]) -> Vec<String> {
    runs.iter().map(|run| run.algorithm.clone()).collect()
}
