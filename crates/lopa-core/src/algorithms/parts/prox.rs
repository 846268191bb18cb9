//! A proximal step onto a box with an l1 term, entry by entry.
//!
//! ```text
//! x̃ = argmin_{low ≤ x ≤ high} ⟨y, x⟩ + τ/2 |x − x_i|² + l₁ |x|₁
//!   = clip(soft(x_i − y / τ, l₁ / τ), low, high)
//! ```
//!
//! Threshold, then clip; exact, because both act on each entry alone.

use crate::math::real::Real;

/// The box, the weight of |x|₁, and τ.
#[derive(Debug, Clone, Copy)]
pub struct Prox {
    /// τ, the weight of the distance to x_i.
    pub tau: f64,
    /// The weight of |x|₁.
    pub l1: f64,
    /// The lower bound of every entry.
    pub low: f64,
    /// The upper bound of every entry.
    pub high: f64,
}

impl Prox {
    /// x̃ = x_i − y.
    pub const PLAIN: Prox = Prox { tau: 1.0, l1: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// x̃ of one entry.
    pub fn apply<T: Real>(self, x: T, y: T) -> T {
        let tau = T::of(self.tau);
        let there = x - y / tau;
        let shrunk = (there.abs() - T::of(self.l1) / tau).max(T::zero()) * there.signum();
        shrunk.max(T::of(self.low)).min(T::of(self.high))
    }
}
