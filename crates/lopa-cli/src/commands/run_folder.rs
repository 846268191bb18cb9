//! The run folder of a command: found or made, then shown with how its runs ended.

use std::path::Path;

use lopa::data::Data;
use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::folder::{LISTED, RunFolder, Status};
use lopa::run::trace::Stop;
use lopa::run::{Outcome, trajectory_digest};
use serde_json::json;

use super::summary;
use crate::args::Resume;
use crate::output::Output;

/// The note to a user who stopped a run.
pub const INTERRUPTED: &str = "interrupted: run the same command to resume";

/// The location of a run folder.
pub struct Destination<'a> {
    /// The folder of run folders.
    pub out: &'a Path,
    pub resume: Resume,
    /// The number of threads, for the manifest.
    pub threads: usize,
}

impl Destination<'_> {
    /// The folder of an unfinished run of the same experiment, or a new one.
    pub fn open(
        &self,
        experiment: &Experiment,
        data: Option<&Data>,
        output: &Output,
    ) -> Result<RunFolder> {
        let &Destination { out, resume, threads } = self;
        if resume != Resume::Never
            && let Some(folder) = RunFolder::unfinished(out, experiment, data)?
        {
            output.note(&format!("resuming {}", folder.path().display()));
            return Ok(folder);
        }
        if resume == Resume::Require {
            let message = "no run of this experiment to resume: none was started with the same \
                file, data and version, or all have finished or are still running";
            return Err(Error::storage("storage/nothing-to-resume", message)
                .at(out.display().to_string())
                .hint("start one by leaving out `--resume require`"));
        }
        RunFolder::create(out, experiment, data, threads)
    }
}

/// The final status of a folder.
pub fn status(done: &Result<Vec<Outcome>>, signal: Option<u8>) -> Status {
    match (done, signal) {
        (Err(_), _) => Status::Failed,
        (Ok(_), Some(_)) => Status::Interrupted,
        (Ok(_), None) => Status::Done,
    }
}

/// Prints the results; for stopped runs, those so far, without conclusions.
pub fn show(
    experiment: &Experiment,
    outcomes: &[Outcome],
    folder: &RunFolder,
    signal: Option<u8>,
    output: &Output,
) {
    if output.json() {
        let results: Vec<Outcome> = outcomes.iter().map(|run| run.listed(LISTED)).collect();
        output.document(&json!(results));
    } else {
        output.text(&summary::table(outcomes, output));
    }
    let closing = match signal {
        None => summary::closing(experiment, outcomes, folder.manifest()),
        Some(_) => summary::so_far(experiment, outcomes),
    };
    output.note(&format!("\n{closing}"));
    summary::found_steps(experiment, outcomes).into_iter().for_each(|text| output.note(&text));
    output.note(&summary::time(outcomes));
    summary::slow(&experiment.run, outcomes).into_iter().for_each(|text| output.warn(&text));
    if signal.is_none() {
        output.note(&format!("trajectory digest {}", trajectory_digest(outcomes)));
    }
    output.note(&format!("results in {}", folder.path().display()));
    if signal.is_some() {
        output.note(INTERRUPTED);
    }
}

/// The exit code for how runs ended.
pub fn exit_code(outcomes: &[Outcome], signal: Option<u8>) -> u8 {
    let diverged = outcomes.iter().filter(|outcome| outcome.stop == Stop::Diverged).count();
    match (signal, diverged) {
        (Some(code), _) => code,
        (None, 0) => 0,
        (None, n) if n == outcomes.len() => 1,
        (None, _) => 9,
    }
}
