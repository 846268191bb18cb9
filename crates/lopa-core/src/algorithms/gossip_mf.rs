//! Gossip-DSBO without matrices, which VRDBO's authors report to have run in its place.
//!
//! ```text
//! u  = hyper(x, θ)                            see hypergradient.rs
//! x⁺ = Σ_j w_ij x_j − α r                     the old r
//! r⁺ = (1 − γ) Σ_j w_ij r_j + γ u
//! θ⁺ = Σ_j w_ij θ_j − β ∇_θ ĝ(x, θ; ξ)
//! ```
//!
//! It uses implicit products and exchanges only parameters and estimates \[V\]; the equations are
//! the natural ones \[D\]. Its Hessians are local: see the warning of MDBO. With a personal θ only
//! x is mixed.

use super::LOCAL_HESSIANS;
use super::parts::consensus::combine;
use super::parts::estimator::average;
use super::parts::hypergradient::{Hypergradient, Inverse, Series};
use super::prelude::*;

params! {
    /// The parameters of Gossip-DSBO without matrices.
    pub struct GossipMfParams {
        /// Step size of x.
        alpha: Schedule = 0.02, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Weight of the moving average.
        gamma: Schedule = 0.4, required, weight;
        /// Step of the Hessian-inverse series: at most 1 / L.
        lambda: Schedule = 0.5, required, step;
        /// Q: terms of the Hessian-inverse series.
        hv_steps: usize = 10, passes;
        /// How the Hessian's inverse is approximated.
        inverse: Inverse = Inverse::Neumann;
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
    steps: &[("beta", &["theta"]), ("lambda", &["v"]), ("alpha", &["x", "u", "r"])],
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

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { GossipMf { x, theta, hyper, r, .. } =>
        "theta": theta, "v": hyper.v, "u": hyper.u, "r": r, "x": x,
    }
}
