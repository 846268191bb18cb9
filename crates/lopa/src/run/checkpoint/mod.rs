//! Checkpoints: where a run stands between two iterations, in a file that can be trusted.
//!
//! ```text
//! "lopa checkpoint\n"   16 bytes
//! version               a number, 2
//! section 0             the run: what it is a run of, how far it has come
//! section 1 … m         a node each: counters, variables
//! section m + 1         links, where nodes are peers that keep for themselves; else empty
//!
//! section   length of its content, content, SHA-256 of (its number, length, content)
//! ```
//!
//! Numbers are 64 bits, little-endian. A file that is cut, changed or too long is refused.

mod node;
mod store;

pub use node::{restore, save};
pub use store::Store;

use sha2::{Digest, Sha256};

use crate::engine::Progress;
use crate::store::bytes::{Hash, Reader, Writer};

const MAGIC: &[u8; 16] = b"lopa checkpoint\n";
const VERSION: u64 = 2;

/// Where a run stands between two iterations.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// How far it has come.
    pub progress: Progress,
    /// The how manieth state it is that was kept of the run.
    pub serial: u64,
    /// Seconds of computing.
    pub seconds: f64,
    /// What whoever follows the run keeps: measurements due, the budget, how variables grow.
    pub record: Vec<u8>,
    /// Each node that is kept here: see [`save`].
    pub nodes: Vec<Vec<u8>>,
    /// What a peer must know of its links; empty where one process keeps all nodes.
    pub links: Vec<u8>,
}

/// A state, and what of a run folder belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Tells one run of one experiment on one set of data from all others.
    pub run: Hash,
    /// Bytes of measurements that were written by then.
    pub metrics: u64,
    /// Where the run stood.
    pub state: State,
}

impl Checkpoint {
    /// The content of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let State { progress, serial, seconds, record, nodes, links } = &self.state;
        let mut head = Writer::default();
        head.raw(&self.run);
        let Progress { k, exchanges, floats } = *progress;
        for value in [self.metrics, k, exchanges, floats, *serial] {
            head.u64(value);
        }
        head.f64(*seconds);
        head.bytes(record);
        head.u64(nodes.len() as u64);
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

    /// Reads a file's content back, or says what is wrong with it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint, &'static str> {
        let mut file = Reader::new(bytes);
        if file.raw(MAGIC.len()) != Some(MAGIC) {
            return Err("it is not a checkpoint");
        }
        if file.u64() != Some(VERSION) {
            return Err("another version wrote it");
        }
        let head = section(&mut file, 0)?;
        let (mut checkpoint, nodes) = read_head(head).ok_or("its head makes no sense")?;
        for number in 1..=nodes {
            checkpoint.state.nodes.push(section(&mut file, number)?.to_vec());
        }
        checkpoint.state.links = section(&mut file, nodes + 1)?.to_vec();
        file.end().ok_or("it goes on after its end")?;
        Ok(checkpoint)
    }
}

/// The checkpoint without its nodes, and their number.
fn read_head(head: &[u8]) -> Option<(Checkpoint, usize)> {
    let mut head = Reader::new(head);
    let (run, metrics) = (head.hash()?, head.u64()?);
    let progress = Progress { k: head.u64()?, exchanges: head.u64()?, floats: head.u64()? };
    let (serial, seconds, record) = (head.u64()?, head.f64()?, head.bytes()?.to_vec());
    let nodes = usize::try_from(head.u64()?).ok()?;
    head.end()?;
    let (nodes_kept, links) = (Vec::new(), Vec::new());
    let state = State { progress, serial, seconds, record, nodes: nodes_kept, links };
    Some((Checkpoint { run, metrics, state }, nodes))
}

fn section<'a>(file: &mut Reader<'a>, number: usize) -> Result<&'a [u8], &'static str> {
    let content = file.bytes().ok_or("it was cut short")?;
    match file.hash() {
        Some(sum) if sum == checksum(number, content) => Ok(content),
        Some(_) => Err("it was damaged"),
        None => Err("it was cut short"),
    }
}

fn checksum(number: usize, content: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update((number as u64).to_le_bytes());
    hasher.update((content.len() as u64).to_le_bytes());
    hasher.update(content);
    hasher.finalize().into()
}
