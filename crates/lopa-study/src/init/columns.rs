//! The columns of a file, or of one file per node: which are words, and which are not features.

use std::path::PathBuf;

use toml::Value;

use lopa::data::{CellKind, ColumnLook, MAX_CATEGORIES, Remark, look};
use lopa::error::{Error, Result, nearest};

/// The columns of some files, in the order of the first.
pub struct Table {
    place: String,
    header: bool,
    /// For each column, its descriptions in all files.
    columns: Vec<Vec<ColumnLook>>,
    rows: usize,
    repeated: Vec<String>,
}

impl Table {
    /// Inspects all files; columns are matched by name, or by position where they have no names.
    pub fn of(files: &[PathBuf]) -> Result<Table> {
        let mut table = Table {
            place: files[0].display().to_string(),
            header: false,
            columns: Vec::new(),
            rows: 0,
            repeated: Vec::new(),
        };
        for (at, file) in files.iter().enumerate() {
            let found = look(file, None)?;
            // The last column of a text table is used as the label there.
            let last = found.labels.and_then(|labels| labels.column);
            let all = found.columns.into_iter().chain(last);
            table.rows += found.rows;
            if at == 0 {
                (table.header, table.repeated) = (found.header, found.repeated_names);
                table.columns = all.map(|column| vec![column]).collect();
                continue;
            }
            for (j, column) in all.enumerate() {
                let own = |known: &&mut Vec<ColumnLook>| known[0].name == column.name;
                let known = match table.header && found.header {
                    true => table.columns.iter_mut().find(own),
                    false => table.columns.get_mut(j),
                };
                // Columns that only some files have are refused when the files are read.
                if let Some(known) = known {
                    known.push(column);
                }
            }
        }
        Ok(table)
    }

    pub fn width(&self) -> usize {
        self.columns.len()
    }

    pub fn name(&self, at: usize) -> &str {
        &self.columns[at][0].name
    }

    /// Whether a column has one of these names, in capitals or not.
    pub fn has_name(&self, at: usize, names: &[&str]) -> bool {
        self.header && names.contains(&self.name(at).to_lowercase().as_str())
    }

    /// A column as the keys of `[data]` name it.
    pub fn key(&self, at: usize) -> Value {
        match self.header && !self.repeated.iter().any(|name| name == self.name(at)) {
            true => self.name(at).into(),
            false => Value::Integer(at as i64),
        }
    }

    /// A column in a message: by name, and counted from 1.
    pub fn shown(&self, at: usize) -> String {
        let place = format!("{} of {}", at + 1, self.width());
        match self.header {
            true => format!("column `{}` ({place})", self.name(at)),
            false => format!("column {place}"),
        }
    }

    /// The column with a name or a number from 0; -1 is the last.
    pub fn find(&self, wanted: &str) -> Result<usize> {
        let names: Vec<&str> = (0..self.width()).map(|at| self.name(at)).collect();
        if let Some(at) = names.iter().position(|name| self.header && *name == wanted) {
            return Ok(at);
        }
        let width = self.width() as i64;
        let number = wanted.parse::<i64>().ok().map(|at| if at < 0 { width + at } else { at });
        if let Some(at) = number.filter(|at| (0..width).contains(at)) {
            return Ok(at as usize);
        }
        let error = Error::data("data/no-column", format!("there is no column `{wanted}`"));
        let (near, all) = match self.header {
            true => (nearest(wanted, names.iter().copied()), names.join(", ")),
            false => (None, format!("without names here, numbered from 0 to {}", width - 1)),
        };
        let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Err(error.at(&self.place).hint(format!("{did}the columns are {all}")))
    }

    /// The columns with these names or numbers.
    pub fn find_all(&self, wanted: &[String]) -> Result<Vec<usize>> {
        wanted.iter().map(|wanted| self.find(wanted)).collect()
    }

    /// Whether a column holds words that are neither all different nor all equal.
    pub fn is_word(&self, at: usize) -> bool {
        self.columns[at].iter().any(ColumnLook::holds_words) && self.doubt(at).is_none()
    }

    /// Whether a column of words or whole numbers has at least two values, and at most `most`.
    pub fn has_few_values(&self, at: usize, most: usize) -> bool {
        self.columns[at].iter().all(|column| {
            let whole = column.holds_words() || column.kind == CellKind::Integer;
            let few = column.distinct.is_some_and(|distinct| (2..=most).contains(&distinct));
            whole && few && column.missing == 0
        })
    }

    /// Whether no cell lacks a value.
    pub fn is_complete(&self, at: usize) -> bool {
        self.columns[at].iter().all(|column| column.missing == 0)
    }

