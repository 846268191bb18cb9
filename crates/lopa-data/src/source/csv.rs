//! Tables of numbers in text files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cells::{ColumnNames, OddCells, is_unlabelled};
use super::names::{Names, SEPARATOR};
use super::raw::{Part, Raw, Table};
use super::{Where, file, text};
use crate::encoding::{self, Cell, Encoded, is_missing};
use crate::error::{Error, Fault, Result, nearest};
use crate::params;
use crate::{ClassName, Columns, Features, Unnamed};

params! {
    /// Parameters of `csv`.
    pub struct Csv {
        /// The file, plain or `.gz`.
        path: String = String::new(), required;
        /// A file with the same columns and the test rows.
        test_path: Option<String> = None;
        /// A file with the same columns and the rows of the outer function, in place of a share of the training rows.
        validation_path: Option<String> = None;
        /// Whether the first row has the column names.
        header: Header = Header::Auto;
        /// The column of the labels: its name, or its number from 0 (-1 is the last). A list of columns where
        /// rows have several numbers to predict.
        label: LabelColumns = LabelColumns::One(Column::Number(-1));
        /// The column with each row's group; it is not a feature.
        group: Option<Column> = None;
        /// Columns that are not features, by name or by number from 0: identifiers, dates, notes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        drop: Vec<Column> = Vec::new();
        /// Columns of categories, by name or number: each becomes a feature for each of the values listed.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        categories: BTreeMap<String, Vec<ClassName>> = BTreeMap::new();
        /// Columns that get one more feature, 1 where the value is missing.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        indicators: Vec<Column> = Vec::new();
        /// The character that separates cells; by default it is found in the first lines.
        delimiter: Option<String> = None;
    }
    check |csv| {
        let none = csv.label.as_slice().is_empty();
        Fault::unless(!none, "label", "[]", "a column, or a list of columns")?;
        let Some(given) = &csv.delimiter else { return Ok(()) };
        let one = given.len() == 1 && !"\"\r\n".contains(given.as_str());
        let must = "one ASCII character other than a quote or a line end";
        Fault::unless(one, "delimiter", format_args!("{given:?}"), must)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// Yes, if no feature in the first row is a number.
    #[default]
    Auto,
    Yes,
    No,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Column {
    Number(i64),
    Name(String),
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LabelColumns {
    One(Column),
    Several(Vec<Column>),
}

impl LabelColumns {
    fn as_slice(&self) -> &[Column] {
        match self {
            LabelColumns::One(column) => std::slice::from_ref(column),
            LabelColumns::Several(columns) => columns,
        }
    }
}

pub fn read(csv: &Csv, place: &Where) -> Result<Raw> {
    let (mut labels, mut groups) = (Names::default(), Names::default());
    let names = (&mut labels, &mut groups);
    let (train, columns, unnamed, mut missing) = read_part(csv, &csv.path, place, None, names)?;
    let like = (train.table.cols(), columns.as_ref());
    let mut other = |path: &Option<String>, what: &'static str| -> Result<Option<Part>> {
        let Some(path) = path else { return Ok(None) };
        let like = Some((what, like));
        let (part, _, _, lacks) = read_part(csv, path, place, like, (&mut labels, &mut groups))?;
        missing = missing.take().or(lacks);
        Ok(Some(part))
    };
    let validation = other(&csv.validation_path, "the rows for validation")?;
    let test = other(&csv.test_path, "the test rows")?;
    let raw = Raw::named((train, validation, test), labels, groups);
    let outputs = csv.label.as_slice().len();
    Ok(Raw { columns, unnamed, test_at: csv.test_path.clone(), outputs, missing, ..raw })
}

fn read_part(
    csv: &Csv,
    path: &str,
    place: &Where,
    like: Option<(&str, (usize, Option<&Columns>))>,
    names: (&mut Names, &mut Names),
) -> Result<(Part, Option<Columns>, Unnamed, Option<Error>)> {
    let (name, bytes) = file::read(&file::find(path, place)?)?;
    let given = csv.delimiter.as_ref().map(|given| given.as_bytes()[0]);
    let rows = CsvReader::open(&name, &bytes, given)?;
    let mut plan = csv.plan(&rows).map_err(|error| error.at(format!("{name}:1")))?;
    let (cols, mut columns) = (plan.width(), rows.names(&plan));
    match (like, &columns) {
        // Columns that are encoded are sorted by name.
        (Some((_, (_, Some(like)))), Some(found)) if !plan.encoding.is_empty() => {
            like.order(&found.features).map_err(|e| e.at(format!("{name}:1")))?;
        }
        (Some((_, (_, Some(like)))), Some(found)) => {
            plan.reorder(&like.order(&found.features).map_err(|e| e.at(format!("{name}:1")))?);
            columns = Some(like.clone());
        }
        // Those of a file with names are, and those of one without are not.
        (Some((what, (_, like))), found)
            if !plan.encoding.is_empty() && like.is_some() != found.is_some() =>
        {
            let both = format!("the training rows and {what}");
            return Err(unnamed_columns(&both).at(format!("{name}:1")));
        }
        (Some((what, (like, _))), _) if like != cols => {
            let message = format!("{what} have {cols} features, the training rows {like}");
            return Err(Error::data("data/shape-mismatch", message).at(format!("{name}:1")));
        }
        _ => {}
    }
    // Columns with names are left out by name.
    let dropped = if columns.is_some() { Vec::new() } else { plan.places_left_out() };
    let unnamed = Unnamed { dropped, encoding: plan.encoding.clone(), ..Unnamed::default() };
    let (part, missing) = rows.read(&plan, names)?;
    Ok((part, columns, unnamed, missing))
}

impl Csv {
    /// The roles of a file's columns.
    fn plan(&self, rows: &CsvReader) -> Result<Plan> {
        let find = |column: &Column| rows.find(column, self.header);
        let labels = self.label.as_slice().iter().map(find).collect::<Result<Vec<usize>>>()?;
        let group = self.group.as_ref().map(find).transpose()?;
        let dropped = self.drop.iter().map(find).collect::<Result<Vec<usize>>>()?;
        let clash = |what: &str, column: usize| {
            let message = format!("column {} cannot be both the label and {what}", column + 1);
            Err(Error::data("data/no-column", message).hint("name another column"))
        };
        for (at, &label) in labels.iter().enumerate() {
            if group == Some(label) {
                return clash("the group", label);
            }
            if dropped.contains(&label) {
                return clash("left out", label);
            }
            if labels[..at].contains(&label) {
                return clash("another one", label);
            }
        }
        let mut plan = rows.plan(self.header, (&labels, group), &dropped);
        self.encode(&mut plan, rows)?;
        match plan.features.is_empty() {
            false => Ok(plan),
            true => Err(Error::data("data/no-features", "no column is left for the features")
                .hint("a row needs features and a label: do the cells have another `delimiter`?")),
        }
    }
}

impl Csv {
    /// Adds the encoding of columns, if the file asks for any. Columns with names are then in the order of
    /// their names, so that it is the same in every file.
    fn encode(&self, plan: &mut Plan, rows: &CsvReader) -> Result<()> {
        if self.categories.is_empty() && self.indicators.is_empty() {
            return Ok(());
        }
        let of_key = |key: &String| match key.parse() {
            Ok(number) => Column::Number(number),
            Err(_) => Column::Name(key.clone()),
        };
        let feature = |column: &Column| {
            let found = rows.find(column, self.header)?;
            match plan.features.contains(&found) {
                true => Ok(found),
                false => {
                    let message = format!("column {} is not a feature", found + 1);
                    Err(Error::data("data/no-column", message)
                        .hint("`categories` and `indicators` name features"))
                }
            }
        };
        let mut listed = BTreeMap::new();
        for (key, categories) in &self.categories {
            let names: Vec<String> =
                categories.iter().map(|name| encoding::category(&name.to_string())).collect();
            let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
            if names.len() < 2 || twice.is_some() {
                let message =
                    format!("`categories` of column `{key}` must be two or more, once each");
                return Err(Error::config("config/out-of-range", message));
            }
            listed.insert(feature(&of_key(key))?, names);
        }
        let marked = self.indicators.iter().map(feature).collect::<Result<Vec<usize>>>()?;
        let cells = rows.cells();
        if plan.header {
            plan.features.sort_by(|&a, &b| cells[a].cmp(&cells[b]));
        }
        let header = plan.header;
        let encoded = |&j: &usize| Encoded {
            column: if header { cells[j].clone() } else { j.to_string() },
            categories: listed.get(&j).cloned().unwrap_or_default(),
            indicator: marked.contains(&j),
        };
        plan.encoding = plan.features.iter().map(encoded).collect();
        Ok(())
    }
}

/// The roles of a table's columns.
pub struct Plan {
    header: bool,
    pub labels: Vec<usize>,
    group: Option<usize>,
    /// The feature columns, in the order in which they are used.
    features: Vec<usize>,
    dropped: Vec<usize>,
    /// How the feature columns become features; empty where each is one number.
    pub encoding: Vec<Encoded>,
}

impl Plan {
    /// The number of features.
    fn width(&self) -> usize {
        match self.encoding.is_empty() {
            true => self.features.len(),
            false => encoding::width(&self.encoding),
        }
    }

    /// The places of the columns left out, among the features and them.
    fn places_left_out(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.features.iter().chain(&self.dropped).copied().collect();
        all.sort_unstable();
        all.dedup();
        let is_dropped = |place: &usize| self.dropped.contains(&all[*place]);
        (0..all.len()).filter(is_dropped).collect()
    }

    /// Puts the features in another order, given by their indices in the current one.
    pub fn reorder(&mut self, order: &[usize]) {
        self.features = order.iter().map(|&at| self.features[at]).collect();
    }
}

/// A file of rows, of which the first has been read.
pub struct CsvReader<'a> {
    name: &'a str,
    /// The separator of cells.
    pub delimiter: u8,
    reader: csv::Reader<&'a [u8]>,
    lines: Lines<'a>,
    first: csv::ByteRecord,
}

/// Counts lines up to a row. The reader's own count is of the line end before the row where lines end
/// with two characters, and of the first empty line where some come before it.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line of a row, counted from 1; rows are asked for in order.
    fn of(&mut self, row: &csv::ByteRecord) -> u64 {
        let start = row.position().map_or(self.at as u64, csv::Position::byte);
        let start = usize::try_from(start).map_or(self.text.len(), |at| at.min(self.text.len()));
        let ends = self.text[start..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
        let passed = self.text.get(self.at..start + ends).unwrap_or_default();
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.at = start + ends;
        self.line
    }
}

impl<'a> CsvReader<'a> {
    /// Opens a file with these contents; without a delimiter, it is found in the first lines.
    pub fn open(name: &'a str, bytes: &'a [u8], delimiter: Option<u8>) -> Result<CsvReader<'a>> {
        let text = text::utf8(name, bytes)?;
        let delimiter = delimiter.unwrap_or_else(|| text::delimiter(text, b','));
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .delimiter(delimiter)
            .from_reader(text.as_bytes());
        let mut first = csv::ByteRecord::new();
        if !reader.read_byte_record(&mut first).map_err(|error| broken(name, &error))? {
            return Err(Error::data("data/empty", "the file is empty").at(name));
        }
        let lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
        Ok(CsvReader { name, delimiter, reader, lines, first })
    }

    /// Number of columns of the first row.
    pub fn width(&self) -> usize {
        self.first.len()
    }

    /// The number of a column.
    pub fn find(&self, column: &Column, header: Header) -> Result<usize> {
        find_column(column, &self.first, header, self.name)
    }

    /// Every column but the label, the group and those left out is a feature.
    pub fn plan(
        &self,
        header: Header,
        (labels, group): (&[usize], Option<usize>),
        dropped: &[usize],
    ) -> Plan {
        let is_feature =
            |j: &usize| !labels.contains(j) && Some(*j) != group && !dropped.contains(j);
        let features: Vec<usize> = (0..self.width()).filter(is_feature).collect();
        let header = match header {
            Header::Yes => true,
            Header::No => false,
            Header::Auto => !features.iter().any(|&j| number(&self.first[j])),
        };
        let (labels, dropped, encoding) = (labels.to_vec(), dropped.to_vec(), Vec::new());
        Plan { header, labels, group, features, dropped, encoding }
    }

    /// The cells of the first row as text.
    pub fn cells(&self) -> Vec<String> {
        self.first.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
    }

    /// The names of the columns, if the first row has them.
    pub fn names(&self, plan: &Plan) -> Option<Columns> {
        let cells = self.cells();
        plan.header.then(|| Columns {
            features: match plan.encoding.is_empty() {
                true => plan.features.iter().map(|&j| cells[j].clone()).collect(),
                false => plan.encoding.iter().flat_map(Encoded::names).collect(),
            },
            label: plan.labels.first().map(|&j| cells[j].clone()),
            more_labels: plan.labels.iter().skip(1).map(|&j| cells[j].clone()).collect(),
            group: plan.group.map(|j| cells[j].clone()),
            dropped: plan.dropped.iter().map(|&j| cells[j].clone()).collect(),
        })
    }

    /// The columns as messages name them.
    pub fn column_names(&self, plan: &Plan) -> ColumnNames {
        ColumnNames { names: plan.header.then(|| self.cells()), width: self.width() }
    }

    /// Reads all rows; cells that are not numbers are counted and refused together. If the only fault of a
    /// table is cells without a value, these are NaN, and their error is returned beside it.
    pub fn read(
        self,
        plan: &Plan,
        (labels, groups): (&mut Names, &mut Names),
    ) -> Result<(Part, Option<Error>)> {
        let &Plan { header, labels: ref label, group, ref features, .. } = plan;
        let (name, cols, columns) = (self.name, plan.width(), self.column_names(plan));
        let mut part = Part {
            table: Table::Numbers(Features::Dense { cols, values: vec![] }),
            labels: vec![],
            groups: vec![],
        };
        let mut values = Vec::new();
        let mut places = vec![None; self.width()];
        let plain = Encoded::number(String::new());
        let mut place = 0;
        for (at, &j) in features.iter().enumerate() {
            let encoded = plan.encoding.get(at).unwrap_or(&plain);
            places[j] = Some((place, encoded));
            place += encoded.width();
        }
        let [mut odd, mut no_label, mut no_group] = [(); 3].map(|()| OddCells::default());
        let mut unlisted = OddCells::default();
        self.each(header, |line, cells| {
            let start = values.len();
            values.resize(start + cols, 0.0);
            let mut several = vec![""; if label.len() > 1 { label.len() } else { 0 }];
            for (j, cell) in cells.enumerate() {
                let text = std::str::from_utf8(cell).unwrap_or_default(); // the file is UTF-8
                let named = |names: &mut Names, none: &mut OddCells| {
                    match is_unlabelled(text) {
                        true => None,
                        false => names.number(text),
                    }
                    .unwrap_or_else(|| {
                        none.add(line, j, text);
                        0
                    })
                };
                if let [one] = label[..]
                    && one == j
                {
                    part.labels.push(named(labels, &mut no_label));
                } else if let Some(at) = label.iter().position(|&label| label == j) {
                    match is_missing(text) {
                        true => no_label.add(line, j, text),
                        false => several[at] = text,
                    }
                } else if Some(j) == group {
                    part.groups.push(named(groups, &mut no_group));
                } else if let Some((place, encoded)) = places[j] {
                    let out = &mut values[start + place..][..encoded.width()];
                    match encoded.write(text, out) {
                        Cell::Value => {}
                        Cell::Odd if !encoded.categories.is_empty() => unlisted.add(line, j, text),
                        Cell::Missing | Cell::Odd => odd.add(line, j, text),
                    }
                }
            }
            if several.len() > 1 {
                let joined = several.join(&SEPARATOR.to_string());
                part.labels.push(labels.number(&joined).unwrap_or(0));
            }
            Ok(())
        })?;
        if values.is_empty() {
            return Err(Error::data("data/empty", "the file has no rows").at(name));
        }
        let missing = odd.error(name, &columns);
        let error = uncategorised(&unlisted, name, &columns, plan);
        let error = error.or_else(|| missing.clone().filter(|_| !odd.only_missing()));
        let error = error.or_else(|| no_label.unnamed(name, &columns, "label"));
        if let Some(error) = error.or_else(|| no_group.unnamed(name, &columns, "group")) {
            return Err(error);
        }
        part.table = Table::Numbers(Features::Dense { cols, values });
        Ok((part, missing))
    }

    /// Calls `f(cells)` for every row but the header.
    pub fn each_row(
        self,
        plan: &Plan,
        mut f: impl FnMut(csv::ByteRecordIter) -> Result<()>,
    ) -> Result<()> {
        self.each(plan.header, |_, cells| f(cells))
    }

    /// Calls `f(line, cells)` for every row; all must be as wide as the first.
    fn each(
        mut self,
        header: bool,
        mut f: impl FnMut(u64, csv::ByteRecordIter) -> Result<()>,
    ) -> Result<()> {
        let (width, mut record) = (self.first.len(), self.first);
        let mut more = true;
        if header {
            more = self.reader.read_byte_record(&mut record).map_err(|e| broken(self.name, &e))?;
        }
        while more {
            let line = self.lines.of(&record);
            if record.len() != width {
                let message =
                    format!("the row has {} columns, the first has {width}", record.len());
                let mark = char::from(self.delimiter);
                let hint = format!(
                    "{mark:?} separates cells here: quote cells that contain it, and write decimal \
                     points; another `delimiter` can be given"
                );
                let error = Error::data("data/ragged", message);
                return Err(error.at(format!("{}:{line}", self.name)).hint(hint));
            }
            f(line, record.iter())?;
            more = self.reader.read_byte_record(&mut record).map_err(|e| broken(self.name, &e))?;
        }
        Ok(())
    }
}

