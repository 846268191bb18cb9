//! `extends = "base.toml"`: a file that has only the differences from another file.
//!
//! Sections are merged key by key, and a key of the extending file wins. A section that names another
//! choice (`name`) replaces the base's section, whose parameters belong to the base's choice. Values
//! inside a section are replaced whole, tables and lists among them. The list of algorithms is that of the
//! extending file, if it has one; an entry takes the keys it lacks from the base's entry of that label.

use std::path::{Component, Path, PathBuf};

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::overrides::open;
use super::{Base, Source};
use crate::error::{Error, Result};

/// The most files that one file can extend, directly and through others.
const MOST: usize = 8;

impl Source {
    /// The source with the files it extends; `read` returns the text of a file.
    pub fn extending(mut self, read: impl Fn(&Path) -> Result<String>) -> Result<Source> {
        let mut seen = vec![plain(Path::new(&self.name))];
        while let Some((base, place)) = self.extended()? {
            let last = self.bases.last().map_or(&self.name, |base| &base.name);
            let path = Path::new(last).with_file_name(&base);
            let wrong = |message: String| Error::config("config/extends", message).at(&place);
            if seen.contains(&plain(&path)) {
                return Err(wrong(format!("`{base}` extends itself, directly or through others"))
                    .hint("a file extends another one, and that one never extends it back"));
            }
            if self.bases.len() == MOST {
                return Err(wrong(format!("more than {MOST} files extend one another"))
                    .hint("extend a file nearer to the first of them"));
            }
            seen.push(plain(&path));
            let text = read(&path).map_err(|error| {
                wrong(format!("`{base}`, which this file extends: {}", error.message))
                    .hint(error.hint.unwrap_or_else(|| RELATIVE.into()))
            })?;
            self.bases.push(Base { name: path.display().to_string(), text });
        }
        Ok(self)
    }

    /// The file that the last known file extends, and the place of that key.
    fn extended(&self) -> Result<Option<(String, String)>> {
        let table = self.table(self.bases.len())?;
        let Some(value) = table.get("extends") else { return Ok(None) };
        let place = self.place(&value.span());
        match value.get_ref().as_str() {
            Some(base) if Path::new(base).file_name().is_some() => {
                Ok(Some((base.to_string(), place)))
            }
            Some(base) => {
                let message = format!("`extends = \"{base}\"` does not name a file");
                Err(Error::config("config/extends", message).at(place).hint(RELATIVE))
            }
            None => {
                let message = "`extends` must be the name of one file";
                Err(Error::config("config/wrong-type", message).at(place).hint(RELATIVE))
            }
        }
    }

    /// The table of the file and of those it extends, in one.
    pub(super) fn merged(&self) -> Result<DeTable<'_>> {
        let mut table = self.table(0)?;
        for i in 1..=self.bases.len() {
            table.remove("extends");
            table = merge(self.table(i)?, table);
        }
        Ok(table)
    }
}

const RELATIVE: &str = "write `extends = \"base.toml\"`, a path relative to the file's own folder";

/// A path without `.` and `..`, to recognise a file by.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match (part, plain.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                plain.pop();
            }
            _ => plain.push(part),
        }
    }
    plain
}

fn merge<'s>(mut base: DeTable<'s>, over: DeTable<'s>) -> DeTable<'s> {
    for (key, value) in over {
        let value = match base.remove(&**key.get_ref()) {
            None => value,
            Some(below) if key.get_ref() == "algorithm" => entries(below, value),
            Some(below) => section(below, value),
        };
        base.insert(key, value);
    }
    base
}

/// A section over that of the base. A value of the base that is not a table stays, to be refused at
/// its place.
fn section<'s>(mut base: Spanned<DeValue<'s>>, over: Spanned<DeValue<'s>>) -> Spanned<DeValue<'s>> {
    let (base_span, span) = (base.span(), over.span());
    open(&mut base);
    match (base.into_inner(), over.into_inner()) {
        (DeValue::Table(below), DeValue::Table(above)) => {
            Spanned::new(span, DeValue::Table(keys(below, above)))
        }
        (below, DeValue::Table(_)) => Spanned::new(base_span, below),
        (_, above) => Spanned::new(span, above),
    }
}

/// The keys of a section over those of the base, unless it names another choice.
fn keys<'s>(mut below: DeTable<'s>, above: DeTable<'s>) -> DeTable<'s> {
    if text(&above, "name").is_some_and(|name| text(&below, "name") != Some(name)) {
        return above;
    }
    for (key, value) in above {
        below.remove(&**key.get_ref());
        below.insert(key, value);
    }
    below
}

/// The entries of a list over those of the base with the same labels.
fn entries<'s>(base: Spanned<DeValue<'s>>, over: Spanned<DeValue<'s>>) -> Spanned<DeValue<'s>> {
    let (base_span, span) = (base.span(), over.span());
    match (base.into_inner(), over.into_inner()) {
        (DeValue::Array(mut below), DeValue::Array(above)) => {
            below.iter_mut().for_each(open);
            let all = above.into_iter().map(|one| entry(&below, one)).collect();
            Spanned::new(span, DeValue::Array(all))
        }
        (below, DeValue::Array(_)) => Spanned::new(base_span, below),
        (_, above) => Spanned::new(span, above),
    }
}

fn entry<'s>(below: &DeArray<'s>, one: Spanned<DeValue<'s>>) -> Spanned<DeValue<'s>> {
    let wanted = label(&one);
    match below.iter().find(|known| wanted.is_some() && label(known) == wanted) {
        // The label alone: the base's entry as it is.
        Some(known) if one.get_ref().is_str() => known.clone(),
        Some(known) => section(known.clone(), one),
        None => one,
    }
}

/// The label of an entry: the one it has, or its name.
fn label(entry: &Spanned<DeValue>) -> Option<String> {
    match entry.get_ref() {
        DeValue::String(name) => Some(name.to_string()),
        DeValue::Table(table) => text(table, "label").or(text(table, "name")).map(str::to_string),
        _ => None,
    }
}

fn text<'t>(table: &'t DeTable, key: &str) -> Option<&'t str> {
    table.get(key).and_then(|value| value.get_ref().as_str())
}
