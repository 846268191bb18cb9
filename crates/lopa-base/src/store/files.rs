//! Atomic replacement of files: written to a temporary file, synced, then renamed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::disk::{self, Log};
use crate::error::Error;

/// Replaces the file at `path` by `content`; on failure the file keeps its old content, or has the
/// new one, which may not survive a power cut.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_like(path, content, None)
}

/// The same; the new file has the owner and the permissions of `old`.
pub(super) fn replace_like(path: &Path, content: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let partial = partial(path);
    let written = write(&partial, content, old)
        .and_then(|()| disk::rename(&partial, path))
        .and_then(|()| disk::sync_folder(path.parent().unwrap_or(Path::new("."))));
    if written.is_err() {
        // Frees space on a full disk; the first error is returned.
        let _ = disk::remove(&partial);
    }
    written
}

fn write(partial: &Path, content: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mut file = Log::open(partial, true)?;
    // First, so that the new content is never readable by users who could not read the old file.
    old.map_or(Ok(()), |old| give(partial, old))?;
    file.write(content)?;
    file.sync()
}

/// Gives a file the permissions of another, and its owner where the system allows it.
fn give(path: &Path, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, chown};
        let _ = chown(path, Some(old.uid()), Some(old.gid()));
    }
    fs::set_permissions(path, old.permissions())
}

/// Creates a file that only its owner may read; it is complete or absent. Fails if it exists.
pub fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}{PARTIAL}", std::process::id()));
    let partial = path.with_file_name(name);
    let written = open_private(&partial).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()?;
        // Unlike a rename, a link never replaces a file.
        fs::hard_link(&partial, path)
    });
    // `written` has the error that matters.
    let _ = fs::remove_file(&partial);
    written?;
    disk::sync_folder(path.parent().unwrap_or(Path::new(".")))
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The end of a temporary file's name.
pub const PARTIAL: &str = ".partial";

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(PARTIAL);
    path.with_file_name(name)
}

/// The error for a file that cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space; the same command then resumes from the last checkpoint"
        }
        _ => "choose another folder with --out",
    };
    Error::storage("storage/write", format!("cannot write: {error}"))
        .at(path.display().to_string())
        .hint(hint)
}
