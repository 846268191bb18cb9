//! Features in the form that makes products fastest.

use std::sync::Arc;

use super::Features;
use crate::math::real::{Real, cast};
use lopa_kernels::{Blocks, Cells, Columns, Csr, Level, Pages, Pixels, Rows};

/// Features in one precision, in the form that suits them.
#[derive(Debug)]
pub enum Packed<T> {
    /// Dense numbers, and sparse ones too scattered for the other forms.
    Plain(Arc<Features<T>>),
    /// Sparse, with few distinct values in adjacent columns.
    Blocks(Blocks<T>),
    /// Sparse, with any values, in rows that are not too empty.
    Cells(Cells<T>),
    /// Dense bytes.
    Bytes(Bytes<T>),
    /// Bytes, most of them zero, with a shift and a factor for each column.
    Standard(Standard<T>),
}

/// Rows of bytes that represent `factor[j] · (byte − shift[j])`. Products skip the zeros among the bytes: the shift is
/// multiplied once, not for each row.
#[derive(Debug, Clone)]
pub struct Standard<T> {
    /// The bytes.
    pub raw: Blocks<T>,
    /// Of each column.
    pub shift: Vec<T>,
    /// Of each column.
    pub factor: Vec<T>,
}

/// Rows of bytes that represent `unit · (byte − shift)`.
#[derive(Debug, Clone)]
pub struct Bytes<T> {
    /// Row after row.
    pub bytes: Arc<Vec<u8>>,
    /// The scale factor.
    pub unit: T,
    /// The shift of each column.
    pub shift: Vec<T>,
}

impl<T: Real> Bytes<T> {
    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.shift.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.bytes.len().checked_div(self.cols()).unwrap_or(0)
    }

    /// Some rows, in the given order.
    pub fn select(&self, rows: &[u32]) -> Bytes<T> {
        let mut bytes = Vec::with_capacity(rows.len() * self.cols());
        let row = |row: u32| &self.bytes[row as usize * self.cols()..][..self.cols()];
        rows.iter().for_each(|&number| bytes.extend_from_slice(row(number)));
        let bytes = Arc::new(bytes);
        Bytes { bytes, unit: self.unit, shift: self.shift.clone() }
    }

    fn pixels(&self) -> Pixels<'_, T> {
        Pixels { bytes: &self.bytes, unit: self.unit, shift: &self.shift }
    }
}

impl Packed<f64> {
    /// Packs numbers.
    pub fn new(features: &Arc<Features<f64>>) -> Packed<f64> {
        let Features::Sparse { cols, starts, columns, values } = &**features else {
            return Packed::Plain(features.clone());
        };
        let matrix = Csr { cols: *cols, starts, columns, values };
        let blocks = || Blocks::new(matrix).map(Packed::Blocks);
        let cells = || Cells::new(matrix).map(Packed::Cells);
        blocks().or_else(cells).unwrap_or_else(|| Packed::Plain(features.clone()))
    }
}

impl<T: Real> Packed<T> {
    /// Requests large pages, which speed up access to random rows.
    pub fn settled(self) -> Packed<T> {
        match &self {
            Packed::Plain(features) => features.pages(),
            Packed::Blocks(blocks) => blocks.pages(),
            Packed::Cells(cells) => cells.pages(),
            Packed::Bytes(bytes) => Pages::default().with(bytes.bytes.as_slice()),
            Packed::Standard(Standard { raw, .. }) => raw.pages(),
        }
        .settle();
        self
    }

