//! Reading experiment files strictly: every complaint has its file, line and column.

mod complaint;
mod extends;
mod flat;
mod overrides;
pub mod range;
mod registry;
mod section;

pub use flat::flat;
pub use registry::{Choice, Entry, NoParams, Params, Registry};
pub use section::Section;

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Result;

/// A text to read: an experiment file on top of those it extends, with the `--set` overrides on top of all.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's name, or its substitute in messages.
    pub name: String,
    /// The file's text.
    pub text: String,
    /// The files that it extends, the nearest first.
    pub bases: Vec<Base>,
    /// Overrides as typed: `run.batch=20`.
    pub sets: Vec<String>,
}

/// A file that another one extends.
#[derive(Debug, Clone)]
pub struct Base {
    /// Its path.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Source {
    /// A text without overrides, which extends no file.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into(), bases: Vec::new(), sets: Vec::new() }
    }

    /// The place of a span: `file:line:column`, or the override that contains it.
    ///
    /// One text follows another: the file, the files it extends, the overrides.
    pub fn place(&self, span: &Range<usize>) -> String {
        let mut at = span.start;
        for (name, text) in self.files() {
            if at <= text.len() {
                return place(name, text, at);
            }
            at -= text.len() + 1;
        }
        for set in &self.sets {
            if at <= set.len() {
                return format!("--set {set}");
            }
            at -= set.len() + 1;
        }
        place(&self.name, &self.text, self.text.len())
    }

    /// The file, then those it extends: names and texts.
    fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let bases = self.bases.iter().map(|base| (&base.name[..], &base.text[..]));
        [(&self.name[..], &self.text[..])].into_iter().chain(bases)
    }

    /// Where the spans of the `i`-th file begin; those of the first override follow the last file.
    fn offset(&self, i: usize) -> usize {
        self.files().take(i).map(|(_, text)| text.len() + 1).sum()
    }

    /// The table of the `i`-th file alone.
    fn table(&self, i: usize) -> Result<DeTable<'_>> {
        let (offset, text) = (self.offset(i), self.files().nth(i).expect("a file").1);
        let parsed = DeTable::parse(text).map_err(|error| self.syntax(&error, offset))?;
        Ok(overrides::shifted_table(parsed.into_inner(), offset))
    }

    /// The whole text as a section, overrides applied.
    pub fn root(&self) -> Result<Section<'_>> {
        let mut table = self.merged()?;
        for i in 0..self.sets.len() {
            self.apply(i, &mut table)?;
        }
        Ok(Section::root(self, table))
    }

    /// Where each value was given: `run.batch` → `file:12:9`, list entries by their number.
    pub fn origins(&self) -> Result<BTreeMap<String, String>> {
        let mut origins = BTreeMap::new();
        let root = Spanned::new(0..0, DeValue::Table(self.root()?.into_table()));
        self.note_origins("", &root, &mut origins);
        Ok(origins)
    }

    fn note_origins(
        &self,
        path: &str,
        value: &Spanned<DeValue>,
        into: &mut BTreeMap<String, String>,
    ) {
        match value.get_ref() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    self.note_origins(&below(path, key.get_ref()), value, into);
                }
            }
            DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
                for (i, item) in items.iter().enumerate() {
                    self.note_origins(&below(path, &i.to_string()), item, into);
                }
            }
            _ => {
                into.insert(path.to_string(), self.place(&value.span()));
            }
        }
    }
}

/// `file:line:column` of a byte of a text.
fn place(name: &str, text: &str, at: usize) -> String {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    format!("{name}:{line}:{column}")
}

/// The path of a key in a section: `run.batch`.
fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}
