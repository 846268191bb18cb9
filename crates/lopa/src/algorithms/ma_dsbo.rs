//! MA-DSBO (Chen, Huang, Ma, Balasubramanian, *ICML* 2023), personalised.
//!
//! ```text
//! N times  θ ← θ − β ∇_θ ĝ(x, θ; ξ)
//! v = 0, or the last v (warm)
//! Q times  v ← v − λ (∇²_θθ ĝ(x, θ; ξ) v − ∇_θ f̂(x, θ; ς))
//! u  = ∇_x f̂(x, θ) − ∇²_xθ ĝ(x, θ) v
//! x⁺ = Σ_j w_ij x_j − α r           the old r
//! r⁺ = (1 − γ) r + γ u
//! ```
//!
//! The published method seeks a common θ and mixes it, too: see `ma_dsbo_global.rs`. With no mixing
//! of θ and v, which is how LoPA's authors compare with it, its Hessian-inverse solver HIGP becomes
//! this plain loop \[D\].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Algorithm, Facts, Start};
use crate::config::registry::{Fault, Params};
use crate::error::Result;
use crate::math::real::{Real, update};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::problem::At;
use crate::problem::oracle::{MOST_TURNS, Oracle, SIGMA1, SIGMA2, XI1, XI2, XI3};

/// MA-DSBO's step sizes and loops.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaDsboParams {
    /// Step size of x.
    pub alpha: Schedule,
    /// Step size of θ.
    pub beta: Schedule,
    /// Step size of v.
    pub lambda: Schedule,
    /// Weight of the moving average; left out, it is alpha, as the paper prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<Schedule>,
    /// N: steps on θ in an iteration.
    #[serde(default = "five")]
    pub inner_steps: usize,
    /// Q: steps on v in an iteration.
    #[serde(default = "five")]
    pub hv_steps: usize,
    /// Whether v goes on from its last value instead of from zero.
    #[serde(default)]
    pub warm: bool,
}

fn five() -> usize {
    5
}

impl Params for MaDsboParams {
    fn check(&self) -> std::result::Result<(), Fault> {
        self.alpha.check("alpha")?;
        self.beta.check("beta")?;
        self.lambda.check("lambda")?;
        if let Some(gamma) = &self.gamma {
            gamma.check_weight("gamma")?;
        } else {
            let weight = self.alpha.check_weight("alpha").is_ok();
            let must =
                "at most 1 where it is the weight of the average too: give gamma its own value";
            Fault::unless(weight, "alpha", self.alpha.at(0), must)?;
        }
        let fits = |turns| (1..=MOST_TURNS).contains(&turns);
        Fault::unless(fits(self.inner_steps), "inner_steps", self.inner_steps, "from 1 to 500")?;
        Fault::unless(fits(self.hv_steps), "hv_steps", self.hv_steps, "from 1 to 500")
    }
}

/// What is worth knowing of MA-DSBO.
pub const FACTS: Facts = Facts {
    source: "Chen et al., ICML 2023 [V]; without mixing θ and v [D]",
    sends: "x (+ N θ, Q z, Q d)",
    floats: ["n", "n + Np + 2Qp"],
    hessians: "Q",
    calls: ["N", "1", "Q; Q + 1 (global)", "1"],
    loops: "N on θ, Q on v",
    complexity: "ε⁻² log 1/ε",
    assumes: "Lipschitz f",
    steps: &[("theta", "beta"), ("v", "lambda"), ("x", "alpha"), ("r", "alpha"), ("u", "alpha")],
    ..Facts::LOOPLESS
};

struct MaDsbo<T> {
    params: MaDsboParams,
    x: Vec<T>,
    theta: Vec<T>,
    v: Vec<T>, // [∇²_θθ g]⁻¹ ∇_θ f
    u: Vec<T>, // estimate of ∇Φ_i
    r: Vec<T>, // moving average of u
    d: Vec<T>,
    hold: Vec<T>,
}

/// A node that runs MA-DSBO.
pub fn start<T: Real>(
    params: MaDsboParams,
    Start { x, theta, v, .. }: Start<T>,
) -> Result<Box<dyn Algorithm<T>>> {
    let of_x = || vec![T::zero(); x.len()];
    let hold = vec![T::zero(); x.len().max(theta.len())];
    let (u, r, d) = (of_x(), of_x(), vec![T::zero(); theta.len()]);
    Ok(Box::new(MaDsbo { params, x, theta, v, u, r, d, hold }))
}

impl<T: Real> Algorithm<T> for MaDsbo<T> {
    fn share(&self, _: usize, message: &mut Vec<T>) {
        message.extend_from_slice(&self.x);
    }

    fn step(&mut self, _: usize, wx: Mixed<T>, oracle: &mut Oracle<T>) {
        let wx = wx.whole();
        let k = oracle.k();
        let now = |schedule: &Schedule| T::of(schedule.at(k));
        let MaDsboParams { alpha, beta, lambda, gamma, .. } = &self.params;
        let gamma = now(gamma.as_ref().unwrap_or(alpha));
        let (alpha, beta, lambda, one) = (now(alpha), now(beta), now(lambda), T::one());

        for t in 0..self.params.inner_steps {
            let at = At { x: &self.x, theta: &self.theta };
            oracle.grad_theta_g(at, XI1.turn(t), &mut self.d);
            update(&mut self.theta, [&self.d], |theta, [d]| theta - beta * d);
        }

        let at = At { x: &self.x, theta: &self.theta };
        if !self.params.warm {
            self.v.fill(T::zero());
        }
        let grad_theta_f = &mut self.hold[..self.theta.len()];
        for t in 0..self.params.hv_steps {
            oracle.hess_g(at, XI2.turn(t), &self.v, &mut self.d);
            oracle.grad_theta_f(at, SIGMA1.turn(t), grad_theta_f);
            update(&mut self.v, [&self.d, grad_theta_f], |v, [hess_v, grad]| {
                v - lambda * (hess_v - grad)
            });
        }

        let cross_v = &mut self.hold[..self.x.len()];
        oracle.grad_x_f(at, SIGMA2, &mut self.u);
        oracle.cross_g(at, XI3, &self.v, cross_v);
        update(&mut self.u, [cross_v], |grad, [cross_v]| grad - cross_v);

        update(&mut self.x, [wx, &self.r], |_, [wx, r]| wx - alpha * r);
        update(&mut self.r, [&self.u], |r, [u]| (one - gamma) * r + gamma * u);
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { MaDsbo { x, theta, v, u, r, .. } =>
        "theta": theta, "v": v, "u": u, "r": r, "x": x,
    }
}
