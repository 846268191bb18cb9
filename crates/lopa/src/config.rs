//! Reading experiment files strictly: every complaint has its file, line and column.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Table};

use crate::error::{Error, Result, nearest};
use crate::registry::{Entry, Params, find};

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
        let parsed = DeTable::parse(&self.text).map_err(|error| self.complain("", error, None))?;
        let span = parsed.span();
        let mut table = parsed.into_inner();
        for (i, set) in self.sets.iter().enumerate() {
            self.apply(i, set, &mut table)?;
        }
        Ok(Section { source: self, path: String::new(), span: span.start..span.start, table })
    }

    /// Where each value was given: `run.batch` → `file:12:9`, list entries by their number.
    pub fn origins(&self) -> Result<BTreeMap<String, String>> {
        fn walk(source: &Source, path: &str, value: &Spanned<DeValue>, into: &mut Origins) {
            let deeper = |key: &str| match path {
                "" => key.to_string(),
                _ => format!("{path}.{key}"),
            };
            match value.get_ref() {
                DeValue::Table(table) => {
                    table.iter().for_each(|(key, v)| walk(source, &deeper(key.get_ref()), v, into));
                }
                DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
                    let numbered = items.iter().enumerate();
                    numbered
                        .for_each(|(i, item)| walk(source, &deeper(&i.to_string()), item, into));
                }
                _ => {
                    into.insert(path.to_string(), source.place(&value.span()));
                }
            }
        }
        let root = self.root()?;
        let mut origins = Origins::new();
        walk(self, "", &Spanned::new(0..0, DeValue::Table(root.table)), &mut origins);
        Ok(origins)
    }

    fn apply<'s>(&'s self, i: usize, set: &'s str, root: &mut DeTable<'s>) -> Result<()> {
        let place = format!("--set {set}");
        let wrong = |message: String| {
            Error::config("config/bad-override", message)
                .at(&place)
                .hint("write it as `--set section.key=value`, for example `--set run.batch=20`")
        };
        let (path, text) =
            set.split_once('=').ok_or_else(|| wrong("an override needs a `=`".into()))?;
        // A bare word is taken for a string, so that quotes need not survive the shell.
        let mut value = DeValue::parse(text.trim())
            .unwrap_or_else(|_| Spanned::new(0..text.len(), DeValue::String(text.trim().into())));
        shift(&mut value, self.offset(i) + path.len() + 1);
        let keys: Vec<&str> = path.trim().split('.').collect();
        if keys.iter().any(|key| key.is_empty()) {
            return Err(wrong(format!("`{path}` has an empty key")));
        }
        let (last, parents) = keys.split_last().expect("split yields at least one");
        let span = self.offset(i)..self.offset(i) + path.len();
        let mut table = root;
        for (depth, key) in parents.iter().enumerate() {
            let entry = table
                .entry(Spanned::new(span.clone(), (*key).into()))
                .or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
            let deeper = entry.get_mut();
            // `algorithm.lopa-gt.alpha` and `algorithm.0.alpha` reach into the list.
            let deeper = match deeper {
                DeValue::Array(_) if depth + 1 == keys.len() - 1 => {
                    return Err(wrong(format!("`{key}` is a list: name the entry and its key")));
                }
                other => other,
            };
            table = match deeper {
                DeValue::Table(table) => table,
                DeValue::Array(_) => {
                    return self.apply_in_list(deeper, &keys[depth + 1..], value, span, &wrong);
                }
                _ => return Err(wrong(format!("`{key}` is a value, not a section"))),
            };
        }
        table.remove(*last);
        table.insert(Spanned::new(span, (*last).into()), value);
        Ok(())
    }

    fn apply_in_list<'s>(
        &self,
        list: &mut DeValue<'s>,
        keys: &[&'s str],
        value: Spanned<DeValue<'s>>,
        span: Range<usize>,
        wrong: &dyn Fn(String) -> Error,
    ) -> Result<()> {
        let (&[which, key], DeValue::Array(items)) = (keys, list) else {
            return Err(wrong("inside a list only `list.entry.key` can be set".into()));
        };
        let mut hits = 0;
        for (i, item) in items.iter_mut().enumerate() {
            let DeValue::Table(table) = item.get_mut() else { continue };
            let named = |key: &str| table.get(key).and_then(|v| v.get_ref().as_str());
            let chosen = which == "*"
                || which.parse() == Ok(i)
                || named("label").or(named("name")) == Some(which);
            if chosen {
                hits += 1;
                table.remove(key);
                table.insert(Spanned::new(span.clone(), key.into()), value.clone());
            }
        }
        match hits {
            0 => Err(wrong(format!("the list has no entry `{which}`"))),
            _ => Ok(()),
        }
    }

    /// Turns a parser's or serde's error into ours, with the nearest known key.
    fn complain(
        &self,
        path: &str,
        error: toml::de::Error,
        fallback: Option<Range<usize>>,
    ) -> Error {
        let text = error.message().trim().to_string();
        let place = match error.span().filter(|span| *span != (0..0)).or(fallback) {
            Some(span) => self.place(&span),
            None => self.name.clone(),
        };
        let inside = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
        let ticked: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let ours = if text.starts_with("unknown field") {
            let known = ticked.get(1..).unwrap_or(&[]);
            return unknown_key(ticked[0], known, &inside).at(place);
        } else if text.starts_with("missing field") {
            Error::config(
                "config/missing-key",
                format!("the key `{}` is missing{inside}", ticked[0]),
            )
        } else if text.starts_with("unknown variant") {
            let known = ticked.get(1..).unwrap_or(&[]);
            let error = Error::config(
                "config/unknown-value",
                format!("`{}` is not one of the values allowed here{inside}", ticked[0]),
            );
            let near = nearest(ticked[0], known.iter().copied());
            let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            error.hint(format!("{did}allowed: {}", known.join(", ")))
        } else if text.starts_with("invalid") || text.starts_with("data did not match") {
            Error::config("config/wrong-type", format!("{text}{inside}"))
        } else {
            Error::config("config/syntax", format!("this is not valid TOML: {text}"))
        };
        ours.at(place)
    }
}

