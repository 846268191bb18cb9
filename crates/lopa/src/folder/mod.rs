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
//!   checkpoints/<algorithm>-seed<seed>.{0,1}  where a run stands that is not at its end
//! ```

pub mod keeper;
mod machine;
pub mod model;
mod result;
mod resume;
pub mod traces;

pub use machine::simd;
pub use result::result;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::data::{self, Data};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::folder::model::{About, Model};
use crate::run::checkpoint::{Checkpoint, State, Store};
use crate::run::trace::{Row, Stop};
use crate::run::{Outcome, World, hex};
use crate::store::bytes::Hash;
use crate::store::files::{cannot_write, replace};

use machine::{machine, now};

/// A run folder being written.
pub struct RunFolder {
    path: PathBuf,
    metrics: File,
    sound: u64,          // bytes of the measurements that belong to runs at their end
    synced: Option<u64>, // bytes of measurements that are known to be on disk
    manifest: Value,
    results: Vec<Value>,
    store: Option<Store>,     // checkpoints of the run under way
    last: Option<(u64, u64)>, // iteration of the last of them, and bytes of measurements then
    about: ModelParts,
    _lock: File, // held as long as somebody writes here
}

struct ModelParts {
    problem: crate::config::Choice<crate::problem::AnyProblem>,
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
        let lock = resume::lock(&path)?.expect("nobody else knows of the folder yet");
        write(&path.join("resolved.toml"), resolved.as_bytes())?;
        let metrics = open_metrics(&path)?;
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
        let mut folder = RunFolder {
            path,
            metrics,
            sound: 0,
            synced: None,
            manifest,
            results: Vec::new(),
            store: None,
            last: None,
            about,
            _lock: lock,
        };
        folder.write_manifest()?;
        Ok(folder)
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
        // In one piece: a line is there or it is not.
        let written = self.metrics.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| cannot_write(&self.path.join("metrics.jsonl"), &error))
    }

    /// Keeps where a run stands.
    pub fn keep(&mut self, algorithm: &str, seed: u64, state: State) -> Result<()> {
        let run = self.run_hash(algorithm, seed);
        let checkpoints = self.path.join("checkpoints");
        fs::create_dir_all(&checkpoints).map_err(|error| cannot_write(&checkpoints, &error))?;
        self.sync_metrics()?;
        let k = state.progress.k;
        // A state that is kept once more has no more measurements than the first time.
        let metrics = match self.last {
            Some((then, metrics)) if then == k => metrics,
            _ => self.measured()?,
        };
        self.last = Some((k, metrics));
        let checkpoint = Checkpoint { run, metrics, state };
        self.store.get_or_insert_with(|| store(&self.path, algorithm, seed)).write(&checkpoint)
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
        self.sync_metrics()?;
        self.results.retain(|run| !is_of(run, &outcome.algorithm, outcome.seed));
        self.results.push(result(outcome));
        let text = serde_json::to_string_pretty(&self.results).expect("results are JSON");
        write(&self.path.join("results.json"), text.as_bytes())?;
        let store = self.store.take();
        if outcome.stop != Stop::Interrupted {
            self.sound = self.measured()?;
            store.iter().for_each(Store::remove);
        }
        Ok(())
    }

    /// The folder is complete.
    pub fn finish(&mut self, status: &str) -> Result<()> {
        self.sync_metrics()?;
        if status == "done" {
            // Whoever was killed may have left some; nothing is to go on from.
            let _ = fs::remove_dir_all(self.path.join("checkpoints"));
        }
        self.manifest["status"] = json!(status);
        self.manifest["ended"] = json!(now());
        self.write_manifest()
    }

    fn sync_metrics(&mut self) -> Result<()> {
        let measured = self.measured()?;
        // Most checkpoints come without a new measurement, and waiting for the disk is what they cost.
        if self.synced != Some(measured) {
            let synced = self.metrics.sync_all();
            synced.map_err(|error| cannot_write(&self.path.join("metrics.jsonl"), &error))?;
            self.synced = Some(measured);
        }
        Ok(())
    }

    /// Bytes of measurements so far.
    fn measured(&self) -> Result<u64> {
        let found = self.metrics.metadata().map(|metadata| metadata.len());
        found.map_err(|error| cannot_write(&self.path.join("metrics.jsonl"), &error))
    }

    /// Tells one run of one experiment on one set of data from all others.
    fn run_hash(&self, algorithm: &str, seed: u64) -> Hash {
        let of = |key: &str| &self.manifest[key];
        let what = json!([of("lopa"), of("experiment_digest"), of("data_digest"), algorithm, seed]);
        Sha256::digest(what.to_string()).into()
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
            features: data.map_or(0, |data| data.train.cols()),
            labels: data.map_or(Vec::new(), |data| data.train.labels().to_vec()),
            classes: data.map_or(Vec::new(), |data| data.classes.clone()),
            scaling: data.map_or(data::Scaling::default(), |data| data.scaling.clone()),
        }
    }
}

/// The experiment with nothing left to defaults, and its digest, which does not depend on how
/// often the run notes where it stands.
fn resolved(experiment: &Experiment) -> (String, String) {
    let mut table = experiment.resolved();
    let text = |table: &toml::Table| toml::to_string(table).expect("a table is TOML");
    let resolved = text(&table);
    table.remove("checkpoint");
    (resolved, hex(&Sha256::digest(text(&table))))
}

fn folder_name(experiment: &Experiment) -> String {
    format!("{}-{}", experiment.name, &resolved(experiment).1[..8])
}

/// The models of an algorithm and a seed in a run folder.
pub fn model_path(folder: &Path, algorithm: &str, seed: u64) -> PathBuf {
    folder.join("models").join(format!("{algorithm}-seed{seed}.safetensors"))
}

/// Whether a result is that of an algorithm on a seed.
fn is_of(result: &Value, algorithm: &str, seed: u64) -> bool {
    result["algorithm"] == algorithm && result["seed"] == seed
}

fn store(folder: &Path, algorithm: &str, seed: u64) -> Store {
    Store::new(&folder.join("checkpoints"), &format!("{algorithm}-seed{seed}"))
}

fn open_metrics(folder: &Path) -> Result<File> {
    let path = folder.join("metrics.jsonl");
    let open = OpenOptions::new().append(true).create(true).open(&path);
    open.map_err(|error| cannot_write(&path, &error))
}

fn free(runs: &Path, name: &str) -> Result<PathBuf> {
    fs::create_dir_all(runs).map_err(|error| cannot_write(runs, &error))?;
    for number in 1..10_000 {
        let path = match number {
            1 => runs.join(name),
            _ => runs.join(format!("{name}-{number}")),
        };
        match fs::create_dir(&path) {
            Ok(()) => {
                let models = path.join("models");
                fs::create_dir(&models).map_err(|error| cannot_write(&models, &error))?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(cannot_write(&path, &error)),
        }
    }
    let message = format!("there are 9999 runs called `{name}` already");
    Err(Error::storage("storage/full", message).at(runs.display().to_string()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content).map_err(|error| cannot_write(path, &error))
}
