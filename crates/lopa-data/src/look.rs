//! A description of a file before it is used: columns, types, missing values, classes.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::path::Path;

use serde::Serialize;

use super::doubt::{Edge, Remark, Values};
use super::source::{Odd, RawLook, look_csv, look_raw};
use crate::error::Result;

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Look {
    /// Its format: the name of the source that reads it.
    pub format: &'static str,
    /// The delimiter of a text table, if it is not a comma.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// Whether the columns have names.
    #[serde(skip)]
    pub header: bool,
    /// The number of rows.
    pub rows: usize,
    /// Names that several columns have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeated_names: Vec<String>,
    /// The feature columns.
    pub columns: Vec<ColumnLook>,
    /// The labels, if the file has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelLook>,
    /// The share of entries that are not zero.
    pub density: f64,
}

/// A column of features.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnLook {
    /// Its name, or its number as in the file: from 0, and in LIBSVM files usually from 1.
    pub name: String,
    /// The type of its cells.
    pub kind: CellKind,
    /// Cells that are empty, `NA`, `NaN`, `null` or `?`.
    pub missing: usize,
    /// How many different values there are, up to [`MAX_DISTINCT`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<usize>,
    /// Zeros.
    pub zeros: usize,
    /// The smallest number.
    pub min: f64,
    /// The largest number.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// A cell that is not a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reason why it is doubtful as a feature.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// Whether no value occurs twice.
    #[serde(skip)]
    pub unique: bool,
    /// Its different cells, in order, if they are words, and at most [`MAX_CATEGORIES`] of them.
    #[serde(skip)]
    pub words: Vec<String>,
}

impl ColumnLook {
    /// A cell that is not a number, and the remedy; `key` is the name of the column in `drop`.
    pub fn odd(&self, key: &str) -> Option<(String, String)> {
        let text = self.text.clone()?;
        let remedy = Odd::of(&text).remedy(&text, key);
        Some((text, remedy))
    }

    /// Whether it holds words, and not numbers or dates written in another way.
    pub fn holds_words(&self) -> bool {
        self.text.as_deref().is_some_and(|text| Odd::of(text) == Odd::Word)
    }
}

/// The type of a column's cells, apart from missing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// Some are not numbers.
    Text,
    /// All are missing.
    Empty,
}

/// The labels of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelLook {
    /// The column's or array's name or number.
    pub name: String,
    /// The classes and their numbers of rows, in the order of their numbers.
    pub classes: Vec<(String, usize)>,
    /// Rows without a label.
    pub missing: usize,
    /// Whether they look like numbers to predict, and not like classes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub numbers: bool,
    /// Why these labels are refused as classes, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The same as a column, if it is one.
    #[serde(skip)]
    pub column: Option<ColumnLook>,
}

/// A column of words with more different ones is not listed as categories.
pub const MAX_CATEGORIES: usize = 20;

/// Distinct values are counted up to this number.
pub const MAX_DISTINCT: usize = 1000;

/// Describes a file; `label` names the column of the labels, by default the usual one of its
/// source.
pub fn look(path: &Path, label: Option<&str>) -> Result<Look> {
    match look_csv(path, label)? {
        Some(look) => Ok(look),
        None => Ok(Look::of(look_raw(path, label)?)),
    }
}

impl Look {
    /// A table of numbers.
    fn of(RawLook { format, raw, label, first }: RawLook) -> Look {
        let (table, rows) = (&raw.train.table, raw.train.table.rows());
        let names = raw.columns.as_ref().map(|columns| &columns.features[..]).unwrap_or_default();
        let mut cells = vec![Cells::default(); table.cols()];
        for row in 0..rows {
            table.each(row, |j, value| cells[j].add(value));
        }
        let zeros = |cells: &mut Cells| cells.add_zeros(rows - cells.seen);
        cells.iter_mut().for_each(zeros);
        let name = |j: usize| names.get(j).cloned().unwrap_or((first + j).to_string());
        let columns: Vec<_> =
            cells.into_iter().enumerate().map(|(j, cells)| cells.column(name(j), None)).collect();
        let labels = label.map(|name| {
            let mut counts = vec![0; raw.classes.len()];
            raw.train.labels.iter().for_each(|&label| counts[label as usize] += 1);
            let classes = raw.classes.iter().map(|class| class.name.clone()).zip(counts).collect();
            let refused = super::labels::check_classes(&raw).err().map(|error| error.message);
            let numbers = refused.is_some() && super::labels::are_numbers(&raw);
            LabelLook { name, classes, missing: 0, numbers, refused, column: None }
        });
        Look::new(format, rows, columns, labels)
    }