    /// Some rows, in the given order and the same form: the form affects the last bits of results.
    pub fn select(&self, rows: &[u32]) -> Packed<T> {
        match self {
            Packed::Plain(features) => Packed::Plain(Arc::new(features.select(rows))),
            Packed::Blocks(blocks) => Packed::Blocks(blocks.select(rows)),
            Packed::Cells(cells) => Packed::Cells(cells.select(rows)),
            Packed::Bytes(bytes) => Packed::Bytes(bytes.select(rows)),
            Packed::Standard(standard) => {
                Packed::Standard(Standard { raw: standard.raw.select(rows), ..standard.clone() })
            }
        }
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> Packed<U> {
        let of = |value: T| U::of(value.to_f64());
        match self {
            Packed::Plain(features) => Packed::Plain(Arc::new(features.cast())),
            Packed::Blocks(blocks) => Packed::Blocks(blocks.cast(of)),
            Packed::Cells(cells) => Packed::Cells(cells.cast(of)),
            Packed::Bytes(Bytes { bytes, unit, shift }) => {
                Packed::Bytes(Bytes { bytes: bytes.clone(), unit: of(*unit), shift: cast(shift) })
            }
            Packed::Standard(Standard { raw, shift, factor }) => Packed::Standard(Standard {
                raw: raw.cast(of),
                shift: cast(shift),
                factor: cast(factor),
            }),
        }
    }

    /// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`: rows × width, for weights cols × width.
    pub fn product(&self, rows: Rows, weights: &[T], width: usize, out: &mut [T]) {
        let level = Level::best();
        match self {
            Packed::Plain(features) => features.product(rows, weights, width, out),
            Packed::Blocks(blocks) if width == 1 && blocks.has_unit() => {
                level.block_dots(blocks, rows, weights, out);
            }
            Packed::Blocks(_) | Packed::Standard(_) => self.products(rows, [weights], width, [out]),
            Packed::Cells(cells) => level.cell_product(cells, rows, weights, width, out),
            Packed::Bytes(bytes) => {
                level.pixel_product(&bytes.pixels(), rows, weights, width, out);
            }
        }
    }

    /// `out[q, :] += Σ_r a[row_r, q] residual[r, :]`: cols × width, for residuals rows × width.
    pub fn add_transposed_product(&self, rows: Rows, residual: &[T], width: usize, out: &mut [T]) {
        let level = Level::best();
        match self {
            Packed::Plain(features) => features.add_transposed_product(rows, residual, width, out),
            Packed::Blocks(blocks) if width == 1 && blocks.has_unit() => {
                level.add_block_sums(blocks, rows, residual, out);
            }
            Packed::Blocks(_) | Packed::Standard(_) => {
                self.add_transposed_products(rows, [residual], width, [out]);
            }
            Packed::Cells(cells) => level.add_cell_transposed(cells, rows, residual, width, out),
            Packed::Bytes(bytes) => {
                level.add_pixel_transposed(&bytes.pixels(), rows, residual, width, out);
            }
        }
    }

    /// The blocks that several columns are multiplied with at once, and what their columns stand for.
    fn blocks(&self, width: usize) -> Option<(&Blocks<T>, Option<Columns<'_, T>>)> {
        match self {
            Packed::Blocks(blocks) if width > 1 || !blocks.has_unit() => Some((blocks, None)),
            Packed::Standard(Standard { raw, shift, factor }) => {
                Some((raw, Some(Columns { factors: factor, shifts: shift })))
            }
            _ => None,
        }
    }

    /// [`product`](Packed::product) with N matrices, in one pass over the rows where that is faster.
    pub fn products<const N: usize>(
        &self,
        rows: Rows,
        weights: [&[T]; N],
        width: usize,
        mut outs: [&mut [T]; N],
    ) {
        if let Some((raw, columns)) = self.blocks(width) {
            return Level::best().block_product(raw, rows, columns, &weights, width, &mut outs);
        }
        weights
            .into_iter()
            .zip(outs)
            .for_each(|(weights, out)| self.product(rows, weights, width, out));
    }

    /// [`add_transposed_product`](Packed::add_transposed_product) with N matrices, in one pass over the rows where that
    /// is faster.
    pub fn add_transposed_products<const N: usize>(
        &self,
        rows: Rows,
        residuals: [&[T]; N],
        width: usize,
        mut outs: [&mut [T]; N],
    ) {
        if let Some((raw, columns)) = self.blocks(width) {
            return Level::best()
                .add_block_transposed(raw, rows, columns, &residuals, width, &mut outs);
        }
        residuals
            .into_iter()
            .zip(outs)
            .for_each(|(residual, out)| self.add_transposed_product(rows, residual, width, out));
    }
}