type Origins = BTreeMap<String, String>;

fn unknown_key(key: &str, known: &[&str], inside: &str) -> Error {
    let error = Error::config("config/unknown-key", format!("unknown key `{key}`{inside}"));
    let near = nearest(key, known.iter().copied());
    let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    match known {
        [] => error.hint("this takes no keys"),
        _ => error.hint(format!("{did}known keys: {}", known.join(", "))),
    }
}

fn shift(value: &mut Spanned<DeValue>, by: usize) {
    let span = value.span();
    let mut inner = std::mem::replace(value.get_mut(), DeValue::Boolean(false));
    match &mut inner {
        DeValue::Array(items) => items.iter_mut().for_each(|item| shift(item, by)),
        DeValue::Table(table) => table.iter_mut().for_each(|(_, item)| shift(item, by)),
        _ => {}
    }
    *value = Spanned::new(span.start + by..span.end + by, inner);
}

/// Something picked from a registry, with its resolved parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Its name in the registry.
    pub name: String,
    /// Its parameters, defaults filled in.
    pub params: Table,
}

impl Choice {
    /// The table that a file would hold: the name, then the parameters.
    pub fn to_table(&self) -> Table {
        let mut table = Table::new();
        table.insert("name".into(), self.name.clone().into());
        table.extend(self.params.clone());
        table
    }
}

/// A table being read: keys are taken out of it one by one, and what is left over is an error.
pub struct Section<'s> {
    source: &'s Source,
    path: String,
    span: Range<usize>,
    table: DeTable<'s>,
}

impl<'s> Section<'s> {
    /// The place where this section starts.
    pub fn place(&self) -> String {
        self.source.place(&self.span)
    }

    /// The place of a key's value, or of the section if it is not there.
    pub fn place_of(&self, key: &str) -> String {
        self.source.place(&self.table.get(key).map_or(self.span.clone(), |value| value.span()))
    }

