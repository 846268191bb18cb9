//! The conditions under which V^k decreases: those of the lemmas and (47)–(51), (87)–(90).

use serde::Serialize;

use super::derived::x_slope;
use super::{Constants, Derived, Scheme, Steps, Weights};

/// One condition, `small ≤ large`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Condition {
    /// Its short name.
    pub name: &'static str,
    /// Its equation in the paper.
    pub place: &'static str,
    /// The step size that it restricts most.
    pub step: &'static str,
    /// The condition in words.
    pub says: &'static str,
    /// The side that must be small.
    pub small: f64,
    /// The side that must be large.
    pub large: f64,
}

impl Condition {
    /// Whether it holds, up to rounding.
    pub fn holds(&self) -> bool {
        self.small <= self.large * (1.0 + 1e-12)
    }

    /// small / large: the used share, above 1 if the condition is violated.
    pub fn used(&self) -> f64 {
        match (self.small, self.large) {
            (0.0, _) => 0.0,
            (small, large) => small / large,
        }
    }
}

/// The exact requirements of the proofs on the step sizes: the lemmas' conditions and the sums that
/// must not be negative. The simple bounds of [`steps`](super::steps) imply them.
pub fn conditions(scheme: Scheme, c: &Constants, d: &Derived, s: &Steps) -> Vec<Condition> {
    let w = Weights::of(scheme, c, d, s);
    let mut all = lemmas(c, s);
    all.push(objective(scheme, c, d, s, &w));
    let (r_z_alpha, gap) = (2.0 * s.gamma, c.gap());
    let push = s.tau * s.alpha;
    // The weight of ‖∇Φ̃ − E[s]‖² through the variance and gradient errors.
    let passed_on = w.d4 * r_z_alpha + 4.0 * w.d6 * s.gamma.powi(2) / gap;
    let noisy = 2.0
        * (w.d3 / c.nodes as f64 + w.d4 + 2.0 * w.d6 / gap)
        * (s.gamma * c.sigma_g_x_theta).powi(2)
        + 4.0 * w.d1 * (s.lambda * c.sigma_g_theta_theta).powi(2);
    let [hv, inner, consensus] = match scheme {
        Scheme::LocalGradient => ["(49)", "(50)", "(51)"],
        Scheme::GradientTracking => ["(88)", "(89)", "(90)"],
    };
    if scheme == Scheme::LocalGradient {
        all.push(Condition {
            name: "gradient",
            place: "(48)",
            step: "alpha",
            says: "6 d5 tau alpha^2 / (1 - rho) <= tau alpha / 4",
            small: 6.0 * w.d5 * push * s.alpha / gap,
            large: push / 4.0,
        });
    }
    all.push(Condition {
        name: "Hv errors",
        place: hv,
        step: "alpha",
        says: "what Hv errors cost is below d1 mu lambda / 2",
        small: 4.0 * c.c_g_x_theta.powi(2) * passed_on + noisy,
        large: w.d1 * c.mu_g * s.lambda / 2.0,
    });
    all.push(Condition {
        name: "inner errors",
        place: inner,
        step: "alpha",
        says: "what inner errors cost is below d2 omega beta",
        small: d.l_fg_x * passed_on,
        large: w.d2 * d.omega_theta * s.beta,
    });
    all.push(Condition {
        name: "consensus errors",
        place: consensus,
        step: "alpha",
        says: "what consensus costs is below d5 tau (1 - rho) / 4",
        small: d.l_fg_x * passed_on,
        large: w.d5 * s.tau * gap / 4.0,
    });
    all
}

fn lemmas(c: &Constants, s: &Steps) -> Vec<Condition> {
    let stable = 2.0 / (c.mu_g + c.l_g_theta);
    vec![
        Condition {
            name: "beta stable",
            place: "(31)",
            step: "beta",
            says: "beta <= 2 / (mu_g + L_g,theta)",
            small: s.beta,
            large: stable,
        },
        Condition {
            name: "lambda stable",
            place: "(29), corrected",
            step: "lambda",
            says: "lambda <= 2 / (mu_g + L_g,theta)",
            small: s.lambda,
            large: stable,
        },
        Condition {
            name: "gamma a weight",
            place: "Lemma of (27)",
            step: "gamma",
            says: "gamma <= 1",
            small: s.gamma,
            large: 1.0,
        },
        Condition {
            name: "tau a weight",
            place: "Lemma of (33)",
            step: "tau",
            says: "tau <= 1",
            small: s.tau,
            large: 1.0,
        },
    ]
}

/// (47) and (87): the descent of Φ pays for the cost of ‖ȳ‖².
fn objective(scheme: Scheme, c: &Constants, d: &Derived, s: &Steps, w: &Weights) -> Condition {
    let moved = (s.tau * s.alpha).powi(2);
    let r_y = 2.0 * d.l.powi(2) / s.gamma;
    let small = w.d1 * q_s(c, d, s) + w.d2 * p_s(d, s) + (w.d3 + w.d4) * r_y;
    Condition {
        name: "objective",
        place: if scheme == Scheme::LocalGradient { "(47)" } else { "(87)" },
        step: "alpha",
        says: "what |y|^2 costs is below tau alpha / 2",
        small: (small + d.l / 2.0) * moved,
        large: s.tau * s.alpha / 2.0,
    }
}

/// q_s = 2 L_v*² / (ϖ λ) with ϖ = μ_g / 3, (30).
pub(super) fn q_s(c: &Constants, d: &Derived, s: &Steps) -> f64 {
    6.0 * d.l_v_star.powi(2) / (c.mu_g * s.lambda)
}

/// p_s = 2 L_θ*² / (ω_θ β), (32).
pub(super) fn p_s(d: &Derived, s: &Steps) -> f64 {
    2.0 * d.l_theta_star.powi(2) / (d.omega_theta * s.beta)
}

/// q_x α = 4 L_{fg,θ} λ / μ_g, (30).
pub(super) fn q_x_alpha(c: &Constants, d: &Derived, s: &Steps) -> f64 {
    4.0 * d.l_fg_theta * s.lambda / c.mu_g
}

/// p_x α = 4 L² β / ω_θ, (32), with the L of [`Derived::phi`].
pub(super) fn p_x_alpha(c: &Constants, d: &Derived, s: &Steps) -> f64 {
    4.0 * x_slope(c).powi(2) * s.beta / d.omega_theta
}
