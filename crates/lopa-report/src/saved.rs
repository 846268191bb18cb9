//! Run folders read back.

use std::collections::BTreeMap;
use std::path::Path;

use lopa::error::{Error, Result};
use serde_json::Value;

/// A run folder as it was read.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The folder's name.
    pub name: String,
    /// `manifest.json`.
    pub manifest: Value,
    /// `resolved.toml`.
    pub settings: String,
    /// `metrics.jsonl`.
    pub rows: Vec<Line>,
    /// `results.json`; empty as long as no run came to its end.
    pub results: Vec<Value>,
}

/// A measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// Costs and measures by name, those that are numbers.
    pub values: BTreeMap<String, f64>,
}

impl Saved {
    /// Reads a run folder.
    pub fn read(folder: &Path) -> Result<Saved> {
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let name = whole.file_name().map_or("run".into(), |name| name.to_string_lossy().into());
        let manifest = json(&folder.join("manifest.json"))?;
        let settings = text(&folder.join("resolved.toml"))?;
        let rows = lines(&folder.join("metrics.jsonl"))?;
        let results_path = folder.join("results.json");
        let results = match results_path.exists().then(|| json(&results_path)).transpose()? {
            None => Vec::new(),
            Some(Value::Array(results)) => results,
            Some(_) => return Err(damaged(&results_path, "it is not a list")),
        };
        Ok(Saved { name, manifest, settings, rows, results })
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

    /// The worlds: network and partition of every seed.
    pub fn worlds(&self) -> &[Value] {
        self.manifest["worlds"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The experiment's name.
    pub fn title(&self) -> &str {
        self.manifest["name"].as_str().unwrap_or(&self.name)
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

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Error::storage("storage/read", format!("cannot read the run: {error}"))
            .at(path.display().to_string())
            .hint("name a folder that `lopa run` made; `lopa ls` lists them")
    })
}

fn json(path: &Path) -> Result<Value> {
    serde_json::from_str(&text(path)?).map_err(|error| damaged(path, &error.to_string()))
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::storage("storage/damaged", format!("the file is damaged: {what}"))
        .at(path.display().to_string())
}

fn lines(path: &Path) -> Result<Vec<Line>> {
    let text = text(path)?;
    let last = text.lines().count();
    let mut rows = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        match line(text) {
            Some(row) => rows.push(row),
            // A run that was killed may leave half a line.
            None if number == last => break,
            None => {
                let place = format!("{}:{number}", path.display());
                let message = "this line is not a measurement";
                return Err(Error::storage("storage/damaged", message).at(place));
            }
        }
    }
    Ok(rows)
}

fn line(text: &str) -> Option<Line> {
    let Ok(Value::Object(object)) = serde_json::from_str(text) else { return None };
    let algorithm = object.get("algorithm")?.as_str()?.to_string();
    let seed = object.get("seed")?.as_u64()?;
    let numbers = object.iter().filter(|(name, _)| *name != "seed");
    let values = numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
    Some(Line { algorithm, seed, values: values.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_at_the_end_is_forgiven_elsewhere_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let good = r#"{"algorithm":"a","seed":1,"iteration":0,"loss":null,"phi":2.5}"#;
        std::fs::write(&path, format!("{good}\n{{\"algo")).unwrap();
        let rows = lines(&path).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].values, [("iteration".into(), 0.0), ("phi".into(), 2.5)].into());
        std::fs::write(&path, format!("{good}\n[]\n{good}\n")).unwrap();
        let error = lines(&path).unwrap_err();
        assert_eq!(error.id, "storage/damaged");
        assert!(error.place.unwrap().ends_with("metrics.jsonl:2"));
    }

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
