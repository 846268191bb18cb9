//! Small dense matrices: products, Cholesky, orthogonal bases.

use crate::math::real::{Real, axpy, cast, dot};

/// A dense matrix, row after row.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    values: Vec<T>,
}

impl<T: Real> Matrix<T> {
    /// Entry (i, j) is `f(i, j)`, called row by row.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> T) -> Matrix<T> {
        let values = (0..rows * cols).map(|at| f(at / cols, at % cols)).collect();
        Matrix { rows, cols, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All entries, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Row i.
    pub fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.cols..(i + 1) * self.cols]
    }

    /// The same matrix in another precision.
    pub fn cast<U: Real>(&self) -> Matrix<U> {
        Matrix { rows: self.rows, cols: self.cols, values: cast(&self.values) }
    }

    /// The matrix, borrowed.
    pub fn view(&self) -> View<'_, T> {
        View { cols: self.cols, values: &self.values }
    }

    /// `out += a M x`.
    pub fn add_product(&self, a: T, x: &[T], out: &mut [T]) {
        self.view().add_product(a, x, out);
    }

    /// `out += a Mᵀ x`.
    pub fn add_transposed_product(&self, a: T, x: &[T], out: &mut [T]) {
        self.view().add_transposed_product(a, x, out);
    }

    /// M x.
    pub fn times(&self, x: &[T]) -> Vec<T> {
        let mut out = vec![T::zero(); self.rows];
        self.add_product(T::one(), x, &mut out);
        out
    }

    /// Mᵀ x.
    pub fn transposed_times(&self, x: &[T]) -> Vec<T> {
        let mut out = vec![T::zero(); self.cols];
        self.add_transposed_product(T::one(), x, &mut out);
        out
    }

    /// Mᵀ.
    pub fn transposed(&self) -> Matrix<T> {
        Matrix::from_fn(self.cols, self.rows, |i, j| self.row(j)[i])
    }

    /// ½ xᵀ M x.
    pub fn half_square(&self, x: &[T]) -> T {
        self.view().half_square(x)
    }
}

/// A borrowed dense matrix, row after row.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, T> {
    /// Number of columns.
    pub cols: usize,
    /// All entries, row after row.
    pub values: &'a [T],
}

impl<'a, T: Real> View<'a, T> {
    /// Row i.
    pub fn row(self, i: usize) -> &'a [T] {
        &self.values[i * self.cols..(i + 1) * self.cols]
    }

    /// `out += a M x`.
    pub fn add_product(self, a: T, x: &[T], out: &mut [T]) {
        assert_eq!(out.len() * self.cols, self.values.len(), "one entry a row");
        out.iter_mut().enumerate().for_each(|(i, out)| *out += a * dot(self.row(i), x));
    }

    /// `out += a Mᵀ x`.
    pub fn add_transposed_product(self, a: T, x: &[T], out: &mut [T]) {
        assert_eq!(x.len() * self.cols, self.values.len(), "one entry a row");
        x.iter().enumerate().for_each(|(i, &x)| axpy(a * x, self.row(i), out));
    }

    /// ½ xᵀ M x.
    pub fn half_square(self, x: &[T]) -> T {
        let sum: T = x.iter().enumerate().map(|(i, &xi)| xi * dot(self.row(i), x)).sum();
        sum / (T::one() + T::one())
    }
}

/// A = L Lᵀ, for solving with a positive definite A.
#[derive(Debug, Clone)]
pub struct Cholesky(Matrix<f64>);

impl Cholesky {
    /// Factorises; `None` if A is not (numerically) positive definite. Only the lower half is read.
    pub fn new(a: &Matrix<f64>) -> Option<Cholesky> {
        let n = a.rows;
        let mut l = Matrix::from_fn(n, n, |_, _| 0.0);
        for i in 0..n {
            for j in 0..=i {
                let rest = a.row(i)[j] - dot(&l.row(i)[..j], &l.row(j)[..j]);
                l.values[i * n + j] = match i == j {
                    // The comparison also rejects NaN.
                    true if rest > f64::EPSILON * a.row(i)[i].abs() => rest.sqrt(),
                    true => return None,
                    false => rest / l.row(j)[j],
                };
            }
        }
        Some(Cholesky(l))
    }

    /// A⁻¹ b.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let (l, n) = (&self.0, b.len());
        let mut x = b.to_vec();
        for i in 0..n {
            x[i] = (x[i] - dot(&l.row(i)[..i], &x[..i])) / l.row(i)[i];
        }
        for i in (0..n).rev() {
            x[i] /= l.row(i)[i];
            let (head, tail) = x.split_at_mut(i);
            axpy(-tail[0], &l.row(i)[..i], head);
        }
        x
    }
}

/// Makes the rows of a square matrix of full rank orthonormal.
pub fn orthonormal(mut m: Matrix<f64>) -> Matrix<f64> {
    let n = m.cols;
    for i in 0..m.rows {
        let (done, rest) = m.values.split_at_mut(i * n);
        let row = &mut rest[..n];
        // Gram-Schmidt twice: the second pass removes what rounding left.
        for _ in 0..2 {
            for other in done.chunks_exact(n) {
                axpy(-dot(other, row), other, row);
            }
        }
        let length = dot(row, row).sqrt();
        row.iter_mut().for_each(|value| *value /= length);
    }
    m
}

/// Qᵀ diag(spectrum) Q.
pub fn with_spectrum(q: &Matrix<f64>, spectrum: &[f64]) -> Matrix<f64> {
    let columns = q.transposed();
    let scaled =
        Matrix::from_fn(columns.rows, columns.cols, |i, j| columns.row(i)[j] * spectrum[j]);
    // The lower half is mirrored: the products of the two halves may differ in the last bit.
    Matrix::from_fn(q.cols, q.cols, |i, j| dot(scaled.row(i.max(j)), columns.row(i.min(j))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_solves_and_refuses() {
        let a = Matrix::from_fn(3, 3, |i, j| if i == j { 4.0 } else { 1.0 });
        let x = Cholesky::new(&a).unwrap().solve(&a.times(&[1.0, -2.0, 3.0]));
        assert!(x.iter().zip([1.0, -2.0, 3.0]).all(|(x, y)| (x - y).abs() < 1e-14));
        for diagonal in [-1.0, 0.0, 1.0, f64::NAN] {
            let a = Matrix::from_fn(2, 2, |i, j| if i == j { diagonal } else { 1.0 });
            assert!(Cholesky::new(&a).is_none(), "{diagonal} on the diagonal");
        }
    }

    #[test]
    fn a_basis_is_orthonormal_even_when_nearly_dependent() {
        let q = orthonormal(Matrix::from_fn(3, 3, |i, j| {
            1.0 + 1e-6 * ((i + 1) * (j + i)) as f64 + if i == 2 && j == 0 { 1e-6 } else { 0.0 }
        }));
        for i in 0..3 {
            for j in 0..3 {
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((dot(q.row(i), q.row(j)) - expected).abs() < 1e-14);
            }
        }
        let a = with_spectrum(&q, &[1.0, 2.0, 3.0]);
        assert_eq!(a, a.transposed());
        let image = a.times(q.row(1));
        assert!(image.iter().zip(q.row(1)).all(|(image, q)| (image - 2.0 * q).abs() < 1e-14));
    }
}
