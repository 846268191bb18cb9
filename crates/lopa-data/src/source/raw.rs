//! A labelled table as its source has it, with numbered classes.

use std::borrow::Cow;
use std::sync::Arc;

use super::names::Names;
use crate::error::{Error, Result};
use crate::{Bytes, Columns, Features, Method, Scaling, Unnamed};

/// A data set before preparation.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw {
    /// The training rows; without a test set, also the rows to hold out for testing. Rows for validation are the last
    /// ones.
    pub train: Part,
    /// How many rows are for validation.
    pub validation: usize,
    /// The test rows, if the source has a test set.
    pub test: Option<Part>,
    /// The classes that occur, in the order of their numbers.
    pub classes: Vec<Class>,
    /// The names of the groups, in the order of their numbers; empty if rows have no groups.
    pub groups: Vec<String>,
    /// How this data is usually scaled.
    pub usual: Usual,
    /// The names of the columns, if the source has any.
    pub columns: Option<Columns>,
    /// What must be known of columns without names.
    pub unnamed: Unnamed,
    /// Where the test rows come from, for messages.
    pub test_at: Option<String>,
    /// Whether the source, not its files, defines the classes: `classes` then chooses among them.
    pub known: bool,
    /// Columns of labels: several only where they are numbers to predict.
    pub outputs: usize,
    /// The error about cells without a value, unless these are filled; they are NaN.
    pub missing: Option<Error>,
}

impl Raw {
    /// Rows of features, the index of each row's class, and the names of the classes.
    pub fn new(features: Features<f64>, labels: Vec<u32>, classes: &[&str]) -> Raw {
        let class = |name: &&str| Class { code: name.to_string(), name: name.to_string() };
        Raw {
            train: Part { table: Table::Numbers(features), labels, groups: Vec::new() },
            validation: 0,
            test: None,
            classes: classes.iter().map(class).collect(),
            groups: Vec::new(),
            usual: Usual::nothing(),
            columns: None,
            unnamed: Unnamed::default(),
            test_at: None,
            known: true,
            outputs: 1,
            missing: None,
        }
    }
}

impl Raw {
    /// The training rows, and the test rows if the source has any.
    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        std::iter::once(&mut self.train).chain(&mut self.test)
    }

    /// The names of the numbers to predict: those of their columns, or `y`, `y2`, `y3`, …
    pub(crate) fn output_names(&self) -> Vec<String> {
        let columns = self.columns.as_ref();
        let named = columns.map_or(Vec::new(), |columns| columns.outputs());
        let other = |o: usize| if o == 0 { "y".into() } else { format!("y{}", o + 1) };
        (0..self.outputs).map(|o| named.get(o).cloned().unwrap_or_else(|| other(o))).collect()
    }

    /// Leaves out the features that the file numbers so; its first one has the number `first`.
    pub(super) fn without(mut self, numbers: &[u32], first: u32) -> Result<Raw> {
        if numbers.is_empty() {
            return Ok(self);
        }
        let cols = self.train.table.cols();
        let mut dropped = Vec::new();
        for &number in numbers {
            let place = number.checked_sub(first).map(|place| place as usize);
            let place = place.filter(|&place| place < cols).ok_or_else(|| {
                let message = format!("feature {number} cannot be left out: there is none");
                let last = cols as u64 + u64::from(first) - 1;
                Error::data("data/no-column", message)
                    .hint(format!("features have the numbers {first} to {last} here"))
            })?;
            dropped.push(place);
        }
        dropped.sort_unstable();
        dropped.dedup();
        if dropped.len() == cols {
            return Err(Error::data("data/no-features", "`drop` leaves no feature")
                .hint("a row needs features and a label"));
        }
        let kept: Vec<usize> = kept(cols, &dropped).collect();
        for part in std::iter::once(&mut self.train).chain(&mut self.test) {
            part.table = part.table.columns_at(&kept);
        }
        self.unnamed.dropped = dropped;
        Ok(self)
    }
}

/// The places that are not left out.
pub fn kept(cols: usize, dropped: &[usize]) -> impl Iterator<Item = usize> {
    (0..cols).filter(|place| !dropped.contains(place))
}

/// Rows with their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The features.
    pub table: Table,
    /// The class number of each row.
    pub labels: Vec<u32>,
    /// The group number of each row; empty if rows have no groups.
    pub groups: Vec<u32>,
}

impl Part {
    /// Adds rows at the end; they have as many features.
    pub(super) fn append(&mut self, other: Part) {
        self.table = self.table.stacked(&other.table);
        self.labels.extend(other.labels);
        self.groups.extend(other.groups);
    }
}

/// A class; users may choose it by code or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// As written in the file: `5`.
    pub code: String,
    /// For people: `dog`.
    pub name: String,
}

/// The default scaling of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Usual {
    /// The method.
    pub method: Method,
    /// The largest possible value of a feature, if known.
    pub maximum: Option<f64>,
    /// The columns to standardise, if not all.
    pub columns: Option<Vec<usize>>,
}

