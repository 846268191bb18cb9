//! Means, deviations and paired comparisons over seeds, checked against scipy and statsmodels.

mod holm;
mod paired;

pub use holm::{holm, holm_of};
pub use paired::{Interval, Paired, interval};

/// Mean, spread and range of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation (n − 1); a single number has none.
    pub sd: Option<f64>,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Summary {
    /// Summarises the finite numbers, if there are any.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let numbers: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
        let low = numbers.iter().copied().reduce(f64::min)?;
        let high = numbers.iter().copied().reduce(f64::max)?;
        let (mean, sd) = spread(&numbers);
        Some(Summary { mean, sd: (numbers.len() > 1).then_some(sd), low, high })
    }

    /// Mean and spread to a thousandth, as shares are written.
    pub fn to_thousandths(&self) -> String {
        match self.sd {
            Some(sd) => format!("{:.3} ± {sd:.3}", self.mean),
            None => format!("{:.3}", self.mean),
        }
    }
}

/// Mean and standard deviation (n − 1) of one number or more.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Rounding must not push the mean of equal numbers off their value.
    let mean = match values.iter().sum::<f64>() / n {
        mean if mean < low => low,
        mean if mean > high => high,
        mean => mean,
    };
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_numbers() {
        let summary = Summary::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0, f64::NAN]).unwrap();
        assert_eq!((summary.mean, summary.low, summary.high), (5.0, 2.0, 9.0));
        assert!((summary.sd.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
        assert_eq!(Summary::of([3.0]).unwrap().sd, None);
        assert_eq!(Summary::of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(spread(&[0.1; 3]), (0.1, 0.0), "their sum over 3 is more");
        assert!(spread(&[1.0, f64::NAN]).0.is_nan());
    }

    proptest! {
        #[test]
        fn the_mean_lies_between(numbers in prop::collection::vec(-1e9f64..1e9, 1..9)) {
            let summary = Summary::of(numbers).unwrap();
            prop_assert!(summary.low <= summary.mean && summary.mean <= summary.high);
            prop_assert!(summary.sd.is_none_or(|sd| sd >= 0.0));
        }
    }
}
