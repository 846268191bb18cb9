//! The corollaries measured: runs on quadratics, where ∇Φ is exact, and fitted exponents.
//!
//! Every claim is a power law. A run is made for every value of one quantity and every seed, a
//! straight line is fitted to the logarithms for each seed, and the slopes of the seeds give the
//! exponent with its 95 % confidence interval by Student's t.

mod claims;
mod fit;
mod lab;
mod page;
mod tilted;

pub use fit::slope;
pub use lab::{Lab, base};
pub use page::page;

use rayon::prelude::*;
use serde::Serialize;

use crate::statistics::{Interval, interval};
use lopa::error::Result;

/// What the theory says of an exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// It is this.
    Equal,
    /// It is an upper bound: growth is at most so steep.
    AtMost,
}

/// A claim about a power law, and what was measured of it.
#[derive(Debug, Clone, Serialize)]
pub struct Rate {
    /// A short name.
    pub id: &'static str,
    /// The claim.
    pub claim: &'static str,
    /// Where the paper makes it.
    pub place: &'static str,
    /// What is varied.
    pub x: &'static str,
    /// What is measured.
    pub y: &'static str,
    /// The predicted exponent.
    pub predicted: f64,
    /// Whether it is that or at most that.
    pub sense: Sense,
    /// How it was measured.
    pub settings: &'static str,
    /// What a reader must know to judge it.
    pub remark: &'static str,
    /// The points of every seed.
    pub points: Vec<Vec<(f64, f64)>>,
    /// Seeds on which a run diverged.
    pub diverged: usize,
    /// The slope of every seed.
    pub slopes: Vec<f64>,
    /// Their mean with its confidence interval.
    pub fitted: Option<Interval>,
}

/// How far a fitted exponent may lie from the predicted one to be called the same.
pub const NEAR: f64 = 0.1;

impl Rate {
    /// Whether the measured exponent agrees with the theory: is that, or is not above its bound.
    pub fn seen(&self) -> bool {
        let Some(Interval { mean, low, high, .. }) = self.fitted else { return false };
        match self.sense {
            Sense::Equal => {
                (mean - self.predicted).abs() <= NEAR
                    || (low <= self.predicted && self.predicted <= high)
            }
            Sense::AtMost => low <= self.predicted + NEAR,
        }
    }

    /// The verdict in words; staying below a bound is no sight of the law itself.
    pub fn verdict(&self) -> &'static str {
        match (self.sense, self.seen()) {
            (Sense::Equal, true) => "seen",
            (Sense::AtMost, true) => "within",
            (Sense::Equal, false) => "not seen",
            (Sense::AtMost, false) => "exceeded",
        }
    }

    /// The predicted exponent in words.
    pub fn prediction(&self) -> String {
        let number = format!("{:.3}", self.predicted);
        let number = number.trim_end_matches('0').trim_end_matches('.');
        match self.sense {
            Sense::Equal => number.to_string(),
            Sense::AtMost => format!("at most {number}"),
        }
    }
}

/// The points of one seed.
type Points = Result<Vec<(f64, f64)>>;

/// One claim before it is measured.
struct Claim {
    id: &'static str,
    claim: &'static str,
    place: &'static str,
    x: &'static str,
    y: &'static str,
    predicted: f64,
    sense: Sense,
    settings: &'static str,
    remark: &'static str,
    measure: fn(&Lab, u64) -> Points,
}

impl Claim {
    fn judge(&self, lab: &Lab, seeds: &[u64]) -> Result<Rate> {
        // A seed on which a run diverges says nothing of a rate; it is counted, not hidden.
        let one = |seed: &u64| match (self.measure)(lab, *seed) {
            Err(error) if error.id == lab::DIVERGED => Ok(Vec::new()),
            measured => measured,
        };
        let points = match lab.pool {
            None => seeds.iter().map(one).collect::<Result<Vec<_>>>()?,
            Some(pool) => pool.install(|| seeds.par_iter().map(one).collect::<Result<Vec<_>>>())?,
        };
        let diverged = points.iter().filter(|points| points.is_empty()).count();
        let slopes: Vec<f64> = points.iter().filter_map(|points| slope(points)).collect();
        let &Claim { id, claim, place, x, y, predicted, sense, settings, remark, .. } = self;
        let fitted = interval(&slopes);
        Ok(Rate {
            id,
            claim,
            place,
            x,
            y,
            predicted,
            sense,
            settings,
            remark,
            points,
            diverged,
            slopes,
            fitted,
        })
    }
}

/// The names of all claims.
pub fn ids() -> Vec<&'static str> {
    claims::CLAIMS.iter().map(|claim| claim.id).collect()
}

/// Measures the claims, or those that are named, on so many seeds; `told` hears of each.
pub fn measure(
    lab: &Lab,
    seeds: u64,
    only: &[String],
    told: &mut dyn FnMut(&Rate),
) -> Result<Vec<Rate>> {
    let seeds: Vec<u64> = (1..=seeds).collect();
    let wanted = |claim: &&Claim| only.is_empty() || only.iter().any(|name| name == claim.id);
    let mut rates = Vec::new();
    for claim in claims::CLAIMS.iter().filter(wanted) {
        let rate = claim.judge(lab, &seeds)?;
        told(&rate);
        rates.push(rate);
    }
    Ok(rates)
}
