//! The `[run]` section: how long, on which seeds, measured how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::device::CPU;
use crate::error::Fault;
use crate::params;
use crate::problem::derivative::Batches;

params! {
    /// How long, on which seeds, measured how.
    #[derive(PartialEq)]
    pub struct RunSpec {
        /// Each seed is a run of its own: graph, partition, start and minibatches are drawn from it,
        /// the same for every algorithm.
        seeds: Vec<u64> = vec![1];
        /// The largest number of iterations.
        #[serde(skip_serializing_if = "Option::is_none")]
        iterations: Option<u64> = None, from_to(1, u64::from(u32::MAX));
        /// Samples per minibatch: a number, "full", or a table with a size for each derivative.
        batch: BatchSpec = BatchSpec::default();
        /// One minibatch of f and one of g for all derivatives of an iteration, not five.
        shared_samples: bool = false;
        /// Minibatches are blocks of a node's samples, each once in an epoch, in an order drawn for the epoch; by
        /// default every sample of a minibatch is drawn by itself.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        epochs: bool = false;
        /// δ: replaces products with second derivatives by central differences of gradients of this
        /// width.
        #[serde(skip_serializing_if = "Option::is_none")]
        finite_differences: Option<f64> = None, positive;
        /// The precision of the run; measurements are always in f64.
        precision: Precision = Precision::F64;
        /// Where iterations are done: "cpu", "cuda" for a graphics card, or "framework" for a problem in Python.
        #[serde(skip_serializing_if = "is_cpu")]
        device: String = CPU.into();
        /// Measurements along the run, evenly spaced over its budget; one more at the start.
        evaluations: u64 = 20, from_to(1, 1_000_000);
        /// When Φ and its gradient are measured by exact solves.
        exact: Exactly = Exactly::Always;
        /// Which θ_i a run ends with: its last measurement and its models are those of this θ_i.
        #[serde(skip_serializing_if = "FinalTheta::is_mean")]
        final_theta: FinalTheta = FinalTheta::Mean;
        /// Whether the terms of the Lyapunov function V^k are measured too, for LoPA in the personal
        /// scope.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        lyapunov: bool = false;
        /// What a run may cost.
        #[serde(skip_serializing_if = "Budget::is_empty")]
        budget: Budget = Budget::default();
        /// Whether the first of several limits ends the run, or the last.
        #[serde(skip_serializing_if = "Until::is_first")]
        until: Until = Until::First;
        /// A measure that ends the run when it is reached.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<Target> = None;
    }
    check |run| run.check_rest()
}

fn is_cpu(device: &String) -> bool {
    device == CPU
}

impl RunSpec {
    /// Replaces all limits by these; the run continues until it has reached every one.
    pub fn limit(&mut self, limits: &[(&str, f64)]) {
        let of = |name: &str| limits.iter().find(|(cost, _)| *cost == name).map(|limit| limit.1);
        self.iterations = of("iteration").map(|most| most as u64);
        self.budget = Budget {
            hessians: of("hessians"),
            jacobians: of("jacobians"),
            gradients: of("gradients"),
            samples: of("samples"),
            exchanges: of("exchanges"),
            bytes: of("bytes"),
            virtual_seconds: of("virtual_seconds"),
            seconds: of("seconds"),
        };
        self.until = Until::All;
    }

    /// The limits, by the names of costs in rows.
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let iterations = self.iterations.map(|most| ("iteration", most as f64));
        self.budget.limits().chain(iterations)
    }

    /// Whether a limit is on calls of derivatives.
    pub fn limits_calls(&self) -> bool {
        let calls = ["hessians", "jacobians", "gradients", "samples"];
        self.limits().any(|(name, _)| calls.contains(&name))
    }

    /// Keeps only a share of the iterations and of the budget.
    pub fn shorten(&mut self, share: f64) {
        self.iterations = self.iterations.map(|most| ((most as f64 * share).ceil() as u64).max(1));
        let Budget {
            hessians,
            jacobians,
            gradients,
            samples,
            exchanges,
            bytes,
            virtual_seconds,
            seconds,
        } = &mut self.budget;
        let calls = [hessians, jacobians, gradients, samples];
        for limit in calls.into_iter().chain([exchanges, bytes, virtual_seconds, seconds]) {
            *limit = limit.map(|limit| limit * share);
        }
    }
}

/// `f32`, `tf32` or `f64`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single.
    F32,
    /// Single, except that tensor cores of a graphics card may round the factors of products to 11
    /// bits; where none are used, as `f32`.
    Tf32,
    /// Double.
    #[default]
    F64,
}

/// When Φ and its gradient are measured by exact solves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Exactly {
    /// At every measurement.
    #[default]
    Always,
    /// At the last one.
    End,
    /// Not at all.
    Never,
}

/// Which θ_i a run ends with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FinalTheta {
    /// The running mean, where an algorithm keeps one: where it finds its step size of θ itself and draws
    /// minibatches. Otherwise that of the last iteration.
    #[default]
    Mean,
    /// That of the last iteration.
    Last,
    /// The exact solution of the inner problem at x_i, on all rows that the node trains on, those of
    /// f and those of g.
    Solved,
    /// The same in the last measurement; in the models, the exact solution on these rows and on those
    /// that the node holds out (`holdout` in `[data]`).
    Refitted,
}

