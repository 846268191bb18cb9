//! D-SOBA (Kong, Zhu, Lu, Huang, Yuan, *Journal of Machine Learning Research* 26(240), 2025).
//!
//! ```text
//! d = ∇_θ ĝ,   h = ∇²_θθ ĝ v − ∇_θ f̂,   s = ∇_x f̂ − ∇²_xθ ĝ v       all at (x, θ; ξ, ς)
//! (9)   x⁺ = Σ_j w_ij (x_j − α r_j)                      the old r
//! (10)  θ⁺ = Σ_j w_ij (θ_j − β d_j)
//! (11)  v⁺ = Σ_j w_ij (v_j − λ h_j)
//! (12)  r⁺ = (1 − γ) r + γ s                             s at (x, θ, v)
//! ```
//!
//! One minibatch ξ of g and one ς of f serve all terms. `order = "first"` (D-SOBA-FO) takes the
//! products from differences of gradients on ξ:
//!
//! ```text
//! ∇²_θθ ĝ v ≈ [∇_θ ĝ(x, θ + δv) − ∇_θ ĝ(x, θ − δv)] / 2δ,   ∇²_xθ ĝ v likewise with ∇_x ĝ
//! ```
//!
//! Read in the paper \[V\]: its τα is α here, its h is r, its averaging weight θ is γ. It leaves the
//! start open; here r⁰ = 0. Without mixing θ and v it is our personal form \[D\].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::{Cost, Count, Task, n, p};
use super::law::{Law, Moves};
use super::parts::directions::Directions;
use super::parts::estimator::average;
use super::{Algorithm, Facts, Method, Start};
use crate::config::Params;
use crate::error::{Fault, Result};
use crate::math::real::{Real, Vector, axpy};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::problem::At;
use crate::problem::oracle::{Oracle, TWO, Wanted};
use crate::problem::scope::Scope;

/// D-SOBA's step sizes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DSobaParams {
    /// Step size of x.
    pub alpha: Schedule,
    /// Step size of θ.
    pub beta: Schedule,
    /// Step size of v.
    pub lambda: Schedule,
    /// Weight of the moving average.
    #[serde(default = "a_fifth")]
    pub gamma: Schedule,
    /// Exact products with second derivatives, or differences of gradients.
    #[serde(default)]
    pub order: Order,
    /// δ of the differences, for `order = "first"`.
    #[serde(default = "a_thousandth")]
    pub delta: f64,
}

/// Which derivatives are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// D-SOBA-SO.
    #[default]
    Second,
    /// D-SOBA-FO.
    First,
}

fn a_fifth() -> Schedule {
    Schedule::Constant(0.2)
}

fn a_thousandth() -> f64 {
    1e-3
}

impl Default for DSobaParams {
    fn default() -> DSobaParams {
        DSobaParams {
            alpha: 0.02.into(),
            beta: 0.5.into(),
            lambda: 0.5.into(),
            gamma: a_fifth(),
            order: Order::default(),
            delta: a_thousandth(),
        }
    }
}

impl Params for DSobaParams {
    fn check(&self) -> std::result::Result<(), Fault> {
        self.alpha.check("alpha")?;
        self.beta.check("beta")?;
        self.lambda.check("lambda")?;
        self.gamma.check_weight("gamma")?;
        let sane = self.delta > 0.0 && self.delta.is_finite();
        Fault::unless(sane, "delta", self.delta, "a positive number")
    }
}

/// Metadata of D-SOBA.
pub const FACTS: Facts = Facts {
    source: "Kong et al., JMLR 26(240), 2025 [V]; without mixing θ and v [D]",
    sends: "x (+ θ, v)",
    complexity: "ε⁻²",
    assumes: "bounded dissimilarity of ∇g",
    steps: &[("theta", "beta"), ("v", "lambda"), ("x", "alpha"), ("r", "alpha"), ("s", "alpha")],
    ..Facts::LOOPLESS
};

