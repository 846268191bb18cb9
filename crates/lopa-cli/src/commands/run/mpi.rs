//! `lopa run --engine mpi`: the processes started by one `mpirun` run an experiment together.
//!
//! All do the same in the same order. Process 0 writes and prints; another process prints only if it
//! alone fails.

use std::process::ExitCode;

use lopa::data::Data;
use lopa::engine::{Mpi, Transport, anything, block};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::Experiment;
use lopa::folder::RunFolder;
use lopa::run::trace::Stop;
use lopa::run::{Context, Outcome};

use crate::args::{ExperimentArgs, Resume, ThreadArgs};
use crate::commands::bars::Bars;
use crate::commands::environment::Environment;
use crate::commands::run_folder::{Destination, exit_code, show, status};
use crate::commands::signals::Signals;
use crate::commands::source::experiment;
use crate::commands::summary;
use crate::output::Output;
use crate::program::Program;

pub fn run(
    args: &ExperimentArgs,
    threads: &ThreadArgs,
    resume: Resume,
    program: &Program,
) -> Result<ExitCode> {
    let output = &program.output;
    let mut mpi = Mpi::start()?;
    mpi.abort_on_panic();
    // Processes share the cores: each gets one thread by default.
    let threads = ThreadArgs { jobs: threads.jobs.or(Some(1)) };
    let environment = Environment::new(&threads, &args.file.data)?;
    let (context, signals) = (environment.context(), &environment.signals);
    let destination = Destination { out: &args.out, resume, threads: environment.threads };
    let ready = prepare(args, &destination, &context, &mpi, program);
    let codes =
        mpi.all(&[ready.as_ref().map_or_else(|error| error.kind.exit_code(), |_| 0)], &anything)?;
    if let Some(first) = codes.iter().position(|code| code != &[0]) {
        // The first process that cannot start reports why.
        let ours = ready.err().filter(|_| first == mpi.rank());
        return end(&mut mpi, ours.as_ref(), codes[first][0], output);
    }
    let done = together(ready?, &mut mpi, &context, signals, output);
    match done {
        // The same in every process: process 0 reports it.
        Err(error) if error.kind == Kind::Config => {
            let ours = Some(&error).filter(|_| mpi.rank() == 0);
            end(&mut mpi, ours, error.kind.exit_code(), output)
        }
        Err(error) => {
            // The others wait for this process in the middle of a round, and would wait forever.
            output.fail(&error);
            mpi.abort(error.kind.exit_code())
        }
        _ => done,
    }
}

/// Ends all processes, after the one that failed has reported: `mpirun` kills the others as soon as
/// one fails.
fn end(mpi: &mut Mpi, ours: Option<&Error>, code: u8, output: &Output) -> Result<ExitCode> {
    if let Some(error) = ours {
        output.fail(error);
    }
    mpi.all(&[], &anything)?;
    Ok(ExitCode::from(code))
}

/// Runs everything; process 0 prints the results, and all end with its exit code.
fn together(
    Ready { experiment, data, mut folder, device }: Ready,
    mpi: &mut Mpi,
    context: &Context,
    signals: &Signals,
    output: &Output,
) -> Result<ExitCode> {
    if let Some(device) = device {
        let devices = mpi.all(device.as_bytes(), &anything)?;
        let devices = devices.iter().map(|name| String::from_utf8_lossy(name).into_owned());
        folder.as_mut().map_or(Ok(()), |folder| folder.name_devices(devices.collect()))?;
    }
    let (outcomes, folder) = go(&experiment, data, folder, mpi, context, output)?;
    let signal = agreed_signal(mpi, signals, &outcomes)?;
    if let Some(mut folder) = folder {
        folder.finish(status(&Ok(Vec::new()), signal))?;
        show(&experiment, &outcomes, &folder, signal, output);
    }
    // Process 0 has the runs that ended earlier.
    let codes = mpi.all(&[exit_code(&outcomes, signal)], &anything)?;
    Ok(ExitCode::from(codes[0][0]))
}

/// The data that a process needs to start, and the name of its device; process 0 has the run folder.
struct Ready {
    experiment: Experiment,
    data: Option<Data>,
    folder: Option<RunFolder>,
    device: Option<String>,
}

fn prepare(
    args: &ExperimentArgs,
    destination: &Destination,
    context: &Context,
    mpi: &Mpi,
    program: &Program,
) -> Result<Ready> {
    let output = &program.output;
    let experiment = experiment(args, &program.registries)?;
    let (size, nodes) = (mpi.size(), experiment.network.nodes);
    if size > nodes {
        let message = format!("{size} processes for {nodes} nodes: some would have none");
        return Err(Error::config("config/too-many-processes", message)
            .at("mpirun -n")
            .hint(format!("start at most {nodes}")));
    }
    let driver = experiment.device.build.driver();
    let device = driver.map(|driver| (driver.describe)(mpi.place())).transpose()?;
    if mpi.rank() > 0 {
        let data = experiment.load_data_of(context, block(nodes, size, mpi.rank()))?;
        return Ok(Ready { experiment, data, folder: None, device });
    }
    // All of it, once: its digest is in the folder, and does not depend on the number of processes.
    let data = experiment.load_data(context)?;
    output.note(&format!("{}, in {size} processes", summary::heading(&experiment)));
    let folder = destination.open(&experiment, data.as_ref(), output)?;
    Ok(Ready { experiment, data, folder: Some(folder), device })
}

/// Runs everything; returns the folder, if this process has it.
fn go(
    experiment: &Experiment,
    data: Option<Data>,
    folder: Option<RunFolder>,
    mpi: &mut Mpi,
    context: &Context,
    output: &Output,
) -> Result<(Vec<Outcome>, Option<RunFolder>)> {
    let Some(mut folder) = folder else {
        let outcomes = experiment.run_across(mpi, data, context, &mut (), &mut ())?;
        return Ok((outcomes, None));
    };
    let mut bars = Bars::new(output, experiment);
    let done = experiment.run_across(mpi, data, context, &mut folder, &mut bars);
    if let Err(error) = &done {
        // The first error is the one that matters.
        let _ = folder.fail(error);
    }
    Ok((done?, Some(folder)))
}

/// The exit code of the signal that stopped the run, if one did, in whichever process.
fn agreed_signal(mpi: &mut Mpi, signals: &Signals, outcomes: &[Outcome]) -> Result<Option<u8>> {
    let codes = mpi.all(&[signals.code().unwrap_or(0)], &anything)?;
    let stopped = outcomes.last().is_some_and(|last| last.stop == Stop::Interrupted);
    Ok(codes.iter().map(|code| code[0]).max().filter(|&code| stopped && code > 0))
}
