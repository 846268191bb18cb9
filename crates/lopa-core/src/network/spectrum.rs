//! The extreme eigenvalues of a sparse symmetric matrix, by the Lanczos method.

use crate::math::random::{Purpose, Stream};
use crate::math::real::{axpy, dot, update};

/// Changes below this, relative to the matrix, count as converged.
const TOLERANCE: f64 = 1e-13;

/// Steps before the first test of convergence; small matrices need fewer.
const FIRST_TEST: usize = 200;

/// The work allowed for a spectrum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Matrices of up to this many rows are iterated until they converge.
    pub exact: usize,
    /// The work allowed for larger ones.
    pub products: usize,
}

impl Effort {
    /// A hundred iterations or more of a million rows with a few entries each.
    pub const USUAL: Effort = Effort { exact: 10_000, products: 1_500_000_000 };
}

/// The smallest and the largest eigenvalue on the vectors orthogonal to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ends {
    /// The smallest; never below the true one, up to rounding.
    pub low: f64,
    /// The largest; never above the true one, up to rounding.
    pub high: f64,
    /// Whether they have converged; if not, they are inner estimates.
    pub converged: bool,
}

/// Iterations after which nothing more can be found.
pub(super) fn enough(m: usize) -> usize {
    4 * m + FIRST_TEST
}

/// The number of iterations for a matrix.
fn most(rows: &[Vec<(usize, f64)>], effort: Effort) -> usize {
    let m = rows.len();
    if m <= effort.exact {
        return enough(m);
    }
    // Beside the product with the matrix, an iteration passes over its vectors a few times.
    let each = rows.iter().map(Vec::len).sum::<usize>() + 5 * m;
    enough(m).min((effort.products / each).max(FIRST_TEST / 2))
}

/// The smallest and the largest eigenvalue on the vectors orthogonal to 1, which must be an
/// eigenvector itself.
///
/// The three-term recurrence is used without reorthogonalisation: rounding then yields copies of
/// eigenvalues already found, which do not move the ends. Memory is a few vectors. It iterates
/// until the ends change by less than 1e-13 of the matrix, at most 4m + 200 times; for rings and
/// paths of ten thousand nodes the error is 1e-15. An end that has not converged is too far inside.
/// Large matrices get a bounded number of products. The start and the order of sums are always the
/// same.
///
/// # Panics
/// If there are fewer than two rows: nothing is orthogonal to 1 then.
pub(super) fn ends(rows: &[Vec<(usize, f64)>], effort: Effort) -> Ends {
    let size = rows.iter().map(|row| row.iter().map(|(_, w)| w.abs()).sum()).fold(0.0, f64::max);
    ends_of(rows.len(), size, most(rows, effort), |v, next| {
        for (next, row) in next.iter_mut().zip(rows) {
            *next = row.iter().map(|&(j, w)| w * v[j]).sum();
        }
    })
}

/// The same for a symmetric m × m matrix of about this size, given by its products with vectors;
/// takes at most `most` products.
pub(super) fn ends_of(
    m: usize,
    size: f64,
    most: usize,
    mut product: impl FnMut(&[f64], &mut [f64]),
) -> Ends {
    assert!(m > 1, "one node has no vector orthogonal to 1");
    let mut t = Tridiagonal::default();
    let (mut last, mut v, mut next) = (vec![0.0; m], start(m), vec![0.0; m]);
    let (mut next_test, mut found) = (FIRST_TEST.min(m + 10), (f64::NAN, f64::NAN));
    loop {
        // next = W v_k − β_{k−1} v_{k−1} − α_k v_k = β_k v_{k+1}
        product(&v, &mut next);
        axpy(-t.beta.last().copied().unwrap_or(0.0), &last, &mut next);
        let alpha = dot(&next, &v);
        axpy(-alpha, &v, &mut next);
        centre(&mut next);
        t.alpha.push(alpha);
        let beta = dot(&next, &next).sqrt();
        let whole = beta <= TOLERANCE * size || t.alpha.len() == enough(m);
        let done = whole || t.alpha.len() == most;
        if done || t.alpha.len() == next_test {
            let (low, high) = t.ends();
            let moved = (low - found.0).abs().max((high - found.1).abs());
            if done || moved <= TOLERANCE * size {
                return Ends { low, high, converged: whole || moved <= TOLERANCE * size };
            }
            (next_test, found) = (next_test + next_test / 2, (low, high));
        }
        t.beta.push(beta);
        update(&mut next, [], |w, []| w / beta);
        (last, v, next) = (v, next, last);
    }
}

