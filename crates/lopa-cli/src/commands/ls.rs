//! `lopa ls`: the runs in a folder.

use std::path::Path;
use std::process::ExitCode;

use lopa::error::{Error, Result};
use serde_json::{Value, json};

use crate::args::LsArgs;
use crate::output::{self, Output};

pub fn ls(args: &LsArgs, output: &Output) -> Result<ExitCode> {
    let entries = std::fs::read_dir(&args.folder).map_err(|error| {
        Error::storage("storage/read", format!("cannot list the runs: {error}"))
            .at(args.folder.display().to_string())
            .hint("`lopa run` makes the folder; another one can be named")
    })?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let runs: Vec<Value> = paths.iter().filter_map(|path| describe(path)).collect();
    if output.json() {
        output.document(&Value::Array(runs));
        return Ok(ExitCode::SUCCESS);
    }
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".into(),
        other => other.to_string(),
    };
    let row = |run: &Value| {
        ["run", "status", "started", "algorithms", "seeds"].map(|key| cell(&run[key])).to_vec()
    };
    let head = ["run", "status", "started", "algorithms", "seeds"];
    output.text(&output::list(&head, runs.iter().map(row).collect()).to_string());
    output.note(&format!("{} run(s) in {}", runs.len(), args.folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// A run folder by its manifest; other folders are passed over.
fn describe(path: &Path) -> Option<Value> {
    let manifest = std::fs::read_to_string(path.join("manifest.json")).ok()?;
    let manifest: Value = serde_json::from_str(&manifest).ok()?;
    let results = std::fs::read_to_string(path.join("results.json")).unwrap_or_default();
    let results: Value = serde_json::from_str(&results).unwrap_or(Value::Null);
    let mut algorithms: Vec<&str> =
        results.as_array()?.iter().filter_map(|run| run["algorithm"].as_str()).collect();
    algorithms.dedup();
    let mut seen = Vec::new();
    algorithms.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    Some(json!({
        "run": path.file_name()?.to_string_lossy(),
        "path": path.display().to_string(),
        "status": manifest["status"],
        "started": manifest["started"],
        "algorithms": algorithms.join(", "),
        "seeds": manifest["seeds"].as_array().map_or(0, Vec::len),
    }))
}
