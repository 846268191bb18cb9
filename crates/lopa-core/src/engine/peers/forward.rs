//! Frames for a neighbour over other nodes, while the link to it is cut.
//!
//! A node that starts again needs the messages of exchanges in which a link was used, even if that
//! link is cut by then: a follower whose checkpoint is older than the cut, and a decider whose
//! journal says that the link is in use. It waits as long as for any message, and then requests them
//! over all its links. The request and the frames that answer it are wrapped and signed by their
//! author, and the other nodes forward them, each once. The receiver handles the content as if
//! the link had delivered it.
//!
//! A link that is skipped stays skipped: a decider sends a message this way only in an exchange in
//! which it has to use the link, and a forwarded frame is no sign that the link works again.

use std::collections::BTreeSet;

use super::frame::{Frame, FrameResult, OVERHEAD};
use super::status::Status;
use super::{FrameKind, Peers};
use crate::engine::refusal::Refusal;
use crate::engine::wire::Wire;
use crate::store::bytes::{Reader, Writer};

/// Bytes of a forwarded payload before the frame in it.
const HEAD: usize = 24;

/// How many numbers are remembered: frames may arrive in another order.
const REMEMBERED: usize = 256;

/// The numbers of the last frames forwarded between two nodes.
#[derive(Debug, Default)]
pub struct Forwarded(BTreeSet<u64>);

impl Forwarded {
    fn is_new(&self, number: u64) -> bool {
        let oldest = self.0.first().filter(|_| self.0.len() == REMEMBERED);
        !self.0.contains(&number) && oldest.is_none_or(|&oldest| oldest < number)
    }

    fn add(&mut self, number: u64) {
        self.0.insert(number);
        if self.0.len() > REMEMBERED {
            self.0.pop_first();
        }
    }
}

/// A frame from one node to another that is no longer reached by its link.
struct Wrapped<'a> {
    from: usize,
    to: usize,
    /// Increases like the numbers of notices: each frame is forwarded once.
    number: u64,
    frame: &'a [u8],
}

impl Wrapped<'_> {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        [self.from as u64, self.to as u64, self.number].into_iter().for_each(|v| out.u64(v));
        [out.done(), self.frame.to_vec()].concat()
    }

    fn read(payload: &[u8], nodes: usize) -> Option<Wrapped<'_>> {
        let (head, frame) = payload.split_at_checked(HEAD)?;
        let mut bytes = Reader::new(head);
        let mut node = || usize::try_from(bytes.u64()?).ok().filter(|&node| node < nodes);
        let (from, to) = (node()?, node()?);
        let number = bytes.u64()?;
        (from != to).then_some(Wrapped { from, to, number, frame })
    }
}

impl<W: Wire> Peers<W> {
    /// Sends a neighbour a frame over all links, for other nodes to forward.
    pub(super) fn forward(&mut self, at: usize, frame: &[u8]) {
        let (from, to, number) = (self.me, self.links[at].peer, self.next_number());
        let wrapped = Wrapped { from, to, number, frame }.to_bytes();
        let frame = self.frame(FrameKind::Forwarded, 1, &wrapped);
        self.relay(None, &frame);
    }

    /// Forwards this peer's message of the current step.
    pub(super) fn forward_sent(&mut self, at: usize) {
        if let Some(frame) = self.links[at].sent(self.step).cloned() {
            self.forward(at, &frame);
        }
    }

    /// Whether the message of a step goes to a neighbour although the link may be cut: the link is
    /// used there, or may be, and both ends must find out.
    pub(super) fn must_arrive(&self, at: usize, step: u64) -> bool {
        let link = &self.links[at];
        match link.decided.get(step) {
            Some(used) => used,
            None if self.follows(at) => link.received(step).is_some(),
            None => link.bound && link.noted == Some(true),
        }
    }

    /// Requests over other nodes the messages and decisions of this exchange that neighbours owe this
    /// peer.
    pub(super) fn request_forwarded(&mut self) {
        let late = self.settling && self.wire.now() >= self.skip_at;
        for at in 0..self.links.len() {
            if (late || self.settling && self.links[at].bypassed) && self.is_owed(at) {
                let request = self.status_frame(at, true);
                self.forward(at, &request);
            }
        }
    }

    fn is_owed(&self, at: usize) -> bool {
        let link = &self.links[at];
        let noted = link.noted.filter(|_| link.bound);
        match link.decided.get(self.step).or(noted) {
            _ if link.idle || !self.skips() => false,
            Some(used) => used && link.received(self.step).is_none(),
            // A decider that is free to skip the link waits for nothing.
            None => self.follows(at),
        }
    }

    /// Answers a request that other nodes forwarded.
    pub(super) fn resend_forwarded(&mut self, at: usize, step: u64) {
        let sent = self.links[at].sent_since(step);
        let sent = sent.filter(|&(step, _)| self.must_arrive(at, step));
        let sent: Vec<Vec<u8>> = sent.map(|(_, frame)| frame.clone()).collect();
        sent.iter().for_each(|frame| self.forward(at, frame));
        for notice in self.notices(at, step) {
            self.relay(None, &notice);
        }
    }

    /// Handles a forwarded frame, or forwards it if it is for another peer.
    pub(super) fn on_forwarded(&mut self, via: usize, payload: &[u8], bytes: &[u8]) -> FrameResult {
        // A request may be longer than the messages of a small problem.
        let most = self.limits.message.max(Status::BYTES).saturating_add(HEAD + OVERHEAD);
        let wrapped = Some(payload).filter(|payload| self.skips() && payload.len() <= most);
        let wrapped = wrapped.and_then(|payload| Wrapped::read(payload, self.nodes));
        let Wrapped { from, to, number, frame } = wrapped.ok_or(Refusal::Shape)?;
        let before = self.forwarded.get(&(from, to));
        if from == self.me || before.is_some_and(|before| !before.is_new(number)) {
            return Ok(());
        }
        self.check_author(from, bytes)?;
        self.forwarded.entry((from, to)).or_default().add(number);
        if to != self.me {
            self.relay(Some(via), bytes);
        } else if let Err(why) = self.on_unwrapped(via, from, frame) {
            self.report(from, why);
        }
        Ok(())
    }

    /// Handles the content of a forwarded frame.
    fn on_unwrapped(&mut self, via: usize, from: usize, bytes: &[u8]) -> FrameResult {
        let at = self.link_to(from).ok_or(Refusal::Stranger)?;
        let frame = Frame::read(bytes, &self.run)?;
        if frame.place.job != self.job {
            return Err(Refusal::Shape);
        }
        self.links[at].bypassed = via != at;
        match frame.kind {
            FrameKind::Status => {
                let status = Status::read(frame.payload).ok_or(Refusal::Shape)?;
                self.on_status(at, frame.place, status, true);
                Ok(())
            }
            // This peer has its result.
            FrameKind::Data | FrameKind::Overflow if self.done => Ok(()),
            FrameKind::Data | FrameKind::Overflow => self.on_data(at, frame, bytes, true),
            _ => Err(Refusal::Shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_any_order_and_memory_is_bounded() {
        let mut seen = Forwarded::default();
        for number in [3, 1, 2, 9, 4] {
            assert!(seen.is_new(number));
            seen.add(number);
            assert!(!seen.is_new(number));
        }
        (10..10_000).for_each(|number| seen.add(number));
        assert_eq!(seen.0.len(), REMEMBERED);
        assert!(!seen.is_new(5) && !seen.is_new(9_999) && seen.is_new(10_000));
    }
}
