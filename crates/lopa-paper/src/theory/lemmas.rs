//! The recursions of the lemmas, (26) to (37), with both sides measured.

use serde::Serialize;

use super::conditions::{p_s, p_x_alpha, q_s, q_x_alpha};
use super::{Constants, Derived, Parts, Scheme, Steps, all_samples};
use lopa::math::real::axpy;
use lopa::problem::{At, Bilevel};
use lopa_study::practical::snapshot::{Snapshot, distance_sq, mean_row, norm_sq};

/// One lemma at one iteration: `left ≤ right` in expectation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Recursion {
    /// The bounded quantity.
    pub name: &'static str,
    /// Its equation.
    pub place: &'static str,
    /// The measured next value.
    pub left: f64,
    /// The bound from the previous values.
    pub right: f64,
}

/// Both sides of every lemma between iterations k and k + 1.
///
/// The right-hand sides contain the sampling variances of `c`. With full batches each inequality
/// holds at every iteration; with minibatches, in the mean over runs.
pub fn recursions(
    scheme: Scheme,
    c: &Constants,
    d: &Derived,
    s: &Steps,
    parts: &mut Parts,
    [now, next]: [&Snapshot; 2],
) -> Vec<Recursion> {
    let (e, after, m) = (&now.errors, &next.errors, c.nodes as f64);
    let (gap, push) = (c.gap(), s.tau * s.alpha);
    let s_mean = expected_s(parts, now);
    let y_sq = norm_sq(&mean_row(&now.state.y));
    // ‖∇Φ̃ − E[s]‖²/m and ‖∇Φ − E[s̄]‖²
    let spread: f64 = now.exact.iter().zip(&s_mean).map(|(own, s)| distance_sq(&own.grad, s)).sum();
    let (spread, joint) = (spread / m, distance_sq(&now.grad_phi, &mean_row(&s_mean)));
    let m_hat_sq = 2.0 * d.m.powi(2) + 2.0 * e.hv;
    let noise_s = c.sigma_f_x.powi(2) + m_hat_sq * c.sigma_g_x_theta.powi(2);
    let noise_v = c.sigma_f_theta.powi(2) + m_hat_sq * c.sigma_g_theta_theta.powi(2);
    let moved = push.powi(2) * y_sq;
    let r_y = 2.0 * d.l.powi(2) / s.gamma;
    let by_errors = d.l_fg_x * (e.consensus + e.inner) + 4.0 * c.c_g_x_theta.powi(2) * e.hv;
    // The γ-average of an estimate of ∇Φ with this bias, over independent nodes.
    let averaged = |error: f64, bias: f64, nodes: f64| {
        (1.0 - s.gamma) * error
            + 2.0 * s.gamma * bias
            + r_y * moved
            + s.gamma.powi(2) * noise_s / nodes
    };
    let line = |name, place, left, right| Recursion { name, place, left, right };
    let mut all = vec![
        line(
            "descent of Phi",
            "(26)",
            after.objective,
            e.objective - push / 2.0 * now.grad_phi_sq() - push / 2.0 * (1.0 - push * d.l) * y_sq
                + push / 2.0 * e.average,
        ),
        line("average variance errors", "(27)", after.average, averaged(e.average, joint, m)),
        line("mean hypergradient error", "(28)", joint, by_errors),
        line(
            "Hv errors",
            "(30)",
            after.hv,
            (1.0 - c.mu_g * s.lambda) * e.hv
                + q_x_alpha(c, d, s) * (e.consensus + e.inner)
                + q_s(c, d, s) * moved
                + 2.0 * s.lambda.powi(2) * noise_v,
        ),
        line(
            "inner-level errors",
            "(32)",
            after.inner,
            (1.0 - 2.0 * d.omega_theta * s.beta) * e.inner
                + p_x_alpha(c, d, s) * e.consensus
                + p_s(d, s) * moved
                + 2.0 * (s.beta * c.sigma_g_theta).powi(2),
        ),
        line(
            "consensus errors",
            "(33)",
            after.consensus,
            (1.0 - s.tau * gap / 2.0) * e.consensus
                + 2.0 * s.tau * s.alpha.powi(2) / gap * e.gradient,
        ),
        line("variance errors", "(36)", after.variance, averaged(e.variance, spread, 1.0)),
        line("hypergradient errors", "(37)", spread, by_errors),
    ];
    all.push(match scheme {
        Scheme::LocalGradient => line(
            "gradient errors, LG",
            "(34)",
            e.gradient,
            3.0 * (now.dissimilarity() / m + now.grad_phi_sq() + e.variance),
        ),
        Scheme::GradientTracking => line(
            "gradient errors, GT",
            "(35)",
            after.gradient,
            (1.0 + c.rho) / 2.0 * e.gradient
                + 4.0 * s.gamma.powi(2) / gap * (spread + e.variance)
                + 2.0 * s.gamma.powi(2) / gap * noise_s,
        ),
    });
    all
}

/// E[s_i | F^k] = ∇_x f − ∇²_xθ g v at (x_i, θ_i, v_i), on all samples.
fn expected_s(parts: &mut Parts, now: &Snapshot) -> Vec<Vec<f64>> {
    let one = |(i, part): (usize, &mut Box<dyn Bilevel<f64>>)| {
        let at = At { x: &now.state.x[i], theta: &now.state.theta[i] };
        let (mut s, mut cross) = (vec![0.0; at.x.len()], vec![0.0; at.x.len()]);
        part.grad_x_f(at, &all_samples(part.samples_f()), &mut s);
        part.cross_g(at, &all_samples(part.samples_g()), &now.state.v[i], &mut cross);
        axpy(-1.0, &cross, &mut s);
        s
    };
    parts.iter_mut().enumerate().map(one).collect()
}
