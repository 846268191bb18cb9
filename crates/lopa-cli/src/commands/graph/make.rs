//! `lopa graph make`: a graph of a kind, or one with a given rho.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lopa::error::{Error, Result};
use lopa::network::{self, Format, GraphFile, search};

use super::read::{self, KindArgs};
use crate::program::Program;

#[derive(Debug, Args)]
pub struct MakeArgs {
    /// Kind of graph (`lopa list graphs`); not needed with --rho
    graph: Option<String>,
    /// Number of nodes
    #[arg(short = 'm', long)]
    nodes: usize,
    #[command(flatten)]
    kind: KindArgs,
    /// Search for a graph with this rho = |W - 11'/m|^2
    #[arg(long, conflicts_with = "graph")]
    rho: Option<f64>,
    /// Largest deviation from the rho asked for
    #[arg(long, default_value_t = 0.005, requires = "rho")]
    tolerance: f64,
    /// File to write: .toml, or .csv for an edge list [default: TOML on standard output]
    #[arg(short, long)]
    out: Option<PathBuf>,
}

pub fn make(args: &MakeArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let weights = read::weights(&args.kind, program)?;
    let (graph, mixing) = match (&args.graph, args.rho) {
        (_, Some(rho)) => {
            let found = search(args.nodes, rho, &weights, args.tolerance, args.kind.seed())?;
            let mixing = (weights.build)(&found.graph)?;
            (found.graph, mixing)
        }
        (Some(kind), None) => {
            let graph = read::graph(kind, &args.kind, program)?;
            if graph.build.changes() {
                let why = "a file holds one graph only";
                return Err(read::changes(kind, why)
                    .hint("name it in the experiment: `graph = \"one-peer-exponential\"`"));
            }
            network::build(&graph, &weights, args.nodes, args.kind.seed())?
        }
        (None, None) => {
            return Err(Error::config("config/missing-key", "which graph?")
                .at("lopa graph make")
                .hint("name a kind of graph (`lopa list graphs`), or give --rho"));
        }
    };
    let analysis = mixing.analyse(&graph);
    let document = read::described(&graph, &mixing, &analysis);
    let file = GraphFile::new(graph, &mixing);
    if let Some(path) = &args.out {
        file.write(path)?;
        output.note(&format!("written to {}", path.display()));
    }
    let aside = args.out.as_ref().map(|path| output.beside(path));
    let output = aside.as_ref().unwrap_or(output);
    if output.json() {
        output.document(&document);
    } else if args.out.is_none() {
        output.text(&file.to_text(Format::Toml));
    }
    output.note(&format!("rho = {:.4}, lambda_min = {:.4}", analysis.rho, analysis.lambda_min));
    Ok(ExitCode::SUCCESS)
}
