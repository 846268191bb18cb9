//! `lopa ls`: the runs in a folder.

use std::path::Path;
use std::process::ExitCode;

use lopa::error::{Error, Result};
use serde_json::{Value, json};

use crate::args::LsArgs;
use crate::output::Output;

const COLUMNS: [&str; 5] = ["run", "status", "started", "algorithms", "seeds"];

pub fn ls(args: &LsArgs, output: &Output) -> Result<ExitCode> {
    let folder = args.folder.display();
    let entries = std::fs::read_dir(&args.folder).map_err(|error| {
        Error::storage("storage/read", format!("cannot list the runs: {error}"))
            .at(folder.to_string())
            .hint("name the folder that `lopa run` was given with --out (`runs` by default)")
    })?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let runs: Vec<Value> = paths.iter().filter_map(|path| describe(path)).collect();
    if output.json() {
        output.document(&Value::Array(runs));
        return Ok(ExitCode::SUCCESS);
    }
    let row = |run: &Value| COLUMNS.map(|key| cell(&run[key])).to_vec();
    if !runs.is_empty() {
        output.text(&output.list(&COLUMNS, runs.iter().map(row).collect()));
    }
    output.note(&match runs.len() {
        0 => format!("no runs in {folder}"),
        1 => format!("1 run in {folder}"),
        n => format!("{n} runs in {folder}"),
    });
    Ok(ExitCode::SUCCESS)
}

/// A run folder by its manifest; other folders are passed over.
fn describe(path: &Path) -> Option<Value> {
    let manifest = std::fs::read_to_string(path.join("manifest.json")).ok()?;
    let manifest: Value = serde_json::from_str(&manifest).ok()?;
    Some(json!({
        "run": path.file_name()?.to_string_lossy(),
        "path": path.display().to_string(),
        "status": manifest["status"],
        "started": manifest["started"],
        "algorithms": manifest["algorithms"],
        "seeds": manifest["seeds"],
    }))
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".into(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
