//! Operations on the disk, one step at a time. Everything that a run reads, writes, syncs, renames
//! and removes goes through here, so that tests can make any step fail, and can compute the state
//! after a power cut.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::limits;

/// A step, before it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A file is read.
    Read(&'a Path),
    /// A folder is made.
    MakeFolder(&'a Path),
    /// A file is opened for writing, and created if there is none; truncated if `empty`.
    Open {
        /// The file.
        path: &'a Path,
        /// Whether it is truncated.
        empty: bool,
    },
    /// Bytes are appended to a file.
    Write(&'a Path, &'a [u8]),
    /// A file is truncated to this many bytes.
    Cut(&'a Path, u64),
    /// The content of a file is synced.
    Sync(&'a Path),
    /// The names in a folder are synced.
    SyncFolder(&'a Path),
    /// A file is renamed in its folder.
    Rename(&'a Path, &'a Path),
    /// A file is removed.
    Remove(&'a Path),
    /// An empty folder is removed.
    RemoveFolder(&'a Path),
}

/// The outcome of a step.
#[derive(Debug)]
pub enum Verdict {
    /// It is taken.
    Go,
    /// It is skipped, but reported as taken.
    Skip,
    /// It fails.
    Fail(io::Error),
    /// A write fails in its middle; any other step fails.
    Half(io::Error),
}

type Watch = Box<dyn FnMut(Step) -> Verdict>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Calls `run`; `watch` decides the outcome of every step that it takes on this thread.
pub fn watched<R>(watch: impl FnMut(Step) -> Verdict + 'static, run: impl FnOnce() -> R) -> R {
    /// Stops watching, even if `run` panics.
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            WATCH.with_borrow_mut(|watch| *watch = None);
        }
    }
    WATCH.with_borrow_mut(|now| *now = Some(Box::new(watch)));
    let _stop = Stop;
    run()
}

fn judge(step: Step) -> Verdict {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map_or(Verdict::Go, |watch| watch(step)))
}

/// Takes a step, if it may be taken.
fn take<R: Default>(step: Step, run: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    match judge(step) {
        Verdict::Go => run(),
        Verdict::Skip => Ok(R::default()),
        Verdict::Fail(error) | Verdict::Half(error) => Err(error),
    }
}

/// The content of a file, up to the limit of data.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    take(Step::Read(path), || limits::read_bytes(path, limits::DATA))
}

/// Makes a folder and those above it that are missing; when this returns, they survive a power cut.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = path.parent().unwrap_or(Path::new(""));
    make_folder(above)?;
    match make_new_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }?;
    sync_folder(above)
}

/// Makes a new folder.
pub fn make_new_folder(path: &Path) -> io::Result<()> {
    take(Step::MakeFolder(path), || fs::create_dir(path))
}

/// Syncs the names in a folder; an empty path is the current one.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    take(Step::SyncFolder(path), || match cfg!(unix) {
        true => File::open(path)?.sync_all(),
        false => Ok(()),
    })
}

/// Renames a file in its folder.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    take(Step::Rename(from, to), || fs::rename(from, to))
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    take(Step::Remove(path), || fs::remove_file(path))
}

/// Removes the files in a folder that have names of run files, and the folder if it is then empty.
/// Targets of links are never removed.
pub fn remove_ours(path: &Path, ours: impl Fn(&str) -> bool) -> io::Result<()> {
    if !is_real_folder(path) {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name().to_str().is_some_and(&ours) {
            remove(&entry.path())?;
        }
    }
    match fs::read_dir(path)?.next() {
        None => take(Step::RemoveFolder(path), || fs::remove_dir(path)),
        Some(_) => Ok(()),
    }
}

/// Whether a folder is there itself, not behind a link.
pub fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Opens a file of ours to write from its end on; it is made if there is none, and `empty` if its content goes. A
/// link is not followed: where the content goes it is removed, elsewhere it is refused.
pub fn open(path: &Path, empty: bool) -> io::Result<File> {
    if empty && own(path).is_err() {
        fs::remove_file(path)?;
    }
    own(path)?;
    let mut file = appending().create(true).open(path)?;
    // Once more: a link may have come in between.
    own(path)?;
    if empty {
        file.set_len(0)?;
    }
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

/// Opens files to write from their end on. On Windows, a file that is open for appending alone can neither be locked nor
/// cut: there it is opened for writing, and `open` and `Log::cut` go to its end.
pub(super) fn appending() -> OpenOptions {
    let mut options = File::options();
    match cfg!(windows) {
        true => options.write(true).truncate(false),
        false => options.append(true),
    };
    options
}

/// Fails if there is something at a path that is not a regular file.
fn own(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a link, or no regular file, and lopa writes only to files of its own: remove it",
        )),
        _ => Ok(()),
    }
}

/// A file that is appended to.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// [Opens](open) a file.
    pub fn open(path: &Path, empty: bool) -> io::Result<Log> {
        let file = take(Step::Open { path, empty }, || open(path, empty).map(Some))?;
        let file = file.ok_or_else(|| io::Error::other("a file must be opened"))?;
        Ok(Log { path: path.to_path_buf(), file })
    }

    /// Creates a file; fails if there is one. Of several processes that create it at the same time, one succeeds,
    /// also on file systems of the network.
    pub fn create(path: &Path) -> io::Result<Log> {
        let create = || File::options().append(true).create_new(true).open(path).map(Some);
        let file = take(Step::Open { path, empty: true }, create)?;
        let file = file.ok_or_else(|| io::Error::other("a file must be opened"))?;
        Ok(Log { path: path.to_path_buf(), file })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match judge(Step::Write(&self.path, bytes)) {
            Verdict::Go => self.file.write_all(bytes),
            Verdict::Skip => Ok(()),
            Verdict::Fail(error) => Err(error),
            Verdict::Half(error) => {
                self.file.write_all(&bytes[..bytes.len() / 2])?;
                Err(error)
            }
        }
    }

    /// Truncates the file to this many bytes.
    pub fn cut(&mut self, length: u64) -> io::Result<()> {
        take(Step::Cut(&self.path, length), || {
            self.file.set_len(length)?;
            self.file.seek(SeekFrom::End(0)).map(|_| ())
        })
    }

    /// When this returns, the content survives a power cut.
    pub fn sync(&self) -> io::Result<()> {
        take(Step::Sync(&self.path), || self.file.sync_all())
    }

    /// Its length in bytes.
    pub fn length(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    /// Locks the file for this process; false if another has locked it.
    pub fn lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
