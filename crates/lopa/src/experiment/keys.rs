//! The keys of experiment files as people read them: type, default and meaning, from the JSON Schema.

use serde::Serialize;
use serde_json::{Map, Value};
use toml::Table;

/// A key of a section or of an entry's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Key {
    /// Its name, with those of the tables around it: `budget.hessians`.
    pub key: String,
    /// Its type: `whole number`, `list of numbers`, `"mean", "batch-sum" or "sum"`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a file must have it.
    pub required: bool,
    /// Its default, in the notation of a file.
    pub default: Option<String>,
    /// A value that makes sense, where one is known and there is no default.
    pub example: Option<String>,
    /// What it does.
    pub meaning: String,
    /// Its possible values, where these have their own meanings.
    pub values: Vec<Meaning>,
}

/// A value, or a kind of values, and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// In the notation of a file.
    pub value: String,
    /// What it does.
    pub meaning: String,
}

/// The keys of an object's schema, in their order, with those of the tables inside it.
pub fn keys(schema: &Value, typical: Option<&Table>) -> Vec<Key> {
    let mut found = Vec::new();
    collect(schema, "", typical, &mut found);
    found
}

fn collect(schema: &Value, prefix: &str, typical: Option<&Table>, found: &mut Vec<Key>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|key| key == name))
    };
    for (name, property) in properties {
        let required = required(name);
        let default = property.get("default").filter(|value| !value.is_null()).map(toml_text);
        let typical = typical.and_then(|typical| typical.get(name));
        found.push(Key {
            key: format!("{prefix}{name}"),
            kind: kind(property),
            required,
            example: typical.filter(|_| required).map(ToString::to_string),
            default: default.filter(|_| !required),
            meaning: text(&property["description"]),
            values: values(property),
        });
        collect(property, &format!("{prefix}{name}."), None, found);
    }
}

/// The type of a value, in words.
fn kind(schema: &Value) -> String {
    if let Some(title) = schema["title"].as_str() {
        return title.into();
    }
    if let Some(value) = schema.get("const") {
        return toml_text(value);
    }
    if schema.get("enum").is_some() || alternatives(schema).is_some() {
        let mut kinds = kinds(schema);
        kinds.dedup();
        return either(kinds);
    }
    let named = |name: &Value| -> String {
        match name.as_str().unwrap_or_default() {
            "integer" => "whole number".into(),
            "boolean" => "true or false".into(),
            "string" => "text".into(),
            "array" => match kind(&schema["items"]) {
                items if items.contains(' ') && items != "whole number" => format!("list: {items}"),
                items if items == "text" => "list of texts".into(),
                items => format!("list of {items}s"),
            },
            "object" => match schema["properties"].as_object() {
                Some(inside) if !inside.is_empty() => table(inside),
                _ => "table".into(),
            },
            other => other.into(),
        }
    };
    match &schema["type"] {
        Value::Array(all) => either(all.iter().filter(|name| *name != "null").map(named).collect()),
        Value::Null => "any".into(),
        one => named(one),
    }
}

/// The possible values, one by one.
fn kinds(schema: &Value) -> Vec<String> {
    match (schema["title"].as_str(), schema["enum"].as_array(), alternatives(schema)) {
        (None, Some(all), _) => all.iter().map(toml_text).collect(),
        (None, None, Some(all)) => all.into_iter().flat_map(kinds).collect(),
        _ => vec![kind(schema)],
    }
}

/// `{ start, factor, every }`
fn table(inside: &Map<String, Value>) -> String {
    let keys: Vec<&str> = inside.keys().map(String::as_str).collect();
    if keys.len() > 4 { "table".into() } else { format!("{{ {} }}", keys.join(", ")) }
}

/// The alternatives of a schema, except for `null`.
fn alternatives(schema: &Value) -> Option<Vec<&Value>> {
    let all = schema.get("oneOf").or(schema.get("anyOf"))?.as_array()?;
    Some(all.iter().filter(|one| one["type"] != "null").collect())
}

/// The alternatives of a schema that have a description.
fn values(schema: &Value) -> Vec<Meaning> {
    let Some(all) = alternatives(schema) else { return Vec::new() };
    if let [only] = all[..] {
        return values(only);
    }
    let one = |one: &&Value| match (one["enum"].as_array(), one.get("description")) {
        (Some(several), _) => several.iter().map(|value| meaning(toml_text(value), one)).collect(),
        (None, Some(_)) => vec![meaning(kind(one), one)],
        (None, None) => Vec::new(),
    };
    let found: Vec<Meaning> = all.iter().flat_map(one).collect();
    if found.iter().all(|one| one.meaning.is_empty()) { Vec::new() } else { found }
}

fn meaning(value: String, schema: &Value) -> Meaning {
    Meaning { value, meaning: text(&schema["description"]) }
}

/// A description on one line.
fn text(description: &Value) -> String {
    let text = description.as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `a`, `a or b`, `a, b or c`
fn either(mut all: Vec<String>) -> String {
    match (all.pop(), all.is_empty()) {
        (None, _) => "any".into(),
        (Some(last), true) => last,
        (Some(last), false) => format!("{} or {last}", all.join(", ")),
    }
}

/// A value in the notation of an experiment file.
fn toml_text(value: &Value) -> String {
    match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => value.to_string(),
    }
}
