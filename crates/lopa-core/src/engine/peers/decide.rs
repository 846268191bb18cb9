//! In which exchanges a link is used: by both its ends, or by neither.
//!
//! Of the two ends of a link, the one with the smaller number decides and the other follows. The
//! decider sends its message; the follower replies with its own, which acknowledges the decider's.
//! If the reply arrives in time, the link is used, otherwise it is skipped. The decider sends a
//! notice of each decision to the follower, and over all other links if the follower is silent, so
//! that a broken link delays no node as long as there is another path.
//!
//! A neighbour that does not reply in time is silent: from then on its link is skipped without
//! waiting, until it replies again. It is asked for a reply at intervals. Hence a link that stays
//! cut delays no node.
//!
//! The decider records in its journal when it begins to skip a link, or to use it again, before
//! acting on it, and its first decision after each checkpoint. A restarted decider follows the last
//! record until its next checkpoint, because it may have decided these steps before it crashed.
//! Hence a link that was cut stays skipped. One that was in use is used: if it was cut just then,
//! the messages go over other nodes (`forward.rs`) until that checkpoint.
//!
//! Notices are numbered, so that each is relayed once. Numbers must not go back when the decider starts
//! again, or other nodes would take its notices for old ones: they begin with the number of its start,
//! which checkpoint and journal keep.
//!
//! Notices list runs of steps, and no more than [`RUNS`] of them: the decisions of a long cut fit
//! in one.

use super::decisions::{RUN, Run};
use super::frame::{Frame, FrameResult};
use super::journal::Turn;
use super::settings::{Note, Policy};
use super::{FrameKind, Peers};
use crate::engine::refusal::Refusal;
use crate::engine::transport::{Messages, Parcel, Round};
use crate::engine::wire::Wire;
use crate::error::Result;
use crate::store::bytes::{Reader, Writer};

/// How many steps ahead notices are followed.
const AHEAD: u64 = 1 << 16;

/// How many runs of steps a notice lists; further ones are in further notices.
const RUNS: usize = 128;

/// The bit from which on a notice's number has the node's start; below it are the notices since then.
const START: u32 = 40;

/// Bytes of a notice before its runs.
const HEAD: usize = 24;

/// Decisions on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The decider.
    pub from: usize,
    /// The follower.
    pub to: usize,
    /// Increases from notice to notice, and from one start of the decider to the next: only newer
    /// ones are relayed.
    pub number: u64,
    /// Steps, and whether the link is used in them.
    pub decided: Vec<Run>,
}

impl Notice {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        [self.from as u64, self.to as u64, self.number].into_iter().for_each(|v| out.u64(v));
        self.decided.iter().for_each(|run| run.save(&mut out));
        out.done()
    }

    fn read(payload: &[u8], nodes: usize) -> Option<Notice> {
        let mut bytes = Reader::new(payload);
        let mut node = || usize::try_from(bytes.u64()?).ok().filter(|&node| node < nodes);
        let (from, to) = (node()?, node()?);
        let number = bytes.u64()?;
        let mut decided = Vec::new();
        while bytes.end().is_none() {
            decided.push(Run::restore(&mut bytes)?);
        }
        (from < to).then_some(Notice { from, to, number, decided })
    }
}

impl<W: Wire> Peers<W> {
    /// Whether links to silent neighbours are skipped.
    pub(crate) fn skips(&self) -> bool {
        matches!(self.settings.policy, Policy::SkipLink { .. })
    }

    /// Whether this peer is the follower of a link.
    pub(super) fn follows(&self, at: usize) -> bool {
        self.skips() && self.links[at].peer < self.me
    }

    /// Waits until every link has delivered a message that `accepts` lets pass, or is skipped.
    pub(super) fn settle(&mut self, accepts: Messages) -> Result<()> {
        if let Policy::SkipLink { patience, .. } = self.settings.policy {
            self.skip_at = self.wire.now().saturating_add(patience);
            self.probe();
        }
        self.settling = true;
        let waited = self.wait(|peers| {
            let mut missing = None;
            // No early exit: each link needs its reply or its decision.
            for at in (0..peers.links.len()).rev() {
                if !peers.links[at].idle && !peers.is_settled(at, accepts)? {
                    missing = Some(peers.links[at].peer);
                }
            }
            Ok(missing)
        });
        self.settling = false;
        waited
    }

