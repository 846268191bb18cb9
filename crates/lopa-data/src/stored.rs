//! Features as stored: pixels stay bytes, an eighth of the memory, until numbers are requested.

use std::sync::{Arc, OnceLock};

use super::packed::{Bytes, Packed, Standard};
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
    /// Bytes, most of them zero, with a shift and a factor for each column.
    Standard {
        /// The bytes.
        table: Table,
        /// The scaling of each column.
        scaling: Scaling,
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

    /// The same for bytes with a shift and a factor for each column, such that products skip their zeros.
    pub fn standard(table: &Table, rows: &[u32], scaling: &Scaling) -> Option<Stored> {
        let table = table.rows_of_bytes(rows).filter(|_| scaling.shifts_all())?;
        Some(Stored::Standard { table, scaling: scaling.clone(), numbers: OnceLock::new() })
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Stored::Numbers(features) => features.cols(),
            Stored::Bytes { bytes, .. } => bytes.cols(),
            Stored::Standard { table, .. } => table.cols(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Stored::Numbers(features) => features.rows(),
            Stored::Bytes { bytes, .. } => bytes.rows(),
            Stored::Standard { table, .. } => table.rows(),
        }
    }

    /// The features as numbers.
    pub fn numbers(&self) -> &Arc<Features<f64>> {
        match self {
            Stored::Numbers(features) => features,
            Stored::Bytes { bytes, sparse, numbers } => {
                numbers.get_or_init(|| Arc::new(bytes.numbers(*sparse)))
            }
            Stored::Standard { table, scaling, numbers } => numbers.get_or_init(|| {
                let rows: Vec<u32> = (0..table.rows() as u32).collect();
                Arc::new(table.take(&rows, scaling, false))
            }),
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
            Stored::Standard { table, scaling, .. } => {
                table.each(row, |j, byte| f(j, scaling.entry(j, byte)));
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
            Stored::Standard { table, scaling, .. } => {
                let table = table.rows_of_bytes(rows).unwrap_or_else(|| table.clone());
                Stored::Standard { table, scaling: scaling.clone(), numbers: OnceLock::new() }
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
            Stored::Standard { table, scaling: Scaling { shift, factor, .. }, .. } => {
                let Table::Bytes { cols, values } = table else { return numbers() };
                let standard = |raw| {
                    Packed::Standard(Standard { raw, shift: shift.clone(), factor: factor.clone() })
                };
                Blocks::of_bytes(values, *cols, 1.0).map_or_else(numbers, standard)
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
