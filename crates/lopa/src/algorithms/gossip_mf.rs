//! Gossip-DSBO without matrices: what VRDBO's authors say they ran in its place.
//!
//! ```text
//! u  = hyper(x, θ)                            see hypergradient.rs
//! x⁺ = Σ_j w_ij x_j − α r                     the old r
//! r⁺ = (1 − γ) Σ_j w_ij r_j + γ u
//! θ⁺ = Σ_j w_ij θ_j − β ∇_θ ĝ(x, θ; ξ)
//! ```
//!
//! It is known to use implicit products and to exchange only parameters and estimates \[V\]; the
//! equations are the natural ones \[D\]. Its Hessians are local: see the warning of MDBO. With a
//! personal θ only x is mixed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::{Cost, Task};
use super::parts::consensus::combine;
use super::parts::estimator::average;
use super::parts::hypergradient::{Hypergradient, Inverse, Series};
use super::{Algorithm, Facts, LOCAL_HESSIANS, Method, Start};
use crate::config::Params;
use crate::error::{Fault, Result};
use crate::math::real::{Real, Vector, axpy, update};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::network::outbox::{Outbox, Round};
use crate::problem::At;
use crate::problem::oracle::{Oracle, XI1};
use crate::problem::scope::Scope;

/// The parameters of Gossip-DSBO without matrices.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GossipMfParams {
    /// Step size of x.
    pub alpha: Schedule,
    /// Step size of θ.
    pub beta: Schedule,
    /// Weight of the moving average.
    pub gamma: Schedule,
    /// Step of the Hessian-inverse series: at most 1 / L.
    pub lambda: Schedule,
    /// Q: terms of the Hessian-inverse series.
    #[serde(default = "super::ten")]
    pub hv_steps: usize,
    /// How the Hessian's inverse is approximated.
    #[serde(default)]
    pub inverse: Inverse,
}

impl Default for GossipMfParams {
    fn default() -> GossipMfParams {
        GossipMfParams {
            alpha: 0.02.into(),
            beta: 0.5.into(),
            gamma: 0.4.into(),
            lambda: 0.5.into(),
            hv_steps: super::ten(),
            inverse: Inverse::default(),
        }
    }
}

impl Params for GossipMfParams {
    fn check(&self) -> std::result::Result<(), Fault> {
        self.alpha.check("alpha")?;
        self.beta.check("beta")?;
        self.gamma.check_weight("gamma")?;
        self.series().check()
    }
}

impl GossipMfParams {
    fn series(&self) -> Series {
        Series { inverse: self.inverse, hv_steps: self.hv_steps, lambda: self.lambda }
    }
}

/// Metadata of Gossip-DSBO without matrices.
pub const FACTS: Facts = Facts {
    source: "after Gao et al., AISTATS 2023 [D]",
    loops: "Q on v",
    assumes: "i.i.d. data (global)",
    warning: Some(LOCAL_HESSIANS),
    steps: &[("theta", "beta"), ("v", "lambda"), ("x", "alpha"), ("u", "alpha"), ("r", "alpha")],
    ..Facts::LOOPLESS
};

struct GossipMf<T> {
    params: GossipMfParams,
    scope: Scope,
    x: Vector<T>,
    theta: Vector<T>,
    d: Vec<T>,
    hyper: Hypergradient<T>, // v, u
    r: Vec<T>,               // moving average of u
}

impl Method for GossipMfParams {
    fn cost(&self, _: Task) -> Cost {
        Cost { hess_g: self.series().products(), ..Cost::loopless() }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let Start { x, theta, scope, .. } = start;
        let hyper = Hypergradient::new(x.len(), theta.len(), params.series());
        let (r, d) = (vec![T::zero(); x.len()], vec![T::zero(); theta.len()]);
        Ok(Box::new(GossipMf { params, scope, x, theta, d, hyper, r }))
    }
}

impl<T: Real> Algorithm<T> for GossipMf<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let global = self.scope == Scope::Global;
        out.vector("x", &self.x);
        out.vector_if(global, "r", &self.r);
        out.vector_if(global, "theta", &self.theta);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let [wx, wr, w_theta] = mixed.vectors();
        let k = oracle.k();
        let GossipMfParams { alpha, beta, gamma, .. } = self.params;
        let [alpha, beta, gamma] = [alpha, beta, gamma].map(|schedule| T::of(schedule.at(k)));
        let at = At { x: &self.x, theta: &self.theta };
        self.hyper.evaluate(at, oracle);
        oracle.grad_theta_g(at, XI1, &mut self.d);
        update(&mut self.x, [wx, &self.r], |_, [wx, r]| wx - alpha * r);
        combine(&mut self.r, wr);
        average(&mut self.r, &self.hyper.u, gamma);
        combine(&mut self.theta, w_theta);
        axpy(-beta, &self.d, &mut self.theta);
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { GossipMf { x, theta, hyper, r, .. } =>
        "theta": theta, "v": hyper.v, "u": hyper.u, "r": r, "x": x,
    }
}
