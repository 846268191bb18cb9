//! Reading a table key by key.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::complaint::{Places, inside, missing_key, unknown_key};
use super::registry::Params;
use super::{Source, below};
use crate::error::{Error, Result, nearest};

/// A table being read: keys are taken out one by one; any key left over is an error.
pub struct Section<'s> {
    source: &'s Source,
    path: String,
    span: Range<usize>,
    table: DeTable<'s>,
}

impl<'s> Section<'s> {
    pub(super) fn root(source: &'s Source, table: DeTable<'s>) -> Section<'s> {
        Section { source, path: String::new(), span: 0..0, table }
    }

    pub(super) fn into_table(self) -> DeTable<'s> {
        self.table
    }

    /// The start of this section in the file.
    pub fn place(&self) -> String {
        self.source.place(&self.span)
    }

    /// The place of a key's value, or of the section if the key is absent.
    pub fn place_of(&self, key: &str) -> String {
        self.source.place(&self.table.get(key).map_or(self.span.clone(), |value| value.span()))
    }

    /// Whether the file has this key.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn sub(&self, path: String, value: Spanned<DeValue<'s>>) -> Result<Section<'s>> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Section { source: self.source, path, span, table }),
            // A bare name stands for a choice without parameters.
            DeValue::String(name) => {
                let key = Spanned::new(span.clone(), "name".into());
                let table =
                    DeTable::from_iter([(key, Spanned::new(span.clone(), DeValue::String(name)))]);
                Ok(Section { source: self.source, path, span, table })
            }
            other => Err(Error::config(
                "config/wrong-type",
                format!("`{path}` must be a table or a name, but it is {}", a(other.type_str())),
            )
            .at(self.source.place(&span))),
        }
    }

    /// Takes out a sub-section, if present.
    pub fn section(&mut self, key: &str) -> Result<Option<Section<'s>>> {
        match self.table.remove(key) {
            Some(value) => self.sub(below(&self.path, key), value).map(Some),
            None => Ok(None),
        }
    }

    /// Takes out a required sub-section.
    pub fn required(&mut self, key: &str) -> Result<Section<'s>> {
        self.section(key)?.ok_or_else(|| {
            let path = below(&self.path, key);
            let message = format!("the section `[{path}]` is missing");
            let error = Error::config("config/missing-key", message).at(self.place());
            match nearest(key, self.table.keys().map(|key| &**key.get_ref())) {
                Some(near) => error.hint(format!("is `{near}` a misspelling of it?")),
                None => error,
            }
        })
    }

    /// Takes out a list of sub-sections: `[[key]]`.
    pub fn list(&mut self, key: &str) -> Result<Vec<Section<'s>>> {
        let Some(value) = self.table.remove(key) else { return Ok(Vec::new()) };
        let span = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            return Err(Error::config(
                "config/wrong-type",
                format!("`{key}` must be a list: write `[[{key}]]` above each entry"),
            )
            .at(self.source.place(&span)));
        };
        items.into_iter().map(|item| self.sub(below(&self.path, key), item)).collect()
    }

    /// Takes out a value, if present.
    pub fn value<V: DeserializeOwned>(&mut self, key: &str) -> Result<Option<V>> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        let places = Places::new(&below(&self.path, key), value.span());
        V::deserialize(ValueDeserializer::from(value))
            .map(Some)
            .map_err(|error| self.source.complain(&places, &error))
    }

    /// Reads the remaining keys as parameters; unknown keys and invalid values are errors.
    pub fn read<P: Params>(self) -> Result<P> {
        let Section { source, path, span, table } = self;
        let span_of_section = span.clone();
        let places = Places::new(&path, span.clone()).with(&table);
        let missing = P::required().into_iter().find(|key| !table.contains_key(*key));
        let value = Spanned::new(span, DeValue::Table(table));
        let params = P::deserialize(ValueDeserializer::from(value))
            .map_err(|error| source.complain(&places, &error))?;
        if let Some(key) = missing {
            return Err(missing_key(key, &path).at(source.place(&span_of_section)));
        }
        params.check().map_err(|fault| {
            let message = format!("{}{}", fault.message, inside(&path));
            let place = source.place(places.span_of(fault.key));
            Error::config("config/out-of-range", message).at(place)
        })?;
        Ok(params)
    }

    /// ` in `run.budget``, for messages; nothing for the whole file.
    pub(super) fn inside(&self) -> String {
        inside(&self.path)
    }

    /// Requires that no key is left; `known` are the allowed keys.
    pub fn finish(self, known: &[&str]) -> Result<()> {
        match self.table.iter().next() {
            None => Ok(()),
            Some((key, _)) => {
                Err(unknown_key(key.get_ref(), known, &self.path)
                    .at(self.source.place(&key.span())))
            }
        }
    }
}

/// A word with its indefinite article.
fn a(word: &str) -> String {
    let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {word}")
}
