//! Detects divergence early, and records which variable grew first.

use crate::store::bytes::{Reader, Writer};

/// Iterations between two checks of the variables.
pub const EVERY: u64 = 10;

/// Growth at which a variable becomes a suspect.
const NOTED: f64 = 1e3;

/// Growth at which a run is stopped.
const GIVEN_UP: f64 = 1e9;

/// Growth at which a run counts as diverged if it ends there, still growing: it had no time to grow further.
const LOST_AT_END: f64 = 1e6;

/// What grows no faster than this power of k does not diverge: it is on its way to a large value, as v is where
/// curvatures are small.
const POWER: i32 = 4;

/// The node at which a variable outgrew its early size first.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    /// The node.
    pub node: usize,
    /// The iteration at which it was noted.
    pub k: u64,
    /// Its variables that had outgrown their early sizes by then, the one that grew most first.
    pub grown: Vec<Grown>,
}

/// A variable that grew.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// Its name.
    pub variable: &'static str,
    /// Its largest entry when it was noted; NaN if an entry was NaN.
    pub size: f64,
    /// Its largest entry early in the run.
    pub early: f64,
}

impl Grown {
    fn growth(&self) -> f64 {
        if self.size.is_finite() { self.size / self.early } else { f64::INFINITY }
    }
}

/// Keeps the early size of each variable of each node, and records the first node at which one
/// outgrew it.
#[derive(Debug, Default)]
pub struct Watch {
    early: Vec<Vec<f64>>,
    marks: [Sizes; 2], // of two iterations, the later one first; a mark's k is at least twice that of the mark before
    first: Option<Culprit>,
}

/// The sizes of all nodes' variables in an iteration.
#[derive(Debug, Default)]
struct Sizes {
    k: u64,
    all: Vec<Vec<f64>>,
}

impl Watch {
    /// Whether no variable has outgrown its early size so far.
    pub fn is_calm(&self) -> bool {
        self.first.is_none()
    }

