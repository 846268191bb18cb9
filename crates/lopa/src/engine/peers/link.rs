//! One link: what was sent and may be needed again, and what came. It knows no wire and no clock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::frame::{Refusal, Taken, payload};
use super::status::END;
use crate::store::bytes::{Reader, Writer};

/// Frames by step.
pub type Frames = BTreeMap<u64, Vec<u8>>;

/// How many steps ahead frames are taken from, and how many frames are sent again at once.
pub const WINDOW: u64 = 64;

/// A link to a neighbour.
#[derive(Debug, Default)]
pub struct Link {
    /// The neighbour.
    pub peer: usize,
    /// What was sent to it since it was durable.
    sent: Frames,
    /// What came from it since this peer was durable.
    heard: Frames,
    /// Whether the link is used in a step, as far as that is known.
    pub decided: BTreeMap<u64, bool>,
    /// The step that the neighbour was in when it was last heard of.
    pub step: u64,
    /// The step that the neighbour would go on from after a crash.
    pub durable: u64,
    /// Whether the neighbour needs nobody any more.
    pub done: bool,
    /// The last step in which the neighbour, who decides on the link, was answered.
    pub answered: Option<u64>,
    /// The neighbour was asked for all before this step.
    pub asked: u64,
    /// When the neighbour was last sent again what it lacks, and from which step on.
    pub resent: Option<(u64, Duration)>,
}

impl Link {
    /// To a neighbour of whom nothing is known yet.
    pub fn new(peer: usize) -> Link {
        Link { peer, ..Link::default() }
    }

    /// Files what is sent in a step, and gives it back to be sent, or `None` if the neighbour will
    /// not need it; an error if something else was sent in it before.
    pub fn send(&mut self, step: u64, frame: Vec<u8>) -> Taken<Option<&[u8]>> {
        if step < self.durable {
            return Ok(None);
        }
        match self.sent.entry(step) {
            Entry::Occupied(known) if *known.get() != frame => Err(Refusal::Equivocation),
            known => Ok(Some(known.or_insert(frame))),
        }
    }

    /// What is to be sent again to a neighbour in a step; no more than the neighbour would take.
    pub fn again(&self, step: u64) -> impl Iterator<Item = (u64, &Vec<u8>)> {
        self.sent.range(step..step.saturating_add(WINDOW)).map(|(&step, frame)| (step, frame))
    }

    /// What was sent in a step.
    pub fn sent(&self, step: u64) -> Option<&Vec<u8>> {
        self.sent.get(&step)
    }

    /// Files what came for a step; true if it is new.
    pub fn receive(&mut self, step: u64, frame: Vec<u8>) -> Taken<bool> {
        self.step = self.step.max(step);
        match self.heard.entry(step) {
            Entry::Occupied(known) if *known.get() == frame => Ok(false),
            Entry::Occupied(_) => Err(Refusal::Equivocation),
            Entry::Vacant(place) => {
                place.insert(frame);
                Ok(true)
            }
        }
    }

    /// The frame that came for a step.
    pub fn heard(&self, step: u64) -> Option<&Vec<u8>> {
        self.heard.get(&step)
    }

    /// What came for a step was not what belongs there.
    pub fn refuse(&mut self, step: u64) {
        self.heard.remove(&step);
    }

    /// Forgets what neither the neighbour nor this peer, durable up to a step, will need again.
    pub fn trim(&mut self, ours: u64) {
        self.sent = self.sent.split_off(&self.durable);
        self.heard = self.heard.split_off(&ours);
        self.decided = self.decided.split_off(&self.durable.min(ours));
    }

    /// Bytes of frames that are kept.
    pub fn bytes(&self) -> usize {
        self.sent.values().chain(self.heard.values()).map(Vec::len).sum()
    }

    /// Whether the neighbour has gone beyond a step that it was not asked for yet.
    pub fn is_ahead(&self, step: u64) -> bool {
        self.step > step && self.asked <= step && !self.heard.contains_key(&step)
    }

    /// Whether the neighbour will need nothing of this run again.
    pub fn ended(&self) -> bool {
        self.durable == END
    }

    /// Writes down what a restarted peer must know, which goes on from a step.
    pub fn save(&self, from: u64, out: &mut Writer) {
        [self.peer as u64, self.durable].into_iter().for_each(|value| out.u64(value));
        save_frames(self.sent.iter(), out);
        save_frames(self.heard.range(from..), out);
        out.u64(self.decided.len() as u64);
        for (&step, &used) in &self.decided {
            out.u64(step);
            out.u64(u64::from(used));
        }
    }

    /// A link that was saved; `None` if these are not its bytes.
    pub fn restore(bytes: &mut Reader) -> Option<Link> {
        let mut link = Link::new(usize::try_from(bytes.u64()?).ok()?);
        link.durable = bytes.u64()?;
        link.sent = restore_frames(bytes)?;
        link.heard = restore_frames(bytes)?;
        for _ in 0..bytes.u64()? {
            let (step, used) = (bytes.u64()?, bytes.u64()?);
            link.decided.insert(step, used == 1);
        }
        Some(link)
    }

    /// The payload of what came for a step.
    pub fn message(&self, step: u64) -> Option<&[u8]> {
        self.heard(step).map(|frame| payload(frame))
    }
}

/// Writes frames down.
fn save_frames<'f>(frames: impl Iterator<Item = (&'f u64, &'f Vec<u8>)>, out: &mut Writer) {
    let frames: Vec<_> = frames.collect();
    out.u64(frames.len() as u64);
    for (&step, frame) in frames {
        out.u64(step);
        out.bytes(frame);
    }
}

/// Frames that were saved.
fn restore_frames(bytes: &mut Reader) -> Option<Frames> {
    let mut frames = Frames::new();
    for _ in 0..bytes.u64()? {
        frames.insert(bytes.u64()?, bytes.bytes()?.to_vec());
    }
    Some(frames)
}
