//! The JSON Schema of experiment files, for editors: made from the registries, so it is never out of date.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{CheckpointSpec, PrivacySpec, Registries, RunSpec};
use crate::config::Entry;
use crate::data::Preparation;
use crate::engine::messages::{Attack, Rules};
use crate::network::MAX_NODES;
use crate::network::time::TimeSpec;
use crate::problem::scope::Scope;

/// The schema of an experiment file, with the sections that other crates read.
pub fn experiment(registries: &Registries, sections: &[(&str, Value)]) -> Value {
    let mut generator = generator();
    let count = json!({ "type": "integer", "minimum": 1, "maximum": MAX_NODES });
    let seed = json!({ "type": "integer", "minimum": 0 });
    let preparation = generator.subschema_for::<Preparation>().to_value();
    let scope = generator.subschema_for::<Scope>().to_value();
    let time = generator.subschema_for::<TimeSpec>().to_value();
    let privacy = generator.subschema_for::<PrivacySpec>().to_value();
    let run = generator.subschema_for::<RunSpec>().to_value();
    let checkpoint = generator.subschema_for::<CheckpointSpec>().to_value();
    let mut messages = generator.subschema_for::<Rules>().to_value();
    let feedback = "what is lost is sent later, by differences against what neighbours hold";
    let feedback = json!({
        "feedback": { "type": "boolean", "default": true, "description": feedback }
    });
    messages["properties"]["compress"] = choice(&registries.compressors, &mut generator, &feedback);
    let attack = generator.subschema_for::<Attack>().to_value();
    let label = json!({ "label": { "type": "string", "description": "its name in results" } });
    let mut whole = json!({
        "required": ["problem", "network", "run", "algorithm"],
        "properties": {
            "schema": { "const": 1 },
            "name": { "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]*$" },
            "scope": scope,
            "problem": choice(&registries.problems, &mut generator, &json!({})),
            "data": choice(&registries.sources, &mut generator, &preparation["properties"]),
            "partition": choice(&registries.partitions, &mut generator, &json!({})),
            "network": {
                "type": "object",
                "additionalProperties": false,
                "required": ["nodes", "graph"],
                "properties": {
                    "nodes": count,
                    "seed": seed,
                    "graph": choice(&registries.graphs, &mut generator, &json!({})),
                    "weights": choice(&registries.weights, &mut generator, &json!({})),
                },
            },
            "messages": messages,
            "attack": attack,
            "time": time,
            "privacy": privacy,
            "run": run,
            "checkpoint": checkpoint,
            "algorithm": {
                "type": "array",
                "minItems": 1,
                "items": choice(&registries.algorithms, &mut generator, &label),
            },
        },
    });
    for (name, section) in sections {
        whole["properties"][*name] = section.clone();
    }
    // A file that extends another may leave anything out.
    let mut properties = whole["properties"].clone();
    optional(&mut properties);
    if let Some(entries) = properties["algorithm"]["items"]["anyOf"].as_array_mut() {
        let label = "the label of an entry of the extended file";
        entries.push(json!({ "type": "string", "description": label }));
    }
    properties["extends"] = json!({
        "type": "string",
        "minLength": 1,
        "description": "the file whose values hold where this one has none, relative to this file's folder",
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lopa experiment",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "if": { "not": { "required": ["extends"] } },
        "then": whole,
    })
}

/// Makes every key optional, including the names that distinguish the tables of a choice.
fn optional(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|key, value| !(key == "required" && value.is_array()));
            if let Some(tables) = object.remove("oneOf") {
                object.insert("anyOf".into(), tables);
            }
            object.values_mut().for_each(optional);
        }
        Value::Array(items) => items.iter_mut().for_each(optional),
        _ => {}
    }
}

/// The schema of `[messages]`, with `compress` in words in place of all compressors.
pub fn messages() -> Value {
    let mut schema = section::<Rules>();
    schema["properties"]["compress"] = json!({
        "title": "name or table",
        "description": "How vectors are compressed: one of `lopa list compressors`, with its parameters \
            and `feedback`. With `feedback = true`, the default, what is lost is sent later, by \
            differences against what neighbours hold.",
    });
    schema
}

/// The schema of one section of experiment files.
pub fn section<P: schemars::JsonSchema>() -> Value {
    generator().subschema_for::<P>().to_value()
}

/// The schema of an entry's parameters.
pub fn parameters<B: ?Sized, F>(entry: &Entry<B, F>) -> Value {
    entry.schema(&mut generator()).to_value()
}

fn generator() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator()
}

/// A name, or a table with the name, its parameters and `more` properties.
fn choice<B: ?Sized, F>(
    registry: &[Entry<B, F>],
    generator: &mut SchemaGenerator,
    more: &Value,
) -> Value {
    let names: Vec<_> = registry.iter().map(|entry| &entry.name).collect();
    let table = |entry: &Entry<B, F>| {
        let mut schema = entry.schema(generator).to_value();
        let object = schema.as_object_mut().expect("parameters are an object");
        object.insert("type".into(), json!("object"));
        object.insert("title".into(), json!(entry.name));
        object.insert("description".into(), json!(entry.about));
        object.insert("additionalProperties".into(), json!(false));
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        let properties = properties.as_object_mut().expect("properties are an object");
        properties.insert("name".into(), json!({ "const": entry.name }));
        properties.extend(more.as_object().expect("an object").clone());
        let required = object.entry("required").or_insert_with(|| json!([]));
        required.as_array_mut().expect("a list").push(json!("name"));
        schema
    };
    let tables: Vec<Value> = registry.iter().map(table).collect();
    json!({ "anyOf": [{ "enum": names }, { "oneOf": tables }] })
}
