//! Which saved models a command means.

use std::path::Path;

use lopa::error::{Error, Result};
use lopa::folder::model_path;
use lopa::model::Model;
use serde_json::Value;

use crate::args::ModelArgs;

/// The models of the algorithms and the seed that were asked for; all algorithms if none was.
pub fn models(args: &ModelArgs) -> Result<Vec<Model>> {
    let runs = results(&args.run)?;
    let named = |run: &Value| run["algorithm"].as_str().map(str::to_string);
    let mut algorithms: Vec<String> = Vec::new();
    for name in runs.iter().filter_map(named) {
        if !algorithms.contains(&name) {
            algorithms.push(name);
        }
    }
    if let Some(wanted) = &args.algorithm {
        if !algorithms.contains(wanted) {
            let message = format!("the run has no algorithm `{wanted}`");
            return Err(Error::config("config/unknown-name", message)
                .at("--algorithm")
                .hint(format!("it has: {}", algorithms.join(", "))));
        }
        algorithms = vec![wanted.clone()];
    }
    let seeds: Vec<u64> = runs.iter().filter_map(|run| run["seed"].as_u64()).collect();
    let seed = match args.seed {
        Some(seed) if seeds.contains(&seed) => seed,
        Some(seed) => {
            let message = format!("the run has no seed {seed}");
            return Err(Error::config("config/unknown-name", message).at("--seed"));
        }
        None => *seeds.first().ok_or_else(|| nothing(&args.run))?,
    };
    algorithms.iter().map(|name| Model::load(&model_path(&args.run, name, seed))).collect()
}

fn results(run: &Path) -> Result<Vec<Value>> {
    let path = run.join("results.json");
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Error::storage("storage/read", format!("this is not a run folder: {error}"))
            .at(path.display().to_string())
            .hint("name a folder that `lopa run` made; `lopa ls` lists them")
    })?;
    let damaged = |what: String| {
        Error::storage("storage/read", format!("the results are damaged: {what}"))
            .at(path.display().to_string())
    };
    match serde_json::from_str(&text) {
        Ok(Value::Array(runs)) if !runs.is_empty() => Ok(runs),
        Ok(Value::Array(_)) => Err(nothing(run)),
        Ok(_) => Err(damaged("they are not a list".into())),
        Err(error) => Err(damaged(error.to_string())),
    }
}

fn nothing(run: &Path) -> Error {
    Error::storage("storage/read", "no run in this folder came to its end")
        .at(run.display().to_string())
}
