//! Seeing a divergence early, and saying what grew first.

use crate::engine::Node;
use crate::real::Real;

/// How often variables are looked at, in iterations.
pub const EVERY: u64 = 10;

/// Growth at which a variable is noted as a suspect.
const NOTED: f64 = 1e3;

/// Growth at which a run is given up.
const GIVEN_UP: f64 = 1e9;

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
    /// Its largest entry when it was noted; not a number if it had stopped being one.
    pub size: f64,
    /// Its largest entry early in the run.
    pub early: f64,
}

impl Grown {
    fn growth(&self) -> f64 {
        if self.size.is_finite() { self.size / self.early } else { f64::INFINITY }
    }
}

/// Keeps the size that each variable of each node had early in the run, and notes the first node
/// at which one outgrew it.
#[derive(Debug, Default)]
pub struct Watch {
    early: Vec<Vec<f64>>,
    first: Option<Culprit>,
}

impl Watch {
    /// Looks at all nodes; tells what grew first if the run is beyond saving.
    pub fn look<T: Real>(&mut self, k: u64, nodes: &[Node<T>]) -> Option<Culprit> {
        let mut lost = false;
        let mut worst: Option<Culprit> = None;
        self.early.resize(nodes.len(), Vec::new());
        for (i, (node, early)) in nodes.iter().zip(&mut self.early).enumerate() {
            let mut grown = Vec::new();
            for (at, (variable, values)) in node.algorithm.variables().into_iter().enumerate() {
                let size = largest(values);
                if early.len() == at {
                    early.push(1.0);
                }
                // Variables may start at zero and find their size in the first iterations.
                if k <= 3 * EVERY && size.is_finite() && size < NOTED {
                    early[at] = early[at].max(size);
                }
                grown.push(Grown { variable, size, early: early[at] });
            }
            grown.retain(|variable| variable.growth() > NOTED);
            grown.sort_by(|a, b| b.growth().total_cmp(&a.growth()));
            let most = |grown: &[Grown]| grown.first().map_or(0.0, Grown::growth);
            lost |= most(&grown) > GIVEN_UP;
            if most(&grown) > worst.as_ref().map_or(0.0, |worst| most(&worst.grown)) {
                worst = Some(Culprit { node: i, k, grown });
            }
        }
        self.first = self.first.take().or(worst);
        if lost { self.first.clone() } else { None }
    }
}

fn largest<T: Real>(values: &[T]) -> f64 {
    // A comparison passes over what is not a number; 0 · value does not.
    let mut most = T::zero();
    let mut sum = T::zero();
    for &value in values {
        most = if value.abs() > most { value.abs() } else { most };
        sum += value * T::zero();
    }
    if sum.is_nan() { f64::NAN } else { most.to_f64() }
}
