//! `lopa evaluate` without new rows: the run's own measurements, taken again from its models.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::data::{self, Data, Where};
use lopa::error::{Error, Kind, Result};
use lopa::evaluate;
use lopa::experiment::{Exactly, Experiment, Registries};
use lopa::run::Context;
use rayon::ThreadPool;
use serde_json::{Map, Value, json};

use super::saved::{Run, Saved};
use super::threads::{pool, threads};
use crate::Program;
use crate::args::EvaluateArgs;
use crate::output::{Output, number};

/// What must be as it was.
const DECISIVE: [&str; 4] = ["loss", "train_accuracy", "test_accuracy", "own_test_accuracy"];

/// What else is measured; rounding may move it.
const FURTHER: [&str; 3] = ["phi", "grad_phi_sq", "consensus"];

/// The same up to rounding on another machine.
const TOLERANCE: f64 = 1e-9;

pub fn measure(args: &EvaluateArgs, saved: &Saved, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let experiment = experiment(saved, &program.registries)?;
    let pool = pool(threads(&args.threads)?)?;
    let context = Context {
        pool: pool.as_ref(),
        data_dir: Where::new(args.data.as_deref(), 0).directory,
        interrupt: &AtomicBool::new(false),
        probe: None,
    };
    let data = experiment.load_data(&context)?;
    if !same_data(saved, data.as_ref()) {
        output.warn("the data is not the data of the run: its digest is another");
    }
    let mut entries = Vec::new();
    for run in saved.runs(&args.model)? {
        entries.push(entry(saved, run, &experiment, data.as_ref(), pool.as_ref())?);
    }
    match output.json() {
        true => output.document(&Value::Array(entries.clone())),
        false => output.text(&table(&entries, output)),
    }
    let differ: Vec<String> =
        entries.iter().filter(|entry| entry["agrees"] == false).map(name).collect();
    if differ.is_empty() {
        output.note("all as the run measured it");
        return Ok(ExitCode::SUCCESS);
    }
    let message =
        format!("measured again, these are not as the run left them: {}", differ.join("; "));
    let error = Error::new(Kind::Mismatch, "results/mismatch", message)
        .at(saved.folder.join("results.json").display().to_string())
        .hint("the models, the results or the data were changed after the run");
    output.complain(&error);
    Ok(ExitCode::from(error.kind.exit_code()))
}

fn name(entry: &Value) -> String {
    format!("{} with seed {}", entry["algorithm"].as_str().unwrap_or_default(), entry["seed"])
}

fn experiment(saved: &Saved, registries: &Registries) -> Result<Experiment> {
    let path = saved.folder.join("resolved.toml");
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Error::storage("storage/read", format!("cannot read the experiment of the run: {error}"))
            .at(&name)
    })?;
    Experiment::read(&Source::new(name, text), registries)
}

/// Whether the data has the digest that the run noted.
fn same_data(saved: &Saved, data: Option<&Data>) -> bool {
    let manifest = std::fs::read_to_string(saved.folder.join("manifest.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    let noted = manifest["data_digest"].as_str();
    noted.is_none() || noted == data.map(data::digest).as_deref()
}

/// The measures of a run's models, taken again, and whether they agree with its results.
fn entry(
    saved: &Saved,
    run: &Run,
    experiment: &Experiment,
    data: Option<&Data>,
    pool: Option<&ThreadPool>,
) -> Result<Value> {
    let model = saved.model(run)?;
    let world = experiment.world(data, run.seed)?;
    let mut parts = experiment.parts::<f64>(data, &world, run.seed)?;
    let fits = parts.len() == model.x.len()
        && parts.iter().zip(&model.x).all(|(part, x)| part.dims().n == x.len())
        && parts.iter().zip(&model.theta).all(|(part, theta)| part.dims().p == theta.len());
    if !fits {
        let message = format!("the models of {} do not fit the experiment", run.algorithm);
        return Err(Error::storage("storage/model", message).at(saved.folder.display().to_string()));
    }
    if model.theta.iter().any(|theta| theta.iter().all(|value| value.is_nan())) {
        let message =
            "this is the folder of one node among peers: other nodes' models are not here";
        return Err(Error::config("config/not-here", message)
            .at(saved.folder.display().to_string())
            .hint("name a data file with --input and the node with --node"));
    }
    let points: Vec<_> = model.x.into_iter().zip(model.theta).collect();
    let sound = points.iter().all(|(x, theta)| x.iter().chain(theta).all(|v| v.is_finite()));
    let exact = experiment.run.exact != Exactly::Never && run.result["stop"] != "diverged";
    let measured = match sound {
        true => evaluate::summarise(&evaluate::all(&mut parts, &points, exact, pool)),
        false => Default::default(),
    };
    let mut entry = Map::new();
    entry.insert("algorithm".into(), json!(run.algorithm));
    entry.insert("seed".into(), json!(run.seed));
    for name in DECISIVE.into_iter().chain(FURTHER) {
        if let Some(value) = measured.get(name).filter(|value| value.is_finite()) {
            entry.insert(name.into(), json!(value));
        }
    }
    let agrees = DECISIVE.iter().all(|&name| same(entry.get(name), &run.result[name]));
    entry.insert("agrees".into(), json!(agrees));
    Ok(Value::Object(entry))
}

/// Whether a measure is what it was.
fn same(now: Option<&Value>, then: &Value) -> bool {
    match (now.and_then(Value::as_f64), then.as_f64()) {
        (Some(now), Some(then)) => (now - then).abs() <= TOLERANCE * now.abs().max(then.abs()),
        (now, then) => now.is_none() && then.is_none(),
    }
}

fn table(entries: &[Value], output: &Output) -> String {
    let measured = |name: &&str| entries.iter().any(|entry| entry[*name].is_number());
    let measures: Vec<&str> = DECISIVE.into_iter().chain(FURTHER).filter(measured).collect();
    let heads = measures.iter().map(|name| match *name {
        "grad_phi_sq" => "|∇Φ|²".to_string(),
        "phi" => "Φ".to_string(),
        "own_test_accuracy" => "own classes".to_string(),
        other => other.replace('_', " "),
    });
    let head: Vec<String> = ["algorithm", "seed"]
        .map(String::from)
        .into_iter()
        .chain(heads)
        .chain(["as before".into()])
        .collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let row = |entry: &Value| {
        let mut cells = vec![entry["algorithm"].as_str().unwrap_or_default().to_string()];
        cells.push(entry["seed"].to_string());
        cells.extend(measures.iter().map(|name| entry[*name].as_f64().map_or("–".into(), number)));
        cells.push(if entry["agrees"] == true { "yes" } else { "no" }.into());
        cells
    };
    output.table(&head, entries.iter().map(row).collect())
}
