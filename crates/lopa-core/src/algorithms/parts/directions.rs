//! The three directions of a method without inner loops, at (x, θ, v).
//!
//! ```text
//! d = ∇_θ ĝ(x, θ; ξ₁)
//! h = ∇²_θθ ĝ(x, θ; ξ₂) v − ∇_θ f̂(x, θ; ς₁)
//! s = ∇_x f̂(x, θ; ς₂) − ∇²_xθ ĝ(x, θ; ξ₃) v
//! ```

use crate::math::real::{Real, Vector};
use crate::problem::At;
use crate::problem::oracle::{DirectionRequest, Draws, Oracle};

/// d, h and s.
pub struct DirectionBuffers<T> {
    /// Of θ.
    pub d: Vector<T>,
    /// Of v.
    pub h: Vector<T>,
    /// Of x.
    pub s: Vector<T>,
    draws: Draws,
}

impl<T: Real> DirectionBuffers<T> {
    /// Zeros.
    pub fn new(n: usize, p: usize, draws: Draws) -> DirectionBuffers<T> {
        DirectionBuffers::of([p, p, n].map(|length| vec![T::zero(); length].into()), draws)
    }

    /// In these vectors, of length p, p and n.
    pub fn of([d, h, s]: [Vector<T>; 3], draws: Draws) -> DirectionBuffers<T> {
        DirectionBuffers { d, h, s, draws }
    }

    /// Requests all three at a point.
    pub fn at<'a>(&'a mut self, at: At<'a, T>, v: &'a [T]) -> DirectionRequest<'a, T> {
        let DirectionBuffers { d, h, s, draws } = self;
        DirectionRequest { at, v, draws: *draws, d, h, s, hess: None }
    }

    /// d = ∇_θ ĝ
    pub fn of_theta(&mut self, at: At<T>, oracle: &mut Oracle<T>) {
        oracle.grad_theta_g(at, self.draws.xi[0], &mut self.d);
    }

    /// h = ∇²_θθ ĝ v − ∇_θ f̂, and |∇²_θθ ĝ v| if there is a place for it.
    pub fn of_v(&mut self, at: At<T>, v: &[T], hess: Option<&mut f64>, oracle: &mut Oracle<T>) {
        let draws = (self.draws.xi[1], self.draws.sigma[0]);
        oracle.residual(at, v, draws, &mut self.h, hess);
    }

    /// s = ∇_x f̂ − ∇²_xθ ĝ v
    pub fn of_x(&mut self, at: At<T>, v: &[T], oracle: &mut Oracle<T>) {
        oracle.hypergradient(at, v, (self.draws.xi[2], self.draws.sigma[1]), &mut self.s);
    }
}
