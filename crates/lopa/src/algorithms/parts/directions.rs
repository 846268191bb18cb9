//! The three directions of a method without inner loops, at (x, θ, v).
//!
//! ```text
//! d = ∇_θ ĝ(x, θ; ξ₁)
//! h = ∇²_θθ ĝ(x, θ; ξ₂) v − ∇_θ f̂(x, θ; ς₁)
//! s = ∇_x f̂(x, θ; ς₂) − ∇²_xθ ĝ(x, θ; ξ₃) v
//! ```

use crate::math::real::{Real, update};
use crate::problem::oracle::{Draws, Oracle};
use crate::problem::{self, At};

/// d, h and s.
pub struct Directions<T> {
    /// Of θ.
    pub d: Vec<T>,
    /// Of v.
    pub h: Vec<T>,
    /// Of x.
    pub s: Vec<T>,
    draws: Draws,
    hold: Vec<T>,
}

impl<T: Real> Directions<T> {
    /// Zeros.
    pub fn new(n: usize, p: usize, draws: Draws) -> Directions<T> {
        let zeros = |length: usize| vec![T::zero(); length];
        Directions { d: zeros(p), h: zeros(p), s: zeros(n), draws, hold: zeros(n.max(p)) }
    }

    /// All three.
    pub fn evaluate(&mut self, at: At<T>, v: &[T], oracle: &mut Oracle<T>) {
        if oracle.takes_differences() {
            self.of_theta(at, oracle);
            self.of_v(at, v, oracle);
            self.of_x(at, v, oracle);
        } else {
            let Directions { d, h, s, draws, hold } = self;
            oracle.directions(at, v, *draws, problem::Directions { d, h, s, hold });
        }
    }

    /// d = ∇_θ ĝ
    pub fn of_theta(&mut self, at: At<T>, oracle: &mut Oracle<T>) {
        oracle.grad_theta_g(at, self.draws.xi[0], &mut self.d);
    }

    /// h = ∇²_θθ ĝ v − ∇_θ f̂
    pub fn of_v(&mut self, at: At<T>, v: &[T], oracle: &mut Oracle<T>) {
        let grad_theta_f = &mut self.hold[..v.len()];
        oracle.hess_g(at, self.draws.xi[1], v, &mut self.h);
        oracle.grad_theta_f(at, self.draws.sigma[0], grad_theta_f);
        update(&mut self.h, [grad_theta_f], |hess_v, [grad]| hess_v - grad);
    }

    /// s = ∇_x f̂ − ∇²_xθ ĝ v
    pub fn of_x(&mut self, at: At<T>, v: &[T], oracle: &mut Oracle<T>) {
        let cross_v = &mut self.hold[..self.s.len()];
        oracle.grad_x_f(at, self.draws.sigma[1], &mut self.s);
        oracle.cross_g(at, self.draws.xi[2], v, cross_v);
        update(&mut self.s, [cross_v], |grad, [cross_v]| grad - cross_v);
    }
}
