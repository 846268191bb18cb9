//! The run folder: everything a run leaves behind, written as it goes.
//!
//! ```text
//! runs/<name>-<digest>/
//!   manifest.json     version, seeds, digests, machine, how each run ended
//!   resolved.toml     the experiment, with every default filled in
//!   metrics.jsonl     one line a measurement, appended as it is taken
//!   results.json      one entry a run: the last measurement, the digest, how it ended
//!   partition-seed<seed>.json        which training rows each node holds
//!   models/<algorithm>-seed<seed>.safetensors
//! ```

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::data::{self, Data};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::model::{About, Model};
use crate::run::{Outcome, World, hex};
use crate::trace::Row;

/// A run folder being written.
pub struct RunFolder {
    path: PathBuf,
    metrics: File,
    manifest: Value,
    results: Vec<Value>,
    about: ModelParts,
}

struct ModelParts {
    problem: crate::config::Choice,
    features: usize,
    labels: Vec<u32>,
    classes: Vec<String>,
    scaling: data::Scaling,
}

impl RunFolder {
    /// Makes the folder below `runs`; one that is there already is left alone and the new one
    /// gets a number.
    pub fn create(
        runs: &Path,
        experiment: &Experiment,
        data: Option<&Data>,
        threads: usize,
    ) -> Result<RunFolder> {
        let (resolved, digest) = resolved(experiment);
        let path = free(runs, &folder_name(experiment))?;
        write(&path.join("resolved.toml"), resolved.as_bytes())?;
        let metrics_path = path.join("metrics.jsonl");
        let metrics = File::create(&metrics_path).map_err(|error| cannot(&metrics_path, error))?;
        let manifest = json!({
            "lopa": env!("CARGO_PKG_VERSION"),
            "name": experiment.name,
            "started": now(),
            "status": "running",
            "experiment_digest": digest,
            "data_digest": data.map(data::digest),
            "algorithms": experiment.algorithms.iter().map(|spec| &spec.label).collect::<Vec<_>>(),
            "classes": data.map(|data| &data.classes),
            "seeds": experiment.run.seeds,
            "worlds": [],
            "threads": threads,
            "machine": machine(),
        });
        let about = ModelParts::of(experiment, data);
        let mut folder = RunFolder { path, metrics, manifest, results: Vec::new(), about };
        folder.write_manifest()?;
        Ok(folder)
    }

    /// Goes on with the folder that an earlier run of the same experiment left below `runs`, or
    /// makes it. What had come to its end is kept, what had not is forgotten.
    pub fn resume(
        runs: &Path,
        experiment: &Experiment,
        data: Option<&Data>,
        threads: usize,
    ) -> Result<RunFolder> {
        let path = runs.join(folder_name(experiment));
        let read = |name: &str| fs::read_to_string(path.join(name)).ok();
        let parse = |text: String| serde_json::from_str::<Value>(&text).ok();
        let ours = |manifest: &Value| manifest["experiment_digest"] == resolved(experiment).1;
        let Some(manifest) = read("manifest.json").and_then(parse).filter(ours) else {
            return RunFolder::create(runs, experiment, data, threads);
        };
        let results = match read("results.json").and_then(parse) {
            Some(Value::Array(results)) => results,
            _ => Vec::new(),
        };
        let metrics_path = path.join("metrics.jsonl");
        let ended = |line: &&str| {
            let row: Value = serde_json::from_str(line).unwrap_or(Value::Null);
            let same = |key: &str, run: &Value| run[key] == row[key];
            results.iter().any(|run| same("algorithm", run) && same("seed", run))
        };
        let kept: Vec<String> = read("metrics.jsonl")
            .unwrap_or_default()
            .lines()
            .filter(ended)
            .map(|line| format!("{line}\n"))
            .collect();
        write(&metrics_path, kept.concat().as_bytes())?;
        let open = fs::OpenOptions::new().append(true).open(&metrics_path);
        let metrics = open.map_err(|error| cannot(&metrics_path, error))?;
        let about = ModelParts::of(experiment, data);
        Ok(RunFolder { path, metrics, manifest, results, about })
    }

    /// Whether a run of this algorithm on this seed has come to its end.
    pub fn has(&self, algorithm: &str, seed: u64) -> bool {
        self.results.iter().any(|run| run["algorithm"] == algorithm && run["seed"] == seed)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes the network and partition of a seed.
    pub fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        let edges: Vec<_> = world.graph.edges().map(|(i, j)| [i, j]).collect();
        let weights: Vec<_> = (0..world.mixing.nodes()).map(|i| world.mixing.row(i)).collect();
        let graph = serde_json::to_vec(&(&edges, &weights)).expect("numbers are JSON");
        let worlds = self.manifest["worlds"].as_array().expect("made as a list");
        if worlds.iter().any(|world| world["seed"] == seed) {
            return Ok(());
        }
        let partition = &world.partition;
        let ModelParts { labels, classes, .. } = &self.about;
        if !partition.nodes.is_empty() {
            let path = self.path.join(format!("partition-seed{seed}.json"));
            partition.write(&path, labels.len())?;
        }
        let note = json!({
            "seed": seed,
            "graph_digest": hex(&Sha256::digest(&graph)),
            "rho": world.analysis.rho,
            "edges": edges,
            "weights": weights,
            "partition_digest": (!partition.nodes.is_empty()).then(|| partition.digest()),
            "samples": partition.nodes.iter().map(Vec::len).collect::<Vec<_>>(),
            "classes": classes,
            "class_counts": partition.counts(labels, classes.len()),
        });
        self.manifest["worlds"].as_array_mut().expect("made as a list").push(note);
        self.write_manifest()
    }

