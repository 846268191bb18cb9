//! Which nodes have ended a run: with `skip-link`, each node informs all others, so that it also
//! reaches the two ends of a cut link; with `leave`, so that no node discards the checkpoints that others need it to go
//! back to. It signs its statement, and the others pass it on: no node
//! can end the run in another's name.

use std::collections::BTreeMap;

use super::frame::{Frame, FrameResult, author};
use super::status::END;
use super::{FrameKind, Peers, Place};
use crate::engine::refusal::Refusal;
use crate::engine::wire::Wire;

/// The nodes known to have ended the run.
#[derive(Debug, Default)]
pub struct Ended {
    words: BTreeMap<usize, Word>,
}

/// A node's statement that it has ended.
#[derive(Debug)]
struct Word {
    /// Whether its results are on disk; if not, it is durable to the end.
    done: bool,
    /// The frame with the statement.
    frame: Vec<u8>,
}

impl Ended {
    /// Whether a node is known to be durable to the end.
    pub fn is_durable(&self, node: usize) -> bool {
        self.words.contains_key(&node)
    }

    /// Whether a node's results are known to be on disk.
    pub fn is_done(&self, node: usize) -> bool {
        self.words.get(&node).is_some_and(|word| word.done)
    }

    /// The frames with the statements.
    pub fn frames(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.words.values().map(|word| &word.frame)
    }
}

/// The node that a statement is about, and whether its results are on disk; `None` if it is malformed.
pub fn word(payload: &[u8], nodes: usize) -> Option<(usize, bool)> {
    let (node, said) = author(payload, nodes)?;
    match u64::from_le_bytes(said.try_into().ok()?) {
        0 => Some((node, false)),
        1 => Some((node, true)),
        _ => None,
    }
}

impl<W: Wire> Peers<W> {
    /// Whether each node informs all others that it has ended.
    pub(super) fn informs_all(&self) -> bool {
        self.skips() || self.leaves()
    }

    /// This peer's statement that it has ended a run.
    pub(super) fn word(&self, job: u32, done: bool) -> Vec<u8> {
        let payload = [self.me as u64, u64::from(done)].map(u64::to_le_bytes).concat();
        let place = Place { job, ..Place::default() };
        let frame = Frame { kind: FrameKind::Ended, scalar: 1, place, payload: &payload };
        frame.to_bytes(&self.run, |bytes| self.wire.sign(bytes))
    }

    /// Records that this peer has ended the run.
    pub(super) fn end_own(&mut self, done: bool) {
        if self.informs_all() {
            let word = Word { done, frame: self.word(self.job, done) };
            self.ended.words.insert(self.me, word);
        }
    }

    /// Sends a neighbour the nodes known to have ended.
    pub(super) fn send_ended(&mut self, peer: usize) {
        for frame in self.ended.frames() {
            self.wire.send(peer, frame);
        }
    }

    /// Handles a node's statement that it has ended, and passes it on if it is new.
    pub(super) fn on_ended(&mut self, at: usize, payload: &[u8], bytes: &[u8]) -> FrameResult {
        let word = word(payload, self.nodes).filter(|_| self.informs_all());
        let (node, done) = word.ok_or(Refusal::Shape)?;
        let known = if done { self.ended.is_done(node) } else { self.ended.is_durable(node) };
        // Statements about this peer's own end are ignored.
        if known || node == self.me {
            return Ok(());
        }
        self.check_author(node, bytes)?;
        self.ended.words.insert(node, Word { done, frame: bytes.to_vec() });
        self.note_ended();
        self.relay(Some(at), bytes);
        self.tell_askers();
        Ok(())
    }

    /// Neighbours that have ended need nothing more.
    fn note_ended(&mut self) {
        for link in &mut self.links {
            if self.ended.is_durable(link.peer) {
                link.durable = END;
            }
            link.done |= self.ended.is_done(link.peer);
        }
        self.trim();
    }

    /// A node that has not ended the run, of all nodes.
    pub(super) fn not_ended(&self, done: bool) -> Option<usize> {
        let ended = |&node: &usize| match done {
            true => self.ended.is_done(node),
            false => self.ended.is_durable(node),
        };
        self.members.iter().copied().find(|node| !ended(node))
    }
}
