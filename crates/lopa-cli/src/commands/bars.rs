//! Shows the progress of runs: a bar on a terminal, an occasional line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lopa::experiment::Experiment;
use lopa::run::trace::Stop;
use lopa::run::{Listener, Outcome};

use crate::output::Output;

/// Time between two lines where there is no terminal for a bar.
const INTERVAL: Duration = Duration::from_secs(10);

/// Shows the progress of the runs of an experiment.
pub struct Bars<'a> {
    output: &'a Output,
    bar: Option<ProgressBar>,
    runs: usize,
    number: usize,
    name: String,
    printed: Instant,
    warned: Vec<String>,
}

impl<'a> Bars<'a> {
    pub fn new(output: &'a Output, experiment: &Experiment) -> Bars<'a> {
        Bars {
            output,
            bar: None,
            runs: experiment.algorithms.len() * experiment.run.seeds.len(),
            number: 0,
            name: String::new(),
            printed: Instant::now(),
            warned: Vec::new(),
        }
    }

    /// Prints a line about this run, above the bar if there is one.
    fn note(&self, text: &str) {
        let line = || self.output.note(&format!("{}: {text}", self.name));
        match &self.bar {
            Some(bar) => bar.suspend(line),
            None => line(),
        }
    }
}

impl Listener for Bars<'_> {
    fn skip(&mut self, _: &str, _: u64) {
        self.number += 1;
    }

    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.number += 1;
        self.name = format!("[{}/{}] {algorithm}, seed {seed}", self.number, self.runs);
        if self.output.bars() {
            let template = "{prefix:<30} {bar:30.cyan/dim} {percent:>3}% {msg} eta {eta}";
            let style =
                ProgressStyle::with_template(template).expect("the template is well-formed");
            let bar = ProgressBar::new(1000).with_style(style.progress_chars("━╸─"));
            bar.set_prefix(self.name.clone());
            self.bar = Some(bar);
        }
        self.printed = Instant::now();
    }

    fn resumed(&mut self, from: Option<u64>) {
        match from {
            Some(k) => self.note(&format!("resumes from iteration {k}")),
            None => self.note("starts from the beginning"),
        }
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
        } else if self.printed.elapsed() > INTERVAL {
            self.note(&format!("{:.0} %, iteration {iteration}", 100.0 * fraction));
            self.printed = Instant::now();
        }
    }

    fn end(&mut self, outcome: &Outcome) {
        match self.bar.take() {
            Some(bar) => bar.finish_and_clear(),
            None if outcome.stop == Stop::Interrupted => {}
            None => self.note(&format!("ended after {:.1} s", outcome.row.seconds)),
        }
        if outcome.stop == Stop::Diverged {
            let why = outcome.diagnosis.as_deref().unwrap_or("its values are not finite");
            let k = outcome.row.iteration;
            self.output.warn(&format!("{} diverged at iteration {k}: {why}", self.name));
        }
    }
}
