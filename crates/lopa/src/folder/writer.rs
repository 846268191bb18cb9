//! Writing a run folder.

use std::collections::BTreeMap;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::ledger::{self, Ledgers};
use super::lock::{LOCK, is_abandoned, lock};
use super::machine::{machine, now};
use super::manifest::{Manifest, Status, WorldNote};
use super::model::{self, About, Model, Spent};
use super::reader::{Lines, RunReader, damaged, read};
use super::{
    CHECKPOINTS, LISTED, MANIFEST, METRICS, MetricsRow, Parts, RESOLVED, RESULTS, checked, line,
    model_path, partition_name, run_name,
};
use crate::config::Choice;
use crate::data::{self, Data, Target};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, PrivacySpec};
use crate::problem::AnyProblem;
use crate::run::checkpoint::{self, Checkpoint, State};
use crate::run::reserved::{Claim, Reservation, Reserved};
use crate::run::trace::{Row, Stop};
use crate::run::{Outcome, Store, World};
use crate::store::bytes::Hash;
use crate::store::bytes::hex;
use crate::store::disk::{self, Log};
use crate::store::files::{PARTIAL, cannot_write, replace};

/// A run folder being written.
pub struct RunFolder {
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) results: Vec<Outcome>,
    pub(super) metrics: Log,
    pub(super) sound: u64, // bytes of the measurements of runs that ended
    pub(super) synced: Option<u64>, // bytes of measurements known to be on disk
    lines: Option<u64>,    // measurements in the file, if counted
    unsaid: Vec<String>,   // damage not yet reported to the user
    pub(super) checkpoints: Option<checkpoint::Store>, // of the current run
    pub(super) last: Option<(u64, u64)>, // iteration of the last checkpoint, bytes of measurements then
    parts: Parts,                        // runs that are elsewhere
    about: ModelParts,
    ledgers: Option<Ledgers>, // of `[privacy]`, while a run spends from them
    _lock: Log,               // held while the folder is being written
}

/// A peer's saved state of the agreement before the runs.
const AGREED: &str = "agreed";

/// The metadata of models.
struct ModelParts {
    problem: Choice<AnyProblem>,
    features: usize,
    labels: Vec<u32>,
    strata: Vec<String>, // the names of the labels' classes or ranges
    classes: Vec<String>,
    outputs: Vec<String>,
    survival: bool,
    scaling: data::Scalings,
    columns: Option<data::Columns>,
    unnamed: data::Unnamed,
    nodes: Vec<String>,
    groups: Option<data::Groups>, // of the training rows, where nodes are groups
    privacy: Option<PrivacySpec>,
    homes: BTreeMap<String, usize>, // the node of each of them, where nodes are not named after them
}

impl RunFolder {
    /// Makes the folder below `runs`. An existing one is left alone: the new one gets a number.
    pub fn create(
        runs: &Path,
        experiment: &Experiment,
        data: Option<&Data>,
        threads: usize,
    ) -> Result<RunFolder> {
        let (resolved, experiment_digest) = resolved(experiment);
        let device = device(experiment)?;
        let (path, lock) = create_free(runs, &folder_name(experiment))?;
        write(&path.join(RESOLVED), resolved.as_bytes())?;
        let computed_by = experiment.problem.build.get::<f64>().computed_by();
        let computed_by = computed_by.map(|text| ("computed_by".to_string(), text.into()));
        let manifest = Manifest {
            lopa: env!("CARGO_PKG_VERSION").into(),
            name: experiment.name.clone(),
            started: now(),
            status: Status::Running,
            experiment_digest,
            data_digest: data.map(data::digest),
            algorithms: experiment.algorithms.iter().map(|spec| spec.label.clone()).collect(),
            classes: data.map(|data| data.classes.clone()),
            nodes: node_names(experiment, data),
            seeds: experiment.run.seeds.clone(),
            final_theta: experiment.run.final_theta,
            worlds: Vec::new(),
            threads,
            machine: machine(device),
            ended: None,
            resumed: Vec::new(),
            left: BTreeMap::new(),
            missed: Vec::new(),
            checksums: [(RESOLVED.to_string(), hex(&Sha256::digest(&resolved)))].into(),
            other: computed_by.into_iter().collect(),
        };
        let folder = RunFolder::new(path, manifest, lock, experiment, data)?;
        folder.write_manifest()?;
        Ok(folder)
    }

