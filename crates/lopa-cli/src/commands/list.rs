//! `lopa list`: what experiment files can choose from, straight from the registries.

use std::process::ExitCode;

use lopa::algorithms::{Cost, Task};
use lopa::config::Entry;
use lopa::error::Result;
use lopa::experiment::Registries;
use lopa::problem::scope::Scope;
use serde_json::{Value, json};

use crate::Program;
use crate::args::{ListArgs, What};
use crate::output::Output;

pub fn list(args: &ListArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let all = [
        (What::Algorithms, "algorithms"),
        (What::Problems, "problems"),
        (What::Graphs, "graphs"),
        (What::Weights, "weights"),
        (What::Partitions, "partitions"),
        (What::Data, "data"),
    ];
    let wanted = all.into_iter().filter(|(what, _)| args.what == What::All || args.what == *what);
    let lists: Vec<(&str, Value)> =
        wanted.map(|(what, name)| (name, lines(what, &program.registries))).collect();
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

fn lines(what: What, registries: &Registries) -> Value {
    fn plain<B: ?Sized>(registry: &[Entry<B>]) -> Value {
        registry.iter().map(|entry| json!({ "name": entry.name, "about": entry.about })).collect()
    }
    match what {
        What::Algorithms => registries
            .algorithms
            .iter()
            .map(|entry| {
                let facts = &entry.facts;
                let scopes: Vec<_> = facts.scopes.iter().map(|scope| scope.name()).collect();
                let typical = registries.algorithms.typical(&entry.name).ok().flatten();
                let costs = |show: fn(&Cost) -> String| {
                    typical.as_ref().map(|typical| {
                        let cost = |&scope: &Scope| {
                            show(&typical.build.cost(Task { scope, ..Task::default() }))
                        };
                        let mut costs: Vec<String> = facts.scopes.iter().map(cost).collect();
                        costs.dedup();
                        costs.join("; ")
                    })
                };
                json!({
                    "name": entry.name,
                    "about": entry.about,
                    "scope": scopes.join(", "),
                    "sends": facts.sends,
                    "hessians": costs(|cost| cost.hess_g.to_string()),
                    "floats": costs(|cost| cost.floats.to_string()),
                    "loops": facts.loops,
                    "source": facts.source,
                })
            })
            .collect(),
        What::Problems => plain(&registries.problems),
        What::Graphs => plain(&registries.graphs),
        What::Weights => plain(&registries.weights),
        What::Partitions => plain(&registries.partitions),
        What::Data => plain(&registries.sources),
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
