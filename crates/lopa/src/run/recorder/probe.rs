//! Measures that another crate adds to the rows of a run.

use std::collections::BTreeMap;

use crate::engine::Node;
use crate::experiment::{AlgorithmSpec, Experiment};
use crate::math::real::{Real, cast};
use crate::problem::Bilevel;
use crate::run::Setup;

/// Adds measures to runs.
pub trait Probe: Sync {
    /// The measures to add to a run of this algorithm, if any.
    fn begin(&self, experiment: &Experiment, algorithm: &AlgorithmSpec)
    -> Option<Box<dyn Probing>>;
}

/// Adds measures to one run.
pub trait Probing {
    /// Measures by name, from the variables of all nodes; `parts` are the nodes' parts to measure with.
    fn measure(
        &mut self,
        setup: &Setup,
        nodes: &[Variables],
        parts: &mut [Box<dyn Bilevel<f64>>],
    ) -> BTreeMap<String, f64>;
}

/// A node's variables by name, in double precision.
pub type Variables = Vec<(&'static str, Vec<f64>)>;

/// The variables of a node.
pub fn variables<T: Real>(node: &Node<T>) -> Variables {
    node.algorithm.variables().into_iter().map(|(name, values)| (name, cast(values))).collect()
}
