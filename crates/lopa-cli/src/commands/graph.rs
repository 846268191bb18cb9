//! `lopa graph`: make, show and check graphs and their weights.

use std::path::Path;
use std::process::ExitCode;

use lopa::config::{Choice, Source};
use lopa::error::{Error, Result};
use lopa::network::{
    self, Analysis, Format, Graph, GraphBuild, GraphFile, Mixing, WeightsBuild, search, warnings,
};
use serde_json::{Value, json};

use crate::Program;
use crate::args::{GraphArgs, MakeArgs};
use crate::output::{Output, number};

pub fn make(args: &MakeArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let weights = weights_choice(&args.weights, program)?;
    let (graph, mixing) = match (&args.graph, args.rho) {
        (_, Some(rho)) => {
            let found = search(args.nodes, rho, &weights, args.tolerance, args.seed)?;
            let mixing = (weights.build)(&found.graph)?;
            (found.graph, mixing)
        }
        (Some(kind), None) => {
            let graph = graph_choice(kind, &args.with, program)?;
            network::build(&graph, &weights, args.nodes, args.seed)?
        }
        (None, None) => {
            return Err(Error::config("config/missing-key", "which graph?")
                .at("lopa graph make")
                .hint("name a kind (`lopa list graphs`), or give --rho"));
        }
    };
    let analysis = mixing.analyse(&graph);
    let document = described(&graph, &mixing, &analysis);
    let file = GraphFile::new(graph, &mixing);
    if let Some(path) = &args.out {
        file.write(path)?;
        output.note(&format!("written to {}", path.display()));
    }
    if output.json() {
        output.document(&document);
    } else if args.out.is_none() {
        output.text(&file.to_text(Format::Toml));
    }
    output.note(&format!("rho = {:.4}, lambda_min = {:.4}", analysis.rho, analysis.lambda_min));
    Ok(ExitCode::SUCCESS)
}

pub fn show(args: &GraphArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let (graph, mixing) = read(args, program)?;
    let analysis = mixing.analyse(&graph);
    match output.json() {
        true => output.document(&described(&graph, &mixing, &analysis)),
        false => output.text(&format!(
            "{}\n\n{}",
            picture(&graph, &mixing, output),
            properties(&analysis, output)
        )),
    }
    Ok(ExitCode::SUCCESS)
}

pub fn check(args: &GraphArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let (graph, mixing) = read(args, program)?;
    network::check(&graph, &mixing)?;
    let analysis = mixing.analyse(&graph);
    for warning in warnings(analysis.lambda_min, true) {
        output.warn(&warning);
    }
    match output.json() {
        true => output.document(&json!(analysis)),
        false => output.text(&properties(&analysis, output)),
    }
    output.note("a run can use it");
    Ok(ExitCode::SUCCESS)
}

/// The graph of a file, or of a kind.
pub fn read(args: &GraphArgs, program: &Program) -> Result<(Graph, Mixing)> {
    let kinds = &program.registries.graphs;
    let kind = kinds.iter().find(|kind| kind.name == args.graph);
    let path = Path::new(&args.graph);
    if kind.is_none() && (path.exists() || args.graph.contains(['.', '/'])) {
        let file = GraphFile::read(path)?;
        return weighted(file.graph.clone(), file.mixing()?, args, program);
    }
    let choice = graph_choice(&args.graph, &args.with, program)?;
    let nodes = args.nodes.ok_or_else(|| {
        Error::config("config/missing-key", format!("how many nodes has the {}?", args.graph))
            .at("--nodes")
            .hint("say it with `-m 10`")
    })?;
    let graph = (choice.build)(nodes, args.seed)?;
    weighted(graph, None, args, program)
}

