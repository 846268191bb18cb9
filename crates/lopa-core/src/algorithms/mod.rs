//! Algorithms: one node's variables and one step, independent of the network.
//!
//! To add one, copy `d_soba.rs`, put the formulas at the top, and add a line to [`algorithms`].

/// Lists an algorithm's variables once: the struct, then the name and field of each. Empty ones, as
/// in a scope that does not need them, are left out.
///
/// ```text
/// variables! { Dgd { x, theta, .. } => "theta": theta, "x": x }
/// ```
#[macro_export]
macro_rules! variables {
    ($places:pat => $($name:literal: $place:expr),+ $(,)?) => {
        fn variables(&self) -> Vec<(&'static str, &[T])> {
            let $places = self;
            let all = [$(($name, &$place[..])),+];
            all.into_iter().filter(|(_, values)| !values.is_empty()).collect()
        }

        fn variables_mut(&mut self) -> Vec<(&'static str, &mut [T])> {
            let $places = self;
            let all = [$(($name, &mut $place[..])),+];
            all.into_iter().filter(|(_, values)| !values.is_empty()).collect()
        }
    };
}

pub mod c2dfb;
pub mod cost;
pub mod d_soba;
pub mod dgd;
pub mod ditto;
pub mod fedavg;
pub mod fedper;
pub mod fedrep;
pub mod gossip;
pub mod gossip_mf;
pub mod lopa;
pub mod ma_dsbo;
pub mod mdbo;
pub mod parts;
pub mod prelude;
pub mod prometheus;
pub mod sent;
pub mod single_level;
pub mod slam;
pub mod sldbo;
pub mod sparkle;
pub mod spdb;
pub mod update_rule;
pub mod zhang;

pub use cost::{Cost, Task};
pub use parts::hypergradient::Inverse;
pub use sent::Sent;

use std::sync::Arc;

use parts::directions::{DirectionBuffers, Estimate};
use toml::Table;

use crate::config::{Entry, Params, Registry};
use crate::error::Result;
use crate::math::real::{Both, Family, Real, Vector};
use crate::network::mixed::Mixed;
use crate::network::outbox::{Outbox, Round};
use crate::problem::At;
use crate::problem::oracle::{DirectionRequest, Draws, Oracle};
use crate::problem::scope::Scope;

/// One node's side of an algorithm.
///
/// An iteration is one or more exchanges. In each, the engine collects what the node shares, forms
/// the weighted sum over the node and its neighbours, and calls [`step`](Algorithm::step) with it.
/// An algorithm has no access to the network or the clock, and cannot fail.
pub trait Algorithm<T: Real>: Send {
    /// Exchanges per iteration.
    fn exchanges(&self) -> usize {
        1
    }

    /// Names the vectors that this node sends in a round, in order. Their lengths are the same at every
    /// node and in every iteration; messages are compressed and clipped vector by vector.
    fn share(&self, round: Round, out: &mut Outbox<T>);

    /// Continues with `mixed`, the weighted sums Σ_j w_ij of the vectors that were sent, in their order.
    /// `oracle.k()` is the current iteration.
    fn step(&mut self, e: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>);

    /// The directions (6) to (8) that this step requests at its end, if any. The engine computes
    /// them, for each node separately or for all at once, before anything is shared.
    fn asks(&mut self, _e: usize) -> Option<DirectionRequest<'_, T>> {
        None
    }

    /// Finishes the step with the requested directions, if needed. `oracle` may measure the problem at
    /// the new point.
    fn finish(&mut self, _e: usize, _oracle: &mut Oracle<T>) {}

    /// The node's current (x_i, θ_i).
    fn at(&self) -> At<'_, T>;

    /// The running mean of θ_i, if the node has a variable of this name: it is reported in place of θ_i,
    /// and no step depends on it.
    fn mean_theta(&self) -> Option<&[T]> {
        self.variables().into_iter().find(|(name, _)| *name == "mean_theta").map(|(_, mean)| mean)
    }

    /// Every variable under its name in the paper: everything that one iteration passes to the
    /// next, so that a node with these values continues as this one would. See [`variables!`].
    fn variables(&self) -> Vec<(&'static str, &[T])>;

    /// The same variables in the same order, to restore them.
    fn variables_mut(&mut self) -> Vec<(&'static str, &mut [T])>;

    /// The update rule, for a device that computes iterations; or the reason why no device can.
    fn update_rule(&self) -> Result<update_rule::UpdateRule, &'static str> {
        Err("no device runs this algorithm")
    }

    /// Two variables whose means over the network agree at every iteration, if there are any: the
    /// invariant of gradient tracking.
    fn tracked(&self) -> Option<(&[T], &[T])> {
        None
    }

    /// The variables that refer to all nodes, each with the node's own variable that takes its place when
    /// nodes leave, or none where zeros do: what must hold of sums over all nodes then holds of those that
    /// stay. A name that the node has no variable of is passed over. An error is the reason why the
    /// algorithm cannot go on without a node.
    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Err("it does not state which of its variables refer to all nodes")
    }
}

