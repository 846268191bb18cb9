//! SPDB (Lu, Cui, Squillante, Kingsbury, Horesh, *ICASSP* 2022), personalised.
//!
//! ```text
//! hyper(x, θ): v ≈ [∇²_θθ g]⁻¹ ∇_θ f by a loop (see hypergradient.rs);  u = ∇_x f̂ − ∇²_xθ ĝ v
//!
//! augmented Lagrangian (al)                  gradient tracking (gt)
//!   θ⁺ = θ − β ∇_θ ĝ(x, θ; ξ)   N times        x⁺ = Σ_j w_ij x_j − α y
//!   u  = hyper(x, θ⁺)                          θ⁺ = θ − β ∇_θ ĝ(x, θ; ξ)   N times, at the old x
//!   x⁺ = Σ_j w_ij x_j − α u − M                u⁺ = hyper(x⁺, θ⁺)
//!   M⁺ = M + x⁺ − Σ_j w_ij x_j⁺                y⁺ = Σ_j w_ij y_j + u⁺ − u
//! ```
//!
//! It is primal-dual, reaches consensus on x only and uses a truncated Neumann series. Its text was
//! not available: the constants of the primal-dual step are the standard linearised ones. LoPA's
//! authors list it among the tracking methods.
//!
//! Σ_j w_ij x_j⁺ arrives with the next exchange, so M⁺ is formed there: one exchange does both.

use super::parts::consensus::dual;
use super::parts::hypergradient::{Hypergradient, Inverse, Series};
use super::prelude::*;

params! {
    /// SPDB's step sizes and loops.
    pub struct SpdbParams {
        /// Step size of x.
        alpha: Schedule = 0.05, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Step of the Hessian-inverse series: at most 1 / L.
        lambda: Schedule = 0.5, required, step;
        /// N: steps on θ in an iteration.
        inner_steps: usize = 1, passes;
        /// Q: terms of the Hessian-inverse series.
        hv_steps: usize = 10, passes;
        /// How the Hessian's inverse is approximated.
        inverse: Inverse = Inverse::Neumann;
        /// How the nodes agree on x.
        consensus: Consensus = Consensus::Al;
    }
}

choices! {
    /// How the nodes agree on x.
    pub enum Consensus {
        /// Linearised augmented Lagrangian: sends x.
        Al,
        /// Gradient tracking: sends x and y.
        Gt,
    }
}

impl SpdbParams {
    fn series(&self) -> Series {
        Series { inverse: self.inverse, hv_steps: self.hv_steps, lambda: self.lambda }
    }
}

/// Metadata of SPDB.
pub const FACTS: Facts = Facts {
    source: "Lu et al., ICASSP 2022 [K]: its text was not available",
    scopes: &[Scope::Personal],
    loops: "N on θ, Q on v",
    complexity: "ε⁻² log 1/ε",
    needs_lazy: true,
    fixed_graph: true,
    steps: &[("beta", &["theta"]), ("lambda", &["v"]), ("alpha", &["x", "M", "y", "u"])],
    ..Facts::LOOPLESS
};

struct Spdb<T> {
    params: SpdbParams,
    x: Vector<T>,
    theta: Vector<T>,
    d: Vec<T>,
    hyper: Hypergradient<T>, // v, u
    y: Vec<T>,               // direction of x (gt)
    dual: Vec<T>,            // M (al)
}

impl Method for SpdbParams {
    fn cost(&self, _: Task) -> Cost {
        Cost {
            grad_theta_g: steps("N", self.inner_steps),
            hess_g: self.series().products(),
            ..Cost::loopless()
        }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let Start { x, theta, oracle, .. } = start;
        let mut hyper = Hypergradient::new(x.len(), theta.len(), params.series());
        if params.consensus == Consensus::Gt {
            hyper.evaluate(At { x: &x, theta: &theta }, oracle);
        }
        let (y, dual, d) =
            (hyper.u.clone(), vec![T::zero(); x.len()], vec![T::zero(); theta.len()]);
        Ok(Box::new(Spdb { params, x, theta, d, hyper, y, dual }))
    }
}

impl<T: Real> Spdb<T> {
    fn inner(&mut self, oracle: &mut Oracle<T>) {
        let beta = T::of(self.params.beta.at(oracle.k()));
        for t in 0..self.params.inner_steps {
            let at = At { x: &self.x, theta: &self.theta };
            oracle.grad_theta_g(at, XI1.pass(t), &mut self.d);
            update(&mut self.theta, [&self.d], |theta, [d]| theta - beta * d);
        }
    }

    fn hyper(&mut self, oracle: &mut Oracle<T>) {
        self.hyper.evaluate(At { x: &self.x, theta: &self.theta }, oracle);
    }
}

impl<T: Real> Algorithm<T> for Spdb<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.x);
        out.vector_if(self.params.consensus == Consensus::Gt, "y", &self.y);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let [wx, wy] = mixed.vectors();
        let alpha = T::of(self.params.alpha.at(oracle.k()));
        match self.params.consensus {
            Consensus::Al => {
                if oracle.k() > 0 {
                    dual(&mut self.dual, &self.x, wx);
                }
                self.inner(oracle);
                self.hyper(oracle);
                update(&mut self.x, [wx, &self.hyper.u, &self.dual], |_, [wx, u, dual]| {
                    wx - alpha * u - dual
                });
            }
            Consensus::Gt => {
                self.inner(oracle);
                update(&mut self.x, [wx, &self.y], |_, [wx, y]| wx - alpha * y);
                update(&mut self.y, [wy, &self.hyper.u], |_, [wy, u]| wy - u);
                self.hyper(oracle);
                update(&mut self.y, [&self.hyper.u], |wy_less_u, [u]| wy_less_u + u);
            }
        }
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { Spdb { x, theta, hyper, y, dual, .. } =>
        "theta": theta, "v": hyper.v, "u": hyper.u, "y": y, "M": dual, "x": x,
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        (self.params.consensus == Consensus::Gt).then_some((&self.y[..], &self.hyper.u[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(match self.params.consensus {
            Consensus::Al => vec![("M", None)], // the sum of M over all nodes is zero
            Consensus::Gt => vec![("y", Some("u"))],
        })
    }
}