/// A graph with the weights that are asked for, else with its own, else with Metropolis weights.
fn weighted(
    graph: Graph,
    own: Option<Mixing>,
    args: &GraphArgs,
    program: &Program,
) -> Result<(Graph, Mixing)> {
    let mixing = match (&args.weights, own) {
        (None, Some(own)) => own,
        (asked, _) => {
            let name = asked.as_deref().unwrap_or("metropolis");
            (weights_choice(name, program)?.build)(&graph)?
        }
    };
    Ok((graph, mixing))
}

fn graph_choice(kind: &str, with: &[String], program: &Program) -> Result<Choice<GraphBuild>> {
    if let Some(bare) = with.iter().find(|pair| !pair.contains('=')) {
        return Err(Error::config("config/bad-override", "a parameter needs a `=`")
            .at(format!("--with {bare}"))
            .hint("write it as `--with p=0.4`"));
    }
    let mut source =
        Source::new("graph", format!("graph = {{ name = {} }}", toml::Value::from(kind)));
    source.sets = with.iter().map(|pair| format!("graph.{pair}")).collect();
    let section = source.root().and_then(|mut root| root.required("graph"));
    section.and_then(|section| program.registries.graphs.read(section)).map_err(|error| {
        let with = error.place.as_deref().and_then(|place| place.strip_prefix("--set graph."));
        Error { place: Some(with.map_or(kind.into(), |pair| format!("--with {pair}"))), ..error }
    })
}

fn weights_choice(name: &str, program: &Program) -> Result<Choice<WeightsBuild>> {
    let choice = program.registries.weights.choose(name, &toml::Table::new());
    choice.map_err(|error| Error { place: Some(format!("--weights {name}")), ..error })
}

fn described(graph: &Graph, mixing: &Mixing, analysis: &Analysis) -> Value {
    let edges: Vec<_> = graph.edges().collect();
    json!({ "analysis": analysis, "edges": edges, "weights": mixing.rows() })
}

/// W as a matrix for few nodes, the neighbours of each node for many.
fn picture(graph: &Graph, mixing: &Mixing, output: &Output) -> String {
    const FEW: usize = 16;
    const SHOWN: usize = 40;
    let m = graph.nodes();
    if m > FEW {
        let others = |i: usize| graph.neighbours(i).iter().map(usize::to_string);
        let line = |i: usize| vec![i.to_string(), others(i).collect::<Vec<_>>().join(" ")];
        let shown = output.list(&["node", "neighbours"], (0..m.min(SHOWN)).map(line).collect());
        return match m {
            ..=SHOWN => shown,
            _ => format!("{shown}\n… {} more nodes", m - SHOWN),
        };
    }
    let head: Vec<String> =
        std::iter::once("W".into()).chain((0..m).map(|j| j.to_string())).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let cell = |i, j| match mixing.weight(i, j) {
        0.0 => "·".to_string(),
        w => format!("{w:.3}"),
    };
    let row = |i: usize| std::iter::once(i.to_string()).chain((0..m).map(|j| cell(i, j))).collect();
    output.table(&head, (0..m).map(row).collect())
}

fn properties(analysis: &Analysis, output: &Output) -> String {
    let value = json!(analysis);
    let object = value.as_object().expect("an analysis is an object");
    let shown = |value: &Value| match value {
        Value::Number(n) if n.is_f64() => number(n.as_f64().unwrap_or(f64::NAN)),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.into(),
        Value::Null => "–".into(),
        Value::Array(pairs) if pairs.is_empty() => "none".into(),
        Value::Array(pairs) => bridges(pairs),
        other => other.to_string(),
    };
    let row = |(key, value): (&String, &Value)| vec![key.replace('_', " "), shown(value)];
    output.list(&["property", "value"], object.iter().map(row).collect())
}

fn bridges(pairs: &[Value]) -> String {
    const SHOWN: usize = 8;
    let some: Vec<String> =
        pairs.iter().take(SHOWN).map(|pair| format!("{}–{}", pair[0], pair[1])).collect();
    match pairs.len() {
        ..=SHOWN => some.join(", "),
        n => format!("{}, … ({n} in all)", some.join(", ")),
    }
}
