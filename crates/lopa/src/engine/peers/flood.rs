//! What every peer says to all, passed on by each to its neighbours.

use std::collections::BTreeMap;

use super::frame::{Refusal, Taken, payload};
use crate::store::bytes::{Reader, Writer};

/// How much of what each node says in steps to come is kept.
const EARLY: usize = 4;

/// What was said by everybody in some steps, as frames.
#[derive(Debug, Default)]
pub struct Floods {
    nodes: usize,
    said: BTreeMap<u64, Vec<Option<Vec<u8>>>>,
}

impl Floods {
    /// Of so many nodes; nothing was said yet.
    pub fn new(nodes: usize) -> Floods {
        Floods { nodes, ..Floods::default() }
    }

    /// Files what a node said in a step; true if it is new. Of what is said in steps after `now`, a
    /// little is kept.
    pub fn learn(&mut self, step: u64, frame: &[u8], now: u64) -> Taken<bool> {
        let origin = origin(frame).filter(|&origin| origin < self.nodes).ok_or(Refusal::Shape)?;
        let known = self.said.get(&step).and_then(|said| said[origin].as_ref());
        match known {
            Some(known) if *known == frame => return Ok(false),
            Some(_) => return Err(Refusal::Equivocation),
            // It will be asked for when it is time.
            None if step > now && self.early(now) >= EARLY * self.nodes => return Ok(false),
            None => {}
        }
        let said = self.said.entry(step).or_insert_with(|| vec![None; self.nodes]);
        said[origin] = Some(frame.to_vec());
        Ok(true)
    }

    /// How much was said in steps that are yet to come.
    fn early(&self, now: u64) -> usize {
        self.said
            .range(now.saturating_add(1)..)
            .map(|(_, said)| said.iter().flatten().count())
            .sum()
    }

    /// A node that was not heard of in a step, if any.
    pub fn missing(&self, step: u64) -> Option<usize> {
        match self.said.get(&step) {
            Some(said) => said.iter().position(Option::is_none),
            None => Some(0),
        }
    }

    /// What everybody said in a step that nobody is missing in.
    pub fn everybody(&self, step: u64) -> Vec<Vec<u8>> {
        let said = self.said[&step].iter().flatten();
        said.map(|frame| payload(frame)[8..].to_vec()).collect()
    }

    /// The frames of some steps.
    pub fn again(&self, from: u64, to: u64) -> impl Iterator<Item = &Vec<u8>> {
        self.said.range(from..to).flat_map(|(_, said)| said.iter().flatten())
    }

    /// Nobody here or next to here will need anything before a step.
    pub fn trim(&mut self, durable: u64) {
        self.said = self.said.split_off(&durable);
    }

    /// Bytes of frames that are kept.
    pub fn bytes(&self) -> usize {
        self.said.values().flatten().flatten().map(Vec::len).sum()
    }

    /// Writes all of it down.
    pub fn save(&self, out: &mut Writer) {
        let said = || {
            self.said
                .iter()
                .flat_map(|(step, said)| said.iter().flatten().map(move |frame| (step, frame)))
        };
        out.u64(said().count() as u64);
        for (&step, frame) in said() {
            out.u64(step);
            out.bytes(frame);
        }
    }

    /// What was saved; `None` if these are not its bytes.
    pub fn restore(nodes: usize, bytes: &mut Reader) -> Option<Floods> {
        let mut floods = Floods::new(nodes);
        for _ in 0..bytes.u64()? {
            let (step, frame) = (bytes.u64()?, bytes.bytes()?);
            floods.learn(step, frame, u64::MAX).ok()?;
        }
        Some(floods)
    }
}

/// What a node says to all, as a payload.
pub fn saying(node: usize, ours: &[u8]) -> Vec<u8> {
    [&(node as u64).to_le_bytes()[..], ours].concat()
}

/// Who says what a frame holds.
fn origin(frame: &[u8]) -> Option<usize> {
    usize::try_from(Reader::new(payload(frame)).u64()?).ok()
}