/// A variable that refers to all nodes, and the node's own one that takes its place.
pub type Tracker = (&'static str, Option<&'static str>);

/// Restores what must hold of sums over all nodes, after some have left.
pub fn regroup<T: Real>(algorithm: &mut dyn Algorithm<T>) -> Result<(), &'static str> {
    for (tracker, own) in algorithm.trackers()? {
        let find = |name: &str| algorithm.variables().iter().position(|(known, _)| *known == name);
        let (at, from) = (find(tracker), own.and_then(find));
        let mut variables = algorithm.variables_mut();
        let Some(at) = at else { continue };
        match (own, from) {
            (None, _) => variables[at].1.fill(T::zero()),
            (Some(_), Some(from)) => {
                let values = variables[from].1.to_vec();
                variables[at].1.copy_from_slice(&values);
            }
            (Some(_), None) => return Err("a variable that it names is missing"),
        }
    }
    Ok(())
}

/// Where a node starts.
pub struct Start<'a, T: Real> {
    /// x⁰, the same at every node unless the caller decides otherwise.
    pub x: Vector<T>,
    /// θ_i⁰
    pub theta: Vector<T>,
    /// v_i⁰
    pub v: Vector<T>,
    /// Buffers for d, h and s: in blocks with those of other nodes, if a problem computes for all
    /// nodes together. See [`Start::directions`].
    pub rows: Option<[Vector<T>; 3]>,
    /// The scope of the inner problem: algorithms that support both scopes mix θ in the global one.
    pub scope: Scope,
    /// For the estimates at the start.
    pub oracle: &'a mut Oracle<T>,
}

impl<T: Real> Start<'_, T> {
    /// Directions at the start, on these minibatches.
    pub fn directions(&mut self, draws: Draws) -> DirectionBuffers<T> {
        let now = self.buffers(draws);
        self.answered(now)
    }

    /// The same, estimated as `estimate` says from the start.
    ///
    /// # Errors
    /// If the run cannot estimate like that.
    pub fn estimated(&mut self, draws: Draws, estimate: Estimate) -> Result<DirectionBuffers<T>> {
        let mut now = self.buffers(draws);
        let at = At { x: &self.x, theta: &self.theta };
        now.estimated(estimate, (at, &self.v), self.oracle)?;
        Ok(self.answered(now))
    }

    fn buffers(&mut self, draws: Draws) -> DirectionBuffers<T> {
        match self.rows.take() {
            Some(rows) => DirectionBuffers::of(rows, draws),
            None => DirectionBuffers::new(self.x.len(), self.theta.len(), draws),
        }
    }

    fn answered(&mut self, mut now: DirectionBuffers<T>) -> DirectionBuffers<T> {
        self.oracle.answer(now.at(At { x: &self.x, theta: &self.theta }, &self.v));
        now
    }
}

/// An algorithm with its parameters, usually the struct of parameters itself.
pub trait Method: Send + Sync + 'static {
    /// The derivatives that an iteration evaluates; by default each of the five once. Its messages
    /// follow from [`Algorithm::share`], and [`Cost::probes`] from step sizes that are left out.
    fn cost(&self, _task: Task) -> Cost {
        Cost::loopless()
    }

    /// A node that runs it.
    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>>;
}

