//! Feature matrices, dense or sparse, and the two products that every model here is made of.

use std::sync::Arc;

use crate::real::{Real, Strided, axpy, cast, dot};

/// A matrix of features, one row a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Features<T> {
    /// Every entry stored, row after row.
    Dense {
        /// Number of columns.
        cols: usize,
        /// rows × cols entries.
        values: Vec<T>,
    },
    /// Compressed sparse rows: only what is not zero is stored, and touched.
    Sparse {
        /// Number of columns.
        cols: usize,
        /// Row r holds the entries `starts[r]..starts[r + 1]`.
        starts: Vec<usize>,
        /// Column of each entry, increasing within a row.
        columns: Vec<u32>,
        /// Value of each entry.
        values: Vec<T>,
    },
}

impl<T: Real> Features<T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Features::Dense { cols: 0, .. } => 0,
            Features::Dense { cols, values } => values.len() / cols,
            Features::Sparse { starts, .. } => starts.len() - 1,
        }
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Features::Dense { cols, .. } | Features::Sparse { cols, .. } => *cols,
        }
    }

    /// How many entries are stored.
    pub fn stored(&self) -> usize {
        match self {
            Features::Dense { values, .. } | Features::Sparse { values, .. } => values.len(),
        }
    }

    /// The same matrix in another precision.
    pub fn cast<U: Real>(&self) -> Features<U> {
        match self {
            Features::Dense { cols, values } => {
                Features::Dense { cols: *cols, values: cast(values) }
            }
            Features::Sparse { cols, starts, columns, values } => Features::Sparse {
                cols: *cols,
                starts: starts.clone(),
                columns: columns.clone(),
                values: cast(values),
            },
        }
    }

    /// Some rows, in the given order.
    pub fn select(&self, rows: &[u32]) -> Features<T> {
        match self {
            Features::Dense { cols, values } => {
                let mut some = Vec::with_capacity(rows.len() * cols);
                gather(values, *cols, rows.iter().map(|&row| row as usize), &mut some);
                Features::Dense { cols: *cols, values: some }
            }
            Features::Sparse { cols, starts, columns, values } => {
                let (mut ends, mut some_columns, mut some) = (vec![0], Vec::new(), Vec::new());
                for &row in rows {
                    let entries = starts[row as usize]..starts[row as usize + 1];
                    some_columns.extend_from_slice(&columns[entries.clone()]);
                    some.extend_from_slice(&values[entries]);
                    ends.push(some.len());
                }
                Features::Sparse { cols: *cols, starts: ends, columns: some_columns, values: some }
            }
        }
    }

    /// Calls `f(column, value)` for every stored entry of a row.
    pub fn each(&self, row: usize, mut f: impl FnMut(usize, T)) {
        match self {
            Features::Dense { cols, values } => {
                let row = &values[row * cols..(row + 1) * cols];
                row.iter().enumerate().for_each(|(j, &value)| f(j, value));
            }
            Features::Sparse { starts, columns, values, .. } => {
                for e in starts[row]..starts[row + 1] {
                    f(columns[e] as usize, values[e]);
                }
            }
        }
    }

    /// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`: rows × width, for weights cols × width.
    ///
    /// `scratch` is the caller's, so that nothing is allocated once it has grown.
    pub fn product(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        weights: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        let (cols, count) = (self.cols(), rows.len());
        let (weights, out) = (&weights[..cols * width], &mut out[..count * width]);
        match self {
            Features::Dense { values, .. } if width == 1 => {
                for (out, row) in out.iter_mut().zip(rows) {
                    *out = dot(&values[row * cols..(row + 1) * cols], weights);
                }
            }
            Features::Dense { values, .. } => {
                let mut rows = rows;
                for out in out.chunks_mut(BLOCK * width) {
                    let count = out.len() / width;
                    gather(values, cols, rows.by_ref().take(count), scratch);
                    let (a, b) = (Strided(scratch, cols, 1), Strided(weights, width, 1));
                    T::gemm([count, cols, width], T::one(), a, b, T::zero(), out);
                }
            }
            Features::Sparse { .. } => {
                out.fill(T::zero());
                for (out, row) in out.chunks_exact_mut(width).zip(rows) {
                    self.each(row, |q, a| axpy(a, &weights[q * width..(q + 1) * width], out));
                }
            }
        }
    }

    /// `out[q, :] += Σ_r a[row_r, q] residual[r, :]`: cols × width, for residuals rows × width.
    pub fn add_transposed_product(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        residual: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        let (cols, count) = (self.cols(), rows.len());
        let (residual, out) = (&residual[..count * width], &mut out[..cols * width]);
        match self {
            Features::Dense { values, .. } if width == 1 => {
                for (&residual, row) in residual.iter().zip(rows) {
                    axpy(residual, &values[row * cols..(row + 1) * cols], out);
                }
            }
            Features::Dense { values, .. } => {
                let mut rows = rows;
                for residual in residual.chunks(BLOCK * width) {
                    let count = residual.len() / width;
                    gather(values, cols, rows.by_ref().take(count), scratch);
                    let (a, b) = (Strided(scratch, 1, cols), Strided(residual, width, 1));
                    T::gemm([cols, count, width], T::one(), a, b, T::one(), out);
                }
            }
            Features::Sparse { .. } => {
                for (residual, row) in residual.chunks_exact(width).zip(rows) {
                    self.each(row, |q, a| axpy(a, residual, &mut out[q * width..(q + 1) * width]));
                }
            }
        }
    }
}

/// Dense rows are gathered this many at a time, so that a full batch needs no second copy of the
/// data and a block stays in the cache.
const BLOCK: usize = 256;

fn gather<T: Real>(
    values: &[T],
    cols: usize,
    rows: impl Iterator<Item = usize>,
    into: &mut Vec<T>,
) {
    into.clear();
    rows.for_each(|row| into.extend_from_slice(&values[row * cols..(row + 1) * cols]));
}

/// Some rows of a shared feature matrix with their labels: a node's data.
#[derive(Debug, Clone)]
pub struct Samples<T> {
    features: Arc<Features<T>>,
    labels: Arc<[u32]>,
    rows: Vec<u32>,
}

impl<T: Real> Samples<T> {
    /// Sample j is row `rows[j]`.
    ///
    /// # Panics
    /// If a row is not there.
    pub fn new(features: Arc<Features<T>>, labels: Arc<[u32]>, rows: Vec<u32>) -> Samples<T> {
        assert!(rows.iter().all(|&row| (row as usize) < features.rows()), "row out of range");
        Samples { features, labels, rows }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of features.
    pub fn cols(&self) -> usize {
        self.features.cols()
    }

    /// The class number of sample j.
    pub fn label(&self, j: u32) -> u32 {
        self.labels[self.rows[j as usize] as usize]
    }

    /// The shared matrix.
    pub fn features(&self) -> &Features<T> {
        &self.features
    }

    /// The rows of the shared matrix, by sample number.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// [`Features::product`] for the samples of a batch.
    pub fn product(
        &self,
        batch: &[u32],
        weights: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        self.features.product(self.find(batch), weights, width, out, scratch);
    }

    /// [`Features::add_transposed_product`] for the samples of a batch.
    pub fn add_transposed_product(
        &self,
        batch: &[u32],
        residual: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        self.features.add_transposed_product(self.find(batch), residual, width, out, scratch);
    }

    fn find(&self, batch: &[u32]) -> impl ExactSizeIterator<Item = usize> + Clone {
        batch.iter().map(|&j| self.rows[j as usize] as usize)
    }
}
