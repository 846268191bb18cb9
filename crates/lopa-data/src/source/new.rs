//! New rows for a trained model, in the format given by the file's extension.

use std::path::Path;

use super::csv::{Column, CsvReader, Header, Plan, number, unnamed_columns};
use super::names::Names;
use super::npy::Array;
use super::raw::{Raw, Table, kept};
use super::{file, libsvm, npz};
use crate::error::{Error, Result};
use crate::{Columns, Encoded, Features, Unnamed};

/// Rows for a trained model to predict.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRows {
    /// Raw features, before scaling.
    pub features: Features<f64>,
    /// The label of each row, if the file has labels: the name of a class, or numbers.
    pub labels: Option<Vec<String>>,
    /// The group of each row, if the file has it.
    pub groups: Option<Vec<String>>,
    /// Whether the labels are a guess: the only evidence is that there is one column more than
    /// features.
    pub guessed: bool,
}

/// Columns named by the user, by name or number; in an `.npz` archive, an array.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named<'a> {
    /// The labels.
    pub label: Option<&'a str>,
    /// The column of groups.
    pub group: Option<&'a str>,
}

/// The columns that a model needs.
#[derive(Debug, Clone, Copy)]
pub struct Needed<'a> {
    /// Number of features.
    pub features: usize,
    /// Number of columns of labels.
    pub outputs: usize,
    /// Whether missing values are filled.
    pub fills: bool,
    /// The names of the columns, if it was trained with any.
    pub columns: Option<&'a Columns>,
    /// What must be known of columns without names.
    pub unnamed: &'a Unnamed,
}

impl Needed<'_> {
    /// Features and columns to leave out.
    fn width(&self) -> usize {
        let columns = match self.unnamed.encoding.len() {
            0 => self.features,
            columns => columns,
        };
        columns + self.unnamed.dropped.len()
    }

    /// Rows without the columns to leave out, if they have these.
    pub fn cut(&self, raw: Features<f64>) -> Features<f64> {
        let plain = self.unnamed.encoding.is_empty();
        match plain && raw.cols() == self.width() && !self.unnamed.dropped.is_empty() {
            true => raw.columns_at(&kept(self.width(), &self.unnamed.dropped).collect::<Vec<_>>()),
            false => raw,
        }
    }
}

/// Reads the rows of a file for a model.
///
/// Where both the model and the file have names of columns, these are matched; the file may also have
/// the columns of labels and groups that the model was trained with, and a last one of labels.
///
/// Otherwise columns are matched by position; those that were left out in training are there, and are
/// left out again. A table with that many columns has no labels. With one column more, beside that of
/// the groups if one is named, labels are in the column named `label`, by default the last; in an
/// `.npz` archive, in the array named `label`, by default `y`.
pub fn new_rows(path: &Path, needed: &Needed, named: Named) -> Result<NewRows> {
    let label = named.label;
    let format = FileFormat::of(path)?;
    let (name, bytes) = file::read(path)?;
    let (raw, labels) = match format {
        FileFormat::Table => table((&name, &bytes), needed, named)?,
        _ if named.group.is_some() => {
            let message = "only tables have a column that says whose row it is";
            return Err(Error::data("data/no-column", message)
                .at(&name)
                .hint("write the rows as CSV, or a file for each node: 'test/{node}.npz'"));
        }
        FileFormat::Libsvm => {
            known(libsvm::new_rows(&name, &bytes, needed.width(), needed.unnamed.zero_based)?)
        }
        FileFormat::Npy => (Array::read(&name, &bytes)?.unlabelled()?, Labels::None),
        FileFormat::Npz => known(npz::new_rows(&name, &bytes, label)?),
    };
    let features = needed.cut(into_features(raw.train.table));
    if features.cols() != needed.features {
        let (found, needed) = (features.cols(), needed.features);
        let message = format!("the rows have {found} features, and the model needs {needed}");
        return Err(Error::data("data/shape-mismatch", message).at(&name));
    }
    let class = |&number: &u32| raw.classes[number as usize].name.clone();
    let found = (labels != Labels::None).then(|| raw.train.labels.iter().map(class).collect());
    let guessed = labels == Labels::Guessed;
    let group = |&number: &u32| raw.groups[number as usize].clone();
    let groups: Vec<String> = raw.train.groups.iter().map(group).collect();
    let groups = (!groups.is_empty()).then_some(groups);
    Ok(NewRows { features, labels: found, groups, guessed })
}

