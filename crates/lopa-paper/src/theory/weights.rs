//! d_0 … d_6, the weights of the Lyapunov function, (53) and (92).

use serde::Serialize;

use lopa_study::practical::snapshot::Errors;

use super::{Constants, Derived, Scheme, Steps};

/// d_0 … d_6.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Weights {
    /// Of Φ(x̄).
    pub d0: f64,
    /// Of the Hv errors.
    pub d1: f64,
    /// Of the inner-level errors.
    pub d2: f64,
    /// Of the average variance errors.
    pub d3: f64,
    /// Of the variance errors.
    pub d4: f64,
    /// Of the consensus errors.
    pub d5: f64,
    /// Of the gradient errors.
    pub d6: f64,
}

impl Weights {
    /// d_0 Φ, d_1 (Hv errors), …: the terms of V^k.
    pub fn terms(&self, errors: &Errors) -> [f64; 7] {
        let (terms, weights) = (errors.list(), self.list());
        std::array::from_fn(|j| weights[j] * terms[j])
    }

    /// The weights with which V^k decreases, by the requirements of the proofs.
    ///
    /// d_4 and d_6 are the smallest weights that absorb the contribution of the consensus errors:
    /// d_4 γ = 6 τα² d_5 / (1 − ρ) for LG, d_6 (1 − ρ)/2 = 2 τα² d_5 / (1 − ρ) and d_4 = 4 γ d_6 /
    /// (1 − ρ) for GT. The paper prints them with another power of α; see `docs/errata.md`.
    pub fn of(scheme: Scheme, c: &Constants, d: &Derived, s: &Steps) -> Weights {
        let (gap, push) = (c.gap(), s.tau * s.alpha);
        let common = Weights {
            d0: 1.0,
            d1: 8.0 * c.c_g_x_theta.powi(2) * push / (c.mu_g * s.lambda),
            d2: d.a * push / (d.omega_theta * s.beta),
            d3: push / (2.0 * s.gamma),
            d4: 0.0,
            d5: 4.0 * d.phi * s.alpha / gap,
            d6: 0.0,
        };
        let pull = d.phi * s.tau * s.alpha.powi(3);
        match scheme {
            Scheme::LocalGradient => {
                Weights { d4: 24.0 * pull / (gap.powi(2) * s.gamma), ..common }
            }
            Scheme::GradientTracking => Weights {
                d4: 64.0 * pull * s.gamma / gap.powi(4),
                d6: 16.0 * pull / gap.powi(3),
                ..common
            },
        }
    }

    /// d_0 … d_6 in order.
    pub fn list(&self) -> [f64; 7] {
        [self.d0, self.d1, self.d2, self.d3, self.d4, self.d5, self.d6]
    }
}
