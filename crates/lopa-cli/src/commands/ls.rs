//! `lopa ls`: the runs in a folder.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lopa::error::{Error, Result};
use lopa::folder::{Manifest, RunReader, Status};
use lopa_study::seeds::Ended;
use serde::Serialize;
use serde_json::json;

use crate::output::{Output, number};

#[derive(Debug, Args)]
pub struct LsArgs {
    /// Folder with run folders
    #[arg(env = "LOPA_RUNS_DIR", default_value = "runs")]
    folder: PathBuf,
}

const COLUMNS: [&str; 5] = ["run", "status", "started", "algorithms", "seeds"];

/// A run folder in the list.
#[derive(Serialize)]
struct Listed {
    run: String,
    path: String,
    status: Status,
    started: String,
    algorithms: Vec<String>,
    seeds: Vec<u64>,
    /// Runs that have ended.
    ended: usize,
    /// Those of them that diverged.
    diverged: usize,
    /// The largest privacy budget that one of them has spent, with `[privacy]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon: Option<f64>,
}

pub fn ls(args: &LsArgs, output: &Output) -> Result<ExitCode> {
    let folder = args.folder.display();
    let entries = std::fs::read_dir(&args.folder).map_err(|error| {
        Error::storage("storage/read", format!("cannot list the runs: {error}"))
            .at(folder.to_string())
            .hint("name the folder given to `lopa run --out` (default: `runs`)")
    })?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let runs: Vec<Listed> = paths.iter().filter_map(|path| listed(path, output)).collect();
    if output.json() {
        output.document(&json!(runs));
        return Ok(ExitCode::SUCCESS);
    }
    if !runs.is_empty() {
        output.text(&output.list(&COLUMNS, runs.iter().map(Listed::cells).collect()));
    }
    output.note(&match runs.len() {
        0 => format!("no runs in {folder}"),
        1 => format!("1 run in {folder}"),
        n => format!("{n} runs in {folder}"),
    });
    Ok(ExitCode::SUCCESS)
}

/// A run folder by its manifest. Skips folders without one, and damaged ones with a warning.
fn listed(path: &Path, output: &Output) -> Option<Listed> {
    if !path.join("manifest.json").exists() {
        return None;
    }
    let read = |folder: RunReader| Ok((folder.results()?, folder));
    let (results, folder) = match RunReader::open(path).and_then(read) {
        Ok(read) => read,
        Err(error) => {
            output.warn(&format!("not listed: {error}"));
            return None;
        }
    };
    let Manifest { status, started, algorithms, seeds, .. } = folder.manifest().clone();
    let run = path.file_name()?.to_string_lossy().into();
    let (ended, path) = (results.len(), path.display().to_string());
    let diverged = results.iter().filter(|result| result.diverged()).count();
    let spent = results.iter().filter_map(|result| result.row.value("epsilon"));
    let epsilon = spent.reduce(f64::max);
    Some(Listed { run, path, status, started, algorithms, seeds, ended, diverged, epsilon })
}

impl Listed {
    fn cells(&self) -> Vec<String> {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let (run, started) = (self.run.clone(), self.started.clone());
        let status = match self.diverged {
            0 => self.status.name().to_string(),
            n => format!("{} ({n} of {} diverged)", self.status.name(), self.ended),
        };
        let spent = self.epsilon.map(|epsilon| format!(", ε = {} spent", number(epsilon)));
        let status = status + &spent.unwrap_or_default();
        vec![run, status, started, self.algorithms.join(", "), seeds.join(", ")]
    }
}
