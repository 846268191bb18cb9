//! MA-DSBO as published (Chen, Huang, Ma, Balasubramanian, *ICML* 2023, Algorithms 1–3): one θ for
//! all nodes, with loops that communicate \[V\].
//!
//! ```text
//! T exchanges of θ        θ ← Σ_j w_ij θ_j − β ∇_θ ĝ(x, θ; ξ_t)
//! N exchanges of (z, d)   HIGP, from z = 0, d = s = −b_0
//!                         z ← Σ_j w_ij z_j − λ d
//!                         s⁺ = ∇²_θθ ĝ(x, θ; ξ_{t+1}) z − b_{t+1},   b_t = ∇_θ f̂(x, θ; ς_t)
//!                         d ← Σ_j w_ij d_j + s⁺ − s
//! 1 exchange of x         u  = ∇_x f̂(x, θ) − ∇²_xθ ĝ(x, θ) z
//!                         x⁺ = Σ_j w_ij x_j − α r                    the old r
//!                         r⁺ = (1 − γ) r + γ u
//! ```
//!
//! HIGP is gradient tracking on 1/m Σ_i (½ zᵀH_i z − b_iᵀz), whose minimum is the v of the mean
//! Hessian. v in the list of variables is z.

use super::ma_dsbo::MaDsboParams;
use super::parts::consensus::track;
use super::parts::estimator::average;
use super::{Algorithm, Start};
use crate::error::{Error, Result};
use crate::math::real::{Real, update};
use crate::network::mixed::Mixed;
use crate::problem::At;
use crate::problem::oracle::{Oracle, SIGMA1, SIGMA2, XI1, XI2, XI3};

struct MaDsboGlobal<T> {
    params: MaDsboParams,
    x: Vec<T>,
    theta: Vec<T>,
    z: Vec<T>,     // [mean ∇²_θθ g]⁻¹ mean ∇_θ f
    d: Vec<T>,     // tracks s
    s: Vec<T>,     // H z − b
    s_old: Vec<T>, // s before, and a place to work in
    u: Vec<T>,     // estimate of ∇Φ
    r: Vec<T>,     // moving average of u
    hold: Vec<T>,
}

/// A node that runs MA-DSBO in the global scope.
pub fn start<T: Real>(
    params: MaDsboParams,
    Start { x, theta, .. }: Start<T>,
) -> Result<Box<dyn Algorithm<T>>> {
    if params.warm {
        let message = "ma-dsbo: `warm = true` has no meaning in the global scope";
        return Err(Error::config("config/no-meaning", message)
            .hint("leave it out: HIGP starts from zero in every iteration"));
    }
    let (of_x, of_theta) = (|| vec![T::zero(); x.len()], || vec![T::zero(); theta.len()]);
    let (u, r, hold) = (of_x(), of_x(), vec![T::zero(); x.len().max(theta.len())]);
    let [z, d, s, s_old] = [(); 4].map(|()| of_theta());
    Ok(Box::new(MaDsboGlobal { params, x, theta, z, d, s, s_old, u, r, hold }))
}

/// What an exchange is for.
enum Phase {
    Inner(usize),
    Higp(usize),
    Outer,
}

impl<T: Real> MaDsboGlobal<T> {
    fn phase(&self, e: usize) -> Phase {
        let (t, n) = (self.params.inner_steps, self.params.hv_steps);
        match e {
            e if e < t => Phase::Inner(e),
            e if e < t + n => Phase::Higp(e - t),
            _ => Phase::Outer,
        }
    }

    fn inner(&mut self, t: usize, w_theta: &[T], oracle: &mut Oracle<T>) {
        let beta = T::of(self.params.beta.at(oracle.k()));
        let at = At { x: &self.x, theta: &self.theta };
        oracle.grad_theta_g(at, XI1.turn(t), &mut self.d);
        update(&mut self.theta, [w_theta, &self.d], |_, [wt, grad]| wt - beta * grad);
        if t + 1 == self.params.inner_steps {
            self.begin_higp(oracle);
        }
    }

    fn begin_higp(&mut self, oracle: &mut Oracle<T>) {
        oracle.grad_theta_f(At { x: &self.x, theta: &self.theta }, SIGMA1, &mut self.s);
        update(&mut self.s, [], |b, []| -b);
        self.d.copy_from_slice(&self.s);
        self.z.fill(T::zero());
    }

    fn higp(&mut self, t: usize, mixed: &[T], oracle: &mut Oracle<T>) {
        let lambda = T::of(self.params.lambda.at(oracle.k()));
        let (wz, wd) = mixed.split_at(self.z.len());
        update(&mut self.z, [wz, &self.d], |_, [wz, d]| wz - lambda * d);
        let at = At { x: &self.x, theta: &self.theta };
        let b = &mut self.hold[..self.z.len()];
        std::mem::swap(&mut self.s, &mut self.s_old);
        oracle.hess_g(at, XI2.turn(t + 1), &self.z, &mut self.s);
        oracle.grad_theta_f(at, SIGMA1.turn(t + 1), b);
        update(&mut self.s, [b], |hess_z, [b]| hess_z - b);
        track(&mut self.d, wd, &self.s, &self.s_old);
    }

    fn outer(&mut self, wx: &[T], oracle: &mut Oracle<T>) {
        let k = oracle.k();
        let MaDsboParams { alpha, gamma, .. } = &self.params;
        let gamma = T::of(gamma.as_ref().unwrap_or(alpha).at(k));
        let alpha = T::of(alpha.at(k));
        let at = At { x: &self.x, theta: &self.theta };
        let cross_z = &mut self.hold[..self.x.len()];
        oracle.grad_x_f(at, SIGMA2, &mut self.u);
        oracle.cross_g(at, XI3, &self.z, cross_z);
        update(&mut self.u, [cross_z], |grad, [cross_z]| grad - cross_z);
        update(&mut self.x, [wx, &self.r], |_, [wx, r]| wx - alpha * r);
        average(&mut self.r, &self.u, gamma);
    }
}

impl<T: Real> Algorithm<T> for MaDsboGlobal<T> {
    fn exchanges(&self) -> usize {
        self.params.inner_steps + self.params.hv_steps + 1
    }

    fn share(&self, e: usize, message: &mut Vec<T>) {
        match self.phase(e) {
            Phase::Inner(_) => message.extend_from_slice(&self.theta),
            Phase::Higp(_) => {
                message.extend_from_slice(&self.z);
                message.extend_from_slice(&self.d);
            }
            Phase::Outer => message.extend_from_slice(&self.x),
        }
    }

    fn step(&mut self, e: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let mixed = mixed.whole();
        match self.phase(e) {
            Phase::Inner(t) => self.inner(t, mixed, oracle),
            Phase::Higp(t) => self.higp(t, mixed, oracle),
            Phase::Outer => self.outer(mixed, oracle),
        }
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { MaDsboGlobal { x, theta, z, d, u, r, .. } =>
        "theta": theta, "v": z, "d": d, "u": u, "r": r, "x": x,
    }
}