/// Metadata of an algorithm.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Facts {
    /// Its publication, and the evidence for its formulas: \[V\] read in the paper, \[D\] derived
    /// here, \[K\] from general knowledge because the text was not available.
    pub source: &'static str,
    /// The scopes it supports.
    pub scopes: &'static [Scope],
    /// The loops inside an iteration.
    pub loops: &'static str,
    /// Samples to an ε-stationary point, as its authors claim.
    pub complexity: &'static str,
    /// Its assumption about the differences between nodes.
    pub assumes: &'static str,
    /// A warning for runs in the global scope.
    pub warning: Option<&'static str>,
    /// A warning for runs with `[messages]`: failing links, compressed messages.
    pub messages: Option<&'static str>,
    /// Whether a smallest eigenvalue of W near −1 endangers it (gradient tracking, augmented
    /// Lagrangian).
    pub needs_lazy: bool,
    /// Whether it is only known to converge where W is fixed and symmetric (augmented Lagrangian,
    /// EXTRA).
    pub fixed_graph: bool,
    /// Whether it computes Hessian-vector products at all.
    pub second_order: bool,
    /// Whether step sizes that a file leaves out are found during the run.
    pub finds_steps: bool,
    /// Its step sizes, and the variables that each drives.
    pub steps: &'static [(&'static str, &'static [&'static str])],
}

impl Facts {
    /// The facts of most: both scopes, no loops, second order.
    pub const LOOPLESS: Facts = Facts {
        source: "",
        scopes: Scope::BOTH,
        loops: "none",
        complexity: "–",
        assumes: "none",
        warning: None,
        messages: None,
        needs_lazy: false,
        fixed_graph: false,
        second_order: true,
        finds_steps: false,
        steps: &[],
    };

    /// The step sizes that drive one of these variables.
    pub fn driving(&self, variables: &[&str]) -> Vec<&'static str> {
        let drives = |of: &[&str]| of.iter().any(|variable| variables.contains(variable));
        self.steps.iter().filter(|(_, of)| drives(of)).map(|&(key, _)| key).collect()
    }
}

/// An algorithm with its parameters, in both precisions.
pub struct AnyMethod {
    /// Its metadata.
    pub facts: Facts,
    cost: Box<dyn Fn(Task) -> Cost + Send + Sync>,
    start: Both<Starts>,
}

struct Starts;

type StartFn<T> = dyn Fn(Start<T>) -> Result<Box<dyn Algorithm<T>>> + Send + Sync;

impl Family for Starts {
    type Of<T: Real> = Box<StartFn<T>>;
}

impl AnyMethod {
    /// From a method, for both precisions.
    pub fn new(facts: Facts, method: impl Method) -> AnyMethod {
        let method = Arc::new(method);
        let start = Both::new(starts::<f32>(method.clone()), starts::<f64>(method.clone()));
        AnyMethod { facts, cost: Box::new(move |task| method.cost(task)), start }
    }

    /// The derivatives that an iteration evaluates.
    pub fn cost(&self, task: Task) -> Cost {
        (self.cost)(task)
    }

    /// A node that runs it.
    pub fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        self.start.get::<T>()(start)
    }
}

fn starts<T: Real>(method: Arc<impl Method>) -> Box<StartFn<T>> {
    Box::new(move |start| method.start(start))
}

/// An entry of the registry of algorithms: `method` builds a method from its parameters, whose
/// defaults are used in lists and conformance tests.
pub fn algorithm_entry<P: Params + Default, M: Method>(
    name: impl Into<String>,
    about: impl Into<String>,
    facts: Facts,
    method: impl Fn(P) -> M + Send + Sync + 'static,
) -> Entry<AnyMethod, Facts> {
    let build = move |params: P| Arc::new(AnyMethod::new(facts, method(params)));
    let mut entry = Entry::with_facts(name, about, facts, build);
    entry.typical = Some(Table::try_from(P::default()).expect("parameters are TOML"));
    entry
}

/// The same for a method that is the struct of its parameters.
fn own<M: Method + Params + Default>(
    name: &str,
    about: &str,
    facts: Facts,
) -> Entry<AnyMethod, Facts> {
    algorithm_entry(name, about, facts, |method: M| method)
}

/// The warning of methods that mix θ but not Hessians.
const LOCAL_HESSIANS: &str = "each node inverts its own Hessian, so that where the g_i differ, the \
    mean of the nodes' estimates is not the gradient of the global problem, and it stops short of \
    the solution";

