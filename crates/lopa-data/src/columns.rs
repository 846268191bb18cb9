//! The names of columns: a table that has them is matched by name, not by position.

use serde::{Deserialize, Serialize};

use super::Encoded;
use crate::error::{Error, Result, nearest};

/// The names of a table's columns, as in its header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// Of the features, in the order in which they are used.
    pub features: Vec<String>,
    /// Of the labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Of further labels, where rows have several numbers to predict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_labels: Vec<String>,
    /// Of the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Of the columns that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// What must be known of a table beside the names of its columns, to read another one like it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unnamed {
    /// The places of columns that are left out, among the features and them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<usize>,
    /// Whether its features are numbered from 0, where LIBSVM files usually begin with 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zero_based: bool,
    /// How its columns become features; empty where each is one number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub encoding: Vec<Encoded>,
}

impl Unnamed {
    /// Whether a table with these columns needs no such remark.
    pub fn is_usual(&self) -> bool {
        *self == Unnamed::default()
    }
}

/// How many names a message lists.
const SOME: usize = 5;

impl Columns {
    /// The names of all labels.
    pub fn outputs(&self) -> Vec<String> {
        self.label.iter().chain(&self.more_labels).cloned().collect()
    }

    /// The index of each feature among the columns of another table; fails unless both have the
    /// same names.
    pub fn order(&self, found: &[String]) -> Result<Vec<usize>> {
        if self.features == found {
            return Ok((0..found.len()).collect());
        }
        for names in [found, &self.features[..]] {
            if let Some(name) = twice(names) {
                let message = format!("several columns are named `{name}`");
                return Err(Error::data("data/other-columns", message)
                    .hint("columns in another order are matched by name: give each its own"));
            }
        }
        let lacks = |names: &[String], all: &[String]| -> Vec<String> {
            let all: std::collections::HashSet<&String> = all.iter().collect();
            names.iter().filter(|name| !all.contains(name)).cloned().collect()
        };
        let (missing, unknown) = (lacks(&self.features, found), lacks(found, &self.features));
        if !missing.is_empty() || !unknown.is_empty() {
            let same = self.features.len() == found.len();
            let id = if same { "data/other-columns" } else { "data/shape-mismatch" };
            return Err(self.other(id, &missing, &unknown));
        }
        let at: std::collections::HashMap<&String, usize> =
            found.iter().enumerate().map(|(at, name)| (name, at)).collect();
        Ok(self.features.iter().map(|name| at[name]).collect())
    }

    fn other(&self, id: &'static str, missing: &[String], unknown: &[String]) -> Error {
        let list = |names: &[String], what: &str| {
            let (s, is) = if names.len() == 1 { ("", "is") } else { ("s", "are") };
            format!("the column{s} {} {is} {what}", some(names))
        };
        let message = match (missing, unknown) {
            (missing, []) => list(missing, "missing"),
            ([], unknown) => list(unknown, "unknown"),
            _ => format!("{}, and {}", list(missing, "missing"), list(unknown, "unknown")),
        };
        let near = |name: &String| {
            let lower = |name: &String| name.to_lowercase();
            let same = missing.iter().find(|wanted| lower(wanted) == lower(name));
            let near = || nearest(name, missing.iter().map(String::as_str));
            let near = same.map(String::as_str).or_else(near)?;
            Some(format!("did you mean `{near}` by `{name}`? "))
        };
        let did: String = unknown.iter().filter_map(near).take(SOME).collect();
        let needed = some(&self.features);
        // Nothing else is wrong.
        let more = if missing.is_empty() { "take what is unknown out of the file; " } else { "" };
        let hint = format!("{did}{more}columns are matched by name; needed: {needed}");
        Error::data(id, message).hint(hint)
    }
}

/// The first few of some names.
fn some(names: &[String]) -> String {
    let mut some: Vec<String> = names.iter().take(SOME).map(|name| format!("`{name}`")).collect();
    if names.len() > SOME {
        some.push(format!("… ({} in all)", names.len()));
    }
    some.join(", ")
}

/// A name that occurs more than once.
fn twice(names: &[String]) -> Option<&String> {
    let mut seen = std::collections::HashSet::new();
    names.iter().find(|name| !seen.insert(*name))
}
