//! Gossip-DSBO (Yang, Zhang, Wang, *NeurIPS* 2022), with whole matrices: for small p only.
//!
//! ```text
//!  4  x⁺ = Σ_j w_ij x_j − α (s − U Y h)
//!  5  θ⁺ = Σ_j w_ij θ_j − β ∇_θ ĝ(x, θ; ξ)
//!  6  s⁺ = (1 − γ) Σ_j w_ij s_j + γ ∇_x f̂(x, θ; ς)
//!  7  h⁺ = (1 − γ) Σ_j w_ij h_j + γ ∇_θ f̂(x, θ; ς)
//!  8  U⁺ = (1 − γ) Σ_j w_ij U_j + γ ∇²_xθ ĝ(x, θ; ξ)
//! 10  for r = 1, …, Q, from R = I
//! 11     V_r⁺ = (1 − γ) Σ_j w_ij V_{r,j} + γ ∇²_θθ ĝ(x, θ; ξ_r)
//! 12     R ← I + (I − λ V_r⁺) R
//! 14  Y⁺ = λ R                                              ≈ [∇²_θθ g]⁻¹
//! ```
//!
//! The equations are from memory \[K\]; another paper confirms the line numbers of the Jacobian and the
//! loop. The start is ours: s, h, U = 0, V_r = I / λ, so that Y = λ I.
//! Matrices are formed by products with unit vectors and counted as such: Q p Hessian and p Jacobian
//! products per iteration. With a personal θ only x is mixed \[D\].

use super::parts::consensus::combine;
use super::parts::estimator::average;
use super::prelude::*;
use lopa_kernels::{Level, each_block};

/// The largest p that it accepts; beyond it, matrices of p² entries are impractical.
pub const MAX_P: usize = 500;

params! {
    /// Gossip-DSBO's parameters.
    pub struct GossipParams {
        /// Step size of x.
        alpha: Schedule = 0.02, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Weight of the moving averages.
        gamma: Schedule = 0.4, required, weight;
        /// 1 / L: step of the Hessian-inverse series.
        lambda: f64 = 0.5, required, positive;
        /// Q: averaged Hessians, which are the terms of the series.
        hv_steps: usize = 5, passes;
    }
}

/// Metadata of Gossip-DSBO.
pub const FACTS: Facts = Facts {
    source: "Yang et al., NeurIPS 2022 [K]; without mixing θ [D]",
    loops: "Q on matrices",
    complexity: "ε⁻² log 1/ε",
    assumes: "bounded gradients",
    steps: &[("beta", &["theta"]), ("lambda", &["V", "Y"]), ("alpha", &["x", "s", "h", "U"])],
    ..Facts::LOOPLESS
};

struct Gossip<T> {
    params: GossipParams,
    scope: Scope,
    x: Vector<T>,
    theta: Vector<T>,
    s: Vec<T>,    // average of ∇_x f
    h: Vec<T>,    // average of ∇_θ f
    u: Vec<T>,    // average of ∇²_xθ g, column by column
    hess: Vec<T>, // V_1, …, V_Q: averages of ∇²_θθ g
    y: Vec<T>,    // ≈ [∇²_θθ g]⁻¹
    new: New<T>,
}

/// Derivatives at the current point, and scratch memory.
struct New<T> {
    grad_theta_g: Vec<T>,
    grad_x_f: Vec<T>,
    grad_theta_f: Vec<T>,
    jacobian: Vec<T>,
    hessians: Vec<T>,
    unit: Vec<T>,
    product: Vec<T>,
}

impl Method for GossipParams {
    fn cost(&self, _: Task) -> Cost {
        Cost { hess_g: steps("Q", self.hv_steps) * p(), cross_g: p(), ..Cost::loopless() }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let Start { x, theta, scope, .. } = start;
        let (n, p, q) = (x.len(), theta.len(), params.hv_steps);
        if p > MAX_P {
            let message = format!("gossip-dsbo keeps matrices of p² entries, and p is {p} here");
            return Err(Error::config("config/too-large", message).hint(format!(
                "it serves p ≤ {MAX_P}: use `gossip-dsbo-mf`, which has no matrices"
            )));
        }
        let zeros = |length: usize| vec![T::zero(); length];
        let identity = |scale: f64| {
            let mut matrix = zeros(p * p);
            matrix.iter_mut().step_by(p + 1).for_each(|entry| *entry = T::of(scale));
            matrix
        };
        let new = New {
            grad_theta_g: zeros(p),
            grad_x_f: zeros(n),
            grad_theta_f: zeros(p),
            jacobian: zeros(n * p),
            hessians: zeros(q * p * p),
            unit: zeros(p),
            product: zeros(p * p),
        };
        let (s, h, u) = (zeros(n), zeros(p), zeros(n * p));
        let (hess, y) = (identity(1.0 / params.lambda).repeat(q), identity(params.lambda));
        Ok(Box::new(Gossip { params, scope, x, theta, s, h, u, hess, y, new }))
    }
}

