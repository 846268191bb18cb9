//! The last two checkpoints of a run, on disk.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::{Checkpoint, State};
use crate::error::Result;
use crate::store::bytes::Hash;
use crate::store::disk;
use crate::store::files::{cannot_write, replace};

/// Two files, written alternately: if the newer is damaged, the older is still valid.
pub struct Store {
    files: [PathBuf; 2],
    next: usize,
}

impl Store {
    /// The files `<name>.0` and `<name>.1` in a folder.
    pub fn new(folder: &Path, name: &str) -> Store {
        Store { files: [0, 1].map(|turn| folder.join(format!("{name}.{turn}"))), next: 0 }
    }

    /// The run whose checkpoint has this file name.
    pub fn run_of(file: &str) -> Option<&str> {
        file.strip_suffix(".0").or_else(|| file.strip_suffix(".1"))
    }

    /// Writes a checkpoint over the older of the two.
    pub fn write(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let path = &self.files[self.next];
        replace(path, &checkpoint.to_bytes()).map_err(|error| cannot_write(path, &error))?;
        self.next = 1 - self.next;
        Ok(())
    }

    /// The newest valid checkpoint of a run that is `usable` and whose number of bytes of measurements is in
    /// `measured`; `warn` receives the files that are not valid, and why.
    pub fn newest(
        &mut self,
        run: &Hash,
        measured: RangeInclusive<u64>,
        usable: &dyn Fn(&State) -> bool,
        warn: &mut dyn FnMut(String),
    ) -> Option<Checkpoint> {
        let newest = self.valid(run, measured, warn).into_iter();
        let newest = newest.filter(|(_, checkpoint)| usable(&checkpoint.state));
        let age = |Checkpoint { state, .. }: &Checkpoint| (state.progress.k, state.serial);
        let (turn, checkpoint) = newest.max_by_key(|(_, checkpoint)| age(checkpoint))?;
        self.next = 1 - turn;
        Some(checkpoint)
    }

    /// All valid checkpoints, each with its file.
    pub fn valid(
        &self,
        run: &Hash,
        measured: RangeInclusive<u64>,
        warn: &mut dyn FnMut(String),
    ) -> Vec<(usize, Checkpoint)> {
        let mut valid = Vec::new();
        for (turn, path) in self.files.iter().enumerate() {
            let read = match disk::read(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(error.to_string()),
                Ok(bytes) => Checkpoint::from_bytes(&bytes).map_err(String::from),
            };
            let ours = read.and_then(|checkpoint| match &checkpoint {
                other if other.run != *run => Err("it belongs to another run".into()),
                cut if !measured.contains(&cut.metrics) => {
                    Err("its measurements are missing".into())
                }
                _ => Ok(checkpoint),
            });
            match ours {
                Ok(this) => valid.push((turn, this)),
                Err(why) => warn(format!("{} is not used: {why}", path.display())),
            }
        }
        valid
    }

    /// Removes both files, after the end of the run; those behind a link stay.
    pub fn remove(&self) {
        // A leftover checkpoint does no harm: the run has a result, and is not resumed.
        let here = |path: &&PathBuf| path.parent().is_some_and(disk::is_real_folder);
        self.files.iter().filter(here).for_each(|path| drop(disk::remove(path)));
    }
}