/// The algorithms that come with the library.
pub fn algorithms() -> Registry<AnyMethod, Facts> {
    use self::lopa::{Lopa, Scheme};
    use mdbo::{Estimator, Mdbo};
    use single_level::{Scheme as Single, SingleLevel};
    let entries = vec![
        algorithm_entry(
            "lopa-gt",
            "LoPA with gradient tracking: exact under heterogeneity",
            lopa::TRACKING,
            |params| Lopa { scheme: Scheme::GradientTracking, params },
        ),
        algorithm_entry(
            "lopa-lg",
            "LoPA with local gradients: half the bytes, a bias of order α",
            lopa::LOCAL,
            |params| Lopa { scheme: Scheme::LocalGradient, params },
        ),
        own::<spdb::SpdbParams>(
            "spdb",
            "primal-dual or tracking, Hessian inverse by a loop",
            spdb::FACTS,
        ),
        own::<slam::SlamParams>(
            "slam",
            "primal-dual on both levels, local Hessian inverse",
            slam::FACTS,
        ),
        own::<ma_dsbo::MaDsboParams>(
            "ma-dsbo",
            "moving average, inner and Hessian-inverse loops",
            ma_dsbo::FACTS,
        ),
        own::<gossip::GossipParams>(
            "gossip-dsbo",
            "averages of whole Jacobians and Hessians, p ≤ 500",
            gossip::FACTS,
        ),
        own::<gossip_mf::GossipMfParams>(
            "gossip-dsbo-mf",
            "Gossip-DSBO with products in place of matrices",
            gossip_mf::FACTS,
        ),
        algorithm_entry(
            "mdbo",
            "momentum and tracking, local Hessian inverse by a loop",
            mdbo::facts(Estimator::Momentum),
            |params| Mdbo { estimator: Estimator::Momentum, params },
        ),
        algorithm_entry(
            "vrdbo",
            "MDBO with variance reduction (STORM)",
            mdbo::facts(Estimator::Storm),
            |params| Mdbo { estimator: Estimator::Storm, params },
        ),
        own::<d_soba::DSobaParams>(
            "d-soba",
            "no loops, adapt then combine, second or first order",
            d_soba::FACTS,
        ),
        own::<sldbo::SldboParams>(
            "sldbo",
            "no loops, tracking on three levels, projected v",
            sldbo::FACTS,
        ),
        own::<zhang::ZhangParams>(
            "zhang",
            "no loops, STORM and tracking on three levels",
            zhang::FACTS,
        ),
        own::<sparkle::SparkleParams>(
            "sparkle",
            "no loops, exact diffusion, EXTRA or tracking on each level",
            sparkle::FACTS,
        ),
        own::<c2dfb::C2dfbParams>(
            "c2dfb",
            "gradients alone: a penalty in place of the Hessian, tracking",
            c2dfb::FACTS,
        ),
        own::<prometheus::PrometheusParams>(
            "prometheus",
            "tracking and SPIDER with a proximal step: bounds and l1 on x",
            prometheus::PROMETHEUS,
        ),
        own::<prometheus::InteractParams>(
            "interact",
            "tracking and SPIDER, Hessian inverse by a loop",
            prometheus::INTERACT,
        ),
        own::<dgd::DgdParams>("dgd", "single-level decentralised gradient descent", dgd::FACTS),
        algorithm_entry(
            "gt-sgd",
            "single-level gradient tracking",
            single_level::facts(Single::GradientTracking),
            |params| SingleLevel { scheme: Single::GradientTracking, params },
        ),
        algorithm_entry(
            "extra",
            "single-level EXTRA: exact with the bytes of DGD",
            single_level::facts(Single::Extra),
            |params| SingleLevel { scheme: Single::Extra, params },
        ),
        algorithm_entry(
            "exact-diffusion",
            "single-level exact diffusion: EXTRA, adapt then combine",
            single_level::facts(Single::ExactDiffusion),
            |params| SingleLevel { scheme: Single::ExactDiffusion, params },
        ),
        own::<fedavg::FedAvgParams>(
            "fedavg",
            "one model for all: local steps, then averages",
            fedavg::FACTS,
        ),
        own::<fedper::FedPerParams>(
            "fedper",
            "personal heads, one body: steps on both, then averages",
            fedper::FACTS,
        ),
        own::<fedrep::FedRepParams>(
            "fedrep",
            "personal heads, one body: first the head, then the body",
            fedrep::FACTS,
        ),
        own::<ditto::DittoParams>(
            "ditto",
            "personal models, pulled towards a common one",
            ditto::FACTS,
        ),
        algorithm_entry(
            "local",
            "LoPA's updates without communication: going alone",
            lopa::ALONE,
            |params| Lopa { scheme: Scheme::Alone, params },
        ),
    ];
    Registry::new("algorithm", entries)
}
