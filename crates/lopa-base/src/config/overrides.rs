//! `--set path=value`: overrides values of a file, under the same rules as if they were in it.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::Source;
use crate::error::{Error, Result, nearest};

impl Source {
    /// Applies the `i`-th override to a file's table.
    pub(super) fn apply<'s>(&'s self, i: usize, root: &mut DeTable<'s>) -> Result<()> {
        let set = &self.sets[i];
        let wrong = |message: String| {
            Error::config("config/bad-override", message)
                .at(format!("--set {set}"))
                .hint("write it as `--set section.key=value`, for example `--set run.batch=20`")
        };
        let (path, text) =
            set.split_once('=').ok_or_else(|| wrong("an override needs a `=`".into()))?;
        let keys: Vec<&str> = path.trim().split('.').collect();
        if keys.iter().any(|key| key.is_empty()) {
            return Err(wrong(format!("`{path}` has an empty key")));
        }
        let before: usize = self.sets[..i].iter().map(|set| set.len() + 1).sum();
        let start = self.offset(self.bases.len() + 1) + before;
        let value = shifted(parse(text.trim()).map_err(wrong)?, start + path.len() + 1);
        Override { span: start..start + path.len(), value }.put(root, &keys).map_err(wrong)
    }
}

/// A value as typed. A bare word is a string, so that quotes need not survive the shell.
fn parse(text: &str) -> Result<Spanned<DeValue<'_>>, String> {
    DeValue::parse(text).or_else(|error| match text.starts_with(['"', '\'', '[', '{']) {
        true => Err(format!("`{text}` is not a valid TOML value: {}", error.message().trim())),
        false => Ok(Spanned::new(0..text.len(), DeValue::String(text.into()))),
    })
}

/// A value to be put at the end of a path.
struct Override<'s> {
    span: Range<usize>,
    value: Spanned<DeValue<'s>>,
}

impl<'s> Override<'s> {
    fn put(&self, table: &mut DeTable<'s>, keys: &[&'s str]) -> Result<(), String> {
        let (first, rest) = keys.split_first().expect("a path has a key");
        let key = Spanned::new(self.span.clone(), (*first).into());
        if rest.is_empty() {
            table.remove(*first);
            table.insert(key, self.value.clone());
            return Ok(());
        }
        let section = || Spanned::new(self.span.clone(), DeValue::Table(DeTable::new()));
        let next = table.entry(key).or_insert_with(section);
        open(next);
        match next.get_mut() {
            DeValue::Table(table) => self.put(table, rest),
            DeValue::Array(items) => self.put_in_list(first, items, rest),
            _ => Err(format!("`{first}` is a value, not a section")),
        }
    }

    /// `algorithm.lopa-gt.alpha`, `algorithm.0.alpha` and `algorithm.*.alpha` reach into lists.
    fn put_in_list(
        &self,
        list: &str,
        items: &mut DeArray<'s>,
        keys: &[&'s str],
    ) -> Result<(), String> {
        let (which, rest) = keys.split_first().expect("a path continues below a list");
        if rest.is_empty() {
            return Err(format!("`{list}` is a list: name the entry and its key"));
        }
        let mut known = Vec::new();
        let mut hit = false;
        for (i, item) in items.iter_mut().enumerate() {
            open(item);
            let DeValue::Table(table) = item.get_mut() else { continue };
            let named = |key: &str| table.get(key).and_then(|v| v.get_ref().as_str());
            let name = named("label").or(named("name")).unwrap_or_default().to_string();
            if *which == "*" || which.parse() == Ok(i) || *which == name {
                hit = true;
                self.put(table, rest)?;
            }
            known.push(name);
        }
        match hit {
            true => Ok(()),
            false => {
                let near = nearest(which, known.iter().map(String::as_str));
                let did = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                let known = known.join(", ");
                Err(format!("`{list}` has no entry `{which}`{did}; it has {known}"))
            }
        }
    }
}

/// A bare name stands for a table with only a name: `graph = "ring"`.
pub(super) fn open(value: &mut Spanned<DeValue>) {
    let span = value.span();
    if let DeValue::String(name) = value.get_mut() {
        let (key, name) = (Spanned::new(span.clone(), "name".into()), std::mem::take(name));
        let name = Spanned::new(span, DeValue::String(name));
        *value.get_mut() = DeValue::Table(DeTable::from_iter([(key, name)]));
    }
}

/// The table with all its spans shifted.
pub(super) fn shifted_table<'s>(table: DeTable<'s>, by: usize) -> DeTable<'s> {
    let entry = |(key, value): (Spanned<_>, _)| {
        let span = key.span();
        let key = Spanned::new(span.start + by..span.end + by, key.into_inner());
        (key, shifted(value, by))
    };
    table.into_iter().map(entry).collect()
}

/// The value with all its spans shifted.
fn shifted<'s>(value: Spanned<DeValue<'s>>, by: usize) -> Spanned<DeValue<'s>> {
    let span = value.span();
    let inner = match value.into_inner() {
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| shifted(item, by)).collect())
        }
        DeValue::Table(table) => DeValue::Table(shifted_table(table, by)),
        plain => plain,
    };
    Spanned::new(span.start + by..span.end + by, inner)
}
