//! A file store of MLflow: `mlruns/<experiment>/<run>/{meta.yaml,metrics,params,tags}`. An experiment
//! of lopa is one of MLflow's; each algorithm on each seed is a run.

use std::path::{Path, PathBuf};

use lopa::error::Result;
use lopa::folder::Status;
use lopa::run::hex;
use lopa::run::trace::Stop;
use sha2::{Digest, Sha256};
use toml::Value;

use super::{Files, One, cannot, ones, plain};
use crate::saved::Saved;

/// The longest value of a parameter that MLflow takes.
const LONGEST: usize = 6000;

/// The files of a run below the folder `root`.
pub fn files(saved: &Saved, root: &Path) -> Result<Files> {
    let root = std::path::absolute(root).map_err(|error| cannot(root, &error))?;
    let started = milliseconds(saved, 0.0);
    let name = saved.title();
    // MLflow's ids are digits.
    let id: u64 = digest(&[name])[..8].iter().fold(0, |id, &byte| id << 8 | u64::from(byte));
    let experiment = PathBuf::from(format!("{:018}", id % 10u64.pow(18)));
    let mut files = Files::new();
    let meta = experiment.join("meta.yaml");
    if !root.join(&meta).exists() {
        let lines = [
            ("artifact_location", quoted(&address(&root.join(&experiment)))),
            ("creation_time", started.to_string()),
            ("experiment_id", quoted(&experiment.to_string_lossy())),
            ("last_update_time", started.to_string()),
            ("lifecycle_stage", "active".into()),
            ("name", quoted(name)),
        ];
        files.push((meta, yaml(&lines)));
    }
    for one in ones(saved) {
        run(saved, &one, &root, &experiment, &mut files);
    }
    Ok(files)
}

fn run(saved: &Saved, one: &One, root: &Path, experiment: &Path, files: &mut Files) {
    let seed = one.seed.to_string();
    let id = hex(&digest(&[&saved.name, &saved.manifest.started, one.algorithm, &seed])[..16]);
    let folder = experiment.join(&id);
    let title = format!("{} seed {seed}", one.algorithm);
    let last = one.rows.last().map_or(0.0, |row| row.row.seconds);
    let over = one.end.is_some() || saved.manifest.status != Status::Running;
    let ended = if over { milliseconds(saved, last).to_string() } else { "null".into() };
    let lines = [
        ("artifact_uri", quoted(&address(&root.join(&folder).join("artifacts")))),
        ("end_time", ended),
        ("entry_point_name", "''".into()),
        ("experiment_id", quoted(&experiment.to_string_lossy())),
        ("lifecycle_stage", "active".into()),
        ("run_id", quoted(&id)),
        ("run_name", quoted(&title)),
        ("run_uuid", quoted(&id)),
        ("source_name", "lopa".into()),
        ("source_type", "4".into()), // local
        ("source_version", "''".into()),
        ("start_time", milliseconds(saved, 0.0).to_string()),
        ("status", status(saved, one).to_string()),
        ("tags", "[]".into()),
        ("user_id", "lopa".into()),
    ];
    files.push((folder.join("meta.yaml"), yaml(&lines)));
    // MLflow takes no folder for a run that has no artifacts.
    files.push((folder.join("artifacts").join("resolved.toml"), saved.settings.clone().into()));
    for (name, lines) in metrics(saved, one) {
        files.push((folder.join("metrics").join(plain(&name)), lines.into_bytes()));
    }
    for (name, value) in parameters(saved, one) {
        files.push((folder.join("params").join(plain(&name)), value.into_bytes()));
    }
    let stop = one.end.map_or(saved.manifest.status.name(), |entry| entry.stop.name());
    let digest = one.end.map_or("", |entry| &entry.digest);
    let tags = [
        ("mlflow.runName", title.as_str()),
        ("mlflow.source.name", "lopa"),
        ("mlflow.source.type", "LOCAL"),
        ("mlflow.user", "lopa"),
        ("lopa.version", &saved.manifest.lopa),
        ("lopa.folder", &saved.name),
        ("lopa.stop", stop),
        ("lopa.digest", digest),
    ];
    files.extend(tags.map(|(name, value)| (folder.join("tags").join(name), value.into())));
}

