//! Resumes a run in the folder of an earlier run.

use std::fs;
use std::path::{Path, PathBuf};

use super::lock::lock;
use super::machine::now;
use super::manifest::{Identity, Status};
use super::reader::{Lines, damaged, read};
use super::writer::{device, folder_name, resolved};
use super::{CHECKPOINTS, MANIFEST, METRICS, MetricsRow, RESOLVED, RESULTS, RunFolder, RunReader};
use crate::data::{self, Data};
use crate::error::Result;
use crate::experiment::Experiment;
use crate::network::time::TimeSpec;
use crate::run::Outcome;
use crate::run::trace::Stop;

/// The `[time]` that the experiment of a run folder was run with.
pub fn times(folder: &Path) -> Option<TimeSpec> {
    let text = fs::read_to_string(folder.join(RESOLVED)).ok()?;
    let resolved: toml::Table = text.parse().ok()?;
    resolved.get("time")?.clone().try_into().ok()
}

impl RunFolder {
    /// Resumes in the folder of an earlier run of the same experiment below `runs`, or makes a new
    /// one. Finished runs are kept.
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

    /// Resumes in the newest folder below `runs` of the same experiment that is not done and that no
    /// other process is writing.
    pub fn unfinished(
        runs: &Path,
        experiment: &Experiment,
        data: Option<&Data>,
    ) -> Result<Option<RunFolder>> {
        let not_done = |status| status != Some(Status::Done);
        for path in numbered(runs, &folder_name(experiment)).into_iter().rev() {
            if let Some(folder) = RunFolder::take_over(path, experiment, data, not_done)? {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    }

    /// The newest folder of this experiment below `runs`, if all of them are done.
    pub fn finished(
        runs: &Path,
        experiment: &Experiment,
        data: Option<&Data>,
    ) -> Result<Option<RunFolder>> {
        let paths = numbered(runs, &folder_name(experiment));
        let is_done = |path: &PathBuf| {
            RunReader::open(path).is_ok_and(|run| run.manifest().status == Status::Done)
        };
        match paths.last() {
            Some(newest) if paths.iter().all(is_done) => {
                RunFolder::take_over(newest.clone(), experiment, data, |_| true)
            }
            _ => Ok(None),
        }
    }

    /// The folder at `path`, if it belongs to the same experiment, data and version, its status is
    /// `wanted`, and no other process is writing it.
    fn take_over(
        path: PathBuf,
        experiment: &Experiment,
        data: Option<&Data>,
        wanted: impl Fn(Option<Status>) -> bool,
    ) -> Result<Option<RunFolder>> {
        let ours = |identity: &Identity| {
            let version = env!("CARGO_PKG_VERSION");
            let digest = resolved(experiment).1;
            identity.lopa.as_ref().is_none_or(|known| known == version)
                && identity.experiment_digest.as_ref().is_none_or(|known| *known == digest)
                && identity.data_digest == data.map(data::digest)
                && wanted(identity.status)
        };
        if !path.join(MANIFEST).exists() {
            // A process that was killed at its start leaves no manifest, but no results either.
            let used = path.join(RESULTS).exists() || path.join(CHECKPOINTS).exists();
            return match used {
                true => Err(damaged(&path.join(MANIFEST), None, "the file is missing")),
                false => Ok(None),
            };
        }
        let Some(lock) = lock(&path)? else { return Ok(None) };
        let manifest = read(&path.join(MANIFEST))?.unwrap_or_default();
        // Manifests of other versions may differ; those of this version must be valid.
        if serde_json::from_slice(&manifest).is_ok_and(|identity| !ours(&identity)) {
            return Ok(None);
        }
        let reader = RunReader::open(&path)?;
        reader.check()?;
        let mut results = reader.results()?;
        results.retain(|entry| entry.stop != Stop::Interrupted);
        let Measured { sound, whole, scattered } = measured(&path.join(METRICS), &results)?;
        let mut manifest = reader.manifest().clone();
        manifest.status = Status::Running;
        manifest.machine.device = device(experiment)?.or(manifest.machine.device);
        manifest.resumed.push(now());
        let mut folder = RunFolder::new(path, manifest, lock, experiment, data)?;
        folder.results = results;
        folder.sound = sound;
        match scattered {
            Some(rows) => folder.write_metrics(rows.into_iter())?,
            None => folder.cut_metrics(whole)?,
        }
        folder.write_manifest()?;
        Ok(Some(folder))
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

/// Sizes in bytes of parts at the beginning of `metrics.jsonl`.
struct Measured {
    /// Measurements of runs that ended: they come first.
    sound: u64,
    /// All complete lines before the first that cannot be read. Later lines belong to the
    /// interrupted run, which repeats these measurements.
    whole: u64,
    /// Measurements of runs that ended, if others are between them: a run whose models were lost
    /// was about to be repeated, and its old measurements are still in the file.
    scattered: Option<Vec<MetricsRow>>,
}

fn measured(path: &Path, ended: &[Outcome]) -> Result<Measured> {
    let bytes = read(path)?.unwrap_or_default();
    let Lines { mut rows, damage } = Lines::parse(path, &bytes);
    rows.retain(|&(_, end)| bytes[..end].ends_with(b"\n"));
    let whole = rows.last().map_or(0, |&(_, end)| end as u64);
    let is_ended = |(line, _): &&(MetricsRow, usize)| {
        ended.iter().any(|entry| entry.is_of(&line.algorithm, line.seed))
    };
    let sound = rows.iter().take_while(is_ended).last().map_or(0, |&(_, end)| end as u64);
    rows.retain(|row| is_ended(&row));
    let scattered = rows.last().is_some_and(|&(_, end)| end as u64 > sound);
    // The last measurement of a run is also in its result.
    let is_there = |entry: &Outcome| {
        let is_last = |(line, _): &(MetricsRow, usize)| {
            entry.is_of(&line.algorithm, line.seed) && line.row.iteration == entry.row.iteration
        };
        rows.iter().any(is_last)
    };
    match (ended.iter().find(|entry| !is_there(entry)), damage) {
        (None, _) => {
            let scattered = scattered.then(|| rows.into_iter().map(|(row, _)| row).collect());
            Ok(Measured { sound, whole, scattered })
        }
        (Some(_), Some(damage)) => Err(damage.error),
        (Some(Outcome { algorithm, seed, .. }), None) => {
            let what = format!("measurements of {algorithm}, seed {seed}, are missing");
            Err(damaged(path, None, &what))
        }
    }
}
