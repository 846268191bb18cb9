//! The experiment that a command line names.

use lopa::config::{Params, Source};
use lopa::error::{Error, Fault, Result};
use lopa::experiment::{Experiment, Registries, RunSpec, open};
use lopa_study::tune::TuneSpec;

use crate::args::{ExperimentArgs, FileArgs};
use crate::features::can_measure;

/// What `lopa run` runs without a file.
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

/// Fails if what `flag` put into an experiment is invalid there.
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
        Some(path) => open(path).map_err(|error| match error.id {
            "config/unreadable" => error.hint("leave the file out to use the built-in quickstart"),
            _ => error,
        })?,
    };
    source.sets = args.sets.clone();
    Ok(source)
}
