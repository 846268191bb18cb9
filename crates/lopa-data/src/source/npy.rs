//! NumPy arrays: a header that is a Python dictionary, then the numbers.
//!
//! Written by hand after a look at `npyz` 0.9 and `ndarray-npy` 0.10. Both allocate the size that a
//! header claims before reading the data (4 GiB for a file of 20 bytes), neither reports where a
//! file is wrong, `npyz` multiplies the sizes of a shape unchecked, and `ndarray-npy` reads no
//! text.

use std::sync::Arc;

use super::names::{Names, SEPARATOR};
use super::npy_header::NpyHeader;
use super::raw::{Part, Raw, Table};
use super::{Where, file};
use crate::Features;
use crate::encoding::numeral;
use crate::error::{Error, Result};
use crate::params;

params! {
    /// Parameters of `npy`.
    pub struct Npy {
        /// The file of the features: one row per sample, further dimensions flattened.
        features: String = String::new(), required;
        /// The file of the labels: numbers or text; a row of numbers for each sample where there are several to
        /// predict.
        labels: String = String::new(), required;
        /// The file of the test features.
        test_features: Option<String> = None;
        /// The file of the test labels.
        test_labels: Option<String> = None;
        /// A file with the features of the rows of the outer function, in place of a share of the training rows.
        validation_features: Option<String> = None;
        /// A file with their labels.
        validation_labels: Option<String> = None;
        /// Columns of the features that are left out, by number from 0.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        drop: Vec<u32> = Vec::new();
    }
}

pub fn read(npy: &Npy, place: &Where) -> Result<Raw> {
    let array = |path: &str| {
        let path = file::find(path, place)?;
        let (name, bytes) = file::read(&path)?;
        Array::read(&name, &bytes)
    };
    let validation = pair("validation", [&npy.validation_features, &npy.validation_labels])?;
    let others = (validation, pair("test", [&npy.test_features, &npy.test_labels])?);
    let raw = assemble(array, (&npy.features, &npy.labels), others)?;
    raw.without(&npy.drop, 0).map_err(|error| error.at(&npy.features))
}

/// The names of the features and of the labels.
type Pair<'a> = (&'a str, &'a str);

/// Both names of further arrays, or neither; `what` begins their keys.
pub fn pair<'a>(what: &str, names: [&'a Option<String>; 2]) -> Result<Option<Pair<'a>>> {
    match names {
        [None, None] => Ok(None),
        [Some(features), Some(labels)] => Ok(Some((features, labels))),
        _ => {
            let message = format!(
                "`{what}_features` and `{what}_labels` go together: one of them is missing"
            );
            Err(Error::config("config/missing-key", message))
        }
    }
}

/// A data set from arrays that `array` finds by name; further ones have the rows for validation and the test rows.
pub fn assemble(
    array: impl Fn(&str) -> Result<Array>,
    train: Pair,
    (validation, test): (Option<Pair>, Option<Pair>),
) -> Result<Raw> {
    let test_at = test.map(|(_, labels)| format!("`{labels}`"));
    let mut names = Names::default();
    let mut outputs = Vec::new();
    let mut part = |(features, labels): Pair| {
        let table = array(features)?.into_table()?;
        let labels = array(labels)?;
        outputs.push(labels.shape[1..].iter().product::<usize>());
        let rows = match &table {
            Table::Bytes { cols, values } => values.len() / cols,
            Table::Numbers(features) => features.rows(),
        };
        Ok(Part { table, labels: labels.into_labels(rows, &mut names)?, groups: Vec::new() })
    };
    let train = part(train)?;
    let validation = validation.map(&mut part).transpose()?;
    let test = test.map(part).transpose()?;
    let cols = train.table.cols();
    for (other, what) in [(&validation, "rows for validation"), (&test, "test rows")] {
        let found = other.as_ref().map_or(cols, |other| other.table.cols());
        if found != cols {
            let message = format!("the {what} have {found} features, the training rows {cols}");
            return Err(Error::data("data/shape-mismatch", message));
        }
    }
    if outputs.iter().any(|&count| count != outputs[0]) {
        let message = "rows differ from the training rows in the number of labels";
        return Err(Error::data("data/shape-mismatch", message));
    }
    let raw = Raw::named((train, validation, test), names, Names::default());
    Ok(Raw { test_at, outputs: outputs[0], ..raw })
}

/// An array in row-major order.
#[derive(Debug)]
pub struct Array {
    name: String,
    shape: Vec<usize>,
    items: Items,
}

#[derive(Debug)]
enum Items {
    Bytes(Vec<u8>),
    Numbers(Vec<f64>),
    Text(Vec<String>),
}

