//! Checkpoints: the state of a run between two iterations, in a file with checksums.
//!
//! ```text
//! "lopa checkpoint\n"   16 bytes
//! version               4
//! section 0             the run: its identity and progress
//! section 1 … m         one node each: counters, variables, what it and its neighbours hold of each other
//! section m + 1         the links of a peer; empty in other engines
//!
//! section   length of the content, content, SHA-256 of (section number, length, content)
//! ```
//!
//! Numbers are 64 bits, little-endian. A file that is truncated, changed or too long is refused.

mod interval;
mod node;
mod store;

pub(super) use interval::Interval;
pub use node::{restore, save};
pub use store::Store;

use sha2::{Digest, Sha256};

use crate::engine::Progress;
use crate::engine::messages::Tally;
use crate::error::Error;
use crate::store::bytes::{Hash, Reader, Writer};

const MAGIC: &[u8; 16] = b"lopa checkpoint\n";
const VERSION: u64 = 4;

/// The state of a run between two iterations.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Its progress.
    pub progress: Progress,
    /// The index of this state among those kept of the run.
    pub serial: u64,
    /// Seconds of computation.
    pub seconds: f64,
    /// State of the recorder: measurements due, the budget, growth of variables.
    pub record: Vec<u8>,
    /// The nodes kept here: see [`save`].
    pub nodes: Vec<Vec<u8>>,
    /// State of a peer's links; empty if one process keeps all nodes.
    pub links: Vec<u8>,
    /// The chapter of a run among peers that it belongs to, from 0: see [`crate::engine::Chapter`].
    pub chapter: u64,
}

/// A state and the part of the run folder that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Identifies the run: its experiment, data, algorithm and seed.
    pub run: Hash,
    /// Bytes of measurements written by then.
    pub metrics: u64,
    /// The state of the run.
    pub state: State,
}

impl Checkpoint {
    /// Encodes the content of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let State { progress, serial, seconds, record, nodes, links, chapter } = &self.state;
        let mut head = Writer::default();
        head.raw(&self.run);
        let Progress { k, exchanges, floats, bytes, tally } = *progress;
        let Tally { sent, lost, late, slept } = tally;
        for value in [self.metrics, k, exchanges, floats, bytes, sent, lost, late, slept, *serial] {
            head.u64(value);
        }
        head.f64(*seconds);
        head.bytes(record);
        head.u64(nodes.len() as u64);
        // Left out where no node has left, as in files of earlier builds.
        if *chapter > 0 {
            head.u64(*chapter);
        }
        let mut file = Writer::default();
        file.raw(MAGIC);
        file.u64(VERSION);
        let head = head.done();
        for (number, content) in [&head].into_iter().chain(nodes).chain([links]).enumerate() {
            file.bytes(content);
            file.raw(&checksum(number, content));
        }
        file.done()
    }

    /// Decodes the content of a file; the error describes the damage.
    pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint, &'static str> {
        let mut file = Reader::new(bytes);
        if file.raw(MAGIC.len()) != Some(MAGIC) {
            return Err("it is not a checkpoint");
        }
        if file.u64() != Some(VERSION) {
            return Err("it was written by another version");
        }
        let head = section(&mut file, 0)?;
        let (mut checkpoint, nodes) = read_head(head).ok_or("its header is malformed")?;
        for number in 1..=nodes {
            checkpoint.state.nodes.push(section(&mut file, number)?.to_vec());
        }
        checkpoint.state.links = section(&mut file, nodes + 1)?.to_vec();
        file.end().ok_or("it has bytes after its end")?;
        Ok(checkpoint)
    }
}

/// The checkpoint without its nodes, and the number of nodes.
fn read_head(head: &[u8]) -> Option<(Checkpoint, usize)> {
    let mut head = Reader::new(head);
    let (run, metrics) = (head.hash()?, head.u64()?);
    let (k, exchanges, floats, bytes) =
        (head.count()?, head.count()?, head.count()?, head.count()?);
    let (sent, lost, late, slept) = (head.count()?, head.count()?, head.count()?, head.count()?);
    let tally = Tally { sent, lost, late, slept };
    let progress = Progress { k, exchanges, floats, bytes, tally };
    let (serial, seconds, record) = (head.u64()?, head.f64()?, head.bytes()?.to_vec());
    let nodes = usize::try_from(head.u64()?).ok()?;
    let chapter = head.u64().unwrap_or(0);
    head.end()?;
    let (nodes_kept, links) = (Vec::new(), Vec::new());
    let state = State { progress, serial, seconds, record, nodes: nodes_kept, links, chapter };
    Some((Checkpoint { run, metrics, state }, nodes))
}

fn section<'a>(file: &mut Reader<'a>, number: usize) -> Result<&'a [u8], &'static str> {
    let content = file.bytes().ok_or("it was truncated")?;
    match file.hash() {
        Some(sum) if sum == checksum(number, content) => Ok(content),
        Some(_) => Err("it was damaged"),
        None => Err("it was truncated"),
    }
}

fn checksum(number: usize, content: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update((number as u64).to_le_bytes());
    hasher.update((content.len() as u64).to_le_bytes());
    hasher.update(content);
    hasher.finalize().into()
}

/// The error for an intact checkpoint that belongs to a different run.
pub fn misfit() -> Error {
    let message = "the checkpoint does not fit the run: its variables differ";
    Error::storage("storage/checkpoint", message)
        .hint("start a run of its own with `--resume never`")
}
