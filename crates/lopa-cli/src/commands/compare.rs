//! `lopa compare`: which algorithm wins under which cost.

mod tables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::data::Data;
use lopa::error::{Error, Result, nearest};
use lopa::experiment::{Experiment, Registries};
use lopa::folder::{RunReader, complete, merge, merged, parts_folder};
use lopa::run::trace::COSTS;
use lopa_study::compare::{Comparison, Question, cost_named, unmeasured};
use serde_json::{Value, json};

use super::bars::Bars;
use super::environment::Environment;
use super::finished::Finished;
use super::run_folder::INTERRUPTED;
use super::share::{self, Work};
use super::source::{self, check};
use super::summary;
use crate::args::{CodeArgs, ExperimentArgs, FileArgs, ShareArgs, ThreadArgs};
use crate::program::Program;

#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Further files or run folders, each compared by itself: one table shows which algorithm is ahead in each of
    /// them under which cost
    #[arg(value_name = "MORE")]
    more: Vec<PathBuf>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    share: ShareArgs,
    /// What every algorithm may spend: iterations, gradients, hessians, jacobians, samples, rounds,
    /// bytes or seconds; repeatable
    ///
    /// Replaces the file's budget: every algorithm runs until it has reached all of them. A cost
    /// without a budget is compared at the largest amount that every algorithm reached.
    #[arg(long = "budget", value_name = "COST=AMOUNT")]
    budgets: Vec<String>,
    /// Compare under this cost only; repeatable
    #[arg(long = "cost", value_name = "COST")]
    costs: Vec<String>,
    /// Measure to rank by: grad_phi_sq, phi, loss, test_accuracy, ... [default: the accuracy on each
    /// node's own held-out rows, else on its own classes, else |grad Phi|^2, else the loss]
    #[arg(long)]
    measure: Option<String>,
    /// Also compare the cost of bringing the measure to this level
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true)]
    target: Option<f64>,
}

impl CompareArgs {
    /// What is compared, one file or finished run at a time.
    fn sources(&self) -> impl Iterator<Item = ExperimentArgs> {
        let first = &self.experiment;
        let more = self.more.iter().map(|path| {
            let file = FileArgs { file: Some(path.clone()), ..first.file.clone() };
            ExperimentArgs { file, ..first.clone() }
        });
        std::iter::once(first.clone()).chain(more)
    }

    /// A file is run; a folder is read.
    pub fn runs_code(&self) -> bool {
        self.code.run_code || self.sources().any(|source| finished(&source).is_none())
    }
}

/// The folder of a finished run, if it is one that is compared.
fn finished(source: &ExperimentArgs) -> Option<&Path> {
    source.file.file.as_deref().filter(|path| path.is_dir())
}

pub fn compare(args: &CompareArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let asked = Asked {
        budgets: args.budgets.iter().map(|text| budget(text)).collect::<Result<_>>()?,
        costs: args.costs.iter().map(|name| cost(name, "--cost")).collect::<Result<_>>()?,
    };
    if !args.more.is_empty() {
        args.share.refuse("parts are of one file: run them for each, then name all files")?;
    }
    // All are read before the first one runs: the last file may have a mistake.
    let registries = &program.registries;
    let read = |source: ExperimentArgs| match finished(&source) {
        Some(folder) => Ok((saved(&source, folder, registries)?, source)),
        None => Ok((source::experiment(&source, registries)?, source)),
    };
    let mut compared = Vec::new();
    for (experiment, source) in args.sources().map(read).collect::<Result<Vec<_>>>()? {
        match one(args, experiment, &source, &asked, program)? {
            Ok(one) => compared.push(one),
            Err(code) => return Ok(code),
        }
    }
    match &compared[..] {
        [one] if output.json() => output.document(&one.document()),
        [one] => output.text(&tables::text(&one.answer, output)),
        all if output.json() => {
            output.document(&all.iter().map(Compared::document).collect::<Vec<_>>().into());
        }
        all => output.text(&tables::overview(all, output)),
    }
    for Compared { name, folder, answer, .. } in &compared {
        let of = if compared.len() == 1 { String::new() } else { format!("{name}: ") };
        answer.warnings.iter().for_each(|warning| output.warn(&format!("{of}{warning}")));
        output.note(&format!("\n{of}{}", tables::closing(answer)));
        output.note(&format!("traces in {}", folder.display()));
    }
    Ok(exit_code(&compared))
}

