//! In which exchanges a link is used: by both its ends, or by neither.
//!
//! Of the two ends of a link, the one with the smaller number decides and the other follows. The
//! decider sends its message; the follower replies with its own, which acknowledges the decider's.
//! If the reply arrives in time, the link is used, otherwise it is skipped. The decider sends a
//! notice of each decision to the follower, and over all other links if the follower is silent, so
//! that a broken link delays nobody as long as there is another path.
//!
//! The decider records a skip in its journal before acting on it. A restarted decider skips nothing
//! new before its next checkpoint, because it may have decided these steps before it crashed: what
//! its journal does not list, it uses.

use super::frame::{Frame, FrameResult, Refusal};
use super::journal::Skip;
use super::settings::{Note, Policy};
use super::{FrameKind, Peers};
use crate::engine::transport::{Parcel, Round};
use crate::engine::wire::Wire;
use crate::error::Result;
use crate::store::bytes::{Reader, Writer};

/// How many steps ahead notices are accepted.
const AHEAD: u64 = 1 << 16;

/// Decisions on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The decider.
    pub from: usize,
    /// The follower.
    pub to: usize,
    /// Increases from notice to notice: only newer ones are relayed.
    pub number: u64,
    /// Steps, and whether the link is used in them.
    pub decided: Vec<(u64, bool)>,
}

impl Notice {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        [self.from as u64, self.to as u64, self.number].into_iter().for_each(|v| out.u64(v));
        self.decided.iter().for_each(|&(step, used)| {
            out.u64(step);
            out.u64(u64::from(used));
        });
        out.done()
    }

    fn read(payload: &[u8], nodes: usize) -> Option<Notice> {
        let mut bytes = Reader::new(payload);
        let mut node = || usize::try_from(bytes.u64()?).ok().filter(|&node| node < nodes);
        let (from, to) = (node()?, node()?);
        let number = bytes.u64()?;
        let mut decided = Vec::new();
        while bytes.end().is_none() {
            let (step, used) = (bytes.u64()?, bytes.u64()?);
            decided.push((step, used == 1));
        }
        (from < to).then_some(Notice { from, to, number, decided })
    }
}

impl<W: Wire> Peers<W> {
    fn skips(&self) -> bool {
        matches!(self.settings.policy, Policy::SkipLink { .. })
    }

    /// Whether this peer is the follower of a link.
    pub(super) fn follows(&self, at: usize) -> bool {
        self.skips() && self.links[at].peer < self.me
    }

    /// Waits until every link has delivered its message of `length` bytes or is skipped.
    pub(super) fn settle(&mut self, length: usize) -> Result<()> {
        if let Policy::SkipLink { patience, .. } = self.settings.policy {
            self.skip_at = self.wire.now().saturating_add(patience);
        }
        self.wait(|peers| {
            let mut missing = None;
            // No early exit: each link needs its reply or its decision.
            for at in (0..peers.links.len()).rev() {
                if !peers.is_settled(at, length)? {
                    missing = Some(peers.links[at].peer);
                }
            }
            Ok(missing)
        })
    }

    fn is_settled(&mut self, at: usize, length: usize) -> Result<bool> {
        let step = self.step;
        let arrived = self.has_arrived(at, length);
        if !self.skips() {
            return Ok(arrived);
        }
        if self.follows(at) && arrived && self.links[at].replied != Some(step) {
            let link = &mut self.links[at];
            link.replied = Some(step);
            if let Some(frame) = link.sent(step) {
                self.wire.send(link.peer, frame);
            }
        }
        match self.links[at].decided.get(&step) {
            Some(false) => return Ok(true),
            Some(true) => return Ok(arrived),
            None if self.follows(at) => return Ok(false),
            None => {}
        }
        let late = self.wire.now() >= self.skip_at && !self.recovering;
        if arrived || late {
            self.decide(at, arrived)?;
        }
        Ok(arrived || late)
    }

