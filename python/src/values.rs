//! Converts dictionaries of Python, passed as JSON, to the text of an experiment file; places in
//! errors are keys, because there is no file.

use lopa::config::Source;
use lopa::error::{Error, Result};
use serde_json::Value as Json;
use toml::{Table, Value};

/// The name of the file in places.
pub const DICTIONARY: &str = "the dictionary";

/// A JSON value as one of TOML; `None` in a table is a key left out.
pub fn to_toml(path: &str, value: &Json) -> Result<Value> {
    let below = |key: &str| if path.is_empty() { key.into() } else { format!("{path}.{key}") };
    Ok(match value {
        Json::Null => {
            let message = format!("`{path}` has no value: None is allowed in dictionaries only");
            return Err(Error::config("config/wrong-type", message).at(path));
        }
        Json::Bool(value) => Value::Boolean(*value),
        Json::String(text) => Value::String(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(number)) if number.fract() != 0.0 || number.abs() < 2f64.powi(63) => {
                Value::Float(number)
            }
            _ => {
                let message = format!("`{path} = {number}` is too large");
                return Err(Error::config("config/out-of-range", message).at(path));
            }
        },
        Json::Array(items) => {
            let item = |(at, item): (usize, &Json)| to_toml(&below(&at.to_string()), item);
            Value::Array(items.iter().enumerate().map(item).collect::<Result<_>>()?)
        }
        Json::Object(entries) => {
            let given = entries.iter().filter(|(_, value)| !value.is_null());
            let entry =
                |(key, value): (&String, &Json)| Ok((key.clone(), to_toml(&below(key), value)?));
            Value::Table(given.map(entry).collect::<Result<Table>>()?)
        }
    })
}

/// The experiment file equivalent to a dictionary.
pub fn source(json: &str) -> Result<Source> {
    let unreadable = |error: String| Error::config("config/wrong-type", error).at(DICTIONARY);
    let json: Json = serde_json::from_str(json).map_err(|error| unreadable(error.to_string()))?;
    let text = toml::to_string(&to_toml("", &json)?).map_err(|e| unreadable(e.to_string()))?;
    Ok(Source::new(DICTIONARY, text))
}

/// Replaces the lines of a generated file by keys.
pub fn by_key(source: &Source, mut error: Error) -> Error {
    let line = |place: &str| -> Option<usize> {
        place.strip_prefix(DICTIONARY)?.strip_prefix(':')?.split(':').next()?.parse().ok()
    };
    if let Some(line) = error.place.as_deref().and_then(line) {
        error.place = Some(key_at(&source.text, line));
    } else if let Some(set) = error.place.as_deref().and_then(|place| place.strip_prefix("--set "))
    {
        error.place = Some(format!("set: {set}"));
    }
    error
}

/// The key in a line: `algorithm.0.alpha`.
fn key_at(text: &str, line: usize) -> String {
    let mut section = String::new();
    let mut counts = std::collections::BTreeMap::new();
    let mut key = String::new();
    for text in text.lines().take(line) {
        if let Some(name) = text.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]")) {
            let count = counts.entry(name.to_string()).or_insert(0);
            (section, key) = (format!("{name}.{count}"), String::new());
            *count += 1;
        } else if let Some(name) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // `[algorithm.schedule]` belongs to the last of `[[algorithm]]`.
            let (first, rest) = name.split_once('.').unwrap_or((name, ""));
            let numbered = counts.get(first).map(|count| format!("{first}.{}", count - 1));
            section = match (numbered, rest) {
                (Some(numbered), "") => numbered,
                (Some(numbered), rest) => format!("{numbered}.{rest}"),
                (None, _) => name.to_string(),
            };
            key = String::new();
        } else if let Some((name, _)) = text.split_once(" = ") {
            key = name.trim().to_string();
        }
    }
    match (section.is_empty(), key.is_empty()) {
        (true, true) => DICTIONARY.into(),
        (true, false) => key,
        (false, true) => section,
        (false, false) => format!("{section}.{key}"),
    }
}
