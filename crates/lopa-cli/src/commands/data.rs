//! `lopa data`: published data sets on this machine.

use std::process::ExitCode;

use lopa::data::{self, Data, Published, State, Where, find_published, published};
use lopa::error::{Error, Result};
use serde_json::{Value, json};

use crate::Program;
use crate::args::{DataArgs, DataCommand};
use crate::output::{Output, bytes};

pub fn data(command: &DataCommand, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    match command {
        DataCommand::List(args) => list(args, output),
        #[cfg(feature = "fetch")]
        DataCommand::Fetch(args) => fetch::fetch(args, output),
        DataCommand::Check(args) => check(args, output),
        DataCommand::Stats(args) => stats(args, program),
    }
}

/// The data sets that were named, or all.
fn chosen(args: &DataArgs) -> Result<Vec<Published>> {
    match args.names.is_empty() {
        true => Ok(published()),
        false => args.names.iter().map(|name| find_published(name)).collect(),
    }
}

fn directory(args: &DataArgs) -> std::path::PathBuf {
    Where::new(args.data.as_deref(), 0).directory
}

fn list(args: &DataArgs, output: &Output) -> Result<ExitCode> {
    let (sets, directory) = (chosen(args)?, directory(args));
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

fn check(args: &DataArgs, output: &Output) -> Result<ExitCode> {
    let (sets, directory) = (chosen(args)?, directory(args));
    let (mut rows, mut bad) = (Vec::new(), 0);
    for set in &sets {
        let states = set.check(&directory);
        // Data sets that nobody asked for and that are not here at all are no fault.
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
            "No data set is in {place}; `lopa data list` shows what `lopa data fetch` gets."
        ),
        (_, 0) => format!("All files in {place} are as their authors published them."),
        _ => format!(
            "{bad} of {} files in {place} are missing or not as published; what can be read is \
             used, but results are then those of other data.",
            rows.len()
        ),
    });
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn stats(args: &DataArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    if args.names.is_empty() {
        return Err(Error::config("config/missing-key", "say of which data set")
            .hint("for example `lopa data stats mnist`; `lopa data list` shows them"));
    }
    let place = Where { directory: directory(args), seed: 0 };
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

/// Samples of each class.
fn counts(labels: &[u32], classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

/// The share of training features that are not zero.
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
        "{name}: {} rows to train on, {} to test on, {} features, {:.1} % not zero\n\n{}",
        data.train.len(),
        data.test.len(),
        data.train.cols(),
        100.0 * density(data),
        output.table(&["class", "train", "test"], rows.collect())
    )
}

#[cfg(feature = "fetch")]
mod fetch {
    use super::*;
    use indicatif::{ProgressBar, ProgressStyle};
    use std::path::Path;

    pub fn fetch(args: &DataArgs, output: &Output) -> Result<ExitCode> {
        if args.names.is_empty() {
            return Err(Error::config("config/missing-key", "say which data sets to fetch")
                .hint("for example `lopa data fetch mnist`; `lopa data list` shows them"));
        }
        let (sets, directory) = (chosen(args)?, directory(args));
        let mut documents = Vec::new();
        for set in &sets {
            let fetched = fetch_one(set, &directory, output)?;
            output.note(&format!(
                "{}: {} file(s) fetched, {} here already, in {}",
                set.name,
                fetched.got.len(),
                fetched.kept.len(),
                directory.join(&set.folder).display()
            ));
            output.note(&format!("  licence: {}\n  cite: {}", set.licence, set.citation));
            documents.push(json!({
                "dataset": set.name,
                "fetched": fetched.got,
                "kept": fetched.kept,
            }));
        }
        if output.json() {
            output.document(&Value::Array(documents));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn fetch_one(
        set: &Published,
        directory: &Path,
        output: &Output,
    ) -> Result<data::fetch::Fetched> {
        let template =
            "{prefix:<28} {bar:30.cyan/dim} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}";
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        let bar = match output.bars() {
            true => ProgressBar::new(0).with_style(style.progress_chars("━╸─")),
            false => ProgressBar::hidden(),
        };
        let fetched = data::fetch::fetch(set, directory, &mut |name, done, total| {
            if bar.prefix() != name {
                bar.set_prefix(name.to_string());
                bar.reset();
                output.note(&format!("fetching {name}"));
            }
            bar.set_length(total.unwrap_or(done));
            bar.set_position(done);
        });
        bar.finish_and_clear();
        fetched
    }
}
