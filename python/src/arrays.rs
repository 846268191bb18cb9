//! The data source `arrays`: features and labels that Python has in memory.

use std::sync::Arc;

use lopa::config::{Entry, NoParams};
use lopa::data::{Class, Features, Part, Raw, SourceBuild, Table, Usual, Where, source_entry};
use lopa::error::{Error, Result};
use lopa::params;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;

use crate::errors::keep;
use crate::going::asked;

const NAME: &str = "arrays";
const ABOUT: &str = "arrays and sparse matrices of a Python process: `lopa.Arrays`";

params! {
    /// Parameters of `arrays`.
    pub struct Named {
        /// SHA-256 of the features, labels and groups: other arrays are another experiment.
        digest: String = String::new(), required;
    }
}

/// The entry of the registry: experiments name the arrays by their digest.
pub fn entry() -> Entry<SourceBuild> {
    source_entry(NAME, ABOUT, find)
}

fn find(named: &Named, _: &Where) -> Result<Raw> {
    asked(|py| {
        let found = || py.import("lopa._arrays")?.getattr("find")?.call1((&named.digest,));
        raw(&found().map_err(|error| keep(py, error))?)
    })
}

/// An entry for one `lopa.Arrays`, which no name can find.
pub fn given(arrays: Py<PyAny>) -> Entry<SourceBuild> {
    let arrays = Arc::new(arrays);
    Entry::new(NAME, ABOUT, move |_: NoParams| -> Arc<SourceBuild> {
        let arrays = arrays.clone();
        Arc::new(move |_: &Where| asked(|py| raw(arrays.bind(py))))
    })
}

/// Features as Python hands them over: the number of columns, and all entries or those of sparse rows
/// (starts, columns, values).
pub type Matrix<'py> = (usize, Option<Bound<'py, PyAny>>, Option<[Bound<'py, PyAny>; 3]>);

/// The contents of a `lopa.Arrays`: features; the class of each row and the names of classes; the
/// same for groups, without names where there are none; and the labels of a row.
type Held<'py> =
    (Matrix<'py>, Bound<'py, PyAny>, Vec<String>, Bound<'py, PyAny>, Vec<String>, usize);

/// Reads a `lopa.Arrays`.
fn raw(arrays: &Bound<PyAny>) -> Result<Raw> {
    let py = arrays.py();
    let held = || arrays.call_method0("_held")?.extract::<Held>();
    let (matrix, labels, classes, groups, names, outputs) =
        held().map_err(|error| keep(py, error))?;
    let table = table(&matrix, py)?;
    let labels = numbered(&labels, classes.len(), table.rows(), "labels")?;
    let groups = match names.is_empty() {
        true => Vec::new(),
        false => numbered(&groups, names.len(), table.rows(), "groups")?,
    };
    let class = |name: String| Class { code: name.clone(), name };
    Ok(Raw {
        train: Part { table, labels, groups },
        validation: 0,
        test: None,
        classes: classes.into_iter().map(class).collect(),
        groups: names,
        usual: Usual::nothing(),
        columns: None,
        unnamed: Default::default(),
        test_at: None,
        known: false,
        outputs,
        missing: None,
    })
}

/// The features; bytes stay bytes.
pub fn table((cols, all, sparse): &Matrix, py: Python) -> Result<Table> {
    match (all, sparse) {
        (Some(all), _) if PyBuffer::<u8>::get(all).is_ok() => {
            let values = vector::<u8>(all)?;
            whole(*cols, values.len())?;
            Ok(Table::Bytes { cols: *cols, values: Arc::new(values) })
        }
        (Some(all), _) => {
            let values = doubles(all)?;
            whole(*cols, values.len())?;
            Ok(Table::Numbers(Features::Dense { cols: *cols, values }))
        }
        (None, Some([starts, columns, values])) => {
            let (starts, columns) = (vector::<i64>(starts)?, vector::<i32>(columns)?);
            let values = doubles(values)?;
            py.detach(|| sparse_rows(*cols, &starts, &columns, values)).map(Table::Numbers)
        }
        (None, None) => Err(malformed("there are no entries")),
    }
}

/// The features in double precision.
pub fn features(matrix: &Matrix, py: Python) -> Result<Features<f64>> {
    let table = table(matrix, py)?;
    match table {
        Table::Numbers(features) => Ok(features),
        bytes => {
            let rows: Vec<u32> = (0..bytes.rows() as u32).collect();
            Ok(bytes.take(&rows, &Default::default(), false))
        }
    }
}

fn whole(cols: usize, entries: usize) -> Result<()> {
    match cols > 0 && entries.is_multiple_of(cols) {
        true => Ok(()),
        false => Err(malformed(&format!("{entries} entries are no rows of {cols} columns"))),
    }
}

/// Compressed sparse rows, checked: they may be malformed.
fn sparse_rows(
    cols: usize,
    starts: &[i64],
    columns: &[i32],
    values: Vec<f64>,
) -> Result<Features<f64>> {
    let starts: Option<Vec<usize>> = starts.iter().map(|&at| usize::try_from(at).ok()).collect();
    let columns: Option<Vec<u32>> = columns.iter().map(|&j| u32::try_from(j).ok()).collect();
    let (Some(starts), Some(columns)) = (starts, columns) else {
        return Err(malformed("a number of a row or a column is negative"));
    };
    let ends = starts.first() == Some(&0) && starts.last() == Some(&values.len());
    if !ends || !starts.is_sorted() || columns.len() != values.len() {
        return Err(malformed("its rows do not end where its entries do"));
    }
    let right = |row: &[usize]| {
        let own = &columns[row[0]..row[1]];
        own.windows(2).all(|two| two[0] < two[1]) && own.last().is_none_or(|&j| (j as usize) < cols)
    };
    match starts.windows(2).all(right) {
        true => Ok(Features::Sparse { cols, starts, columns, values }),
        false => Err(malformed("columns must increase within a row, and exist")),
    }
}

/// Numbers of classes or groups, one for each row.
pub fn numbered(of: &Bound<PyAny>, count: usize, rows: usize, what: &str) -> Result<Vec<u32>> {
    let numbers = vector::<u32>(of)?;
    match numbers.len() == rows && numbers.iter().all(|&number| (number as usize) < count) {
        true => Ok(numbers),
        false => Err(malformed(&format!("{what} do not fit {rows} rows"))),
    }
}

fn malformed(what: &str) -> Error {
    Error::data("data/shape", format!("the arrays are malformed: {what}"))
}

/// Numbers in single or double precision.
pub fn doubles(values: &Bound<PyAny>) -> Result<Vec<f64>> {
    match PyBuffer::<f32>::get(values).is_ok() {
        true => Ok(vector::<f32>(values)?.into_iter().map(f64::from).collect()),
        false => vector::<f64>(values),
    }
}

fn vector<T: Element>(values: &Bound<PyAny>) -> Result<Vec<T>> {
    let read = || PyBuffer::<T>::get(values)?.to_vec(values.py());
    read().map_err(|error| keep(values.py(), error))
}
