//! Going on with a folder that an earlier run left.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::machine::now;
use super::{ModelParts, RunFolder, folder_name, is_of, model_path, open_metrics, resolved, store};
use crate::data::{self, Data};
use crate::error::Result;
use crate::experiment::Experiment;
use crate::folder::model::Model;
use crate::run::Outcome;
use crate::run::checkpoint::State;
use crate::store::files::cannot_write;

impl RunFolder {
    /// Goes on with the folder that an earlier run of the same experiment left below `runs`, or
    /// makes it. What had come to its end is kept.
    pub fn resume(
        runs: &Path,
        experiment: &Experiment,
        data: Option<&Data>,
        threads: usize,
    ) -> Result<RunFolder> {
        let path = runs.join(folder_name(experiment));
        match RunFolder::take_over(path, experiment, data, |_| true)? {
            Some(folder) => Ok(folder),
            None => RunFolder::create(runs, experiment, data, threads),
        }
    }

    /// Goes on with the newest folder below `runs` of a run of the same experiment that did not
    /// come to its end, and that nobody is working on.
    pub fn unfinished(
        runs: &Path,
        experiment: &Experiment,
        data: Option<&Data>,
    ) -> Result<Option<RunFolder>> {
        let name = folder_name(experiment);
        for path in numbered(runs, &name).into_iter().rev() {
            let open = |manifest: &Value| manifest["status"] != "done";
            if let Some(folder) = RunFolder::take_over(path, experiment, data, open)? {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    }

    /// The folder at `path`, if it is that of the same experiment, data and version, its manifest
    /// is as `wanted`, and nobody is working on it.
    fn take_over(
        path: PathBuf,
        experiment: &Experiment,
        data: Option<&Data>,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Option<RunFolder>> {
        let read = |name: &str| fs::read_to_string(path.join(name)).ok();
        let parse = |text: String| serde_json::from_str::<Value>(&text).ok();
        let ours = |manifest: &Value| {
            manifest["lopa"] == env!("CARGO_PKG_VERSION")
                && manifest["experiment_digest"] == resolved(experiment).1
                && manifest["data_digest"] == json!(data.map(data::digest))
                && wanted(manifest)
        };
        if !path.join("manifest.json").exists() {
            return Ok(None);
        }
        let Some(lock) = lock(&path)? else { return Ok(None) };
        let Some(mut manifest) = read("manifest.json").and_then(parse).filter(ours) else {
            return Ok(None);
        };
        let ended = |run: &Value| run["stop"] != "interrupted";
        let results: Vec<Value> = match read("results.json").and_then(parse) {
            Some(Value::Array(results)) => results.into_iter().filter(ended).collect(),
            _ => Vec::new(),
        };
        let sound = sound(&read("metrics.jsonl").unwrap_or_default(), &results);
        let metrics = open_metrics(&path)?;
        manifest["status"] = json!("running");
        match manifest["resumed"].as_array_mut() {
            Some(times) => times.push(json!(now())),
            None => manifest["resumed"] = json!([now()]),
        }
        let about = ModelParts::of(experiment, data);
        let mut folder = RunFolder {
            path,
            metrics,
            sound,
            synced: None,
            manifest,
            results,
            store: None,
            last: None,
            about,
            _lock: lock,
        };
        folder.write_manifest()?;
        Ok(Some(folder))
    }

    /// The outcome of a run that came to its end, if its models are sound.
    pub fn ended(&self, algorithm: &str, seed: u64) -> Option<Outcome> {
        let entry = self.results.iter().find(|run| is_of(run, algorithm, seed))?;
        let model = Model::load(&model_path(&self.path, algorithm, seed)).ok()?;
        super::result::outcome(entry, model.x.into_iter().zip(model.theta).collect())
    }

    /// Where a run stood that did not come to its end, if it got as far as a checkpoint; later
    /// measurements are forgotten. `told` hears of checkpoints that were refused.
    pub fn kept(
        &mut self,
        algorithm: &str,
        seed: u64,
        told: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        let run = self.run_hash(algorithm, seed);
        let measured = self.sound..=self.measured()?;
        let store = self.store.insert(store(&self.path, algorithm, seed));
        let checkpoint = store.newest(&run, measured, told);
        let length = checkpoint.as_ref().map_or(self.sound, |checkpoint| checkpoint.metrics);
        self.synced = None;
        self.last = checkpoint.as_ref().map(|kept| (kept.state.progress.k, kept.metrics));
        let cut = self.metrics.set_len(length);
        cut.map_err(|error| cannot_write(&self.path.join("metrics.jsonl"), &error))?;
        Ok(checkpoint.map(|checkpoint| checkpoint.state))
    }
}

/// The right to write in a folder, until the process ends; `None` if somebody else has it.
pub(super) fn lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(|error| cannot_write(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(cannot_write(&path, &error)),
    }
}

/// The folders `name`, `name-2`, `name-3`, … below `runs`.
fn numbered(runs: &Path, name: &str) -> Vec<PathBuf> {
    let number = |path: &Path| {
        let rest = path.file_name()?.to_str()?.strip_prefix(name)?;
        match rest.strip_prefix('-') {
            Some(number) => number.parse::<u64>().ok(),
            None => rest.is_empty().then_some(1),
        }
    };
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let mut found: Vec<(u64, PathBuf)> =
        entries.map(|entry| entry.path()).filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// How many bytes of measurements belong to runs that came to their end: they are in front.
fn sound(metrics: &str, results: &[Value]) -> u64 {
    let ended = |line: &&str| {
        let row: Value = serde_json::from_str(line).unwrap_or(Value::Null);
        let same = |key: &str, run: &Value| run[key] == row[key];
        let whole = line.ends_with('\n');
        whole && results.iter().any(|run| same("algorithm", run) && same("seed", run))
    };
    metrics.split_inclusive('\n').take_while(ended).map(|line| line.len() as u64).sum()
}
