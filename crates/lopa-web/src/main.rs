//! The program inside lopa's web page. The page's workers run it as WebAssembly (`wasm32-wasip1`); on any other
//! platform it is an ordinary program with the same output.
//!
//! ```text
//! lopa-web run FILE          runs an experiment; events on standard output, one JSON object per line
//! lopa-web digest FILE       the trajectory digest of the entries of a results.json
//! lopa-web report FOLDER …   the report of run folders, as HTML on standard output
//! ```
//!
//! The page supplies arguments, files and standard output, and nothing else: see `page/wasi.js`.

#![forbid(unsafe_code)]

mod events;
mod spread;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lopa::error::{Error, Result};
use lopa::experiment::{self, Experiment, Registries};
use lopa::run::{Context, Outcome, trajectory_digest};
use lopa_base::store::limits::{self, read_text};
use lopa_report::html::Report;

use crate::events::{Events, say};
use crate::spread::Spread;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["run", path] => run(Path::new(path)),
        ["digest", path] => digest(Path::new(path)),
        ["report", ref folders @ ..] if !folders.is_empty() => report(folders),
        _ => {
            Err(Error::config("usage", "usage: lopa-web run FILE | digest FILE | report FOLDER …"))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Runs every algorithm of an experiment file.
fn run(path: &Path) -> Result<()> {
    let experiment = Experiment::read(&experiment::open(path)?, &Registries::default())?;
    let spread = Spread::default();
    let context = Context { probe: Some(&spread), ..Context::default() };
    let data = experiment.load_data(&context)?;
    let mut world = events::Worlds { data: data.as_ref() };
    experiment.run_on(data.as_ref(), &context, &mut world, &mut Events { spread: &spread })?;
    Ok(())
}

/// Makes the report that `lopa report` makes.
fn report(folders: &[&str]) -> Result<()> {
    let paths: Vec<_> = folders.iter().map(PathBuf::from).collect();
    say(&Report::read(&paths, None)?.html())
}

/// The digest that `lopa run` prints at the end of these runs.
fn digest(path: &Path) -> Result<()> {
    let damaged =
        |what: String| Error::storage("storage/damaged", what).at(path.display().to_string());
    let text = read_text(path, limits::DATA).map_err(|error| damaged(error.to_string()))?;
    let found: Result<Vec<Outcome>, _> = serde_json::from_str(&text);
    let runs = found.map_err(|error| damaged(error.to_string()))?;
    say(&format!("{}\n", trajectory_digest(&runs)))
}