    /// Whether a column holds numbers alone, none missing, from `low` to `high`.
    pub fn is_within(&self, at: usize, low: f64, high: f64) -> bool {
        self.columns[at].iter().all(|column| {
            let number = matches!(column.kind, CellKind::Integer | CellKind::Number);
            number && column.missing == 0 && low <= column.min && column.max <= high
        })
    }

    /// Whether a column is 0 or 1 in every row.
    pub fn is_flag(&self, at: usize) -> bool {
        let whole = |column: &ColumnLook| column.kind == CellKind::Integer;
        self.is_within(at, 0.0, 1.0) && self.columns[at].iter().all(whole)
    }

    fn is_text(&self, at: usize) -> bool {
        self.columns[at].iter().any(|column| column.kind == CellKind::Text)
    }

    /// The columns that are not features, and why.
    pub fn doubtful(&self) -> impl Iterator<Item = (usize, String)> {
        (0..self.width()).filter_map(|at| Some((at, self.doubt(at)?)))
    }

    /// Why a column is not a feature, if it is not.
    pub fn doubt(&self, at: usize) -> Option<String> {
        let all = &self.columns[at];
        let has = |remark: Remark| move |column: &ColumnLook| column.remarks.contains(&remark);
        let alike = |column: &ColumnLook| {
            (column.min, column.max, &column.text) == (all[0].min, all[0].max, &all[0].text)
        };
        if all.iter().all(has(Remark::Constant)) && all.iter().all(alike) {
            return Some("the same in all rows".into());
        }
        // A file with few rows may not show this.
        let names = |column: &ColumnLook| column.unique || has(Remark::Identifier)(column);
        if all.iter().any(has(Remark::Identifier)) && all.iter().all(names) {
            let rows = self.rows;
            return Some(format!(
                "an identifier: hardly a value occurs twice in {rows} rows (else take it out of `drop`)"
            ));
        }
        None
    }

    /// The words that a column holds in all files, if it holds nothing else and they are few.
    pub fn categories(&self, at: usize) -> Option<Vec<String>> {
        let all = &self.columns[at];
        let mut words: Vec<String> = all.iter().flat_map(|column| &column.words).cloned().collect();
        words.sort_unstable();
        words.dedup();
        let only_words = all.iter().all(|column| !column.words.is_empty());
        (only_words && (2..=MAX_CATEGORIES).contains(&words.len())).then_some(words)
    }

    /// A column as a key of `categories`: a name that is a number would be read as one.
    pub fn category_key(&self, at: usize) -> String {
        match self.key(at) {
            Value::String(name) if name.parse::<i64>().is_err() => name,
            _ => at.to_string(),
        }
    }

    /// Refuses features that are not numbers.
    pub fn refuse_words(&self, mut features: impl Iterator<Item = usize>) -> Result<()> {
        let Some(at) = features.find(|&at| self.is_text(at)) else { return Ok(()) };
        let odd = self.columns[at].iter().find(|column| column.text.is_some());
        let (text, remedy) =
            odd.and_then(|column| column.odd(&self.key(at).to_string())).unwrap_or_default();
        let message = format!("{} holds `{text}`, and features must be numbers", self.shown(at));
        let error = Error::data("data/bad-number", message).at(&self.place);
        Err(error.hint(match odd.is_some_and(ColumnLook::holds_words) {
            true => {
                let name = self.name(at);
                format!(
                    "if it is the label: --label {name}; if it says whose row it is: --nodes-from {name}; \
                     else leave it out with --drop {name}; a column of up to {MAX_CATEGORIES} different \
                     words alone is written as `categories`"
                )
            }
            false => format!("{remedy}; --drop leaves the column out"),
        }))
    }

    /// Notes for the user about the features.
    pub fn warnings(&self, is_feature: impl Fn(&usize) -> bool) -> Vec<String> {
        let mut warnings = Vec::new();
        for name in &self.repeated {
            warnings.push(format!("several columns are named `{name}`: give each its own name"));
        }
        for at in (0..self.width()).filter(is_feature) {
            for remark in self.columns[at].iter().flat_map(|column| &column.remarks) {
                if let Remark::Sentinel { value, cells } = remark {
                    let (s, are) = if *cells == 1 { ("", "is") } else { ("s", "are") };
                    warnings.push(format!(
                        "{}: {cells} cell{s} {are} {value}, far from all others; if that stands for a missing \
                         value, fill it in or leave the rows out: it counts as a number",
                        self.shown(at)
                    ));
                }
            }
        }
        warnings
    }
}
