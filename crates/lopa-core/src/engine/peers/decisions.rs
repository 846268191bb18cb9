//! Whether a link is used, step by step, kept as runs of steps: a link that stays cut for a million
//! steps takes no more memory than one step.

use std::collections::BTreeMap;

use super::frame::FrameResult;
use crate::engine::refusal::Refusal;
use crate::store::bytes::{Reader, Writer};

/// Steps from one to another (exclusive), and whether the link is used in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub from: u64,
    pub to: u64,
    pub used: bool,
}

/// Bytes of a run.
pub const RUN: usize = 24;

impl Run {
    pub fn save(self, out: &mut Writer) {
        [self.from, self.to, u64::from(self.used)].into_iter().for_each(|value| out.u64(value));
    }

    /// Reads a run; `None` if it is malformed.
    pub fn restore(bytes: &mut Reader) -> Option<Run> {
        let (from, to, used) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        (from < to && used < 2).then_some(Run { from, to, used: used == 1 })
    }
}

/// The decisions on a link.
#[derive(Debug, Default)]
pub struct Decisions {
    runs: BTreeMap<u64, (u64, bool)>, // by their first step
}

impl Decisions {
    /// Whether the link is used in a step, if that is decided.
    pub fn get(&self, step: u64) -> Option<bool> {
        let (_, &(to, used)) = self.runs.range(..=step).next_back()?;
        (step < to).then_some(used)
    }

    /// Adds a run; an error, and no change, if it contradicts an earlier decision.
    pub fn add(&mut self, Run { mut from, mut to, used }: Run) -> FrameResult {
        if from >= to {
            return Ok(());
        }
        // The runs that it overlaps or touches.
        let before = self.runs.range(..from).next_back().filter(|&(_, &(end, _))| end >= from);
        let first = before.map_or(from, |(&start, _)| start);
        let near = self.runs.range(first..=to);
        let near: Vec<_> = near.map(|(&start, &(end, used))| (start, end, used)).collect();
        if near.iter().any(|&(start, end, then)| start < to && from < end && then != used) {
            return Err(Refusal::Equivocation);
        }
        for (start, end, _) in near.into_iter().filter(|&(.., then)| then == used) {
            self.runs.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.runs.insert(from, (to, used));
        Ok(())
    }

    /// The runs from a step on.
    pub fn since(&self, step: u64) -> impl Iterator<Item = Run> {
        let runs = self.runs.iter().map(|(&from, &(to, used))| Run { from, to, used });
        runs.filter(move |run| run.to > step)
            .map(move |run| Run { from: run.from.max(step), ..run })
    }

    /// Adds the decision on a step, where no step between the last decision and this one needed
    /// one.
    pub fn push(&mut self, step: u64, used: bool) -> FrameResult {
        let last = self.runs.last_key_value().map(|(_, &last)| last);
        let last = last.filter(|&(to, then)| to <= step && then == used);
        let from = last.map_or(step, |(to, _)| to);
        self.add(Run { from, to: step + 1, used })
    }

    /// Since when the link has been skipped, if it was in the last decision before a step; 0 if it is not
    /// known to have been used before. Runs end where something was decided, but begin where a notice
    /// happens to: only their ends are the same in every life of a node.
    pub fn skipped_since(&self, step: u64) -> Option<u64> {
        let mut before = self.runs.range(..step).rev().map(|(_, &run)| run);
        let (_, used) = before.next()?;
        let last = || before.find(|&(_, used)| used).map_or(0, |(to, _)| to);
        (!used).then(last)
    }

    /// Discards decisions before a step.
    pub fn trim(&mut self, step: u64) {
        let mut rest = self.runs.split_off(&step);
        if let Some((_, &(to, used))) = self.runs.last_key_value().filter(|(_, (to, _))| *to > step)
        {
            rest.insert(step, (to, used));
        }
        self.runs = rest;
    }

    /// Writes the runs before a step.
    pub fn save(&self, until: u64, out: &mut Writer) {
        let before = self.since(0).filter(|run| run.from < until);
        let runs: Vec<Run> = before.map(|run| Run { to: run.to.min(until), ..run }).collect();
        out.u64(runs.len() as u64);
        runs.into_iter().for_each(|run| run.save(out));
    }

    /// Reads the saved decisions; `None` if they are malformed.
    pub fn restore(bytes: &mut Reader) -> Option<Decisions> {
        let mut decisions = Decisions::default();
        for _ in 0..bytes.u64()? {
            decisions.add(Run::restore(bytes)?).ok()?;
        }
        Some(decisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::random::{Purpose, Stream};

    /// Against a table with one entry per step.
    #[test]
    fn runs_say_what_steps_said() {
        for seed in 0..200 {
            let mut stream = Stream::new(seed, Purpose::Tuning, 6);
            let (mut runs, mut steps) = (Decisions::default(), BTreeMap::new());
            for _ in 0..40 {
                let from = stream.below(40) as u64;
                let to = from + stream.below(8) as u64;
                let used = stream.unit() < 0.5;
                let fits = (from..to).all(|s| steps.get(&s).is_none_or(|&then| then == used));
                assert_eq!(runs.add(Run { from, to, used }).is_ok(), fits, "seed {seed}");
                if fits {
                    steps.extend((from..to).map(|step| (step, used)));
                }
                if stream.unit() < 0.1 {
                    let step = stream.below(40) as u64;
                    runs.trim(step);
                    steps = steps.split_off(&step);
                }
                for step in 0..50 {
                    assert_eq!(runs.get(step), steps.get(&step).copied(), "seed {seed}");
                }
                let listed = runs.since(5).flat_map(|run| run.from..run.to);
                assert!(listed.eq(steps.range(5..).map(|(&step, _)| step)), "seed {seed}");
            }
            let mut out = Writer::default();
            runs.save(u64::MAX, &mut out);
            let bytes = out.done();
            let again = Decisions::restore(&mut Reader::new(&bytes)).unwrap();
            assert_eq!(again.runs, runs.runs);
        }
    }

    #[test]
    fn a_long_cut_is_one_run() {
        let mut runs = Decisions::default();
        // Every tenth step is no exchange.
        for step in (0..100_000).filter(|step| step % 10 != 9) {
            runs.push(step, false).unwrap();
        }
        assert_eq!(runs.since(7).collect::<Vec<_>>(), [Run { from: 7, to: 99_999, used: false }]);
        assert_eq!(runs.skipped_since(100_000), Some(0));
        runs.push(100_000, true).unwrap();
        assert_eq!(runs.skipped_since(100_001), None);
        // Where notices begin makes no difference.
        for from in [100_002, 100_005] {
            runs.add(Run { from, to: from + 1, used: false }).unwrap();
            assert_eq!(runs.skipped_since(100_010), Some(100_001));
        }
        assert!(runs.push(99_998, true).is_err());
    }
}
