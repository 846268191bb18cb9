//! The problem of one node: its own part of (1), and the derivatives that methods need.
//!
//! ```text
//! (1)  min_x Φ(x) = 1/m Σ_i f_i(x, θ_i*(x)),   θ_i*(x) = argmin_θ g_i(x, θ)
//! ```
//!
//! A node's part implements [`Bilevel`]; a problem with its parameters implements [`Problem`] and
//! makes the parts. Algorithms use an [`Oracle`](oracle::Oracle): a part with minibatches and
//! counters.

pub mod builtin;
pub mod derivative;
pub mod form;
mod kind;
pub mod oracle;
pub mod predictor;
pub mod private;
pub mod saga;
pub mod scope;

pub use kind::{AnyProblem, Ask, Parts, Problem, Problems, Setting, Together, problem_entry};

use std::ops::Range;

use crate::error::Error;
use crate::math::random::Stream;
use crate::math::real::{Real, norm, update};

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
    /// |∇²_θθ ĝ(ξ₂) v|, where the caller asks for it: step sizes may follow from it.
    pub hess: Option<&'a mut f64>,
    /// Scratch memory, of length n or p, whichever is larger.
    pub scratch: &'a mut [T],
}

/// Node i's part of problem (1): f_i and g_i, their derivatives, and named measures.
///
/// Ten methods are required; the others have defaults. A batch is a list of sample indices, each
/// below [`samples_f`](Bilevel::samples_f) for f and below [`samples_g`](Bilevel::samples_g) for g;
/// an index may occur twice. f and g on a batch are means (or any other unbiased estimate of their
/// value on all samples). Derivatives overwrite `out`. Methods take `&mut self` so that a part can
/// keep scratch memory: after the first call with a batch size, nothing should be allocated.
pub trait Bilevel<T: Real>: Send {
    /// The lengths of x and θ.
    fn dims(&self) -> Dims;
    /// The number of samples of f_i.
    fn samples_f(&self) -> usize;
    /// The number of samples of g_i.
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
    /// ∇²_xθ ĝ_i · v = ∇_x ⟨∇_θ ĝ_i, v⟩, length n.
    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]);

    /// ∇_θ ĝ_i(ξ₁), ∇²_θθ ĝ_i(ξ₂) v and ∇²_xθ ĝ_i(ξ₃) v, for parts that save work where these minibatches are
    /// [`one`].
    fn terms_of_g(&mut self, at: At<T>, v: &[T], xi: [&[u32]; 3], out: [&mut [T]; 3]) {
        each_term_of_g(self, at, v, xi, out);
    }

    /// The entries of x in which ∇²_xθ ĝ_i on a batch may differ from zero; all by default.
    fn entries_of_g(&self, _batch: &[u32]) -> Range<usize> {
        0..self.dims().n
    }

    /// The entries of x in which ∇_x f̂_i on a batch may differ from zero; all by default.
    fn entries_of_f(&self, _batch: &[u32]) -> Range<usize> {
        0..self.dims().n
    }

    /// d, h and s at a point, for parts that save work by computing all three together.
    fn directions(&mut self, at: At<T>, v: &[T], on: Minibatches, out: Directions<T>) {
        let Directions { d, h, s, hess, scratch } = out;
        self.terms_of_g(at, v, on.xi, [d, h, s]);
        if let Some(hess) = hess {
            *hess = norm(h);
        }
        let grad_theta_f = &mut scratch[..h.len()];
        self.grad_theta_f(at, on.sigma[0], grad_theta_f);
        update(h, [grad_theta_f], |hess_v, [grad]| hess_v - grad);
        let grad_x_f = &mut scratch[..s.len()];
        self.grad_x_f(at, on.sigma[1], grad_x_f);
        update(s, [grad_x_f], |cross_v, [grad]| grad - cross_v);
    }

    /// Named measures of a point on all the node's data: always `loss` (the mean outer loss,
    /// independent of the loss scale), and accuracies where there are labels. All nodes have the same names; NaN under a
    /// name that begins with `train_`, `test_`, `own_test_` or `holdout_` says that the node has no samples for it.
    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let all: Vec<u32> = (0..self.samples_f() as u32).collect();
        vec![("loss".into(), self.f(at, &all))]
    }

    /// The starting x; the same at every node, because all nodes receive the same stream.
    fn start_x(&self, _common: &mut Stream) -> Vec<f64> {
        vec![0.0; self.dims().n]
    }

    /// The starting θ.
    fn start_theta(&self, _own: &mut Stream) -> Vec<f64> {
        vec![0.0; self.dims().p]
    }

    /// The functions that single-level and first-order methods need, if the problem has them.
    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        None
    }

    /// Closed forms and estimates that make exact solves faster, if the problem has any.
    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<T>> {
        None
    }

    /// Its functions, for a device that takes it over; or the reason why no device can.
    fn form(&self) -> Result<form::Form<'_, T>, &'static str> {
        Err("this problem has no form that a device knows")
    }

    /// Whether f and g on a batch are means over its samples; else they may be of the batch as a whole, and
    /// a minibatch estimates a function of batches of its size.
    fn adds_up(&self) -> bool {
        true
    }

    /// How f and g are made of single rows, for runs with `[privacy]`; or the reason why they are not.
    fn row_sums(&self) -> Result<private::RowSums, &'static str> {
        Err("it does not say how its functions are made of single rows")
    }

    /// Takes the error of a derivative that failed and wrote NaN, if one did. The run ends with the
    /// error, and its files stay complete.
    fn error(&mut self) -> Option<Error> {
        None
    }
}