impl Usual {
    /// No scaling, for unknown data.
    pub fn nothing() -> Usual {
        Usual { method: Method::None, maximum: None, columns: None }
    }
}

/// Raw features. Bytes stay bytes until their rows are chosen: an eighth of the memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Table {
    /// Pixels, row after row.
    Bytes {
        /// Number of columns.
        cols: usize,
        /// rows × cols entries.
        values: Arc<Vec<u8>>,
    },
    /// Any numbers.
    Numbers(Features<f64>),
}

impl Table {
    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Table::Bytes { cols, .. } => *cols,
            Table::Numbers(features) => features.cols(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Table::Bytes { cols, values } => values.len() / (*cols).max(1),
            Table::Numbers(features) => features.rows(),
        }
    }

    /// These rows, then others with as many features.
    fn stacked(&self, other: &Table) -> Table {
        match (self, other) {
            (Table::Bytes { cols, values }, Table::Bytes { values: more, .. }) => {
                Table::Bytes { cols: *cols, values: Arc::new([&values[..], &more[..]].concat()) }
            }
            _ => Table::Numbers(Features::stacked(&[&self.numbers(), &other.numbers()])),
        }
    }

    fn numbers(&self) -> Cow<'_, Features<f64>> {
        match self {
            Table::Bytes { cols, values } => Cow::Owned(Features::Dense {
                cols: *cols,
                values: values.iter().copied().map(f64::from).collect(),
            }),
            Table::Numbers(features) => Cow::Borrowed(features),
        }
    }

    /// The columns at the given places, in that order.
    pub fn columns_at(&self, order: &[usize]) -> Table {
        match self {
            Table::Bytes { cols, values } => {
                let row = |row: &[u8]| order.iter().map(|&j| row[j]).collect::<Vec<u8>>();
                let values = values.chunks_exact((*cols).max(1)).flat_map(row).collect();
                Table::Bytes { cols: order.len(), values: Arc::new(values) }
            }
            Table::Numbers(features) => Table::Numbers(features.columns_at(order)),
        }
    }

    /// Whether some entry has no value.
    pub(crate) fn has_missing(&self) -> bool {
        match self {
            Table::Bytes { .. } => false,
            Table::Numbers(features) => features.has_missing(),
        }
    }

    /// The same with missing values filled.
    pub(crate) fn filled(&self, filling: &Scaling) -> Table {
        match self {
            Table::Numbers(features) => Table::Numbers(filling.apply(features.clone())),
            bytes => bytes.clone(),
        }
    }

    /// Whether only nonzero entries are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Table::Numbers(Features::Sparse { .. }))
    }

    /// Calls `f(column, value)` for every stored entry of a row.
    pub fn each(&self, row: usize, mut f: impl FnMut(usize, f64)) {
        match self {
            Table::Bytes { cols, values } => {
                let row = &values[row * cols..(row + 1) * cols];
                row.iter().enumerate().for_each(|(j, &value)| f(j, f64::from(value)));
            }
            Table::Numbers(features) => features.each(row, f),
        }
    }

    /// Calls `f(column, value)` for every nonzero entry of a row.
    fn each_nonzero(&self, row: usize, mut f: impl FnMut(usize, f64)) {
        let Table::Bytes { cols, values } = self else {
            return self.each(row, |j, value| {
                if value != 0.0 {
                    f(j, value)
                }
            });
        };
        // Zero pixels come in runs: skip eight at a time.
        for (e, eight) in values[row * cols..(row + 1) * cols].chunks(8).enumerate() {
            if eight.iter().fold(0, |any, byte| any | byte) != 0 {
                let entries = eight.iter().enumerate().filter(|(_, byte)| **byte != 0);
                entries.for_each(|(i, &byte)| f(8 * e + i, f64::from(byte)));
            }
        }
    }

    /// Some rows, scaled.
    pub fn take(&self, rows: &[u32], scaling: &Scaling, sparse: bool) -> Features<f64> {
        if sparse { self.take_sparse(rows, scaling) } else { self.take_dense(rows, scaling) }
    }

    /// Some rows as bytes, if they are bytes with a single factor; all rows are shared, not copied.
    pub fn bytes(&self, rows: &[u32], scaling: &Scaling) -> Option<Bytes<f64>> {
        let Table::Bytes { cols, values } = self else { return None };
        if !scaling.is_affine() {
            return None;
        }
        let unit = scaling.factor.first().copied().unwrap_or(1.0);
        let shift = (0..*cols).map(|j| scaling.shift.get(j).copied().unwrap_or(0.0)).collect();
        let all = Bytes { bytes: values.clone(), unit, shift };
        let is_all = rows.iter().copied().eq(0..all.rows() as u32);
        let alike = scaling.factor.iter().all(|&factor| factor == unit);
        alike.then(|| if is_all { all } else { all.select(rows) })
    }

    /// Some rows as a table of their own, if they are bytes; all rows are shared, not copied.
    pub(crate) fn rows_of_bytes(&self, rows: &[u32]) -> Option<Table> {
        let Table::Bytes { cols, values } = self else { return None };
        if rows.iter().copied().eq(0..self.rows() as u32) {
            return Some(self.clone());
        }
        let row = |&row: &u32| &values[row as usize * cols..(row as usize + 1) * cols];
        let values = rows.iter().flat_map(row).copied().collect();
        Some(Table::Bytes { cols: *cols, values: Arc::new(values) })
    }

    fn take_dense(&self, rows: &[u32], scaling: &Scaling) -> Features<f64> {
        let cols = self.cols();
        let mut values = Vec::with_capacity(rows.len() * cols);
        for row in rows.iter().map(|&row| row as usize) {
            let start = values.len();
            match self {
                Table::Bytes { values: bytes, .. } => {
                    let row = &bytes[row * cols..(row + 1) * cols];
                    values.extend(row.iter().map(|&byte| f64::from(byte)));
                }
                Table::Numbers(Features::Dense { values: raw, .. }) => {
                    values.extend_from_slice(&raw[row * cols..(row + 1) * cols]);
                }
                Table::Numbers(raw) => {
                    values.resize(start + cols, 0.0);
                    raw.each(row, |j, value| values[start + j] = value);
                }
            }
            scaling.row(&mut values[start..]);
        }
        Features::Dense { cols, values }
    }

    fn take_sparse(&self, rows: &[u32], scaling: &Scaling) -> Features<f64> {
        let filled = scaling.filled();
        let mut starts = vec![0];
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for &row in rows {
            let mut filled = filled.iter().copied().peekable();
            let mut push = |j: u32, raw: f64| {
                columns.push(j);
                values.push(scaling.entry(j as usize, raw));
            };
            self.each_nonzero(row as usize, |j, value| {
                let j = j as u32;
                while let Some(before) = filled.next_if(|&column| column < j) {
                    push(before, 0.0);
                }
                filled.next_if_eq(&j);
                push(j, value);
            });
            filled.for_each(|after| push(after, 0.0));
            let start = starts.last().copied().unwrap_or(0);
            scaling.shorten(&mut values[start..]);
            starts.push(columns.len());
        }
        Features::Sparse { cols: self.cols(), starts, columns, values }
    }
}

