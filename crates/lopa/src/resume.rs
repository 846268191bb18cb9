//! Going on with an experiment where it stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

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
    for &seed in &experiment.run.seeds {
        let mut rest = experiment.clone();
        rest.run.seeds = vec![seed];
        rest.algorithms.retain(|algorithm| !keeper.folder.has(&algorithm.label, seed));
        if !rest.algorithms.is_empty() {
            rest.run_on(data, context, &mut keeper)?;
        }
        if context.interrupt.load(Ordering::Relaxed) {
            keeper.folder.finish("interrupted")?;
            return Ok((path, false));
        }
    }
    keeper.folder.finish("done")?;
    Ok((path, true))
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