impl FinalTheta {
    /// Whether it is the usual one.
    pub fn is_mean(&self) -> bool {
        *self == FinalTheta::Mean
    }

    /// Whether θ is solved for at the end.
    pub fn is_solved(&self) -> bool {
        matches!(self, FinalTheta::Solved | FinalTheta::Refitted)
    }
}

/// Samples per minibatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "invalid batch: write a number, \"full\", or a table of sizes")]
pub enum BatchSpec {
    /// The same for every derivative.
    Size(usize),
    /// All samples.
    Full(Full),
    /// A size for each derivative; one left out takes all samples.
    Each(EachBatch),
}

/// The word `full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Full {
    /// All samples.
    Full,
}

/// A size for each derivative; one left out takes all samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EachBatch {
    /// For ∇_θ g and ∇_x g.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grad_g: Option<usize>,
    /// For Hessian-vector products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hess_g: Option<usize>,
    /// For Jacobian-vector products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_g: Option<usize>,
    /// For ∇_θ f.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grad_theta_f: Option<usize>,
    /// For ∇_x f.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grad_x_f: Option<usize>,
}

impl Default for BatchSpec {
    fn default() -> BatchSpec {
        BatchSpec::Full(Full::Full)
    }
}

impl BatchSpec {
    /// The size for each derivative.
    pub fn batches(&self) -> Batches {
        match *self {
            BatchSpec::Size(size) => Batches::all(Some(size)),
            BatchSpec::Full(_) => Batches::all(None),
            BatchSpec::Each(EachBatch { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f }) => {
                Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f }
            }
        }
    }
}

/// What a run may cost; it stops after the first iteration that reaches one of these, or all of
/// them (`until`).
///
/// Per node where nodes may differ: hessians, jacobians, gradients, samples. An algorithm without
/// Hessians gets, for a budget of Hessians, the iterations that LoPA would get.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Hessian-vector products per node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hessians: Option<f64>,
    /// Jacobian-vector products per node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jacobians: Option<f64>,
    /// Gradients per node, of all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<f64>,
    /// Samples evaluated per node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<f64>,
    /// Rounds of communication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<f64>,
    /// Bytes over all links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Seconds by the file's `[time]`, until the last node is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_seconds: Option<f64>,
    /// Seconds without evaluation. A run that ends by it is not reproducible to the bit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl Budget {
    /// The limits: (name, limit).
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("hessians", self.hessians),
            ("jacobians", self.jacobians),
            ("gradients", self.gradients),
            ("samples", self.samples),
            ("exchanges", self.exchanges),
            ("bytes", self.bytes),
            ("virtual_seconds", self.virtual_seconds),
            ("seconds", self.seconds),
        ]
        .into_iter()
        .filter_map(|(name, limit)| Some((name, limit?)))
    }

    fn is_empty(&self) -> bool {
        self.limits().next().is_none()
    }
}

/// Which of several limits ends a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// The first that is reached.
    #[default]
    First,
    /// The last. A measurement is taken before each limit is passed, so that algorithms can be
    /// compared at each. A cost that an algorithm does not have does not limit it.
    All,
}

impl Until {
    fn is_first(&self) -> bool {
        *self == Until::First
    }
}

/// A measure that ends the run when it is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The measure: `test_accuracy`, `loss`, `grad_phi_sq`, …
    pub metric: String,
    /// Reached at or above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Reached at or below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

impl RunSpec {
    /// Checks conditions beyond ranges.
    fn check_rest(&self) -> Result<(), Fault> {
        let seeds = format!("{:?}", self.seeds);
        Fault::unless(!self.seeds.is_empty(), "seeds", &seeds, "a list of at least one seed")?;
        let mut distinct = self.seeds.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let all = distinct.len() == self.seeds.len();
        Fault::unless(all, "seeds", &seeds, "a list of different seeds")?;
        let most = i64::MAX as u64;
        Fault::unless(distinct.iter().all(|&s| s <= most), "seeds", &seeds, "below 2^63")?;
        let end = self.iterations.is_some() || !self.budget.is_empty();
        Fault::unless(end, "iterations", "", "given, or a budget: a run needs an end")?;
        let Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f } = self.batch.batches();
        for size in [grad_g, hess_g, cross_g, grad_theta_f, grad_x_f].into_iter().flatten() {
            let fits = (1..1 << 24).contains(&size);
            Fault::unless(fits, "batch", size, "from 1 to 16777215, or \"full\"")?;
        }
        for (name, limit) in self.budget.limits() {
            let sane = limit > 0.0 && limit.is_finite();
            let value = format!("{{ {name} = {limit} }}");
            Fault::unless(sane, "budget", value, "of positive numbers")?;
        }
        if let Some(Target { metric, at_least, at_most }) = &self.target {
            let one = at_least.is_some() != at_most.is_some();
            let must = "given with either `at_least` or `at_most`";
            Fault::unless(one, "target", format!("{{ metric = \"{metric}\" }}"), must)?;
            let bound = at_least.or(*at_most).unwrap_or(f64::NAN);
            Fault::unless(!bound.is_nan(), "target", bound, "a number")?;
        }
        Ok(())
    }
}
