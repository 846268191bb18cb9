//! `lopa run --engine mpi`: the processes that one `mpirun` started run an experiment together.
//!
//! All do the same in the same order. Process 0 writes and speaks; another one speaks only if it
//! alone is in trouble.

use std::process::ExitCode;

use lopa::data::Data;
use lopa::engine::{Mpi, Transport, block};
use lopa::error::{Error, Kind, Result};
use lopa::experiment::Experiment;
use lopa::folder::RunFolder;
use lopa::run::trace::Stop;
use lopa::run::{Context, Outcome};

use super::bars::Bars;
use super::outside::Outside;
use super::run::{GOES_ON, Keeping, exit_code, experiment, folder, show, status};
use super::signals::Signals;
use super::summary;
use crate::Program;
use crate::args::{RunArgs, ThreadArgs};
use crate::output::Output;

pub fn run(args: &RunArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let mut mpi = Mpi::start()?;
    mpi.abort_on_panic();
    // Processes share the cores: each gets one thread unless told otherwise.
    let jobs = ThreadArgs { jobs: args.threads.jobs.or(Some(1)) };
    let outside = Outside::new(&jobs, args.file.data.as_deref())?;
    let (context, signals) = (outside.context(), &outside.signals);
    let ready = prepare(args, &context, &mpi, outside.threads, program);
    let codes = mpi.all(&[ready.as_ref().map_or_else(|error| error.kind.exit_code(), |_| 0)])?;
    if let Some(first) = codes.iter().position(|code| code != &[0]) {
        // One of those that cannot begin says why.
        let ours = ready.err().filter(|_| first == mpi.rank());
        return end(&mut mpi, ours.as_ref(), codes[first][0], output);
    }
    let done = together(ready?, &mut mpi, &context, signals, output);
    match done {
        // The same everywhere, as all decide alike: process 0 says it.
        Err(error) if error.kind == Kind::Config => {
            let ours = Some(&error).filter(|_| mpi.rank() == 0);
            end(&mut mpi, ours, error.kind.exit_code(), output)
        }
        Err(error) => {
            // Others wait for this process in the middle of a round, and would for ever.
            output.fail(&error);
            mpi.abort(error.kind.exit_code())
        }
        _ => done,
    }
}

/// Ends all processes, once the one that has something to say has said it: `mpirun` ends the others
/// as soon as one has failed.
fn end(mpi: &mut Mpi, ours: Option<&Error>, code: u8, output: &Output) -> Result<ExitCode> {
    if let Some(error) = ours {
        output.fail(error);
    }
    mpi.all(&[])?;
    Ok(ExitCode::from(code))
}

/// Runs it all; process 0 shows what came out, and all end with its exit code.
fn together(
    Ready { experiment, data, folder }: Ready,
    mpi: &mut Mpi,
    context: &Context,
    signals: &Signals,
    output: &Output,
) -> Result<ExitCode> {
    let (outcomes, folder) = go(&experiment, data, folder, mpi, context, output)?;
    let signal = agreed_signal(mpi, signals, &outcomes)?;
    if let Some(mut folder) = folder {
        folder.finish(status(&Ok(Vec::new()), signal))?;
        show(&experiment, &outcomes, &folder, output);
        if signal.is_some() {
            output.note(GOES_ON);
        }
    }
    // Process 0 knows of runs that came to their end before.
    let codes = mpi.all(&[exit_code(&outcomes, signal)])?;
    Ok(ExitCode::from(codes[0][0]))
}

/// What a process needs to begin; process 0 has the run folder.
struct Ready {
    experiment: Experiment,
    data: Option<Data>,
    folder: Option<RunFolder>,
}

fn prepare(
    args: &RunArgs,
    context: &Context,
    mpi: &Mpi,
    threads: usize,
    program: &Program,
) -> Result<Ready> {
    let output = &program.output;
    let experiment = experiment(&args.file, &args.seeds, &program.registries)?;
    let (size, nodes) = (mpi.size(), experiment.network.nodes);
    if size > nodes {
        let message = format!("{size} processes for {nodes} nodes: some would have none");
        return Err(Error::config("config/too-many-processes", message)
            .at("mpirun -n")
            .hint(format!("start at most {nodes}")));
    }
    if mpi.rank() > 0 {
        let data = experiment.load_data_of(context, block(nodes, size, mpi.rank()))?;
        return Ok(Ready { experiment, data, folder: None });
    }
    // All of it, once: the folder has its digest, and that of any number of processes is the same.
    let data = experiment.load_data(context)?;
    output.note(&format!("{}, in {size} processes", summary::heading(&experiment)));
    let keeping = Keeping { out: &args.out, resume: args.resume, threads };
    let folder = folder(&keeping, &experiment, data.as_ref(), output)?;
    Ok(Ready { experiment, data, folder: Some(folder) })
}

/// Runs it all; gives the folder back, if it has one.
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
    if done.is_err() {
        folder.finish(status(&done, None))?;
    }
    Ok((done?, Some(folder)))
}

/// The exit code of the signal that stopped the run, if one did, whichever process got it.
fn agreed_signal(mpi: &mut Mpi, signals: &Signals, outcomes: &[Outcome]) -> Result<Option<u8>> {
    let codes = mpi.all(&[signals.code().unwrap_or(0)])?;
    let stopped = outcomes.last().is_some_and(|last| last.stop == Stop::Interrupted);
    Ok(codes.iter().map(|code| code[0]).max().filter(|&code| stopped && code > 0))
}
