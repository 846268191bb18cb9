//! `lopa theory`: the paper's theorems applied to an experiment.

mod bound;
mod constants;
mod heterogeneity;
mod rates;
mod show;
mod steps;
mod text;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use lopa::error::{Error, Result};
use lopa::run::{Context, Setup};
use lopa_paper::theory::Study;
use serde_json::{Value, json};

use self::text::Answer;
use super::args::{TheoryArgs, TheoryCommand};
use crate::commands::source::{read_experiment, source};
use crate::commands::summary;
use crate::commands::threads::{pool, threads};
use crate::output::Output;
use crate::program::Program;

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
