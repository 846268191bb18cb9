//! One link: frames sent, which may be needed again, and frames received. It has no wire and no
//! clock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::decisions::Decisions;
use super::frame::FrameResult;
use super::status::END;
use crate::engine::refusal::Refusal;
use crate::store::bytes::{Reader, Writer};

/// Frames by step.
pub type Frames = BTreeMap<u64, Vec<u8>>;

/// How many steps ahead frames are accepted, and how many are sent again at once.
pub const WINDOW: u64 = 64;

/// A link to a neighbour.
#[derive(Debug, Default)]
pub struct Link {
    /// The neighbour.
    pub peer: usize,
    /// Frames sent from step `durable` on.
    sent: Frames,
    /// Frames received from the step on that this peer would resume from, which were checked.
    received: Frames,
    /// Frames received for the current step and those after it, not checked yet.
    early: Frames,
    /// The last step whose frame was checked.
    checked: Option<u64>,
    /// Whether the link is used in a step, where that is decided.
    pub decided: Decisions,
    /// Whether the link is used from the journal's last record to the next checkpoint, if this peer
    /// decides.
    pub noted: Option<bool>,
    /// Whether decisions must follow the journal until the next checkpoint: this peer was restarted,
    /// and may have made them already.
    pub bound: bool,
    /// Whether the neighbour, which follows, did not reply in time and has not replied since.
    pub silent: bool,
    /// Whether the last frame of the neighbour came over other nodes: the link itself is cut.
    pub bypassed: bool,
    /// Whether the neighbour has sent numbers that are not finite.
    pub overflowed: bool,
    /// Whether this step skips the link.
    pub idle: bool,
    /// The neighbour's last known step.
    pub step: u64,
    /// The step that the neighbour would resume from after a crash.
    pub durable: u64,
    /// Whether the neighbour's result is on disk.
    pub done: bool,
    /// Whether the neighbour has received that this peer's result is on disk; where links may be
    /// skipped, that all results are.
    pub knows: bool,
    /// Whether the neighbour needs nothing of this peer any more.
    pub settled: bool,
    /// Whether this peer has sent that it needs nothing of the neighbour any more.
    pub released: bool,
    /// When the last frame of the neighbour arrived.
    pub heard: Duration,
    /// The last step in which this peer replied to the neighbour, if the neighbour decides.
    pub replied: Option<u64>,
    /// The neighbour was asked for everything before this step.
    pub requested: u64,
    /// The step in which the neighbour claimed that this peer had saved a later state than it has.
    pub claimed: Option<u64>,
}

impl Link {
    /// A link to a neighbour from which nothing has arrived yet.
    pub fn new(peer: usize) -> Link {
        Link { peer, ..Link::default() }
    }

    /// Logs the frame of a step and returns it to be sent, or `None` if the neighbour does not need
    /// it; an error if another frame was sent in that step.
    pub fn send(&mut self, step: u64, frame: Vec<u8>) -> FrameResult<Option<&[u8]>> {
        if step < self.durable {
            return Ok(None);
        }
        match self.sent.entry(step) {
            Entry::Occupied(known) if *known.get() != frame => Err(Refusal::Equivocation),
            known => Ok(Some(known.or_insert(frame))),
        }
    }

    /// The frames to send again to a neighbour at a step: no more than it would accept.
    pub fn sent_since(&self, step: u64) -> impl Iterator<Item = (u64, &Vec<u8>)> {
        self.sent.range(step..step.saturating_add(WINDOW)).map(|(&step, frame)| (step, frame))
    }

    /// The frame sent in a step.
    pub fn sent(&self, step: u64) -> Option<&Vec<u8>> {
        self.sent.get(&step)
    }

    /// Discards frames sent long ago in steps in which the link is skipped: they will not be
    /// needed.
    pub fn skip(&mut self, step: u64) {
        let Some(past) = step.checked_sub(WINDOW) else { return };
        let decided = &self.decided;
        self.sent.retain(|&step, _| step > past || decided.get(step) != Some(false));
    }

