//! The progress of a search: a bar on a terminal, an occasional line elsewhere.

use std::sync::Mutex;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use lopa_study::tune::Trial;

use crate::commands::bars::INTERVAL;
use crate::output::{Output, number};

/// Shows the trials of a search as they end, on any thread.
pub struct Trials<'a> {
    output: &'a Output,
    shown: Mutex<Shown>,
}

struct Shown {
    bar: Option<ProgressBar>,
    rung: usize,
    done: usize, // in this stage
    printed: Instant,
}

impl<'a> Trials<'a> {
    pub fn new(output: &'a Output) -> Trials<'a> {
        let bar = output.bars().then(|| {
            let template = "{prefix:<30} {bar:30.cyan/dim} {pos} of {len} trials {msg}";
            let style =
                ProgressStyle::with_template(template).expect("the template is well-formed");
            ProgressBar::new(0).with_style(style.progress_chars("━╸─"))
        });
        let shown = Shown { bar, rung: 0, done: 0, printed: Instant::now() };
        Trials { output, shown: Mutex::new(shown) }
    }

    /// A trial has ended, out of this many in its stage.
    pub fn ended(&self, trial: &Trial, of: usize) {
        let mut shown = self.shown.lock().expect("nobody panics");
        if shown.rung != trial.rung || shown.done >= of {
            (shown.rung, shown.done) = (trial.rung, 0);
        }
        shown.done += 1;
        let value = trial.value.map_or("diverged".into(), number);
        let (stage, last) = (trial.rung + 1, format!("{}: {value}", trial.algorithm));
        if let Some(bar) = &shown.bar {
            bar.set_prefix(format!("stage {stage}"));
            bar.set_length(of as u64);
            bar.set_position(shown.done as u64);
            bar.set_message(last);
        } else if shown.done == of || shown.printed.elapsed() > INTERVAL {
            self.output.note(&format!("stage {stage}: {} of {of} trials; {last}", shown.done));
            shown.printed = Instant::now();
        }
    }

    /// A remark between trials.
    pub fn note(&self, text: &str) {
        match &self.shown.lock().expect("nobody panics").bar {
            Some(bar) => bar.suspend(|| self.output.note(text)),
            None => self.output.note(text),
        }
    }

    /// The search has ended.
    pub fn finish(&self) {
        if let Some(bar) = &self.shown.lock().expect("nobody panics").bar {
            bar.finish_and_clear();
        }
    }
}
