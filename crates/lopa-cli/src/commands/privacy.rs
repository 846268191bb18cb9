//! `lopa privacy`: what a privacy budget costs before a run, and what rows have spent.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use lopa::data::Origin;
use lopa::error::{Error, Result};
use lopa::folder::ledger::{self, Ledger, Line as Entry};
use lopa::run::Context;
use lopa_privacy::{DELTA, Release, calibrate, epsilon, renyi};
use serde_json::json;

use super::source::{read_experiment, source};
use crate::args::FileArgs;
use crate::output::number;
use crate::program::Program;

#[derive(Debug, Subcommand)]
pub enum PrivacyCommand {
    /// Show the noise that a budget needs, for more or fewer rows
    ///
    /// A release is a sum over a sample of the rows, each row's vector clipped to the same norm, with Gaussian noise. The
    /// noise is that of an entry of the mean over the sample, in clips.
    Plan(PlanArgs),
    /// Show what the rows of an experiment have spent, by their ledger on this host
    Ledger(LedgerArgs),
    /// Set the most that all runs on the rows of an experiment may spend together
    ///
    /// A decision of the owner of the rows. Before it, the first run sets the limit to its own budget.
    Allow(AllowArgs),
}

#[derive(Debug, Args)]
pub struct LedgerArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The node whose file it is, where nodes have files of their own [default: all of them]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
}

#[derive(Debug, Args)]
pub struct AllowArgs {
    #[command(flatten)]
    of: LedgerArgs,
    /// The largest epsilon of all runs together
    #[arg(long, value_name = "E")]
    epsilon: f64,
    /// The largest delta of all runs together
    #[arg(long, value_name = "D")]
    delta: f64,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Rows of a node
    #[arg(long, value_name = "N")]
    rows: u64,
    /// Rows per minibatch, on average
    #[arg(long, value_name = "B")]
    batch: u64,
    /// Iterations
    #[arg(long, value_name = "K")]
    iterations: u64,
    /// Releases per iteration that a row may be in: LoPA has 5, or 3 for the rows of g and 2 for those of f
    #[arg(long, value_name = "R", default_value_t = 5)]
    releases: u64,
    /// The budget
    #[arg(long, value_name = "E", default_value_t = 1.0)]
    epsilon: f64,
    /// The probability with which the bound may fail
    #[arg(long, value_name = "D", default_value_t = 1e-5)]
    delta: f64,
}

pub fn privacy(command: &PrivacyCommand, program: &Program) -> Result<ExitCode> {
    match command {
        PrivacyCommand::Plan(args) => plan(args, program),
        PrivacyCommand::Ledger(args) => show(args, program),
        PrivacyCommand::Allow(args) => allow(args, program),
    }
}

/// The ledgers of the files of an experiment that are on this host.
fn ledgers(args: &LedgerArgs, program: &Program) -> Result<Vec<(Origin, Ledger)>> {
    let experiment = read_experiment(&source(&args.file)?, &program.registries)?;
    let context = Context { data_dir: args.file.data.folder(), ..Context::default() };
    let names = experiment.data.as_ref().and_then(|data| data.preparation.nodes.as_ref());
    let here = match (&args.node, names) {
        (None, _) => 0..experiment.network.nodes,
        (Some(name), names) => {
            let at = names.into_iter().flatten().position(|known| known == name);
            let at = at.ok_or_else(|| {
                let message = format!("the data has no file of a node `{name}`");
                Error::config("config/unknown-name", message).at("--node")
            })?;
            at..at + 1
        }
    };
    let folder = ledger::folder()?;
    let open = |origin: Origin| Ok((origin.clone(), Ledger::open(&folder, &origin)?));
    experiment.origins(&context, here)?.into_iter().map(open).collect()
}