    /// Whether the message of this exchange has arrived over a link; any other is refused.
    fn has_arrived(&mut self, at: usize, length: usize) -> bool {
        let (place, scalar) = (self.place(), self.round.scalar as u8);
        let link = &mut self.links[at];
        let Some(frame) = link.received(self.step).map(|frame| Frame::known(frame)) else {
            return false;
        };
        let fits = |frame: Frame| {
            frame.place == place && frame.scalar == scalar && frame.payload.len() == length
        };
        if frame.is_some_and(fits) {
            return true;
        }
        let peer = link.peer;
        link.discard(self.step);
        self.report(peer, Refusal::Shape);
        false
    }

    /// Decides on a link in this step.
    fn decide(&mut self, at: usize, used: bool) -> Result<()> {
        let (job, step, peer) = (self.job, self.step, self.links[at].peer);
        if let (false, Policy::SkipLink { journal, .. }) = (used, &mut self.settings.policy) {
            journal.append(&Skip { job, step, peer }.to_bytes())?;
        }
        self.links[at].decided.insert(step, used);
        self.send_notice(at, step);
        if !used {
            self.broadcast_notices();
        }
        Ok(())
    }

    /// Sends a follower the decisions from a step on.
    pub(super) fn send_notice(&mut self, at: usize, from: u64) {
        if let Some(notice) = self.notice(at, from) {
            let frame = self.frame(FrameKind::Notice, 1, &notice.to_bytes());
            self.wire.send(notice.to, &frame);
        }
    }

    /// Sends all neighbours the decisions that silent followers may not know.
    pub(super) fn broadcast_notices(&mut self) {
        for at in 0..self.links.len() {
            if let Some(notice) = self.notice(at, self.links[at].step) {
                let frame = self.frame(FrameKind::Notice, 1, &notice.to_bytes());
                self.relay(self.links.len(), &frame);
            }
        }
    }

    /// This peer's decisions on a link from a step on, if there are any.
    fn notice(&mut self, at: usize, from: u64) -> Option<Notice> {
        if !self.skips() || self.follows(at) {
            return None;
        }
        let decided: Vec<_> = self.links[at].decided.range(from..).map(|(&s, &u)| (s, u)).collect();
        if decided.is_empty() {
            return None;
        }
        self.notices += 1;
        let number = self.step << 20 | self.notices & 0xf_ffff;
        Some(Notice { from: self.me, to: self.links[at].peer, number, decided })
    }

    /// Handles a notice: follows it, or relays it if it is for another peer.
    pub(super) fn on_notice(&mut self, at: usize, payload: &[u8], bytes: &[u8]) -> FrameResult {
        let notice = Notice::read(payload, self.nodes).filter(|_| self.skips());
        let notice = notice.ok_or(Refusal::Shape)?;
        let Notice { from, to, number, decided } = notice;
        if to != self.me {
            let last = self.relayed.entry((from, to)).or_default();
            if *last < number && from != self.me {
                *last = number;
                self.relay(at, bytes);
            }
            return Ok(());
        }
        let link = self.links.iter_mut().find(|link| link.peer == from).ok_or(Refusal::Shape)?;
        for (step, used) in decided {
            if step >= self.step.saturating_add(AHEAD) {
                return Err(Refusal::Future);
            }
            if step >= self.mark && *link.decided.entry(step).or_insert(used) != used {
                return Err(Refusal::Equivocation);
            }
        }
        Ok(())
    }

    /// Fills a parcel with the message received. Where the link is skipped, it gets this node's own
    /// message: mixing adds weighted differences, so the neighbour's weight goes to the node itself.
    pub(super) fn fetch(&mut self, parcel: &mut Parcel, out: &[Parcel]) {
        let link = self.links.iter().find(|link| link.peer == parcel.rank);
        let link = link.expect("messages come from neighbours");
        let skipped = link.decided.get(&self.step) == Some(&false);
        match link.message(self.step).filter(|_| !skipped) {
            Some(message) => parcel.bytes.copy_from_slice(message),
            None => {
                parcel.bytes.copy_from_slice(&out[0].bytes);
                let Round { k, e, .. } = self.round;
                (self.notify)(Note::Skipped { peer: parcel.rank, k, e });
            }
        }
    }
}
