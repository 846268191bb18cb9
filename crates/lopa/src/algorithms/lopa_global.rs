//! LoPA with one θ for all nodes: θ and v are mixed, too. Ours, not the paper's \[D\].
//!
//! ```text
//!        local gradients (LG)                 gradient tracking (GT)
//! (4')   θ⁺ = Σ_j w_ij θ_j − β d              θ⁺ = Σ_j w_ij θ_j − β yθ
//! (5')   v⁺ = Σ_j w_ij v_j − λ h              v⁺ = Σ_j w_ij v_j − λ yv
//! (10)   x⁺ = (1 − τ) x + τ (Σ_j w_ij x_j − α y)
//! (9)    z⁺ = s + (1 − γ)(z − s)
//! (11)   y⁺ = z⁺                        (12)  y⁺ = Σ_j w_ij y_j + z⁺ − z
//! (6–8)  d⁺, h⁺, s⁺ at (x⁺, θ⁺, v⁺)            yθ⁺ = Σ_j w_ij yθ_j + d⁺ − d,  yv⁺ likewise with h
//! ```
//!
//! With GT the means of yθ and yv are those of d and h, so that the mean v solves the system of
//! the mean Hessian: the limit is exact. LG has a bias of the order of its steps.

use super::lopa::{LopaParams, Scheme, StartZ};
use super::parts::consensus::{Pieces, track};
use super::parts::directions::Directions;
use super::{Algorithm, Start};
use crate::error::Result;
use crate::math::real::{Real, update};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::problem::At;
use crate::problem::oracle::{FIVE, Oracle};
use crate::problem::scope::Scope;

struct LopaGlobal<T> {
    tracking: bool,
    params: LopaParams,
    x: Vec<T>,
    theta: Vec<T>,
    v: Vec<T>,
    now: Directions<T>, // d, h, s
    z: Vec<T>,          // moving average of s
    y: Vec<T>,          // direction of x
    y_theta: Vec<T>,    // direction of θ
    y_v: Vec<T>,        // direction of v
    old: Vec<T>,        // d, then h, of the point just left
}

/// A node that runs LoPA in the global scope.
pub fn start<T: Real>(
    scheme: Scheme,
    params: LopaParams,
    Start { x, theta, v, oracle, .. }: Start<T>,
) -> Result<Box<dyn Algorithm<T>>> {
    let (n, p) = (x.len(), theta.len());
    let mut now = Directions::new(n, p, FIVE);
    now.evaluate(At { x: &x, theta: &theta }, &v, oracle);
    let z = match params.start {
        StartZ::Estimate => now.s.clone(),
        StartZ::Zero => vec![T::zero(); n],
    };
    Ok(Box::new(LopaGlobal {
        tracking: scheme == Scheme::GradientTracking,
        params,
        x,
        theta,
        v,
        y: z.clone(),
        z,
        y_theta: now.d.clone(),
        y_v: now.h.clone(),
        old: vec![T::zero(); 2 * p],
        now,
    }))
}

impl<T: Real> Algorithm<T> for LopaGlobal<T> {
    fn share(&self, _: usize, message: &mut Vec<T>) {
        let mixed = [&self.x, &self.theta, &self.v];
        mixed.into_iter().for_each(|vector| message.extend_from_slice(vector));
        if self.tracking {
            let tracked = [&self.y, &self.y_theta, &self.y_v];
            tracked.into_iter().for_each(|vector| message.extend_from_slice(vector));
        }
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let mixed = mixed.whole();
        let k = oracle.k();
        let now = |schedule: &Schedule| T::of(schedule.at(k));
        let LopaParams { alpha, beta, lambda, gamma, tau, .. } = &self.params;
        let (alpha, beta, lambda) = (now(alpha), now(beta), now(lambda));
        let (gamma, tau, one) = (now(gamma), now(tau), T::one());
        let (n, p) = (self.x.len(), self.theta.len());
        let mut pieces = Pieces::new(mixed, Scope::Global);
        let [wx, w_theta, wv] = [n, p, p].map(|length| pieces.next(length));

        update(&mut self.theta, [w_theta, &self.y_theta], |_, [wt, y]| wt - beta * y); // (4')
        update(&mut self.v, [wv, &self.y_v], |_, [wv, y]| wv - lambda * y); // (5')
        update(&mut self.x, [wx, &self.y], |x, [wx, y]| {
            (one - tau) * x + tau * (wx - alpha * y) // (10)
        });
        let average = |s, z| s + (one - gamma) * (z - s);
        if self.tracking {
            let (wy, s) = (pieces.next(n), &self.now.s);
            update(&mut self.y, [wy, s, &self.z], |_, [wy, s, z]| wy + average(s, z) - z); // (12)
        }
        update(&mut self.z, [&self.now.s], |z, [s]| average(s, z)); // (9)
        if !self.tracking {
            self.y.copy_from_slice(&self.z); // (11)
        }
        let (old_d, old_h) = self.old.split_at_mut(p);
        old_d.copy_from_slice(&self.now.d);
        old_h.copy_from_slice(&self.now.h);
        self.now.evaluate(At { x: &self.x, theta: &self.theta }, &self.v, oracle); // (6)–(8)
        let [wy_theta, wy_v] = match self.tracking {
            true => [p, p].map(|length| pieces.next(length)),
            false => [&[][..]; 2],
        };
        track(&mut self.y_theta, wy_theta, &self.now.d, old_d);
        track(&mut self.y_v, wy_v, &self.now.h, old_h);
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { LopaGlobal { x, theta, v, now, z, y, y_theta, y_v, .. } =>
        "theta": theta, "d": now.d, "y_theta": y_theta, "v": v, "h": now.h, "y_v": y_v, "s": now.s,
        "z": z, "y": y, "x": x,
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        self.tracking.then_some((&self.y[..], &self.z[..]))
    }
}
