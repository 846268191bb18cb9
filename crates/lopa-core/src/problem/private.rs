//! Derivatives that hide single rows: the mechanism of `[privacy]`.
//!
//! ```text
//! ∂(x, θ)  =  r + 1/(qN) [ Σ_{e ∈ S} clip(∂_e − r)  +  σ C ν ],    ν ~ N(0, I)
//!
//! ∂_e   the derivative on row e alone, of N rows
//! r     the derivative on no row: regularisation, a function of x and θ
//! S     each row with probability q, independently of all others
//! clip  u ↦ u min(1, C/|u|)
//! ```
//!
//! A row moves the sum by at most C, whatever it contains: the sum is a Gaussian mechanism on a Poisson sample, which
//! [`lopa_privacy`] accounts for. Without clipping and noise, ∂ is unbiased.
//!
//! The sum is one of whole numbers, in units of C / 2³⁰: each entry of a clipped term is rounded towards zero, which makes no
//! term longer, and the noise to the nearest. For a whole number n, n + round(z) = round(n + z): the result is a Gaussian
//! mechanism, rounded afterwards, and no last bit of a floating-point sum depends on a row.
//!
//! With `clip = "auto"`, C follows from the rows, privately: each derivative of a node has a C of its own, which moves until
//! two in five rows are clipped (Andrew, Thakkar, McMahan and Ramaswamy, 2021). A row's term has one entry more, which says
//! whether it was clipped, and the sum of these entries has noise like the others:
//!
//! ```text
//! u_e   =  (κ clip(∂_e − r), ±ρ C),   + if |∂_e − r| > C,   κ² + ρ² = 1     |u_e| ≤ C: one release, as above;
//!          0 if ∂_e = r: such a row counts as none
//! b     =  the last entry of  1/(qN) [ Σ_{e ∈ S} u_e + σ C ν ],  over ρ C    the share of clipped rows less that of the others,
//!          plus 1/5, cut to [−1, 1]: 0 if two in five are clipped
//! C     ←  C (1 + η b)  if b > 0,   C / (1 − η b)  else
//! ```
//!
//! S and ν are functions of a secret key and of the question: the iteration, the number of the call in it, the
//! derivative, x, θ and v. A run that is repeated after a crash repeats its random numbers, because it repeats its
//! questions. Two different questions never have the same noise, even if a neighbour sends other messages than before the
//! crash: else the difference of two answers would show the difference of two sums without noise.

use std::ops::RangeInclusive;

use lopa_privacy::Release;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::At;
use super::derivative::{Batches, Counts, Derivative};
use crate::math::random::Stream;
use crate::math::real::Real;

/// How the functions of a node are made of its rows, if each is a mean over rows of terms that depend on one row each, plus
/// a term that depends on none; a batch without rows has the last one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSums {
    /// The derivatives that depend on rows at all; the others need no noise.
    pub depend: &'static [Derivative],
    /// Whether f and g have rows in common.
    pub common: bool,
}

/// C, the largest norm of a row's part of a derivative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "invalid clip: write a number, or \"auto\"")]
pub enum RowClip {
    /// The same for all derivatives, from the beginning to the end.
    #[schemars(title = "number")]
    Number(f64),
    /// `"auto"`: it follows the norms of the rows' parts, within the budget.
    #[schemars(title = "auto")]
    Auto(Auto),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// The clip follows the rows.
    Auto,
}

impl RowClip {
    /// `"auto"`.
    pub const AUTO: RowClip = RowClip::Auto(Auto::Auto);

    /// The valid numbers.
    pub const RANGE: RangeInclusive<f64> = 0.000_001..=1_000_000.0;

    /// C of the first iteration.
    fn first(self) -> f64 {
        match self {
            RowClip::Number(clip) => clip,
            RowClip::Auto(_) => 1.0,
        }
    }

    /// ρ.
    fn rho(self) -> f64 {
        match self {
            RowClip::Number(_) => 0.0,
            RowClip::Auto(_) => RHO,
        }
    }
}

/// ρ of `"auto"`: noise on the other entries grows by 2 %.
const RHO: f64 = 0.2;

