//! Tables of numbers in text files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::Names;
use super::raw::{Part, Raw, Table};
use super::{Where, file};
use crate::data::{Columns, Features};
use crate::error::{Error, Fault, Result};
use crate::params;

params! {
    /// Parameters of `csv`.
    pub struct Csv {
        /// The file, plain or `.gz`.
        path: String = String::new(), required;
        /// A file with the same columns and the test rows.
        test_path: Option<String> = None;
        /// Whether the first row has the column names.
        header: Header = Header::Auto;
        /// The column of the labels: its name, or its number from 0 (-1 is the last).
        label: Column = Column::Number(-1);
        /// The column with each row's group; it is not a feature.
        group: Option<Column> = None;
        /// The character that separates cells.
        delimiter: String = ",".into();
    }
    check |csv| {
        let one = csv.delimiter.len() == 1 && !"\"\r\n".contains(&csv.delimiter);
        let must = "one ASCII character other than a quote or a line end";
        Fault::unless(one, "delimiter", format_args!("{:?}", csv.delimiter), must)
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

pub fn read(csv: &Csv, place: &Where) -> Result<Raw> {
    let (mut labels, mut groups) = (Names::default(), Names::default());
    let names = (&mut labels, &mut groups);
    let (train, columns) = read_part(csv, &csv.path, place, None, names)?;
    let test = match &csv.test_path {
        None => None,
        Some(path) => {
            let like = Some((train.table.cols(), columns.as_ref()));
            Some(read_part(csv, path, place, like, (&mut labels, &mut groups))?.0)
        }
    };
    let raw = Raw::named(train, test, labels, groups).map_err(|error| error.at(&csv.path))?;
    Ok(Raw { columns, test_at: csv.test_path.clone(), ..raw })
}

fn read_part(
    csv: &Csv,
    path: &str,
    place: &Where,
    like: Option<(usize, Option<&Columns>)>,
    names: (&mut Names, &mut Names),
) -> Result<(Part, Option<Columns>)> {
    let (name, bytes) = file::read(&file::find(path, place)?)?;
    let rows = CsvReader::open(&name, &bytes, csv.delimiter.as_bytes()[0])?;
    let label = rows.find(&csv.label, csv.header)?;
    let group = csv.group.as_ref().map(|group| rows.find(group, csv.header)).transpose()?;
    if group == Some(label) {
        let message = format!("column {label} cannot be both the label and the group");
        return Err(Error::data("data/no-column", message).at(format!("{name}:1")));
    }
    let cols = rows.width() - 1 - usize::from(group.is_some());
    if cols == 0 {
        let error = Error::data("data/no-features", "no column is left for the features");
        let near = if rows.first.iter().any(|cell| cell.iter().any(|b| b";\t |".contains(b))) {
            "do the cells have another `delimiter`?"
        } else {
            "a row needs features and a label"
        };
        return Err(error.at(format!("{name}:1")).hint(near));
    }
    let mut plan = rows.plan(csv.header, Some(label), group);
    let mut columns = rows.names(&plan);
    match (like, &columns) {
        (Some((_, Some(like))), Some(found)) => {
            plan.reorder(&like.order(&found.features).map_err(|e| e.at(format!("{name}:1")))?);
            columns = Some(like.clone());
        }
        (Some((like, _)), _) if like != cols => {
            let message = format!("the test rows have {cols} features, the training rows {like}");
            return Err(Error::data("data/shape-mismatch", message).at(format!("{name}:1")));
        }
        _ => {}
    }
    Ok((rows.read(&plan, names)?, columns))
}

/// Which columns of a table are what.
pub struct Plan {
    header: bool,
    pub label: Option<usize>,
    group: Option<usize>,
    /// The feature columns, in the order in which they are used.
    features: Vec<usize>,
}

impl Plan {
    /// Puts the features in another order, given by their places in this one.
    pub fn reorder(&mut self, order: &[usize]) {
        self.features = order.iter().map(|&at| self.features[at]).collect();
    }
}

/// A file of rows, of which the first has been read.
pub struct CsvReader<'a> {
    name: &'a str,
    reader: csv::Reader<&'a [u8]>,
    first: csv::ByteRecord,
}

impl<'a> CsvReader<'a> {
    /// Opens a file with these contents.
    pub fn open(name: &'a str, bytes: &'a [u8], delimiter: u8) -> Result<CsvReader<'a>> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return Err(Error::data("data/bad-text", "the text is UTF-16, not UTF-8")
                .at(format!("{name}:1"))
                .hint("save it as UTF-8"));
        }
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .delimiter(delimiter)
            .from_reader(bytes);
        let mut first = csv::ByteRecord::new();
        if !reader.read_byte_record(&mut first).map_err(|error| broken(name, &error))? {
            return Err(Error::data("data/empty", "the file is empty").at(name));
        }
        Ok(CsvReader { name, reader, first })
    }

    /// Number of columns of the first row.
    pub fn width(&self) -> usize {
        self.first.len()
    }

    /// The number of a column.
    pub fn find(&self, column: &Column, header: Header) -> Result<usize> {
        find_column(column, &self.first, header, self.name)
    }

    /// Every column but the label and the group is a feature.
    pub fn plan(&self, header: Header, label: Option<usize>, group: Option<usize>) -> Plan {
        let is_feature = |&j: &usize| Some(j) != label && Some(j) != group;
        let features: Vec<usize> = (0..self.width()).filter(is_feature).collect();
        let header = match header {
            Header::Yes => true,
            Header::No => false,
            Header::Auto => !features.iter().any(|&j| number(&self.first[j])),
        };
        Plan { header, label, group, features }
    }

    /// The cells of the first row as text.
    pub fn cells(&self) -> Vec<String> {
        self.first.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
    }

    /// The names of the columns, if the first row has them.
    pub fn names(&self, plan: &Plan) -> Option<Columns> {
        let cells = self.cells();
        plan.header.then(|| Columns {
            features: plan.features.iter().map(|&j| cells[j].clone()).collect(),
            label: plan.label.map(|j| cells[j].clone()),
            group: plan.group.map(|j| cells[j].clone()),
        })
    }

    /// Reads all rows.
    pub fn read(
        self,
        &Plan { header, label, group, ref features }: &Plan,
        (labels, groups): (&mut Names, &mut Names),
    ) -> Result<Part> {
        let (name, cols) = (self.name, features.len());
        let mut part = Part {
            table: Table::Numbers(Features::Dense { cols, values: vec![] }),
            labels: vec![],
            groups: vec![],
        };
        let mut values = Vec::new();
        let mut places = vec![None; self.width()];
        features.iter().enumerate().for_each(|(place, &j)| places[j] = Some(place));
        self.each(header, |line, cells| {
            let start = values.len();
            values.resize(start + cols, 0.0);
            for (j, cell) in cells.enumerate() {
                let place = || format!("{name}:{line}");
                let text = text(cell, j).map_err(|error| error.at(place()))?;
                if Some(j) == label {
                    part.labels.push(named(text, j, labels).map_err(|error| error.at(place()))?);
                } else if Some(j) == group {
                    part.groups.push(named(text, j, groups).map_err(|error| error.at(place()))?);
                } else if let Some(feature) = places[j] {
                    values[start + feature] = finite(text, j).map_err(|error| error.at(place()))?;
                }
            }
            Ok(())
        })?;
        if values.is_empty() {
            return Err(Error::data("data/empty", "the file has no rows").at(name));
        }
        part.table = Table::Numbers(Features::Dense { cols, values });
        Ok(part)
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
            let line = record.position().map_or(0, csv::Position::line);
            if record.len() != width {
                let message =
                    format!("the row has {} columns, the first has {width}", record.len());
                return Err(Error::data("data/ragged", message).at(format!("{}:{line}", self.name)));
            }
            f(line, record.iter())?;
            more = self.reader.read_byte_record(&mut record).map_err(|e| broken(self.name, &e))?;
        }
        Ok(())
    }
}

