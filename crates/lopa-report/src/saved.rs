//! Run folders, as reports need them.

use std::path::Path;

use lopa::error::{Error, Result};
use lopa::folder::{Manifest, MetricsRow, RunReader, WorldNote};
use lopa::run::Outcome;
use lopa_base::store::limits::{self, read_text};
use serde_json::Value;

/// A run folder in memory.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The folder's name.
    pub name: String,
    /// `manifest.json`.
    pub manifest: Manifest,
    /// The text of `resolved.toml`.
    pub settings: String,
    /// `metrics.jsonl`.
    pub rows: Vec<MetricsRow>,
    /// `results.json`; empty as long as no run has ended.
    pub results: Vec<Outcome>,
}

impl Saved {
    /// Reads a run folder.
    pub fn read(folder: &Path) -> Result<Saved> {
        let reader = RunReader::open(folder)?;
        Ok(Saved {
            name: reader.name(),
            settings: reader.resolved()?.text,
            rows: reader.rows()?,
            results: reader.results()?,
            manifest: reader.manifest().clone(),
        })
    }

    /// The labels of the algorithms in the order of their first measurement.
    pub fn algorithms(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !labels.contains(&row.algorithm.as_str()) {
                labels.push(&row.algorithm);
            }
        }
        labels
    }

    /// The seeds of an algorithm in the order of their first measurement.
    pub fn seeds(&self, algorithm: &str) -> Vec<u64> {
        let mut seeds = Vec::new();
        for row in self.rows.iter().filter(|row| row.algorithm == algorithm) {
            if !seeds.contains(&row.seed) {
                seeds.push(row.seed);
            }
        }
        seeds
    }

    /// The network and partition of every seed.
    pub fn worlds(&self) -> &[WorldNote] {
        &self.manifest.worlds
    }

    /// The settings by section; none if another version's cannot be read.
    pub fn experiment(&self) -> toml::Table {
        self.settings.parse().unwrap_or_default()
    }

    /// The experiment's name.
    pub fn title(&self) -> &str {
        &self.manifest.name
    }
}

/// The verdicts on claims in `claims.json`: in a run folder, or beside or above it.
pub fn find_claims(run: &Path) -> Result<Option<Vec<Value>>> {
    let whole = run.canonicalize().unwrap_or_else(|_| run.to_path_buf());
    let places = whole.ancestors().take(3).map(|folder| folder.join("claims.json"));
    places.into_iter().find(|path| path.is_file()).map(|path| claims(&path)).transpose()
}

/// Reads a file of claims: a list, or an object with a list under `claims`.
pub fn claims(path: &Path) -> Result<Vec<Value>> {
    match json(path)? {
        Value::Array(claims) => Ok(claims),
        Value::Object(mut object) => match object.remove("claims") {
            Some(Value::Array(claims)) => Ok(claims),
            _ => Err(damaged(path, "it has no list of claims")),
        },
        _ => Err(damaged(path, "it is not a list of claims")),
    }
}

fn json(path: &Path) -> Result<Value> {
    let text = read_text(path, limits::DATA).map_err(|error| {
        Error::storage("storage/read", format!("cannot read the claims: {error}"))
            .at(path.display().to_string())
            .hint("name a `claims.json` that `lopa reproduce` wrote")
    })?;
    serde_json::from_str(&text).map_err(|error| damaged(path, &error.to_string()))
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::storage("storage/damaged", format!("the file is damaged: {what}"))
        .at(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_found_above_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("runs/one");
        std::fs::create_dir_all(&run).unwrap();
        assert_eq!(find_claims(&run).unwrap(), None);
        std::fs::write(folder.path().join("claims.json"), r#"{"claims":[{"claim":"c"}]}"#).unwrap();
        assert_eq!(find_claims(&run).unwrap().unwrap()[0]["claim"], "c");
        std::fs::write(run.join("claims.json"), "3").unwrap();
        assert_eq!(find_claims(&run).unwrap_err().id, "storage/damaged");
    }
}
