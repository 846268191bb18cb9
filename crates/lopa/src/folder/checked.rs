//! The text of `results.json`. Every entry has its number, the number of entries, and a checksum of both and of
//! all its other keys. Entries of earlier versions have none of them.
//!
//! ```text
//! [{ "algorithm": "lopa-gt", "seed": 1, …, "check": "1/12-9af3c2d1" }, …]
//! ```

use serde_json::{Map, Value};

use super::line::sum;
use crate::run::Outcome;

const CHECK: &str = "check";

/// The text for some entries.
pub fn write(entries: &[Outcome]) -> String {
    let checked = |(at, entry): (usize, &Outcome)| {
        let mut value = serde_json::to_value(entry).expect("names are strings");
        if let Value::Object(fields) = &mut value {
            let check = check(fields, at, entries.len());
            fields.insert(CHECK.into(), check.into());
        }
        value
    };
    let all: Vec<Value> = entries.iter().enumerate().map(checked).collect();
    format!("{:#}", Value::Array(all))
}

/// The damage of a file's entries, if they are not as written.
pub fn fault(mut entries: Vec<Map<String, Value>>) -> Option<String> {
    let of = entries.len();
    if entries.iter().all(|fields| !fields.contains_key(CHECK)) {
        return None;
    }
    let wrong = |(at, fields): (usize, &mut Map<String, Value>)| {
        let what = match fields.shift_remove(CHECK) {
            None => "has no checksum",
            Some(said) if said != check(fields, at, of) => "does not match its checksum",
            Some(_) => return None,
        };
        Some(format!("entry {} of {of} {what}", at + 1))
    };
    entries.iter_mut().enumerate().find_map(wrong)
}

fn check(fields: &Map<String, Value>, at: usize, of: usize) -> String {
    let place = format!("{}/{of}", at + 1);
    let text = serde_json::to_string(fields).expect("names are strings");
    format!("{place}-{:08x}", sum(&[place.as_bytes(), text.as_bytes()]))
}
