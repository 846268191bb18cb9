//! Files that a user names. Every `--out FILE` is written here, and every `--journal FILE` opened here.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{disk, files};
use crate::error::{Error, Result};

/// The most links that a path is followed through, as on Linux.
const LINKS: usize = 40;

/// The usual remedy for a file that cannot be written.
pub const OTHER: &str = "choose another place with --out";

/// Writes a file that a user named; the error has `what` it holds, and the `remedy`.
///
/// `-` is standard output. Links are followed. A target that exists and is no regular file, such as a pipe, is
/// written to. A regular file is replaced as a whole, and keeps its owner and permissions.
pub fn write(path: &Path, content: &[u8], what: &str, remedy: &str) -> Result<()> {
    put(path, content).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space",
            _ => remedy,
        };
        Error::storage("storage/write", format!("cannot write {what}: {error}"))
            .at(path.display().to_string())
            .hint(hint)
    })
}

/// Opens a file that a user named, to read it and to append to it; it and its folder are made if they
/// are missing. Links are followed. Only a regular file can be read back: all others are refused.
pub fn journal(path: &Path) -> io::Result<File> {
    let other = |found: fs::Metadata| !found.is_file();
    if is_stdout(path) || fs::metadata(path).is_ok_and(other) {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file, and could not be read back",
        ));
    }
    let path = end(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    disk::make_folder(folder)?;
    let is_new = !path.exists();
    let file = disk::appending().read(true).create(true).open(&path)?;
    if is_new {
        disk::sync_folder(folder)?;
    }
    Ok(file)
}

/// Whether a path means standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Whether a path is standard output, or neither a regular file nor a folder: its name then does
/// not determine its format.
pub fn is_stream(path: &Path) -> bool {
    let other = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    is_stdout(path) || fs::metadata(path).is_ok_and(other)
}

fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    if is_stdout(path) {
        return print(content);
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(io::Error::new(ErrorKind::IsADirectory, "there is a folder of this name"))
        }
        // The path itself: the target of `/dev/fd/63` has no other name.
        Ok(found) if !found.is_file() => write_to(path, content),
        Ok(found) => {
            let target = fs::canonicalize(path)?;
            match files::replace_like(&target, content, Some(&found)) {
                // Its folder is not ours, or it is mounted by itself.
                Err(error) if in_place(error.kind()) => write_to(&target, content),
                done => done,
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => files::replace(&end(path)?, content),
        Err(error) => Err(error),
    }
}

fn in_place(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::PermissionDenied | ErrorKind::ResourceBusy)
}

/// Writes to the existing file.
fn write_to(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(content)
}

/// A closed pipe is not an error.
fn print(content: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(content).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Where links lead whose target does not exist.
fn end(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    fn write(path: &Path, text: &str) -> Result<()> {
        super::write(path, text.as_bytes(), "the text", OTHER)
    }

    #[test]
    fn a_pipe_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink("pipe", &link).unwrap();
        for path in [&pipe, &link] {
            let reader = std::thread::spawn({
                let pipe = pipe.clone();
                move || {
                    let mut text = String::new();
                    File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                    text
                }
            });
            write(path, "through").unwrap();
            assert_eq!(reader.join().unwrap(), "through");
            assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("below")).unwrap();
        fs::write(at("below/old"), "old").unwrap();
        symlink("below/old", at("a")).unwrap();
        symlink("a", at("b")).unwrap();
        symlink("below/new", at("c")).unwrap();
        symlink("round", at("round")).unwrap();
        write(&at("b"), "new").unwrap();
        write(&at("c"), "made").unwrap();
        assert_eq!(fs::read_to_string(at("below/old")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("below/new")).unwrap(), "made");
        for link in ["a", "b", "c"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
        }
        assert_eq!(write(&at("round"), "").unwrap_err().id, "storage/write");
        assert_eq!(write(&at("below"), "").unwrap_err().id, "storage/write");
        assert_eq!(write(&at("no/such"), "").unwrap_err().id, "storage/write");
    }

    #[test]
    fn a_journal_follows_links_and_refuses_what_cannot_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        symlink("below/new", at("link")).unwrap();
        symlink("pipe", at("to-pipe")).unwrap();
        symlink("round", at("round")).unwrap();
        for text in ["one\n", "two\n"] {
            journal(&at("link")).unwrap().write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(at("below/new")).unwrap(), "one\ntwo\n");
        for path in [at("pipe"), at("to-pipe"), at("round"), folder.path().into(), "-".into()] {
            assert!(journal(&path).is_err(), "{}", path.display());
        }
        assert!(fs::symlink_metadata(at("pipe")).unwrap().file_type().is_fifo());
    }

    #[test]
    fn a_file_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("private");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
