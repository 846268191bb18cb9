//! The right-hand sides of Theorems 1 and 2, (18) and (20).

use serde::Serialize;

use super::{Constants, Derived, Scheme, Steps, Weights};
use lopa_study::practical::snapshot::Errors;

/// The quantities of the start that the bound needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Start {
    /// The error terms at k = 0; `objective` is Φ(x̄⁰) minus a lower bound of Φ.
    pub errors: Errors,
    /// b², with Σ_i ‖∇Φ_i − ∇Φ‖² ≤ b²; not used in Theorem 2.
    pub b_sq: f64,
    /// Whether z⁰ = s⁰ with sampling error: the first step then reuses the same sample.
    pub reused: bool,
}

impl Start {
    /// V⁰ minus a lower bound of V^{K+1}.
    ///
    /// With z⁰ = s⁰ of a minibatch, also z¹ = s⁰, and the first step does not average: (27) and
    /// (36) then miss up to 2γ of the errors at the start, which is added here.
    pub fn v0(&self, scheme: Scheme, c: &Constants, d: &Derived, s: &Steps) -> f64 {
        let w = Weights::of(scheme, c, d, s);
        let reuse = if self.reused {
            2.0 * s.gamma * (w.d3 * self.errors.average + w.d4 * self.errors.variance)
        } else {
            0.0
        };
        w.terms(&self.errors).iter().sum::<f64>() + reuse
    }
}

/// A bound on the mean of ‖∇Φ(x̄^k)‖² over k = 0 … K, term by term.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bound {
    /// 4 (V⁰ − V^{K+1}) / (τα (K + 1)); 2 in place of 4 for GT.
    pub transient: f64,
    /// 4 α σ_LG²; 2 α σ_GT² for GT.
    pub variance: f64,
    /// 4 ϑ α² b² / m; 0 for GT.
    pub heterogeneity: f64,
}

impl Bound {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.transient + self.variance + self.heterogeneity
    }
}

/// 4 of (18), 2 of (20): the inverse of the share of τα‖∇Φ‖² that the descent keeps.
pub(super) fn factor(scheme: Scheme) -> f64 {
    match scheme {
        Scheme::LocalGradient => 4.0,
        Scheme::GradientTracking => 2.0,
    }
}

/// Theorems 1 and 2, (18) and (20). The bound holds if all
/// [`conditions`](super::conditions::conditions) do.
pub fn bound(
    scheme: Scheme,
    c: &Constants,
    d: &Derived,
    s: &Steps,
    start: &Start,
    iterations: u64,
) -> Bound {
    let factor = factor(scheme);
    let v0 = start.v0(scheme, c, d, s);
    let het = vartheta(scheme, c, d) * s.alpha.powi(2) * start.b_sq / c.nodes as f64;
    Bound {
        transient: factor * v0 / (s.tau * s.alpha * (iterations + 1) as f64),
        variance: factor * s.alpha * variance_sq(scheme, c, d, s).total(),
        heterogeneity: factor * het,
    }
}

/// ϑ = 24 φ / (1 − ρ)² for LG, (67); 0 for GT.
///
/// The paper has an extra factor α/γ that does not follow from the proof: see `docs/errata.md`.
pub fn vartheta(scheme: Scheme, c: &Constants, d: &Derived) -> f64 {
    match scheme {
        Scheme::LocalGradient => 24.0 * d.phi / c.gap().powi(2),
        Scheme::GradientTracking => 0.0,
    }
}

/// σ_LG² of (68) or σ_GT² of (105), split by the sampled derivative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Variance {
    /// Of ∇_x f.
    pub f_x: f64,
    /// Of ∇²_xθ g.
    pub g_x_theta: f64,
    /// Of ∇_θ f.
    pub f_theta: f64,
    /// Of ∇²_θθ g.
    pub g_theta_theta: f64,
    /// Of ∇_θ g.
    pub g_theta: f64,
}

impl Variance {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.list().iter().map(|(_, part)| part).sum()
    }

    /// Every part, with the key of its batch size in experiment files.
    pub fn list(&self) -> [(&'static str, f64); 5] {
        [
            ("grad_x_f", self.f_x),
            ("cross_g", self.g_x_theta),
            ("grad_theta_f", self.f_theta),
            ("hess_g", self.g_theta_theta),
            ("grad_g", self.g_theta),
        ]
    }
}

/// σ_LG², (68), and σ_GT², (105).
pub fn variance_sq(scheme: Scheme, c: &Constants, d: &Derived, s: &Steps) -> Variance {
    let w = Weights::of(scheme, c, d, s);
    let per = |weight: f64, step: f64| weight / s.tau * (step / s.alpha).powi(2);
    let outer = per(w.d3 / c.nodes as f64 + w.d4 + 2.0 * w.d6 / c.gap(), s.gamma);
    let (hv, inner) = (2.0 * per(w.d1, s.lambda), 2.0 * per(w.d2, s.beta));
    let m_sq = 2.0 * d.m.powi(2);
    Variance {
        f_x: outer * c.sigma_f_x.powi(2),
        g_x_theta: outer * m_sq * c.sigma_g_x_theta.powi(2),
        f_theta: hv * c.sigma_f_theta.powi(2),
        g_theta_theta: hv * m_sq * c.sigma_g_theta_theta.powi(2),
        g_theta: inner * c.sigma_g_theta.powi(2),
    }
}

/// σ_p of (72): the part that more nodes do not average away.
pub fn sigma_p(scheme: Scheme, c: &Constants, d: &Derived, s: &Steps) -> f64 {
    let w = Weights::of(scheme, c, d, s);
    let [c_lambda, c_beta] = [s.lambda / s.alpha, s.beta / s.alpha];
    let hv = c.sigma_f_theta + 2.0 * d.m * c.sigma_g_theta_theta;
    (w.d1 / s.tau).sqrt() * hv * c_lambda + (w.d2 / s.tau).sqrt() * c.sigma_g_theta * c_beta
}

/// σ_c of (72): the part that m nodes average down to σ_c / √m.
pub fn sigma_c(scheme: Scheme, c: &Constants, d: &Derived, s: &Steps) -> f64 {
    let w = Weights::of(scheme, c, d, s);
    let outer = c.sigma_f_x + 2.0 * d.m * c.sigma_g_x_theta;
    (w.d3 / s.tau).sqrt() * outer * s.gamma / s.alpha
}

/// The batch size of each derivative, relative to ∇_x f, that makes all five parts of the variance
/// equal: its key, the ratio by the measured variances, and the order in m and κ that the remark on
/// improved complexity gives.
pub fn balanced_batches(
    variance: &Variance,
    nodes: usize,
    kappa: f64,
) -> Vec<(&'static str, f64, f64)> {
    let m = nodes as f64;
    let orders = [1.0, kappa.powi(2), m * kappa, m * kappa.powi(3), m * kappa.powi(5)];
    let base = if variance.f_x > 0.0 { variance.f_x } else { variance.total() / 5.0 };
    let ratio = |part: f64| if base > 0.0 { part / base } else { 1.0 };
    variance
        .list()
        .into_iter()
        .zip(orders)
        .map(|((key, part), order)| (key, ratio(part), order))
        .collect()
}
