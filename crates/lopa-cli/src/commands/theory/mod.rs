//! `lopa theory`: what the paper's theorems say about an experiment.

mod bound;
mod constants;
mod heterogeneity;
mod rates;
mod show;
mod steps;
mod text;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use lopa::error::{Error, Result};
use lopa::run::{Context, Setup};
use lopa_study::theory::Study;
use serde_json::{Value, json};

use self::text::Answer;
use super::source::{read_experiment, source};
use super::summary;
use super::threads::{pool, threads};
use crate::args::{FileArgs, ThreadArgs};
use crate::output::Output;
use crate::program::Program;

#[derive(Debug, Subcommand)]
pub enum TheoryCommand {
    /// Everything on one screen: constants, broken conditions, what to use instead, curves
    Show(TheoryArgs),
    /// The constants of the assumptions and their origins
    Constants(TheoryArgs),
    /// Which conditions the step sizes meet, what the theorems admit, what is practical
    Steps(TheoryArgs),
    /// How much the nodes differ, and whether gradient tracking is worth its bytes
    Heterogeneity(TheoryArgs),
    /// The theorems' bound beside the measured curve, and the recursion of each lemma
    Bound(TheoryArgs),
    /// Measure the exponents of the corollaries on quadratics
    Rates(rates::RatesArgs),
}

#[derive(Debug, Args)]
pub struct TheoryArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Seed [default: the first of the file]
    #[arg(short, long)]
    seed: Option<u64>,
    /// Follow the runs for at most K iterations
    #[arg(long, value_name = "K", default_value_t = 3000)]
    iterations: u64,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn theory(command: &TheoryCommand, program: &Program) -> Result<ExitCode> {
    match command {
        TheoryCommand::Show(args) => study(args, program, show::answer),
        TheoryCommand::Constants(args) => study(args, program, constants::answer),
        TheoryCommand::Steps(args) => study(args, program, steps::answer),
        TheoryCommand::Heterogeneity(args) => study(args, program, heterogeneity::answer),
        TheoryCommand::Bound(args) => study(args, program, bound::answer),
        TheoryCommand::Rates(args) => rates::rates(args, program),
    }
}

/// Studies the experiment and prints the answer.
fn study(
    args: &TheoryArgs,
    program: &Program,
    answer: fn(&Study, &Output) -> Result<Answer>,
) -> Result<ExitCode> {
    let output = &program.output;
    let experiment = read_experiment(&source(&args.file)?, &program.registries)?;
    if args.iterations == 0 {
        return Err(Error::config("config/out-of-range", "a run of 0 iterations shows nothing")
            .at("--iterations")
            .hint("choose 1 or more"));
    }
    let pool = pool(threads(&args.threads)?)?;
    let interrupt = AtomicBool::new(false);
    let context = Context {
        pool: pool.as_ref(),
        data_dir: args.file.data.folder(),
        interrupt: &interrupt,
        probe: None,
    };
    output.note(&summary::heading(&experiment));
    let data = experiment.load_data(&context)?;
    let seed = args.seed.unwrap_or(experiment.run.seeds[0]);
    let world = experiment.world(data.as_ref(), seed)?;
    let setup = Setup {
        experiment: &experiment,
        data: data.as_ref(),
        world: &world,
        seed,
        pool: context.pool,
    };
    output.note("running LoPA to measure constants along its path ...");
    let study = Study::new(setup, args.iterations)?;
    let Answer { text, document } = answer(&study, output)?;
    match output.json() {
        true => output.document(&with_head(&study, document)),
        false => output.text(&text),
    }
    study.remarks.iter().for_each(|remark| output.warn(remark));
    Ok(ExitCode::SUCCESS)
}

/// A document with the head that all share.
fn with_head(study: &Study, document: Value) -> Value {
    let mut head = json!({
        "experiment": study.setup.experiment.name,
        "seed": study.setup.seed,
        "iterations": { "planned": study.planned, "watched": study.watched },
        "region": study.region,
        "remarks": study.remarks,
    });
    if let (Value::Object(head), Value::Object(rest)) = (&mut head, document) {
        head.extend(rest);
    }
    head
}
