//! `lopa check`: an experiment with all defaults filled in, and the origin of each value.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::network::{self, Joint};
use serde_json::json;
use toml::{Table, Value};

use super::source::{read_experiment, source};
use super::summary;
use crate::args::{CodeArgs, FileArgs};
use crate::program::Program;

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    pub code: CodeArgs,
}

pub fn check(args: &CheckArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let source = source(&args.file)?;
    let experiment = read_experiment(&source, &program.registries)?;
    let (resolved, origins) = (experiment.resolved(), source.origins()?);
    let rounds = rounds(&experiment)?;
    if output.json() {
        let mut document = json!({ "experiment": resolved, "origins": origins });
        if !source.bases.is_empty() {
            let bases: Vec<&str> = source.bases.iter().map(|base| &base.name[..]).collect();
            document["extends"] = json!(bases);
        }
        if let Some((joint, whole)) = &rounds {
            document["rounds"] = json!(joint);
            document["rho_of_all_links"] = json!(whole);
        }
        output.document(&document);
    } else {
        let mut text = String::new();
        write(&mut text, "", "", &resolved, &origins);
        output.text(&text);
    }
    output.note(&format!("\n{}", summary::heading(&experiment)));
    if let Some((Joint { window, rho_round, messages, .. }, whole)) = rounds {
        output.note(&format!(
            "the graph changes: over windows of {window} rounds, a round does what rho = {rho_round:.4} \
             does, for {messages:.2} messages of each node (all links in every round: rho = {whole:.4})"
        ));
    }
    let problem = program.registries.problems.find(&experiment.problem.name)?;
    output.note(match problem.unrun {
        true => {
            "valid, except for its problem, whose code was not run: read it, then add `--run-code`"
        }
        false => "the experiment is valid",
    });
    Ok(ExitCode::SUCCESS)
}

/// The effect of the rounds of a changing graph on the first seed, and rho of all its links at
/// once.
fn rounds(experiment: &Experiment) -> Result<Option<(Joint, f64)>> {
    let spec = &experiment.network;
    if !spec.graph.build.changes() {
        return Ok(None);
    }
    let seed = spec.seed.unwrap_or(experiment.run.seeds[0]);
    let found = || {
        let (graph, mixing) = network::build(&spec.graph, &spec.weights, spec.nodes, seed)?;
        let rounds = network::rounds(&spec.graph, &spec.weights, (&graph, &mixing), seed)?;
        Ok(rounds.map(|(_, joint)| (joint, mixing.rho())))
    };
    found().map_err(|error: Error| error.at("[network]"))
}

/// Writes a table as TOML, with each value's origin in a comment.
fn write(
    text: &mut String,
    header: &str,
    path: &str,
    table: &Table,
    origins: &BTreeMap<String, String>,
) {
    let under = |base: &str, key: &str| match base {
        "" => key.to_string(),
        _ => format!("{base}.{key}"),
    };
    let nested = |value: &Value| match value {
        Value::Table(_) => true,
        Value::Array(items) => items.iter().any(Value::is_table),
        _ => false,
    };
    for (key, value) in table.iter().filter(|(_, value)| !nested(value)) {
        let path = under(path, key);
        // `graph = "ring"` in the file is `graph.name` here.
        let short = path.strip_suffix(".name").and_then(|parent| origins.get(parent));
        let origin = origins.get(&path).or(short).map_or("default", String::as_str);
        // An override may contain line breaks; a comment may not.
        let origin = origin.replace(char::is_control, " ");
        let line = format!("{key} = {value}");
        text.push_str(&format!("{line:<40} # {origin}\n"));
    }
    for (key, value) in table.iter().filter(|(_, value)| nested(value)) {
        let (header, path) = (under(header, key), under(path, key));
        match value {
            Value::Table(table) => {
                text.push_str(&format!("\n[{header}]\n"));
                write(text, &header, &path, table, origins);
            }
            Value::Array(items) => {
                for (i, item) in
                    items.iter().enumerate().filter_map(|(i, v)| Some((i, v.as_table()?)))
                {
                    text.push_str(&format!("\n[[{header}]]\n"));
                    write(text, &header, &under(&path, &i.to_string()), item, origins);
                }
            }
            _ => unreachable!("only tables and lists of tables are nested"),
        }
    }
}