/// Whether a file has labels, and by which evidence.
#[derive(Clone, Copy, PartialEq)]
enum Labels {
    None,
    Known,
    Guessed,
}

fn known((raw, labelled): (Raw, bool)) -> (Raw, Labels) {
    (raw, if labelled { Labels::Known } else { Labels::None })
}

pub(super) enum FileFormat {
    Table,
    Libsvm,
    Npy,
    Npz,
}

impl FileFormat {
    pub(super) fn of(path: &Path) -> Result<FileFormat> {
        let name = path.display().to_string().to_ascii_lowercase();
        match name.strip_suffix(".gz").unwrap_or(&name).rsplit('.').next() {
            Some("csv" | "data" | "tsv") => Ok(FileFormat::Table),
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

fn table((name, bytes): (&str, &[u8]), needed: &Needed, named: Named) -> Result<(Raw, Labels)> {
    let rows = CsvReader::open(name, bytes, None)?;
    let [label, group] = [named.label, named.group].map(|column| {
        column.map(|column| match column.parse() {
            Ok(number) => Column::Number(number),
            Err(_) => Column::Name(column.to_string()),
        })
    });
    let named = (label.as_ref(), group.as_ref());
    let columns = needed.columns.map(|columns| with_raw_names(columns, &needed.unnamed.encoding));
    let plan = match columns.as_ref().filter(|columns| has_header(&rows.cells(), columns)) {
        Some(columns) => by_name(&rows, columns, named),
        None if columns.is_some() && is_sorted(&needed.unnamed.encoding) => {
            Err(unnamed_columns("the training rows and the new ones"))
        }
        None => by_position(&rows, needed, named),
    };
    let (mut plan, guessed) = plan.map_err(|error| error.at(format!("{name}:1")))?;
    plan.encoding = needed.unnamed.encoding.clone();
    let (mut labels, mut groups) = (Names::default(), Names::default());
    let found = match (plan.labels.is_empty(), guessed) {
        (true, _) => Labels::None,
        (false, true) => Labels::Guessed,
        (false, false) => Labels::Known,
    };
    let (part, missing) = rows.read(&plan, (&mut labels, &mut groups))?;
    if let Some(error) = missing.filter(|_| !needed.fills) {
        return Err(error);
    }
    let raw = Raw::named((part, None, None), labels, groups);
    Ok((raw, found))
}

/// The names of the columns as files have them, before they are encoded.
fn with_raw_names(columns: &Columns, encoding: &[Encoded]) -> Columns {
    match encoding.is_empty() {
        true => columns.clone(),
        false => {
            let features = encoding.iter().map(|encoded| encoded.column.clone()).collect();
            Columns { features, ..columns.clone() }
        }
    }
}

/// Whether encoded columns are in the order of their names, which need not be that of the file.
fn is_sorted(encoding: &[Encoded]) -> bool {
    encoding.len() > 1 && encoding.is_sorted_by_key(|encoded| &encoded.column)
}

/// Whether the first row has names: no cell is a number, or it has all required names.
fn has_header(cells: &[String], columns: &Columns) -> bool {
    let named = || columns.features.iter().all(|name| cells.contains(name));
    !cells.iter().any(|cell| number(cell.as_bytes())) || named()
}

/// Columns matched by name; and whether the column of labels is a guess.
fn by_name(
    rows: &CsvReader,
    columns: &Columns,
    (label, group): (Option<&Column>, Option<&Column>),
) -> Result<(Plan, bool)> {
    let cells = rows.cells();
    let at = |name: &Option<String>| {
        let name = name.as_ref().filter(|name| !columns.features.contains(name))?;
        cells.iter().position(|cell| cell == name)
    };
    let given = label.map(|label| rows.find(label, Header::Yes)).transpose()?;
    let mut label = given.or_else(|| at(&columns.label));
    let more: Vec<usize> = match given.is_none() && label.is_some() {
        true => columns.more_labels.iter().filter_map(|name| at(&Some(name.clone()))).collect(),
        false => Vec::new(),
    };
    let group = group.map(|group| rows.find(group, Header::Yes)).transpose()?;
    let group = group.or_else(|| at(&columns.group));
    let is_dropped = |cell: &String| columns.dropped.contains(cell);
    let last = cells.len() - 1;
    let said = label.is_some();
    let known = |cell: &String| columns.features.contains(cell) || is_dropped(cell);
    if label.is_none() && group != Some(last) && !known(&cells[last]) {
        // As without names: an additional last column has the labels.
        let other = usize::from(group.is_some()) + cells.iter().filter(|c| is_dropped(c)).count();
        let extra = cells.len() - other;
        label = (extra == columns.features.len() + 1).then_some(last);
    }
    let dropped: Vec<usize> = (0..cells.len()).filter(|&j| is_dropped(&cells[j])).collect();
    let labels: Vec<usize> = label.into_iter().chain(more).collect();
    let mut plan = rows.plan(Header::Yes, (&labels, group), &dropped);
    let found = rows.names(&plan).map_or(Vec::new(), |names| names.features);
    let order = columns.order(&found).map_err(|error| {
        let unknown: Vec<_> =
            found.iter().filter(|name| !columns.features.contains(name)).collect();
        match (&unknown[..], group, error.hint.clone()) {
            ([one], None, Some(hint)) if found.len() > columns.features.len() => {
                let hint = format!("if `{one}` says whose row it is: --nodes-from {one}; {hint}");
                Error { hint: Some(hint), ..error }
            }
            _ => error,
        }
    });
    plan.reorder(&order?);
    Ok((plan, !said))
}

/// Columns matched by their number; and whether the column of labels is a guess.
fn by_position(
    rows: &CsvReader,
    needed: &Needed,
    (label, group): (Option<&Column>, Option<&Column>),
) -> Result<(Plan, bool)> {
    let features = needed.width();
    let guessed = label.is_none();
    let group = group.map(|group| rows.find(group, Header::Auto)).transpose()?;
    let beside = usize::from(group.is_some());
    let last = match group {
        Some(group) if group + 1 == rows.width() => Column::Number(-2),
        _ => Column::Number(-1),
    };
    let outputs = needed.outputs.max(1);
    let labels = match rows.width() {
        width if width == features + 1 + beside && outputs == 1 => {
            vec![rows.find(label.unwrap_or(&last), Header::Auto)?]
        }
        width if width == features + outputs + beside && outputs > 1 && label.is_none() => {
            let free = (0..width).filter(|&j| Some(j) != group);
            free.skip(features).collect()
        }
        width if width == features + beside && label.is_none() => Vec::new(),
        width => {
            let message = format!(
                "the rows have {width} columns, and the model needs {}, or {} with labels",
                features + beside,
                features + outputs + beside
            );
            let left_out = match needed.unnamed.dropped.is_empty() {
                true => "",
                false => ", those left out in training among them",
            };
            return Err(Error::data("data/shape-mismatch", message).hint(format!(
                "give the columns that the model was trained on, in their order{left_out}"
            )));
        }
    };
    let other = |j: &usize| !labels.contains(j) && Some(*j) != group;
    let all: Vec<usize> = (0..rows.width()).filter(other).collect();
    let dropped: Vec<usize> =
        needed.unnamed.dropped.iter().filter_map(|&j| all.get(j).copied()).collect();
    Ok((rows.plan(Header::Auto, (&labels, group), &dropped), guessed))
}

fn into_features(table: Table) -> Features<f64> {
    match table {
        Table::Numbers(features) => features,
        Table::Bytes { cols, values } => {
            Features::Dense { cols, values: values.iter().map(|&value| f64::from(value)).collect() }
        }
    }
}
