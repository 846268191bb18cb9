//! `lopa list`: what experiment files can choose from, straight from the registries.

use std::process::ExitCode;

use lopa::algorithms::algorithms;
use lopa::config::registry::Entry;
use lopa::data::partition::partitions;
use lopa::data::sources;
use lopa::error::Result;
use lopa::network::{graphs, weights};
use lopa::problems::problems;
use serde_json::{Value, json};

use crate::args::{ListArgs, What};
use crate::output::Output;

pub fn list(args: &ListArgs, output: &Output) -> Result<ExitCode> {
    let all = [
        (What::Algorithms, "algorithms"),
        (What::Problems, "problems"),
        (What::Graphs, "graphs"),
        (What::Weights, "weights"),
        (What::Partitions, "partitions"),
        (What::Data, "data"),
    ];
    let wanted = all.into_iter().filter(|(what, _)| args.what == What::All || args.what == *what);
    let lists: Vec<(&str, Value)> = wanted.map(|(what, name)| (name, lines(what))).collect();
    if output.json() {
        match &lists[..] {
            [(_, only)] => output.document(only),
            several => {
                output.document(&several.iter().cloned().map(|(k, v)| (k.to_string(), v)).collect())
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let sections: Vec<String> =
        lists.iter().map(|(name, lines)| section(name, lines, output)).collect();
    output.text(&sections.join("\n\n"));
    Ok(ExitCode::SUCCESS)
}

fn lines(what: What) -> Value {
    fn plain<B: ?Sized>(registry: Vec<Entry<B>>) -> Value {
        registry.iter().map(|entry| json!({ "name": entry.name, "about": entry.about })).collect()
    }
    match what {
        What::Algorithms => algorithms::<f64>()
            .iter()
            .map(|entry| {
                let facts = &entry.build.facts;
                let scopes: Vec<_> = facts.scopes.iter().map(|scope| scope.name()).collect();
                json!({
                    "name": entry.name,
                    "about": entry.about,
                    "scope": scopes.join(", "),
                    "sends": facts.sends,
                    "hessians": facts.hessians,
                    "floats": facts.floats.join("; "),
                    "loops": facts.loops,
                    "source": facts.source,
                })
            })
            .collect(),
        What::Problems => plain(problems::<f64>()),
        What::Graphs => plain(graphs()),
        What::Weights => plain(weights()),
        What::Partitions => plain(partitions()),
        What::Data => plain(sources()),
        What::All => Value::Null,
    }
}

fn section(name: &str, lines: &Value, output: &Output) -> String {
    let lines = lines.as_array().expect("a registry is a list");
    let keys = lines[0].as_object().expect("an entry").keys().map(String::as_str);
    // More would not fit a terminal.
    let keys: Vec<&str> = keys.take(if output.markdown() { usize::MAX } else { 5 }).collect();
    let row = |line: &Value| {
        keys.iter().map(|key| line[key].as_str().unwrap_or_default().to_string()).collect()
    };
    let head = |&key: &&str| match key {
        "name" => name.to_string(),
        "about" => "what it is".into(),
        "hessians" => "Hess·v".into(),
        other => other.to_string(),
    };
    let head: Vec<String> = keys.iter().map(head).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    output.list(&head, lines.iter().map(row).collect())
}
