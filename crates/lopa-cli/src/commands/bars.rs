//! Shows the progress of runs: a bar on a terminal, an occasional line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lopa::experiment::Experiment;
use lopa::run::trace::{Row, Stop};
use lopa::run::{Listener, Outcome};

use crate::output::{Output, number, plain};

/// Time between two lines where there is no terminal for a bar.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// Shows the progress of the runs of an experiment.
pub struct Bars<'a> {
    output: &'a Output,
    bar: Option<ProgressBar>,
    runs: usize,
    number: usize,
    name: String,
    printed: Instant,
    /// When the first measurement of the run was done.
    begun: Instant,
    warned: Vec<String>,
    /// Labels whose divergence was explained, and the seed.
    explained: Vec<(String, u64)>,
    /// The privacy budget that the run has spent, in words.
    spent: String,
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
            begun: Instant::now(),
            warned: Vec::new(),
            explained: Vec::new(),
            spent: String::new(),
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
            let template = "{prefix:<30} {bar:30.cyan/dim} {percent:>3}% {msg}";
            let style =
                ProgressStyle::with_template(template).expect("the template is well-formed");
            let bar = ProgressBar::new(1000).with_style(style.progress_chars("━╸─"));
            bar.set_prefix(plain(&self.name).into_owned());
            self.bar = Some(bar);
        }
        (self.printed, self.begun) = (Instant::now(), Instant::now());
    }

    fn row(&mut self, _: &str, _: u64, row: &Row) {
        if row.iteration == 0 {
            self.begun = Instant::now();
        }
        let spent = row.value("epsilon").map(|epsilon| format!(", ε = {} spent", number(epsilon)));
        self.spent = spent.unwrap_or_default();
    }

    fn measuring(&mut self, done: usize, of: usize, exact: bool) {
        let what = if exact { "measuring by exact solves" } else { "measuring" };
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{what}, {done} of {of} nodes"));
            bar.tick();
        } else if self.printed.elapsed() > INTERVAL {
            self.note(&format!("{what}, {done} of {of} nodes"));
            self.printed = Instant::now();
        }
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
        // The elapsed time includes measuring, and so does the time left.
        let left = remaining(self.begun.elapsed().as_secs_f64(), fraction);
        if let Some(bar) = &self.bar {
            let rate = iteration as f64 / self.begun.elapsed().as_secs_f64().max(1e-9);
            bar.set_message(format!("{rate:.0} iterations/s, {left} left{}", self.spent));
            bar.set_position((fraction * 1000.0) as u64);
        } else if self.printed.elapsed() > INTERVAL {
            let percent = 100.0 * fraction;
            self.note(&format!("{percent:.0} %, iteration {iteration}, {left} left{}", self.spent));
            self.printed = Instant::now();
        }
    }

    fn end(&mut self, outcome: &Outcome) {
        match self.bar.take() {
            Some(bar) => bar.finish_and_clear(),
            None if outcome.stop == Stop::Interrupted => {}
            None => {
                self.note(&format!("ended after {}", time(outcome.row.seconds, outcome.measuring)))
            }
        }
        if outcome.stop == Stop::Diverged {
            let (label, k) = (&outcome.algorithm, outcome.row.iteration);
            let known = self.explained.iter().find(|(known, _)| known == label);
            let why = match known {
                Some((_, seed)) => format!(", as with seed {seed}"),
                None => {
                    let why = outcome.diagnosis.as_deref().unwrap_or("its values are not finite");
                    format!(": {why}")
                }
            };
            if known.is_none() {
                self.explained.push((label.clone(), outcome.seed));
            }
            self.output.warn(&format!("{} diverged at iteration {k}{why}", self.name));
        }
    }
}

/// The time of the iterations, and that of measuring if it is noticeable.
pub fn time(seconds: f64, measuring: f64) -> String {
    match measuring < 0.05 {
        true => format!("{seconds:.1} s"),
        false => format!("{seconds:.1} s, and {measuring:.1} s of measuring"),
    }
}

/// The time left after this fraction took this many seconds.
fn remaining(seconds: f64, fraction: f64) -> String {
    let left = (seconds / fraction.max(1e-9) * (1.0 - fraction)).clamp(0.0, 1e7) as u64;
    match left {
        0..120 => format!("{left} s"),
        120..7200 => format!("{} min", left / 60),
        _ => format!("{} h", left / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_both_parts() {
        assert_eq!(time(84.93, 341.2), "84.9 s, and 341.2 s of measuring");
        assert_eq!(time(0.5, 0.001), "0.5 s");
        assert_eq!([remaining(10.0, 0.25), remaining(600.0, 0.5)], ["30 s", "10 min"]);
        assert_eq!(remaining(3.0, 0.0), "2777 h");
    }
}
