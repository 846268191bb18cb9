//! `lopa run`: every algorithm of an experiment on every seed.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lopa::data::Data;
use lopa::error::Result;
use lopa::experiment::Experiment;
use lopa::folder::{RunFolder, complete, merged, parts_folder};
use lopa::network::time::Calls;
use serde_json::{Value, json};

use super::bars::Bars;
use super::environment::Environment;
use super::run_folder::{Destination, exit_code, show, status};
use super::share::{self, Work};
use super::source::experiment;
use super::summary;
use crate::args::{CodeArgs, ExperimentArgs, Resume, ResumeArgs, ShareArgs, ThreadArgs};
use crate::output::Output;
use crate::program::Program;

#[cfg(feature = "mpi")]
mod mpi;

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    resume: ResumeArgs,
    #[command(flatten)]
    share: ShareArgs,
    /// Where the nodes run
    #[arg(long, value_enum, default_value_t = Engine::Process)]
    engine: Engine,
    /// Check everything, load the data and draw the networks, but run nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    code: CodeArgs,
}

impl RunArgs {
    /// A run executes the code that its file names; a dry run does so only with `--run-code`.
    pub fn runs_code(&self) -> bool {
        !self.dry_run || self.code.run_code
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// In this process, on its threads
    Process,
    /// In the processes started by `mpirun`, a block of nodes in each
    Mpi,
}

pub fn run(args: &RunArgs, program: &Program) -> Result<ExitCode> {
    match args.engine {
        Engine::Process => in_this_process(args, program),
        #[cfg(feature = "mpi")]
        Engine::Mpi => {
            args.share
                .refuse("the processes of `--engine mpi` share each run, not the list of runs")?;
            mpi::run(&args.experiment, &args.threads, args.resume.resume, program)
        }
        #[cfg(not(feature = "mpi"))]
        Engine::Mpi => Err(crate::features::MPI.missing("lopa run --engine mpi")),
    }
}

fn in_this_process(args: &RunArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let experiment = experiment(&args.experiment, &program.registries)?;
    let environment = Environment::new(&args.threads, &args.experiment.file.data)?;
    let (context, signals) = (environment.context(), &environment.signals);
    output.note(&summary::heading(&experiment));
    let data = experiment.load_data(&context)?;
    if args.dry_run {
        let unmeasured = Experiment { time: None, ..experiment.clone() };
        let known = experiment.time.as_ref().is_none_or(|time| time.compute.calls().is_some());
        return dry_run(if known { &experiment } else { &unmeasured }, data.as_ref(), output);
    }
    let (out, resume) = (&args.experiment.out, args.resume.resume);
    let work = args.share.work()?;
    let parts = parts_folder(out, &experiment);
    let mut bars = Bars::new(output, &experiment);
    if let Work::Part(member) = work {
        let mut one = |one: &Experiment, runs: &Path| {
            let place = (runs, environment.threads);
            let (folder, whole) = complete(one, data.as_ref(), place, &context, &mut bars)?;
            Ok(whole.then_some(folder))
        };
        return share::part(&[&experiment], (&parts, member), &environment, &mut one, output);
    }
    let done_by_parts = match work {
        Work::Merge => merged(&[&experiment], &parts)?.pop().unwrap_or_default(),
        _ => Default::default(),
    };
    let experiment = measured(experiment, data.as_ref(), (out, resume), output)?;
    let destination = Destination { out, resume, threads: environment.threads };
    let mut folder = destination.open(&experiment, data.as_ref(), output)?;
    folder.merge(done_by_parts);
    let done = experiment.run_on(data.as_ref(), &context, &mut folder, &mut bars);
    let finished = match &done {
        Err(error) => folder.fail(error),
        Ok(_) => folder.finish(status(&done, signals.code())),
    };
    // The first error is the one that matters.
    let outcomes = done?;
    finished?;
    let signal = signals.code();
    show(&experiment, &outcomes, &folder, signal, output);
    Ok(ExitCode::from(exit_code(&outcomes, signal)))
}

/// The experiment with measured times, if its file has `compute = "measured"`: those of the run to
/// resume, or new ones.
fn measured(
    experiment: Experiment,
    data: Option<&Data>,
    (out, resume): (&Path, Resume),
    output: &Output,
) -> Result<Experiment> {
    if experiment.time.as_ref().is_none_or(|time| time.compute.calls().is_some()) {
        return Ok(experiment);
    }
    let folders = std::fs::read_dir(out).into_iter().flatten().flatten();
    for folder in folders.filter(|_| resume != Resume::Never) {
        let Some(time) = lopa::folder::times(&folder.path()) else { continue };
        let again = Experiment { time: Some(time), ..experiment.clone() };
        if RunFolder::unfinished(out, &again, data)?.is_some() {
            return Ok(again);
        }
    }
    let measured = experiment.measured(data)?;
    if let Some(Calls { gradient, hessian, jacobian, .. }) =
        measured.time.as_ref().and_then(|time| time.compute.calls())
    {
        output.note(&format!(
            "measured on this machine: gradient {gradient} s, Hessian product {hessian} s, Jacobian \
             product {jacobian} s"
        ));
    }
    Ok(measured)
}

fn dry_run(experiment: &Experiment, data: Option<&Data>, output: &Output) -> Result<ExitCode> {
    let keys = ["seed", "nodes", "edges", "rho", "x", "theta", "samples"];
    let mut worlds = Vec::new();
    for &seed in &experiment.run.seeds {
        let world = experiment.world(data, seed)?;
        let dims = experiment.setup(data, &world, seed).parts::<f64>()?[0].dims();
        let mut shown = json!({
            "seed": seed,
            "nodes": world.graph.nodes(),
            "edges": world.graph.edges().count(),
            "rho": world.analysis.rho,
            "estimated": world.analysis.estimated,
            "x": dims.n,
            "theta": dims.p,
            "samples": world.partition.nodes.iter().map(Vec::len).sum::<usize>(),
        });
        if let Some(joint) = &world.joint {
            shown["rounds"] = json!(joint);
            shown["rho_of_all_links"] = json!(world.mixing.rho());
        }
        worlds.push(shown);
    }
    if output.json() {
        output.document(&json!(worlds));
    } else {
        let cell = |value: &Value| match value.as_u64() {
            Some(count) => count.to_string(),
            None => format!("{:.4}", value.as_f64().unwrap_or(f64::NAN)),
        };
        let row = |world: &Value| keys.iter().map(|key| cell(&world[key])).collect();
        let head = ["seed", "nodes", "edges", "rho", "entries of x", "of theta_i", "samples"];
        output.text(&output.table(&head, worlds.iter().map(row).collect()));
    }
    for (seed, rounds) in
        worlds.iter().filter_map(|world| Some((&world["seed"], world.get("rounds")?)))
    {
        output.note(&format!(
            "seed {seed}: the graph changes; rho is that of a round, over windows of {}",
            rounds["window"]
        ));
    }
    output.note("everything is valid; nothing was run");
    Ok(ExitCode::SUCCESS)
}
