//! `lopa evaluate`: the accuracy of a run's models.

mod reevaluate;
pub mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::error::{Error, Result};
use lopa::folder::model::Model;
use lopa::serve::{Score, Truth};
use serde_json::Value;

use super::finished::{Finished, LabelArgs, ModelArgs, models, rows_for};
use crate::args::{CodeArgs, DataArgs, ThreadArgs};
use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Data file with labels, as for `lopa predict` [default: evaluate on the run's own data again
    /// and compare with its results]
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Node whose personal model is used, by number or name [default: all]
    #[arg(short, long, requires = "input")]
    node: Option<String>,
    #[command(flatten)]
    label: LabelArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    pub code: CodeArgs,
}

pub fn evaluate(args: &EvaluateArgs, program: &Program) -> Result<ExitCode> {
    match &args.input {
        Some(input) => on_new_rows(args, input, program),
        None => {
            let finished = Finished::open(&args.model.run)?;
            reevaluate::reevaluate(&finished, &args.model, (&args.data, &args.threads), program)
        }
    }
}

fn on_new_rows(args: &EvaluateArgs, input: &Path, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let models = models(&args.model, output)?;
    // All models of a run share their features and classes.
    let about = &models[0].about;
    let rows = rows_for(about, input, &args.label, output)?;
    let labels = rows.labels.as_deref().ok_or_else(|| {
        Error::data("data/no-labels", "the file has no labels to compare with")
            .at(input.display().to_string())
            .hint("add a column of labels, or predict them with `lopa predict`")
    })?;
    let truth = Truth::new(labels, &about.classes);
    warn_of_unknown(&truth, output);
    let mut results: Vec<(&Model, show::Scores)> = Vec::new();
    for model in &models {
        let nodes = match &args.node {
            None => 0..model.x.len(),
            Some(wanted) => {
                let node = model.node(Some(wanted))?;
                node..node + 1
            }
        };
        let score = |node| {
            let found = model.probabilities(node, &rows.features, &program.registries.problems)?;
            Ok((node, Score::new(&truth, &found, about.classes.len())))
        };
        results.push((model, nodes.map(score).collect::<Result<_>>()?));
    }
    if output.json() {
        let described = |(model, scores): &(&Model, _)| show::described(model, scores, &truth);
        output.document(&Value::Array(results.iter().map(described).collect()));
    } else {
        let one = args.node.is_some() || results.iter().all(|(_, scores)| scores.len() == 1);
        let mut text = match (one, &results[..]) {
            (true, _) => {
                let details = |(model, scores): &(&Model, show::Scores)| {
                    show::detailed(model, scores, output)
                };
                results.iter().map(details).collect::<Vec<_>>().join("\n\n")
            }
            (false, [(model, scores)]) => show::by_node(model, scores, output),
            (false, _) => show::by_algorithm(&results, output),
        };
        text += &show::majority(&truth, &about.classes);
        output.text(&text);
    }
    output.note(&format!("{} rows of {}", labels.len(), input.display()));
    Ok(ExitCode::SUCCESS)
}

fn warn_of_unknown(truth: &Truth, output: &Output) {
    let mut some: Vec<String> = truth.unknown.iter().take(5).map(|l| format!("`{l}`")).collect();
    if truth.unknown.len() > some.len() {
        some.push("…".into());
    }
    if !some.is_empty() {
        output.warn(&format!(
            "{} rows count as wrong: the models do not know the classes {}",
            truth.unknown_rows(),
            some.join(", ")
        ));
    }
}
