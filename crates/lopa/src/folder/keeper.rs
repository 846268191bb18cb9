//! Going on with an experiment where it stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::data::Data;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::folder::RunFolder;
use crate::run::checkpoint::State;
use crate::run::trace::Row;
use crate::run::{Context, Observer, Outcome, World};

/// Runs what is missing of an experiment into its folder below `runs`, while somebody listens; false
/// if interrupted.
pub fn complete(
    experiment: &Experiment,
    data: Option<&Data>,
    (runs, threads): (&Path, usize),
    context: &Context,
    listener: &mut dyn Observer,
) -> Result<(PathBuf, bool)> {
    let folder = RunFolder::resume(runs, experiment, data, threads)?;
    let path = folder.path().to_path_buf();
    let mut keeper = Keeper::new(folder, listener);
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

/// Keeps what comes of a run in its folder, and passes on how it goes.
pub struct Keeper<'a> {
    /// The run's folder.
    pub folder: RunFolder,
    listener: &'a mut dyn Observer,
}

impl<'a> Keeper<'a> {
    /// Keeps a run in a folder, while somebody listens.
    pub fn new(folder: RunFolder, listener: &'a mut dyn Observer) -> Keeper<'a> {
        Keeper { folder, listener }
    }
}

impl Observer for Keeper<'_> {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        self.folder.world(seed, world)
    }

    fn ended(&mut self, algorithm: &str, seed: u64) -> Result<Option<Outcome>> {
        self.listener.ended(algorithm, seed)?;
        Ok(self.folder.ended(algorithm, seed))
    }

    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.listener.begin(algorithm, seed);
    }

    fn kept(&mut self, algorithm: &str, seed: u64) -> Result<Option<State>> {
        let mut refused = Vec::new();
        let state = self.folder.kept(algorithm, seed, &mut |text| refused.push(text))?;
        refused.iter().for_each(|text| self.listener.warn(text));
        if state.is_some() || !refused.is_empty() {
            self.listener.resumed(state.as_ref().map(|state| state.progress.k));
        }
        Ok(state)
    }

    fn keep(&mut self, algorithm: &str, seed: u64, state: State) -> Result<()> {
        self.folder.keep(algorithm, seed, state)
    }

    fn warn(&mut self, text: &str) {
        self.listener.warn(text);
    }

    fn progress(&mut self, iteration: u64, fraction: f64) {
        self.listener.progress(iteration, fraction);
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        self.folder.row(algorithm, seed, row)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        self.listener.end(outcome)?;
        self.folder.end(outcome)
    }
}