/// MLflow's number for how a run stands. One that diverged has failed.
fn status(saved: &Saved, one: &One) -> u8 {
    let [running, finished, failed, killed] = [1, 3, 4, 5];
    match (one.end.map(|entry| entry.stop), saved.manifest.status) {
        (Some(Stop::Diverged), _) | (None, Status::Failed) => failed,
        (Some(Stop::Interrupted), _) | (None, Status::Interrupted) => killed,
        (None, Status::Running) => running,
        (Some(_), _) | (None, Status::Done) => finished,
    }
}

/// For every quantity, lines of time, value and iteration.
fn metrics(saved: &Saved, one: &One) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for row in one.rows.iter().map(|row| &row.row) {
        for (name, value) in row.quantities().filter(|(_, value)| value.is_finite()) {
            let (time, step) = (milliseconds(saved, row.seconds), row.iteration);
            let line = format!("{time} {value:?} {step}\n");
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, lines)) => lines.push_str(&line),
                None => all.push((name.to_string(), line)),
            }
        }
    }
    all
}

/// The settings, with those of this algorithm only, under names such as `problem.name`.
fn parameters(saved: &Saved, one: &One) -> Vec<(String, String)> {
    let mut all = vec![("seed".to_string(), one.seed.to_string())];
    for (key, value) in saved.experiment() {
        match (key.as_str(), value) {
            ("algorithm", Value::Array(list)) => {
                let name = |value: &Value, key| Some(value.get(key)?.as_str()? == one.algorithm);
                let mine = |value: &&Value| {
                    name(value, "label").or_else(|| name(value, "name")).unwrap_or(false)
                };
                list.iter().filter(mine).for_each(|value| flatten(&key, value, &mut all));
            }
            (_, value) => flatten(&key, &value, &mut all),
        }
    }
    all.retain(|(_, value)| value.len() <= LONGEST);
    all
}

fn flatten(path: &str, value: &Value, all: &mut Vec<(String, String)>) {
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, all));
        }
        // A parameter is one line.
        Value::String(text) => all.push((path.into(), text.replace(['\n', '\r'], " "))),
        other => all.push((path.into(), other.to_string().replace(['\n', '\r'], " "))),
    }
}

/// The time at which a run had this age.
fn milliseconds(saved: &Saved, age: f64) -> u64 {
    saved.manifest.started_seconds().unwrap_or(0) * 1000 + (age * 1000.0) as u64
}

fn digest(words: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for word in words {
        hasher.update((word.len() as u64).to_le_bytes());
        hasher.update(word);
    }
    hasher.finalize().into()
}

fn yaml(lines: &[(&str, String)]) -> Vec<u8> {
    lines.iter().map(|(key, value)| format!("{key}: {value}\n")).collect::<String>().into_bytes()
}

/// A string that YAML reads as it is; JSON's notation is one of YAML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The `file:` address of a path.
fn address(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let escaped = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    format!("file://{}", path.to_string_lossy().bytes().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_words_are_escaped() {
        assert_eq!(address(Path::new("/my runs/a%")), "file:///my%20runs/a%25");
        assert_eq!(quoted("a: \"b\"\n"), "\"a: \\\"b\\\"\\n\"");
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    }

    #[test]
    fn settings_become_parameters() {
        let table = "a = { b = 1, c = [1, 2] }\nd = 'x\ny'".replace("x\ny", "x y");
        let mut all = Vec::new();
        for (key, value) in table.parse::<toml::Table>().unwrap() {
            flatten(&key, &value, &mut all);
        }
        let found: Vec<(&str, &str)> = all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, [("a.b", "1"), ("a.c", "[1, 2]"), ("d", "x y")]);
    }
}
