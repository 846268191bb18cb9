//! Atomic replacement of files: written to a temporary file, synced, then renamed.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Points at which the writing of a file can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The temporary file exists and is empty.
    Created,
    /// Half of it is written.
    HalfWritten,
    /// All of it is written.
    Written,
    /// All of it is on disk.
    Synced,
    /// It has its final name.
    Renamed,
    /// Its name is on disk.
    DirectorySynced,
}

impl Point {
    /// All of them, in order.
    pub const ALL: [Point; 6] = [
        Point::Created,
        Point::HalfWritten,
        Point::Written,
        Point::Synced,
        Point::Renamed,
        Point::DirectorySynced,
    ];
}

/// Replaces the file at `path` by `content`; on failure the file keeps its old content.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_watched(path, content, &mut |_| Ok(()))
}

/// The same; `at` is called at every point and may fail there.
pub fn replace_watched(
    path: &Path,
    content: &[u8],
    at: &mut dyn FnMut(Point) -> io::Result<()>,
) -> io::Result<()> {
    let partial = partial(path);
    let written = write(&partial, content, at).and_then(|()| {
        fs::rename(&partial, path)?;
        at(Point::Renamed)?;
        sync_directory(path.parent().unwrap_or(Path::new(".")))?;
        at(Point::DirectorySynced)
    });
    if written.is_err() {
        // Frees space on a full disk; the error that matters is returned.
        let _ = fs::remove_file(&partial);
    }
    written
}

fn write(
    partial: &Path,
    content: &[u8],
    at: &mut dyn FnMut(Point) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = File::create(partial)?;
    at(Point::Created)?;
    let (first, second) = content.split_at(content.len() / 2);
    file.write_all(first)?;
    at(Point::HalfWritten)?;
    file.write_all(second)?;
    at(Point::Written)?;
    file.sync_all()?;
    at(Point::Synced)
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    path.with_file_name(name)
}

/// The text of a file of at most so many bytes. What has no end or no writer, as devices and pipes, is
/// not read.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let kind = fs::metadata(path)?;
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    let length = File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    match length as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        )),
        false => Ok(text),
    }
}

/// Syncs a directory; an empty path is the current one.
pub fn sync_directory(folder: &Path) -> io::Result<()> {
    let here = folder.as_os_str().is_empty();
    match cfg!(unix) {
        true => File::open(if here { Path::new(".") } else { folder })?.sync_all(),
        false => Ok(()),
    }
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
