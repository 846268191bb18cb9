//! The privacy accountant: (ε, δ) of repeated Gaussian mechanisms on Poisson samples.
//!
//! A [`Release`] is a sum of vectors, one per row, each clipped to norm C. Each row is in the sum with probability q,
//! independently of all others, and N(0, (σC)² I) is added. Two data sets are neighbours if one has a row whose vector
//! is zero in the other. Then the pair of distributions that is hardest to hide is one-dimensional:
//!
//! ```text
//! A = (1 − q) N(0, σ²) + q N(1, σ²)    and    B = N(0, σ²),    in either order
//! ```
//!
//! Composition may be adaptive: a release may depend on the results of those before it.
//!
//! ```
//! use lopa_privacy::{Release, calibrate, epsilon};
//!
//! let steps = [Release { q: 0.01, sigma: 1.0, count: 1000 }];
//! let spent = epsilon(&steps, 1e-5);
//! assert!((1.8..1.9).contains(&spent));
//!
//! let sigma = calibrate(1.0, 1e-5, &steps).unwrap();
//! assert!(epsilon(&[Release { sigma, ..steps[0] }], 1e-5) <= 1.0);
//! ```

#![forbid(unsafe_code)]

mod fft;
mod loss;
pub mod renyi;

pub use loss::{delta, epsilon};

/// A Gaussian mechanism on Poisson samples, and how often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Release {
    /// The probability with which a row is in a sample, from 0 to 1.
    pub q: f64,
    /// The noise multiplier: the deviation of the noise over the clip.
    pub sigma: f64,
    /// How often.
    pub count: u64,
}

impl Release {
    /// Whether it says anything of a row: not if it never happens, or never with that row.
    fn counts(&self) -> bool {
        self.count > 0 && self.q > 0.0
    }

    /// Whether its numbers have a meaning.
    fn is_valid(&self) -> bool {
        (0.0..=1.0).contains(&self.q) && self.sigma > 0.0 && self.sigma.is_finite()
    }
}

/// The smallest and the largest δ that [`epsilon`] takes: its arithmetic has an error near 10⁻¹¹.
pub const DELTA: std::ops::Range<f64> = 1e-9..1.0;

/// The smallest and the largest noise multiplier that [`calibrate`] considers.
pub const SIGMA: std::ops::Range<f64> = 1e-2..1e7;

/// The smallest noise multiplier, the same for all `releases`, with which these have (`epsilon`, `delta`) together; their own
/// multipliers do not count. `None` if even the largest is too small, or `epsilon` is not positive.
pub fn calibrate(epsilon: f64, delta: f64, releases: &[Release]) -> Option<f64> {
    let enough = |sigma: f64| {
        let releases: Vec<Release> = releases.iter().map(|one| Release { sigma, ..*one }).collect();
        loss::epsilon(&releases, delta) <= epsilon
    };
    if epsilon.is_nan() || epsilon <= 0.0 || !enough(SIGMA.end) {
        return None;
    }
    if enough(SIGMA.start) {
        return Some(SIGMA.start);
    }
    // `high` is always enough. From the top in large steps, then by halves.
    let (mut low, mut high) = (SIGMA.start, SIGMA.end);
    for guess in [1e5, 1e3, 1e2, 3e1, 1e1, 3.0, 1.0, 0.5] {
        match enough(guess) {
            true => high = guess,
            false => {
                low = guess;
                break;
            }
        }
    }
    while high / low > 1.0 + 1e-4 {
        let middle = (low * high).sqrt();
        match enough(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high)
}

/// The largest k up to `most` such that `releases(k)` have at most `epsilon` at `delta`; ε must grow with k.
pub fn longest(epsilon: f64, delta: f64, most: u64, releases: impl Fn(u64) -> Vec<Release>) -> u64 {
    let fits = |k: u64| loss::epsilon(&releases(k), delta) <= epsilon;
    if fits(most) {
        return most;
    }
    // The first `low` fit, the first `high` do not.
    let (mut low, mut high) = (0, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}
