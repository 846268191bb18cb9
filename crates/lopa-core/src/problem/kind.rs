//! How the parts of a problem are made.

use std::ops::Range;
use std::sync::Arc;

use rayon::ThreadPool;

use super::predictor::Predictor;
use super::scope::Scope;
use super::{At, Bilevel, Directions, Minibatches};
use crate::config::{Entry, Params};
use crate::data::{Data, Features, Target};
use crate::error::Result;
use crate::math::real::{Both, Family, Real};

/// The input of a problem.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setting<'a> {
    /// Number of nodes.
    pub nodes: usize,
    /// The seed of splits, corruption and synthetic problems.
    pub seed: u64,
    /// Whether the inner problem is personal or global.
    pub scope: Scope,
    /// The batch size; `None` stands for the full batch.
    pub batch: Option<usize>,
    /// The data set, if there is one.
    pub data: Option<&'a Data>,
    /// The rows of `data.train` that each node holds.
    pub partition: &'a [Vec<u32>],
    /// The rows of `data.train` that each node holds out from training. May be empty.
    pub holdout: &'a [Vec<u32>],
    /// Whether f and g both have all samples of a node: x is fixed, and only θ is solved for.
    pub whole: bool,
    /// Threads to make parts on; `None` for this thread alone.
    pub pool: Option<&'a ThreadPool>,
}

/// A problem with its parameters, usually the struct of parameters itself.
pub trait Problem<T: Real>: Send + Sync {
    /// Whether it is made from a data set, and files must have a `[data]` section.
    fn needs_data(&self) -> bool {
        false
    }

    /// The parts of some nodes; features of other nodes' rows may be missing.
    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>>;

    /// Whether its parts are called from one thread only, as those of an interpreter are.
    fn one_thread(&self) -> bool {
        false
    }

    /// The framework and device that compute it, for the manifest; `None` if it is lopa alone.
    fn computed_by(&self) -> Option<String> {
        None
    }

    /// The layers of a saved model for this many scaled features; `None` where it has no layers or
    /// does not fit.
    fn predictor(&self, _target: Target, _at: At<f64>, _features: usize) -> Option<Predictor> {
        None
    }

    /// For each row of scaled features, the probability of each class or, of a target that is numbers,
    /// each scaled number; `None` where prediction makes no sense or the features do not fit the model.
    fn predictions(
        &self,
        target: Target,
        at: At<f64>,
        features: &Features<f64>,
    ) -> Option<Vec<f64>> {
        Some(self.predictor(target, at, features.cols())?.apply(features))
    }

    /// Whether x is also meaningful for a node that took no part in training.
    fn transfers(&self) -> bool {
        true
    }
}

/// The parts of the nodes of a process.
pub struct Parts<T: Real> {
    /// One part per node.
    pub each: Vec<Box<dyn Bilevel<T>>>,
    /// Computes for all of these nodes in one call, if the problem supports it.
    pub together: Option<Box<dyn Together<T>>>,
}

impl<T: Real, P: Bilevel<T> + 'static> FromIterator<P> for Parts<T> {
    fn from_iter<I: IntoIterator<Item = P>>(parts: I) -> Parts<T> {
        let boxed = |part| Box::new(part) as Box<dyn Bilevel<T>>;
        Parts { each: parts.into_iter().map(boxed).collect(), together: None }
    }
}

/// One node's question to [`Together`].
pub struct Ask<'a, T> {
    /// The node's index among the parts that were made with it.
    pub node: usize,
    /// The point.
    pub at: At<'a, T>,
    /// The v of (7) and (8).
    pub v: &'a [T],
    /// The minibatches.
    pub on: Minibatches<'a>,
    /// The output.
    pub out: Directions<'a, T>,
}

/// Computes the directions of all nodes of a process in one call: for problems in an interpreter or
/// on a device, where one call for all is cheaper than one per node.
pub trait Together<T: Real>: Send {
    /// d, h and s for every request; an error ends the run.
    fn directions(&mut self, asks: &mut [Ask<T>]) -> Result<()>;
}

/// Problems, as a family over precisions.
pub struct Problems;

impl Family for Problems {
    type Of<T: Real> = Arc<dyn Problem<T>>;
}

/// A problem with its parameters, in both precisions.
pub type AnyProblem = Both<Problems>;

/// An entry of the registry of problems, whose parameters are the problem.
pub fn problem_entry<P: Params + Problem<f32> + Problem<f64>>(
    name: impl Into<String>,
    about: impl Into<String>,
) -> Entry<AnyProblem> {
    Entry::new(name, about, |params: P| {
        let problem = Arc::new(params);
        let (single, double): (Arc<dyn Problem<f32>>, Arc<dyn Problem<f64>>) =
            (problem.clone(), problem);
        Arc::new(Both::new(single, double))
    })
}
