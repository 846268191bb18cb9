//! Writes the run folder and shows progress as a run goes.

use lopa::checkpoint::State;
use lopa::error::Result;
use lopa::experiment::Experiment;
use lopa::folder::RunFolder;
use lopa::run::{Observer, Outcome, World};
use lopa::trace::Row;

use super::bars::Bars;
use crate::output::Output;

/// Writes the run folder and shows progress as a run goes.
pub struct Reporter<'a> {
    pub folder: RunFolder,
    bars: Bars<'a>,
}

impl<'a> Reporter<'a> {
    pub fn new(output: &'a Output, folder: RunFolder, experiment: &Experiment) -> Reporter<'a> {
        Reporter { folder, bars: Bars::new(output, experiment) }
    }
}

impl Observer for Reporter<'_> {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        self.folder.world(seed, world)
    }

    fn ended(&mut self, algorithm: &str, seed: u64) -> Result<Option<Outcome>> {
        self.bars.ended(algorithm, seed)?;
        Ok(self.folder.ended(algorithm, seed))
    }

    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.bars.begin(algorithm, seed);
    }

    fn kept(&mut self, algorithm: &str, seed: u64) -> Result<Option<State>> {
        let mut refused = Vec::new();
        let state = self.folder.kept(algorithm, seed, &mut |text| refused.push(text))?;
        refused.iter().for_each(|text| self.warn(text));
        match &state {
            Some(state) => self.bars.say(&format!("goes on from iteration {}", state.progress.k)),
            None if refused.is_empty() => {}
            None => self.bars.say("starts from its beginning"),
        }
        Ok(state)
    }

    fn keep(&mut self, algorithm: &str, seed: u64, state: State) -> Result<()> {
        self.folder.keep(algorithm, seed, state)
    }

    fn warn(&mut self, text: &str) {
        self.bars.warn(text);
    }

    fn progress(&mut self, iteration: u64, fraction: f64) {
        self.bars.progress(iteration, fraction);
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        self.folder.row(algorithm, seed, row)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        self.bars.end(outcome)?;
        self.folder.end(outcome)
    }
}
