//! How much is read of a file: a small mistake, or somebody's malice, must not fill the memory. Whoever has
//! larger files raises all limits at once (`--max-bytes`).

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files with data, and models.
pub const DATA: u64 = (1 << 32) - 1;
/// Graphs, and other text about networks.
pub const GRAPH: u64 = 512 << 20;
/// What a small packed file may unpack to.
pub const UNPACKED: u64 = 64 << 20;
/// Rosters.
pub const ROSTER: u64 = 64 << 20;
/// Experiment files.
pub const EXPERIMENT: u64 = 16 << 20;

/// The remedy for a file that is larger.
pub const RAISE: &str = "if that is right, raise the limit with `--max-bytes`";

static RAISED: AtomicU64 = AtomicU64::new(0);

/// Raises every limit that is lower to so many bytes, in this process.
pub fn raise(bytes: u64) {
    RAISED.fetch_max(bytes, Ordering::Relaxed);
}

/// A limit, or what it was raised to.
pub fn at_least(usual: u64) -> u64 {
    usual.max(RAISED.load(Ordering::Relaxed))
}

/// Opens a file for reading. What has no end or no writer, as devices and pipes, is not opened: that alone
/// can block for ever.
pub fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?;
    match kind.is_file() || kind.is_dir() {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}
