//! Who has ended a run: under `skip-link`, nodes tell each other of all, so that the two ends of a
//! link that is cut learn it of each other.

use std::collections::BTreeSet;

use super::frame::{FrameResult, Refusal};
use super::status::END;
use super::{FrameKind, Peers};
use crate::engine::wire::Wire;

/// The nodes known to have ended the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Those that are durable to the end.
    pub durable: BTreeSet<usize>,
    /// Those whose results are on disk.
    pub done: BTreeSet<usize>,
}

impl Ended {
    /// Two bits for each node, four nodes in a byte.
    fn to_bytes(&self, nodes: usize) -> Vec<u8> {
        let mut bytes = vec![0; nodes.div_ceil(4)];
        for (bit, of) in [(1, &self.durable), (2, &self.done)] {
            of.iter().for_each(|node| bytes[node / 4] |= bit << (2 * (node % 4)));
        }
        bytes
    }

    fn read(bytes: &[u8], nodes: usize) -> Option<Ended> {
        let mut ended = Ended::default();
        for node in 0..nodes {
            let bits = bytes.get(node / 4)? >> (2 * (node % 4)) & 3;
            if bits != 0 {
                ended.add(node, bits == 3);
            }
        }
        (bytes.len() == nodes.div_ceil(4)).then_some(ended)
    }

    /// Adds a node that is durable to the end.
    pub fn add(&mut self, node: usize, done: bool) {
        self.durable.insert(node);
        if done {
            self.done.insert(node);
        }
    }
}

impl<W: Wire> Peers<W> {
    /// Tells a neighbour who has ended, as far as known.
    pub(super) fn send_ended(&mut self, peer: usize) {
        if self.skips() && !self.ended.durable.is_empty() {
            let frame = self.frame(FrameKind::Ended, 1, &self.ended.to_bytes(self.nodes));
            self.wire.send(peer, &frame);
        }
    }

    /// Handles what a neighbour knows, and tells the others what is new.
    pub(super) fn on_ended(&mut self, at: usize, payload: &[u8]) -> FrameResult {
        let theirs = Ended::read(payload, self.nodes).filter(|_| self.skips());
        let Ended { durable, done } = theirs.ok_or(Refusal::Shape)?;
        self.links[at].knows |= done.len() == self.nodes;
        let before = self.ended.clone();
        self.ended.durable.extend(durable);
        self.ended.done.extend(done);
        if self.ended != before {
            self.note_ended();
            for at in 0..self.links.len() {
                self.send_ended(self.links[at].peer);
            }
        }
        Ok(())
    }

    /// Neighbours that have ended need nothing any more.
    pub(super) fn note_ended(&mut self) {
        for link in &mut self.links {
            if self.ended.durable.contains(&link.peer) {
                link.durable = END;
            }
            link.done |= self.ended.done.contains(&link.peer);
        }
        self.trim();
    }

    /// A node that has not ended the run, of all nodes.
    pub(super) fn not_ended(&self, of: impl Fn(&Ended) -> &BTreeSet<usize>) -> Option<usize> {
        (0..self.nodes).find(|node| !of(&self.ended).contains(node))
    }
}