/// The error for cells that hold none of the categories of their columns.
fn uncategorised(odd: &OddCells, name: &str, names: &ColumnNames, plan: &Plan) -> Option<Error> {
    let (line, column, text) = odd.first()?;
    let at = plan.features.iter().position(|&j| j == column)?;
    let known = &plan.encoding.get(at)?.categories;
    let near = nearest(text, known.iter().map(String::as_str));
    let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let message = format!("`{text}` in {} is not one of its categories", names.shown(column));
    let hint = format!("{did}`categories` in [data] lists {}", known.join(", "));
    Some(Error::data("data/unknown-category", message).at(format!("{name}:{line}")).hint(hint))
}

/// The error for tables of which one has names of columns: encoded columns with names are in the order
/// of these, and those without in the order of the file.
pub fn unnamed_columns(whose: &str) -> Error {
    let message =
        format!("only one of {whose} has names of columns, so that they cannot be matched");
    Error::data("data/no-column", message)
        .hint("write the names in the first row of the other: encoded columns are matched by name")
}

pub fn number(cell: &[u8]) -> bool {
    std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok())
}

fn broken(name: &str, error: &csv::Error) -> Error {
    Error::data("data/bad-text", format!("the table cannot be read: {error}")).at(name)
}

fn find_column(
    column: &Column,
    first: &csv::ByteRecord,
    header: Header,
    name: &str,
) -> Result<usize> {
    let none = |message: String, hint: String| {
        Err(Error::data("data/no-column", message).at(format!("{name}:1")).hint(hint))
    };
    let width = first.len() as i64;
    match column {
        Column::Number(number) => match if *number < 0 { width + number } else { *number } {
            found if (0..width).contains(&found) => Ok(found as usize),
            _ => none(
                format!("there is no column {number}: the first row has {width} columns"),
                format!("columns are numbered 0 to {}, or -1 for the last", width - 1),
            ),
        },
        Column::Name(wanted) => {
            let named = |cell: &[u8]| header != Header::No && cell == wanted.as_bytes();
            let found: Vec<usize> =
                first.iter().enumerate().filter(|(_, cell)| named(cell)).map(|(j, _)| j).collect();
            let names: Vec<_> = first.iter().map(String::from_utf8_lossy).collect();
            let near = nearest(wanted, names.iter().map(AsRef::as_ref));
            let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let some = names.iter().take(20).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
            let hint = format!("{did}the first row has {some}; or give the column's number");
            match found[..] {
                [found] => Ok(found),
                [] => none(format!("no column is named `{wanted}`"), hint),
                _ => none(format!("several columns are named `{wanted}`"), hint),
            }
        }
    }
}
