//! What each peer sends to all: every peer relays it to its neighbours.

use std::collections::BTreeMap;

use super::frame::{FrameResult, Refusal, payload};
use crate::store::bytes::{Reader, Writer};

/// How many frames of future steps are kept per node.
const EARLY: usize = 4;

/// The broadcasts of all nodes, as frames, by step and node.
#[derive(Debug, Default)]
pub struct Broadcasts {
    nodes: usize,
    frames: BTreeMap<u64, Vec<Option<Vec<u8>>>>,
}

impl Broadcasts {
    /// None yet, of this many nodes.
    pub fn new(nodes: usize) -> Broadcasts {
        Broadcasts { nodes, ..Broadcasts::default() }
    }

    /// Stores a node's broadcast of a step; true if it is new. Only a few are kept of steps after
    /// `now`.
    pub fn insert(&mut self, step: u64, frame: &[u8], now: u64) -> FrameResult<bool> {
        let origin = origin(frame).filter(|&origin| origin < self.nodes).ok_or(Refusal::Shape)?;
        let known = self.frames.get(&step).and_then(|frames| frames[origin].as_ref());
        match known {
            Some(known) if *known == frame => return Ok(false),
            Some(_) => return Err(Refusal::Equivocation),
            // It will be requested when it is needed.
            None if step > now && self.early(now) >= EARLY * self.nodes => return Ok(false),
            None => {}
        }
        let frames = self.frames.entry(step).or_insert_with(|| vec![None; self.nodes]);
        frames[origin] = Some(frame.to_vec());
        Ok(true)
    }

    /// The number of frames of steps after `now`.
    fn early(&self, now: u64) -> usize {
        self.frames
            .range(now.saturating_add(1)..)
            .map(|(_, frames)| frames.iter().flatten().count())
            .sum()
    }

    /// A node whose broadcast of a step is missing, if any.
    pub fn missing(&self, step: u64) -> Option<usize> {
        match self.frames.get(&step) {
            Some(frames) => frames.iter().position(Option::is_none),
            None => Some(0),
        }
    }

    /// What each node sent in a step, when no node is missing.
    pub fn contents(&self, step: u64) -> Vec<Vec<u8>> {
        let frames = self.frames[&step].iter().flatten();
        frames.map(|frame| payload(frame)[8..].to_vec()).collect()
    }

    /// The frames of a range of steps.
    pub fn frames(&self, from: u64, to: u64) -> impl Iterator<Item = &Vec<u8>> {
        self.frames.range(from..to).flat_map(|(_, frames)| frames.iter().flatten())
    }

    /// Discards what is before a step: neither this peer nor a neighbour needs it.
    pub fn trim(&mut self, durable: u64) {
        self.frames = self.frames.split_off(&durable);
    }

    /// Bytes of the frames kept.
    pub fn bytes(&self) -> usize {
        self.frames.values().flatten().flatten().map(Vec::len).sum()
    }

    /// Writes all frames.
    pub fn save(&self, out: &mut Writer) {
        let frames = || {
            self.frames
                .iter()
                .flat_map(|(step, frames)| frames.iter().flatten().map(move |frame| (step, frame)))
        };
        out.u64(frames().count() as u64);
        for (&step, frame) in frames() {
            out.u64(step);
            out.bytes(frame);
        }
    }

    /// Reads what was saved; `None` if it is malformed.
    pub fn restore(nodes: usize, bytes: &mut Reader) -> Option<Broadcasts> {
        let mut broadcasts = Broadcasts::new(nodes);
        for _ in 0..bytes.u64()? {
            let (step, frame) = (bytes.u64()?, bytes.bytes()?);
            broadcasts.insert(step, frame, u64::MAX).ok()?;
        }
        Some(broadcasts)
    }
}

/// The payload of a node's broadcast.
pub fn broadcast(node: usize, content: &[u8]) -> Vec<u8> {
    [&(node as u64).to_le_bytes()[..], content].concat()
}

/// The node that a broadcast comes from.
fn origin(frame: &[u8]) -> Option<usize> {
    usize::try_from(Reader::new(payload(frame)).u64()?).ok()
}