    /// From its columns.
    pub(super) fn new(
        format: &'static str,
        rows: usize,
        columns: Vec<ColumnLook>,
        labels: Option<LabelLook>,
    ) -> Look {
        let zeros: usize = columns.iter().map(|column| column.zeros).sum();
        let density = 1.0 - zeros as f64 / (rows * columns.len()).max(1) as f64;
        let label =
            labels.iter().filter(|labels| labels.column.is_some()).map(|labels| &labels.name);
        let names: Vec<&String> = columns.iter().map(|column| &column.name).chain(label).collect();
        let mut seen = HashSet::new();
        let mut repeated_names: Vec<String> =
            names.into_iter().filter(|name| !seen.insert(*name)).cloned().collect();
        repeated_names.dedup();
        let (delimiter, header) = (None, false);
        Look { format, delimiter, header, rows, repeated_names, columns, labels, density }
    }
}

/// The cells of a column so far.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    seen: usize,
    zeros: usize,
    whole: bool,
    low: Edge,
    high: Edge, // of the numbers with their signs changed
    mean: f64,
    square: f64,
    values: Values,
    pub(super) missing: usize,
    texts: usize,
    text: Option<String>,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells {
            seen: 0,
            zeros: 0,
            whole: true,
            low: Edge::default(),
            high: Edge::default(),
            mean: 0.0,
            square: 0.0,
            values: Values::default(),
            missing: 0,
            texts: 0,
            text: None,
        }
    }
}

impl Cells {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.seen += 1;
        self.zeros += usize::from(value == 0.0);
        self.whole &= value.fract() == 0.0;
        self.low.add(value, 1);
        self.high.add(-value, 1);
        let off = value - self.mean;
        self.mean += off / self.seen as f64;
        self.square += off * (value - self.mean);
        match self.whole {
            true => self.values.add(value.to_bits(), Some(value)),
            false => self.values.forget(),
        }
    }

    /// Adds a cell that is no number.
    pub fn add_text(&mut self, text: &str) {
        let mut hasher = std::hash::DefaultHasher::new();
        text.hash(&mut hasher);
        self.texts += 1;
        self.values.add(hasher.finish(), None);
        self.text.get_or_insert_with(|| text.to_string());
    }

    /// Adds zeros that are not stored.
    fn add_zeros(&mut self, count: usize) {
        if count > 0 {
            let (seen, more) = (self.seen as f64, count as f64);
            let all = seen + more;
            self.square += self.mean * self.mean * seen * more / all;
            self.mean *= seen / all;
            (self.seen, self.zeros) = (self.seen + count, self.zeros + count);
            self.low.add(0.0, count);
            self.high.add(0.0, count);
            if count > 1 {
                self.values.forget();
            }
        }
    }

    /// The description of the column.
    pub fn column(self, name: String, distinct: Option<&HashSet<String>>) -> ColumnLook {
        let kind = match (&self.text, self.seen, self.whole) {
            (Some(_), ..) => CellKind::Text,
            (None, 0, _) => CellKind::Empty,
            (None, _, true) => CellKind::Integer,
            (None, _, false) => CellKind::Number,
        };
        let some = |value: f64| if self.seen == 0 { 0.0 } else { value };
        let words = distinct.filter(|words| {
            let all = |word: &String| Odd::of(word) == Odd::Word;
            self.seen == 0 && words.len() <= MAX_CATEGORIES && words.iter().all(all)
        });
        let mut words: Vec<String> = words.into_iter().flatten().cloned().collect();
        words.sort_unstable();
        ColumnLook {
            words,
            remarks: self.remarks(&name, kind, distinct),
            unique: self.values.all_differ(),
            name,
            kind,
            missing: self.missing,
            distinct: distinct.map(HashSet::len),
            zeros: self.zeros,
            min: some(self.low.value),
            max: some(-self.high.value),
            mean: self.mean,
            deviation: some((self.square / self.seen.max(1) as f64).sqrt()),
            text: self.text,
        }
    }

    /// The reason why the column is doubtful as a feature.
    fn remarks(
        &self,
        name: &str,
        kind: CellKind,
        distinct: Option<&HashSet<String>>,
    ) -> Vec<Remark> {
        let rows = self.seen + self.texts;
        let one_text = self.seen == 0 && distinct.is_some_and(|distinct| distinct.len() == 1);
        let one_number = self.texts == 0 && self.low.value == -self.high.value;
        if rows > 1 && self.missing == 0 && (one_text || one_number) {
            return vec![Remark::Constant];
        }
        let word = || self.text.as_deref().is_none_or(|text| Odd::of(text) == Odd::Word);
        let whole = kind == CellKind::Integer || kind == CellKind::Text;
        if whole
            && self.missing == 0
            && self.values.identify(rows, name, &self.low, &self.high)
            && word()
        {
            return vec![Remark::Identifier];
        }
        let mut remarks = Vec::new();
        for (edge, other, sign) in [(&self.low, &self.high, 1.0), (&self.high, &self.low, -1.0)] {
            if edge.stands_for_nothing(-other.value, sign) {
                remarks.push(Remark::Sentinel { value: sign * edge.value, cells: edge.count });
            }
        }
        remarks
    }
}
