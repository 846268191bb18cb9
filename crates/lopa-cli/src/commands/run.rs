//! `lopa run`: every algorithm of an experiment on every seed.

use std::process::ExitCode;

use lopa::data::{Data, Where};
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, RunSpec};
use lopa::folder::{self, RunFolder};
use lopa::registry::{Fault, Params};
use lopa::run::{Context, Outcome};
use lopa::trace::Stop;
use serde_json::{Value, json};

use super::reporter::Reporter;
use super::signals::Signals;
use super::source::source;
use super::summary;
use super::threads::{pool, threads};
use crate::args::RunArgs;
use crate::output::Output;

pub fn run(args: &RunArgs, output: &Output) -> Result<ExitCode> {
    let experiment = experiment(args)?;
    let threads = threads(&args.threads)?;
    let pool = pool(threads)?;
    let signals = Signals::listen()?;
    let context = Context {
        pool: pool.as_ref(),
        data_dir: Where::new(args.file.data.as_deref(), 0).directory,
        interrupt: signals.interrupt(),
    };
    output.note(&summary::heading(&experiment));
    let data = experiment.load_data(&context)?;
    if args.dry_run {
        return dry_run(&experiment, data.as_ref(), output);
    }
    let folder = RunFolder::create(&args.out, &experiment, data.as_ref(), threads)?;
    let mut reporter = Reporter::new(output, folder, &experiment);
    let done = experiment.run_on(data.as_ref(), &context, &mut reporter);
    reporter.folder.finish(match (&done, signals.code()) {
        (Err(_), _) => "failed",
        (Ok(_), Some(_)) => "interrupted",
        (Ok(_), None) => "done",
    })?;
    let outcomes = done?;
    if output.json() {
        output.document(&Value::Array(outcomes.iter().map(folder::result).collect()));
    } else {
        output.text(&summary::table(&experiment, &outcomes, output));
    }
    output.note(&format!("\n{}", summary::closing(&experiment, &outcomes)));
    output.note(&format!("trajectory digest {}", summary::digest(&outcomes)));
    output.note(&format!("results in {}", reporter.folder.path().display()));
    Ok(exit_code(&outcomes, &signals))
}

/// The experiment of the file, on the seeds of the command line if it has any.
fn experiment(args: &RunArgs) -> Result<Experiment> {
    let mut experiment = Experiment::read(&source(&args.file)?)?;
    if !args.seeds.is_empty() {
        experiment.run.seeds = args.seeds.clone();
    }
    checked(&experiment.run, "--seed")?;
    Ok(experiment)
}

/// Whether what a flag put into an experiment makes sense there.
pub fn checked(run: &RunSpec, flag: &str) -> Result<()> {
    let wrong = |fault: Fault| Error::config("config/out-of-range", fault.message).at(flag);
    run.check().map_err(wrong)
}

fn exit_code(outcomes: &[Outcome], signals: &Signals) -> ExitCode {
    let diverged = outcomes.iter().filter(|outcome| outcome.stop == Stop::Diverged).count();
    match (signals.code(), diverged) {
        (Some(code), _) => ExitCode::from(code),
        (None, 0) => ExitCode::SUCCESS,
        (None, n) if n == outcomes.len() => ExitCode::from(1),
        (None, _) => ExitCode::from(9),
    }
}

fn dry_run(experiment: &Experiment, data: Option<&Data>, output: &Output) -> Result<ExitCode> {
    let keys = ["seed", "nodes", "edges", "rho", "x", "theta", "samples"];
    let mut worlds = Vec::new();
    for &seed in &experiment.run.seeds {
        let world = experiment.world(data, seed)?;
        let dims = experiment.parts::<f64>(data, &world, seed)?[0].dims();
        worlds.push(json!({
            "seed": seed,
            "nodes": world.graph.nodes(),
            "edges": world.graph.edges().count(),
            "rho": world.analysis.rho,
            "x": dims.n,
            "theta": dims.p,
            "samples": world.partition.nodes.iter().map(Vec::len).sum::<usize>(),
        }));
    }
    if output.json() {
        output.document(&Value::Array(worlds));
    } else {
        let cell = |value: &Value| match value.as_u64() {
            Some(count) => count.to_string(),
            None => format!("{:.4}", value.as_f64().unwrap_or(f64::NAN)),
        };
        let row = |world: &Value| keys.iter().map(|key| cell(&world[key])).collect();
        let head = ["seed", "nodes", "edges", "rho", "entries of x", "of theta_i", "samples"];
        output.text(&output.table(&head, worlds.iter().map(row).collect()));
    }
    output.note("everything checks out; nothing was run");
    Ok(ExitCode::SUCCESS)
}
