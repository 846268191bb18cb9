//! Who may write to a run folder.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use super::{MANIFEST, METRICS, RESOLVED};
use crate::error::Result;
use crate::store::disk::Log;
use crate::store::files::{PARTIAL, cannot_write};

pub(super) const LOCK: &str = ".lock";

/// Locks a folder for writing until the process ends; `None` if another process has locked it.
pub(super) fn lock(folder: &Path) -> Result<Option<Log>> {
    let path = folder.join(LOCK);
    let taken = || -> io::Result<_> {
        let file = Log::open(&path, false)?;
        Ok(file.lock()?.then_some(file))
    };
    taken().map_err(|error| cannot_write(&path, &error))
}

/// Whether a folder holds only files of a process that ended before it wrote a manifest.
pub(super) fn is_abandoned(folder: &Path) -> bool {
    let start = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        let name = name.strip_suffix(PARTIAL).unwrap_or(name);
        [LOCK, "models", RESOLVED, METRICS].contains(&name)
            || name == MANIFEST && !folder.join(MANIFEST).exists()
    };
    let unmeasured = folder.join(METRICS).metadata().map_or(true, |file| file.len() == 0);
    let models = fs::read_dir(folder.join("models")).into_iter().flatten().count();
    let entries = fs::read_dir(folder).into_iter().flatten();
    let known = entries.flatten().all(|entry| start(&entry.file_name()));
    unmeasured && models == 0 && known && folder.is_dir()
}