pub fn number(cell: &[u8]) -> bool {
    std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok())
}

fn text(cell: &[u8], j: usize) -> Result<&str> {
    std::str::from_utf8(cell)
        .map_err(|_| Error::data("data/bad-text", format!("column {j} is not UTF-8 text")))
}

fn named(text: &str, j: usize, names: &mut Names) -> Result<u32> {
    names.number(text).ok_or_else(|| {
        Error::data("data/bad-label", format!("`{text}` in column {j} is not a valid name"))
    })
}

fn finite(text: &str, j: usize) -> Result<f64> {
    let number: f64 = text.parse().map_err(|_| {
        Error::data("data/bad-number", format!("`{text}` in column {j} is not a number"))
            .hint("features must be numbers: fill in missing values, encode categories")
    })?;
    match number.is_finite() {
        true => Ok(number),
        false => Err(Error::data("data/not-finite", format!("column {j} holds `{text}`"))
            .hint("fill in missing values, or leave the row out")),
    }
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
            let names: Vec<_> = first.iter().take(20).map(String::from_utf8_lossy).collect();
            let hint =
                format!("the first row has {}; or give the column's number", names.join(", "));
            match found[..] {
                [found] => Ok(found),
                [] => none(format!("no column is named `{wanted}`"), hint),
                _ => none(format!("several columns are named `{wanted}`"), hint),
            }
        }
    }
}
