//! The problem as a node sees it: its own part of (1), and the derivatives LoPA asks of it.
//!
//! ```text
//! (1)  min_x Φ(x) = 1/m Σ_i f_i(x, θ_i*(x)),   θ_i*(x) = argmin_θ g_i(x, θ)
//! ```

pub mod oracle;
pub mod scope;

use crate::math::random::Stream;
use crate::math::real::{Real, update};

/// A point (x, θ).
#[derive(Debug, Clone, Copy)]
pub struct At<'a, T> {
    /// The shared variable.
    pub x: &'a [T],
    /// The personal variable.
    pub theta: &'a [T],
}

/// Dimensions: of x, of θ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Length of x.
    pub n: usize,
    /// Length of θ.
    pub p: usize,
}

/// What a single-level method trains when it is given a bilevel problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleLevel {
    /// A common θ, with x as it was given.
    Theta,
    /// A common (x, θ).
    Both,
}

/// Five minibatches, three of g and two of f.
#[derive(Debug, Clone, Copy)]
pub struct Minibatches<'a> {
    /// ξ₁, ξ₂, ξ₃
    pub xi: [&'a [u32]; 3],
    /// ς₁, ς₂
    pub sigma: [&'a [u32]; 2],
}

/// Where the directions of a method without inner loops are written.
pub struct Directions<'a, T> {
    /// ∇_θ ĝ(ξ₁), length p.
    pub d: &'a mut [T],
    /// ∇²_θθ ĝ(ξ₂) v − ∇_θ f̂(ς₁), length p.
    pub h: &'a mut [T],
    /// ∇_x f̂(ς₂) − ∇²_xθ ĝ(ξ₃) v, length n.
    pub s: &'a mut [T],
    /// Room for n or p numbers, whichever are more.
    pub hold: &'a mut [T],
}

/// Node i's part of problem (1): f_i and g_i, their derivatives, and what is worth measuring.
///
/// A batch is a list of sample numbers, each below [`samples_f`](Bilevel::samples_f) for f and
/// below [`samples_g`](Bilevel::samples_g) for g; a number may stand in it twice. Derivatives are
/// written over `out`, whatever it held. Methods take `&mut self` so that a part can keep its own
/// workspace: after the first call with a batch size, nothing is allocated.
pub trait Bilevel<T: Real>: Send {
    /// The lengths of x and θ.
    fn dims(&self) -> Dims;
    /// How many samples f_i has.
    fn samples_f(&self) -> usize;
    /// How many samples g_i has.
    fn samples_g(&self) -> usize;

    /// f̂_i(x, θ; ς)
    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64;
    /// ĝ_i(x, θ; ξ)
    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64;
    /// ∇_x f̂_i, length n.
    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]);
    /// ∇_θ f̂_i, length p.
    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]);
    /// ∇_θ ĝ_i, length p.
    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]);
    /// ∇²_θθ ĝ_i · v, length p.
    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]);
    /// An estimate of the diagonal of ∇²_θθ g_i on all samples, all of it positive, if the problem
    /// has one: exact solves take fewer steps with it.
    fn hess_diagonal(&mut self, _at: At<T>) -> Option<Vec<T>> {
        None
    }
    /// ∇²_xθ ĝ_i · v = ∇_x ⟨∇_θ ĝ_i, v⟩, length n.
    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]);
    /// ∇_x ĝ_i, length n: for single-level and first-order methods.
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]);

    /// d, h and s at a point: for parts that save work where they are asked for together.
    fn directions(&mut self, at: At<T>, v: &[T], on: Minibatches, out: Directions<T>) {
        let Directions { d, h, s, hold } = out;
        self.grad_theta_g(at, on.xi[0], d);
        self.hess_g(at, on.xi[1], v, h);
        let grad_theta_f = &mut hold[..h.len()];
        self.grad_theta_f(at, on.sigma[0], grad_theta_f);
        update(h, [grad_theta_f], |hess_v, [grad]| hess_v - grad);
        self.grad_x_f(at, on.sigma[1], s);
        let cross_v = &mut hold[..s.len()];
        self.cross_g(at, on.xi[2], v, cross_v);
        update(s, [cross_v], |grad, [cross_v]| grad - cross_v);
    }

    /// Named measures of a point, on all the node's data: `loss` always (the mean outer loss,
    /// whatever the loss scale), accuracies where there are labels.
    fn metrics(&mut self, at: At<T>) -> Vec<(&'static str, f64)>;

    /// The starting x, the same at every node because every node is handed the same stream.
    fn start_x(&self, _common: &mut Stream) -> Vec<f64> {
        vec![0.0; self.dims().n]
    }

    /// The starting θ.
    fn start_theta(&self, _own: &mut Stream) -> Vec<f64> {
        vec![0.0; self.dims().p]
    }

    /// What a single-level method trains here.
    fn single_level(&self) -> SingleLevel {
        SingleLevel::Theta
    }

    /// The x at which a single-level method with ridge `mu` works, if the problem has one.
    fn ridge_x(&self, _mu: f64) -> Option<Vec<f64>> {
        None
    }

    /// Why a step size on θ or v may be too large at this point, if the problem knows better than
    /// an estimate of the largest eigenvalue does.
    fn unstable(&mut self, _at: At<T>, _step: f64) -> Option<String> {
        None
    }

    /// θ*(x) in closed form, where there is one.
    fn theta_star(&mut self, _x: &[T]) -> Option<Vec<T>> {
        None
    }
}
