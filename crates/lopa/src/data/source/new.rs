//! New rows for a trained model, in the format that the name of their file tells.

use std::path::Path;

use super::csv::{Column, Header, Rows};
use super::names::Names;
use super::npy::Array;
use super::raw::{Raw, Table};
use super::{file, libsvm, npz};
use crate::data::Features;
use crate::error::{Error, Result};

/// Rows that a trained model is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRows {
    /// Raw features, as before scaling.
    pub features: Features<f64>,
    /// The class of each row by name, if the file tells.
    pub labels: Option<Vec<String>>,
}

/// Reads the rows of a file for a model of so many features.
///
/// A table of that many columns has no labels. One that is a column wider has them in the column
/// called `label`, or in the last; an `.npz` archive has them in the array called `label`, or in `y`.
pub fn new_rows(path: &Path, features: usize, label: Option<&str>) -> Result<NewRows> {
    let format = Format::of(path)?;
    let (name, bytes) = file::read(path)?;
    let (raw, labelled) = match format {
        Format::Table(delimiter) => table((&name, &bytes), delimiter, features, label)?,
        Format::Libsvm => libsvm::new_rows(&name, &bytes, features)?,
        Format::Npy => (Array::read(&name, &bytes)?.unlabelled()?, false),
        Format::Npz => npz::new_rows(&name, &bytes, label)?,
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

enum Format {
    Table(u8),
    Libsvm,
    Npy,
    Npz,
}

impl Format {
    fn of(path: &Path) -> Result<Format> {
        let name = path.display().to_string().to_ascii_lowercase();
        match name.strip_suffix(".gz").unwrap_or(&name).rsplit('.').next() {
            Some("csv" | "data") => Ok(Format::Table(b',')),
            Some("tsv") => Ok(Format::Table(b'\t')),
            Some("libsvm" | "svm" | "txt") => Ok(Format::Libsvm),
            Some("npy") => Ok(Format::Npy),
            Some("npz") => Ok(Format::Npz),
            _ => {
                Err(Error::data("data/unknown-format", "the file's name does not tell its format")
                    .at(path.display().to_string())
                    .hint(
                        "known: .csv, .data, .tsv, .libsvm, .svm, .txt, .npy, .npz, each also .gz",
                    ))
            }
        }
    }
}

fn table(
    (name, bytes): (&str, &[u8]),
    delimiter: u8,
    features: usize,
    label: Option<&str>,
) -> Result<(Raw, bool)> {
    let rows = Rows::open(name, bytes, delimiter)?;
    let column = match label.map(|label| (label, label.parse())) {
        None => Column::Number(-1),
        Some((_, Ok(number))) => Column::Number(number),
        Some((label, Err(_))) => Column::Name(label.to_string()),
    };
    let label = match rows.wide() {
        wide if wide == features + 1 => Some(rows.find(&column, Header::Auto)?),
        wide if wide == features && label.is_none() => None,
        wide => {
            let message = format!(
                "the rows have {wide} columns, and the model needs {features}, or {} with labels",
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
