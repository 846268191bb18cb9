//! Records from which exchange on a link is skipped or used again, before any node acts on it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::store::disk::{self, Log};
use crate::store::files::cannot_write;

/// A small log that survives a crash.
pub trait Journal: Send {
    /// Everything appended since the last clear; the last record may be truncated.
    fn read(&mut self) -> Result<Vec<u8>>;

    /// Appends a record; it is durable when this returns.
    fn append(&mut self, record: &[u8]) -> Result<()>;

    /// Removes all records.
    fn clear(&mut self) -> Result<()>;
}

/// A journal in a file.
pub struct FileJournal(PathBuf);

impl FileJournal {
    /// The journal in this file, which is created when needed.
    pub fn new(path: PathBuf) -> FileJournal {
        FileJournal(path)
    }
}

impl Journal for FileJournal {
    fn read(&mut self) -> Result<Vec<u8>> {
        match disk::read(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|error| cannot_write(&self.0, &error)),
        }
    }

    fn append(&mut self, record: &[u8]) -> Result<()> {
        let append = || {
            let folder = self.0.parent().unwrap_or(Path::new("."));
            disk::make_folder(folder)?;
            let is_new = !self.0.exists();
            let mut file = Log::open(&self.0, false)?;
            file.write(record)?;
            file.sync()?;
            if is_new { disk::sync_folder(folder) } else { Ok(()) }
        };
        append().map_err(|error| cannot_write(&self.0, &error))
    }

    fn clear(&mut self) -> Result<()> {
        // Records restored by a power cut would belong to an earlier state.
        let clear = || match self.0.metadata() {
            Ok(found) if found.len() > 0 => Log::open(&self.0, true)?.sync(),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        clear().map_err(|error| cannot_write(&self.0, &error))
    }
}

/// The record of a node's start: each is written before its first notice, so that notices of a later
/// start have larger numbers.
pub fn start_record(job: u32, start: u64) -> Vec<u8> {
    format!("\n{job} {start} start end\n").into_bytes()
}

/// The last start in a run that a journal records; 0 if it records none.
pub fn last_start(journal: &[u8], job: u32) -> u64 {
    let read = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let [of, start, "start", "end"] = words[..] else { return None };
        start.parse().ok().filter(|_| of.parse() == Ok(job))
    };
    String::from_utf8_lossy(journal).lines().filter_map(read).max().unwrap_or(0)
}

/// A step from which on a link is skipped, or used, up to the next such step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The index of the run in the experiment.
    pub job: u32,
    /// The step.
    pub step: u64,
    /// The neighbour.
    pub peer: usize,
    /// Whether the link is used.
    pub used: bool,
}

impl Turn {
    /// A journal record: one line with an end marker.
    pub fn to_bytes(self) -> Vec<u8> {
        let Turn { job, step, peer, used } = self;
        let word = if used { "use" } else { "skip" };
        format!("\n{job} {step} {peer} {word} end\n").into_bytes()
    }

    /// All complete records of a journal; no node acted on a truncated one.
    pub fn all(journal: &[u8]) -> Vec<Turn> {
        let read = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            let [job, step, peer, word, "end"] = words[..] else { return None };
            let used = ["skip", "use"].iter().position(|&known| known == word)? == 1;
            let (job, step) = (job.parse().ok()?, step.parse().ok()?);
            Some(Turn { job, step, peer: peer.parse().ok()?, used })
        };
        String::from_utf8_lossy(journal).lines().filter_map(read).collect()
    }
}