    fn inside(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    fn sub(&self, path: String, value: Spanned<DeValue<'s>>) -> Result<Section<'s>> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Section { source: self.source, path, span, table }),
            // A bare name stands for a choice without parameters of its own.
            DeValue::String(name) => {
                let key = Spanned::new(span.clone(), "name".into());
                let table =
                    DeTable::from_iter([(key, Spanned::new(span.clone(), DeValue::String(name)))]);
                Ok(Section { source: self.source, path, span, table })
            }
            other => Err(Error::config(
                "config/wrong-type",
                format!("`{path}` must be a table or a name, not {}", other.type_str()),
            )
            .at(self.source.place(&span))),
        }
    }

    /// Takes a sub-section out, if it is there.
    pub fn section(&mut self, key: &str) -> Result<Option<Section<'s>>> {
        match self.table.remove(key) {
            Some(value) => self.sub(self.inside(key), value).map(Some),
            None => Ok(None),
        }
    }

    /// Takes a sub-section out that must be there.
    pub fn required(&mut self, key: &str) -> Result<Section<'s>> {
        self.section(key)?.ok_or_else(|| {
            let path = self.inside(key);
            Error::config("config/missing-key", format!("the section `[{path}]` is missing"))
                .at(self.place())
        })
    }

    /// Takes a list of sub-sections out: `[[key]]`.
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
        items.into_iter().map(|item| self.sub(self.inside(key), item)).collect()
    }

    /// Takes a value out, if it is there.
    pub fn value<V: DeserializeOwned>(&mut self, key: &str) -> Result<Option<V>> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        let span = value.span();
        V::deserialize(ValueDeserializer::from(value))
            .map(Some)
            .map_err(|error| self.source.complain(&self.inside(key), error, Some(span)))
    }

    /// Takes some keys out into a section of their own.
    pub fn split(&mut self, keys: &[&str]) -> Section<'s> {
        let taken = keys.iter().filter_map(|key| self.table.remove_entry(*key));
        let table = DeTable::from_iter(taken.collect::<Vec<_>>());
        Section { source: self.source, path: self.path.clone(), span: self.span.clone(), table }
    }

    /// Reads all that is left as parameters; unknown keys and bad values are errors.
    pub fn read<P: Params>(self) -> Result<P> {
        let spans: Vec<(String, Range<usize>)> =
            self.table.iter().map(|(key, v)| (key.get_ref().to_string(), v.span())).collect();
        let Section { source, path, span, table } = self;
        let value = Spanned::new(span.clone(), DeValue::Table(table));
        let params = P::deserialize(ValueDeserializer::from(value))
            .map_err(|error| source.complain(&path, error, Some(span.clone())))?;
        params.check().map_err(|fault| {
            let found = spans.iter().find(|(key, _)| key == fault.key);
            let place = source.place(found.map_or(&span, |(_, span)| span));
            let inside = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
            Error::config("config/out-of-range", format!("{}{inside}", fault.message)).at(place)
        })?;
        Ok(params)
    }

    /// Reads all that is left as a choice from a registry.
    pub fn choice<B: ?Sized>(mut self, what: &str, registry: &[Entry<B>]) -> Result<Choice> {
        let place = self.place_of("name");
        let Some(name) = self.value::<String>("name")? else {
            let known: Vec<_> = registry.iter().map(|entry| entry.name).collect();
            return Err(Error::config(
                "config/missing-key",
                format!("which {what}? `name` is missing"),
            )
            .at(place)
            .hint(format!("known: {}", known.join(", "))));
        };
        let entry = find(what, registry, &name).map_err(|error| error.at(place))?;
        let params = entry.resolve(self)?;
        Ok(Choice { name, params })
    }

    /// Nothing may be left; `known` are the keys that could have been there.
    pub fn finish(self, known: &[&str]) -> Result<()> {
        match self.table.iter().next() {
            None => Ok(()),
            Some((key, _)) => {
                let inside = if self.path.is_empty() {
                    String::new()
                } else {
                    format!(" in `{}`", self.path)
                };
                Err(unknown_key(key.get_ref(), known, &inside).at(self.source.place(&key.span())))
            }
        }
    }
}
