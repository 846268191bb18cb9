//! Records skipped exchanges before anybody acts on them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use crate::error::Result;
use crate::store::files::cannot_write;

/// A small log that survives a crash.
pub trait Journal: Send {
    /// All that was appended since the last clear; the last record may be truncated.
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
        match std::fs::read(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|error| cannot_write(&self.0, &error)),
        }
    }

    fn append(&mut self, record: &[u8]) -> Result<()> {
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
            file.write_all(record)?;
            file.sync_all()
        };
        append().map_err(|error| cannot_write(&self.0, &error))
    }

    fn clear(&mut self) -> Result<()> {
        let cleared = File::options().write(true).open(&self.0).and_then(|file| file.set_len(0));
        match cleared {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            cleared => cleared.map_err(|error| cannot_write(&self.0, &error)),
        }
    }
}

/// An exchange in which a link is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skip {
    /// The index of the run in the experiment.
    pub job: u32,
    /// The step.
    pub step: u64,
    /// The neighbour.
    pub peer: usize,
}

impl Skip {
    /// A journal record: one line with an end marker.
    pub fn to_bytes(self) -> Vec<u8> {
        format!("\n{} {} {} end\n", self.job, self.step, self.peer).into_bytes()
    }

    /// All complete records of a journal; nobody acted on a truncated one.
    pub fn all(journal: &[u8]) -> Vec<Skip> {
        let read = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            let [job, step, peer, "end"] = words[..] else { return None };
            let (job, step) = (job.parse().ok()?, step.parse().ok()?);
            Some(Skip { job, step, peer: peer.parse().ok()? })
        };
        String::from_utf8_lossy(journal).lines().filter_map(read).collect()
    }
}
