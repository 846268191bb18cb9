//! The accountant by Rényi divergences.
//!
//! ```text
//! R(α) = 1/(α − 1) · ln E_{x ~ N(0,σ²)} [(1 − q + q e^{(2x−1)/(2σ²)})^α]     of one release; they add up
//! ε    = min over α of  R(α) + ln(1 − 1/α) − ln(δ α) / (α − 1)
//! ```
//!
//! The expectation is an integral of a smooth function that falls off like a Gaussian: the trapezoidal rule is exact to
//! rounding. (Mironov, Talwar and Zhang, 2019, show that the other order of the two distributions has the smaller divergence;
//! the conversion is that of Canonne, Kamath and Steinke, 2020.)

use libm::{exp, expm1 as exp_m1, log as ln, log1p as ln_1p};

use crate::Release;

/// The orders α that are tried.
fn orders() -> impl Iterator<Item = f64> {
    let fine = (1..100).map(|tenth| 1.0 + f64::from(tenth) / 10.0);
    let whole = (11..=64).map(f64::from);
    fine.chain(whole).chain([128.0, 256.0, 512.0, 1024.0])
}

/// An upper bound of ε at `delta` of all `releases` together; infinite if their numbers have no meaning.
pub fn epsilon(releases: &[Release], delta: f64) -> f64 {
    let valid = releases.iter().all(Release::is_valid) && delta > 0.0 && delta < 1.0;
    if !valid {
        return f64::INFINITY;
    }
    let at = |alpha: f64| {
        let sum: f64 = releases.iter().map(|one| total(one, alpha)).sum();
        sum + ln_1p(-1.0 / alpha) - ln(delta * alpha) / (alpha - 1.0)
    };
    if !releases.iter().any(Release::counts) {
        return 0.0;
    }
    orders().map(at).fold(f64::INFINITY, f64::min).max(0.0)
}

fn total(release: &Release, alpha: f64) -> f64 {
    match release.counts() {
        true => release.count as f64 * divergence(release, alpha),
        false => 0.0,
    }
}

/// R(α) of one repetition.
pub fn divergence(&Release { q, sigma, .. }: &Release, alpha: f64) -> f64 {
    let variance = sigma * sigma;
    if q == 1.0 {
        return alpha / (2.0 * variance);
    }
    // In units of σ: x = σ z. The integrand lies between Gaussians around 0 and around α/σ.
    let (from, to) = (-40.0f64, alpha / sigma + 40.0);
    let points = ((to - from) / 0.05).ceil() as usize;
    let width = (to - from) / points as f64;
    let logarithm = |at: usize| {
        let z = from + width * at as f64;
        alpha * ratio(q, (2.0 * sigma * z - 1.0) / (2.0 * variance)) - 0.5 * z * z
    };
    let top = (0..=points).map(logarithm).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = (0..=points).map(|at| exp(logarithm(at) - top)).sum();
    let root = (2.0 * std::f64::consts::PI).sqrt();
    (top + ln(sum * width / root)).max(0.0) / (alpha - 1.0)
}

/// ln(1 − q + q e^u), for any u.
pub(crate) fn ratio(q: f64, u: f64) -> f64 {
    match u > 0.0 {
        true => u + ln(q + (1.0 - q) * exp(-u)),
        false => ln_1p(q * exp_m1(u)),
    }
}