/// η of `"auto"`.
const ETA: f64 = 0.25;

/// The share of rows that are not clipped less that of the clipped ones, at the C that `"auto"` looks for.
const AIM: f64 = 0.2;

/// The numbers of a node's mechanism.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mechanism {
    /// C, or how it is found.
    pub clip: RowClip,
    /// σ, the deviation of the noise over C.
    pub sigma: f64,
    /// How its functions are made of rows.
    pub sums: RowSums,
    /// The batch sizes.
    pub batches: Batches,
    /// The rows of f and of g.
    pub rows: (usize, usize),
}

impl Mechanism {
    /// qN, the mean number of rows in a sample.
    fn batch(&self, of: Derivative) -> usize {
        let rows = self.rows_of(of);
        of.batch(self.batches).unwrap_or(rows).min(rows)
    }

    fn rows_of(&self, of: Derivative) -> usize {
        if of.is_outer() { self.rows.0 } else { self.rows.1 }
    }

    /// q.
    fn q(&self, of: Derivative) -> f64 {
        self.batch(of) as f64 / self.rows_of(of) as f64
    }

    /// The releases of these calls: one list if a row is in f and g, otherwise one for the rows of each.
    pub fn releases(&self, counts: &Counts) -> Vec<Vec<Release>> {
        let of = |outer: &dyn Fn(Derivative) -> bool| {
            let each = self.sums.depend.iter().filter(|&&of| outer(of));
            let release = |&of: &Derivative| Release {
                q: self.q(of),
                sigma: self.sigma,
                count: of.calls(*counts),
            };
            each.map(release).collect()
        };
        match self.sums.common {
            true => vec![of(&|_| true)],
            false => vec![of(&|of| !of.is_outer()), of(&Derivative::is_outer)],
        }
    }

    /// ε after these calls.
    pub fn epsilon(&self, counts: &Counts, delta: f64) -> f64 {
        let each = self.releases(counts);
        each.iter().map(|releases| lopa_privacy::epsilon(releases, delta)).fold(0.0, f64::max)
    }
}

/// The source of random numbers: no reader of a run's results may have it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("Key(…)")
    }
}

impl Key {
    /// A key that follows from this one and another.
    pub fn and(&self, other: &Key) -> Key {
        Key(Sha256::new().chain_update(self.0).chain_update(other.0).finalize().into())
    }

    /// A key that follows from this one and a text.
    pub fn of(&self, text: &str) -> Key {
        Key(Sha256::new().chain_update(self.0).chain_update(text).finalize().into())
    }
}

/// A derivative at a point.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a, T> {
    /// Which.
    pub of: Derivative,
    /// The iteration: 0 at the start, k + 1 in iteration k.
    pub address: u64,
    /// The point.
    pub at: At<'a, T>,
    /// What a product is taken with; empty for gradients.
    pub v: &'a [T],
}

/// Computes the derivatives of one node.
pub struct Private<T> {
    mechanism: Mechanism,
    clips: [f64; Derivative::ALL.len()], // C of each derivative
    key: Key,
    call: u64, // in this iteration
    question: Vec<u8>,
    sample: Vec<u32>,
    without: Vec<T>,
    with: Vec<T>,
    sum: Vec<i64>,
}

impl<T: Real> Private<T> {
    /// For vectors of up to `longest` entries.
    pub fn new(mechanism: Mechanism, key: Key, longest: usize) -> Private<T> {
        let (f, g) = mechanism.rows;
        Private {
            mechanism,
            clips: [mechanism.clip.first(); Derivative::ALL.len()],
            key,
            call: 0,
            question: Vec::new(),
            sample: Vec::with_capacity(f.max(g)),
            without: vec![T::zero(); longest],
            with: vec![T::zero(); longest],
            sum: vec![0; longest],
        }
    }

    /// Its numbers.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// C of each derivative, if they change during a run.
    pub fn clips(&self) -> &[f64] {
        match self.mechanism.clip {
            RowClip::Number(_) => &[],
            RowClip::Auto(_) => &self.clips,
        }
    }

