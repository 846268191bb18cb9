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

use super::cost::{Cost, Count, Task};
use super::update_rule::{UpdateRule, XUpdate};
use super::parts::directions::DirectionBuffers;
use super::parts::estimator::average;
use super::{Algorithm, Facts, Method, Start};
use crate::config::Params;
use crate::error::{Fault, Result};
use crate::math::real::{Real, Vector, axpy};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::network::outbox::{Outbox, Round};
use crate::problem::At;
use crate::problem::oracle::{Oracle, TWO, DirectionRequest};
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
    now: DirectionBuffers<T>, // d, h, s at (x, θ, v)
}

impl Method for DSobaParams {
    fn cost(&self, _: Task) -> Cost {
        match self.order {
            Order::Second => Cost::loopless(),
            Order::First => Cost {
                grad_theta_g: 3.0.into(),
                grad_x_g: 2.0.into(),
                hess_g: Count::default(),
                cross_g: Count::default(),
                ..Cost::loopless()
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
        let r = vec![T::zero(); x.len()];
        Ok(Box::new(DSoba { params, scope, x, theta, v, r, now }))
    }
}

impl DSobaParams {
    /// α, β, λ of iteration `k`.
    fn steps<T: Real>(&self, k: u64) -> [T; 3] {
        [self.alpha, self.beta, self.lambda].map(|schedule| T::of(schedule.at(k)))
    }
}

impl<T: Real> Algorithm<T> for DSoba<T> {
    fn share(&self, round: Round, out: &mut Outbox<T>) {
        let [alpha, beta, lambda]: [T; 3] = self.params.steps(round.k);
        let DirectionBuffers { d, h, .. } = &self.now;
        out.formed("x", [&self.x, &self.r], |[x, r]| x - alpha * r);
        if self.scope == Scope::Global {
            out.formed("theta", [&self.theta, d], |[theta, d]| theta - beta * d);
            out.formed("v", [&self.v, h], |[v, h]| v - lambda * h);
        }
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let k = oracle.k();
        match self.scope {
            Scope::Personal => {
                let [_, beta, lambda]: [T; 3] = self.params.steps(k);
                let [wx] = mixed.vectors();
                self.x.copy_from_slice(wx); // (9)
                axpy(-beta, &self.now.d, &mut self.theta);
                axpy(-lambda, &self.now.h, &mut self.v);
            }
            Scope::Global => {
                let [wx, w_theta, wv] = mixed.vectors();
                self.x.copy_from_slice(wx); // (9)
                self.theta.copy_from_slice(w_theta); // (10)
                self.v.copy_from_slice(wv); // (11)
            }
        }
        average(&mut self.r, &self.now.s, T::of(self.params.gamma.at(k))); // (12)
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        Some(self.now.at(At { x: &self.x, theta: &self.theta }, &self.v))
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    fn update_rule(&self) -> std::result::Result<UpdateRule, &'static str> {
        let DSobaParams { alpha, beta, lambda, gamma, order, .. } = self.params;
        match (self.scope, order) {
            (Scope::Global, _) => Err("devices serve the personal scope only"),
            (_, Order::First) => Err("devices take no differences: `order = \"second\"` only"),
            _ => {
                let tau = 1.0.into();
                Ok(UpdateRule { x: XUpdate::Combined, alpha, beta, lambda, gamma, tau, draws: TWO })
            }
        }
    }

    variables! { DSoba { x, theta, v, r, now, .. } =>
        "theta": theta, "d": now.d, "v": v, "h": now.h, "s": now.s, "r": r, "x": x,
    }
}
