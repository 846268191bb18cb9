//! Work that several processes share: `--share I/N` and `--merge`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::folder::work::{Member, Share};
use lopa::folder::{Runs, Shared, share};
use serde_json::json;

use super::bars::INTERVAL;
use super::environment::Environment;
use super::run_folder::INTERRUPTED;
use crate::args::ShareArgs;
use crate::output::Output;

/// What this process does of the work.
pub enum Work {
    All,
    Part(Member),
    Merge,
}

impl ShareArgs {
    /// What the arguments request.
    pub fn work(&self) -> Result<Work> {
        let share = match self.share.as_deref() {
            None if self.merge => return Ok(Work::Merge),
            None => return Ok(Work::All),
            Some("job") => Share::of_job(&|name| std::env::var(name).ok())?,
            Some(text) => text.parse()?,
        };
        if !(1.0..=1e6).contains(&self.lease) {
            let message = format!("a lease of {} seconds is not possible", self.lease);
            return Err(Error::config("config/out-of-range", message).at("--lease").hint(
                "choose 1 to 1000000; more than it takes a file to reach the other machines",
            ));
        }
        Ok(Work::Part(Member::here(share, Duration::from_secs_f64(self.lease))))
    }

    /// Fails if a part or a merge is requested where neither has a meaning.
    pub fn refuse(&self, why: &str) -> Result<()> {
        if self.share.is_none() && !self.merge {
            return Ok(());
        }
        Err(Error::config("config/no-meaning", why)
            .at(if self.merge { "--merge" } else { "--share" })
            .hint("leave it out"))
    }
}

/// Shows the progress of all parts in one line, now and then.
pub struct Progress<'a> {
    output: &'a Output,
    part: String,
    last: Mutex<Option<(Instant, String)>>,
}

impl<'a> Progress<'a> {
    pub fn new(output: &'a Output, member: &Member) -> Progress<'a> {
        let part = format!("part {} on {}", member.share, member.host);
        Progress { output, part, last: Mutex::default() }
    }

    /// "part 3/16 on n2"
    pub fn name(&self) -> &str {
        &self.part
    }

    pub fn show(&self, line: &str) {
        let mut last = self.last.lock().expect("nobody panics");
        let due = last.as_ref().is_none_or(|(then, _)| then.elapsed() > INTERVAL);
        if due && last.as_ref().is_none_or(|(_, shown)| shown != line) {
            self.output.note(&format!("{}: {line}", self.part));
            *last = Some((Instant::now(), line.into()));
        }
    }
}

/// Does a part of the runs of some experiments.
pub fn part(
    experiments: &[&Experiment],
    (folder, member): (&Path, Member),
    environment: &Environment,
    run: &mut dyn FnMut(&Experiment, &Path) -> Result<Option<PathBuf>>,
    output: &Output,
) -> Result<ExitCode> {
    let progress = Progress::new(output, &member);
    let (name, number) = (progress.part.clone(), member.share);
    let interrupt = environment.signals.interrupt();
    let show = |line: &str| progress.show(line);
    let done = share(experiments, (folder, member), interrupt, Runs::Here(run), &show);
    let Shared { here, of } = match done.map_err(|error| named(error, &name)) {
        Err(error) if error.id == "run/interrupted" => {
            output.note(INTERRUPTED);
            return Ok(ExitCode::from(environment.signals.code().unwrap_or(130)));
        }
        done => done?,
    };
    if output.json() {
        output.document(
            &json!({ "part": number.to_string(), "done": here, "of": of, "folder": folder }),
        );
    }
    output.note(&format!(
        "{name} did {here} of {of} runs; all are done, and the same command with --merge in place \
                          of --share puts them together"
    ));
    Ok(ExitCode::SUCCESS)
}

/// The error of a part, with its name.
pub fn named(error: Error, part: &str) -> Error {
    match error.id {
        "run/interrupted" | "tune/interrupted" => error,
        _ => Error { message: format!("{part}: {}", error.message), ..error },
    }
}
