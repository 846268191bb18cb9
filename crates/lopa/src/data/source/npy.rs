//! NumPy arrays: a header that is a Python dictionary, then the numbers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::{Names, numeral};
use super::npy_header::Header;
use super::raw::{Part, Raw, Table};
use super::{Where, file};
use crate::config::Params;
use crate::data::Features;
use crate::error::{Error, Result};

/// Parameters of `npy`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Npy {
    /// The file of the features: a row each, further dimensions laid flat.
    features: String,
    /// The file of the labels: numbers, or text.
    labels: String,
    /// The file of the features to test on.
    test_features: Option<String>,
    /// The file of the labels to test on.
    test_labels: Option<String>,
}

impl Params for Npy {}

pub fn read(npy: &Npy, place: &Where) -> Result<Raw> {
    let array = |path: &str| {
        let path = file::find(path, place)?;
        let (name, bytes) = file::read(&path)?;
        Array::read(&name, &bytes)
    };
    let test = pair(npy.test_features.as_deref(), npy.test_labels.as_deref())?;
    assemble(array, (&npy.features, &npy.labels), test)
}

/// Both names of the test arrays, or neither.
pub fn pair<'a>(
    features: Option<&'a str>,
    labels: Option<&'a str>,
) -> Result<Option<(&'a str, &'a str)>> {
    match (features, labels) {
        (None, None) => Ok(None),
        (Some(features), Some(labels)) => Ok(Some((features, labels))),
        _ => Err(Error::config(
            "config/missing-key",
            "`test_features` and `test_labels` go together: one of them is missing",
        )),
    }
}

/// A data set from arrays that `array` finds by name.
pub fn assemble(
    array: impl Fn(&str) -> Result<Array>,
    train: (&str, &str),
    test: Option<(&str, &str)>,
) -> Result<Raw> {
    let mut names = Names::default();
    let mut part = |(features, labels): (&str, &str)| {
        let table = array(features)?.into_table()?;
        let labels = array(labels)?;
        let rows = match &table {
            Table::Bytes { cols, values } => values.len() / cols,
            Table::Numbers(features) => features.rows(),
        };
        Ok(Part { table, labels: labels.into_labels(rows, &mut names)?, groups: Vec::new() })
    };
    let train = part(train)?;
    let test = test.map(part).transpose()?;
    if let Some(test) = test.as_ref().filter(|test| test.table.cols() != train.table.cols()) {
        let (here, there) = (test.table.cols(), train.table.cols());
        let message = format!("there are {here} features to test on, and {there} to train on");
        return Err(Error::data("data/shape-mismatch", message));
    }
    Raw::named(train, test, names, Names::default())
}

/// An array in row-major order.
#[derive(Debug)]
pub struct Array {
    name: String,
    shape: Vec<usize>,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Bytes(Vec<u8>),
    Numbers(Vec<f64>),
    Text(Vec<String>),
}

impl Array {
    /// Reads the contents of an `.npy` file.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Array> {
        let (header, data) = Header::read(name, bytes)?;
        let at = (bytes.len() - data.len()) as u64;
        let wrong = |id, at, message: String| Error::data(id, message).at(file::byte(name, at));
        let (kind, size) = header.item(name)?;
        let count = header.shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        let expected = count.and_then(|count| count.checked_mul(size));
        if header.shape.is_empty() || count == Some(0) {
            let message = format!("the array has shape {:?}: there is no row in it", header.shape);
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
            let message = format!("the file goes on after the {expected} bytes of the array");
            return Err(wrong("data/trailing-bytes", at + expected as u64, message));
        }
        let order = Order::new(&header);
        let items = data.chunks_exact(size);
        let cells = match kind {
            b'u' if size == 1 => Cells::Bytes(order.lay(data.to_vec())),
            b'U' => {
                let text: Option<Vec<String>> = items.map(text).collect();
                let bad = || wrong("data/bad-text", at, "the array holds broken text".into());
                Cells::Text(order.lay(text.ok_or_else(bad)?))
            }
            _ => Cells::Numbers(order.lay(items.map(|item| number(kind, item)).collect())),
        };
        Ok(Array { name: name.to_string(), shape: header.shape, cells })
    }

    /// The features: the first dimension counts rows.
    fn into_table(self) -> Result<Table> {
        let cols: usize = self.shape[1..].iter().product();
        match self.cells {
            Cells::Bytes(values) => Ok(Table::Bytes { cols, values: Arc::new(values) }),
            Cells::Numbers(values) => match values.iter().position(|value| !value.is_finite()) {
                None => Ok(Table::Numbers(Features::Dense { cols, values })),
                Some(i) => {
                    Err(Error::data("data/not-finite", format!("a feature is {}", values[i]))
                        .at(format!("{}, row {}, column {}", self.name, i / cols, i % cols))
                        .hint("fill gaps in, or leave the row out"))
                }
            },
            Cells::Text(_) => {
                Err(Error::data("data/unsupported", "the features are text, not numbers")
                    .at(self.name))
            }
        }
    }

    /// The features alone.
    pub fn unlabelled(self) -> Result<Raw> {
        let part = Part { table: self.into_table()?, labels: Vec::new(), groups: Vec::new() };
        Raw::named(part, None, Names::default(), Names::default())
    }

    fn into_labels(self, rows: usize, names: &mut Names) -> Result<Vec<u32>> {
        if self.shape[0] != rows || self.shape[1..].iter().any(|&size| size != 1) {
            let message = format!("labels have shape {:?}, and there are {rows} rows", self.shape);
            return Err(Error::data("data/count-mismatch", message).at(self.name));
        }
        let texts: Vec<Option<String>> = match self.cells {
            Cells::Bytes(cells) => cells.iter().map(|cell| Some(cell.to_string())).collect(),
            Cells::Numbers(cells) => cells.iter().map(|&cell| numeral(cell)).collect(),
            Cells::Text(cells) => cells.into_iter().map(Some).collect(),
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

/// Column-major arrays are laid out anew, row-major ones are left as they are.
struct Order<'a> {
    shape: &'a [usize],
    fortran: bool,
}

impl Order<'_> {
    fn new(header: &Header) -> Order<'_> {
        Order { shape: &header.shape, fortran: header.fortran }
    }

    fn lay<T: Clone>(&self, cells: Vec<T>) -> Vec<T> {
        if !self.fortran || self.shape.len() < 2 {
            return cells;
        }
        let mut index = vec![0; self.shape.len()];
        let mut laid = Vec::with_capacity(cells.len());
        for _ in 0..cells.len() {
            let at = index.iter().zip(self.shape).rev().fold(0, |at, (i, size)| at * size + i);
            laid.push(cells[at].clone());
            for (i, size) in index.iter_mut().zip(self.shape).rev() {
                *i += 1;
                if *i < *size {
                    break;
                }
                *i = 0;
            }
        }
        laid
    }
}

/// One number of a known kind; [`Header::item`] lets only known sizes through.
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

/// Text of four bytes a character, filled up with zeros.
fn text(item: &[u8]) -> Option<String> {
    let codes = item.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    let whole: Option<String> = codes.map(char::from_u32).collect();
    whole.map(|text| text.trim_end_matches('\0').to_string())
}
