//! `lopa export`: a run for other tools.

mod onnx;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lopa::error::Result;
use lopa_report::export::Format;
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
    /// File or folder to write; `-` is standard output [default: the run's name with .csv or .parquet; the folder
    /// `tensorboard` or `mlruns`, which collects runs; model.onnx]
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// All measurements as a CSV file
    Csv,
    /// The same columns as a Parquet file
    Parquet,
    /// Event files for `tensorboard --logdir`
    Tensorboard,
    /// A file store for `mlflow ui --backend-store-uri`
    Mlflow,
    /// The model of one node, for ONNX Runtime
    Onnx,
}

pub fn export(args: &ExportArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match args.to {
        Target::Csv => measurements(args, Format::Csv, output),
        Target::Parquet => measurements(args, Format::Parquet, output),
        Target::Tensorboard => measurements(args, Format::Tensorboard, output),
        Target::Mlflow => measurements(args, Format::Mlflow, output),
        Target::Onnx => {
            let out = args.out.clone().unwrap_or_else(|| "model.onnx".into());
            onnx::export(&args.model, args.node.as_deref(), &out, program)
        }
    }
}

/// The rows of `metrics.jsonl` in one of the report's formats.
fn measurements(args: &ExportArgs, format: Format, output: &Output) -> Result<ExitCode> {
    let saved = Saved::read(&args.model.run)?;
    let path = args.out.clone().unwrap_or_else(|| format.path(&saved));
    let files = format.write(&saved, &path)?;
    let output = &output.beside(&path);
    let (place, rows) = (path.display().to_string(), saved.rows.len());
    if output.json() {
        output.document(&json!({ "export": place, "rows": rows, "files": files }));
        return Ok(ExitCode::SUCCESS);
    }
    output.text(&place);
    let open = match format {
        Format::Csv | Format::Parquet => return Ok(ExitCode::SUCCESS),
        Format::Tensorboard => format!("tensorboard --logdir '{place}'"),
        Format::Mlflow => {
            format!("MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri '{place}'")
        }
    };
    output.note(&format!("look at it with `{open}`"));
    Ok(ExitCode::SUCCESS)
}