    /// Appends a measurement.
    pub fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        let mut line = json!({ "algorithm": algorithm, "seed": seed });
        let row = serde_json::to_value(row).expect("a row is JSON");
        if let (Value::Object(line), Value::Object(row)) = (&mut line, row) {
            line.extend(row);
        }
        writeln!(self.metrics, "{line}").map_err(|error| cannot(&self.path, error))
    }

    /// Saves a run's models and result.
    pub fn end(&mut self, outcome: &Outcome) -> Result<()> {
        let (x, theta) = outcome.models.iter().cloned().unzip();
        let ModelParts { problem, features, classes, scaling, .. } = &self.about;
        let about = About {
            algorithm: outcome.algorithm.clone(),
            seed: outcome.seed,
            problem: problem.name.clone(),
            params: problem.params.clone(),
            features: *features,
            classes: classes.clone(),
        };
        let model = Model { about, x, theta, scaling: scaling.clone() };
        model.save(&model_path(&self.path, &outcome.algorithm, outcome.seed))?;
        self.results.push(result(outcome));
        let text = serde_json::to_string_pretty(&self.results).expect("results are JSON");
        write(&self.path.join("results.json"), text.as_bytes())
    }

    /// The folder is complete.
    pub fn finish(&mut self, status: &str) -> Result<()> {
        self.metrics.sync_all().map_err(|error| cannot(&self.path, error))?;
        self.manifest["status"] = json!(status);
        self.manifest["ended"] = json!(now());
        self.write_manifest()
    }

    fn write_manifest(&mut self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.manifest).expect("a manifest is JSON");
        write(&self.path.join("manifest.json"), text.as_bytes())
    }
}

impl ModelParts {
    fn of(experiment: &Experiment, data: Option<&Data>) -> ModelParts {
        ModelParts {
            problem: experiment.problem.clone(),
            features: data.map_or(0, |data| data.train.features().cols()),
            labels: data.map_or(Vec::new(), |data| data.train.labels().to_vec()),
            classes: data.map_or(Vec::new(), |data| data.classes.clone()),
            scaling: data.map_or(data::Scaling::default(), |data| data.scaling.clone()),
        }
    }
}

/// The experiment with nothing left to defaults, and its digest.
fn resolved(experiment: &Experiment) -> (String, String) {
    let resolved = toml::to_string(&experiment.resolved()).expect("a table is TOML");
    let digest = hex(&Sha256::digest(&resolved));
    (resolved, digest)
}

fn folder_name(experiment: &Experiment) -> String {
    format!("{}-{}", experiment.name, &resolved(experiment).1[..8])
}

/// The models of an algorithm and a seed in a run folder.
pub fn model_path(folder: &Path, algorithm: &str, seed: u64) -> PathBuf {
    folder.join("models").join(format!("{algorithm}-seed{seed}.safetensors"))
}

/// A run as scripts see it.
pub fn result(outcome: &Outcome) -> Value {
    let mut entry = json!({
        "algorithm": outcome.algorithm,
        "seed": outcome.seed,
        "digest": outcome.digest,
        "stop": outcome.stop.name(),
    });
    let row = serde_json::to_value(&outcome.row).expect("a row is JSON");
    if let (Value::Object(entry), Value::Object(row)) = (&mut entry, row) {
        entry.extend(row);
        if let Some(diagnosis) = &outcome.diagnosis {
            entry.insert("diagnosis".into(), json!(diagnosis));
        }
        let named = |values: &Vec<(&'static str, f64)>| -> Value {
            values.iter().map(|(name, value)| (name.to_string(), json!(value))).collect()
        };
        entry.insert("nodes".into(), outcome.nodes.iter().map(named).collect());
    }
    entry
}

fn free(runs: &Path, name: &str) -> Result<PathBuf> {
    for number in 1..10_000 {
        let path = match number {
            1 => runs.join(name),
            _ => runs.join(format!("{name}-{number}")),
        };
        fs::create_dir_all(runs).map_err(|error| cannot(runs, error))?;
        match fs::create_dir(&path) {
            Ok(()) => {
                let models = path.join("models");
                fs::create_dir(&models).map_err(|error| cannot(&models, error))?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(cannot(&path, error)),
        }
    }
    let message = format!("there are 9999 runs called `{name}` already");
    Err(Error::storage("storage/full", message).at(runs.display().to_string()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, content).map_err(|error| cannot(&partial, error))?;
    fs::rename(&partial, path).map_err(|error| cannot(path, error))
}

fn cannot(path: &Path, error: std::io::Error) -> Error {
    Error::storage("storage/write", format!("cannot write: {error}"))
        .at(path.display().to_string())
        .hint("choose another folder with --out")
}

/// The kind of machine: results are promised to the bit on machines of one kind.
fn machine() -> Value {
    json!({
        "arch": std::env::consts::ARCH,
        "os": std::env::consts::OS,
        "simd": simd(),
    })
}

/// The vector instructions that products choose their kernels by.
pub fn simd() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let found = [
        ("sse2", is_x86_feature_detected!("sse2")),
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let found: [(&'static str, bool); 0] = [];
    found.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

/// The time in RFC 3339, UTC.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil((seconds / 86400) as i64);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Count from 1 March of year 0, so that leap days end a year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let of_month = in_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + carry, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_have_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(19_723), (2024, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
    }
}
