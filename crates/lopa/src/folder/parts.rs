//! The runs of experiments as a work list: one unit per algorithm and seed. Every part keeps its runs in folders of
//! their own, with their checkpoints; a merge copies them to the run folder of the whole experiment.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::writer::{folder_name, resolved};
use super::{Parts, run_name};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::folder::work::{
    Beating, Ledger, Member, Merge, Sender, Unit, interrupted, walk_alone, walk_sent,
};
use crate::store::bytes::hex;
use crate::store::disk;

/// The folder that parts of an experiment's runs share, below the folder of run folders.
pub fn parts_folder(runs: &Path, experiment: &Experiment) -> PathBuf {
    runs.join(format!("{}.parts", folder_name(experiment)))
}

/// The folders of the parts' runs.
const RUNS: &str = "runs";

/// A unit: one algorithm of an experiment on one seed.
#[derive(Serialize, Deserialize)]
struct Task {
    experiment: usize,
    algorithm: usize,
    seed: u64,
}

/// The runs of some experiments, in the order in which one process does them.
fn units(experiments: &[&Experiment]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (at, experiment) in experiments.iter().enumerate() {
        for &seed in &experiment.run.seeds {
            for (algorithm, spec) in experiment.algorithms.iter().enumerate() {
                let task = Task { experiment: at, algorithm, seed };
                let run = format!("{}, seed {seed}", spec.label);
                units.push(Unit {
                    name: format!("{}-{}", folder_name(experiment), run_name(&spec.label, seed)),
                    shown: match experiments.len() {
                        1 => run,
                        _ => format!("{}, {run}", experiment.name),
                    },
                    task: serde_json::to_string(&task).expect("a task is JSON"),
                });
            }
        }
    }
    units
}

/// Identifies the runs of some experiments by this version.
fn work(experiments: &[&Experiment]) -> String {
    let mut hasher = Sha256::new();
    experiments.iter().for_each(|experiment| hasher.update(resolved(experiment).1));
    format!("run {} {}", env!("CARGO_PKG_VERSION"), hex(&hasher.finalize()))
}

/// The experiment of one unit: one algorithm on one seed.
fn alone(experiments: &[&Experiment], task: &str) -> Result<Experiment> {
    let found = || {
        let task: Task = serde_json::from_str(task).ok()?;
        let mut experiment = (*experiments.get(task.experiment)?).clone();
        experiment.algorithms = vec![experiment.algorithms.get(task.algorithm)?.clone()];
        experiment.run.seeds = vec![task.seed];
        Some(experiment)
    };
    found().ok_or_else(|| {
        Error::config("share/other-work", format!("no run of this experiment: {task}"))
            .hint("run all parts with the same experiment and the same version")
    })
}

/// Fails if the runs of an experiment cannot be shared.
fn check(experiments: &[&Experiment]) -> Result<()> {
    let refused = |why: &str, hint: &str| {
        Err(Error::config("config/no-meaning", why).at("--share").hint(hint))
    };
    for experiment in experiments {
        if experiment.time.as_ref().is_some_and(|time| time.compute.calls().is_none()) {
            let why = format!(
                "`{}` measures the time of its calls, and every machine would measure another",
                experiment.name
            );
            return refused(&why, "write the times into the file: `time.compute`");
        }
        if experiment.privacy.is_some() {
            let why = format!(
                "`{}` spends a privacy budget, and its ledger is on one machine",
                experiment.name
            );
            return refused(&why, "run it without `--share`");
        }
    }
    Ok(())
}

/// What a part has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// Runs of this part.
    pub here: usize,
    /// All runs.
    pub of: usize,
}

/// Who does the runs of a part.
pub enum Runs<'a> {
    /// This process: a function that does one run in a folder below the given one, and returns the run folder, or
    /// `None` if it was interrupted.
    Here(&'a mut dyn FnMut(&Experiment, &Path) -> Result<Option<PathBuf>>),
    /// Other processes that use the same folder, each with [`run_of`].
    Sent(&'a Sender<'a>),
}

/// Does a part of the runs of some experiments on a folder that all parts share, and ends when all runs are done.
pub fn share(
    experiments: &[&Experiment],
    (folder, member): (&Path, Member),
    interrupt: &AtomicBool,
    runs: Runs,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Shared> {
    check(experiments)?;
    let units = units(experiments);
    let beating = Beating::join(folder, &work(experiments), member)?;
    let done = match runs {
        Runs::Here(run) => {
            let mut one = |unit: &Unit| run_of(experiments, &unit.task, folder, run);
            walk_alone(beating.part(), &units, interrupt, &mut one, progress)
        }
        Runs::Sent(send) => walk_sent(beating.part(), &units, interrupt, send, progress),
    };
    let here = beating.leave(&done);
    done?;
    Ok(Shared { here, of: units.len() })
}

/// Does the run of a unit; returns the name of its folder, the result of the unit.
pub fn run_of(
    experiments: &[&Experiment],
    task: &str,
    folder: &Path,
    run: &mut dyn FnMut(&Experiment, &Path) -> Result<Option<PathBuf>>,
) -> Result<String> {
    let done = run(&alone(experiments, task)?, &folder.join(RUNS))?.ok_or_else(interrupted)?;
    Ok(done.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// The runs that parts did, for each experiment; fails if one is missing.
pub fn merged(experiments: &[&Experiment], folder: &Path) -> Result<Vec<Parts>> {
    let units = units(experiments);
    let mut merge = Merge::open(folder, &work(experiments))?;
    merge.next(&units)?;
    let mut parts = vec![Parts::new(); experiments.len()];
    for unit in &units {
        let task: Task = serde_json::from_str(&unit.task).expect("a unit of this list");
        let label = experiments[task.experiment].algorithms[task.algorithm].label.clone();
        let name = merge.result(unit).expect("none is missing");
        // Only a folder of the parts, whatever the file says.
        let name = Path::new(&name).file_name().unwrap_or_default();
        parts[task.experiment].insert((label, task.seed), folder.join(RUNS).join(name));
    }
    Ok(parts)
}

/// Removes the folder of parts whose runs are merged. Whatever is not theirs stays.
pub fn remove_parts(folder: &Path) {
    for name in ["claims", "parts", "results", RUNS] {
        let below = folder.join(name);
        if disk::is_real_folder(&below) {
            let _ = std::fs::remove_dir_all(below);
        }
    }
    let _ = disk::remove_ours(folder, |name| name == "work");
}
