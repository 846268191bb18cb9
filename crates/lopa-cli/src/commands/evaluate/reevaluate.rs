//! `lopa evaluate` without new rows: measures a run's models again on the run's own data.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use lopa::data::{self, Data};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Exactly, Experiment, FinalTheta};
use lopa::run::Context;
use lopa::run::evaluate;
use lopa::run::trace::{Stop, baseline_name, baseline_of};
use lopa::run::{Outcome, Setup};
use lopa_study::seeds::Ended;
use lopa_study::table::head;
use rayon::ThreadPool;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::{DataArgs, ThreadArgs};
use crate::commands::finished::{Finished, ModelArgs};
use crate::commands::threads::{pool, threads};
use crate::output::{Output, number};
use crate::program::Program;

/// Measures that must agree.
const DECISIVE: [&str; 17] = [
    "holdout_accuracy",
    "holdout_r2",
    "holdout_rmse",
    "holdout_mae",
    "loss",
    "train_accuracy",
    "test_accuracy",
    "own_test_accuracy",
    "train_r2",
    "train_rmse",
    "train_mae",
    "test_r2",
    "test_rmse",
    "test_mae",
    "holdout_concordance",
    "train_concordance",
    "test_concordance",
];

/// Further measures, which rounding may change.
const FURTHER: [&str; 3] = ["phi", "grad_phi_sq", "consensus"];

/// The relative difference that rounding on another machine may cause.
const TOLERANCE: f64 = 1e-9;

/// A run, measured again.
#[derive(Serialize)]
struct Remeasured<'a> {
    algorithm: &'a str,
    seed: u64,
    diverged: bool,
    /// The measures taken, in the order of the constants above, and those of the majority class or
    /// the mean.
    #[serde(flatten)]
    measures: Map<String, Value>,
    agrees: bool,
}

pub fn reevaluate(
    finished: &Finished,
    models: &ModelArgs,
    (data, jobs): (&DataArgs, &ThreadArgs),
    program: &Program,
) -> Result<ExitCode> {
    let output = &program.output;
    let experiment = Experiment::read(&finished.folder.resolved()?, &program.registries)?;
    let pool = pool(threads(jobs)?)?;
    let context = Context {
        pool: pool.as_ref(),
        data_dir: data.folder(),
        interrupt: &AtomicBool::new(false),
        probe: None,
    };
    let data = experiment.load_data(&context)?;
    let noted = finished.folder.manifest().data_digest.as_ref();
    if noted.is_some_and(|noted| data.as_ref().map(data::digest).as_ref() != Some(noted)) {
        output.warn("the data is not the data of the run: its digest differs");
    }
    let mut runs = Vec::new();
    for run in finished.runs(models, output)? {
        runs.push(remeasured(finished, run, &experiment, data.as_ref(), pool.as_ref())?);
    }
    match output.json() {
        true => output.document(&json!(runs)),
        false => output.text(&table(&runs, output)),
    }
    let name = |run: &Remeasured| format!("{} with seed {}", run.algorithm, run.seed);
    let differ: Vec<String> = runs.iter().filter(|run| !run.agrees).map(name).collect();
    if differ.is_empty() {
        output.note("all measures are as the run recorded them");
        return Ok(ExitCode::SUCCESS);
    }
    let message = format!("measured again, these differ from the results: {}", differ.join("; "));
    let error = Error::new(Kind::Mismatch, "results/mismatch", message)
        .at(finished.folder.path().join("results.json").display().to_string())
        .hint("the models, the results or the data have changed since the run");
    output.complain(&error);
    Ok(ExitCode::from(error.kind.exit_code()))
}

