//! The three directions of a method without inner loops, at (x, θ, v).
//!
//! ```text
//! d = ∇_θ ĝ(x, θ; ξ₁)
//! h = ∇²_θθ ĝ(x, θ; ξ₂) v − ∇_θ f̂(x, θ; ς₁)
//! s = ∇_x f̂(x, θ; ς₂) − ∇²_xθ ĝ(x, θ; ξ₃) v
//! ```

use crate::choices;
use crate::error::Result;
use crate::math::real::{Real, Vector, norm};
use crate::problem::At;
use crate::problem::oracle::{DirectionRequest, Draws, Oracle};
use crate::problem::saga::{Saga, Term};

choices! {
    /// How the terms of d, h and s are estimated from minibatches.
    pub enum Estimate {
        /// On a minibatch alone.
        Plain,
        /// SAGA: corrected by what each minibatch gave when it was last used.
        Saga,
    }
}

impl Estimate {
    /// Whether it is the usual one.
    pub fn is_plain(&self) -> bool {
        *self == Estimate::Plain
    }
}

/// The name of SAGA's tables among the variables of a node. They follow the directions, which are watched.
pub const TABLE: &str = "table";

/// d, h and s.
pub struct DirectionBuffers<T> {
    /// Of θ.
    pub d: Vector<T>,
    /// Of v.
    pub h: Vector<T>,
    /// Of x.
    pub s: Vector<T>,
    /// The tables of SAGA; empty for plain estimates.
    pub saga: Saga<T>,
    /// The minibatches.
    pub draws: Draws,
}

impl<T: Real> DirectionBuffers<T> {
    /// Zeros.
    pub fn new(n: usize, p: usize, draws: Draws) -> DirectionBuffers<T> {
        DirectionBuffers::of([p, p, n].map(|length| vec![T::zero(); length].into()), draws)
    }

    /// In these vectors, of length p, p and n.
    pub fn of([d, h, s]: [Vector<T>; 3], draws: Draws) -> DirectionBuffers<T> {
        DirectionBuffers { d, h, s, saga: Saga::default(), draws }
    }

    /// Estimates from here on as `estimate` says; tables are filled at this point.
    ///
    /// # Errors
    /// If minibatches are not blocks of an epoch, or derivatives are not those of the problem itself.
    pub fn estimated(
        &mut self,
        estimate: Estimate,
        (at, v): (At<T>, &[T]),
        oracle: &mut Oracle<T>,
    ) -> Result<()> {
        if estimate == Estimate::Saga {
            self.saga = oracle.saga()?;
            oracle.fill(&mut self.saga, at, v);
        }
        Ok(())
    }

    /// d and h
    pub fn inner(&self) -> [&[T]; 2] {
        [&self.d, &self.h]
    }

    /// The minibatches, for devices.
    ///
    /// # Errors
    /// If there are tables: no device keeps them.
    pub fn on_device(&self) -> Result<Draws, &'static str> {
        match self.saga.values.is_empty() {
            true => Ok(self.draws),
            false => Err("devices keep no tables: leave `estimate` out"),
        }
    }

    /// Requests all three at a point.
    pub fn at<'a>(&'a mut self, at: At<'a, T>, v: &'a [T]) -> DirectionRequest<'a, T> {
        let DirectionBuffers { d, h, s, saga, draws } = self;
        let saga = (!saga.values.is_empty()).then_some(saga);
        DirectionRequest { at, v, draws: *draws, d, h, s, hess: None, saga }
    }

    /// d = ∇_θ ĝ
    pub fn of_theta(&mut self, at: At<T>, oracle: &mut Oracle<T>) {
        let DirectionBuffers { d, saga, draws, .. } = self;
        match saga.values.is_empty() {
            true => oracle.grad_theta_g(at, draws.xi[0], d),
            false => oracle.corrected((Term::GradThetaG, draws.xi[0]), (at, &[]), saga, d),
        }
    }

    /// h = ∇²_θθ ĝ v − ∇_θ f̂, and |∇²_θθ ĝ v| if there is a place for it.
    pub fn of_v(&mut self, at: At<T>, v: &[T], hess: Option<&mut f64>, oracle: &mut Oracle<T>) {
        let DirectionBuffers { h, saga, draws, .. } = self;
        let (xi, sigma) = (draws.xi[1], draws.sigma[0]);
        if saga.values.is_empty() {
            return oracle.residual(at, v, (xi, sigma), h, hess);
        }
        oracle.corrected((Term::HessG, xi), (at, v), saga, h);
        if let Some(hess) = hess {
            *hess = norm(h);
        }
        oracle.minus(h, |oracle, grad| {
            oracle.corrected((Term::GradThetaF, sigma), (at, v), saga, grad);
        });
    }

    /// s = ∇_x f̂ − ∇²_xθ ĝ v
    pub fn of_x(&mut self, at: At<T>, v: &[T], oracle: &mut Oracle<T>) {
        let DirectionBuffers { s, saga, draws, .. } = self;
        let (xi, sigma) = (draws.xi[2], draws.sigma[1]);
        if saga.values.is_empty() {
            return oracle.hypergradient(at, v, (xi, sigma), s);
        }
        oracle.corrected((Term::GradXF, sigma), (at, v), saga, s);
        oracle.minus(s, |oracle, cross_v| {
            oracle.corrected((Term::CrossG, xi), (at, v), saga, cross_v);
        });
    }
}