    /// Holds the frame received for a step until that is reached; this peer is at step `now`.
    pub fn receive(&mut self, step: u64, frame: &[u8], now: u64) -> FrameResult {
        self.step = self.step.max(step);
        match self.received.get(&step).or_else(|| self.early.get(&step)) {
            Some(known) if known == frame => {}
            Some(_) => return Err(Refusal::Equivocation),
            // Frames of earlier steps are too late.
            None if step < now => {}
            None => drop(self.early.insert(step, frame.to_vec())),
        }
        Ok(())
    }

    /// Takes out the frame received for a step that was not checked since this peer began; one from
    /// a checkpoint was checked before, but perhaps against other messages.
    pub fn unchecked(&mut self, step: u64) -> Option<Vec<u8>> {
        if self.checked == Some(step) {
            return None;
        }
        self.early.remove(&step).or_else(|| self.received.remove(&step))
    }

    /// Stores the frame received for a step, which was checked.
    pub fn accept(&mut self, step: u64, frame: Vec<u8>) {
        self.checked = Some(step);
        self.received.insert(step, frame);
    }

    /// Discards the frame held for a step; true if there was one.
    pub fn discard(&mut self, step: u64) -> bool {
        self.early.remove(&step).is_some()
    }

    /// The frame received for a step, which was checked.
    pub fn received(&self, step: u64) -> Option<&Vec<u8>> {
        self.received.get(&step)
    }

    /// Discards frames that neither the neighbour nor this peer, which is durable up to `ours`,
    /// needs.
    pub fn trim(&mut self, ours: u64) {
        self.sent = self.sent.split_off(&self.durable);
        self.received = self.received.split_off(&ours);
        self.decided.trim(self.durable.min(ours));
    }

    /// Bytes of the frames kept.
    pub fn bytes(&self) -> usize {
        let frames = self.sent.values().chain(self.received.values()).chain(self.early.values());
        frames.map(Vec::len).sum()
    }

    /// Whether the neighbour is ahead of a step whose frame is missing and was not requested yet.
    pub fn is_ahead(&self, step: u64) -> bool {
        !self.idle
            && self.step > step
            && self.requested <= step
            && !self.received.contains_key(&step)
            && !self.early.contains_key(&step)
    }

    /// Whether the neighbour needs nothing of this run any more.
    pub fn ended(&self) -> bool {
        self.durable == END
    }

    /// Writes the state that a peer needs to resume from a step: only checked frames, and of the
    /// other end's decisions those before step `until`. The neighbour's requests are not saved: it
    /// repeats them.
    pub fn save(&self, from: u64, until: u64, out: &mut Writer) {
        [self.peer as u64, self.durable.min(from)].into_iter().for_each(|value| out.u64(value));
        save_frames(self.sent.iter(), out);
        save_frames(self.received.range(from..), out);
        self.decided.save(until, out);
    }

    /// Reads the saved state; `None` if it is malformed.
    pub fn restore(bytes: &mut Reader) -> Option<Link> {
        let mut link = Link::new(usize::try_from(bytes.u64()?).ok()?);
        link.durable = bytes.u64()?;
        link.sent = restore_frames(bytes)?;
        link.received = restore_frames(bytes)?;
        link.decided = Decisions::restore(bytes)?;
        Some(link)
    }
}

fn save_frames<'f>(frames: impl Iterator<Item = (&'f u64, &'f Vec<u8>)>, out: &mut Writer) {
    let frames: Vec<_> = frames.collect();
    out.u64(frames.len() as u64);
    for (&step, frame) in frames {
        out.u64(step);
        out.bytes(frame);
    }
}

fn restore_frames(bytes: &mut Reader) -> Option<Frames> {
    let mut frames = Frames::new();
    for _ in 0..bytes.u64()? {
        frames.insert(bytes.u64()?, bytes.bytes()?.to_vec());
    }
    Some(frames)
}