impl<T: Real> New<T> {
    /// All derivatives at a point, matrices by products with unit vectors.
    fn evaluate(&mut self, at: At<T>, oracle: &mut Oracle<T>) {
        let (n, p) = (at.x.len(), at.theta.len());
        oracle.grad_theta_g(at, XI1, &mut self.grad_theta_g);
        oracle.grad_x_f(at, SIGMA2, &mut self.grad_x_f);
        oracle.grad_theta_f(at, SIGMA1, &mut self.grad_theta_f);
        for j in 0..p {
            self.unit[j] = T::one();
            oracle.cross_g(at, XI3, &self.unit, &mut self.jacobian[j * n..][..n]);
            for (r, hessian) in self.hessians.chunks_exact_mut(p * p).enumerate() {
                oracle.hess_g(at, XI2.pass(r), &self.unit, &mut hessian[j * p..][..p]);
            }
            self.unit[j] = T::zero();
        }
    }
}

impl<T: Real> Gossip<T> {
    /// 4, where Σ_j w_ij x_j is already in x.
    fn move_x(&mut self, alpha: T) {
        let (n, p) = (self.x.len(), self.theta.len());
        axpy(-alpha, &self.s, &mut self.x);
        for (row, column) in self.y.chunks_exact(p).zip(self.u.chunks_exact(n)) {
            axpy(alpha * dot(row, &self.h), column, &mut self.x);
        }
    }

    /// 9–14: Y from the V_r.
    fn invert(&mut self) {
        let (p, lambda) = (self.theta.len(), T::of(self.params.lambda));
        let (r, next) = (&mut self.y, &mut self.new.product);
        r.fill(T::zero());
        r.iter_mut().step_by(p + 1).for_each(|entry| *entry = T::one());
        for hessian in self.hess.chunks_exact(p * p) {
            // next = I + R − λ V_r R
            each_block(hessian, p, |first, rows| {
                let next = &mut next[first * p..(first + rows.len()) * p];
                Level::best().dense_product(rows, r, p, false, next);
            });
            update(next, [r], |product, [r]| r - lambda * product);
            next.iter_mut().step_by(p + 1).for_each(|entry| *entry += T::one());
            std::mem::swap(r, next);
        }
        update(r, [], |r, []| lambda * r);
    }
}

impl<T: Real> Algorithm<T> for Gossip<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let global = self.scope == Scope::Global;
        out.vector("x", &self.x);
        out.vector_if(global, "theta", &self.theta);
        out.vector_if(global, "s", &self.s);
        out.vector_if(global, "h", &self.h);
        out.vector_if(global, "U", &self.u);
        out.vector_if(global, "V", &self.hess);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let [wx, w_theta, ws, wh, wu, w_hess] = mixed.vectors();
        let k = oracle.k();
        let GossipParams { alpha, beta, gamma, .. } = self.params;
        let [alpha, beta, gamma] = [alpha, beta, gamma].map(|schedule| T::of(schedule.at(k)));
        self.new.evaluate(At { x: &self.x, theta: &self.theta }, oracle);
        combine(&mut self.x, wx);
        self.move_x(alpha); // 4
        combine(&mut self.theta, w_theta);
        axpy(-beta, &self.new.grad_theta_g, &mut self.theta); // 5
        let averages = [
            (&mut self.s, ws, &self.new.grad_x_f),        // 6
            (&mut self.h, wh, &self.new.grad_theta_f),    // 7
            (&mut self.u, wu, &self.new.jacobian),        // 8
            (&mut self.hess, w_hess, &self.new.hessians), // 11
        ];
        for (values, mixed, new) in averages {
            combine(values, mixed);
            average(values, new, gamma);
        }
        self.invert(); // 12, 14
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { Gossip { x, theta, s, h, u, hess, y, .. } =>
        "theta": theta, "V": hess, "Y": y, "h": h, "s": s, "U": u, "x": x,
    }
}