/// The measures of a run's models, taken again, and whether they agree with its result.
fn remeasured<'a>(
    finished: &Finished,
    run: &'a Outcome,
    experiment: &Experiment,
    data: Option<&Data>,
    pool: Option<&ThreadPool>,
) -> Result<Remeasured<'a>> {
    let model = finished.model(run)?;
    let place = || finished.folder.path().display().to_string();
    let world = experiment.world(data, run.seed)?;
    let mut parts = experiment.setup(data, &world, run.seed).parts::<f64>()?;
    let fits = parts.len() == model.x.len()
        && parts.iter().zip(&model.x).all(|(part, x)| part.dims().n == x.len())
        && parts.iter().zip(&model.theta).all(|(part, theta)| part.dims().p == theta.len());
    if !fits {
        let message = format!("the models of {} do not fit the experiment", run.algorithm);
        return Err(Error::storage("storage/model", message).at(place()));
    }
    if !run.diverged() && model.lacks_some() {
        let message =
            "this folder belongs to one node among peers: it lacks the other nodes' models";
        return Err(Error::config("config/not-here", message)
            .at(place())
            .hint("name a data file with --input and the node with --node"));
    }
    let mut points: Vec<_> = model.x.into_iter().zip(model.theta).collect();
    if experiment.run.final_theta == FinalTheta::Refitted && !run.diverged() {
        // The models have seen the rows that they were judged on; those that were judged had not.
        let setup = Setup { experiment, data, world: &world, seed: run.seed, pool };
        let judged = setup.exact_theta(0..points.len(), &points, false, &mut Ok)?;
        points.iter_mut().zip(judged.theta).for_each(|(point, theta)| point.1 = theta);
    }
    let sound = points.iter().all(|(x, theta)| x.iter().chain(theta).all(|v| v.is_finite()));
    let exact = experiment.run.exact != Exactly::Never && run.stop != Stop::Diverged;
    let mut now = match sound {
        true => evaluate::summarise(&evaluate::all(&mut parts, &points, exact, pool)),
        false => Default::default(),
    };
    now.retain(|_, value| value.is_finite());
    let measure = |name: String| Some((name.clone(), json!(now.get(&name)?)));
    let names = DECISIVE.into_iter().chain(FURTHER).map(String::from);
    let names = names.chain(DECISIVE.into_iter().filter_map(baseline_of));
    let measures = names.filter_map(measure).collect();
    let agrees = |name: &&str| same(now.get(*name), run.row.values.get(*name));
    let agrees = DECISIVE.iter().all(agrees);
    let (algorithm, seed, diverged) = (&run.algorithm[..], run.seed, run.diverged());
    Ok(Remeasured { algorithm, seed, diverged, measures, agrees })
}

/// Whether a measure is unchanged.
fn same(now: Option<&f64>, then: Option<&f64>) -> bool {
    match (now, then) {
        (Some(now), Some(then)) => (now - then).abs() <= TOLERANCE * now.abs().max(then.abs()),
        (now, then) => now.is_none() && then.is_none(),
    }
}

/// Always naming each node's most frequent class, or the mean of its numbers, for each seed.
fn baseline(runs: &[Remeasured], columns: &[&str]) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for run in runs {
        let value = |name: &&str| run.measures.get(&baseline_of(name)?).and_then(Value::as_f64);
        let values: Vec<Option<f64>> = columns.iter().map(value).collect();
        let seed = run.seed.to_string();
        let told = lines.iter().any(|line| line[1] == seed);
        if !told && values.iter().any(Option::is_some) {
            let known = columns.iter().find(|name| baseline_of(name).is_some());
            let mut line = vec![known.map_or("", |name| baseline_name(name)).to_string(), seed];
            line.extend(values.into_iter().map(|value| value.map_or("–".into(), number)));
            line.push("–".into());
            lines.push(line);
        }
    }
    lines
}

fn table(runs: &[Remeasured], output: &Output) -> String {
    let measured = |name: &&str| runs.iter().any(|run| run.measures.contains_key(*name));
    let measures: Vec<&str> = DECISIVE.into_iter().chain(FURTHER).filter(measured).collect();
    let heads = measures.iter().map(|name| head(name));
    let line: Vec<String> = ["algorithm", "seed"]
        .map(String::from)
        .into_iter()
        .chain(heads)
        .chain(["same".into()])
        .collect();
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let row = |run: &Remeasured| {
        let value = |name: &&str| run.measures.get(*name).and_then(Value::as_f64);
        let mut cells = vec![run.algorithm.to_string(), run.seed.to_string()];
        cells.extend(measures.iter().map(|name| value(name).map_or("–".into(), number)));
        cells.push(if run.agrees { "yes" } else { "no" }.into());
        cells
    };
    output.table(&line, runs.iter().map(row).chain(baseline(runs, &measures)).collect())
}