fn show(args: &LedgerArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let all = ledgers(args, program)?;
    if output.json() {
        let one = |(origin, ledger): &(Origin, Ledger)| {
            let (epsilon, delta) = ledger.spent();
            let limit = ledger
                .limit()
                .map(|(epsilon, delta)| json!({ "epsilon": epsilon, "delta": delta }));
            json!({ "data": origin.name, "sha256": origin.sha256, "file": ledger.path(),
                    "epsilon": epsilon, "delta": delta, "limit": limit, "lines": ledger.lines() })
        };
        output.document(&json!(all.iter().map(one).collect::<Vec<_>>()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for (origin, ledger) in &all {
        let runs = ledger.lines().iter().filter(|line| matches!(line, Entry::Run { .. })).count();
        let (epsilon, delta) = ledger.spent();
        let limit = ledger.limit().map(|(epsilon, delta)| [epsilon, delta].map(number));
        let [most, most_delta] = limit.unwrap_or_else(|| ["–".into(), "–".into()]);
        rows.push(vec![
            origin.name.clone(),
            runs.to_string(),
            number(epsilon),
            most,
            number(delta),
            most_delta,
        ]);
    }
    let head = ["rows of", "runs", "epsilon", "of", "delta", "of"];
    output.text(&output.table(&head, rows));
    for (_, ledger) in &all {
        output.note(&ledger.path().display().to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn allow(args: &AllowArgs, program: &Program) -> Result<ExitCode> {
    let &AllowArgs { epsilon, delta, .. } = args;
    let range = |name: &str, fits: bool, must: &str| match fits {
        true => Ok(()),
        false => Err(Error::config("config/out-of-range", format!("`--{name}` must be {must}"))),
    };
    range("epsilon", epsilon > 0.0 && epsilon <= 1000.0, "above 0 and at most 1000")?;
    range("delta", DELTA.contains(&delta), "from 1e-9 to below 1")?;
    for (_, mut ledger) in ledgers(&args.of, program)? {
        ledger.allow(epsilon, delta)?;
    }
    show(&args.of, program)
}

/// The rows of the table, as multiples of those asked for.
const SHARES: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0];

fn plan(args: &PlanArgs, program: &Program) -> Result<ExitCode> {
    let &PlanArgs { rows, batch, iterations, releases, epsilon: budget, delta } = args;
    let range = |name: &str, fits: bool, must: &str| match fits {
        true => Ok(()),
        false => Err(Error::config("config/out-of-range", format!("`--{name}` must be {must}"))),
    };
    range("rows", rows > 0, "at least 1")?;
    range("batch", (1..=rows).contains(&batch), "from 1 to the number of rows")?;
    range("iterations", (1..=u64::from(u32::MAX)).contains(&iterations), "from 1 to 4294967295")?;
    range("releases", (1..=1000).contains(&releases), "from 1 to 1000")?;
    range("epsilon", budget > 0.0 && budget <= 1000.0, "above 0 and at most 1000")?;
    range("delta", DELTA.contains(&delta), "from 1e-9 to below 1")?;
    if delta * rows as f64 >= 1.0 {
        let text = "`--delta` is not below 1 / rows: it would allow to publish a row that is drawn at random";
        program.output.warn(text);
    }
    let count = iterations * releases;
    let lines: Vec<Line> = SHARES
        .into_iter()
        .map(|share| (share * rows as f64).round() as u64)
        .filter(|&rows| rows >= batch)
        .filter_map(|rows| Line::new(rows, batch, count, (budget, delta)))
        .collect();
    let asked = lines.iter().find(|line| line.rows == rows);
    let output = &program.output;
    if output.json() {
        let line = |line: &Line| {
            json!({ "rows": line.rows, "sampled": line.release.q, "noise_multiplier": line.release.sigma,
                    "noise": line.noise, "epsilon": line.epsilon, "renyi": line.renyi })
        };
        output.document(&json!({
            "epsilon": budget, "delta": delta, "releases": count,
            "rows": lines.iter().map(line).collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let cells = |line: &Line| {
        let numbers = [line.release.q, line.release.sigma, line.noise, line.epsilon, line.renyi];
        [line.rows.to_string()].into_iter().chain(numbers.map(number)).collect()
    };
    let head = ["rows", "sampled", "noise multiplier", "noise", "epsilon", "by Renyi"];
    output.text(&output.table(&head, lines.iter().map(cells).collect()));
    if let Some(line) = asked {
        let noise = number(line.noise);
        output.note(&format!(
            "\nWith {rows} rows, {count} releases spend epsilon = {} if every entry of a mean over {batch} rows gets \
             noise of deviation {noise} clips.",
            number(line.epsilon),
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The noise of a number of rows.
struct Line {
    rows: u64,
    release: Release,
    noise: f64,
    epsilon: f64,
    renyi: f64,
}

impl Line {
    fn new(rows: u64, batch: u64, count: u64, (budget, delta): (f64, f64)) -> Option<Line> {
        let release = Release { q: batch as f64 / rows as f64, sigma: 1.0, count };
        let release = Release { sigma: calibrate(budget, delta, &[release])?, ..release };
        Some(Line {
            rows,
            noise: release.sigma / batch as f64,
            epsilon: epsilon(&[release], delta),
            renyi: renyi::epsilon(&[release], delta),
            release,
        })
    }
}
