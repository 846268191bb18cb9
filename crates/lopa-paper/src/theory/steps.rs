//! Step sizes: the admissible intervals of the theorems, and the choice of the corollaries.

use serde::Serialize;

use super::bound::{self, Start};
use super::conditions::Condition;
use super::{Constants, Derived, Scheme, Steps};
use lopa::math::portable::cbrt;

/// Where a step size may lie for a given α: from `slope` · α to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Room {
    /// c, where c α is the lower end: the requirement of (70) and (107) on c_λ, c_β, c_γ.
    pub slope: f64,
    /// The upper end.
    pub high: f64,
}

impl Room {
    /// The largest α that leaves a factor of two between the ends.
    fn widest(&self) -> f64 {
        if self.slope > 0.0 { self.high / (2.0 * self.slope) } else { f64::INFINITY }
    }

    /// c between the ends for every α up to `u`: 1.5 times the smallest, as (70) suggests.
    fn c(&self, u: f64) -> f64 {
        if self.slope > 0.0 { 1.5 * self.slope } else { self.high / (2.0 * u) }
    }
}

/// The step sizes that a theorem admits for a τ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Admissible {
    /// τ.
    pub tau: f64,
    /// u_1, (55) and (94).
    pub u1: f64,
    /// u_2, (60) and (98).
    pub u2: f64,
    /// u_3, (64) and (102): intervals of λ, β, γ are not empty.
    pub u3: f64,
    /// u = min{u_1, u_2, u_3}, (65) and (103): α may not be larger.
    pub u: f64,
    /// Which of the three is the smallest.
    pub active: &'static str,
    /// The interval of λ, (61) and (99).
    pub lambda: Room,
    /// The interval of β, (62) and (100).
    pub beta: Room,
    /// The interval of γ, (63) and (101).
    pub gamma: Room,
    /// GT: γ α may not exceed this, which replaces the bounds of u'_2 on γ, (98).
    pub gamma_alpha: f64,
}

/// Simple, sufficient bounds on the step sizes: step sizes within them meet all
/// [`conditions`](super::conditions).
///
/// They are the paper's with its errors corrected: λ below 2/(μ_g + L_{g,θ}) so that I − λ∇²g
/// contracts, each σ in the place that its lemma gives, and the bounds that follow from the
/// corrected d_4, d_6.
pub fn admissible(scheme: Scheme, c: &Constants, d: &Derived, tau: f64) -> Admissible {
    let (gap, root_phi) = (c.gap(), d.phi.sqrt());
    let stable = 2.0 / (c.mu_g + c.l_g_theta);
    // Without noise there is no bound.
    let over = |top: f64, sigma: f64| if sigma > 0.0 { top / sigma } else { f64::INFINITY };
    let lambda = Room {
        slope: 48.0 * d.l_v_star * c.c_g_x_theta * tau / c.mu_g,
        high: stable.min(over(c.mu_g / 24.0, c.sigma_g_theta_theta.powi(2))),
    };
    let beta =
        Room { slope: 6.0 * d.l_theta_star * d.a.sqrt() * tau / d.omega_theta, high: stable };
    let gamma = Room {
        slope: 4.0 * d.l * tau,
        high: over(c.c_g_x_theta.powi(2), c.sigma_g_x_theta.powi(2)).min(1.0),
    };
    let u1 = 1.0 / (2.0 * tau * d.l);
    let (u2, gamma_alpha) = match scheme {
        Scheme::LocalGradient => (gap / (12.0 * root_phi), f64::INFINITY),
        Scheme::GradientTracking => {
            let limit =
                gap.powi(2) / (24.0 * root_phi) * over(c.c_g_x_theta, c.sigma_g_x_theta).min(1.0);
            ((limit / (2.0 * gamma.slope)).sqrt(), limit)
        }
    };
    let u3 = lambda.widest().min(beta.widest()).min(gamma.widest());
    let u = u1.min(u2).min(u3);
    let active = match u {
        _ if u == u1 => "u1",
        _ if u == u2 => "u2",
        _ => "u3",
    };
    Admissible { tau, u1, u2, u3, u, active, lambda, beta, gamma, gamma_alpha }
}

impl Admissible {
    /// Whether the step sizes lie in the intervals.
    pub fn admits(&self, s: &Steps) -> bool {
        s.tau == self.tau && self.checks(s).iter().all(Condition::holds)
    }

