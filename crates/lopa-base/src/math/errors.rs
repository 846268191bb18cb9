//! Errors of predicted numbers.
//!
//! ```text
//! R²     1 − Σ (said − true)² / Σ (true − mean)²;  where all true numbers are equal, 1 if all are said, else 0
//! RMSE   √ mean (said − true)²
//! MAE    mean |said − true|
//! ```
//!
//! Of several outputs, each measure is the mean over them.

/// The errors of predictions, in the units of the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// The coefficient of determination.
    pub r2: f64,
    /// The root of the mean squared error.
    pub rmse: f64,
    /// The mean absolute error.
    pub mae: f64,
}

impl Errors {
    /// From rows of true and predicted numbers, with one entry per output; 1 stands for `units[o]` in
    /// output o. `None` without rows.
    pub fn of(truth: &[f64], said: &[f64], units: &[f64]) -> Option<Errors> {
        let outputs = units.len();
        let rows = truth.len().checked_div(outputs).filter(|&rows| rows > 0)?;
        let mut sum = Errors { r2: 0.0, rmse: 0.0, mae: 0.0 };
        for (o, unit) in units.iter().enumerate() {
            let truth = || truth.iter().skip(o).step_by(outputs);
            let off =
                || said.iter().skip(o).step_by(outputs).zip(truth()).map(|(said, is)| said - is);
            let mean = truth().sum::<f64>() / rows as f64;
            let spread: f64 = truth().map(|is| (is - mean) * (is - mean)).sum();
            let square: f64 = off().map(|off| off * off).sum();
            sum.r2 += match spread > 0.0 {
                true => 1.0 - square / spread,
                false => f64::from(square == 0.0),
            };
            sum.rmse += unit * (square / rows as f64).sqrt();
            sum.mae += unit * off().map(f64::abs).sum::<f64>() / rows as f64;
        }
        let count = outputs as f64;
        Some(Errors { r2: sum.r2 / count, rmse: sum.rmse / count, mae: sum.mae / count })
    }

    /// With their names in rows of measurements.
    pub fn named(&self) -> [(&'static str, f64); 3] {
        [("r2", self.r2), ("rmse", self.rmse), ("mae", self.mae)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_worked_out_by_hand() {
        let errors = Errors::of(&[1.0, 2.0, 3.0, 6.0], &[1.0, 3.0, 3.0, 4.0], &[10.0]).unwrap();
        // Squares 0, 1, 0, 4 around a spread of 4 + 1 + 0 + 9.
        assert!((errors.r2 - (1.0 - 5.0 / 14.0)).abs() < 1e-15);
        assert!((errors.rmse - 10.0 * (5.0f64 / 4.0).sqrt()).abs() < 1e-14);
        assert!((errors.mae - 7.5).abs() < 1e-14);
    }

    #[test]
    fn several_outputs_are_averaged_each_in_its_unit() {
        let errors = Errors::of(&[0.0, 5.0, 2.0, 5.0], &[0.0, 5.0, 0.0, 6.0], &[1.0, 2.0]).unwrap();
        // First: off 0 and −2 around a spread of 2. Second: all true numbers are equal.
        assert!((errors.r2 - (-1.0 + 0.0) / 2.0).abs() < 1e-15);
        assert!((errors.mae - (1.0 + 1.0) / 2.0).abs() < 1e-15);
        assert_eq!(Errors::of(&[4.0], &[4.0], &[1.0]).unwrap().r2, 1.0);
        assert_eq!(Errors::of(&[], &[], &[1.0]), None);
    }
}