    fn is_settled(&mut self, at: usize, accepts: Messages) -> Result<bool> {
        let step = self.step;
        let arrived = self.has_arrived(at, accepts);
        if !self.skips() {
            return Ok(arrived);
        }
        if self.follows(at) && arrived && self.links[at].replied != Some(step) {
            let link = &mut self.links[at];
            link.replied = Some(step);
            if let Some(frame) = link.sent(step) {
                self.wire.send(link.peer, frame);
            }
            if self.links[at].bypassed && self.links[at].decided.get(step).is_none() {
                self.forward_sent(at);
            }
        }
        match self.links[at].decided.get(step) {
            Some(false) => return Ok(true),
            Some(true) => return Ok(arrived),
            None if self.follows(at) => return Ok(false),
            None => {}
        }
        let used = match self.links[at].noted.filter(|_| self.links[at].bound) {
            Some(false) => false,
            Some(true) if !arrived => return Ok(false),
            None if !arrived && !self.links[at].silent && self.wire.now() < self.skip_at => {
                return Ok(false);
            }
            _ => arrived,
        };
        self.links[at].silent = !used;
        self.decide(at, used)?;
        Ok(true)
    }

    /// Asks silent neighbours for a reply.
    fn probe(&mut self) {
        let now = self.wire.now();
        if now < self.probe_at {
            return;
        }
        self.probe_at = now.saturating_add(self.settings.resend);
        for at in 0..self.links.len() {
            if self.links[at].silent {
                self.send_status(at, true);
            }
        }
    }

    /// Whether the message of this exchange has arrived over a link; any other is refused.
    fn has_arrived(&mut self, at: usize, accepts: Messages) -> bool {
        let (step, peer) = (self.step, self.links[at].peer);
        if let Some(bytes) = self.links[at].unchecked(step) {
            match self.check_message(at, &bytes, accepts) {
                Ok(()) => self.links[at].accept(step, bytes),
                Err(why) => self.report(peer, why),
            }
        }
        self.links[at].received(step).is_some()
    }

    /// Whether a message is one of this exchange, as this peer's own is, and can be used.
    fn check_message(&self, at: usize, bytes: &[u8], accepts: Messages) -> FrameResult {
        let (place, scalar) = (self.place(), self.scalar as u8);
        let length = self.lengths.get(at).copied().unwrap_or(0);
        let fits = |frame: &Frame| {
            frame.place == place && frame.scalar == scalar && frame.payload.len() == length
        };
        let frame = Frame::known(bytes).filter(fits).ok_or(Refusal::Shape)?;
        let rank = self.rank_of(self.links[at].peer).ok_or(Refusal::Stranger)?;
        accepts(rank, frame.payload, frame.kind != FrameKind::Overflow)
    }

    /// Decides on a link in this step.
    fn decide(&mut self, at: usize, used: bool) -> Result<()> {
        let (job, step) = (self.job, self.step);
        let link = &mut self.links[at];
        if let Policy::SkipLink { journal, .. } = &mut self.settings.policy
            && link.noted != Some(used)
        {
            journal.append(&Turn { job, step, peer: link.peer, used }.to_bytes())?;
            link.noted = Some(used);
        }
        if link.decided.push(step, used).is_err() {
            return Err(self.replay_error("a link is used and skipped in the same exchange"));
        }
        self.send_notice(at, step);
        if !used || self.links[at].bypassed {
            self.broadcast_notices();
        }
        Ok(())
    }

    /// Sends a follower the decisions from a step on.
    pub(super) fn send_notice(&mut self, at: usize, from: u64) {
        for frame in self.notices(at, from) {
            self.wire.send(self.links[at].peer, &frame);
        }
    }

