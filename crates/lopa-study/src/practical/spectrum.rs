//! Extreme eigenvalues of a symmetric operator given by its products.

use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{axpy, dot, update};
use lopa::network::Tridiagonal;

/// The smallest and the largest eigenvalue found by `steps` steps of Lanczos' method.
///
/// Every new vector is orthogonalised against all previous ones: with as many steps as dimensions
/// the eigenvalues are exact up to rounding; with fewer they lie inside the spectrum.
pub fn extreme_eigenvalues(
    dimension: usize,
    steps: usize,
    mut product: impl FnMut(&[f64], &mut [f64]),
) -> (f64, f64) {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let mut next = start(dimension);
    let mut t = Tridiagonal::default();
    let mut size = 0.0f64;
    for _ in 0..steps.min(dimension) {
        let norm = dot(&next, &next).sqrt();
        if norm <= 1e-13 * size {
            break;
        }
        if !basis.is_empty() {
            t.beta.push(norm);
        }
        update(&mut next, [], |v, []| v / norm);
        basis.push(next.clone());
        product(&basis[basis.len() - 1], &mut next);
        let alpha = dot(&next, &basis[basis.len() - 1]);
        size = size.max(alpha.abs()).max(dot(&next, &next).sqrt());
        t.alpha.push(alpha);
        // Gram-Schmidt, twice: the second pass removes what rounding left.
        for _ in 0..2 {
            for previous in &basis {
                let share = dot(&next, previous);
                axpy(-share, previous, &mut next);
            }
        }
    }
    t.ends()
}

/// ‖J‖ of J: Rⁿ → R^p, by the eigenvalues of JᵀJ.
pub fn norm(dimension: usize, steps: usize, mut gram: impl FnMut(&[f64], &mut [f64])) -> f64 {
    extreme_eigenvalues(dimension, steps, |v, out| gram(v, out)).1.max(0.0).sqrt()
}

/// A fixed vector, unlikely to be orthogonal to an eigenvector.
fn start(dimension: usize) -> Vec<f64> {
    let mut stream = Stream::new(1, Purpose::Problem, 0);
    (0..dimension).map(|_| stream.between(-1.0, 1.0)).collect()
}