    /// Checks the sizes of all nodes' variables, with `last` at the end of the run; if the run has
    /// diverged, returns which variables grew first.
    pub fn look(
        &mut self,
        k: u64,
        last: bool,
        names: &[&'static str],
        sizes: &[Vec<f64>],
    ) -> Option<Culprit> {
        let limit = if last { LOST_AT_END } else { GIVEN_UP };
        self.mark(k, sizes);
        let mut lost = false;
        let mut worst: Option<Culprit> = None;
        self.early.resize(sizes.len(), vec![1.0; names.len()]);
        let [_, before] = &self.marks;
        for (i, (sizes, early)) in sizes.iter().zip(&mut self.early).enumerate() {
            let mut grown = Vec::new();
            for ((&variable, &size), early) in names.iter().zip(sizes).zip(early) {
                // Variables may start at zero and reach their size in the first iterations.
                if k <= 3 * EVERY && size.is_finite() && size < NOTED {
                    *early = early.max(size);
                }
                grown.push(Grown { variable, size, early: *early });
            }
            grown.retain(|variable| variable.growth() > NOTED);
            grown.sort_by(|a, b| b.growth().total_cmp(&a.growth()));
            let most = |grown: &[Grown]| grown.first().map_or(0.0, Grown::growth);
            let grows = |one: &Grown| !last || still_grows(before, k, i, names, one);
            lost |= grown.iter().any(|one| one.growth() > limit && grows(one));
            if most(&grown) > worst.as_ref().map_or(0.0, |worst| most(&worst.grown)) {
                worst = Some(Culprit { node: i, k, grown });
            }
        }
        self.first = self.first.take().or(worst);
        if lost { self.first.clone() } else { None }
    }

    fn mark(&mut self, k: u64, sizes: &[Vec<f64>]) {
        if k < 2 * self.marks[0].k {
            return;
        }
        self.marks.swap(0, 1);
        let [mark, _] = &mut self.marks;
        mark.k = k;
        mark.all.resize(sizes.len(), Vec::new());
        mark.all.iter_mut().zip(sizes).for_each(|(old, new)| old.clone_from(new));
    }

    /// Continues with other nodes: those that had these indices. A node that is new has that of another one.
    pub fn regroup(&mut self, staying: &[usize]) {
        let pick = |of: &Vec<Vec<f64>>| -> Vec<Vec<f64>> {
            staying.iter().filter_map(|&at| of.get(at).cloned()).collect()
        };
        self.early = pick(&self.early);
        self.marks.iter_mut().for_each(|mark| mark.all = pick(&mark.all));
        self.first = self.first.take().and_then(|culprit| {
            let node = staying.iter().position(|&at| at == culprit.node)?;
            Some(Culprit { node, ..culprit })
        });
    }

    /// Saves its state.
    pub fn save(&self, names: &[&'static str], out: &mut Writer) {
        out.u64(self.early.len() as u64);
        self.early.iter().for_each(|early| out.reals(early));
        for Sizes { k, all } in &self.marks {
            [*k, all.len() as u64].into_iter().for_each(|value| out.u64(value));
            all.iter().for_each(|sizes| out.reals(sizes));
        }
        let first = self.first.iter();
        out.u64(first.len() as u64);
        for Culprit { node, k, grown } in first {
            [*node as u64, *k, grown.len() as u64].into_iter().for_each(|value| out.u64(value));
            for Grown { variable, size, early } in grown {
                let number = names.iter().position(|name| name == variable);
                out.u64(number.expect("a variable has a name") as u64);
                out.f64(*size);
                out.f64(*early);
            }
        }
    }

    /// Restores a saved state; `None` if the bytes are malformed.
    pub fn restore(bytes: &mut Reader, names: &[&'static str]) -> Option<Watch> {
        let mut watch = Watch::default();
        for _ in 0..bytes.u64()? {
            let early = bytes.reals()?;
            watch.early.push(Some(early).filter(|early| early.len() == names.len())?);
        }
        for mark in &mut watch.marks {
            mark.k = bytes.u64()?;
            for _ in 0..bytes.u64()? {
                mark.all.push(bytes.reals()?);
            }
        }
        if bytes.u64()? > 0 {
            let (node, k) = (usize::try_from(bytes.u64()?).ok()?, bytes.u64()?);
            watch.early.get(node)?;
            let mut grown = Vec::new();
            for _ in 0..bytes.u64()? {
                let variable = *names.get(usize::try_from(bytes.u64()?).ok()?)?;
                grown.push(Grown { variable, size: bytes.f64()?, early: bytes.f64()? });
            }
            watch.first = Some(Culprit { node, k, grown });
        }
        Some(watch)
    }
}

/// Whether a node's variable has grown faster than a power of k since a mark, which is from the first half of the
/// run, so that noise in the last iterations does not count.
fn still_grows(before: &Sizes, k: u64, node: usize, names: &[&str], grown: &Grown) -> bool {
    let at = names.iter().position(|name| *name == grown.variable);
    let known = at.and_then(|at| before.all.get(node)?.get(at)).filter(|_| before.k > 0);
    known.is_none_or(|size| {
        let power = (k as f64 / before.k as f64).powi(POWER);
        // What is not a number has grown.
        grown.size.is_nan() || grown.size > size * power
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_its_end_a_run_is_lost_sooner() {
        let look = |watch: &mut Watch, k, last, size| watch.look(k, last, &["x"], &[vec![size]]);
        let mut watch = Watch::default();
        assert_eq!(look(&mut watch, 10, false, 2.0), None);
        assert!(watch.is_calm());
        assert_eq!(look(&mut watch, 50, false, 4e3), None);
        assert!(!watch.is_calm());
        assert_eq!(look(&mut watch, 60, false, 4e6), None);
        let culprit = look(&mut watch, 60, true, 4e6).expect("it grew a million times");
        assert_eq!((culprit.k, culprit.grown[0].early), (50, 2.0));
    }

    /// What grows like a power of k is on its way, also with noise, and after the state was saved and restored;
    /// what grows by a factor per iteration is lost.
    #[test]
    fn at_its_end_a_run_that_grows_slowly_is_not_lost() {
        let slow = |k: u64| (k as f64).powi(3);
        let fast = |k: u64| 1.035f64.powi(k as i32);
        for (size, lost) in [(&slow as &dyn Fn(u64) -> f64, false), (&fast, true)] {
            let look = |watch: &mut Watch, k: u64, last: bool| {
                let noise = if last { 1.5 } else { 1.0 };
                watch.look(k, last, &["s"], &[vec![noise * size(k)]])
            };
            let mut watch = Watch::default();
            for k in (10..=470).step_by(10) {
                assert_eq!(look(&mut watch, k, false), None);
            }
            let mut out = Writer::default();
            watch.save(&["s"], &mut out);
            let bytes = out.done();
            let mut again = Watch::restore(&mut Reader::new(&bytes), &["s"]).expect("whole");
            for watch in [&mut watch, &mut again] {
                assert_eq!(look(watch, 477, true).is_some(), lost);
            }
        }
    }
}