/// What the command line asks about every run.
struct Asked {
    budgets: Vec<(&'static str, f64)>,
    costs: Vec<&'static str>,
}

/// The runs of one file or folder, compared.
pub struct Compared {
    pub name: String,
    pub answer: Comparison,
    folder: PathBuf,
    runs: usize,
    diverged: usize,
}

impl Compared {
    fn document(&self) -> Value {
        let mut document = json!(self.answer);
        document["folder"] = json!(self.folder);
        document
    }
}

/// Compares the runs of one file or folder, after those that are missing; or the exit code if some are missing still.
fn one(
    args: &CompareArgs,
    mut experiment: Experiment,
    source: &ExperimentArgs,
    Asked { budgets, costs }: &Asked,
    program: &Program,
) -> Result<Result<Compared, ExitCode>> {
    let folder = match finished(source) {
        Some(folder) => {
            args.share.refuse("a finished run has no parts")?;
            folder.to_path_buf()
        }
        None => match run(args, &mut experiment, source, budgets, program)? {
            Ok(folder) => folder,
            Err(code) => return Ok(Err(code)),
        },
    };
    let reader = RunReader::open(&folder)?;
    let traces = reader.traces()?;
    let mut question = Question::of(&experiment, &reader, &traces, args.measure.as_deref())?;
    if !costs.is_empty() {
        question.costs = costs.clone();
    }
    if !budgets.is_empty() {
        question.budgets = budgets.clone();
    }
    question.target = args.target;
    Ok(Ok(Compared {
        name: experiment.name.clone(),
        answer: lopa_study::compare::compare(&traces, &question),
        folder,
        runs: traces.runs.len(),
        diverged: traces.runs.iter().filter(|run| run.diverged).count(),
    }))
}

/// Does the missing runs, and returns the folder that has all; or the exit code if it was interrupted, or does only a
/// part.
fn run(
    args: &CompareArgs,
    experiment: &mut Experiment,
    source: &ExperimentArgs,
    budgets: &[(&'static str, f64)],
    program: &Program,
) -> Result<Result<PathBuf, ExitCode>> {
    let output = &program.output;
    if !budgets.is_empty() {
        experiment.run.limit(budgets);
        check(&experiment.run, "--budget")?;
    }
    let experiment = &*experiment;
    let environment = Environment::new(&args.threads, &source.file.data)?;
    let (context, signals) = (environment.context(), &environment.signals);
    output.note(&summary::heading(experiment));
    let data = experiment.load_data(&context)?;
    if let Some(name) = &args.measure {
        check_measure(name, experiment, data.as_ref())?;
    }
    let bars = &mut Bars::new(output, experiment);
    let (out, data) = (source.out.as_path(), data.as_ref());
    let place = (out, environment.threads);
    let parts = parts_folder(out, experiment);
    let (folder, whole) = match args.share.work()? {
        Work::All => complete(experiment, data, place, &context, bars)?,
        Work::Merge => {
            let parts = merged(&[experiment], &parts)?.pop().unwrap_or_default();
            merge(experiment, parts, data, place, &context, bars)?
        }
        Work::Part(member) => {
            let mut one = |one: &Experiment, runs: &Path| {
                let place = (runs, environment.threads);
                let (folder, whole) = complete(one, data, place, &context, bars)?;
                Ok(whole.then_some(folder))
            };
            let part = (parts.as_path(), member);
            let code = share::part(&[experiment], part, &environment, &mut one, output)?;
            return Ok(Err(code));
        }
    };
    if !whole {
        output.note(INTERRUPTED);
        return Ok(Err(ExitCode::from(signals.code().unwrap_or(130))));
    }
    Ok(Ok(folder))
}

/// The experiment of a finished run.
fn saved(source: &ExperimentArgs, folder: &Path, registries: &Registries) -> Result<Experiment> {
    if !(source.file.sets.is_empty() && source.seeds.is_empty()) {
        let message = "--set and --seed cannot change a finished run";
        return Err(Error::config("config/no-meaning", message)
            .at(folder.display().to_string())
            .hint("name the experiment file to run it anew"));
    }
    Experiment::read(&Finished::open(folder)?.folder.resolved()?, registries)
}

fn cost(name: &str, flag: &str) -> Result<&'static str> {
    cost_named(name).ok_or_else(|| {
        let known = COSTS.map(tables::plain);
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", known.join(", ")),
        };
        Error::config("config/unknown-name", format!("unknown cost `{name}`")).at(flag).hint(hint)
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

/// Fails before anything runs if the runs would not take the measure.
fn check_measure(name: &str, experiment: &Experiment, data: Option<&Data>) -> Result<()> {
    let known = experiment.measures(data)?;
    // The Lyapunov function's terms are measured by a probe.
    if experiment.run.lyapunov || known.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(unmeasured(name, &known))
}

fn exit_code(compared: &[Compared]) -> ExitCode {
    let runs: usize = compared.iter().map(|one| one.runs).sum();
    match compared.iter().map(|one| one.diverged).sum() {
        0 => ExitCode::SUCCESS,
        diverged if diverged == runs => ExitCode::from(1),
        _ => ExitCode::from(9),
    }
}
