//! `lopa run`: every algorithm of an experiment on every seed.

use std::path::Path;
use std::process::ExitCode;

use lopa::config::Params;
use lopa::data::Data;
use lopa::error::{Error, Fault, Result};
use lopa::experiment::{Experiment, Registries, RunSpec};
use lopa::folder::{ResultEntry, RunFolder, Status};
use lopa::run::Outcome;
use lopa::run::trace::Stop;
use serde_json::{Value, json};

use super::bars::Bars;
use super::outside::Outside;
use super::source::{read_experiment, source};
use super::summary;
use crate::Program;
use crate::args::{Engine, FileArgs, Resume, RunArgs};
use crate::output::Output;

pub fn run(args: &RunArgs, program: &Program) -> Result<ExitCode> {
    match args.engine {
        Engine::Process => in_this_process(args, program),
        #[cfg(feature = "mpi")]
        Engine::Mpi => super::mpi::run(args, program),
        #[cfg(not(feature = "mpi"))]
        Engine::Mpi => Err(Error::config("config/no-mpi", "this lopa was built without MPI")
            .at("--engine")
            .hint("`lopa doctor` says what is missing and how to install it")),
    }
}

fn in_this_process(args: &RunArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let experiment = experiment(&args.file, &args.seeds, &program.registries)?;
    let outside = Outside::new(&args.threads, args.file.data.as_deref())?;
    let (context, signals) = (outside.context(), &outside.signals);
    output.note(&summary::heading(&experiment));
    let data = experiment.load_data(&context)?;
    if args.dry_run {
        return dry_run(&experiment, data.as_ref(), output);
    }
    let keeping = Keeping { out: &args.out, resume: args.resume, threads: outside.threads };
    let mut folder = folder(&keeping, &experiment, data.as_ref(), output)?;
    let mut bars = Bars::new(output, &experiment);
    let done = experiment.run_on(data.as_ref(), &context, &mut folder, &mut bars);
    folder.finish(status(&done, signals.code()))?;
    let outcomes = done?;
    show(&experiment, &outcomes, &folder, output);
    if signals.code().is_some() {
        output.note(GOES_ON);
    }
    Ok(ExitCode::from(exit_code(&outcomes, signals.code())))
}

/// What whoever stopped a run is told.
pub const GOES_ON: &str = "interrupted: the same command goes on from here";

/// How a folder is left.
pub fn status(done: &Result<Vec<Outcome>>, signal: Option<u8>) -> Status {
    match (done, signal) {
        (Err(_), _) => Status::Failed,
        (Ok(_), Some(_)) => Status::Interrupted,
        (Ok(_), None) => Status::Done,
    }
}

/// What came out.
pub fn show(experiment: &Experiment, outcomes: &[Outcome], folder: &RunFolder, output: &Output) {
    if output.json() {
        let results: Vec<ResultEntry> = outcomes.iter().map(ResultEntry::from).collect();
        output.document(&json!(results));
    } else {
        output.text(&summary::table(experiment, outcomes, output));
    }
    output.note(&format!("\n{}", summary::closing(experiment, outcomes)));
    output.note(&format!("trajectory digest {}", summary::digest(outcomes)));
    output.note(&format!("results in {}", folder.path().display()));
}

/// Where a run is kept.
pub struct Keeping<'a> {
    /// The folder that run folders are in.
    pub out: &'a Path,
    /// Whether to go on with an earlier run.
    pub resume: Resume,
    /// How many threads it has.
    pub threads: usize,
}

/// The folder of an earlier run that did not come to its end, or a new one.
pub fn folder(
    &Keeping { out, resume, threads }: &Keeping,
    experiment: &Experiment,
    data: Option<&Data>,
    output: &Output,
) -> Result<RunFolder> {
    if resume != Resume::Never
        && let Some(folder) = RunFolder::unfinished(out, experiment, data)?
    {
        output.note(&format!("going on with {}", folder.path().display()));
        return Ok(folder);
    }
    if resume == Resume::Require {
        let message = "there is no run of this experiment to go on with: none was begun with the \
            same file, data and version, or all came to their end or are still at work";
        return Err(Error::storage("storage/nothing-to-resume", message)
            .at(out.display().to_string())
            .hint("leave `--resume require` out to start one"));
    }
    RunFolder::create(out, experiment, data, threads)
}

/// The experiment of the file, on the seeds of the command line if it has any.
pub fn experiment(file: &FileArgs, seeds: &[u64], registries: &Registries) -> Result<Experiment> {
    let mut experiment = read_experiment(&source(file)?, registries)?;
    if !seeds.is_empty() {
        experiment.run.seeds = seeds.to_vec();
    }
    checked(&experiment.run, "--seed")?;
    Ok(experiment)
}

/// Whether what a flag put into an experiment makes sense there.
pub fn checked(run: &RunSpec, flag: &str) -> Result<()> {
    let wrong = |fault: Fault| Error::config("config/out-of-range", fault.message).at(flag);
    run.check().map_err(wrong)
}

/// The exit code that tells how runs ended.
pub fn exit_code(outcomes: &[Outcome], signal: Option<u8>) -> u8 {
    let diverged = outcomes.iter().filter(|outcome| outcome.stop == Stop::Diverged).count();
    match (signal, diverged) {
        (Some(code), _) => code,
        (None, 0) => 0,
        (None, n) if n == outcomes.len() => 1,
        (None, _) => 9,
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
