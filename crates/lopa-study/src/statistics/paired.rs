//! Student's t for paired differences: intervals, tests, and tests of equivalence.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::spread;

/// A mean with its confidence interval, of 95 % by default.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The number of differences.
    pub pairs: usize,
}

impl Interval {
    /// The interval with the sampling error of the rows that two shares are measured on:
    ///
    /// ```text
    /// half width² = (t s/√S)² + z² (p (1 − p) + q (1 − q))/n      z: the 97.5 % point of the normal
    /// ```
    ///
    /// p and q are the means of the shares, n the number of rows. The rows' part is that of two models
    /// that err independently of each other; models that err on the same rows differ by less.
    pub fn with_rows(self, [p, q]: [f64; 2], n: f64) -> Interval {
        let spread = |share: f64| share.clamp(0.0, 1.0) * (1.0 - share.clamp(0.0, 1.0));
        let rows = Z * Z * (spread(p) + spread(q)) / n;
        let half = ((self.high - self.mean).powi(2) + rows).sqrt();
        Interval { low: self.mean - half, high: self.mean + half, ..self }
    }
}

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % interval of paired differences, by Student's t; `None` for fewer than two.
pub fn interval(differences: &[f64]) -> Option<Interval> {
    Paired::of(differences).map(|paired| paired.interval(0.95))
}

/// The statistics of paired differences that Student's t needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    mean: f64,
    /// The standard error of the mean.
    error: f64,
    pairs: usize,
}

impl Paired {
    /// Of two finite differences or more.
    pub fn of(differences: &[f64]) -> Option<Paired> {
        let pairs = differences.len();
        if pairs < 2 || differences.iter().any(|difference| !difference.is_finite()) {
            return None;
        }
        let (mean, sd) = spread(differences);
        Some(Paired { mean, error: sd / (pairs as f64).sqrt(), pairs })
    }

    /// Pools differences from several settings. The setting is the unit: seeds of one setting are
    /// alike, and must not count as if each were a setting of its own.
    pub fn pooled(settings: &[Vec<f64>]) -> Option<Paired> {
        match settings {
            [one] => Paired::of(one),
            many if many.iter().any(Vec::is_empty) => None,
            many => Paired::of(&many.iter().map(|seeds| spread(seeds).0).collect::<Vec<_>>()),
        }
    }

    /// The mean's confidence interval of this level.
    pub fn interval(&self, level: f64) -> Interval {
        let half = self.student().inverse_cdf(0.5 + level / 2.0) * self.error;
        let Paired { mean, pairs, .. } = *self;
        Interval { mean, low: mean - half, high: mean + half, pairs }
    }

    /// The probability of a mean at least as far from zero if there were no difference.
    pub fn p(&self) -> f64 {
        match self.error {
            0.0 if self.mean == 0.0 => 1.0,
            0.0 => 0.0,
            error => 2.0 * self.student().sf((self.mean / error).abs()),
        }
    }

    /// The larger p of two one-sided tests: how likely so small a difference would be, if it were as large as the
    /// margin either way.
    pub fn p_equal(&self, margin: f64) -> f64 {
        let one = |beyond: f64| match self.error {
            0.0 if beyond > 0.0 => 0.0,
            0.0 => 1.0,
            error => self.student().sf(beyond / error),
        };
        one(margin + self.mean).max(one(margin - self.mean))
    }

    fn student(&self) -> StudentsT {
        let freedom = (self.pairs - 1) as f64;
        StudentsT::new(0.0, 1.0, freedom).expect("there are two pairs or more")
    }
}
