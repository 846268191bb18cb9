//! Errors of the TOML parser and of serde, reworded for the author of the file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{Source, below};
use crate::error::{Error, nearest};

/// Paths and spans of all values below a section, and of its keys (with the path of their table).
pub(super) struct Places {
    path: String,
    span: Range<usize>,
    spans: Vec<(String, Range<usize>)>,
}

impl Places {
    pub fn new(path: &str, span: Range<usize>) -> Places {
        Places { path: path.to_string(), span, spans: Vec::new() }
    }

    /// Adds all keys and values of a table.
    pub fn with(mut self, table: &DeTable) -> Places {
        self.note(&self.path.clone(), table);
        self
    }

    fn note(&mut self, path: &str, table: &DeTable) {
        for (key, value) in table {
            let path_of_value = below(path, key.get_ref());
            self.spans.push((path.to_string(), key.span()));
            self.spans.push((path_of_value.clone(), value.span()));
            if let DeValue::Table(table) = value.get_ref() {
                self.note(&path_of_value, table);
            }
        }
    }

    /// The span of a key's value, or of the section if the key is absent.
    pub fn span_of(&self, key: &str) -> &Range<usize> {
        let path = below(&self.path, key);
        let found = self.spans.iter().find(|(known, _)| *known == path);
        found.map_or(&self.span, |(_, span)| span)
    }

    /// The path of the smallest value around a span.
    fn path_at(&self, at: &Range<usize>) -> &str {
        let holds = |span: &Range<usize>| span.start <= at.start && at.end <= span.end;
        let around = self.spans.iter().filter(|(_, span)| holds(span));
        let smallest = around.min_by_key(|(_, span)| span.len());
        smallest.map_or(&self.path, |(path, _)| path)
    }
}

impl Source {
    /// The error for a text that is not TOML, whose spans begin at `offset`.
    pub(super) fn syntax(&self, error: &toml::de::Error, offset: usize) -> Error {
        let text = error.message().trim().replace('\n', ", ");
        let span = error.span().unwrap_or(0..0);
        Error::config("config/syntax", format!("this is not valid TOML: {text}"))
            .at(self.place(&(span.start + offset..span.end + offset)))
    }

    /// The error for a value that serde rejects.
    pub(super) fn complain(&self, places: &Places, error: &toml::de::Error) -> Error {
        let span = error.span().filter(|span| *span != (0..0)).unwrap_or(places.span.clone());
        let path = places.path_at(&span);
        let text = error.message().trim();
        let ticked: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let complaint = match (text, &ticked[..]) {
            (text, [key, known @ ..]) if text.starts_with("unknown field") => {
                unknown_key(key, known, path)
            }
            (text, [key, ..]) if text.starts_with("missing field") => missing_key(key, path),
            (text, [value, known @ ..]) if text.starts_with("unknown variant") => Error::config(
                "config/unknown-value",
                format!("`{value}` is not one of the values allowed for `{path}`"),
            )
            .hint(choice("allowed", value, known)),
            _ => Error::config("config/wrong-type", wrong_type(text, path)),
        };
        complaint.at(self.place(&span))
    }
}

/// The error for a key that is not there.
pub(super) fn missing_key(key: &str, path: &str) -> Error {
    let message = format!("the key `{key}` is missing{}", inside(path));
    Error::config("config/missing-key", message)
}

/// The error for an unknown key.
pub(super) fn unknown_key(key: &str, known: &[&str], path: &str) -> Error {
    let message = format!("unknown key `{key}`{}", inside(path));
    let error = Error::config("config/unknown-key", message);
    match known {
        [] => error.hint("no keys are allowed here"),
        _ => error.hint(choice("known keys", key, known)),
    }
}

/// ` in `run.budget``, or nothing for the whole file.
pub(super) fn inside(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in `{path}`") }
}

fn choice(what: &str, typed: &str, known: &[&str]) -> String {
    let near = nearest(typed, known.iter().copied());
    let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!("{did}{what}: {}", known.join(", "))
}

/// Rewords `invalid type: integer `3`, expected a sequence` in TOML's terms.
fn wrong_type(text: &str, path: &str) -> String {
    let found = ["invalid type: ", "invalid value: "].iter().find_map(|p| text.strip_prefix(p));
    let Some((found, expected)) = found.and_then(|text| text.split_once(", expected ")) else {
        return format!("{text}{}", inside(path));
    };
    let expected = match expected {
        "usize" | "u64" | "u32" | "u8" => "a whole number, not negative",
        "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a sequence" => "a list",
        "a map" => "a table",
        "a boolean" => "true or false",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    if let Some(found) = [" as i128", " as u128"].iter().find_map(|end| found.strip_suffix(end)) {
        return format!("`{path}` must be {expected}, but {found} is too large");
    }
    let found = match found {
        "map" => "a table",
        "sequence" => "a list",
        other => other,
    };
    format!("`{path}` must be {expected}, but it is {}", found.replace("floating point", "number"))
}