    /// A folder without results or measurements.
    pub(super) fn new(
        path: PathBuf,
        manifest: Manifest,
        lock: Log,
        experiment: &Experiment,
        data: Option<&Data>,
    ) -> Result<RunFolder> {
        let file = path.join(METRICS);
        Ok(RunFolder {
            metrics: Log::open(&file, false).map_err(|error| cannot_write(&file, &error))?,
            path,
            manifest,
            results: Vec::new(),
            sound: 0,
            synced: None,
            lines: None,
            unsaid: Vec::new(),
            checkpoints: None,
            last: None,
            parts: Parts::new(),
            about: ModelParts::of(experiment, data),
            ledgers: None,
            _lock: lock,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the others ended a run without this node.
    pub fn has_missed(&self, algorithm: &str, seed: u64) -> bool {
        self.manifest.missed.contains(&run_name(algorithm, seed))
    }

    /// Its manifest so far.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Takes the runs that parts did, each in a folder of its own, instead of doing them.
    pub fn merge(&mut self, parts: Parts) {
        self.parts = parts;
    }

    /// Copies a run from the folder of the part that did it.
    fn copy(&mut self, algorithm: &str, seed: u64) -> Result<Option<Outcome>> {
        let Some(path) = self.parts.get(&(algorithm.to_string(), seed)) else { return Ok(None) };
        let reader = RunReader::open(path)?;
        reader.check()?;
        if reader.manifest().data_digest != self.manifest.data_digest {
            return Err(Error::storage("share/other-work", "a part ran on other data")
                .at(path.display().to_string())
                .hint(
                    "give all parts the same data; delete the folder of the parts to begin anew",
                ));
        }
        let ended = reader.results()?.into_iter().find(|entry| entry.is_of(algorithm, seed));
        let Some(ended) = ended.filter(|ended| ended.stop != Stop::Interrupted) else {
            return Err(damaged(&path.join(RESULTS), None, "the run has no result"));
        };
        let (model, rows) = (reader.model(algorithm, seed)?, reader.rows()?);
        // A merge that was cut off left measurements.
        self.cut_metrics(self.sound)?;
        for row in rows.iter().filter(|row| row.algorithm == algorithm && row.seed == seed) {
            self.row(algorithm, seed, &row.row)?;
        }
        let models = model.x.into_iter().zip(model.theta).collect();
        let outcome = Outcome { models, ..ended };
        self.end(&outcome)?;
        Ok(Some(outcome))
    }

    /// Names the devices of several processes, in rank order.
    pub fn name_devices(&mut self, devices: Vec<String>) -> Result<()> {
        let named = |(rank, device)| format!("process {rank}: {device}");
        let all: Vec<String> = devices.into_iter().enumerate().map(named).collect();
        self.manifest.machine.device = Some(all.join("; "));
        self.write_manifest()
    }

    /// No run is left to do: records the final status.
    pub fn finish(&mut self, status: Status) -> Result<()> {
        self.sync_metrics()?;
        if status == Status::Done {
            self.check_metrics()?;
            // A killed process may have left checkpoints; nothing is left to resume.
            self.remove_checkpoints();
        }
        self.manifest.status = status;
        self.manifest.ended = Some(now());
        self.write_manifest()
    }

    /// The same after an error. A run that a device or a privacy budget refused before the first measurement
    /// leaves no folder.
    pub fn fail(&mut self, error: &Error) -> Result<()> {
        let nothing = self.results.is_empty() && self.measured()? == 0;
        let refused = error.id.starts_with("device/") || error.id.starts_with("privacy/");
        if refused && nothing {
            self.remove();
            return Ok(());
        }
        self.finish(Status::Failed)
    }

    /// Removes the files that a run wrote before its first measurement, and the folder if it is
    /// then empty.
    fn remove(&self) {
        let known = [MANIFEST, RESOLVED, METRICS, RESULTS, AGREED, LOCK];
        let partition = |name: &str| {
            let mut seeds = self.manifest.seeds.iter();
            seeds.any(|&seed| name == partition_name(seed))
        };
        self.remove_checkpoints();
        let _ = disk::remove_ours(&self.path.join("models"), |_| false);
        let _ = disk::remove_ours(&self.path, |name| {
            let name = name.strip_suffix(PARTIAL).unwrap_or(name);
            known.contains(&name) || partition(name)
        });
    }

    /// Removes all checkpoints of this experiment. Those that stay do no harm.
    fn remove_checkpoints(&self) {
        let Manifest { algorithms, seeds, .. } = &self.manifest;
        let is_run = |name: &str| {
            let of = |label: &String| seeds.iter().any(|&seed| name == run_name(label, seed));
            algorithms.iter().any(of)
        };
        let _ = disk::remove_ours(&self.path.join(CHECKPOINTS), |file| {
            let file = file.strip_suffix(PARTIAL).unwrap_or(file);
            checkpoint::Store::run_of(file).is_some_and(is_run)
        });
    }

    /// Fails if the measurements cannot be read back.
    fn check_metrics(&self) -> Result<()> {
        let path = self.path.join(METRICS);
        let damage = Lines::parse(&path, &read(&path)?.unwrap_or_default()).damage;
        damage.map_or(Ok(()), |damage| Err(damage.error))
    }

    fn sync_metrics(&mut self) -> Result<()> {
        let measured = self.measured()?;
        // Most checkpoints come without a new measurement, and their cost is waiting for the disk.
        if self.synced != Some(measured) {
            self.metrics.sync().map_err(|error| self.cannot_measure(&error))?;
            self.synced = Some(measured);
        }
        Ok(())
    }

    /// Bytes of measurements so far.
    pub(super) fn measured(&self) -> Result<u64> {
        self.metrics.length().map_err(|error| self.cannot_measure(&error))
    }

    /// Discards all measurements after this many bytes.
    pub(super) fn cut_metrics(&mut self, length: u64) -> Result<()> {
        (self.synced, self.lines) = (None, None);
        let cut = match self.measured()? {
            measured if measured == length => Ok(()),
            _ => self.metrics.cut(length),
        };
        cut.map_err(|error| self.cannot_measure(&error))
    }

    /// Measurements in the file.
    fn count_lines(&self) -> Result<u64> {
        let count = |bytes: Vec<u8>| bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        match self.lines {
            Some(lines) => Ok(lines),
            None => Ok(read(&self.path.join(METRICS))?.map_or(0, count)),
        }
    }

    /// Discards a finished run: its models are lost, and it is run again.
    fn forget(&mut self, algorithm: &str, seed: u64) -> Result<()> {
        let path = self.path.join(METRICS);
        let bytes = read(&path)?.unwrap_or_default();
        let Lines { rows, .. } = Lines::parse(&path, &bytes);
        // Measurements of unfinished runs are repeated; their checkpoints count these bytes.
        let sound = self.sound;
        let kept = rows.into_iter().filter(|&(_, end)| end as u64 <= sound);
        let kept = kept.filter(|(row, _)| row.algorithm != algorithm || row.seed != seed);
        self.remove_checkpoints();
        self.results.retain(|entry| !entry.is_of(algorithm, seed));
        self.write_results()?;
        self.write_metrics(kept.map(|(row, _)| row))?;
        self.last = None;
        Ok(())
    }

    /// Replaces the measurements by those of runs that ended.
    pub(super) fn write_metrics(&mut self, rows: impl Iterator<Item = MetricsRow>) -> Result<()> {
        let path = self.path.join(METRICS);
        let text: String = (0..).zip(rows).map(|(number, row)| line::write(&row, number)).collect();
        write(&path, text.as_bytes())?;
        self.metrics = Log::open(&path, false).map_err(|error| self.cannot_measure(&error))?;
        self.sound = text.len() as u64;
        (self.synced, self.lines) = (None, None);
        Ok(())
    }

    fn cannot_measure(&self, error: &std::io::Error) -> Error {
        cannot_write(&self.path.join(METRICS), error)
    }

    /// Identifies one run of one experiment on one data set.
    pub(super) fn run_hash(&self, algorithm: &str, seed: u64) -> Hash {
        let Manifest { lopa, experiment_digest, data_digest, .. } = &self.manifest;
        let what = json!([lopa, experiment_digest, data_digest, algorithm, seed]);
        Sha256::digest(what.to_string()).into()
    }

    pub(super) fn write_manifest(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.manifest).expect("names are strings");
        write(&self.path.join(MANIFEST), text.as_bytes())
    }

    fn write_results(&self) -> Result<()> {
        write(&self.path.join(RESULTS), checked::write(&self.results).as_bytes())
    }

    pub(super) fn checkpoints_of(&self, algorithm: &str, seed: u64) -> checkpoint::Store {
        checkpoint::Store::new(&self.path.join(CHECKPOINTS), &run_name(algorithm, seed))
    }
}

impl Store for RunFolder {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        self.about.settle(world);
        if self.manifest.worlds.iter().any(|world| world.seed == seed) {
            return Ok(());
        }
        let mut edges: Vec<_> = world.graph.edges().map(|(i, j)| [i, j]).collect();
        let graph_digest = graph_digest(&edges, world.mixing.rows());
        let partition = &world.partition;
        let ModelParts { labels, strata, .. } = &self.about;
        let divided = !partition.nodes.is_empty();
        if divided {
            let name = partition_name(seed);
            let text = partition.to_json(labels.len()) + "\n";
            write(&self.path.join(&name), text.as_bytes())?;
            self.manifest.checksums.insert(name, hex(&Sha256::digest(text)));
        }
        let listed = world.graph.nodes() <= LISTED;
        if !listed {
            edges = Vec::new();
        }
        let weights = if listed { world.mixing.rows().to_vec() } else { Vec::new() };
        let nodes = if listed { &partition.nodes[..] } else { &[] };
        self.manifest.worlds.push(WorldNote {
            seed,
            graph_digest,
            rho: world.analysis.rho,
            rounds: world.joint,
            estimated: world.analysis.estimated,
            edges,
            weights,
            partition_digest: divided.then(|| partition.digest()),
            samples: nodes.iter().map(Vec::len).collect(),
            classes: strata.clone(),
            class_counts: match listed {
                true => partition.counts(labels, strata.len()),
                false => Vec::new(),
            },
            judged: world.judged.clone(),
        });
        self.write_manifest()
    }

    fn ended(&mut self, algorithm: &str, seed: u64) -> Result<Option<Outcome>> {
        let entry = self.results.iter().find(|entry| entry.is_of(algorithm, seed));
        let Some(entry) = entry else { return self.copy(algorithm, seed) };
        match Model::load(&model_path(&self.path, algorithm, seed)) {
            Ok(model) => {
                let models = model.x.into_iter().zip(model.theta).collect();
                Ok(Some(Outcome { models, ..entry.clone() }))
            }
            // A file that cannot be read now may be intact.
            Err(error) if error.id != model::DAMAGED => Err(error),
            Err(error) => {
                let text = format!("{algorithm}, seed {seed}, runs again: {}", error.message);
                self.unsaid.push(text);
                self.forget(algorithm, seed)?;
                Ok(None)
            }
        }
    }

    /// Measurements after the state are discarded.
    fn kept(
        &mut self,
        algorithm: &str,
        seed: u64,
        usable: &dyn Fn(&State) -> bool,
        refuse: &mut dyn FnMut(String),
    ) -> Result<Option<State>> {
        self.unsaid.drain(..).for_each(&mut *refuse);
        let run = self.run_hash(algorithm, seed);
        let measured = self.sound..=self.measured()?;
        let mut checkpoints = self.checkpoints_of(algorithm, seed);
        let newest = checkpoints.newest(&run, measured, usable, refuse);
        self.checkpoints = Some(checkpoints);
        self.last = newest.as_ref().map(|newest| (newest.state.progress.k, newest.metrics));
        self.cut_metrics(newest.as_ref().map_or(self.sound, |newest| newest.metrics))?;
        Ok(newest.map(|newest| newest.state))
    }

    fn held(
        &mut self,
        algorithm: &str,
        seed: u64,
        usable: &dyn Fn(&State) -> bool,
    ) -> Result<Vec<u64>> {
        let run = self.run_hash(algorithm, seed);
        let measured = self.sound..=u64::MAX;
        let valid = self.checkpoints_of(algorithm, seed).valid(&run, measured, &mut |_| {});
        let usable = valid.iter().map(|(_, checkpoint)| &checkpoint.state).filter(|s| usable(s));
        Ok(usable.map(|state| state.progress.k).collect())
    }

    fn keep(&mut self, algorithm: &str, seed: u64, state: State) -> Result<()> {
        let run = self.run_hash(algorithm, seed);
        let folder = self.path.join(CHECKPOINTS);
        disk::make_folder(&folder).map_err(|error| cannot_write(&folder, &error))?;
        self.sync_metrics()?;
        let k = state.progress.k;
        // A state that is saved again has no more measurements than the first time.
        let metrics = match self.last {
            Some((then, metrics)) if then == k => metrics,
            _ => self.measured()?,
        };
        self.last = Some((k, metrics));
        let mut checkpoints =
            self.checkpoints.take().unwrap_or_else(|| self.checkpoints_of(algorithm, seed));
        let written = checkpoints.write(&Checkpoint { run, metrics, state });
        self.checkpoints = Some(checkpoints);
        written
    }

    fn agreed(&mut self) -> Result<Option<Vec<u8>>> {
        read(&self.path.join(AGREED))
    }

    fn agree(&mut self, bytes: &[u8]) -> Result<()> {
        write(&self.path.join(AGREED), bytes)
    }

    fn reserve(&mut self, origins: &[data::Origin], run: &Reservation) -> Result<Reserved> {
        let (ledgers, reserved) = Ledgers::reserve(&ledger::folder()?, origins, run)?;
        self.ledgers = Some(ledgers);
        Ok(reserved)
    }

    fn claim(&mut self, claim: Claim) -> Result<()> {
        self.ledgers.iter_mut().try_for_each(|ledgers| ledgers.claim(claim))
    }

    fn miss(&mut self, algorithm: &str, seed: u64) -> Result<()> {
        let run = run_name(algorithm, seed);
        if self.manifest.missed.contains(&run) {
            return Ok(());
        }
        self.manifest.missed.push(run);
        self.checkpoints_of(algorithm, seed).remove();
        self.write_manifest()
    }

    fn keeps_models(&self) -> bool {
        true
    }

    fn settled(&mut self, data: &Data) {
        self.about.scaling = data.scaling.clone();
        self.about.columns = data.columns.clone();
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        let row = MetricsRow { algorithm: algorithm.into(), seed, row: row.clone() };
        let number = self.count_lines()?;
        // In one write: a line is either complete or missing.
        let written = self.metrics.write(line::write(&row, number).as_bytes());
        written.map_err(|error| self.cannot_measure(&error))?;
        self.lines = Some(number + 1);
        Ok(())
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        let Outcome { algorithm, seed, .. } = outcome;
        let path = model_path(&self.path, algorithm, *seed);
        model::save(&path, &self.about.about(outcome), &outcome.models, &self.about.scaling)?;
        self.sync_metrics()?;
        self.results.retain(|entry| !entry.is_of(algorithm, *seed));
        self.results.push(outcome.listed(LISTED));
        self.write_results()?;
        if !outcome.chapters.is_empty() {
            let run = run_name(algorithm, *seed);
            self.manifest.left.insert(run, outcome.chapters.clone());
            self.write_manifest()?;
        }
        let checkpoints = self.checkpoints.take();
        if outcome.stop != Stop::Interrupted {
            self.sound = self.measured()?;
            checkpoints.iter().for_each(checkpoint::Store::remove);
        }
        Ok(())
    }
}

/// SHA-256 of edges and weights as JSON, which is never complete in memory.
fn graph_digest(edges: &[[usize; 2]], weights: &[Vec<(usize, f64)>]) -> String {
    struct Hashed(Sha256);
    impl Write for Hashed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut hashed = BufWriter::new(Hashed(Sha256::new()));
    serde_json::to_writer(&mut hashed, &(edges, weights)).expect("numbers are JSON");
    let Hashed(hasher) = hashed.into_inner().ok().expect("a hash is written to memory");
    hex(&hasher.finalize())
}

/// The names of the nodes: those of their files or groups.
fn node_names(experiment: &Experiment, data: Option<&Data>) -> Vec<String> {
    let Some(spec) = &experiment.data else { return Vec::new() };
    let groups = data.and_then(|data| data.train.groups());
    match (&spec.preparation.nodes, groups) {
        (Some(names), _) => names.clone(),
        (None, Some(groups)) if spec.partition.name == "group" => {
            // One group per node, in order; if there are more groups than nodes, some share a node.
            let mut held = vec![false; groups.names.len()];
            groups.of.iter().for_each(|&group| held[group as usize] = true);
            let names = groups.names.iter().zip(held).filter(|(_, held)| *held);
            let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
            if names.len() == experiment.network.nodes { names } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

impl ModelParts {
    fn of(experiment: &Experiment, data: Option<&Data>) -> ModelParts {
        ModelParts {
            problem: experiment.problem.clone(),
            features: data.map_or(0, |data| data.train.cols()),
            labels: data.map_or(Vec::new(), |data| data.train.labels().to_vec()),
            strata: data.map_or(Vec::new(), |data| match data.target() {
                Target::Classes(_) => data.classes.clone(),
                Target::Numbers(_) | Target::Survival => {
                    (1..=data.strata()).map(|k| format!("tenth {k}")).collect()
                }
            }),
            classes: data.map_or(Vec::new(), |data| data.classes.clone()),
            outputs: data.map_or(Vec::new(), |data| data.outputs.clone()),
            survival: data.is_some_and(|data| data.survival),
            scaling: data.map_or(data::Scalings::default(), |data| data.scaling.clone()),
            columns: data.and_then(|data| data.columns.clone()),
            unnamed: data.map_or(Default::default(), |data| data.unnamed.clone()),
            nodes: node_names(experiment, data),
            groups: data
                .and_then(|data| data.train.groups().cloned())
                .filter(|_| grouped(experiment)),
            privacy: experiment.privacy.clone(),
            homes: BTreeMap::new(),
        }
    }

    /// Notes which groups are put together at which node.
    fn settle(&mut self, world: &World) {
        let Some(groups) = self.groups.as_ref().filter(|_| self.nodes.is_empty()) else { return };
        let nodes = world.partition.nodes.iter().chain(&world.holdout);
        let nodes = nodes.zip((0..world.partition.nodes.len()).cycle());
        for (rows, node) in nodes {
            for &row in rows {
                let name = &groups.names[groups.of[row as usize] as usize];
                if !self.homes.contains_key(name) {
                    self.homes.insert(name.clone(), node);
                }
            }
        }
    }

    fn about(&self, outcome: &Outcome) -> About {
        let any = |flag: fn(&data::Scaling) -> bool| self.scaling.as_slice().iter().any(flag);
        About {
            algorithm: outcome.algorithm.clone(),
            seed: outcome.seed,
            problem: self.problem.name.clone(),
            params: self.problem.params().clone(),
            features: self.features,
            classes: self.classes.clone(),
            outputs: self.outputs.clone(),
            survival: self.survival,
            columns: self.columns.clone(),
            unnamed: self.unnamed.clone(),
            diverged: outcome.stop == Stop::Diverged,
            log: any(|scaling| scaling.log),
            row: any(|scaling| scaling.row),
            privacy: self.privacy.as_ref().zip(outcome.row.value("epsilon")).map(
                |(spec, epsilon)| Spent {
                    epsilon,
                    delta: spec.delta,
                    simulated: spec.is_simulated(),
                },
            ),
            fills: any(|scaling| !scaling.fill.is_empty()),
            nodes: self.nodes.clone(),
            groups: self.homes.clone(),
            chapters: outcome.chapters.clone(),
        }
    }
}

/// Whether groups assign rows to nodes.
fn grouped(experiment: &Experiment) -> bool {
    experiment.data.as_ref().is_some_and(|spec| spec.partition.name == "group")
}

/// The experiment with every default filled in, and its digest, which does not depend on how often
/// checkpoints are written.
pub(super) fn resolved(experiment: &Experiment) -> (String, String) {
    let mut table = experiment.resolved();
    let text = |table: &toml::Table| toml::to_string(table).expect("a table is TOML");
    let resolved = text(&table);
    // Runs continue on another device.
    table.remove("checkpoint");
    table.get_mut("run").and_then(toml::Value::as_table_mut).map(|run| run.remove("device"));
    (resolved, hex(&Sha256::digest(text(&table))))
}

/// The name of an experiment's device; `None` for the processor.
pub(super) fn device(experiment: &Experiment) -> Result<Option<String>> {
    experiment.device.build.driver().map(|driver| (driver.describe)(0)).transpose()
}

pub(super) fn folder_name(experiment: &Experiment) -> String {
    format!("{}-{}", experiment.name, &resolved(experiment).1[..8])
}

/// Makes the first of `name`, `name-2`, `name-3`, … that is free, and locks it for this process.
fn create_free(runs: &Path, name: &str) -> Result<(PathBuf, Log)> {
    disk::make_folder(runs).map_err(|error| cannot_write(runs, &error))?;
    for number in 1..10_000 {
        let path = match number {
            1 => runs.join(name),
            _ => runs.join(format!("{name}-{number}")),
        };
        match disk::make_new_folder(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot_write(&path, &error)),
        }
        // If two processes start at the same time, one gets the lock; the check after it stops the
        // other.
        if !is_abandoned(&path) {
            continue;
        }
        let Some(lock) = lock(&path)?.filter(|_| is_abandoned(&path)) else { continue };
        let models = path.join("models");
        // A checkpoint is of no use in a folder that does not survive a power cut.
        let made = disk::make_folder(&models)
            .and_then(|()| disk::sync_folder(runs))
            .and_then(|()| disk::sync_folder(runs.parent().unwrap_or(Path::new("."))));
        made.map_err(|error| cannot_write(&models, &error))?;
        return Ok((path, lock));
    }
    let message = format!("there are 9999 runs called `{name}` already");
    Err(Error::storage("storage/full", message).at(runs.display().to_string()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content).map_err(|error| cannot_write(path, &error))
}
