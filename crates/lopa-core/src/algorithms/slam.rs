//! SLAM (Lu, Zeng, Cui, Squillante, Horesh, Kingsbury, Liu, Hong, *NeurIPS* 2022).
//!
//! ```text
//! θ⁺  = Σ_j w_ij θ_j − β ∇_θ ĝ(x, θ; ξ) − Mθ        Mθ⁺ = Mθ + θ⁺ − Σ_j w_ij θ_j⁺
//! u   = hyper(x, θ⁺)                                 see hypergradient.rs
//! x⁺  = Σ_j w_ij x_j − α u − Mx                      Mx⁺ = Mx + x⁺ − Σ_j w_ij x_j⁺
//! ```
//!
//! Only the abstract was available: a linearised augmented Lagrangian on both levels. The
//! scaling of the multipliers and the estimator are guesses \[K\]. With local Hessians, as here, it
//! stops short of the solution where the g_i differ \[D\]. With a personal θ it is SPDB.
//!
//! Σ_j w_ij x_j⁺ arrives with the next exchange, so the duals are formed there.

use super::LOCAL_HESSIANS;
use super::parts::consensus::dual;
use super::parts::hypergradient::{Hypergradient, Inverse, Series};
use super::prelude::*;

params! {
    /// SLAM's step sizes and loop.
    pub struct SlamParams {
        /// Step size of x.
        alpha: Schedule = 0.05, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Step of the Hessian-inverse series: at most 1 / L.
        lambda: Schedule = 0.5, required, step;
        /// Q: terms of the Hessian-inverse series.
        hv_steps: usize = 10, passes;
        /// How the Hessian's inverse is approximated.
        inverse: Inverse = Inverse::Neumann;
    }
}

impl SlamParams {
    fn series(&self) -> Series {
        Series { inverse: self.inverse, hv_steps: self.hv_steps, lambda: self.lambda }
    }
}

/// Metadata of SLAM.
pub const FACTS: Facts = Facts {
    source: "Lu et al., NeurIPS 2022 [K]: its text was not available",
    scopes: &[Scope::Global],
    loops: "Q on v",
    complexity: "ε⁻² log 1/ε",
    assumes: "none claimed; with local Hessians, g_i that agree",
    warning: Some(LOCAL_HESSIANS),
    needs_lazy: true,
    fixed_graph: true,
    steps: &[("beta", &["theta", "M_theta"]), ("lambda", &["v"]), ("alpha", &["x", "u", "M_x"])],
    ..Facts::LOOPLESS
};

struct Slam<T> {
    params: SlamParams,
    x: Vector<T>,
    theta: Vector<T>,
    d: Vec<T>,
    hyper: Hypergradient<T>, // v, u
    dual_x: Vec<T>,
    dual_theta: Vec<T>,
}

impl Method for SlamParams {
    fn cost(&self, _: Task) -> Cost {
        Cost { hess_g: self.series().products(), ..Cost::loopless() }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let Start { x, theta, .. } = start;
        let zeros = |length: usize| vec![T::zero(); length];
        let hyper = Hypergradient::new(x.len(), theta.len(), params.series());
        let (d, dual_x, dual_theta) = (zeros(theta.len()), zeros(x.len()), zeros(theta.len()));
        Ok(Box::new(Slam { params, x, theta, d, hyper, dual_x, dual_theta }))
    }
}

impl<T: Real> Algorithm<T> for Slam<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.x);
        out.vector("theta", &self.theta);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let [wx, w_theta] = mixed.vectors();
        let k = oracle.k();
        let (alpha, beta) = (T::of(self.params.alpha.at(k)), T::of(self.params.beta.at(k)));
        if k > 0 {
            dual(&mut self.dual_x, &self.x, wx);
            dual(&mut self.dual_theta, &self.theta, w_theta);
        }
        let at = At { x: &self.x, theta: &self.theta };
        oracle.grad_theta_g(at, XI1, &mut self.d);
        update(&mut self.theta, [w_theta, &self.d, &self.dual_theta], |_, [wt, d, dual]| {
            wt - beta * d - dual
        });
        self.hyper.evaluate(At { x: &self.x, theta: &self.theta }, oracle);
        update(&mut self.x, [wx, &self.hyper.u, &self.dual_x], |_, [wx, u, dual]| {
            wx - alpha * u - dual
        });
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("M_theta", None), ("M_x", None)])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { Slam { x, theta, hyper, dual_x, dual_theta, .. } =>
        "theta": theta, "v": hyper.v, "u": hyper.u, "M_theta": dual_theta, "M_x": dual_x, "x": x,
    }
}
