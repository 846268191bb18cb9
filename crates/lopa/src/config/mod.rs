//! Reading experiment files strictly: every complaint has its file, line and column.

mod complaint;
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

/// A text to read: an experiment file, with the `--set` overrides put on top of it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's name, or what stands for it in messages.
    pub name: String,
    /// The file's text.
    pub text: String,
    /// Overrides as typed: `run.batch=20`.
    pub sets: Vec<String>,
}

impl Source {
    /// A text without overrides.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into(), sets: Vec::new() }
    }

    /// The place of a span: `file:line:column`, or the override it stands in.
    ///
    /// Spans of the n-th override are shifted behind the text.
    pub fn place(&self, span: &Range<usize>) -> String {
        if let Some(set) = (0..self.sets.len()).rev().find(|&i| span.start >= self.offset(i)) {
            return format!("--set {}", self.sets[set]);
        }
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }

    /// Where the spans of the `i`-th override begin.
    fn offset(&self, i: usize) -> usize {
        self.text.len() + 1 + self.sets[..i].iter().map(|set| set.len() + 1).sum::<usize>()
    }

    /// The whole text as a section, overrides applied.
    pub fn root(&self) -> Result<Section<'_>> {
        let parsed = DeTable::parse(&self.text).map_err(|error| self.syntax(&error))?;
        let mut table = parsed.into_inner();
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

/// The path of a key in a section: `run.batch`.
fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}
