//! `lopa predict`: the classes a personal model gives to new rows.

use std::process::ExitCode;

use lopa::data::new_rows;
use lopa::error::{Error, Result};
use serde_json::{Value, json};

use super::finished::{Finished, names, one_each};
use crate::Program;
use crate::args::PredictArgs;

pub fn predict(args: &PredictArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let finished = Finished::open(&args.model.run)?;
    let runs = one_each(&finished.runs(&args.model)?);
    let [run] = runs[..] else {
        return Err(Error::config("config/missing-key", "the run has several algorithms")
            .at("--algorithm")
            .hint(format!("choose one of: {}", names(&runs).join(", "))));
    };
    let model = finished.model(run)?;
    let rows = new_rows(&args.input, finished.features(&model)?, args.label.as_deref())?;
    let predicted = model.predict(args.node, &rows.features, &program.registries.problems)?;
    let classes = predicted.iter().map(|&class| model.about.classes[class as usize].as_str());
    if output.json() {
        let line = |(row, class)| json!({ "row": row, "class": class });
        output.document(&Value::Array(classes.enumerate().map(line).collect()));
    } else {
        output.text(&classes.collect::<Vec<_>>().join("\n"));
    }
    output.note(&format!(
        "{} rows by {}, seed {}, node {}",
        predicted.len(),
        run.algorithm,
        run.seed,
        args.node
    ));
    Ok(ExitCode::SUCCESS)
}
