//! `lopa evaluate`: the accuracy or the errors of a run's models.

pub mod numbers;
mod reevaluate;
mod share;
pub mod show;
mod survival;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::error::Result;
use lopa::folder::model::Model;
use lopa::folder::serve::{AnyScore, Truth};
use serde_json::Value;

use self::share::{Asked, Share, Shares};
use super::finished::{Finished, LabelArgs, ModelArgs, WhoseArgs, models};
use crate::args::{CodeArgs, DataArgs, ThreadArgs};
use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Data file with labels, as for `lopa predict`, or a file for each node: 'test/{node}.csv'
    /// [default: evaluate on the run's own data again and compare with its results]
    ///
    /// Where the file has the column that says whose row it is, each row is judged by the model of its
    /// node; else every node's model is judged on all rows.
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Node whose personal model is used on all rows, by number or name [default: see --input]
    #[arg(short, long, requires = "input")]
    node: Option<String>,
    /// Judge every node's model on all rows, also on those of other nodes
    #[arg(long, requires = "input", conflicts_with = "node")]
    all_nodes: bool,
    #[command(flatten)]
    whose: WhoseArgs,
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
    // All models of a run share their nodes, features and classes.
    let classes = &models[0].about.classes;
    let asked = Asked {
        input,
        node: args.node.as_deref(),
        all_nodes: args.all_nodes,
        label: &args.label,
        whose: &args.whose,
    };
    let shares = Shares::of(&models[0], &asked, output)?;
    warn_of_unknown(&shares, output);
    let mut results: Vec<(&Model, show::Scores)> = Vec::new();
    let (mut errors_found, mut ranked) = (Vec::new(), Vec::new());
    for model in &models {
        let score = |Share { node, rows }: &Share| {
            let problems = &program.registries.problems;
            let found = model.predictions(*node, &rows.features, problems)?;
            Ok((*node, rows.answers.score(&found, model.about.target().width())))
        };
        let scores = shares.each.iter().map(score).collect::<Result<Vec<(usize, AnyScore)>>>()?;
        let mut of_classes = Vec::new();
        for (node, score) in scores {
            match score {
                AnyScore::Classes(score) => of_classes.push((node, score)),
                AnyScore::Numbers { rows, errors, of_mean } => {
                    errors_found.push((model, numbers::Line { node, rows, errors, of_mean }));
                }
                AnyScore::Survival { rows, events, concordance } => {
                    ranked.push((model, survival::Line { node, rows, events, concordance }));
                }
            }
        }
        results.push((model, of_classes));
    }
    if !errors_found.is_empty() {
        match output.json() {
            true => output.document(&numbers::described(&errors_found, &shares)),
            false => output.text(&numbers::table(&errors_found, output)),
        }
        note_rows(&shares, input, output);
        return Ok(ExitCode::SUCCESS);
    }
    if !ranked.is_empty() {
        match output.json() {
            true => output.document(&survival::described(&ranked, &shares)),
            false => output.text(&survival::table(&ranked, output)),
        }
        note_rows(&shares, input, output);
        return Ok(ExitCode::SUCCESS);
    }
    if output.json() {
        let described = |(model, scores): &(&Model, _)| show::described(model, scores, &shares);
        output.document(&Value::Array(results.iter().map(described).collect()));
    } else {
        let one = args.node.is_some() || shares.each.len() == 1;
        let mut text = match (one, &results[..]) {
            (true, _) => {
                let details = |(model, scores): &(&Model, show::Scores)| {
                    show::detailed(model, scores, output)
                };
                results.iter().map(details).collect::<Vec<_>>().join("\n\n")
            }
            (false, [(model, scores)]) => show::by_node(model, scores, shares.own, output),
            (false, _) => show::by_algorithm(&results, shares.own, output),
        };
        text += &show::majority(shares.majority(), classes);
        output.text(&text);
    }
    note_rows(&shares, input, output);
    Ok(ExitCode::SUCCESS)
}

fn note_rows(shares: &Shares, input: &Path, output: &Output) {
    let how = if shares.own { ", each judged by the model of its node" } else { "" };
    output.note(&format!("{} rows of {}{how}", shares.rows, input.display()));
}

fn warn_of_unknown(shares: &Shares, output: &Output) {
    let unknown: BTreeSet<&String> = shares.truths().flat_map(|truth| &truth.unknown).collect();
    let rows: usize = shares.truths().map(Truth::unknown_rows).sum();
    let mut some: Vec<String> = unknown.iter().take(5).map(|label| format!("`{label}`")).collect();
    if unknown.len() > some.len() {
        some.push("…".into());
    }
    if !some.is_empty() {
        output.warn(&format!(
            "{rows} rows count as wrong: the models do not know the classes {}",
            some.join(", ")
        ));
    }
}
