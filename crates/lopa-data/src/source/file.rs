//! Finds files, unpacks them while reading, and limits their size.

use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::Where;
use crate::error::{Error, Result};
use crate::store::limits;

/// The largest file that is read, in bytes after unpacking.
pub fn max_bytes() -> u64 {
    limits::at_least(limits::DATA)
}

/// The size to which a packed file of this many bytes may unpack: a small file must not fill the
/// memory.
pub fn unpacked_limit(packed_bytes: u64) -> u64 {
    packed_bytes.saturating_mul(100).max(limits::at_least(limits::UNPACKED))
}

/// The error for a file that unpacks to more.
pub fn unpacks_too_far(packed_bytes: u64, remedy: &str) -> Error {
    let message =
        format!("{packed_bytes} packed bytes unpack to more than {}", unpacked_limit(packed_bytes));
    Error::data("data/too-large", message).hint(remedy)
}

/// A file, unpacked while it is read.
pub struct Input {
    /// The file's name in messages.
    pub name: String,
    packed_bytes: u64,
    limit: u64, // of the unpacked content
    reader: Box<dyn Read>,
    at: u64,
}

impl Input {
    /// Opens a file, plain or gzipped.
    pub fn open(path: &Path) -> Result<Input> {
        let name = path.display().to_string();
        let unreadable = |why: String| {
            Error::data("data/unreadable", format!("the file cannot be read: {why}")).at(&name)
        };
        let file = limits::open(path).map_err(|error| unreadable(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| unreadable(error.to_string()))?;
        if !metadata.is_file() {
            return Err(unreadable("it is a folder".into()));
        }
        let mut file = std::io::BufReader::with_capacity(1 << 16, file);
        let mut first = Vec::new();
        let opening = (&mut file).take(2).read_to_end(&mut first);
        opening.map_err(|error| unreadable(error.to_string()))?;
        let gzip = first == [0x1f, 0x8b];
        let whole = Cursor::new(first).chain(file);
        let reader: Box<dyn Read> =
            if gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        let packed_bytes = metadata.len();
        let limit = if gzip { unpacked_limit(packed_bytes) } else { u64::MAX };
        Ok(Input { name, packed_bytes, limit, reader, at: 0 })
    }

    /// The next `count` bytes, or fewer if the file ends.
    pub fn take(&mut self, count: u64) -> Result<Vec<u8>> {
        // Reserves no more than the size of the file, whatever its header claims.
        let mut bytes = Vec::with_capacity(count.min(self.packed_bytes) as usize);
        let most = count.min((self.limit - self.at).saturating_add(1));
        let read = (&mut self.reader).take(most).read_to_end(&mut bytes);
        let at = self.at + bytes.len() as u64;
        if read.is_ok() && at > self.limit {
            let remedy = "if that is right, unpack it with `gunzip` and name the plain file, or raise the \
                limit with `--max-bytes`";
            return Err(unpacks_too_far(self.packed_bytes, remedy).at(byte(&self.name, at)));
        }
        read.map_err(|error| {
            let (id, what) = match error.kind() {
                ErrorKind::UnexpectedEof => ("data/truncated", "the gzip file ends too early"),
                ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                    ("data/bad-gzip", "the gzip file is damaged")
                }
                _ => ("data/unreadable", "the file cannot be read"),
            };
            Error::data(id, format!("{what}: {error}"))
                .at(byte(&self.name, at))
                .hint("get the file again")
        })?;
        self.at = at;
        Ok(bytes)
    }

    /// The rest of the file, which may have at most `limit` bytes.
    pub fn rest(&mut self, limit: u64) -> Result<Vec<u8>> {
        let bytes = self.take(limit.saturating_add(1))?;
        match bytes.len() as u64 > limit {
            false => Ok(bytes),
            true => Err(Error::data(
                "data/too-large",
                format!("the file is larger than the limit of {limit} bytes"),
            )
            .at(byte(&self.name, self.at))
            .hint(limits::RAISE)),
        }
    }
}

/// A position in a binary file, for messages.
pub fn byte(name: &str, at: u64) -> String {
    format!("{name}, byte {at}")
}

/// The name and the unpacked contents of a file.
pub fn read(path: &Path) -> Result<(String, Vec<u8>)> {
    let mut input = Input::open(path)?;
    let bytes = input.rest(max_bytes())?;
    Ok((input.name, bytes))
}

/// Finds a user's file: from the current folder, else from the data folder.
pub fn find(path: &str, place: &Where) -> Result<PathBuf> {
    let tried = [PathBuf::from(path), place.directory.join(path)];
    tried.iter().find(|path| path.exists()).cloned().ok_or_else(|| {
        let tried = tried.map(|path| format!("`{}`", path.display())).join(" and ");
        Error::data("data/missing", format!("there is no file `{path}`: looked for {tried}")).hint(
            "give the path relative to the current folder, or to the folder given with --data",
        )
    })
}

/// Finds the files of a known data set, each plain or with `.gz`, all in one of the folders.
pub fn find_set(
    set: &str,
    folders: &[&str],
    names: &[&str],
    place: &Where,
) -> Result<Vec<PathBuf>> {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| place.directory.join(folder)).collect();
    let found = |folder: &PathBuf, name: &str| {
        [name.to_string(), format!("{name}.gz")]
            .iter()
            .map(|name| folder.join(name))
            .find(|path| path.exists())
    };
    let mut best: Option<Vec<&str>> = None;
    for folder in &folders {
        let paths: Vec<Option<PathBuf>> = names.iter().map(|name| found(folder, name)).collect();
        let absent: Vec<&str> =
            names.iter().zip(&paths).filter(|(_, path)| path.is_none()).map(|(n, _)| *n).collect();
        if absent.is_empty() {
            return Ok(paths.into_iter().flatten().collect());
        }
        if best.as_ref().is_none_or(|best| absent.len() < best.len()) {
            best = Some(absent);
        }
    }
    Err(missing(set, &best.unwrap_or_default(), &folders))
}

/// The error for missing files of a known data set.
pub fn missing(set: &str, names: &[&str], folders: &[PathBuf]) -> Error {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let folders: Vec<String> = folders.iter().map(|f| format!("`{}`", f.display())).collect();
    let (names, folders) = (names.join(", "), folders.join(" and in "));
    Error::data("data/missing", format!("the data set `{set}` lacks {names}: looked in {folders}"))
        .hint(format!(
            "get it with `lopa data fetch {set}`, or give the folder that holds it with --data"
        ))
}
