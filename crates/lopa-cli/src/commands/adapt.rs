//! `lopa adapt`: a personal model for a new node.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lopa::data::new_rows;
use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::folder::RunReader;
use lopa::folder::model::About;
use lopa::folder::serve::{Adapted, Answers, AnyScore, Newcomer, adapt as adapted};
use serde_json::json;

use super::evaluate::{numbers, show};
use super::finished::{LabelArgs, ModelArgs, one_model};
use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Args)]
pub struct AdaptArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The new node's rows, with labels, as for `lopa predict`
    #[arg(short, long, value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    label: LabelArgs,
    /// Take x of this node, by number or name [default: the mean over all nodes]
    #[arg(short, long)]
    node: Option<String>,
    /// Folds of the cross-validation
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..=1000))]
    folds: u32,
    /// Write the model to this file, for `lopa predict`, `evaluate` and `export`
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn adapt(args: &AdaptArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    if args.model.run.is_file() {
        let message = "only a run can be adapted: a model file does not say how it was trained";
        return Err(Error::config("config/no-meaning", message)
            .at(args.model.run.display().to_string())
            .hint("name the run folder"));
    }
    let model = one_model(&args.model, output)?;
    let resolved = RunReader::open(&args.model.run)?.resolved()?;
    let batch = Experiment::read(&resolved, &program.registries)?.run.batch.batches().grad_g;
    let rows = new_rows(&args.input, &model.about.needs(), args.label.named())?;
    let place = || args.input.display().to_string();
    let labels = rows.labels.as_deref().ok_or_else(|| {
        Error::data("data/no-labels", "the file has no labels to adapt to")
            .at(place())
            .hint("add a column of labels")
    })?;
    let About { classes, .. } = &model.about;
    let answers = Answers::new(labels, classes, model.about.target());
    let answers = answers.map_err(|error| error.at(place()))?;
    let unknown = match &answers {
        Answers::Classes(truth) => truth.unknown.first(),
        Answers::Numbers(_) | Answers::Survival(_) => None,
    };
    if let Some(label) = unknown {
        let message = format!("the model does not know the class `{label}`");
        return Err(Error::data("data/unknown-class", message)
            .at(place())
            .hint(format!("it knows: {}", model.about.classes.join(", "))));
    }
    let name = args.input.file_name().and_then(|name| name.to_str()).unwrap_or("new");
    let who = Newcomer {
        name: name.split('.').next().unwrap_or(name),
        features: &rows.features,
        answers: &answers,
        like: args.node.as_deref().map(|node| model.node(Some(node))).transpose()?,
        batch,
        folds: args.folds as usize,
    };
    let found = adapted(&model, &who, &program.registries.problems)?;
    if !found.solved {
        output.warn("an inner problem was not solved to full accuracy");
    }
    if let Some(path) = &args.out {
        found.model.save(path)?;
    }
    let aside = args.out.as_ref().map(|path| output.beside(path));
    show_all(&found, &answers, args, aside.as_ref().unwrap_or(output));
    Ok(ExitCode::SUCCESS)
}

fn show_all(found: &Adapted, answers: &Answers, args: &AdaptArgs, output: &Output) {
    let classes = &found.model.about.classes;
    let all: [(&str, &str, &AnyScore); 3] = [
        ("adapted", "adapted: x of the run, θ of these rows", &found.adapted),
        ("alone", "alone: a linear model of these rows", &found.alone),
        ("mean", "mean: x and the mean θ of the run", &found.mean),
    ];
    let majority = match answers {
        Answers::Classes(truth) => truth.majority(),
        Answers::Numbers(_) | Answers::Survival(_) => None,
    };
    if output.json() {
        let mut document = json!({
            "rows": answers.rows(),
            "folds": args.folds,
            "seed": found.model.about.seed,
            "algorithm": found.model.about.algorithm,
            "solved": found.solved,
            "majority": majority.map(|(class, share)| {
                json!({ "class": classes[class], "accuracy": share })
            }),
            "model": args.out.as_ref().map(|path| path.display().to_string()),
        });
        for (name, _, score) in all {
            document[name] = match score {
                AnyScore::Classes(score) => show::to_json(score, classes),
                AnyScore::Numbers { errors, .. } => numbers::to_json(*errors),
                AnyScore::Survival { concordance, .. } => json!({ "concordance": concordance }),
            };
        }
        if let AnyScore::Numbers { of_mean, .. } = all[0].2 {
            document["of_mean"] = numbers::to_json(*of_mean);
        }
        output.document(&document);
    } else {
        let heads: Vec<&str> = match answers {
            Answers::Classes(_) => show::heads().collect(),
            Answers::Numbers(_) => numbers::HEADS.to_vec(),
            Answers::Survival(_) => vec!["concordance"],
        };
        let head: Vec<&str> = std::iter::once("model").chain(heads).collect();
        let line = |(_, name, score): &(&str, &str, &AnyScore)| {
            let cells: Vec<String> = match score {
                AnyScore::Classes(score) => show::cells(score).collect(),
                AnyScore::Numbers { errors, .. } => numbers::cells(*errors),
                AnyScore::Survival { concordance, .. } => {
                    vec![concordance.map_or("–".into(), |share| format!("{share:.4}"))]
                }
            };
            std::iter::once(name.to_string()).chain(cells).collect()
        };
        let mut lines: Vec<Vec<String>> = all.iter().map(line).collect();
        if let AnyScore::Numbers { of_mean, .. } = all[0].2 {
            let name = "always the mean of these rows".to_string();
            lines.push(std::iter::once(name).chain(numbers::cells(*of_mean)).collect());
        }
        let table = output.table(&head, lines);
        let majority = majority.map(|(class, share)| (Some(class), share));
        output.text(&format!("{table}{}", show::majority(majority, classes)));
    }
    output.note(&format!(
        "{} rows of {}, judged by {}-fold cross-validation, seed {}",
        answers.rows(),
        args.input.display(),
        args.folds,
        found.model.about.seed
    ));
    match &args.out {
        Some(path) => {
            let path = path.display();
            output.note(&format!("model: {path}\nnext: lopa predict {path} --input NEW_ROWS"));
        }
        None => output.note("nothing was saved; add `-o model.safetensors` to keep the model"),
    }
}
