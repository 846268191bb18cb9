//! New rows for a trained model, in the format given by the file's extension.

use std::path::Path;

use super::csv::{Column, CsvReader, Header};
use super::names::Names;
use super::npy::Array;
use super::raw::{Raw, Table};
use super::{file, libsvm, npz};
use crate::data::Features;
use crate::error::{Error, Result};

/// Rows for a trained model to predict.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRows {
    /// Raw features, before scaling.
    pub features: Features<f64>,
    /// The class name of each row, if the file has labels.
    pub labels: Option<Vec<String>>,
}

/// Reads the rows of a file for a model with this many features.
///
/// A table with that many columns has no labels. With one column more, labels are in the column
/// named `label`, by default the last; in an `.npz` archive, in the array named `label`, by default
/// `y`.
pub fn new_rows(path: &Path, features: usize, label: Option<&str>) -> Result<NewRows> {
    let format = FileFormat::of(path)?;
    let (name, bytes) = file::read(path)?;
    let (raw, labelled) = match format {
        FileFormat::Table(delimiter) => table((&name, &bytes), delimiter, features, label)?,
        FileFormat::Libsvm => libsvm::new_rows(&name, &bytes, features)?,
        FileFormat::Npy => (Array::read(&name, &bytes)?.unlabelled()?, false),
        FileFormat::Npz => npz::new_rows(&name, &bytes, label)?,
    };
    let found = raw.train.table.cols();
    if found != features {
        let message = format!("the rows have {found} features, and the model needs {features}");
        return Err(Error::data("data/shape-mismatch", message).at(&name));
    }
    let class = |&number: &u32| raw.classes[number as usize].name.clone();
    let labels = labelled.then(|| raw.train.labels.iter().map(class).collect());
    Ok(NewRows { features: into_features(raw.train.table), labels })
}

enum FileFormat {
    Table(u8),
    Libsvm,
    Npy,
    Npz,
}

impl FileFormat {
    fn of(path: &Path) -> Result<FileFormat> {
        let name = path.display().to_string().to_ascii_lowercase();
        match name.strip_suffix(".gz").unwrap_or(&name).rsplit('.').next() {
            Some("csv" | "data") => Ok(FileFormat::Table(b',')),
            Some("tsv") => Ok(FileFormat::Table(b'\t')),
            Some("libsvm" | "svm" | "txt") => Ok(FileFormat::Libsvm),
            Some("npy") => Ok(FileFormat::Npy),
            Some("npz") => Ok(FileFormat::Npz),
            _ => Err(Error::data(
                "data/unknown-format",
                "the file's extension is of no known format",
            )
            .at(path.display().to_string())
            .hint("known: .csv, .data, .tsv, .libsvm, .svm, .txt, .npy, .npz, each also .gz")),
        }
    }
}

fn table(
    (name, bytes): (&str, &[u8]),
    delimiter: u8,
    features: usize,
    label: Option<&str>,
) -> Result<(Raw, bool)> {
    let rows = CsvReader::open(name, bytes, delimiter)?;
    let column = match label.map(|label| (label, label.parse())) {
        None => Column::Number(-1),
        Some((_, Ok(number))) => Column::Number(number),
        Some((label, Err(_))) => Column::Name(label.to_string()),
    };
    let label = match rows.width() {
        width if width == features + 1 => Some(rows.find(&column, Header::Auto)?),
        width if width == features && label.is_none() => None,
        width => {
            let message = format!(
                "the rows have {width} columns, and the model needs {features}, or {} with labels",
                features + 1
            );
            return Err(Error::data("data/shape-mismatch", message)
                .at(format!("{name}:1"))
                .hint("cells are separated by commas in .csv and .data, by tabs in .tsv"));
        }
    };
    let (mut labels, mut groups) = (Names::default(), Names::default());
    let part = rows.read(Header::Auto, (label, None), (&mut labels, &mut groups))?;
    let raw = Raw::named(part, None, labels, groups).map_err(|error| error.at(name))?;
    Ok((raw, label.is_some()))
}

fn into_features(table: Table) -> Features<f64> {
    match table {
        Table::Numbers(features) => features,
        Table::Bytes { cols, values } => {
            Features::Dense { cols, values: values.iter().map(|&value| f64::from(value)).collect() }
        }
    }
}
