//! The journal of finished trials and of tested winners: append-only, one line per entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::trial::{Confirmation, Found, Trial};
use lopa::error::{Error, Result};
use lopa::folder::work::{Ledger, Merge, Next, Unit};
use lopa_base::store::output;

/// A line after the first: the result of a unit.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    Test(Confirmation),
    Trial(Trial),
    Found(Found),
}

impl Line {
    /// The name of its unit.
    fn unit(&self) -> String {
        match self {
            Line::Test(test) => test_name(&test.algorithm, test.confirms),
            Line::Trial(trial) => trial_name(&trial.algorithm, trial.rung, trial.trial),
            Line::Found(found) => found_name(&found.algorithm),
        }
    }
}

pub(super) fn trial_name(algorithm: &str, rung: usize, trial: usize) -> String {
    format!("trial-{algorithm}-{rung}-{trial}")
}

pub(super) fn test_name(algorithm: &str, trial: usize) -> String {
    format!("test-{algorithm}-{trial}")
}

pub(super) fn found_name(algorithm: &str) -> String {
    format!("steps-{algorithm}")
}

/// The first line: which search the journal belongs to.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    lopa: String,
    search: String,
}

/// An open journal: the ledger of a search that one process does alone.
pub struct Journal {
    path: PathBuf,
    file: File,
    results: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Journal {
    /// Opens the journal of a search, or starts a new one, and reads its results.
    ///
    /// A last line torn by a crash is dropped.
    pub fn open(path: &Path, search: &str) -> Result<Journal> {
        let failed = |error: std::io::Error| unusable(path, &error);
        let mut file = output::journal(path).map_err(failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let complete = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(complete as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let (results, taken) = (BTreeMap::new(), BTreeSet::new());
        let mut journal = Journal { path: path.to_path_buf(), file, results, taken };
        let lines: Vec<&[u8]> =
            text[..complete].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        let Some((first, rest)) = lines.split_first() else {
            let head = Head { lopa: env!("CARGO_PKG_VERSION").into(), search: search.into() };
            journal.write(&serde_json::to_string(&head).expect("a line is JSON"))?;
            return Ok(journal);
        };
        let head: Head = serde_json::from_slice(first).map_err(|_| foreign(path))?;
        if head.search != search {
            return Err(foreign(path));
        }
        for (number, line) in rest.iter().enumerate() {
            let known: Line = serde_json::from_slice(line).map_err(|error| {
                Error::storage("tune/damaged-journal", format!("not a trial: {error}"))
                    .at(format!("{}:{}", path.display(), number + 2))
                    .hint("delete the line: its trial runs again")
            })?;
            let text = String::from_utf8_lossy(line).into_owned();
            journal.results.insert(known.unit(), text);
        }
        Ok(journal)
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|error| unusable(&self.path, &error))
    }
}

impl Ledger for Journal {
    fn next(&mut self, units: &[Unit]) -> Result<Next> {
        let free = |unit: &Unit| {
            !self.results.contains_key(&unit.name) && !self.taken.contains(&unit.name)
        };
        match units.iter().position(free) {
            Some(at) => {
                self.taken.insert(units[at].name.clone());
                Ok(Next::Do(at))
            }
            None => Ok(Next::Over),
        }
    }

    fn keep(&mut self, unit: &Unit, result: &str) -> Result<()> {
        self.write(result)?;
        self.results.insert(unit.name.clone(), result.into());
        Ok(())
    }

    fn result(&self, unit: &Unit) -> Option<String> {
        self.results.get(&unit.name).cloned()
    }
}

/// The results of all parts of a shared search, copied to the journal: another search resumes from there.
pub struct Merged {
    /// The parts.
    pub parts: Merge,
    /// The journal.
    pub journal: Journal,
}

impl Ledger for Merged {
    fn next(&mut self, units: &[Unit]) -> Result<Next> {
        let next = self.parts.next(units)?;
        for unit in units {
            if let (None, Some(result)) = (self.journal.result(unit), self.parts.result(unit)) {
                self.journal.keep(unit, &result)?;
            }
        }
        Ok(next)
    }

    fn keep(&mut self, unit: &Unit, result: &str) -> Result<()> {
        self.journal.keep(unit, result)
    }

    fn result(&self, unit: &Unit) -> Option<String> {
        self.journal.result(unit)
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
