//! Detects divergence early, and records which variable grew first.

use crate::store::bytes::{Reader, Writer};

/// Iterations between two checks of the variables.
pub const EVERY: u64 = 10;

/// Growth at which a variable becomes a suspect.
const NOTED: f64 = 1e3;

/// Growth at which a run is stopped.
const GIVEN_UP: f64 = 1e9;

/// Growth at which a run counts as diverged if it ends there: it had no time to grow further.
const LOST_AT_END: f64 = 1e6;

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
    first: Option<Culprit>,
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
        let mut lost = false;
        let mut worst: Option<Culprit> = None;
        self.early.resize(sizes.len(), vec![1.0; names.len()]);
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
            lost |= most(&grown) > limit;
            if most(&grown) > worst.as_ref().map_or(0.0, |worst| most(&worst.grown)) {
                worst = Some(Culprit { node: i, k, grown });
            }
        }
        self.first = self.first.take().or(worst);
        if lost { self.first.clone() } else { None }
    }

    /// Saves its state.
    pub fn save(&self, names: &[&'static str], out: &mut Writer) {
        out.u64(self.early.len() as u64);
        self.early.iter().for_each(|early| out.reals(early));
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
}