impl Raw {
    /// A data set of its training rows, rows for validation and test rows, whose labels and groups are provisional
    /// numbers of names.
    pub fn named(
        (mut train, validation, mut test): (Part, Option<Part>, Option<Part>),
        labels: Names,
        groups: Names,
    ) -> Raw {
        let validation = validation.map_or(0, |part| {
            let rows = part.labels.len();
            train.append(part);
            rows
        });
        let (classes, class) = labels.sorted();
        let (groups, group) = groups.sorted();
        for part in [Some(&mut train), test.as_mut()].into_iter().flatten() {
            part.labels.iter_mut().for_each(|label| *label = class[*label as usize]);
            part.groups.iter_mut().for_each(|of| *of = group[*of as usize]);
        }
        let classes = classes.into_iter().map(|name| Class { code: name.clone(), name }).collect();
        Raw {
            train,
            validation,
            test,
            classes,
            groups,
            usual: Usual::nothing(),
            columns: None,
            unnamed: Unnamed::default(),
            test_at: None,
            known: false,
            outputs: 1,
            missing: None,
        }
    }

    /// A data set whose labels are small codes, with a name for each.
    pub fn coded(
        train: (Table, Vec<u8>),
        test: Option<(Table, Vec<u8>)>,
        name: impl Fn(u8) -> String,
        usual: Usual,
    ) -> Raw {
        let mut occurs = [false; 256];
        let codes =
            [Some(&train), test.as_ref()].into_iter().flatten().flat_map(|(_, codes)| codes);
        codes.for_each(|&code| occurs[code as usize] = true);
        let present: Vec<u8> = (0..=255).filter(|&code| occurs[code as usize]).collect();
        let mut number = [0; 256];
        (0..).zip(&present).for_each(|(new, &code)| number[code as usize] = new);
        let part = |(table, codes): (Table, Vec<u8>)| {
            let labels = codes.iter().map(|&code| number[code as usize]).collect();
            Part { table, labels, groups: Vec::new() }
        };
        let class = |&code: &u8| Class { code: code.to_string(), name: name(code) };
        let classes = present.iter().map(class).collect();
        let (train, test) = (part(train), test.map(part));
        let (groups, columns, test_at) = (Vec::new(), None, None);
        let unnamed = Unnamed::default();
        let known = true;
        let none = Raw::new(Features::Dense { cols: 1, values: Vec::new() }, Vec::new(), &[]);
        Raw { train, test, classes, groups, usual, columns, unnamed, test_at, known, ..none }
    }
}