/// The three terms of g one by one: [`Bilevel::terms_of_g`] without a shortcut.
pub fn each_term_of_g<T: Real>(
    part: &mut (impl Bilevel<T> + ?Sized),
    at: At<T>,
    v: &[T],
    [xi1, xi2, xi3]: [&[u32]; 3],
    [grad, hess_v, cross_v]: [&mut [T]; 3],
) {
    part.grad_theta_g(at, xi1, grad);
    part.hess_g(at, xi2, v, hess_v);
    part.cross_g(at, xi3, v, cross_v);
}

/// The minibatch that all three are, if they are one.
pub fn one(xi: [&[u32]; 3]) -> Option<&[u32]> {
    let [first, rest @ ..] = xi;
    rest.iter().all(|other| std::ptr::eq(first, *other)).then_some(first)
}

/// The functions of a node's part that single-level and first-order methods need.
pub trait SingleLevel<T: Real> {
    /// ∇_x ĝ_i, length n.
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]);

    /// The variables that a single-level method trains.
    fn trains(&self) -> Trains {
        Trains::Theta
    }

    /// The x at which a single-level method with ridge `mu` works, if the problem has one.
    fn ridge_x(&self, _mu: f64) -> Option<Vec<f64>> {
        None
    }
}

/// The variables that a single-level method trains on a bilevel problem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trains {
    /// A common θ, with x fixed at its start.
    #[default]
    Theta,
    /// A common (x, θ).
    Both,
}

/// Closed forms and estimates that a problem may have.
pub trait Shortcuts<T: Real> {
    /// θ*(x) in closed form.
    fn theta_star(&mut self, _x: &[T]) -> Option<Vec<T>> {
        None
    }

    /// An estimate of the diagonal of ∇²_θθ g_i on all samples, every entry positive: it
    /// preconditions exact solves.
    fn hess_diagonal(&mut self, _at: At<T>) -> Option<Vec<T>> {
        None
    }

    /// Why a step size on θ or v may be too large at this point, where the problem has a better
    /// explanation than an estimate of the largest eigenvalue.
    fn unstable(&mut self, _at: At<T>, _step: f64) -> Option<String> {
        None
    }
}
