//! `lopa predict`: the classes or numbers that a personal model predicts for new rows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::config::Registry;
use lopa::data::{NewRows, Target};
use lopa::error::{Error, Result};
use lopa::folder::model::{About, Model};
use lopa::problem::AnyProblem;
use lopa::problem::predictor::decide;
use lopa_base::store;
use serde_json::{Map, Value, json};

use super::finished::{LabelArgs, ModelArgs, WhoseArgs, homes, one_model, rows_for};
use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct PredictArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Node whose personal model is used, by number or name [default: each row's own, where a column says
    /// whose row it is; else the only one]
    #[arg(short, long)]
    node: Option<String>,
    /// Data file: .csv, .tsv, .data, .libsvm, .svm, .txt, .npy or .npz, with unscaled features and
    /// at most one more column, the labels. With a header, columns are matched by name
    #[arg(short, long, value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    label: LabelArgs,
    #[command(flatten)]
    whose: WhoseArgs,
    /// Also print the probability of each class
    #[arg(short, long)]
    probabilities: bool,
    /// Write the predictions to this file, .csv or .json, instead of printing them
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn predict(args: &PredictArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let kind = args.out.as_deref().map(|path| Kind::of(path, output)).transpose()?;
    let model = one_model(&args.model, output)?;
    let About { classes, .. } = &model.about;
    let outputs = match model.about.target() {
        Target::Classes(_) => Vec::new(),
        _ => model.about.predictions(),
    };
    if args.probabilities && !outputs.is_empty() {
        let message = "the model predicts numbers, which have no probabilities";
        return Err(Error::config("config/no-meaning", message)
            .at("--probabilities")
            .hint("leave the flag out"));
    }
    let rows = rows_for(&model.about, &args.input, (&args.label, &args.whose), output)?;
    let groups = rows.groups.as_deref().filter(|_| args.node.is_none() && model.x.len() > 1);
    let nodes = match groups {
        None => vec![model.node(args.node.as_deref())?; rows.features.rows()],
        Some(groups) => homes(&model, groups, &args.input)?,
    };
    let found = by_node(&model, &nodes, &rows, &program.registries.problems)?;
    let predicted = decide(&found, classes.len());
    let said = Predictions { classes, outputs: &outputs, predicted: &predicted, found: &found };
    match (&args.out, kind) {
        (Some(path), Some(kind)) => {
            let text = match kind {
                Kind::Csv => said.csv(args.probabilities),
                Kind::Json => format!("{:#}\n", said.json(args.probabilities)),
            };
            store::output::write(path, text.as_bytes(), "the predictions", store::output::OTHER)?;
            output.note(&format!("predictions: {}", path.display()));
        }
        _ if output.json() => output.document(&said.json(args.probabilities)),
        _ if args.probabilities => output.text(&said.csv(true)),
        _ if outputs.len() > 1 => output.text(&said.csv(false)),
        _ => output.text(&said.lines().join("\n")),
    }
    let (algorithm, seed) = (&model.about.algorithm, model.about.seed);
    let count = nodes.len();
    let node = match (groups, nodes.first()) {
        (None, Some(&node)) => format!("node {}", model.name(node)),
        _ => "each by the model of its node".into(),
    };
    output.note(&format!("{count} rows, predicted by {algorithm}, seed {seed}, {node}"));
    Ok(ExitCode::SUCCESS)
}

/// The probabilities of each row's classes, or its numbers, by the model of its node.
fn by_node(
    model: &Model,
    nodes: &[usize],
    rows: &NewRows,
    problems: &Registry<AnyProblem>,
) -> Result<Vec<f64>> {
    let width = model.about.target().width();
    let mut found = vec![0.0; nodes.len() * width];
    let all: BTreeSet<usize> = nodes.iter().copied().collect();
    for node in all {
        let of = |(row, home): (u32, &usize)| (*home == node).then_some(row);
        let own: Vec<u32> = (0..).zip(nodes).filter_map(of).collect();
        let said = model.predictions(node, &rows.features.select(&own), problems)?;
        for (row, p) in own.iter().zip(said.chunks_exact(width)) {
            found[*row as usize * width..][..width].copy_from_slice(p);
        }
    }
    Ok(found)
}

/// How predictions are written.
#[derive(Clone, Copy)]
enum Kind {
    Csv,
    Json,
}

impl Kind {
    fn of(path: &Path, output: &Output) -> Result<Kind> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Kind::Csv),
            Some("json") => Ok(Kind::Json),
            _ if store::output::is_stream(path) && output.json() => Ok(Kind::Json),
            _ if store::output::is_stream(path) => Ok(Kind::Csv),
            _ => {
                Err(Error::config("config/out-of-range", "predictions are written as CSV or JSON")
                    .at("--out")
                    .hint("end the file's name in .csv or .json"))
            }
        }
    }
}

/// The predictions of all rows.
struct Predictions<'a> {
    classes: &'a [String],
    outputs: &'a [String],
    predicted: &'a [u32],
    found: &'a [f64],
}

impl<'a> Predictions<'a> {
    /// The class or the number of each row.
    fn lines(&self) -> Vec<String> {
        match self.outputs.is_empty() {
            true => self.names().map(String::from).collect(),
            false => self.found.iter().map(f64::to_string).collect(),
        }
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        let classes = self.classes;
        self.predicted.iter().map(move |&class| classes[class as usize].as_str())
    }

    fn rows(&self) -> impl Iterator<Item = (&'a str, &'a [f64])> {
        self.names().zip(self.found.chunks_exact(self.classes.len()))
    }

    /// A table with a head: the class, and the probability of each class under its name; or the numbers
    /// under their names.
    fn csv(&self, probabilities: bool) -> String {
        if !self.outputs.is_empty() {
            let head: Vec<String> = self.outputs.iter().map(|name| cell(name)).collect();
            let mut text = head.join(",") + "\n";
            for row in self.found.chunks_exact(self.outputs.len()) {
                let row: Vec<String> = row.iter().map(f64::to_string).collect();
                text += &(row.join(",") + "\n");
            }
            return text;
        }
        let mut head = vec!["class".to_string()];
        if probabilities {
            head.extend(self.classes.iter().map(|class| cell(class)));
        }
        let mut text = head.join(",") + "\n";
        for (class, p) in self.rows() {
            text += &cell(class);
            if probabilities {
                p.iter().for_each(|p| text += &format!(",{p}"));
            }
            text.push('\n');
        }
        text
    }

    fn json(&self, probabilities: bool) -> Value {
        if !self.outputs.is_empty() {
            let line = |(row, said): (usize, &[f64])| {
                let each = self.outputs.iter().cloned().zip(said.iter().map(|&said| json!(said)));
                json!({ "row": row, "numbers": Value::Object(each.collect::<Map<_, _>>()) })
            };
            let rows = self.found.chunks_exact(self.outputs.len());
            return Value::Array(rows.enumerate().map(line).collect());
        }
        let line = |(row, (class, p)): (usize, (&str, &[f64]))| {
            let mut line = json!({ "row": row, "class": class });
            if probabilities {
                let each = self.classes.iter().cloned().zip(p.iter().map(|&p| json!(p)));
                line["probabilities"] = Value::Object(each.collect::<Map<_, _>>());
            }
            line
        };
        Value::Array(self.rows().enumerate().map(line).collect())
    }
}

/// A cell of a CSV file, quoted where it must be.
fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}
