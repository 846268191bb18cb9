//! Features as stored: pixels stay bytes, an eighth of the memory, until numbers are requested.

use std::sync::{Arc, OnceLock};

use super::packed::{Bytes, Packed};
use super::{Features, Scaling, Table};
use lopa_kernels::Blocks;

/// The features of a data set.
#[derive(Debug)]
pub enum Stored {
    /// Any numbers.
    Numbers(Arc<Features<f64>>),
    /// Bytes with a single scale factor.
    Bytes {
        /// The bytes.
        bytes: Bytes<f64>,
        /// Whether products skip zeros; all shifts are then zero.
        sparse: bool,
        /// The same as numbers, once requested.
        numbers: OnceLock<Arc<Features<f64>>>,
    },
}

impl Stored {
    /// Some rows of a table, scaled.
    pub fn take(table: &Table, rows: &[u32], scaling: &Scaling, sparse: bool) -> Stored {
        let plain = |bytes: &Bytes<f64>| bytes.shift.iter().all(|&shift| shift == 0.0);
        match table.bytes(rows, scaling).filter(|bytes| !sparse || plain(bytes)) {
            Some(bytes) => Stored::Bytes { bytes, sparse, numbers: OnceLock::new() },
            None => Stored::Numbers(Arc::new(table.take(rows, scaling, sparse))),
        }
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Stored::Numbers(features) => features.cols(),
            Stored::Bytes { bytes, .. } => bytes.cols(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Stored::Numbers(features) => features.rows(),
            Stored::Bytes { bytes, .. } => bytes.rows(),
        }
    }

    /// The features as numbers.
    pub fn numbers(&self) -> &Arc<Features<f64>> {
        match self {
            Stored::Numbers(features) => features,
            Stored::Bytes { bytes, sparse, numbers } => {
                numbers.get_or_init(|| Arc::new(bytes.numbers(*sparse)))
            }
        }
    }

    /// Calls `f(column, value)` for the stored entries of a row.
    pub fn each(&self, row: usize, mut f: impl FnMut(usize, f64)) {
        match self {
            Stored::Numbers(features) => features.each(row, f),
            Stored::Bytes { bytes: Bytes { bytes, unit, shift }, sparse, .. } => {
                let row = &bytes[row * shift.len()..(row + 1) * shift.len()];
                for (j, (&byte, shift)) in row.iter().zip(shift).enumerate() {
                    if byte != 0 || !sparse {
                        f(j, (f64::from(byte) - shift) * unit);
                    }
                }
            }
        }
    }

    /// Some rows, in the given order.
    pub fn select(&self, rows: &[u32]) -> Stored {
        match self {
            Stored::Numbers(features) => Stored::Numbers(Arc::new(features.select(rows))),
            Stored::Bytes { bytes, sparse, .. } => {
                let (bytes, numbers) = (bytes.select(rows), OnceLock::new());
                Stored::Bytes { bytes, sparse: *sparse, numbers }
            }
        }
    }

    /// The features in the form used for products.
    pub fn packed(&self) -> Packed<f64> {
        let numbers = || Packed::new(self.numbers());
        match self {
            Stored::Numbers(_) => numbers(),
            Stored::Bytes { bytes, sparse: false, .. } => Packed::Bytes(bytes.clone()),
            Stored::Bytes { bytes, sparse: true, .. } => {
                let blocks = Blocks::of_bytes(&bytes.bytes, bytes.cols(), bytes.unit);
                blocks.map_or_else(numbers, Packed::Blocks)
            }
        }
    }
}

impl Bytes<f64> {
    /// The same as numbers.
    fn numbers(&self, sparse: bool) -> Features<f64> {
        let rows: Vec<u32> = (0..self.rows() as u32).collect();
        let table = Table::Bytes { cols: self.cols(), values: self.bytes.clone() };
        let (shift, factor) = (self.shift.clone(), vec![self.unit; self.cols()]);
        let scaling = Scaling { shift, factor, ..Scaling::default() };
        table.take(&rows, &scaling, sparse)
    }
}
