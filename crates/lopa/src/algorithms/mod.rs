//! Algorithms: one node's variables and one step, nothing of the network.
//!
//! To add one, copy `dgd.rs`, put the formulas on top, and add a line to [`algorithms`].

pub mod dgd;
mod hypergradient;
pub mod lopa;
pub mod ma_dsbo;
pub mod spdb;

use toml::Table;

use crate::error::Result;
use crate::oracle::Oracle;
use crate::problem::At;
use crate::real::Real;
use crate::registry::{Entry, Params, params};
use crate::scope::Scope;

/// One node's side of an algorithm.
///
/// An iteration is one or more exchanges. In each, the engine asks what the node shares, forms
/// the weighted sum over the node and its neighbours, and hands it back. There is no network, no
/// clock and no error in here.
pub trait Algorithm<T: Real>: Send {
    /// Exchanges per iteration.
    fn exchanges(&self) -> usize {
        1
    }

    /// Appends what this node shares in exchange `e`; the same length at every node, always.
    fn share(&self, e: usize, message: &mut Vec<T>);

    /// Goes on with `mixed` = Σ_j w_ij message_j. `oracle.k()` is the iteration under
    /// way.
    fn step(&mut self, e: usize, mixed: &[T], oracle: &mut Oracle<T>);

    /// The node's current (x_i, θ_i).
    fn at(&self) -> At<'_, T>;

    /// Every variable under its name in the paper.
    fn variables(&self) -> Vec<(&'static str, &[T])>;

    /// Two variables whose means over the network agree at every iteration, if there are any:
    /// gradient tracking's witness.
    fn tracked(&self) -> Option<(&[T], &[T])> {
        None
    }
}

/// Where a node starts.
pub struct Start<'a, T: Real> {
    /// x⁰, the same at every node unless the caller wants otherwise.
    pub x: Vec<T>,
    /// θ_i⁰
    pub theta: Vec<T>,
    /// v_i⁰
    pub v: Vec<T>,
    /// Whose inner problem is solved: an algorithm that serves both scopes mixes θ in the global one.
    pub scope: Scope,
    /// For the estimates that belong to the start.
    pub oracle: &'a mut Oracle<T>,
}

/// What is worth knowing of an algorithm before running it.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Facts {
    /// Who published it.
    pub source: &'static str,
    /// The scopes it serves.
    pub scopes: &'static [Scope],
    /// Vectors sent to each neighbour in an iteration.
    pub sends: &'static str,
    /// Scalars sent to each neighbour in an iteration, in the personal and in the global scope.
    pub floats: [&'static str; 2],
    /// Hessian-vector products in an iteration.
    pub hessians: &'static str,
    /// Calls in an iteration of ∇_θ g, ∇²_xθ g · v, ∇_θ f and ∇_x f.
    pub calls: [&'static str; 4],
    /// Loops inside an iteration.
    pub loops: &'static str,
    /// Samples to an ε-stationary point, as its authors claim.
    pub complexity: &'static str,
    /// What it assumes of how nodes differ.
    pub assumes: &'static str,
    /// What a user must know who runs it in the global scope.
    pub warning: Option<&'static str>,
    /// Whether a smallest eigenvalue of W near −1 endangers it (gradient tracking, augmented
    /// Lagrangian).
    pub needs_lazy: bool,
    /// Whether it computes Hessian-vector products at all.
    pub second_order: bool,
    /// Which step size drives which variable, most upstream first: the order in which a
    /// divergence is traced.
    pub steps: &'static [(&'static str, &'static str)],
}

impl Facts {
    /// What holds for most: both scopes, no loops, each derivative once in an iteration.
    pub const LOOPLESS: Facts = Facts {
        source: "",
        scopes: Scope::BOTH,
        sends: "x",
        floats: ["n", "n + 2p"],
        hessians: "1",
        calls: ["1"; 4],
        loops: "none",
        complexity: "–",
        assumes: "none",
        warning: None,
        needs_lazy: false,
        second_order: true,
        steps: &[],
    };
}

/// How an algorithm is made.
pub struct Recipe<T: Real> {
    /// What is worth knowing of it.
    pub facts: Facts,
    /// Makes a node from resolved parameters.
    pub start: Box<StartFn<T>>,
}

type StartFn<T> = dyn Fn(&Table, Start<T>) -> Result<Box<dyn Algorithm<T>>> + Send + Sync;

fn entry<T: Real, P: Params>(
    name: &'static str,
    about: &'static str,
    facts: Facts,
    start: impl Fn(P, Start<T>) -> Result<Box<dyn Algorithm<T>>> + Send + Sync + 'static,
) -> Entry<Recipe<T>> {
    let start = Box::new(move |table: &Table, s: Start<T>| start(params(table), s));
    Entry::new::<P>(name, about, Box::new(Recipe { facts, start }))
}

/// The registry of algorithms.
pub fn algorithms<T: Real>() -> Vec<Entry<Recipe<T>>> {
    use lopa::Scheme;
    vec![
        entry(
            "lopa-gt",
            "LoPA with gradient tracking: exact under heterogeneity",
            lopa::facts(Scheme::GradientTracking),
            |p, s| lopa::start(Scheme::GradientTracking, p, s),
        ),
        entry(
            "lopa-lg",
            "LoPA with local gradients: half the bytes, a bias of order alpha",
            lopa::facts(Scheme::LocalGradient),
            |p, s| lopa::start(Scheme::LocalGradient, p, s),
        ),
        entry(
            "spdb",
            "primal-dual or tracking, Hessian inverse by a loop",
            spdb::FACTS,
            spdb::start,
        ),
        entry(
            "ma-dsbo",
            "moving average, inner and Hessian-inverse loops, personalised",
            ma_dsbo::FACTS,
            ma_dsbo::start,
        ),
        entry("dgd", "single-level decentralised gradient descent", dgd::FACTS, dgd::start),
        entry(
            "local",
            "LoPA's updates without communication: the baseline of going alone",
            lopa::facts(Scheme::Alone),
            |p, s| lopa::start(Scheme::Alone, p, s),
        ),
    ]
}
