//! `lopa export`: a run for other tools.

mod onnx;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lopa::error::Result;
use lopa_base::store::output;
use lopa_report::export::csv;
use lopa_report::saved::Saved;
use serde_json::json;

use super::finished::ModelArgs;
use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Target,
    /// Node whose model goes into an ONNX file, by number or name [default: the only one]
    #[arg(short, long)]
    node: Option<String>,
    /// File to write; `-` is standard output [default: the run's name with .csv, or model.onnx]
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// All measurements as a CSV file
    Csv,
    /// The model of one node, for ONNX Runtime
    Onnx,
}

pub fn export(args: &ExportArgs, program: &Program) -> Result<ExitCode> {
    match args.to {
        Target::Csv => measurements(args, &program.output),
        Target::Onnx => {
            let out = args.out.clone().unwrap_or_else(|| "model.onnx".into());
            onnx::export(&args.model, args.node.as_deref(), &out, program)
        }
    }
}

/// The rows of `metrics.jsonl`.
fn measurements(args: &ExportArgs, shown: &Output) -> Result<ExitCode> {
    let saved = Saved::read(&args.model.run)?;
    let path = args.out.clone().unwrap_or_else(|| format!("{}.csv", saved.name).into());
    output::write(&path, csv(&saved).as_bytes(), "the export", output::OTHER)?;
    let shown = &shown.beside(&path);
    let (place, rows) = (path.display().to_string(), saved.rows.len());
    if shown.json() {
        shown.document(&json!({ "export": place, "rows": rows }));
    } else {
        shown.text(&place);
    }
    Ok(ExitCode::SUCCESS)
}
