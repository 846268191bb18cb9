//! `lopa evaluate`: the accuracy of a run's models.

mod reevaluate;
mod score;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::data::new_rows;
use lopa::error::{Error, Result};
use lopa::folder::ResultEntry;
use lopa::folder::model::Model;
use lopa_study::statistics::Summary;
use serde_json::{Value, json};

use self::score::{Score, Truth};
use super::finished::{Finished, LabelArgs, ModelArgs, one_each};
use crate::args::{DataArgs, ThreadArgs};
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
    /// Node whose personal model is used [default: all]
    #[arg(short, long, requires = "input")]
    node: Option<usize>,
    #[command(flatten)]
    label: LabelArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn evaluate(args: &EvaluateArgs, program: &Program) -> Result<ExitCode> {
    let finished = Finished::open(&args.model.run)?;
    match &args.input {
        Some(input) => on_new_rows(args, input, &finished, program),
        None => {
            reevaluate::reevaluate(&finished, &args.model, (&args.data, &args.threads), program)
        }
    }
}

fn on_new_rows(
    args: &EvaluateArgs,
    input: &Path,
    finished: &Finished,
    program: &Program,
) -> Result<ExitCode> {
    let output = &program.output;
    let runs = one_each(&finished.runs(&args.model, output)?);
    let models: Vec<Model> = runs.iter().map(|run| finished.model(run)).collect::<Result<_>>()?;
    // All models of a run share their features and classes.
    let first = &models[0];
    let (features, columns) = (finished.features(first)?, first.about.columns.as_ref());
    let rows = new_rows(input, features, columns, args.label.label.as_deref())?;
    let labels = rows.labels.as_deref().ok_or_else(|| {
        Error::data("data/no-labels", "the file has no labels to compare with")
            .at(input.display().to_string())
            .hint("add a column of labels, or predict them with `lopa predict`")
    })?;
    let truth = Truth::new(labels, &first.about.classes);
    warn_of_unknown(&truth, output);
    let mut results = Vec::new();
    for (run, model) in runs.iter().zip(&models) {
        let nodes = args.node.map_or(0..model.x.len(), |node| node..node + 1);
        let score = |node| {
            let predicted = model.predict(node, &rows.features, &program.registries.problems)?;
            Ok((node, Score::new(&model.about.classes, &truth, &predicted)))
        };
        results.push((*run, nodes.map(score).collect::<Result<Vec<_>>>()?));
    }
    if output.json() {
        let describe = |(run, scores): &(&ResultEntry, Vec<_>)| described(run, scores, &truth);
        output.document(&Value::Array(results.iter().map(describe).collect()));
    } else if args.node.is_some() {
        let details = |(run, scores): &(&ResultEntry, Vec<_>)| detailed(run, &scores[0], output);
        output.text(&results.iter().map(details).collect::<Vec<_>>().join("\n\n"));
    } else {
        output.text(&by_node(&results, output));
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

type Scores<'a> = Vec<(usize, Score<'a>)>;

/// Mean, smallest and largest.
fn spread(scores: &Scores) -> [(&'static str, f64); 3] {
    let accuracies = Summary::of(scores.iter().map(|(_, score)| score.accuracy()));
    let of = |part: fn(Summary) -> f64| accuracies.map_or(f64::NAN, part);
    [("mean", of(|all| all.mean)), ("min", of(|all| all.low)), ("max", of(|all| all.high))]
}

fn described(run: &ResultEntry, scores: &Scores, truth: &Truth) -> Value {
    let [(_, mean), (_, min), (_, max)] = spread(scores);
    json!({
        "algorithm": run.algorithm,
        "seed": run.seed,
        "rows": truth.numbers.len(),
        "unknown_labels": truth.unknown,
        "accuracy": mean,
        "accuracy_min": min,
        "accuracy_max": max,
        "nodes": scores.iter().map(|(node, score)| score.to_json(*node)).collect::<Vec<_>>(),
    })
}

/// The scores of one node's model, class by class.
fn detailed(run: &ResultEntry, (node, score): &(usize, Score), output: &Output) -> String {
    let head = ["class", "rows", "right", "recall", "precision"];
    let name = format!("{}, seed {}, node {node}", run.algorithm, run.seed);
    let accuracy = format!("accuracy {:.4}", score.accuracy());
    let worst = score.confusions();
    let mistake = |(is, taken, count): &(&str, &str, usize)| format!("{is} for {taken} ({count})");
    let worst: Vec<String> = worst.iter().take(5).map(mistake).collect();
    let worst = match worst.is_empty() {
        true => "no row of a known class was mistaken for another".to_string(),
        false => format!("most often mistaken: {}", worst.join(", ")),
    };
    format!("{name}: {accuracy}\n\n{}\n\n{worst}", output.table(&head, score.lines()))
}

/// The accuracy of every node, one column per algorithm.
fn by_node(results: &[(&ResultEntry, Scores)], output: &Output) -> String {
    let mut head = vec!["node"];
    head.extend(results.iter().map(|(run, _)| run.algorithm.as_str()));
    let line = |name: String, value: &dyn Fn(&Scores) -> f64| {
        let cells = results.iter().map(|(_, scores)| format!("{:.4}", value(scores)));
        std::iter::once(name).chain(cells).collect()
    };
    let nodes = results.first().map_or(0, |(_, scores)| scores.len());
    let of_node = |i: usize| line(i.to_string(), &|scores| scores[i].1.accuracy());
    let of_all = |i: usize| line(["mean", "min", "max"][i].into(), &|scores| spread(scores)[i].1);
    output.table(&head, (0..nodes).map(of_node).chain((0..3).map(of_all)).collect())
}
