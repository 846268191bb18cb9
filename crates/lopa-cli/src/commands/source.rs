//! The experiment that a command line names.

use std::path::{Path, PathBuf};

use lopa::config::{Params, Source};
use lopa::error::{Error, Fault, Result, nearest};
use lopa::experiment::{Experiment, Registries, RunSpec, open};
use lopa_study::tune::TuneSpec;

use crate::args::{ExperimentArgs, FileArgs};
use crate::features::can_measure;

/// The experiment of `lopa run` without a file.
const QUICKSTART: &str = include_str!("../../experiments/quickstart.toml");

/// The experiment of the file, on the seeds and the device of the command line if there are any.
pub fn experiment(args: &ExperimentArgs, registries: &Registries) -> Result<Experiment> {
    let mut source = source(&args.file)?;
    source.sets.extend(args.device.iter().map(|device| format!("run.device=\"{device}\"")));
    let mut experiment = read_experiment(&source, registries)?;
    if !args.seeds.is_empty() {
        experiment.run.seeds = args.seeds.clone();
    }
    check(&experiment.run, "--seed")?;
    Ok(experiment)
}

/// Fails if the value of `flag` is invalid in the experiment.
pub fn check(run: &RunSpec, flag: &str) -> Result<()> {
    let wrong = |fault: Fault| Error::config("config/out-of-range", fault.message).at(flag);
    run.check().map_err(wrong)
}

/// The experiment of a file; checks all sections, also those that a run does not need.
pub fn read_experiment(source: &Source, registries: &Registries) -> Result<Experiment> {
    let experiment = Experiment::read(source, registries)?;
    TuneSpec::of(source, &experiment)?;
    can_measure(&experiment.run)?;
    Ok(experiment)
}

/// The file, or the quickstart, with its overrides.
pub fn source(args: &FileArgs) -> Result<Source> {
    let mut source = match &args.file {
        None => Source::new("quickstart", QUICKSTART),
        Some(path) => {
            refuse_data(path)?;
            open(path).map_err(|error| match (error.id, path.exists()) {
                ("config/unreadable", false) => error.hint(missing(path)),
                _ => error,
            })?
        }
    };
    source.sets = args.sets.clone();
    Ok(source)
}

/// Refuses a file of data, by its ending.
fn refuse_data(path: &Path) -> Result<()> {
    let name = path.display().to_string();
    let lower = name.to_lowercase();
    let ending = lower.trim_end_matches(".gz").rsplit('.').next().unwrap_or_default();
    match ["csv", "tsv", "data", "libsvm", "svm", "npz", "npy"].contains(&ending) {
        false => Ok(()),
        true => {
            Err(Error::config("config/unreadable", "this is a file of data, not an experiment")
                .at(&name)
                .hint(format!(
                    "`lopa init --data {name}` writes an experiment on it, to be run then"
                )))
        }
    }
}

/// The remedy for a missing file: one beside it with nearly the same name.
fn missing(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
    let toml = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(toml).collect();
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let names: Vec<String> = files.iter().filter_map(|path| name(path)).collect();
    let typed = name(path).unwrap_or_default();
    match nearest(&typed, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{}`?", path.with_file_name(near).display()),
        None => "leave the file out to use the built-in quickstart".into(),
    }
}
