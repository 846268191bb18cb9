//! `lopa data`: published data sets on this machine.

#[cfg(feature = "fetch")]
mod fetch;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use lopa::data::{self, Data, Published, State, Where, find_published, published};
use lopa::error::{Error, Result};
use serde_json::{Value, json};

use crate::args::DataArgs;
use crate::output::{Output, bytes};
use crate::program::Program;

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// List the published data sets: size, licence, and whether they are here
    List(SetsArgs),
    /// Download data sets from their authors' addresses, verify and unpack them
    Fetch(SetsArgs),
    /// Check that the files are as published; exit code 3 if not
    Check(SetsArgs),
    /// Describe data sets: rows, features, classes
    Stats(SetsArgs),
}

#[derive(Debug, Args)]
pub struct SetsArgs {
    /// Names of data sets; `list` and `check` default to all
    names: Vec<String>,
    #[command(flatten)]
    data: DataArgs,
}

pub fn data(command: &DataCommand, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match command {
        DataCommand::List(args) => list(args, output),
        #[cfg(feature = "fetch")]
        DataCommand::Fetch(args) => {
            some_named(args, "lopa data fetch")?;
            fetch::fetch(&chosen(args)?, &args.data.folder(), output)
        }
        #[cfg(not(feature = "fetch"))]
        DataCommand::Fetch(_) => Err(crate::features::FETCH.missing("lopa data fetch")),
        DataCommand::Check(args) => check(args, output),
        DataCommand::Stats(args) => stats(args, program),
    }
}

/// The data sets named, or all.
fn chosen(args: &SetsArgs) -> Result<Vec<Published>> {
    match args.names.is_empty() {
        true => Ok(published()),
        false => args.names.iter().map(|name| find_published(name)).collect(),
    }
}

/// Fails if no data set is named.
fn some_named(args: &SetsArgs, command: &str) -> Result<()> {
    match args.names.is_empty() {
        true => Err(Error::config("config/missing-key", "which data set?")
            .hint(format!("for example `{command} mnist`; `lopa data list` shows all"))),
        false => Ok(()),
    }
}

fn list(args: &SetsArgs, output: &Output) -> Result<ExitCode> {
    let (sets, directory) = (chosen(args)?, args.data.folder());
    let here = |set: &Published| {
        let folder = directory.join(&set.folder);
        let there = |name: &str| folder.join(name).exists();
        let found = |name: &str| there(name) || there(name.trim_end_matches(".gz"));
        set.files.iter().filter(|file| found(&file.name)).count()
    };
    if output.json() {
        let entry = |set: &Published| {
            json!({
                "name": set.name,
                "about": set.about,
                "rows": set.rows,
                "features": set.features,
                "classes": set.classes,
                "download_bytes": set.download_bytes(),
                "files": set.files.iter().map(|file| &file.name).collect::<Vec<_>>(),
                "files_here": here(set),
                "folder": directory.join(&set.folder).display().to_string(),
                "mirrors": set.mirrors,
                "licence": set.licence,
                "citation": set.citation,
            })
        };
        output.document(&Value::Array(sets.iter().map(entry).collect()));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |set: &Published| {
        let here = format!("{} of {} files", here(set), set.files.len());
        let size = bytes(set.download_bytes() as f64);
        let (rows, features) = (set.rows.to_string(), set.features.to_string());
        vec![set.name.clone(), rows, features, size, here, set.licence.clone()]
    };
    let head = ["name", "rows", "features", "download", "here", "licence"];
    output.text(&output.list(&head, sets.iter().map(row).collect()));
    output.note(&format!("looked in {}", directory.display()));
    Ok(ExitCode::SUCCESS)
}

fn check(args: &SetsArgs, output: &Output) -> Result<ExitCode> {
    let (sets, directory) = (chosen(args)?, args.data.folder());
    let (mut rows, mut bad) = (Vec::new(), 0);
    for set in &sets {
        let states = set.check(&directory);
        // A data set that was not named may be absent.
        if args.names.is_empty() && states.iter().all(|(_, state)| *state == State::Missing) {
            continue;
        }
        for (file, state) in states {
            let (word, why) = match state {
                State::Good => ("good", String::new()),
                State::Missing => ("missing", format!("`lopa data fetch {}` gets it", set.name)),
                State::Different(why) => ("different", why),
            };
            bad += usize::from(word != "good");
            rows.push([&set.name, &file.name, word, &why].map(str::to_string));
        }
    }
    if output.json() {
        let entry = |[set, file, state, why]: &[String; 4]| {
            let why = (!why.is_empty()).then_some(why);
            json!({ "dataset": set, "file": file, "state": state, "why": why })
        };
        output.document(&Value::Array(rows.iter().map(entry).collect()));
    } else if !rows.is_empty() {
        let rows = rows.iter().map(|row| row.to_vec()).collect();
        output.text(&output.list(&["data set", "file", "state", ""], rows));
    }
    let place = directory.display();
    output.note(&match (rows.is_empty(), bad) {
        (true, _) => format!(
            "no data sets in {place}; `lopa data list` shows what `lopa data fetch` can get"
        ),
        (_, 0) => format!("all files in {place} are as published"),
        _ => format!(
            "{bad} of {} files in {place} are missing or differ from the published ones; runs use \
             what they can read, but results will differ",
            rows.len()
        ),
    });
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn stats(args: &SetsArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    some_named(args, "lopa data stats")?;
    let place = Where { directory: args.data.folder(), seed: 0 };
    let mut documents = Vec::new();
    for name in &args.names {
        let source = program.registries.sources.choose(name, &toml::Table::new())?;
        let data = data::load(&*source.build, &Default::default(), &place)?;
        if output.json() {
            documents.push(describe(name, &data));
        } else {
            output.text(&table(name, &data, output));
        }
    }
    if output.json() {
        output.document(&Value::Array(documents));
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of samples of each class.
fn counts(labels: &[u32], classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

/// The share of nonzero training features.
fn density(data: &Data) -> f64 {
    let mut filled = 0u64;
    for row in 0..data.train.len() {
        data.train.each(row, |_, value| filled += u64::from(value != 0.0));
    }
    filled as f64 / (data.train.len() * data.train.cols()).max(1) as f64
}

fn describe(name: &str, data: &Data) -> Value {
    let classes = data.classes.len();
    json!({
        "name": name,
        "train": data.train.len(),
        "test": data.test.len(),
        "features": data.train.cols(),
        "density": density(data),
        "classes": data.classes,
        "train_counts": counts(data.train.labels(), classes),
        "test_counts": counts(data.test.labels(), classes),
        "digest": data::digest(data),
    })
}

fn table(name: &str, data: &Data, output: &Output) -> String {
    let classes = data.classes.len();
    let (train, test) = (counts(data.train.labels(), classes), counts(data.test.labels(), classes));
    let rows = data.classes.iter().zip(train.iter().zip(&test));
    let rows =
        rows.map(|(class, (train, test))| vec![class.clone(), train.to_string(), test.to_string()]);
    format!(
        "{name}: {} training rows, {} test rows, {} features, {:.1} % nonzero\n\n{}",
        data.train.len(),
        data.test.len(),
        data.train.cols(),
        100.0 * density(data),
        output.table(&["class", "train", "test"], rows.collect())
    )
}
