//! Traces read back from a run folder: comparisons and claims are judged by what is in the files.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::run::trace::{Row, more_is_better};

/// All runs of a folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traces {
    /// In the order they were run.
    pub runs: Vec<Run>,
}

/// The trace of one algorithm on one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// Whether it diverged.
    pub diverged: bool,
    /// Its measurements.
    pub rows: Vec<Row>,
}

impl Traces {
    /// The runs of an algorithm, by seed.
    pub fn of(&self, algorithm: &str) -> Vec<&Run> {
        let mut runs: Vec<&Run> =
            self.runs.iter().filter(|run| run.algorithm == algorithm).collect();
        runs.sort_by_key(|run| run.seed);
        runs
    }
}

impl Run {
    /// A measure at the end.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.rows.last()?.value(name)
    }

    /// The last row within a budget that has the measure, and its value: nothing is interpolated.
    pub fn within(&self, cost: &str, budget: f64, measure: &str) -> Option<(&Row, f64)> {
        let inside = |row: &&Row| row.value(cost).is_some_and(|spent| spent <= budget);
        let measured = |row| Some((row, Row::value(row, measure)?));
        self.rows.iter().filter(inside).filter_map(measured).next_back()
    }

    /// The first row at which a measure is as good as `level`.
    pub fn reaches(&self, measure: &str, level: f64) -> Option<&Row> {
        let more = more_is_better(measure);
        let there = |value: f64| if more { value >= level } else { value <= level };
        self.rows.iter().find(|row| row.value(measure).is_some_and(there))
    }

    /// What it cost until a measure was as good as `level`, between measurements by a straight
    /// line; none if it never was.
    pub fn cost_to(&self, cost: &str, measure: &str, level: f64, more: bool) -> Option<f64> {
        let points: Vec<(f64, f64)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row.value(cost)?, row.value(measure)?)))
            .collect();
        let reached = |value: f64| if more { value >= level } else { value <= level };
        let at = points.iter().position(|&(_, value)| reached(value))?;
        let (cost, value) = points[at];
        let Some((before, worse)) = at.checked_sub(1).map(|before| points[before]) else {
            return Some(cost);
        };
        Some(before + (cost - before) * (level - worse) / (value - worse))
    }
}

fn text(folder: &Path, name: &str) -> Result<String> {
    std::fs::read_to_string(folder.join(name)).map_err(|error| {
        Error::storage("storage/read", format!("cannot read the run: {error}"))
            .at(folder.join(name).display().to_string())
    })
}

fn damaged(folder: &Path, name: &str, error: serde_json::Error) -> Error {
    Error::storage("storage/read", format!("the run is damaged: {error}"))
        .at(folder.join(name).display().to_string())
}

/// Reads the traces of a run folder.
pub fn read(folder: &Path) -> Result<Traces> {
    let text = |name: &str| text(folder, name);
    let damaged = |name: &str, error| damaged(folder, name, error);
    let results: Vec<Value> = serde_json::from_str(&text("results.json")?)
        .map_err(|error| damaged("results.json", error))?;
    let run = |result: &Value| Run {
        algorithm: result["algorithm"].as_str().unwrap_or_default().to_string(),
        seed: result["seed"].as_u64().unwrap_or_default(),
        diverged: result["stop"] == "diverged",
        rows: Vec::new(),
    };
    let mut traces = Traces { runs: results.iter().map(run).collect() };
    for line in text("metrics.jsonl")?.lines() {
        let mut line: Value =
            serde_json::from_str(line).map_err(|error| damaged("metrics.jsonl", error))?;
        let (algorithm, seed) = (line["algorithm"].take(), line["seed"].take());
        let is = |run: &&mut Run| algorithm == run.algorithm.as_str() && seed == run.seed;
        let Some(run) = traces.runs.iter_mut().find(is) else { continue };
        let object = line.as_object_mut().expect("indexed as an object");
        object.retain(|_, value| !value.is_null());
        run.rows
            .push(serde_json::from_value(line).map_err(|error| damaged("metrics.jsonl", error))?);
    }
    Ok(traces)
}
