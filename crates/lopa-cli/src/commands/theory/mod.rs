//! `lopa theory`: what the paper's theorems say of an experiment.

mod bound;
mod constants;
mod heterogeneity;
mod rates;
mod show;
mod steps;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use lopa::data::Where;
use lopa::error::{Error, Result};
use lopa::run::{Context, Setup};
use lopa_study::theory::Study;
use serde_json::{Value, json};

use super::source::{read_experiment, source};
use super::summary;
use super::threads::{pool, threads};
use crate::Program;
use crate::args::{TheoryArgs, TheoryCommand};
use crate::output::Output;

/// What a command has to say: to people, and to scripts.
struct Said {
    text: String,
    document: Value,
}

pub fn theory(command: &TheoryCommand, program: &Program) -> Result<ExitCode> {
    match command {
        TheoryCommand::Show(args) => study(args, program, show::say),
        TheoryCommand::Constants(args) => study(args, program, constants::say),
        TheoryCommand::Steps(args) => study(args, program, steps::say),
        TheoryCommand::Heterogeneity(args) => study(args, program, heterogeneity::say),
        TheoryCommand::Bound(args) => study(args, program, bound::say),
        TheoryCommand::Rates(args) => rates::rates(args, program),
    }
}

/// Studies the experiment and prints what `say` says of it.
fn study(
    args: &TheoryArgs,
    program: &Program,
    say: fn(&Study, &Output) -> Result<Said>,
) -> Result<ExitCode> {
    let output = &program.output;
    let experiment = read_experiment(&source(&args.file)?, &program.registries)?;
    if args.iterations == 0 {
        return Err(Error::config("config/out-of-range", "a run of 0 iterations shows nothing")
            .at("--iterations")
            .hint("ask for 1 or more"));
    }
    let pool = pool(threads(&args.threads)?)?;
    let interrupt = AtomicBool::new(false);
    let data_dir = Where::new(args.file.data.as_deref(), 0).directory;
    let context = Context { pool: pool.as_ref(), data_dir, interrupt: &interrupt, probe: None };
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
    output.note("running LoPA and looking for constants along its way ...");
    let study = Study::new(setup, args.iterations)?;
    let Said { text, document } = say(&study, output)?;
    match output.json() {
        true => output.document(&with_head(&study, document)),
        false => output.text(&text),
    }
    study.remarks.iter().for_each(|remark| output.warn(remark));
    Ok(ExitCode::SUCCESS)
}

/// What every document begins with.
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

/// A section with its heading.
fn section(title: &str, body: &str, output: &Output) -> String {
    match output.markdown() {
        true => format!("## {title}\n\n{body}\n\n"),
        false => format!("{title}\n{body}\n\n"),
    }
}

/// A number with three significant digits: these span many powers of ten.
fn short(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if !value.is_finite() => "–".into(),
        _ if (0.01..1000.0).contains(&value.abs()) => {
            let digits = (2 - value.abs().log10().floor() as i32).max(0) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.1e}"),
    }
}
