//! Which exchanges a link is used in: by both its ends, or by neither.
//!
//! Of the two ends of a link the one with the smaller number decides. It sends its message; the
//! other end answers with its own, which also says: I have yours. If the answer comes in time, the
//! link is used, else it is skipped; the other end does as it is told, and never decides. A notice
//! of what was decided goes to the other end, and over all other links if that is silent, so that a
//! link that is cut holds up nobody as long as there is another way.
//!
//! Whoever skips writes that down first. A peer that comes back decides nothing anew before its
//! next checkpoint, for so far its earlier life may have come: what it had not skipped it uses.

use super::frame::{Frame, Refusal, Taken};
use super::journal::Skip;
use super::settings::{Note, Policy};
use super::{FrameKind, Peers};
use crate::engine::transport::{Parcel, Round};
use crate::engine::wire::Wire;
use crate::error::Result;
use crate::store::bytes::{Reader, Writer};

/// How far ahead decisions are taken, in steps.
const AHEAD: u64 = 1 << 16;

/// What was decided on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Who decides.
    pub from: usize,
    /// The other end.
    pub to: usize,
    /// A notice of a link is passed on if it is later than the last one.
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

    /// Whether the other end of a link decides on it.
    pub(super) fn follows(&self, at: usize) -> bool {
        self.skips() && self.links[at].peer < self.me
    }

    /// Waits until every link has brought its message of so many bytes, or is skipped.
    pub(super) fn settle(&mut self, length: usize) -> Result<()> {
        if let Policy::SkipLink { patience, .. } = self.settings.policy {
            self.impatient = self.wire.now().saturating_add(patience);
        }
        self.wait(|peers| {
            let mut missing = None;
            // All of them: each has to be answered or decided on.
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
        let here = self.brought(at, length);
        if !self.skips() {
            return Ok(here);
        }
        if self.follows(at) && here && self.links[at].answered != Some(step) {
            let link = &mut self.links[at];
            link.answered = Some(step);
            if let Some(frame) = link.sent(step) {
                self.wire.send(link.peer, frame);
            }
        }
        match self.links[at].decided.get(&step) {
            Some(false) => return Ok(true),
            Some(true) => return Ok(here),
            None if self.follows(at) => return Ok(false),
            None => {}
        }
        let late = self.wire.now() >= self.impatient && !self.cautious;
        if here || late {
            self.decide(at, here)?;
        }
        Ok(here || late)
    }

    /// Whether what belongs in this exchange has come over a link; anything else is refused.
    fn brought(&mut self, at: usize, length: usize) -> bool {
        let (place, scalar) = (self.place(), self.round.scalar as u8);
        let link = &mut self.links[at];
        let Some(frame) = link.heard(self.step).map(|frame| Frame::known(frame)) else {
            return false;
        };
        let fits = |frame: Frame| {
            frame.place == place && frame.scalar == scalar && frame.payload.len() == length
        };
        if frame.is_some_and(fits) {
            return true;
        }
        let peer = link.peer;
        link.refuse(self.step);
        self.note(peer, Refusal::Shape);
        false
    }

    /// Decides on a link in this step.
    fn decide(&mut self, at: usize, used: bool) -> Result<()> {
        let (job, step, peer) = (self.job, self.step, self.links[at].peer);
        if let (false, Policy::SkipLink { journal, .. }) = (used, &mut self.settings.policy) {
            journal.append(&Skip { job, step, peer }.to_bytes())?;
        }
        self.links[at].decided.insert(step, used);
        self.remind(at, step);
        if !used {
            self.flood_notices();
        }
        Ok(())
    }

    /// Tells the other end of a link what was decided from a step on.
    pub(super) fn remind(&mut self, at: usize, from: u64) {
        if let Some(notice) = self.notice(at, from) {
            let frame = self.frame(FrameKind::Notice, 1, &notice.to_bytes());
            self.wire.send(notice.to, &frame);
        }
    }

    /// Tells everybody what those ends of links may not know that are silent.
    pub(super) fn flood_notices(&mut self) {
        for at in 0..self.links.len() {
            if let Some(notice) = self.notice(at, self.links[at].step) {
                let frame = self.frame(FrameKind::Notice, 1, &notice.to_bytes());
                self.pass_on(self.links.len(), &frame);
            }
        }
    }

    /// What was decided here on a link from a step on, if anything was.
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

    /// Does as a notice says, or passes it on.
    pub(super) fn heed_notice(&mut self, at: usize, payload: &[u8], bytes: &[u8]) -> Taken {
        let notice = Notice::read(payload, self.nodes).filter(|_| self.skips());
        let notice = notice.ok_or(Refusal::Shape)?;
        let Notice { from, to, number, decided } = notice;
        if to != self.me {
            let last = self.relayed.entry((from, to)).or_default();
            if *last < number && from != self.me {
                *last = number;
                self.pass_on(at, bytes);
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

    /// Puts in place what came over a link; nothing of a neighbour that is skipped: its weight goes
    /// to the node itself, for mixing adds differences to it.
    pub(super) fn fetch(&mut self, parcel: &mut Parcel, out: &[Parcel]) {
        let link = self.links.iter().find(|link| link.peer == parcel.rank);
        let link = link.expect("messages come from neighbours");
        let skipped = link.decided.get(&self.step) == Some(&false);
        match link.message(self.step).filter(|_| !skipped) {
            Some(message) => parcel.bytes.copy_from_slice(message),
            None => {
                parcel.bytes.copy_from_slice(&out[0].bytes);
                let Round { k, e, .. } = self.round;
                (self.told)(Note::Skipped { peer: parcel.rank, k, e });
            }
        }
    }
}
