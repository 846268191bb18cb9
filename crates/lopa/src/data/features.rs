//! Feature matrices, dense or sparse, and the two products that every model here is made of.

use std::sync::Arc;

use super::{Packed, Stored};
use crate::math::real::{Real, cast};
use lopa_kernels::{BLOCK, Csr, Level, Pages, Rows};

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
                for &row in rows {
                    some.extend_from_slice(&values[row as usize * cols..][..*cols]);
                }
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

    /// The rows of matrices that have the same columns, one matrix after the other.
    pub fn stacked(parts: &[&Features<T>]) -> Features<T> {
        let cols = parts.first().map_or(0, |part| part.cols());
        if parts.iter().all(|part| matches!(part, Features::Dense { .. })) {
            let values = parts.iter().flat_map(|part| part.values()).copied().collect();
            return Features::Dense { cols, values };
        }
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for part in parts {
            for row in 0..part.rows() {
                part.each(row, |j, value| {
                    columns.push(j as u32);
                    values.push(value);
                });
                starts.push(values.len());
            }
        }
        Features::Sparse { cols, starts, columns, values }
    }

    /// Where its numbers lie.
    pub(super) fn pages(&self) -> Pages {
        let pages = Pages::default().with(self.values());
        match self {
            Features::Dense { .. } => pages,
            Features::Sparse { starts, columns, .. } => pages.with(starts).with(columns),
        }
    }

    fn values(&self) -> &[T] {
        match self {
            Features::Dense { values, .. } | Features::Sparse { values, .. } => values,
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
    pub fn product(&self, rows: Rows, weights: &[T], width: usize, out: &mut [T]) {
        let level = Level::best();
        match self.sparse() {
            None => self.each_block(rows, |first, rows| {
                let out = &mut out[first * width..(first + rows.len()) * width];
                match width {
                    1 => level.dense_dots(rows, weights, out),
                    _ => level.dense_product(rows, weights, width, false, out),
                }
            }),
            Some(matrix) => level.sparse_product(matrix, rows, weights, width, out),
        }
    }

    /// `out[q, :] += Σ_r a[row_r, q] residual[r, :]`: cols × width, for residuals rows × width.
    pub fn add_transposed_product(&self, rows: Rows, residual: &[T], width: usize, out: &mut [T]) {
        let level = Level::best();
        match self.sparse() {
            None => self.each_block(rows, |first, rows| {
                let residual = &residual[first * width..(first + rows.len()) * width];
                match width {
                    1 => level.add_dense_sums(rows, residual, out),
                    _ => level.add_dense_transposed(rows, residual, width, out),
                }
            }),
            Some(matrix) => level.add_sparse_transposed(matrix, rows, residual, width, out),
        }
    }

    /// The sparse matrix, if it is one.
    fn sparse(&self) -> Option<Csr<'_, T>> {
        match self {
            Features::Dense { .. } => None,
            Features::Sparse { cols, starts, columns, values } => {
                Some(Csr { cols: *cols, starts, columns, values })
            }
        }
    }

    /// Calls `f(number of the first, rows)` for the rows of a dense matrix, some at a time.
    fn each_block(&self, rows: Rows, mut f: impl FnMut(usize, &[&[T]])) {
        let Features::Dense { cols, values } = self else { unreachable!("rows of a dense matrix") };
        let mut block: [&[T]; BLOCK] = [&[]; BLOCK];
        for (b, numbers) in rows.numbers.chunks(BLOCK).enumerate() {
            let some = Rows { numbers, ..rows };
            for (place, row) in block.iter_mut().zip(some.iter()) {
                *place = &values[row * cols..(row + 1) * cols];
            }
            f(b * BLOCK, &block[..some.len()]);
        }
    }
}

/// Some rows of a shared feature matrix with their labels: a node's data.
#[derive(Debug, Clone)]
pub struct Samples<T> {
    stored: Arc<Stored>,
    packed: Arc<Packed<T>>,
    labels: Arc<[u32]>,
    rows: Vec<u32>,
}

impl<T: Real> Samples<T> {
    /// Sample j is row `rows[j]` of the features, which are also there as they are multiplied.
    ///
    /// # Panics
    /// If a row is not there.
    pub(super) fn new(
        stored: Arc<Stored>,
        packed: Arc<Packed<T>>,
        labels: Arc<[u32]>,
        rows: Vec<u32>,
    ) -> Samples<T> {
        assert!(rows.iter().all(|&row| (row as usize) < stored.rows()), "row out of range");
        Samples { stored, packed, labels, rows }
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
        self.stored.cols()
    }

    /// The class number of sample j.
    pub fn label(&self, j: u32) -> u32 {
        self.labels[self.rows[j as usize] as usize]
    }

    /// The rows of the shared matrix, by sample number.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Calls `f(column, value)` for the entries of sample j that are kept, in double precision.
    pub fn each(&self, j: u32, f: impl FnMut(usize, f64)) {
        self.stored.each(self.rows[j as usize] as usize, f);
    }

    /// The mean over samples of the square of every feature.
    pub fn mean_squares(&self) -> Vec<T> {
        let mut sums = vec![0.0; self.cols()];
        for j in 0..self.len() as u32 {
            self.each(j, |q, value| sums[q] += value * value);
        }
        sums.iter().map(|sum| T::of(sum / self.len() as f64)).collect()
    }

    /// `out[r, :] = Σ_q a[r, q] weights[q, :]` for the samples of a batch.
    pub fn product(&self, batch: &[u32], weights: &[T], width: usize, out: &mut [T]) {
        self.packed.product(self.find(batch), weights, width, out);
    }

    /// `out[q, :] += Σ_r a[r, q] residual[r, :]` for the samples of a batch.
    pub fn add_transposed_product(
        &self,
        batch: &[u32],
        residual: &[T],
        width: usize,
        out: &mut [T],
    ) {
        self.packed.add_transposed_product(self.find(batch), residual, width, out);
    }

    /// [`product`](Self::product) for all samples, in order.
    pub fn whole_product(&self, weights: &[T], width: usize, out: &mut [T]) {
        self.packed.product(self.all(), weights, width, out);
    }

    /// [`add_transposed_product`](Self::add_transposed_product) for all samples, in order.
    pub fn add_whole_transposed_product(&self, residual: &[T], width: usize, out: &mut [T]) {
        self.packed.add_transposed_product(self.all(), residual, width, out);
    }

    fn find<'a>(&'a self, batch: &'a [u32]) -> Rows<'a> {
        Rows { numbers: batch, of: Some(&self.rows) }
    }

    fn all(&self) -> Rows<'_> {
        Rows { numbers: &self.rows, of: None }
    }
}
