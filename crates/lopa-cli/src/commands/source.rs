//! The experiment that a command line means.

use std::io::ErrorKind;

use lopa::config::Source;
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, Registries};
use lopa_study::tune::TuneSpec;

use crate::args::FileArgs;

/// What `lopa run` runs without a file.
const QUICKSTART: &str = include_str!("../../../../experiments/quickstart.toml");

/// The experiment of a file; all of its sections are checked, also those that a run does not need.
pub fn read_experiment(source: &Source, registries: &Registries) -> Result<Experiment> {
    let experiment = Experiment::read(source, registries)?;
    TuneSpec::of(source, &experiment)?;
    Ok(experiment)
}

/// The file, or the quickstart, with its overrides.
pub fn source(args: &FileArgs) -> Result<Source> {
    let mut source = match &args.file {
        None => Source::new("quickstart", QUICKSTART),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| {
                let message = format!("cannot read the experiment: {error}");
                Error::config("config/unreadable", message).at(&name).hint(match error.kind() {
                    ErrorKind::InvalidData => "an experiment is a TOML file: save it as UTF-8",
                    ErrorKind::NotFound => "without a file, the built-in quickstart is meant",
                    _ => "name a TOML file that can be read",
                })
            })?;
            Source::new(name, text)
        }
    };
    source.sets = args.sets.clone();
    Ok(source)
}
