//! Random quadratics.

use super::super::linalg::{Cholesky, Matrix, orthonormal, with_spectrum};
use super::{Coefficients, Options};
use crate::math::portable::powf;
use crate::math::random::{Purpose, Stream};

/// Draws that mix a part common to all nodes with a part of the node's own.
struct Draws<'a> {
    common: Stream,
    own: &'a mut Stream,
    heterogeneity: f64,
}

impl Draws<'_> {
    fn number(&mut self) -> f64 {
        self.common.normal() + self.heterogeneity * self.own.normal()
    }

    fn vector(&mut self, length: usize) -> Vec<f64> {
        (0..length).map(|_| self.number()).collect()
    }

    /// Entries of a size that keeps |M x| near |x|.
    fn matrix(&mut self, rows: usize, cols: usize) -> Matrix<f64> {
        let size = 1.0 / (cols as f64).sqrt();
        Matrix::from_fn(rows, cols, |_, _| size * self.number())
    }

    /// Symmetric, with eigenvalues spread evenly in their logarithm from `low` to 1.
    fn positive(&mut self, length: usize, low: f64) -> Matrix<f64> {
        let basis = orthonormal(self.matrix(length, length));
        let last = (length - 1).max(1) as f64;
        let spectrum: Vec<f64> = (0..length).map(|j| powf(low, j as f64 / last)).collect();
        with_spectrum(&basis, &spectrum)
    }
}

/// The coefficients of a node.
pub(super) fn make_node(options: &Options, seed: u64, node: usize) -> Coefficients {
    let &Options { n, p, condition, heterogeneity, .. } = options;
    let common = Stream::new(seed, Purpose::Problem, 0);
    let own = &mut Stream::new(seed, Purpose::Problem, node + 1);
    let mut draws = Draws { common, own, heterogeneity };
    let a = draws.positive(p, 1.0 / condition);
    let factor = Cholesky::new(&a).expect("its eigenvalues are at least 1e-10");
    Coefficients {
        a,
        b: draws.matrix(p, n),
        c: draws.vector(p),
        d: draws.matrix(p, p),
        e: draws.vector(p),
        // Well conditioned: the difficulty is in A.
        r: draws.positive(n, 0.5),
        q: draws.vector(n),
        factor,
    }
}
