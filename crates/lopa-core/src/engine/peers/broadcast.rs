//! Messages of each peer to all others: every peer relays them to its neighbours.
//!
//! A broadcast is held until its step is reached: only then can this peer check it. It is used,
//! relayed and saved only after the check. That delays no node: a node that needs it also needs
//! this peer's own broadcast of the step.

use std::collections::BTreeMap;

use super::frame::{author, payload};
use crate::store::bytes::{Reader, Writer};

/// How many frames of later steps are held per node.
const EARLY: usize = 4;

/// The broadcasts of all nodes, as frames, by step and node.
#[derive(Debug, Default)]
pub struct Broadcasts {
    nodes: usize,
    members: Vec<usize>,
    frames: BTreeMap<u64, Vec<Option<Vec<u8>>>>,
    early: BTreeMap<(u64, usize), Held>, // signed by their authors, but not checked yet
}

/// A frame that is not checked yet.
#[derive(Debug)]
pub struct Held {
    /// Its author.
    pub author: usize,
    /// The neighbour that it came from.
    pub from: usize,
    /// Its bytes.
    pub frame: Vec<u8>,
}

impl Broadcasts {
    /// None yet, of some of this many nodes.
    pub fn new(nodes: usize, members: &[usize]) -> Broadcasts {
        Broadcasts { nodes, members: members.to_vec(), ..Broadcasts::default() }
    }

    /// A node's broadcast of a step, checked or not.
    pub fn get(&self, step: u64, author: usize) -> Option<&Vec<u8>> {
        let checked = self.frames.get(&step).and_then(|frames| frames[author].as_ref());
        checked.or_else(|| self.early.get(&(step, author)).map(|held| &held.frame))
    }

    /// Holds a frame until its step is reached. Of each author only a few of steps after `now` are held:
    /// others are requested when they are needed.
    pub fn hold(&mut self, step: u64, held: Held, now: u64) {
        let author = held.author;
        let to_come = |&&(step, of): &&(u64, usize)| of == author && step > now;
        if step == now || self.early.keys().filter(to_come).count() < EARLY {
            self.early.insert((step, author), held);
        }
    }

    /// Holds the frames of a step from a checkpoint until they are checked again.
    pub fn recheck(&mut self, step: u64) {
        let frames = self.frames.remove(&step).into_iter().flatten().enumerate();
        for (author, frame) in frames.filter_map(|(author, frame)| Some((author, frame?))) {
            self.early.insert((step, author), Held { author, from: author, frame });
        }
    }

    /// Takes out the held frames of a step.
    pub fn take(&mut self, step: u64) -> Vec<Held> {
        let mut taken = self.early.split_off(&(step, 0));
        self.early.append(&mut taken.split_off(&(step + 1, 0)));
        taken.into_values().collect()
    }

    /// Stores a node's broadcast of a step, which was checked.
    pub fn accept(&mut self, step: u64, author: usize, frame: Vec<u8>) {
        let frames = self.frames.entry(step).or_insert_with(|| vec![None; self.nodes]);
        frames[author] = Some(frame);
    }

    /// A node whose broadcast of a step is missing, if any.
    pub fn missing(&self, step: u64) -> Option<usize> {
        match self.frames.get(&step) {
            Some(frames) => self.members.iter().copied().find(|&node| frames[node].is_none()),
            None => self.members.first().copied(),
        }
    }

    /// The broadcasts of all members in a step, when none is missing.
    pub fn contents(&self, step: u64) -> Vec<Vec<u8>> {
        let frames = &self.frames[&step];
        let frames = self.members.iter().filter_map(|&node| frames[node].as_ref());
        frames.map(|frame| said(frame).to_vec()).collect()
    }

    /// The frames of a range of steps.
    pub fn frames(&self, from: u64, to: u64) -> impl Iterator<Item = &Vec<u8>> {
        self.frames.range(from..to).flat_map(|(_, frames)| frames.iter().flatten())
    }

    /// Discards frames before a step: neither this peer nor a neighbour needs them.
    pub fn trim(&mut self, durable: u64) {
        self.frames = self.frames.split_off(&durable);
    }

    /// Bytes of the frames kept.
    pub fn bytes(&self) -> usize {
        let early = self.early.values().map(|held| held.frame.len());
        self.frames.values().flatten().flatten().map(Vec::len).chain(early).sum()
    }

    /// Writes all frames that were checked.
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

    /// Reads the saved frames; `None` if they are malformed.
    pub fn restore(nodes: usize, members: &[usize], bytes: &mut Reader) -> Option<Broadcasts> {
        let mut broadcasts = Broadcasts::new(nodes, members);
        for _ in 0..bytes.u64()? {
            let (step, frame) = (bytes.u64()?, bytes.bytes()?);
            let (author, _) = author(payload(frame), nodes)?;
            broadcasts.accept(step, author, frame.to_vec());
        }
        Some(broadcasts)
    }
}

/// The payload of a node's broadcast.
pub fn broadcast(node: usize, content: &[u8]) -> Vec<u8> {
    [&(node as u64).to_le_bytes()[..], content].concat()
}

/// The content of a broadcast.
pub fn said(frame: &[u8]) -> &[u8] {
    author(payload(frame), usize::MAX).map_or(&[], |(_, said)| said)
}