    /// The same, to continue an earlier run.
    pub fn clips_mut(&mut self) -> &mut [f64] {
        match self.mechanism.clip {
            RowClip::Number(_) => &mut [],
            RowClip::Auto(_) => &mut self.clips,
        }
    }

    /// A new iteration begins.
    pub fn begin(&mut self) {
        self.call = 0;
    }

    /// The random numbers of a question.
    fn stream(&mut self, Question { of, address, at, v }: Question<T>) -> Stream {
        let bytes = &mut self.question;
        bytes.clear();
        bytes.extend_from_slice(&self.key.0);
        for number in [address, self.call, of as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        [at.x, at.theta, v].into_iter().for_each(|values| T::extend_le(values, bytes));
        if let RowClip::Auto(_) = self.mechanism.clip {
            bytes.extend_from_slice(&self.clips[of as usize].to_le_bytes());
        }
        self.call += 1;
        Stream::keyed(Sha256::digest(bytes).into())
    }

    /// `out` ← ∂, of a derivative that computes itself on given rows; returns the mean number of rows in its sample.
    pub fn take(
        &mut self,
        question: Question<T>,
        out: &mut [T],
        mut derivative: impl FnMut(&[u32], &mut [T]),
    ) -> usize {
        let of = question.of;
        let Mechanism { clip: rule, sigma, sums, .. } = self.mechanism;
        let (clip, rho) = (self.clips[of as usize], rule.rho());
        let kappa = (1.0 - rho * rho).sqrt();
        let (rows, batch) = (self.mechanism.rows_of(of), self.mechanism.batch(of));
        derivative(&[], out);
        if !sums.depend.contains(&of) {
            return batch;
        }
        let mut stream = self.stream(question);
        let q = self.mechanism.q(of);
        self.sample.clear();
        self.sample.extend((0..rows as u32).filter(|_| stream.unit() < q));
        let without = &mut self.without[..out.len()];
        without.copy_from_slice(out);
        let with = &mut self.with[..out.len()];
        let sum = &mut self.sum[..out.len()];
        sum.fill(0);
        let mut more = 0; // clipped rows than others, in units
        for &row in &self.sample {
            derivative(&[row], with);
            let terms = || with.iter().zip(&*without).map(|(&a, &b)| a.to_f64() - b.to_f64());
            let norm = terms().map(|term| term * term).sum::<f64>().sqrt();
            let factor = clipped(clip, norm);
            if factor > 0.0 && norm > 0.0 {
                // `as` rounds towards zero. A sum of 2³² terms of 2³⁰ units fits.
                let mark = (SAFE * rho * UNITS) as i64;
                more += if factor < 1.0 { mark } else { -mark };
                let units = kappa * factor * (UNITS / clip);
                sum.iter_mut().zip(terms()).for_each(|(sum, term)| *sum += (units * term) as i64);
            }
        }
        let mut noisy = |sum: i64| {
            let noise = (sigma * UNITS * stream.normal()).round() as i64;
            sum.saturating_add(noise) as f64 / UNITS
        };
        for (out, &mut sum) in out.iter_mut().zip(sum) {
            let mean = noisy(sum) / kappa * clip / batch as f64;
            *out = T::of(out.to_f64() + mean);
        }
        if let RowClip::Auto(_) = rule {
            let (least, most) = (*RowClip::RANGE.start(), *RowClip::RANGE.end());
            let b = (noisy(more) / rho / batch as f64 + AIM).clamp(-1.0, 1.0);
            let next = if b > 0.0 { clip * (1.0 + ETA * b) } else { clip / (1.0 - ETA * b) };
            self.clips[of as usize] = next.clamp(least, most);
        }
        batch
    }
}

/// Units of a clip.
const UNITS: f64 = (1u64 << 30) as f64;

/// A little less than 1: rounding of norms and products stays below the difference.
const SAFE: f64 = 1.0 - 1e-9;

/// The factor of a vector of this norm. Rounding must not make it longer than `clip`, and a vector that is not finite
/// counts as none.
fn clipped(clip: f64, norm: f64) -> f64 {
    match norm {
        norm if norm < SAFE * clip => 1.0,
        norm if norm.is_finite() => SAFE * clip / norm,
        _ => 0.0,
    }
}