impl Array {
    /// Reads the contents of an `.npy` file.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Array> {
        let (header, data) = NpyHeader::read(name, bytes)?;
        let at = (bytes.len() - data.len()) as u64;
        let wrong = |id, at, message: String| Error::data(id, message).at(file::byte(name, at));
        let (kind, size) = header.item(name)?;
        let count = header.shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        let expected = count.and_then(|count| count.checked_mul(size));
        if header.shape.is_empty() || count == Some(0) {
            let message = format!("the array has shape {:?}, and so no rows", header.shape);
            return Err(wrong("data/empty", 0, message));
        }
        if expected.is_none_or(|expected| expected > data.len()) {
            let message = format!(
                "shape {:?} needs more than the {} bytes that follow",
                header.shape,
                data.len()
            );
            return Err(wrong("data/truncated", bytes.len() as u64, message));
        }
        let expected = expected.unwrap_or(0);
        if expected < data.len() {
            let message = format!("the file continues after the {expected} bytes of the array");
            return Err(wrong("data/trailing-bytes", at + expected as u64, message));
        }
        let layout = Layout::new(&header);
        let values = data.chunks_exact(size);
        let items = match kind {
            b'u' if size == 1 => Items::Bytes(layout.row_major(data.to_vec())),
            b'U' => {
                let text: Option<Vec<String>> = values.map(text).collect();
                let bad = || wrong("data/bad-text", at, "the array holds malformed text".into());
                Items::Text(layout.row_major(text.ok_or_else(bad)?))
            }
            _ => {
                let numbers = values.map(|value| number(kind, value)).collect();
                Items::Numbers(layout.row_major(numbers))
            }
        };
        Ok(Array { name: name.to_string(), shape: header.shape, items })
    }

    /// The array as features; the first dimension counts rows.
    fn into_table(self) -> Result<Table> {
        let cols: usize = self.shape[1..].iter().product();
        match self.items {
            Items::Bytes(values) => Ok(Table::Bytes { cols, values: Arc::new(values) }),
            Items::Numbers(values) => match values.iter().position(|value| !value.is_finite()) {
                None => Ok(Table::Numbers(Features::Dense { cols, values })),
                Some(i) => {
                    Err(Error::data("data/not-finite", format!("a feature is {}", values[i]))
                        .at(format!("{}, row {}, column {}", self.name, i / cols, i % cols))
                        .hint(
                            "fill in missing values, or leave the row out: `missing = \"mean\"` \
                             fills cells of text tables, not of arrays",
                        ))
                }
            },
            Items::Text(_) => {
                Err(Error::data("data/unsupported", "the features are text, not numbers")
                    .at(self.name))
            }
        }
    }

    /// A data set without labels.
    pub fn unlabelled(self) -> Result<Raw> {
        let part = Part { table: self.into_table()?, labels: Vec::new(), groups: Vec::new() };
        Ok(Raw::named((part, None, None), Names::default(), Names::default()))
    }

    fn into_labels(self, rows: usize, names: &mut Names) -> Result<Vec<u32>> {
        let outputs: usize = self.shape[1..].iter().product();
        if self.shape[0] != rows || self.shape.len() > 2 && outputs != 1 {
            let message = format!("labels of shape {:?} do not fit {rows} rows", self.shape);
            return Err(Error::data("data/count-mismatch", message).at(self.name));
        }
        let texts: Vec<Option<String>> = match self.items {
            Items::Bytes(items) => items.iter().map(|item| Some(item.to_string())).collect(),
            Items::Numbers(items) => items.iter().map(|&item| numeral(item)).collect(),
            Items::Text(items) => items.into_iter().map(Some).collect(),
        };
        let texts: Vec<Option<String>> = match outputs {
            1 => texts,
            _ => {
                let joined = |row: &[Option<String>]| {
                    let row: Option<Vec<String>> = row.iter().cloned().collect();
                    row.map(|row| row.join(&SEPARATOR.to_string()))
                };
                texts.chunks_exact(outputs).map(joined).collect()
            }
        };
        let number = |(row, text): (usize, Option<String>)| {
            text.and_then(|text| names.number(&text)).ok_or_else(|| {
                Error::data("data/bad-label", "the label is empty or not a number")
                    .at(format!("{}, row {row}", self.name))
            })
        };
        texts.into_iter().enumerate().map(number).collect()
    }
}

/// The order in which a file stores the items of an array.
struct Layout<'a> {
    shape: &'a [usize],
    fortran: bool,
}

impl Layout<'_> {
    fn new(header: &NpyHeader) -> Layout<'_> {
        Layout { shape: &header.shape, fortran: header.fortran }
    }

    /// The items in row-major order.
    fn row_major<T: Clone>(&self, items: Vec<T>) -> Vec<T> {
        if !self.fortran || self.shape.len() < 2 {
            return items;
        }
        let mut index = vec![0; self.shape.len()];
        let mut ordered = Vec::with_capacity(items.len());
        for _ in 0..items.len() {
            let at = index.iter().zip(self.shape).rev().fold(0, |at, (i, size)| at * size + i);
            ordered.push(items[at].clone());
            for (i, size) in index.iter_mut().zip(self.shape).rev() {
                *i += 1;
                if *i < *size {
                    break;
                }
                *i = 0;
            }
        }
        ordered
    }
}

/// One number; [`NpyHeader::item`] admits only known kinds and sizes.
fn number(kind: u8, item: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..item.len()].copy_from_slice(item);
    let unsigned = u64::from_le_bytes(wide);
    let unused = 64 - 8 * item.len() as u32;
    match (kind, item.len()) {
        (b'f', 4) => f64::from(f32::from_bits(unsigned as u32)),
        (b'f', _) => f64::from_bits(unsigned),
        (b'i', _) => (((unsigned << unused) as i64) >> unused) as f64,
        _ => unsigned as f64,
    }
}

/// Text of four bytes per character, padded with zeros.
fn text(item: &[u8]) -> Option<String> {
    let codes = item.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    let whole: Option<String> = codes.map(char::from_u32).collect();
    whole.map(|text| text.trim_end_matches('\0').to_string())
}
