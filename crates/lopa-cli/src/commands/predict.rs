//! `lopa predict`: the classes that a personal model predicts for new rows.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lopa::data::new_rows;
use lopa::error::{Error, Result};
use serde_json::{Value, json};

use super::finished::{Finished, LabelArgs, ModelArgs, names, one_each};
use crate::program::Program;

#[derive(Debug, Args)]
pub struct PredictArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Node whose personal model is used
    #[arg(short, long)]
    node: usize,
    /// Data file: .csv, .tsv, .data, .libsvm, .svm, .txt, .npy or .npz, with unscaled features and
    /// at most one more column, the labels. With a header, columns are matched by name
    #[arg(short, long, value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    label: LabelArgs,
}

pub fn predict(args: &PredictArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let finished = Finished::open(&args.model.run)?;
    let runs = one_each(&finished.runs(&args.model, output)?);
    let [run] = runs[..] else {
        return Err(Error::config("config/missing-key", "the run has several algorithms")
            .at("--algorithm")
            .hint(format!("choose one of: {}", names(&runs).join(", "))));
    };
    let model = finished.model(run)?;
    let (features, columns) = (finished.features(&model)?, model.about.columns.as_ref());
    let rows = new_rows(&args.input, features, columns, args.label.label.as_deref())?;
    let predicted = model.predict(args.node, &rows.features, &program.registries.problems)?;
    let classes = predicted.iter().map(|&class| model.about.classes[class as usize].as_str());
    if output.json() {
        let line = |(row, class)| json!({ "row": row, "class": class });
        output.document(&Value::Array(classes.enumerate().map(line).collect()));
    } else {
        output.text(&classes.collect::<Vec<_>>().join("\n"));
    }
    output.note(&format!(
        "{} rows, predicted by {}, seed {}, node {}",
        predicted.len(),
        run.algorithm,
        run.seed,
        args.node
    ));
    Ok(ExitCode::SUCCESS)
}
