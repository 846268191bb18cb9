//! Linear fits of logarithms.

use lopa::math::portable::ln;

/// The slope of log y over log x by least squares; `None` without two different x, or if a
/// logarithm is not finite.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (ln(x), ln(y))).collect();
    if logs.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|p| p.0), mean(|p| p.1));
    let variance: f64 = logs.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let covariance: f64 = logs.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    (variance > 0.0).then(|| covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lopa::math::portable::powf;

    #[test]
    fn the_exponent_of_a_power_law_is_recovered() {
        let law = |x: f64| (x, 3.0 * powf(x, -0.75));
        let fitted = slope(&[law(1.0), law(10.0), law(31.0), law(1000.0)]).unwrap();
        assert!((fitted + 0.75).abs() < 1e-12);
        assert_eq!(slope(&[(2.0, 1.0), (2.0, 3.0)]), None);
        assert_eq!(slope(&[(1.0, 0.0), (2.0, 3.0)]), None);
    }
}
