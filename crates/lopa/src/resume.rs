//! Going on with an experiment where it stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::checkpoint::State;
use crate::data::Data;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::folder::RunFolder;
use crate::run::{Context, Observer, Outcome, World};
use crate::trace::{Row, Stop};

/// Runs what is missing of an experiment into its folder below `runs`; false if interrupted.
pub fn complete(
    experiment: &Experiment,
    data: Option<&Data>,
    (runs, threads): (&Path, usize),
    context: &Context,
    told: &mut dyn FnMut(&str),
) -> Result<(PathBuf, bool)> {
    let folder = RunFolder::resume(runs, experiment, data, threads)?;
    let path = folder.path().to_path_buf();
    let mut keeper = Keeper { folder, told, warned: Vec::new() };
    let done = experiment.run_on(data, context, &mut keeper);
    let interrupted = context.interrupt.load(Ordering::Relaxed);
    keeper.folder.finish(match (&done, interrupted) {
        (Err(_), _) => "failed",
        (Ok(_), true) => "interrupted",
        (Ok(_), false) => "done",
    })?;
    done?;
    Ok((path, !interrupted))
}

/// Keeps what comes of a run.
struct Keeper<'a> {
    folder: RunFolder,
    told: &'a mut dyn FnMut(&str),
    warned: Vec<String>,
}

impl Observer for Keeper<'_> {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        self.folder.world(seed, world)
    }

    fn ended(&mut self, algorithm: &str, seed: u64) -> Result<Option<Outcome>> {
        Ok(self.folder.ended(algorithm, seed))
    }

    fn kept(&mut self, algorithm: &str, seed: u64) -> Result<Option<State>> {
        let told = &mut *self.told;
        self.folder.kept(algorithm, seed, &mut |refused| told(&format!("  warning: {refused}")))
    }

    fn keep(&mut self, algorithm: &str, seed: u64, state: State) -> Result<()> {
        self.folder.keep(algorithm, seed, state)
    }

    fn warn(&mut self, text: &str) {
        if !self.warned.iter().any(|warned| warned == text) {
            self.warned.push(text.to_string());
            (self.told)(&format!("  warning: {text}"));
        }
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        self.folder.row(algorithm, seed, row)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        if outcome.stop == Stop::Interrupted {
            return Ok(());
        }
        let Outcome { algorithm, seed, row, .. } = outcome;
        let how = if outcome.stop == Stop::Diverged { "diverged" } else { "done" };
        (self.told)(&format!("  {algorithm}, seed {seed}: {how} after {:.1} s", row.seconds));
        self.folder.end(outcome)
    }
}
