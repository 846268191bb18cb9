//! The rates of the corollaries, measured on quadratics, where ∇Φ is known in closed form, and on logistic
//! regression, where it is found by exact solves.
//!
//! Every claim is a power law. There is one run per seed and value of the varied quantity; a
//! straight line is fitted to the logarithms for each seed, and the slopes give the exponent with
//! its 95 % confidence interval by Student's t.

mod claims;
mod fit;
mod gradient;
mod lab;
mod page;
mod tilted;

pub use fit::slope;
pub use lab::{Lab, base};
pub use page::page;

use serde::Serialize;

use lopa::error::Result;
use lopa::math::parallel;
use lopa_study::statistics::{Interval, interval};

/// The meaning of a predicted exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// The exponent itself.
    Equal,
    /// An upper bound on the exponent.
    AtMost,
}

/// A claim about a power law, and its measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Rate {
    /// A short name.
    pub id: &'static str,
    /// The claim.
    pub claim: &'static str,
    /// Where the paper makes it.
    pub place: &'static str,
    /// The varied quantity.
    pub x: &'static str,
    /// The measured quantity.
    pub y: &'static str,
    /// The predicted exponent.
    pub predicted: f64,
    /// Whether it is exact or an upper bound.
    pub sense: Sense,
    /// How it was measured.
    pub settings: &'static str,
    /// A caveat for the reader.
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

/// How far an exponent may be from the predicted one and still confirm it.
pub const MARGIN: f64 = 0.1;

/// The verdict of the measured exponent on the predicted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// The whole interval lies within the margin, or below the bound.
    Yes,
    /// The whole interval lies outside.
    No,
    /// The interval reaches from one to the other, or there is none, or a run diverged.
    Open,
}

impl Rate {
    /// Seeds without an exponent: a run diverged, or a point has no logarithm.
    pub fn lost(&self) -> usize {
        self.points.len() - self.slopes.len()
    }

    /// Whether the measured exponent is the predicted one, or does not exceed its bound. An
    /// interval must be narrow to decide either way: a wide one contains many other exponents. The seeds that
    /// survived where others diverged are no fair sample, and decide nothing.
    pub fn seen(&self) -> Seen {
        if self.lost() > 0 {
            return Seen::Open;
        }
        let Some(Interval { low, high, .. }) = self.fitted else { return Seen::Open };
        let (least, most) = match self.sense {
            Sense::Equal => (self.predicted - MARGIN, self.predicted + MARGIN),
            Sense::AtMost => (f64::NEG_INFINITY, self.predicted + MARGIN),
        };
        match (least <= low && high <= most, high < least || most < low) {
            (true, _) => Seen::Yes,
            (_, true) => Seen::No,
            _ => Seen::Open,
        }
    }

    /// The verdict in words; staying below a bound does not confirm the power law.
    pub fn verdict(&self) -> &'static str {
        match (self.sense, self.seen()) {
            (Sense::Equal, Seen::Yes) => "seen",
            (Sense::AtMost, Seen::Yes) => "within",
            (Sense::Equal, Seen::No) => "not seen",
            (Sense::AtMost, Seen::No) => "exceeded",
            (_, Seen::Open) => "cannot be told",
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

/// A claim before it is measured.
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
        // A seed on which a run diverges has no rate; it is counted, not hidden.
        let one = |seed: &u64| match (self.measure)(lab, *seed) {
            Err(error) if error.id == lab::DIVERGED => Ok(Vec::new()),
            measured => measured,
        };
        let points: Vec<_> =
            parallel::map(lab.pool, seeds, one).into_iter().collect::<Result<_>>()?;
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

/// Measures all claims, or those in `only`, on seeds 1 to `seeds`; calls `report` with each result.
pub fn measure(
    lab: &Lab,
    seeds: u64,
    only: &[String],
    report: &mut dyn FnMut(&Rate),
) -> Result<Vec<Rate>> {
    let seeds: Vec<u64> = (1..=seeds).collect();
    let wanted = |claim: &&Claim| only.is_empty() || only.iter().any(|name| name == claim.id);
    let mut rates = Vec::new();
    for claim in claims::CLAIMS.iter().filter(wanted) {
        let rate = claim.judge(lab, &seeds)?;
        report(&rate);
        rates.push(rate);
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(points: Vec<Vec<(f64, f64)>>, diverged: usize) -> Rate {
        let slopes: Vec<f64> = points.iter().filter_map(|points| slope(points)).collect();
        Rate {
            id: "id",
            claim: "claim",
            place: "",
            x: "K",
            y: "y",
            predicted: -1.0,
            sense: Sense::Equal,
            settings: "",
            remark: "",
            fitted: interval(&slopes),
            points,
            diverged,
            slopes,
        }
    }

    #[test]
    fn survivors_decide_nothing() {
        let law = || vec![(1.0, 1.0), (10.0, 0.1), (100.0, 0.01)];
        let whole = rate(vec![law(), law(), law()], 0);
        assert_eq!((whole.lost(), whole.seen()), (0, Seen::Yes));
        let left = rate(vec![law(), law(), Vec::new()], 1);
        assert_eq!((left.lost(), left.seen(), left.verdict()), (1, Seen::Open, "cannot be told"));
        // A mean that is zero has no logarithm, and hides a seed as a divergence does.
        let zero = rate(vec![law(), law(), vec![(1.0, 1.0), (10.0, 0.0)]], 0);
        assert_eq!((zero.lost(), zero.seen()), (1, Seen::Open));
        let page = page(&[left], 3, &|_| None);
        assert!(page.contains("on the seeds that are left: 1 of 3 were lost"), "{page}");
        assert!(page.contains("1 of 3 seeds have no exponent"), "{page}");
    }
}
