//! The journal of finished trials and of tested winners: append-only, one line per entry.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::confirm::Confirmation;
use super::space::Candidate;
use lopa::error::{Error, Result};
use lopa::store::output;

/// A finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The label of the algorithm.
    pub algorithm: String,
    /// The stage of successive halving; 0 in other searches.
    pub rung: usize,
    /// The number of the trial, from 0.
    pub trial: usize,
    /// The values tried.
    pub params: Candidate,
    /// The mean of the metric over the seeds; `None` if a run diverged or was refused.
    pub value: Option<f64>,
}

/// A line after the first.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Test(Confirmation),
    Trial(Trial),
}

/// The first line: which search the journal belongs to.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    lopa: String,
    search: String,
}

/// An open journal.
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal of a search, or starts a new one, and reads its finished trials and tests.
    ///
    /// A last line torn by a crash is dropped.
    pub fn open(path: &Path, search: &str) -> Result<(Journal, Vec<Trial>, Vec<Confirmation>)> {
        let failed = |error: std::io::Error| unusable(path, &error);
        let mut file = output::journal(path).map_err(failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let complete = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(complete as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut journal = Journal { path: path.to_path_buf(), file };
        let lines: Vec<&[u8]> =
            text[..complete].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        let Some((first, rest)) = lines.split_first() else {
            let head = Head { lopa: env!("CARGO_PKG_VERSION").into(), search: search.into() };
            journal.write(&head)?;
            return Ok((journal, Vec::new(), Vec::new()));
        };
        let head: Head = serde_json::from_slice(first).map_err(|_| foreign(path))?;
        if head.search != search {
            return Err(foreign(path));
        }
        let read = |(number, line): (usize, &&[u8])| {
            serde_json::from_slice(line).map_err(|error| {
                Error::storage("tune/damaged-journal", format!("not a trial: {error}"))
                    .at(format!("{}:{}", path.display(), number + 2))
                    .hint("delete the line: its trial runs again")
            })
        };
        let (mut trials, mut tests) = (Vec::new(), Vec::new());
        for line in rest.iter().enumerate().map(read) {
            match line? {
                Line::Trial(trial) => trials.push(trial),
                Line::Test(test) => tests.push(test),
            }
        }
        Ok((journal, trials, tests))
    }

    /// Appends a finished trial.
    pub fn append(&mut self, trial: &Trial) -> Result<()> {
        self.write(trial)
    }

    /// Appends the outcome of a test.
    pub fn confirm(&mut self, test: &Confirmation) -> Result<()> {
        self.write(test)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(line).expect("a line is JSON");
        text.push(b'\n');
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        written.map_err(|error| unusable(&self.path, &error))
    }
}

fn foreign(path: &Path) -> Error {
    Error::storage("tune/other-search", "the journal belongs to another search")
        .at(path.display().to_string())
        .hint("the experiment has changed: delete the journal, or choose another with --journal")
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::storage("storage/write", format!("cannot use the journal: {error}"))
        .at(path.display().to_string())
        .hint("choose another file with --journal")
}