    /// The intervals as conditions on given step sizes; each names the step size that it restricts.
    pub fn checks(&self, s: &Steps) -> Vec<Condition> {
        let check = |name, place, step, says, small, large| Condition {
            name,
            place,
            step,
            says,
            small,
            large,
        };
        let lower = |room: Room| room.slope * s.alpha;
        let mut all = vec![
            check("alpha <= u1", "(55) (94)", "alpha", "1 / (2 tau L)", s.alpha, self.u1),
            check("alpha <= u2", "(60) (98)", "alpha", "network and phi", s.alpha, self.u2),
            check("alpha <= u3", "(64) (102)", "alpha", "intervals not empty", s.alpha, self.u3),
            check(
                "lambda >= c alpha",
                "(56) (95)",
                "lambda",
                "c = 48 L_v* C tau / mu_g",
                lower(self.lambda),
                s.lambda,
            ),
            check(
                "lambda small",
                "(61) (99)",
                "lambda",
                "2 / (mu + L), mu / (24 sigma^2)",
                s.lambda,
                self.lambda.high,
            ),
            check(
                "beta >= c alpha",
                "(57) (96)",
                "beta",
                "c = 6 L_theta* a^1/2 tau / omega",
                lower(self.beta),
                s.beta,
            ),
            check("beta small", "(62) (100)", "beta", "2 / (mu + L)", s.beta, self.beta.high),
            check(
                "gamma >= c alpha",
                "(58) (97)",
                "gamma",
                "c = 4 L tau",
                lower(self.gamma),
                s.gamma,
            ),
            check(
                "gamma small",
                "(63) (101)",
                "gamma",
                "1, C^2 / sigma^2",
                s.gamma,
                self.gamma.high,
            ),
        ];
        if self.gamma_alpha.is_finite() {
            let both = s.gamma * s.alpha;
            let says = "(1 - rho)^2 / (24 phi^1/2)";
            all.push(check("gamma alpha small", "(98)", "gamma", says, both, self.gamma_alpha));
        }
        all
    }

    /// c_λ, c_β, c_γ such that λ = c_λ α, … are admissible for every α up to u.
    pub fn slopes(&self) -> [f64; 3] {
        [self.lambda, self.beta, self.gamma].map(|room| room.c(self.u))
    }

    /// The step sizes for an α.
    pub fn at(&self, alpha: f64) -> Steps {
        let [lambda, beta, gamma] = self.slopes().map(|c| c * alpha);
        Steps { alpha, beta, lambda, gamma, tau: self.tau }
    }
}

/// The step sizes that the corollaries choose for K iterations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Choice {
    /// The step sizes.
    pub steps: Steps,
    /// c_λ, (70).
    pub c_lambda: f64,
    /// c_β, (70).
    pub c_beta: f64,
    /// c_γ, (70).
    pub c_gamma: f64,
    /// a_0 of (77), a'_0 for GT.
    pub a0: f64,
    /// a_1 of (77), a'_1 for GT.
    pub a1: f64,
    /// a_2 of (77); 0 for GT.
    pub a2: f64,
    /// The limit on α: `u1`, `u2`, `u3`, `variance` or `heterogeneity`.
    pub active: &'static str,
    /// The corollary's bound on the mean of ‖∇Φ‖² over K + 1 iterations, (82) and (113).
    pub bound: f64,
}

/// α = min{u, (a_0 / (a_1 (K + 1)))^½, (a_0 / (a_2 (K + 1)))^⅓} of Corollaries 1 to 4, with
/// γ = c_γ α, λ = c_λ α, β = c_β α.
///
/// The paper's a_0 has Φ(x̄⁰) as if Φ ≥ 0; here it is Φ(x̄⁰) minus a lower bound of Φ.
pub fn choose(
    scheme: Scheme,
    c: &Constants,
    d: &Derived,
    tau: f64,
    iterations: u64,
    start: &Start,
) -> Choice {
    let admissible = admissible(scheme, c, d, tau);
    let (u, k) = (admissible.u, (iterations + 1) as f64);
    let largest = admissible.at(u);
    let factor = bound::factor(scheme);
    // d_4, d_5, d_6 and the variance grow with α: their values at u are bounds, (74) to (76).
    let a0 = factor * start.v0(scheme, c, d, &largest) / tau;
    let a1 = factor * bound::variance_sq(scheme, c, d, &largest).total();
    let a2 = factor * bound::vartheta(scheme, c, d) * start.b_sq / c.nodes as f64;
    let by_variance = if a1 > 0.0 { (a0 / (a1 * k)).sqrt() } else { f64::INFINITY };
    let by_heterogeneity = if a2 > 0.0 { cbrt(a0 / (a2 * k)) } else { f64::INFINITY };
    let alpha = u.min(by_variance).min(by_heterogeneity);
    let active = match alpha {
        _ if alpha == u => admissible.active,
        _ if alpha == by_variance => "variance",
        _ => "heterogeneity",
    };
    let [c_lambda, c_beta, c_gamma] = admissible.slopes();
    let steps = admissible.at(alpha);
    let bound = a0 / (alpha * k) + a1 * alpha + a2 * alpha.powi(2);
    Choice { steps, c_lambda, c_beta, c_gamma, a0, a1, a2, active, bound }
}
