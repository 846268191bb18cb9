//! `lopa compare`: who wins under which cost.

mod tables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lopa::error::{Error, Result, nearest};
use lopa::experiment::{Experiment, Registries, Until};
use lopa::folder::{RunReader, Traces, complete};
use lopa::run::trace::COSTS;
use lopa_study::compare::{DECISIVE, Question, cost_named};
use serde_json::json;

use super::bars::Bars;
use super::finished::Finished;
use super::outside::Outside;
use super::run::checked;
use super::source::{read_experiment, source};
use super::summary;
use crate::Program;
use crate::args::CompareArgs;

pub fn compare(args: &CompareArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let budgets = args.budgets.iter().map(|text| budget(text)).collect::<Result<Vec<_>>>()?;
    let costs = args.costs.iter().map(|name| cost(name, "--cost")).collect::<Result<Vec<_>>>()?;
    let done = args.file.file.as_deref().filter(|path| path.is_dir());
    let (experiment, folder, stopped) = match done {
        Some(folder) => (saved(args, folder, &program.registries)?, folder.to_path_buf(), None),
        None => run(args, &budgets, program)?,
    };
    if let Some(code) = stopped {
        output.note("interrupted: the same command goes on from here");
        return Ok(ExitCode::from(code));
    }
    let traces = RunReader::open(&folder)?.traces()?;
    let question = Question {
        algorithms: experiment.algorithms.iter().map(|spec| spec.label.clone()).collect(),
        seeds: experiment.run.seeds.clone(),
        measure: measure(args, &traces)?,
        costs: if costs.is_empty() { COSTS.to_vec() } else { costs },
        budgets: if budgets.is_empty() { own_budgets(&experiment) } else { budgets },
        target: args.target,
    };
    let answer = lopa_study::compare::compare(&traces, &question);
    if output.json() {
        let mut document = json!(answer);
        document["folder"] = json!(folder);
        output.document(&document);
    } else {
        output.text(&tables::text(&answer, output));
    }
    answer.warnings.iter().for_each(|warning| output.warn(warning));
    output.note(&format!("\n{}", tables::closing(&answer)));
    output.note(&format!("traces in {}", folder.display()));
    Ok(exit_code(&traces))
}

/// Runs what is missing; a code if it was interrupted.
fn run(
    args: &CompareArgs,
    budgets: &[(&'static str, f64)],
    program: &Program,
) -> Result<(Experiment, PathBuf, Option<u8>)> {
    let output = &program.output;
    let mut experiment = read_experiment(&source(&args.file)?, &program.registries)?;
    if !args.seeds.is_empty() {
        experiment.run.seeds = args.seeds.clone();
        checked(&experiment.run, "--seed")?;
    }
    if !budgets.is_empty() {
        experiment.run.limit(budgets);
        checked(&experiment.run, "--budget")?;
    }
    let outside = Outside::new(&args.threads, args.file.data.as_deref())?;
    let (context, signals) = (outside.context(), &outside.signals);
    output.note(&summary::heading(&experiment));
    let data = experiment.load_data(&context)?;
    let bars = &mut Bars::new(output, &experiment);
    let (folder, whole) =
        complete(&experiment, data.as_ref(), (&args.out, outside.threads), &context, bars)?;
    let stopped = (!whole).then(|| signals.code().unwrap_or(130));
    Ok((experiment, folder, stopped))
}

/// The experiment of a run that is done.
fn saved(args: &CompareArgs, folder: &Path, registries: &Registries) -> Result<Experiment> {
    if !(args.file.sets.is_empty() && args.seeds.is_empty()) {
        let message = "a run that is done cannot be changed by --set or --seed";
        return Err(Error::config("config/no-meaning", message)
            .at(folder.display().to_string())
            .hint("name the experiment file, and it is run anew"));
    }
    Experiment::read(&Finished::open(folder)?.folder.resolved()?, registries)
}

fn cost(name: &str, flag: &str) -> Result<&'static str> {
    cost_named(name).ok_or_else(|| {
        let known = COSTS.map(tables::plain);
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        };
        Error::config("config/unknown-name", format!("`{name}` is no cost")).at(flag).hint(hint)
    })
}

/// `COST=AMOUNT`
fn budget(text: &str) -> Result<(&'static str, f64)> {
    let (name, amount) = text.split_once('=').unwrap_or((text, ""));
    let cost = cost(name.trim(), "--budget")?;
    let amount = amount.trim().parse().ok().filter(|&amount: &f64| amount > 0.0);
    let wrong = || {
        Error::config("config/out-of-range", format!("`{text}` has no positive amount"))
            .at("--budget")
            .hint(format!("write `--budget {}=1000`", tables::plain(cost)))
    };
    Ok((cost, amount.filter(|amount| amount.is_finite()).ok_or_else(wrong)?))
}

/// The file's own limits, where every algorithm went on until it had reached them.
fn own_budgets(experiment: &Experiment) -> Vec<(&'static str, f64)> {
    match experiment.run.until {
        Until::All => experiment.run.limits().collect(),
        Until::First => Vec::new(),
    }
}

/// The measure asked for, or the first of those that decide.
fn measure(args: &CompareArgs, traces: &Traces) -> Result<String> {
    let rows = || traces.runs.iter().flat_map(|run| &run.rows);
    let measured = |name: &str| rows().any(|row| row.values.contains_key(name));
    let found = match &args.measure {
        Some(name) => Some(name.as_str()).filter(|name| measured(name)),
        None => DECISIVE.into_iter().find(|name| measured(name)),
    };
    found.map(str::to_string).ok_or_else(|| {
        let mut known: Vec<&str> =
            rows().flat_map(|row| row.values.keys()).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        let name = args.measure.as_deref().unwrap_or_default();
        Error::config("config/unknown-name", format!("the measure `{name}` was not taken"))
            .at("--measure")
            .hint(format!("measured: {}", known.join(", ")))
    })
}

fn exit_code(traces: &Traces) -> ExitCode {
    let lost = traces.runs.iter().filter(|run| run.diverged).count();
    match lost {
        0 => ExitCode::SUCCESS,
        n if n == traces.runs.len() => ExitCode::from(1),
        _ => ExitCode::from(9),
    }
}
