//! The tuned experiment file, with the provenance of its values.

use std::fmt::Write as _;

use lopa::config::{Base, Source};
use lopa::experiment::{Experiment, Registries};
use toml::{Table, Value};

use super::Tuned;
use super::spec::{Tried, TuneSpec};
use super::trial::Trial;

/// The text of the tuned file: the provenance of its values, and the values on top of the file that was
/// searched, which it `extends`. The whole experiment follows instead where there is no such file, or
/// where overrides changed what a file on top of it cannot say.
pub fn file(
    (source, registries): (&Source, &Registries),
    experiment: &Experiment,
    spec: &TuneSpec,
    tuned: &Tuned,
    extends: Option<&str>,
) -> String {
    let resolved = with_values(experiment, &tuned.best);
    let provenance = provenance(&source.name, spec, tuned);
    let on_top =
        extends.and_then(|base| on_top(base, (source, registries), &resolved, &tuned.best));
    match on_top {
        Some(values) => format!("{provenance}{values}"),
        None => {
            let about = source.text.lines().take_while(|line| line.starts_with('#'));
            let about: String = about.map(|line| format!("{line}\n")).collect();
            let about = if about.is_empty() { about } else { format!("{about}#\n") };
            let whole = toml::to_string(&resolved).expect("a table is TOML");
            format!("{about}{provenance}{whole}")
        }
    }
}

/// How the values were found, as a comment.
fn provenance(name: &str, spec: &TuneSpec, tuned: &Tuned) -> String {
    let Tuned { trials, best, tests, moves, .. } = tuned;
    let mut text = String::new();
    let name = std::path::Path::new(name).file_name().map_or(name.into(), |n| n.to_string_lossy());
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(text, "# Written by `lopa tune {name}`, version {version}.");
    let method = format!("{:?}", spec.method).to_lowercase();
    let _ = writeln!(
        text,
        "# Search: {method}, {} trials per algorithm, seeds {:?}, by {} after {} of the budget.",
        spec.trials, spec.seeds, spec.metric, spec.share
    );
    if let Some(last) =
        trials.iter().map(|trial| trial.trial + 1).max().filter(|_| !moves.is_empty())
    {
        let _ = writeln!(text, "# Ranges moved, so that every algorithm got {last} trials.");
    }
    for trial in best {
        let _ = writeln!(text, "#   {}", line(trial, trials));
        for moved in moves.iter().filter(|moved| moved.algorithm == trial.algorithm) {
            let _ = writeln!(text, "#     {}", moved.says());
        }
        for edge in edges(trial, trials) {
            let _ = writeln!(text, "#     {edge}");
        }
        for test in tests.iter().filter(|test| test.algorithm == trial.algorithm) {
            let _ = writeln!(text, "#     trial {} {}", test.confirms, test.says());
        }
    }
    text
}

/// The whole experiment with the best values.
fn with_values(experiment: &Experiment, best: &[Trial]) -> Table {
    let mut resolved = experiment.resolved();
    resolved.insert("name".into(), format!("{}-tuned", experiment.name).into());
    if let Some(Value::Array(algorithms)) = resolved.get_mut("algorithm") {
        for (algorithm, trial) in algorithms.iter_mut().zip(best) {
            set(algorithm, trial);
        }
    }
    resolved
}

/// The differences from the searched file; `None` if a file that extends it cannot express them.
fn on_top(
    extends: &str,
    (source, registries): (&Source, &Registries),
    tuned: &Table,
    best: &[Trial],
) -> Option<String> {
    let searched = Source { sets: Vec::new(), ..source.clone() };
    let base = Experiment::read(&searched, registries).ok()?.resolved();
    let mut text = format!("schema = 1\nextends = {}\n", Value::from(extends));
    let mut sections = Table::new();
    for (key, value) in tuned.iter().filter(|(key, value)| base.get(*key) != Some(value)) {
        match (key.as_str(), value) {
            ("algorithm", _) => {}
            (_, Value::Table(above)) => {
                let section = changed(base.get(key), above, &[]);
                sections.insert(key.clone(), section.into());
            }
            (_, value) => {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
    }
    let _ = writeln!(text, "algorithm = [");
    let all = tuned.get("algorithm").and_then(Value::as_array)?.iter().filter_map(Value::as_table);
    for (entry, trial) in all.zip(best) {
        let mut known = base.get("algorithm").and_then(Value::as_array)?.iter();
        let known = known.find(|known| label(known) == Some(&trial.algorithm));
        let searched: Vec<&str> = trial.params.keys().map(String::as_str).collect();
        let named = if entry.contains_key("label") { "label" } else { "name" };
        let values = changed(known, entry, &[&[named], &searched[..]].concat());
        let _ = writeln!(text, "    {},", Value::Table(values));
    }
    let _ = writeln!(text, "]");
    if !sections.is_empty() {
        let _ = write!(text, "\n{}", toml::to_string(&sections).expect("a table is TOML"));
    }
    let bases = [Base { name: source.name.clone(), text: source.text.clone() }];
    let bases = bases.into_iter().chain(source.bases.clone()).collect();
    let again = Source { text, bases, sets: Vec::new(), ..source.clone() };
    let read = Experiment::read(&again, registries).ok()?;
    (read.resolved() == *tuned).then_some(again.text)
}

/// The keys of a section that differ from the base's, and those that are `shown` anyway.
fn changed(base: Option<&Value>, above: &Table, shown: &[&str]) -> Table {
    let base = base.and_then(Value::as_table);
    let other = base.is_none_or(|base| base.get("name") != above.get("name"));
    let differs = |key: &str| other || base.and_then(|base| base.get(key)) != above.get(key);
    let kept = above.iter().filter(|(key, _)| shown.contains(&key.as_str()) || differs(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// An entry's name in results.
fn label(entry: &Value) -> Option<&str> {
    entry.get("label").or(entry.get("name"))?.as_str()
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

/// "alpha: the largest value tried", where a better value may lie beyond.
fn edges(best: &Trial, trials: &[Trial]) -> Vec<String> {
    let own = |key: &str| -> Vec<f64> {
        let own = trials.iter().filter(|trial| trial.algorithm == best.algorithm);
        own.filter_map(|trial| trial.params.get(key)?.number()).collect()
    };
    let edge = |(key, value): (&String, &Tried)| {
        let (value, tried) = (value.number()?, own(key));
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
    for (key, value) in &trial.params {
        let whole = table.get(key).is_some_and(Value::is_integer);
        table.insert(key.clone(), value.value(whole));
    }
}
