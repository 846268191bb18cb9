//! `lopa data fetch`: downloads data sets.

use std::path::Path;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use lopa::data::Published;
use lopa::data::fetch::{self, Fetched};
use lopa::error::{Error, Result};
use serde_json::{Value, json};

use crate::output::Output;

/// Fails if no data set is named.
pub fn some_named(names: &[String]) -> Result<()> {
    match names.is_empty() {
        true => Err(Error::config("config/missing-key", "which data set?")
            .hint("for example `lopa data fetch mnist`; `lopa data list` shows all")),
        false => Ok(()),
    }
}

pub fn fetch(sets: &[Published], directory: &Path, output: &Output) -> Result<ExitCode> {
    let mut documents = Vec::new();
    for set in sets {
        let fetched = fetch_one(set, directory, output)?;
        output.note(&format!(
            "{}: fetched {} files, kept {}, in {}",
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

fn fetch_one(set: &Published, directory: &Path, output: &Output) -> Result<Fetched> {
    let template = "{prefix:<28} {bar:30.cyan/dim} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}";
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    let bar = match output.bars() {
        true => ProgressBar::new(0).with_style(style.progress_chars("━╸─")),
        false => ProgressBar::hidden(),
    };
    let fetched = fetch::fetch(set, directory, &mut |name, done, total| {
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
