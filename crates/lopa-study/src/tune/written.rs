//! The tuned experiment file, with the provenance of its values.

use std::fmt::Write as _;

use toml::Value;

use super::Tuned;
use super::journal::Trial;
use super::spec::TuneSpec;
use lopa::experiment::Experiment;

/// The text of the tuned file: the original's top comment, the provenance, the experiment.
pub fn file(
    name: &str,
    original: &str,
    experiment: &Experiment,
    spec: &TuneSpec,
    Tuned { trials, best, tests, .. }: &Tuned,
) -> String {
    let mut text = String::new();
    for line in original.lines().take_while(|line| line.starts_with('#')) {
        let _ = writeln!(text, "{line}");
    }
    let name = std::path::Path::new(name).file_name().map_or(name.into(), |n| n.to_string_lossy());
    let _ = writeln!(
        text,
        "#\n# Written by `lopa tune {name}`, version {}.",
        env!("CARGO_PKG_VERSION")
    );
    let method = format!("{:?}", spec.method).to_lowercase();
    let _ = writeln!(
        text,
        "# Search: {method}, {} trials per algorithm, seeds {:?}, by {} after {} of the budget.",
        spec.trials, spec.seeds, spec.metric, spec.share
    );
    for trial in best {
        let _ = writeln!(text, "#   {}", line(trial, trials));
        for edge in edges(trial, trials) {
            let _ = writeln!(text, "#     {edge}");
        }
        for test in tests.iter().filter(|test| test.algorithm == trial.algorithm) {
            let _ = writeln!(text, "#     trial {} {}", test.confirms, test.says());
        }
    }
    let mut resolved = experiment.resolved();
    resolved.insert("name".into(), format!("{}-tuned", experiment.name).into());
    if let Some(Value::Array(algorithms)) = resolved.get_mut("algorithm") {
        for (algorithm, trial) in algorithms.iter_mut().zip(best) {
            set(algorithm, trial);
        }
    }
    let _ = write!(text, "{}", toml::to_string(&resolved).expect("a table is TOML"));
    text
}

/// `lopa-gt: trial 7, 3.1e-1 (the original: 4.2e-1): alpha = 0.06, beta = 0.01`
fn line(best: &Trial, trials: &[Trial]) -> String {
    let shown =
        |value: Option<f64>| value.map_or("diverged".into(), |value| format!("{value:.4e}"));
    let own = trials
        .iter()
        .filter(|t| t.algorithm == best.algorithm && t.trial == 0)
        .max_by_key(|t| t.rung)
        .and_then(|t| t.value);
    let values: Vec<String> = best.params.iter().map(|(key, v)| format!("{key} = {v}")).collect();
    let (algorithm, number) = (&best.algorithm, best.trial);
    let (value, own) = (shown(best.value), shown(own));
    format!("{algorithm}: trial {number}, {value} (the original: {own}): {}", values.join(", "))
}

/// "alpha: the largest value tried", where a better one may lie beyond.
fn edges(best: &Trial, trials: &[Trial]) -> Vec<String> {
    let own = |key: &str| -> Vec<f64> {
        let own = trials.iter().filter(|trial| trial.algorithm == best.algorithm);
        own.filter_map(|trial| trial.params.get(key).copied()).collect()
    };
    let edge = |(key, &value): (&String, &f64)| {
        let tried = own(key);
        let end = match (tried.iter().all(|&t| t >= value), tried.iter().all(|&t| t <= value)) {
            (true, false) => "smallest",
            (false, true) => "largest",
            _ => return None,
        };
        Some(format!("{key}: the {end} value tried"))
    };
    best.params.iter().filter_map(edge).collect()
}

fn set(algorithm: &mut Value, trial: &Trial) {
    let Value::Table(table) = algorithm else { return };
    for (key, &value) in &trial.params {
        let whole = table.get(key).is_some_and(Value::is_integer);
        let value = if whole { Value::Integer(value as i64) } else { Value::Float(value) };
        table.insert(key.clone(), value);
    }
}
