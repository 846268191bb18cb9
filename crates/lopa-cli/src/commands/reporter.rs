//! Writes the run folder and shows progress as a run goes.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lopa::checkpoint::State;
use lopa::error::Result;
use lopa::experiment::Experiment;
use lopa::folder::RunFolder;
use lopa::run::{Observer, Outcome, World};
use lopa::trace::{Row, Stop};

use crate::output::Output;

/// Between two lines on progress where there is no terminal for a bar.
const PAUSE: Duration = Duration::from_secs(10);

/// Writes the run folder and shows progress as a run goes.
pub struct Reporter<'a> {
    pub folder: RunFolder,
    output: &'a Output,
    bar: Option<ProgressBar>,
    runs: usize,
    done: usize,
    name: String,
    spoke: Instant,
    warned: Vec<String>,
}

impl<'a> Reporter<'a> {
    pub fn new(output: &'a Output, folder: RunFolder, experiment: &Experiment) -> Reporter<'a> {
        Reporter {
            folder,
            output,
            bar: None,
            runs: experiment.algorithms.len() * experiment.run.seeds.len(),
            done: 0,
            name: String::new(),
            spoke: Instant::now(),
            warned: Vec::new(),
        }
    }
}

impl Reporter<'_> {
    /// A line above the bar, if there is one.
    fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.output.note(text)),
            None => self.output.note(text),
        }
    }
}

impl Observer for Reporter<'_> {
    fn world(&mut self, seed: u64, world: &World) -> Result<()> {
        self.folder.world(seed, world)
    }

    fn ended(&mut self, algorithm: &str, seed: u64) -> Result<Option<Outcome>> {
        let outcome = self.folder.ended(algorithm, seed);
        self.done += usize::from(outcome.is_some());
        Ok(outcome)
    }

    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.name = format!("[{}/{}] {algorithm}, seed {seed}", self.done + 1, self.runs);
        if self.output.bars() {
            let template = "{prefix:<30} {bar:30.cyan/dim} {percent:>3}% {msg} eta {eta}";
            let style =
                ProgressStyle::with_template(template).expect("the template is well-formed");
            let bar = ProgressBar::new(1000).with_style(style.progress_chars("━╸─"));
            bar.set_prefix(self.name.clone());
            self.bar = Some(bar);
        }
        self.spoke = Instant::now();
    }

    fn kept(&mut self, algorithm: &str, seed: u64) -> Result<Option<State>> {
        let mut refused = Vec::new();
        let state = self.folder.kept(algorithm, seed, &mut |text| refused.push(text))?;
        refused.iter().for_each(|text| self.warn(text));
        let from = match &state {
            Some(state) => format!("goes on from iteration {}", state.progress.k),
            None if refused.is_empty() => return Ok(None),
            None => "starts from its beginning".into(),
        };
        self.note(&format!("{}: {from}", self.name));
        Ok(state)
    }

    fn keep(&mut self, algorithm: &str, seed: u64, state: State) -> Result<()> {
        self.folder.keep(algorithm, seed, state)
    }

    fn warn(&mut self, text: &str) {
        if self.warned.iter().any(|warned| warned == text) {
            return;
        }
        self.warned.push(text.to_string());
        match &self.bar {
            Some(bar) => bar.suspend(|| self.output.warn(text)),
            None => self.output.warn(text),
        }
    }

    fn progress(&mut self, iteration: u64, fraction: f64) {
        if let Some(bar) = &self.bar {
            let rate = iteration as f64 / bar.elapsed().as_secs_f64().max(1e-9);
            bar.set_message(format!("{rate:.0} iterations/s"));
            bar.set_position((fraction * 1000.0) as u64);
        } else if self.spoke.elapsed() > PAUSE {
            let percent = 100.0 * fraction;
            self.output.note(&format!("{}: {percent:.0} %, iteration {iteration}", self.name));
            self.spoke = Instant::now();
        }
    }

    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) -> Result<()> {
        self.folder.row(algorithm, seed, row)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<()> {
        self.done += 1;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if outcome.stop == Stop::Diverged {
            let why = outcome.diagnosis.as_deref().unwrap_or("its values are not numbers");
            let k = outcome.row.iteration;
            self.output.warn(&format!("{} diverged at iteration {k}: {why}", self.name));
        }
        self.folder.end(outcome)
    }
}