struct DSoba<T> {
    params: DSobaParams,
    scope: Scope,
    x: Vector<T>,
    theta: Vector<T>,
    v: Vector<T>,
    r: Vec<T>,          // moving average of s
    now: Directions<T>, // d, h, s at (x, θ, v)
    steps: [T; 3],      // α, β, λ of the iteration to come
}

impl Method for DSobaParams {
    fn cost(&self, task: Task) -> Cost {
        let second = Cost::loopless(n() + task.if_global(p() * 2.0));
        match self.order {
            Order::Second => second,
            Order::First => Cost {
                grad_theta_g: 3.0.into(),
                grad_x_g: 2.0.into(),
                hess_g: Count::default(),
                cross_g: Count::default(),
                ..second
            },
        }
    }

    fn start<T: Real>(&self, mut start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        if params.order == Order::First {
            start.oracle.take_differences(params.delta)?;
        }
        let now = start.directions(TWO);
        let Start { x, theta, v, scope, .. } = start;
        let (r, steps) = (vec![T::zero(); x.len()], params.steps(0));
        Ok(Box::new(DSoba { params, scope, x, theta, v, r, now, steps }))
    }
}

impl DSobaParams {
    /// α, β, λ of iteration `k`.
    fn steps<T: Real>(&self, k: u64) -> [T; 3] {
        [self.alpha, self.beta, self.lambda].map(|schedule| T::of(schedule.at(k)))
    }
}

impl<T: Real> Algorithm<T> for DSoba<T> {
    fn share(&self, _: usize, message: &mut Vec<T>) {
        let [alpha, beta, lambda] = self.steps;
        let mut half_step = |x: &[T], step: T, direction: &[T]| {
            message.extend(x.iter().zip(direction).map(|(&x, &d)| x - step * d));
        };
        half_step(&self.x, alpha, &self.r);
        if self.scope == Scope::Global {
            half_step(&self.theta, beta, &self.now.d);
            half_step(&self.v, lambda, &self.now.h);
        }
    }

    fn lengths(&self, _: usize) -> Vec<usize> {
        let (n, p) = (self.x.len(), self.theta.len());
        match self.scope {
            Scope::Personal => vec![n],
            Scope::Global => vec![n, p, p],
        }
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let mixed = mixed.whole();
        let k = oracle.k();
        let [_, beta, lambda] = self.steps;
        let (wx, inner) = mixed.split_at(self.x.len());
        self.x.copy_from_slice(wx); // (9)
        match self.scope {
            Scope::Global => {
                let (w_theta, wv) = inner.split_at(self.theta.len());
                self.theta.copy_from_slice(w_theta); // (10)
                self.v.copy_from_slice(wv); // (11)
            }
            Scope::Personal => {
                axpy(-beta, &self.now.d, &mut self.theta);
                axpy(-lambda, &self.now.h, &mut self.v);
            }
        }
        average(&mut self.r, &self.now.s, T::of(self.params.gamma.at(k))); // (12)
        self.steps = self.params.steps(k + 1);
    }

    fn asks(&mut self, _: usize) -> Option<Wanted<'_, T>> {
        Some(self.now.at(At { x: &self.x, theta: &self.theta }, &self.v))
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    fn law(&self) -> std::result::Result<Law, &'static str> {
        let DSobaParams { alpha, beta, lambda, gamma, order, .. } = self.params;
        match (self.scope, order) {
            (Scope::Global, _) => Err("devices serve the personal scope only"),
            (_, Order::First) => Err("devices take no differences: `order = \"second\"` only"),
            _ => {
                let tau = 1.0.into();
                Ok(Law { moves: Moves::Combined, alpha, beta, lambda, gamma, tau, draws: TWO })
            }
        }
    }

    variables! { DSoba { x, theta, v, r, now, steps, .. } =>
        "theta": theta, "d": now.d, "v": v, "h": now.h, "s": now.s, "r": r, "x": x, "steps": steps,
    }
}
