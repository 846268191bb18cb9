//! `lopa data`: published data sets on this machine, and descriptions of a user's own files.

#[cfg(feature = "fetch")]
mod fetch;
mod stats;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use lopa::data::{Published, State, find_published, published};
use lopa::error::Result;
use serde_json::{Value, json};

use self::stats::StatsArgs;
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
    /// Describe data sets or your own files: columns, missing values, classes, scalings
    Stats(StatsArgs),
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
            fetch::some_named(&args.names)?;
            fetch::fetch(&chosen(args)?, &args.data.folder(), output)
        }
        #[cfg(not(feature = "fetch"))]
        DataCommand::Fetch(_) => Err(crate::features::FETCH.missing("lopa data fetch")),
        DataCommand::Check(args) => check(args, output),
        DataCommand::Stats(args) => stats::stats(args, program),
    }
}

/// The data sets named, or all.
fn chosen(args: &SetsArgs) -> Result<Vec<Published>> {
    match args.names.is_empty() {
        true => Ok(published()),
        false => args.names.iter().map(|name| find_published(name)).collect(),
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
