//! Files as [`crate::data::look`] needs them: text tables cell by cell, the rest as raw tables.

use std::collections::HashSet;
use std::path::Path;

use super::csv::{Column, CsvReader, Header};
use super::names::Names;
use super::new::FileFormat;
use super::npy::Array;
use super::raw::{Class, Part, Raw, Table};
use super::{file, idx, libsvm, npz};
use crate::data::Features;
use crate::data::labels::check_classes;
use crate::data::look::{Cells, LabelLook, Look, MAX_DISTINCT};
use crate::error::Result;

/// What tables write where a value is missing.
const MISSING: [&str; 8] = ["", "na", "n/a", "nan", "null", "none", "?", "-"];

/// A text table; `None` if the file is none.
pub fn look_csv(path: &Path, label: Option<&str>) -> Result<Option<Look>> {
    let Some(FileFormat::Table(usual)) = FileFormat::of(path).ok().filter(|_| !idx::is_idx(path))
    else {
        return Ok(None);
    };
    let (name, bytes) = file::read(path)?;
    let delimiter = delimiter(&bytes, usual);
    let rows = CsvReader::open(&name, &bytes, delimiter)?;
    let label = match label.map(|label| (label, label.parse())) {
        None => Column::Number(-1),
        Some((_, Ok(number))) => Column::Number(number),
        Some((label, Err(_))) => Column::Name(label.to_string()),
    };
    let label = rows.find(&label, Header::Auto)?;
    let plan = rows.plan(Header::Auto, Some(label), None);
    let names = match rows.names(&plan) {
        Some(_) => rows.cells(),
        None => (0..rows.width()).map(|j| j.to_string()).collect(),
    };
    let mut cells = vec![Cells::default(); names.len()];
    let mut distinct = vec![HashSet::new(); names.len()];
    let (mut classes, mut labels, mut unlabelled, mut count) = (Names::default(), vec![], 0, 0);
    rows.each_row(&plan, |record| {
        count += 1;
        for (j, cell) in record.enumerate() {
            let text = String::from_utf8_lossy(cell);
            if j == label {
                match classes.number(&text).filter(|_| !is_missing(&text)) {
                    Some(number) => labels.push(number),
                    None => unlabelled += 1,
                }
                continue;
            }
            if is_missing(&text) {
                cells[j].missing += 1;
                continue;
            }
            match text.parse::<f64>().ok().filter(|value| value.is_finite()) {
                Some(value) => cells[j].add(value),
                None => drop(cells[j].text.get_or_insert_with(|| text.to_string())),
            }
            if distinct[j].len() < MAX_DISTINCT && !distinct[j].contains(&*text) {
                distinct[j].insert(text.into_owned());
            }
        }
        Ok(())
    })?;
    let columns = cells.into_iter().zip(&distinct).zip(&names).enumerate();
    let columns = columns.filter(|(j, _)| *j != label);
    let columns =
        columns.map(|(_, ((cells, distinct), name))| cells.column(name.clone(), Some(distinct)));
    let labels = label_look(&names[label], classes, labels, unlabelled);
    let look = Look::new("csv", count, columns.collect(), Some(labels));
    let other = (delimiter != b',').then_some(delimiter as char);
    Ok(Some(Look { delimiter: other, ..look }))
}

fn is_missing(text: &str) -> bool {
    MISSING.contains(&text.to_ascii_lowercase().as_str())
}

fn label_look(name: &str, classes: Names, labels: Vec<u32>, missing: usize) -> LabelLook {
    let (names, rank) = classes.sorted();
    let mut counts = vec![0; names.len()];
    let labels: Vec<u32> = labels.into_iter().map(|label| rank[label as usize]).collect();
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    let table = Table::Numbers(Features::Dense { cols: 0, values: Vec::new() });
    let mut raw = Raw::new(Features::Dense { cols: 0, values: Vec::new() }, Vec::new(), &[]);
    raw.train = Part { table, labels, groups: Vec::new() };
    raw.classes =
        names.iter().map(|name| Class { code: name.clone(), name: name.clone() }).collect();
    let refused = check_classes(&raw).err().map(|error| error.message);
    let mut classes: Vec<(String, usize)> = names.into_iter().zip(counts).collect();
    // What is written where a label is missing is no class.
    classes.retain(|(_, rows)| *rows > 0);
    LabelLook { name: name.to_string(), classes, missing, refused }
}

/// The delimiter that the first line has most of; the usual one if none is there.
fn delimiter(bytes: &[u8], usual: u8) -> u8 {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |delimiter: u8| line.iter().filter(|&&byte| byte == delimiter).count();
    let [mut best, others @ ..] = [usual, b',', b';', b'\t', b'|'];
    for other in others {
        if count(other) > count(best) {
            best = other;
        }
    }
    best
}

/// Any other file: its format, its rows, and the name of its labels.
pub fn look_raw(path: &Path, label: Option<&str>) -> Result<(&'static str, Raw, Option<String>)> {
    if idx::is_idx(path) {
        return Ok(("idx", idx::look(path)?, None));
    }
    let format = FileFormat::of(path)?;
    let (name, bytes) = file::read(path)?;
    Ok(match format {
        FileFormat::Npy => ("npy", Array::read(&name, &bytes)?.unlabelled()?, None),
        FileFormat::Npz => {
            let (raw, labelled) = npz::new_rows(&name, &bytes, label)?;
            let label = labelled.then(|| label.unwrap_or("y").to_string());
            ("npz", raw, label)
        }
        _ => {
            let (raw, labelled) = libsvm::look(&name, &bytes)?;
            ("libsvm", raw, labelled.then(|| "first of each line".to_string()))
        }
    })
}
