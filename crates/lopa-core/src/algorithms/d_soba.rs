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
//! All terms use one minibatch ξ of g and one ς of f. `order = "first"` (D-SOBA-FO) takes the
//! products from differences of gradients on ξ:
//!
//! ```text
//! ∇²_θθ ĝ v ≈ [∇_θ ĝ(x, θ + δv) − ∇_θ ĝ(x, θ − δv)] / 2δ,   ∇²_xθ ĝ v likewise with ∇_x ĝ
//! ```
//!
//! Read in the paper \[V\]: its τα is α here, its h is r, its averaging weight θ is γ. It leaves the
//! start open; here r⁰ = 0. Without mixing θ and v it is our personal form \[D\].

use super::parts::estimator::average;
use super::prelude::*;
use super::update_rule::{UpdateRule, XUpdate};

params! {
    /// D-SOBA's step sizes.
    pub struct DSobaParams {
        /// Step size of x.
        alpha: Schedule = 0.02, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Step size of v.
        lambda: Schedule = 0.5, required, step;
        /// Weight of the moving average.
        gamma: Schedule = 0.2, weight;
        /// Exact products with second derivatives, or differences of gradients.
        order: Order = Order::Second;
        /// δ of the differences, for `order = "first"`.
        delta: f64 = 1e-3, positive;
    }
}

choices! {
    /// Which derivatives are asked for.
    pub enum Order {
        /// D-SOBA-SO.
        Second,
        /// D-SOBA-FO.
        First,
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
    r: Vec<T>,                // moving average of s
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

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let DSobaParams { alpha, beta, lambda, gamma, order, .. } = self.params;
        UpdateRule::serves(self.scope)?;
        match order {
            Order::First => Err("devices take no differences: `order = \"second\"` only"),
            Order::Second => {
                let tau = 1.0.into();
                Ok(UpdateRule { x: XUpdate::Combined, alpha, beta, lambda, gamma, tau, draws: TWO })
            }
        }
    }

    variables! { DSoba { x, theta, v, r, now, .. } =>
        "theta": theta, "d": now.d, "v": v, "h": now.h, "s": now.s, "r": r, "x": x,
    }
}