    /// Sends all neighbours the decisions that silent followers may not have received.
    pub(super) fn broadcast_notices(&mut self) {
        for at in 0..self.links.len() {
            for frame in self.notices(at, self.links[at].step) {
                self.relay(None, &frame);
            }
        }
    }

    /// This peer's decisions on a link from a step on, as frames.
    pub(super) fn notices(&mut self, at: usize, from: u64) -> Vec<Vec<u8>> {
        if !self.skips() || self.follows(at) {
            return Vec::new();
        }
        let decided: Vec<Run> = self.links[at].decided.since(from).collect();
        let mut frames = Vec::new();
        for decided in decided.chunks(RUNS) {
            let number = self.next_number();
            let (to, decided) = (self.links[at].peer, decided.to_vec());
            let notice = Notice { from: self.me, to, number, decided };
            frames.push(self.frame(FrameKind::Notice, 1, &notice.to_bytes()));
        }
        frames
    }

    /// A number larger than all before, also than those of earlier starts.
    pub(super) fn next_number(&mut self) -> u64 {
        self.numbered += 1;
        self.start << START | self.numbered
    }

    /// Handles a notice: follows it, or relays it if it is for another peer.
    pub(super) fn on_notice(&mut self, at: usize, payload: &[u8], bytes: &[u8]) -> FrameResult {
        let notice = Some(payload).filter(|payload| payload.len() <= HEAD + RUNS * RUN);
        let notice = notice.and_then(|payload| Notice::read(payload, self.nodes));
        let notice = notice.filter(|_| self.skips()).ok_or(Refusal::Shape)?;
        let Notice { from, to, number, .. } = notice;
        let newer = |last: &u64| *last < number;
        let is_new = self.relayed.get(&(from, to)).is_none_or(newer) && from != self.me;
        if to != self.me && !is_new {
            return Ok(());
        }
        self.check_author(from, bytes)?;
        if to != self.me {
            self.relayed.insert((from, to), number);
            self.relay(Some(at), bytes);
        } else if let Err(why) = self.follow(notice) {
            self.report(from, why);
        }
        Ok(())
    }

    /// Follows a notice for this peer.
    fn follow(&mut self, Notice { from, decided, .. }: Notice) -> FrameResult {
        let link = self.links.iter_mut().find(|link| link.peer == from).ok_or(Refusal::Shape)?;
        let most = self.step.saturating_add(AHEAD);
        for Run { from, to, used } in decided {
            if from >= most {
                return Err(Refusal::Future);
            }
            // The rest is sent again when it is needed.
            link.decided.add(Run { from: from.max(self.mark), to: to.min(most), used })?;
        }
        Ok(())
    }

    /// Fills a parcel with the message received. Where the link is skipped, it gets this node's own
    /// message: mixing adds weighted differences, so the neighbour's weight goes to the node itself.
    pub(super) fn fetch(&mut self, parcel: &mut Parcel, out: &[Parcel]) {
        let peer = self.members[parcel.rank];
        let link = self.links.iter_mut().find(|link| link.peer == peer);
        let link = link.expect("messages come from neighbours");
        let skipped = link.decided.get(self.step) == Some(false);
        if skipped {
            link.skip(self.step);
        }
        let Round { k, e } = self.round;
        let frame = link.received(self.step).and_then(|frame| Frame::known(frame));
        match frame.filter(|_| !skipped) {
            Some(Frame { kind, payload, .. }) => {
                parcel.bytes.copy_from_slice(payload);
                parcel.finite = kind != FrameKind::Overflow;
                if !parcel.finite && !std::mem::replace(&mut link.overflowed, true) {
                    (self.notify)(Note::Overflow { peer, k });
                }
            }
            None => {
                let own = out.iter().find(|own| own.rank == parcel.rank);
                let own = own.expect("a node that receives a message also sends one");
                parcel.bytes.copy_from_slice(&own.bytes);
                parcel.finite = own.finite;
                (self.notify)(Note::Skipped { peer, k, e });
            }
        }
    }
}
