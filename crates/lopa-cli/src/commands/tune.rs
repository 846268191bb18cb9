//! `lopa tune`: a fair search for step sizes, and the tuned experiment file.

mod trials;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use lopa::error::Result;
use lopa_base::store;
use lopa_study::tune::{self, Confirmation, Trial, Tuned};
use serde_json::json;

use super::environment::Environment;
use super::share::{Progress, Work, named};
use super::source::source;
use crate::args::{FileArgs, ShareArgs, ThreadArgs};
use crate::output::{Output, number};
use crate::program::Program;
use trials::Trials;

#[derive(Debug, Args)]
pub struct TuneArgs {
    #[command(flatten)]
    file: FileArgs,
    /// File to write the tuned experiment to [default: FILE-tuned.toml]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Journal of finished trials, from which an interrupted search resumes
    /// [default: FILE-tune.jsonl]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    share: ShareArgs,
}

pub fn tune(args: &TuneArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let source = source(&args.file)?;
    let file = args.file.file.clone().unwrap_or_else(|| "quickstart.toml".into());
    let out = args.out.clone().unwrap_or_else(|| beside(&file, "-tuned.toml"));
    let journal = args.journal.clone().unwrap_or_else(|| beside(&file, "-tune.jsonl"));
    let extends = args.file.file.as_deref().and_then(|file| from_beside(&out, file));
    let environment = Environment::new(&args.threads, &args.file.data)?;
    let (context, signals) = (environment.context(), &environment.signals);
    let trials = Trials::new(output);
    let parts = journal.with_extension("parts");
    let work = args.share.work()?;
    let part = match &work {
        Work::Part(member) => Some(Progress::new(output, member)),
        _ => None,
    };
    let progress = |line: &str| part.iter().for_each(|part| part.show(line));
    let place = match work {
        Work::All => tune::Trials::Here(&journal),
        Work::Part(member) => tune::Trials::Part { folder: &parts, member, progress: &progress },
        Work::Merge => tune::Trials::Merge { folder: &parts, journal: &journal },
    };
    let done = AtomicUsize::new(0);
    let report = |trial: &Trial, _: usize, of: usize| match &part {
        None => trials.ended(trial, of),
        Some(_) => {
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let tuned = tune::tune(
        &source,
        &program.registries,
        place,
        extends.as_deref(),
        &context,
        &report,
        &|note| trials.note(&note.says()),
    );
    trials.finish();
    let tuned = match tuned {
        Err(error) if error.id == "tune/interrupted" => {
            output.warn(&error.to_string());
            return Ok(ExitCode::from(signals.code().unwrap_or(130)));
        }
        tuned => tuned.map_err(|error| match &part {
            Some(part) => named(error, part.name()),
            None => error,
        })?,
    };
    if let Some(part) = &part {
        let (here, of) = (done.load(Ordering::Relaxed), tuned.trials.len());
        if output.json() {
            output
                .document(&json!({ "part": part.name(), "done": here, "of": of, "folder": parts }));
        }
        output.note(&format!(
            "{} did {here} of {of} trials; all are done, and the same command with --merge in place of --share \
             writes the tuned experiment",
            part.name()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    store::output::write(
        &out,
        tuned.text.as_bytes(),
        "the tuned experiment",
        store::output::OTHER,
    )?;
    let output = &output.beside(&out);
    if output.json() {
        let Tuned { best, trials, tests, moves, .. } = &tuned;
        output.document(&json!({
            "best": best, "tests": tests, "moves": moves, "trials": trials, "file": out
        }));
    } else {
        output.text(&table(&tuned, output));
    }
    for best in &tuned.best {
        let test = test_of(&tuned, best);
        if best.value.is_none() || test.is_some_and(|test| !test.stands) {
            output.warn(&format!(
                "no trial of {} stands: its step sizes may diverge; search smaller ones with \
                 `tune.ranges`",
                best.algorithm
            ));
        }
    }
    output.note(&format!(
        "tuned experiment in {}, journal in {}",
        out.display(),
        journal.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn test_of<'a>(tuned: &'a Tuned, best: &Trial) -> Option<&'a Confirmation> {
    let of = |test: &&Confirmation| test.algorithm == best.algorithm && test.confirms == best.trial;
    tuned.tests.iter().find(of)
}

fn table(tuned: &Tuned, output: &Output) -> String {
    let row = |best: &Trial| {
        let values = best.params.iter().map(|(key, value)| format!("{key} = {value}"));
        let value = best.value.map_or("diverged".into(), number);
        let test = test_of(tuned, best).map_or("not tested".into(), Confirmation::says);
        vec![best.algorithm.clone(), value, values.collect::<Vec<_>>().join(", "), test]
    };
    let rows = tuned.best.iter().map(row).collect();
    output.list(&["algorithm", "best", "with", "tested"], rows)
}

/// `dir/name.toml` → `dir/name-tuned.toml`.
fn beside(file: &Path, end: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{stem}{end}"))
}

/// The path of a file from the folder of `out`; none if it has no such path.
fn from_beside(out: &Path, file: &Path) -> Option<String> {
    let folder = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new(".")).canonicalize().ok()
    };
    let (here, there) = (folder(out)?, folder(file)?);
    let shared = here.components().zip(there.components()).take_while(|(a, b)| a == b).count();
    let mut path: PathBuf = here.components().skip(shared).map(|_| "..").collect();
    path.extend(there.components().skip(shared));
    Some(path.join(file.file_name()?).to_str()?.to_string())
}
