//! `lopa list`: the entries of the registries that experiment files choose from, and their
//! parameters.

mod page;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lopa::algorithms::cost::Count;
use lopa::algorithms::{AnyMethod, Facts, Task};
use lopa::config::Entry;
use lopa::error::{Result, nearest};
use lopa::experiment::Registries;
use lopa::problem::scope::Scope;
use serde_json::{Value, json};

use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value_t = What::All)]
    what: What,
    /// One of them: shows its parameters, their types, defaults and meanings
    name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Everything
    All,
    /// Algorithms
    Algorithms,
    /// Problems
    Problems,
    /// Graphs
    Graphs,
    /// Mixing weights
    Weights,
    /// Compressors of messages
    Compressors,
    /// Partitions of data over nodes
    Partitions,
    /// Data sets
    Data,
    /// Ways to scale features
    Scaling,
    /// Keys that `[data]` has for every source
    Preparation,
    /// Keys of `[messages]`
    Messages,
    /// Keys of `[attack]`
    Attack,
    /// Keys of `[time]`
    Time,
    /// Keys of `[privacy]`
    Privacy,
    /// Keys of `[run]`
    Run,
    /// Keys of `[checkpoint]`
    Checkpoint,
    /// Keys of `[tune]`
    Tune,
}

/// A group of names: the entries of a registry, or the keys of a section.
const ENTRIES: [(What, &str); 8] = [
    (What::Algorithms, "algorithms"),
    (What::Problems, "problems"),
    (What::Graphs, "graphs"),
    (What::Weights, "weights"),
    (What::Compressors, "compressors"),
    (What::Partitions, "partitions"),
    (What::Data, "data"),
    (What::Scaling, "scaling"),
];

pub fn list(args: &ListArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    if let Some(page) = page::page(args.what, args.name.as_deref(), &program.registries)? {
        page.print(output);
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = |what: &What| args.what == *what || args.what == What::All;
    let wanted = ENTRIES.into_iter().filter(|(what, _)| wanted(what));
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

/// The keys of `[run]`.
pub fn run_keys() -> Vec<String> {
    page::run_keys()
}

/// How to list an entry, given by its name alone.
pub fn where_is(name: &str, registries: &Registries) -> Option<String> {
    let named: Vec<(&str, String)> = (ENTRIES.iter())
        .flat_map(|(what, list)| {
            let entries = lines(*what, registries);
            let name = |entry: &Value| entry["name"].as_str().map(str::to_string);
            let names: Vec<String> =
                entries.as_array().into_iter().flatten().filter_map(name).collect();
            names.into_iter().map(|name| (*list, name))
        })
        .collect();
    let near = nearest(name, named.iter().map(|(_, name)| name.as_str()))?;
    let (list, name) = named.iter().find(|(_, name)| name == near)?;
    Some(format!("try: lopa list {list} {name}"))
}

fn lines(what: What, registries: &Registries) -> Value {
    fn plain<B: ?Sized>(registry: &[Entry<B>]) -> Value {
        registry.iter().map(|entry| json!({ "name": entry.name, "about": entry.about })).collect()
    }
    match what {
        What::Algorithms => {
            registries.algorithms.iter().map(|entry| algorithm(entry, registries)).collect()
        }
        What::Problems => plain(&registries.problems),
        What::Graphs => plain(&registries.graphs),
        What::Weights => plain(&registries.weights),
        What::Compressors => plain(&registries.compressors),
        What::Partitions => plain(&registries.partitions),
        What::Data => plain(&registries.sources),
        What::Scaling => page::scalings(),
        _ => Value::Null, // sections have a page
    }
}

fn algorithm(entry: &Entry<AnyMethod, Facts>, registries: &Registries) -> Value {
    let Facts { scopes, loops, source, .. } = &entry.facts;
    let names: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
    let typical = registries.algorithms.typical(&entry.name).ok().flatten();
    let method = typical.as_ref().map(|typical| &typical.build);
    // One cost per scope; once, where they agree.
    let cost = |of: &dyn Fn(&AnyMethod, Task) -> Option<Count>| -> Option<String> {
        let one = |&scope: &Scope| of(method?, Task { scope, ..Task::default() });
        let costs: Option<Vec<Count>> = scopes.iter().map(one).collect();
        let mut costs: Vec<String> = costs?.iter().map(Count::to_string).collect();
        costs.dedup();
        Some(costs.join("; "))
    };
    json!({
        "name": entry.name,
        "about": entry.about,
        "scope": names.join(", "),
        "sends": method.and_then(|method| method.sends().ok()),
        "hessians": cost(&|method, task| Some(method.cost(task).hess_g)),
        "floats": cost(&|method, task| Some(method.sent(task).ok()?.floats)),
        "loops": loops,
        "source": source,
    })
}

fn section(name: &str, lines: &Value, output: &Output) -> String {
    let lines = lines.as_array().expect("a registry is a list");
    let keys = lines[0].as_object().expect("an entry").keys().map(String::as_str);
    // A terminal has room for five columns.
    let keys: Vec<&str> = keys.take(if output.markdown() { usize::MAX } else { 5 }).collect();
    let cell = |line: &Value, key: &str| {
        let text = line[key].as_str().unwrap_or_default();
        // The names of vectors stand closer in a terminal, which has room for 132 characters.
        match key == "sends" && !output.markdown() {
            true => text.replace(", ", " ").replace("(+ ", "(+"),
            false => text.to_string(),
        }
    };
    let row = |line: &Value| keys.iter().map(|key| cell(line, key)).collect();
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
