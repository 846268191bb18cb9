//! Many tests at once.

/// Holm's correction: adjusts p-values so that rejecting those up to α makes any false rejection at
/// most α likely.
pub fn holm(p: &[f64]) -> Vec<f64> {
    holm_of(p, p.len())
}

/// The same where at most `most` of the hypotheses can be true at once (Shaffer): of two that exclude each other, one.
pub fn holm_of(p: &[f64], most: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 0.0f64;
    for (rank, &test) in order.iter().enumerate() {
        // A test is rejected only after every one with a smaller p.
        least = least.max((p.len() - rank).min(most) as f64 * p[test]).min(1.0);
        adjusted[test] = least;
    }
    adjusted
}
