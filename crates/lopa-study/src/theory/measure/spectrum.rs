//! The outer eigenvalues of a symmetric operator that is known by its products.

use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{axpy, dot, update};
use lopa::network::Tridiagonal;

/// The smallest and the largest eigenvalue seen in `steps` steps of Lanczos' method.
///
/// Every new vector is made orthogonal to all before it, so that as many steps as the operator has
/// dimensions find every eigenvalue to rounding; fewer give values inside the spectrum.
pub fn ends(
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
        // Gram and Schmidt, twice: the second time takes away what rounding left.
        for _ in 0..2 {
            for before in &basis {
                let share = dot(&next, before);
                axpy(-share, before, &mut next);
            }
        }
    }
    t.ends()
}

/// ‖J‖ of J: Rⁿ → R^p, by the eigenvalues of JᵀJ.
pub fn norm(dimension: usize, steps: usize, mut gram: impl FnMut(&[f64], &mut [f64])) -> f64 {
    ends(dimension, steps, |v, out| gram(v, out)).1.max(0.0).sqrt()
}

/// A fixed vector that no eigenvector is likely to be orthogonal to.
fn start(dimension: usize) -> Vec<f64> {
    let mut stream = Stream::new(1, Purpose::Problem, 0);
    (0..dimension).map(|_| stream.between(-1.0, 1.0)).collect()
}
