//! Feature matrices, dense or sparse, and the two products on which every model here is built.

use std::sync::Arc;

use super::packed::Bytes;
use super::{Packed, Stored, Targets};
use crate::math::real::{Real, cast};
use lopa_kernels::{BLOCK, Csr, Level, Pages, Rows};

/// A matrix of features, one row per sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Features<T> {
    /// Every entry stored, row after row.
    Dense {
        /// Number of columns.
        cols: usize,
        /// rows × cols entries.
        values: Vec<T>,
    },
    /// Compressed sparse rows: only nonzero entries are stored and visited.
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

    /// Number of stored entries.
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
                let mut selected = Vec::with_capacity(rows.len() * cols);
                for &row in rows {
                    selected.extend_from_slice(&values[row as usize * cols..][..*cols]);
                }
                Features::Dense { cols: *cols, values: selected }
            }
            Features::Sparse { cols, starts, columns, values } => {
                let mut selected_starts = vec![0];
                let (mut selected_columns, mut selected) = (Vec::new(), Vec::new());
                for &row in rows {
                    let entries = starts[row as usize]..starts[row as usize + 1];
                    selected_columns.extend_from_slice(&columns[entries.clone()]);
                    selected.extend_from_slice(&values[entries]);
                    selected_starts.push(selected.len());
                }
                Features::Sparse {
                    cols: *cols,
                    starts: selected_starts,
                    columns: selected_columns,
                    values: selected,
                }
            }
        }
    }

    /// The columns at the given places, in that order.
    pub fn columns_at(&self, order: &[usize]) -> Features<T> {
        let mut places = vec![None; self.cols()];
        (0u32..).zip(order).for_each(|(new, &old)| places[old] = Some(new));
        match self {
            Features::Dense { cols, values } => {
                let row = |row: &[T]| order.iter().map(|&j| row[j]).collect::<Vec<T>>();
                let values = values.chunks_exact((*cols).max(1)).flat_map(row).collect();
                Features::Dense { cols: order.len(), values }
            }
            Features::Sparse { .. } => {
                let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
                let mut entries = Vec::new();
                for row in 0..self.rows() {
                    entries.clear();
                    self.each(row, |j, value| entries.extend(places[j].map(|j| (j, value))));
                    entries.sort_unstable_by_key(|&(j, _)| j);
                    columns.extend(entries.iter().map(|entry| entry.0));
                    values.extend(entries.iter().map(|entry| entry.1));
                    starts.push(values.len());
                }
                Features::Sparse { cols: order.len(), starts, columns, values }
            }
        }
    }

    /// Stacks matrices with the same columns.
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

    /// Whether some entry has no value.
    pub fn has_missing(&self) -> bool {
        self.values().iter().any(|value| value.is_nan())
    }

    /// The memory that holds its numbers.
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

    /// The compressed rows, if the matrix is sparse.
    fn sparse(&self) -> Option<Csr<'_, T>> {
        match self {
            Features::Dense { .. } => None,
            Features::Sparse { cols, starts, columns, values } => {
                Some(Csr { cols: *cols, starts, columns, values })
            }
        }
    }

    /// Calls `f(index of the first, rows)` for blocks of rows of a dense matrix.
    fn each_block(&self, rows: Rows, mut f: impl FnMut(usize, &[&[T]])) {
        let Features::Dense { cols, values } = self else { unreachable!("rows of a dense matrix") };
        let mut block: [&[T]; BLOCK] = [&[]; BLOCK];
        for (b, numbers) in rows.numbers.chunks(BLOCK).enumerate() {
            let some = Rows { numbers, ..rows };
            for (slot, row) in block.iter_mut().zip(some.iter()) {
                *slot = &values[row * cols..(row + 1) * cols];
            }
            f(b * BLOCK, &block[..some.len()]);
        }
    }
}

/// The features of all samples, as stored.
pub enum Stock<'a> {
    /// Any numbers.
    Numbers(&'a Features<f64>),
    /// Row after row, bytes that represent `unit · (byte − shift)`.
    Bytes {
        /// The bytes.
        bytes: &'a [u8],
        /// The scale factor.
        unit: f64,
        /// The shift of each column.
        shift: &'a [f64],
    },
}

/// Some rows of a shared feature matrix with their labels: a node's data.
#[derive(Debug, Clone)]
pub struct Samples<T> {
    stored: Arc<Stored>,
    packed: Arc<Packed<T>>,
    labels: Arc<[u32]>,
    targets: Option<Arc<Targets>>,
    rows: Arc<[u32]>, // clones share them
}

impl<T: Real> Samples<T> {
    /// Sample j is row `rows[j]` of the features, given as stored and as packed for products.
    ///
    /// # Panics
    /// If a row is out of range.
    pub(super) fn new(
        stored: Arc<Stored>,
        packed: Arc<Packed<T>>,
        (labels, targets): (Arc<[u32]>, Option<Arc<Targets>>),
        rows: Arc<[u32]>,
    ) -> Samples<T> {
        assert!(rows.iter().all(|&row| (row as usize) < stored.rows()), "row out of range");
        Samples { stored, packed, labels, targets, rows }
    }

    /// Number of samples.
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

    /// The numbers to predict of a sample: none where labels are classes.
    pub fn outputs(&self) -> usize {
        self.targets.as_ref().map_or(0, |targets| targets.outputs)
    }

    /// The scaled numbers to predict of sample j; empty where labels are classes.
    pub fn target(&self, j: u32) -> &[f64] {
        let row = self.rows[j as usize] as usize;
        self.targets.as_ref().map_or(&[], |targets| targets.row(row))
    }

    /// The class number of sample j.
    pub fn label(&self, j: u32) -> u32 {
        self.labels[self.rows[j as usize] as usize]
    }

    /// The shared matrix of features, as stored.
    pub fn table(&self) -> Stock<'_> {
        match &*self.stored {
            Stored::Numbers(features) => Stock::Numbers(features),
            Stored::Bytes { bytes: Bytes { bytes, unit, shift }, .. } => {
                Stock::Bytes { bytes, unit: *unit, shift }
            }
            Stored::Standard { .. } => Stock::Numbers(self.stored.numbers()),
        }
    }

    /// Whether both are rows of one matrix.
    pub fn beside(&self, other: &Samples<T>) -> bool {
        Arc::ptr_eq(&self.stored, &other.stored) && Arc::ptr_eq(&self.labels, &other.labels)
    }

    /// The class numbers of all rows of the shared matrix.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The row of each sample in the shared matrix.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Calls `f(column, value)` for the stored entries of sample j, in double precision.
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

    /// [`product`](Self::product) with N matrices.
    pub fn products<const N: usize>(
        &self,
        batch: &[u32],
        weights: [&[T]; N],
        width: usize,
        outs: [&mut [T]; N],
    ) {
        self.packed.products(self.find(batch), weights, width, outs);
    }

    /// [`add_transposed_product`](Self::add_transposed_product) with N matrices.
    pub fn add_transposed_products<const N: usize>(
        &self,
        batch: &[u32],
        residuals: [&[T]; N],
        width: usize,
        outs: [&mut [T]; N],
    ) {
        self.packed.add_transposed_products(self.find(batch), residuals, width, outs);
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