/// A fixed unit vector, orthogonal to 1 and most likely to no eigenvector.
pub(super) fn start(m: usize) -> Vec<f64> {
    let mut stream = Stream::new(0, Purpose::Graph, 0);
    let mut v: Vec<f64> = (0..m).map(|_| stream.between(-1.0, 1.0)).collect();
    centre(&mut v);
    let norm = dot(&v, &v).sqrt();
    update(&mut v, [], |v, []| v / norm);
    v
}

/// Makes it orthogonal to 1.
pub(super) fn centre(v: &mut [f64]) {
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    update(v, [], |v, []| v - mean);
}

/// A symmetric tridiagonal matrix.
#[derive(Default)]
pub struct Tridiagonal {
    /// The diagonal.
    pub alpha: Vec<f64>,
    /// The off-diagonal.
    pub beta: Vec<f64>,
}

impl Tridiagonal {
    /// The smallest and the largest eigenvalue, by bisection.
    pub fn ends(&self) -> (f64, f64) {
        let beside = |i: usize| self.beta.get(i).copied().unwrap_or(0.0);
        let radius = |i: usize| beside(i) + if i > 0 { beside(i - 1) } else { 0.0 };
        let reach = (0..self.alpha.len()).map(|i| self.alpha[i].abs() + radius(i));
        let reach = reach.fold(f64::MIN_POSITIVE, f64::max);
        let first = |wanted: usize| {
            let (mut low, mut high) = (-reach, reach);
            // 60 halvings leave less than the rounding error.
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                match self.below(middle) >= wanted {
                    true => high = middle,
                    false => low = middle,
                }
            }
            0.5 * (low + high)
        };
        (first(1), first(self.alpha.len()))
    }

    /// The number of eigenvalues below x (Sturm's count of negative pivots of T − x I).
    fn below(&self, x: f64) -> usize {
        let (mut pivot, mut count) = (1.0, 0);
        for (i, alpha) in self.alpha.iter().enumerate() {
            let beta = if i > 0 { self.beta[i - 1] } else { 0.0 };
            pivot = alpha - x - beta * beta / pivot;
            if pivot == 0.0 {
                pivot = f64::MIN_POSITIVE;
            }
            count += usize::from(pivot < 0.0);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::portable::cos;
    use std::f64::consts::PI;

    fn sparse(m: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<Vec<(usize, f64)>> {
        let row = |i| (0..m).map(|j| (j, entry(i, j))).filter(|e| e.1 != 0.0).collect();
        (0..m).map(row).collect()
    }

    /// The Laplacian of a path has the eigenvalues 2 − 2 cos(π k / m).
    #[test]
    fn laplacian_of_a_path() {
        for m in [2, 3, 10, 77, 200] {
            let path = sparse(m, |i, j| match i.abs_diff(j) {
                0 => f64::from(u8::from(i > 0) + u8::from(i + 1 < m)),
                1 => -1.0,
                _ => 0.0,
            });
            let Ends { low, high, converged } = ends(&path, Effort::USUAL);
            assert!(converged);
            let eigenvalue = |k: usize| 2.0 - 2.0 * cos(PI * k as f64 / m as f64);
            assert!((low - eigenvalue(1)).abs() < 1e-12, "{m}: {low}");
            assert!((high - eigenvalue(m - 1)).abs() < 1e-12, "{m}: {high}");
        }
    }

    #[test]
    fn a_multiple_of_one_has_one_eigenvalue() {
        let threes = sparse(5, |i, j| if i == j { 3.0 } else { 0.0 });
        let Ends { low, high, .. } = ends(&threes, Effort::USUAL);
        assert!((low - 3.0).abs() < 1e-14 && (high - 3.0).abs() < 1e-14);
        let none = ends(&vec![Vec::new(); 4], Effort::USUAL);
        assert_eq!(none, Ends { low: 0.0, high: 0.0, converged: true });
    }

    /// A ring of m nodes with a third each has the eigenvalues (1 + 2 cos(2π k / m)) / 3.
    #[test]
    fn what_has_not_converged_is_an_estimate_from_inside() {
        let m = 20_000;
        let effort = Effort { exact: 10_000, products: 30_000_000 };
        let row =
            |i: usize| vec![(i, 1.0 / 3.0), ((i + 1) % m, 1.0 / 3.0), ((i + m - 1) % m, 1.0 / 3.0)];
        let ring: Vec<_> = (0..m).map(row).collect();
        let found = ends(&ring, effort);
        let high = (1.0 + 2.0 * cos(2.0 * PI / m as f64)) / 3.0;
        assert!(!found.converged);
        assert!(found.high < high && high - found.high < 1e-3, "{} {high}", found.high);
        assert!(found.low > -1.0 / 3.0 - 1e-12 && found.low < -0.333, "{}", found.low);
        assert_eq!(ends(&ring, effort), found, "the same bits again");
    }
}
