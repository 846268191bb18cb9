//! Skipped exchanges, written down before anybody acts on them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use crate::error::Result;
use crate::store::files::cannot_write;

/// Keeps a few bytes through a crash.
pub trait Journal: Send {
    /// All that was appended since it was cleared; the last piece may be cut.
    fn read(&mut self) -> Result<Vec<u8>>;

    /// Appends a piece; it is there for good when this returns.
    fn append(&mut self, piece: &[u8]) -> Result<()>;

    /// Forgets everything.
    fn clear(&mut self) -> Result<()>;
}

/// A journal in a file.
pub struct FileJournal(PathBuf);

impl FileJournal {
    /// In the file at this path, which is made when it is needed.
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

    fn append(&mut self, piece: &[u8]) -> Result<()> {
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
            file.write_all(piece)?;
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

/// A skipped exchange of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skip {
    /// The run of the experiment.
    pub job: u32,
    /// The step.
    pub step: u64,
    /// The neighbour.
    pub peer: usize,
}

impl Skip {
    /// As a piece of a journal: a line of its own, which says where it ends.
    pub fn to_bytes(self) -> Vec<u8> {
        format!("\n{} {} {} end\n", self.job, self.step, self.peer).into_bytes()
    }

    /// All whole pieces of a journal; one that is cut was not acted on.
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
