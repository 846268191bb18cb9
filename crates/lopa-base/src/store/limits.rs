//! Limits on the size of files: a mistake or a malicious file must not fill the memory.
//! `--max-bytes` raises all limits at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files with data, and models.
pub const DATA: u64 = (1 << 32) - 1;
/// Graphs, and other text about networks.
pub const GRAPH: u64 = 512 << 20;
/// The size to which a small packed file may unpack.
pub const UNPACKED: u64 = 64 << 20;
/// Rosters.
pub const ROSTER: u64 = 64 << 20;
/// Experiment files.
pub const EXPERIMENT: u64 = 16 << 20;

/// The remedy for a file that is larger.
pub const RAISE: &str = "if that is right, raise the limit with `--max-bytes`";

static RAISED: AtomicU64 = AtomicU64::new(0);

/// Raises every lower limit to this many bytes, in this process.
pub fn raise(bytes: u64) {
    RAISED.fetch_max(bytes, Ordering::Relaxed);
}

/// A limit, possibly raised.
pub fn at_least(usual: u64) -> u64 {
    usual.max(RAISED.load(Ordering::Relaxed))
}

/// Opens a file for reading. Devices and pipes are not opened: opening a pipe without a writer
/// blocks for ever.
pub fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?;
    match kind.is_file() || kind.is_dir() {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The content of a file of at most this many bytes, unless the limit was raised. Devices and pipes
/// are not read: they may have no end or no writer.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let most = at_least(most);
    let mut bytes = Vec::new();
    let length = open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match length as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes, the limit, which `--max-bytes` raises"),
        )),
        false => Ok(bytes),
    }
}

/// The same for a text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, most)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8 from byte {at} on"))
    })
}
