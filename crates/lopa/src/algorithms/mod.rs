//! Algorithms: one node's variables and one step, nothing of the network.
//!
//! To add one, copy `dgd.rs`, put the formulas on top, and add a line to [`algorithms`].

/// Both listings of an algorithm's variables from one: where they are, then name and place of each.
macro_rules! variables {
    ($places:pat => $($name:literal: $place:expr),+ $(,)?) => {
        fn variables(&self) -> Vec<(&'static str, &[T])> {
            let $places = self;
            vec![$(($name, &$place[..])),+]
        }

        fn variables_mut(&mut self) -> Vec<(&'static str, &mut [T])> {
            let $places = self;
            vec![$(($name, &mut $place[..])),+]
        }
    };
}

pub mod d_soba;
pub mod dgd;
pub mod gossip;
pub mod gossip_mf;
pub mod lopa;
mod lopa_global;
pub mod ma_dsbo;
mod ma_dsbo_global;
pub mod mdbo;
pub mod parts;
pub mod prometheus;
pub mod single_level;
pub mod slam;
pub mod sldbo;
pub mod spdb;
pub mod zhang;

pub use parts::hypergradient::Inverse;

use toml::Table;

use crate::config::registry::{Entry, Fault, Params, params};
use crate::error::Result;
use crate::math::real::Real;
use crate::network::mixed::Mixed;
use crate::problem::At;
use crate::problem::oracle::Oracle;
use crate::problem::scope::Scope;

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

    /// Goes on with `mixed` = Σ_j w_ij message_j. `oracle.k()` is the iteration under way.
    fn step(&mut self, e: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>);

    /// The node's current (x_i, θ_i).
    fn at(&self) -> At<'_, T>;

    /// Every variable under its name in the paper: all that an iteration hands to the next, so
    /// that a node with these values goes on as this one would.
    fn variables(&self) -> Vec<(&'static str, &[T])>;

    /// The same variables in the same order, to be put back to what they were.
    fn variables_mut(&mut self) -> Vec<(&'static str, &mut [T])>;

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
    /// Whose inner problem is solved: what serves both scopes mixes θ in the global one.
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
    /// Vectors sent to each neighbour in an iteration; (+ what the global scope adds).
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

/// What whoever mixes θ but not Hessians must be told.
const LOCAL_HESSIANS: &str = "each node inverts its own Hessian, so that where the g_i differ, the \
    mean of the nodes' estimates is not the gradient of the global problem, and it stops short of \
    the solution";

/// A usual number of terms.
fn ten() -> usize {
    10
}

/// η must be a weight.
fn check_eta(eta: f64) -> std::result::Result<(), Fault> {
    Fault::unless(eta > 0.0 && eta <= 1.0, "eta", eta, "above 0 and at most 1")
}

/// The registry of algorithms.
pub fn algorithms<T: Real>() -> Vec<Entry<Recipe<T>>> {
    use lopa::Scheme::{Alone, GradientTracking, LocalGradient};
    use mdbo::Estimator::{Momentum, Storm};
    use single_level::Scheme as Single;
    vec![
        entry(
            "lopa-gt",
            "LoPA with gradient tracking: exact under heterogeneity",
            lopa::facts(GradientTracking),
            |p, s| lopa_in_its_scope(GradientTracking, p, s),
        ),
        entry(
            "lopa-lg",
            "LoPA with local gradients: half the bytes, a bias of order α",
            lopa::facts(LocalGradient),
            |p, s| lopa_in_its_scope(LocalGradient, p, s),
        ),
        entry(
            "spdb",
            "primal-dual or tracking, Hessian inverse by a loop",
            spdb::FACTS,
            spdb::start,
        ),
        entry(
            "slam",
            "primal-dual on both levels, local Hessian inverse",
            slam::FACTS,
            slam::start,
        ),
        entry(
            "ma-dsbo",
            "moving average, inner and Hessian-inverse loops",
            ma_dsbo::FACTS,
            |p, s| match s.scope {
                Scope::Personal => ma_dsbo::start(p, s),
                Scope::Global => ma_dsbo_global::start(p, s),
            },
        ),
        entry(
            "gossip-dsbo",
            "averages of whole Jacobians and Hessians, p ≤ 500",
            gossip::FACTS,
            gossip::start,
        ),
        entry(
            "gossip-dsbo-mf",
            "Gossip-DSBO with products in place of matrices",
            gossip_mf::FACTS,
            gossip_mf::start,
        ),
        entry(
            "mdbo",
            "momentum and tracking, local Hessian inverse by a loop",
            mdbo::facts(Momentum),
            |p, s| mdbo::start(Momentum, p, s),
        ),
        entry("vrdbo", "MDBO with variance reduction (STORM)", mdbo::facts(Storm), |p, s| {
            mdbo::start(Storm, p, s)
        }),
        entry(
            "d-soba",
            "no loops, adapt then combine, second or first order",
            d_soba::FACTS,
            d_soba::start,
        ),
        entry(
            "sldbo",
            "no loops, tracking on three levels, projected v",
            sldbo::FACTS,
            sldbo::start,
        ),
        entry("zhang", "no loops, STORM and tracking on three levels", zhang::FACTS, zhang::start),
        entry(
            "prometheus",
            "tracking and SPIDER with a proximal step: bounds and l1 on x",
            prometheus::PROMETHEUS,
            prometheus::start,
        ),
        entry(
            "interact",
            "tracking and SPIDER, Hessian inverse by a loop",
            prometheus::INTERACT,
            prometheus::start_interact,
        ),
        entry("dgd", "single-level decentralised gradient descent", dgd::FACTS, dgd::start),
        entry(
            "gt-sgd",
            "single-level gradient tracking",
            single_level::facts(Single::GradientTracking),
            |p, s| single_level::start(Single::GradientTracking, p, s),
        ),
        entry(
            "extra",
            "single-level EXTRA: exact with the bytes of DGD",
            single_level::facts(Single::Extra),
            |p, s| single_level::start(Single::Extra, p, s),
        ),
        entry(
            "exact-diffusion",
            "single-level exact diffusion: EXTRA, adapt then combine",
            single_level::facts(Single::ExactDiffusion),
            |p, s| single_level::start(Single::ExactDiffusion, p, s),
        ),
        entry(
            "local",
            "LoPA's updates without communication: going alone",
            lopa::facts(Alone),
            |p, s| lopa::start(Alone, p, s),
        ),
    ]
}

/// The paper's LoPA, or the one with a common θ.
fn lopa_in_its_scope<T: Real>(
    scheme: lopa::Scheme,
    params: lopa::LopaParams,
    start: Start<T>,
) -> Result<Box<dyn Algorithm<T>>> {
    match start.scope {
        Scope::Personal => lopa::start(scheme, params, start),
        Scope::Global => lopa_global::start(scheme, params, start),
    }
}
