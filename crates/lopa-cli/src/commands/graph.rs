//! `lopa graph`: make, show and check graphs and their weights.

use std::path::Path;
use std::process::ExitCode;

use lopa::config::{Choice, Source};
use lopa::error::{Error, Result};
use lopa::network::{
    self, Analysis, Format, Graph, GraphFile, Mixing, graphs, search, warnings, weights,
};
use lopa::registry::find;
use serde_json::json;

use crate::args::{GraphArgs, MakeArgs};
use crate::output::{self, Output, number};

pub fn make(args: &MakeArgs, output: &Output) -> Result<ExitCode> {
    let weights = weights_choice(&args.weights)?;
    let (graph, mixing) = match (&args.graph, args.rho) {
        (_, Some(rho)) => {
            let found = search(args.nodes, rho, &weights, args.tolerance, args.seed)?;
            let mixing = weigh(&weights, &found.graph)?;
            (found.graph, mixing)
        }
        (Some(kind), None) => {
            let graph = graph_choice(kind, &args.with)?;
            network::build(&graph, &weights, args.nodes, args.seed)?
        }
        (None, None) => {
            return Err(Error::config("config/missing-key", "which graph?")
                .at("lopa graph make")
                .hint("name a kind (`lopa list graphs`), or give --rho"));
        }
    };
    let file = GraphFile::new(graph, &mixing);
    match &args.out {
        Some(path) => {
            file.write(path)?;
            output.note(&format!("written to {}", path.display()));
            if output.json() {
                output.document(&json!(mixing.analyse(&file.graph)));
            }
        }
        None if output.json() => output.document(&json!(mixing.analyse(&file.graph))),
        None => output.text(&file.to_text(Format::Toml)),
    }
    let analysis = mixing.analyse(&file.graph);
    output.note(&format!("rho = {:.4}, lambda_min = {:.4}", analysis.rho, analysis.lambda_min));
    Ok(ExitCode::SUCCESS)
}

pub fn show(args: &GraphArgs, output: &Output) -> Result<ExitCode> {
    let (graph, mixing) = read(args)?;
    let analysis = mixing.analyse(&graph);
    if output.json() {
        let edges: Vec<_> = graph.edges().collect();
        output.document(&json!({ "analysis": analysis, "edges": edges, "weights": mixing.rows() }));
        return Ok(ExitCode::SUCCESS);
    }
    output.text(&picture(&graph, &mixing));
    output.text(&describe(&analysis));
    Ok(ExitCode::SUCCESS)
}

pub fn check(args: &GraphArgs, output: &Output) -> Result<ExitCode> {
    let (graph, mixing) = read(args)?;
    network::check(&graph, &mixing)?;
    let analysis = mixing.analyse(&graph);
    for warning in warnings(analysis.lambda_min, true) {
        output.warn(&warning);
    }
    if output.json() {
        output.document(&json!(analysis));
    } else {
        output.text(&describe(&analysis));
    }
    output.note("a run can use it");
    Ok(ExitCode::SUCCESS)
}

/// The graph of a file with its own weights or given ones, or of a kind.
fn read(args: &GraphArgs) -> Result<(Graph, Mixing)> {
    let weights = weights_choice(&args.weights)?;
    let path = Path::new(&args.graph);
    if find("graph", &graphs(), &args.graph).is_err() && path.exists() {
        let file = GraphFile::read(path)?;
        let own = file.mixing()?;
        let graph = file.graph.clone();
        let mixing = match own {
            Some(mixing) => mixing,
            None => weigh(&weights, &graph)?,
        };
        return Ok((graph, mixing));
    }
    let choice = graph_choice(&args.graph, &args.with)?;
    let nodes = args.nodes.ok_or_else(|| {
        Error::config("config/missing-key", format!("how many nodes has the {}?", args.graph))
            .at("--nodes")
            .hint("say it with `-m 10`")
    })?;
    let graph = (find("graph", &graphs(), &choice.name)?.build)(&choice.params, nodes, args.seed)?;
    let mixing = weigh(&weights, &graph)?;
    Ok((graph, mixing))
}

fn weigh(choice: &Choice, graph: &Graph) -> Result<Mixing> {
    (find("weights", &weights(), &choice.name)?.build)(&choice.params, graph)
}

fn graph_choice(kind: &str, with: &[String]) -> Result<Choice> {
    let mut source = Source::new("the command line", format!("graph = {{ name = {kind:?} }}"));
    source.sets = with.iter().map(|set| format!("graph.{set}")).collect();
    source.root()?.required("graph")?.choice("graph", &graphs())
}

fn weights_choice(name: &str) -> Result<Choice> {
    let source = Source::new("--weights", format!("weights = {{ name = {name:?} }}"));
    source.root()?.required("weights")?.choice("weights", &weights())
}

/// W as a matrix for few nodes, the neighbours of each node for many.
fn picture(graph: &Graph, mixing: &Mixing) -> String {
    let m = graph.nodes();
    if m > 16 {
        let line = |i: usize| format!("{i:>5}  {:?}", graph.neighbours(i));
        let shown: Vec<_> = (0..m.min(40)).map(line).collect();
        let more = if m > 40 { format!("\n  … {} more nodes", m - 40) } else { String::new() };
        return format!(" node  neighbours\n{}{more}", shown.join("\n"));
    }
    let head: Vec<String> =
        std::iter::once("w".into()).chain((0..m).map(|j| j.to_string())).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let cell = |i, j| match mixing.weight(i, j) {
        0.0 => "·".to_string(),
        w => format!("{w:.3}"),
    };
    let row = |i: usize| std::iter::once(i.to_string()).chain((0..m).map(|j| cell(i, j))).collect();
    output::table(&head, (0..m).map(row).collect()).to_string()
}

fn describe(analysis: &Analysis) -> String {
    let value = serde_json::to_value(analysis).expect("an analysis is JSON");
    let object = value.as_object().expect("an analysis is an object");
    let rows = object.iter().map(|(key, value)| {
        let shown = match value.as_f64() {
            Some(x) if value.is_f64() => number(x),
            _ => value.to_string(),
        };
        vec![key.replace('_', " "), shown]
    });
    output::list(&["", ""], rows.collect()).to_string()
}
