//! Files as [`crate::look`] needs them: text tables cell by cell, the rest as raw tables.

use std::collections::HashSet;
use std::path::Path;

use super::cells::is_unlabelled;
use super::csv::{Column, CsvReader, Header};
use super::names::Names;
use super::new::FileFormat;
use super::npy::Array;
use super::raw::{Class, Part, Raw, Table};
use super::{file, idx, libsvm, npz};
use crate::Features;
use crate::encoding::is_missing;
use crate::error::Result;
use crate::labels::{are_numbers, check_classes};
use crate::look::{Cells, ColumnLook, LabelLook, Look, MAX_DISTINCT};

/// A text table; `None` if the file is not one.
pub fn look_csv(path: &Path, label: Option<&str>) -> Result<Option<Look>> {
    let is_table = matches!(FileFormat::of(path), Ok(FileFormat::Table));
    if !is_table || idx::is_idx(path) {
        return Ok(None);
    }
    let (name, bytes) = file::read(path)?;
    let rows = CsvReader::open(&name, &bytes, None)?;
    let delimiter = rows.delimiter;
    let label = match label.map(|label| (label, label.parse())) {
        None => Column::Number(-1),
        Some((_, Ok(number))) => Column::Number(number),
        Some((label, Err(_))) => Column::Name(label.to_string()),
    };
    let label = rows.find(&label, Header::Auto)?;
    let plan = rows.plan(Header::Auto, (&[label], None), &[]);
    let header = rows.names(&plan).is_some();
    let names = match header {
        true => rows.cells(),
        false => (0..rows.width()).map(|j| j.to_string()).collect(),
    };
    let mut cells = vec![Cells::default(); names.len()];
    let mut distinct = vec![HashSet::new(); names.len()];
    let (mut classes, mut labels, mut unlabelled, mut count) = (Names::default(), vec![], 0, 0);
    rows.each_row(&plan, |record| {
        count += 1;
        for (j, cell) in record.enumerate() {
            let text = std::str::from_utf8(cell).unwrap_or_default();
            if j == label {
                match classes.number(text).filter(|_| !is_unlabelled(text)) {
                    Some(number) => labels.push(number),
                    None => unlabelled += 1,
                }
            }
            if is_missing(text) {
                cells[j].missing += 1;
                continue;
            }
            match text.parse::<f64>().ok().filter(|value| value.is_finite()) {
                Some(value) => cells[j].add(value),
                None => cells[j].add_text(text),
            }
            if distinct[j].len() < MAX_DISTINCT && !distinct[j].contains(text) {
                distinct[j].insert(text.to_string());
            }
        }
        Ok(())
    })?;
    let columns = cells.into_iter().zip(&distinct).zip(&names);
    let mut columns: Vec<_> = columns
        .map(|((cells, distinct), name)| cells.column(name.clone(), Some(distinct)))
        .collect();
    let column = columns.remove(label);
    let labels = label_look(column, classes, labels, unlabelled);
    let look = Look::new("csv", count, columns, Some(labels));
    let delimiter = (delimiter != b',').then_some(char::from(delimiter));
    Ok(Some(Look { delimiter, header, ..look }))
}

fn label_look(column: ColumnLook, classes: Names, labels: Vec<u32>, missing: usize) -> LabelLook {
    let (names, rank) = classes.sorted();
    let mut counts = vec![0; names.len()];
    let labels: Vec<u32> = labels.into_iter().map(|label| rank[label as usize]).collect();
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    let table = Table::Numbers(Features::Dense { cols: 0, values: Vec::new() });
    let mut raw = Raw::new(Features::Dense { cols: 0, values: Vec::new() }, Vec::new(), &[]);
    raw.train = Part { table, labels, groups: Vec::new() };
    raw.known = false;
    raw.classes =
        names.iter().map(|name| Class { code: name.clone(), name: name.clone() }).collect();
    let refused = check_classes(&raw).err().map(|error| error.message);
    let numbers = refused.is_some() && are_numbers(&raw);
    let mut classes: Vec<(String, usize)> = names.into_iter().zip(counts).collect();
    // The mark of a missing label is not a class.
    classes.retain(|(_, rows)| *rows > 0);
    let name = column.name.clone();
    LabelLook { name, classes, missing, numbers, refused, column: Some(column) }
}

/// A file that is no text table.
pub struct RawLook {
    /// Its format: the name of the source that reads it.
    pub format: &'static str,
    /// Its rows.
    pub raw: Raw,
    /// The name of its labels, if it has any.
    pub label: Option<String>,
    /// The number of its first feature.
    pub first: usize,
}

/// Reads a file that is no text table.
pub fn look_raw(path: &Path, label: Option<&str>) -> Result<RawLook> {
    if idx::is_idx(path) {
        return Ok(RawLook { format: "idx", raw: idx::look(path)?, label: None, first: 0 });
    }
    let format = FileFormat::of(path)?;
    let (name, bytes) = file::read(path)?;
    Ok(match format {
        FileFormat::Npy => {
            let raw = Array::read(&name, &bytes)?.unlabelled()?;
            RawLook { format: "npy", raw, label: None, first: 0 }
        }
        FileFormat::Npz => {
            let (raw, labelled) = npz::new_rows(&name, &bytes, label)?;
            let label = labelled.then(|| label.unwrap_or("y").to_string());
            RawLook { format: "npz", raw, label, first: 0 }
        }
        _ => {
            let (raw, labelled, zero_based) = libsvm::look(&name, &bytes)?;
            let label = labelled.then(|| "first of each line".to_string());
            RawLook { format: "libsvm", raw, label, first: usize::from(!zero_based) }
        }
    })
}
