//! The data for a report's script.

use std::collections::BTreeMap;

use lopa::folder::{MetricsRow, Run};
use lopa::run::trace::more_is_better;
use lopa_study::statistics::Summary;
use serde_json::{Value, json};

use crate::figure::{Style, style};
use crate::pictures::{Styles, View, quantities};
use crate::quantity::{self, is_cost};
use crate::saved::Saved;
use crate::statistics::{Trace, traces};

/// The measures that charts show first, by preference.
pub const PREFERRED: [&str; 10] = [
    "holdout_accuracy",
    "own_test_accuracy",
    "test_accuracy",
    "holdout_r2",
    "test_r2",
    "holdout_concordance",
    "test_concordance",
    "loss",
    "grad_phi_sq",
    "consensus",
];

/// The script element that holds the data of all runs.
pub fn script(runs: &[Saved], styles: &Styles, view: &View) -> String {
    let titles = titles(runs);
    let runs = runs.iter().zip(&titles).map(|(saved, title)| run(saved, title, styles, view));
    let runs: Vec<Value> = runs.collect();
    // For charts with the curves of several runs.
    let all: Vec<Value> = (0..64).map(|n| look(style(n))).collect();
    let text = embedded(&json!({ "runs": runs, "styles": all }));
    format!("<script type=\"application/json\" id=\"data\">{text}</script>\n")
}

/// JSON that cannot end the enclosing script element.
fn embedded(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn run(saved: &Saved, title: &str, styles: &Styles, view: &View) -> Value {
    let traces = traces(saved);
    let names = quantities(&traces);
    let describe = |name: &String| {
        let log = quantity::known(name).is_some_and(|quantity| quantity.log);
        json!({ "name": name, "title": quantity::title(name), "log": log, "cost": is_cost(name) })
    };
    json!({
        "name": saved.name,
        "title": title,
        "x": view.x(&traces),
        "y": first(view, &traces),
        "quantities": names.iter().map(describe).collect::<Vec<_>>(),
        "algorithms": traces.iter().map(|t| algorithm(t, &names, styles)).collect::<Vec<_>>(),
        "rows": rows(saved, &names),
    })
}

/// The measures of the two charts: an accuracy or R² if there is one, and the loss.
fn first(view: &View, traces: &[Trace]) -> Vec<String> {
    let mut names = view.y(traces, &PREFERRED, PREFERRED.len());
    // One accuracy is enough: the first of those that were measured.
    if let Some(first) = names.first().filter(|_| view.y.is_empty()).cloned() {
        names.retain(|name| *name == first || !more_is_better(name));
    }
    names.truncate(2);
    names
}

fn algorithm(trace: &Trace, names: &[String], styles: &Styles) -> Value {
    let column = |name: &String| {
        let pick = |part: fn(&Summary) -> Option<f64>| -> Vec<Option<f64>> {
            trace.points.iter().map(|point| point.get(name).and_then(part)).collect()
        };
        let columns = json!({
            "mean": pick(|s| Some(s.mean)), "sd": pick(|s| s.sd), "low": pick(|s| Some(s.low)),
            "high": pick(|s| Some(s.high)),
        });
        (name.clone(), columns)
    };
    let points: BTreeMap<String, Value> = names.iter().map(column).collect();
    let mut algorithm = look(styles.style(&trace.algorithm));
    algorithm["label"] = json!(trace.algorithm);
    algorithm["name"] = json!(trace.count.named(&trace.algorithm));
    algorithm["seeds"] = json!(trace.seeds);
    algorithm["diverged"] = json!(trace.count.diverged());
    algorithm["lost"] = trace.lost.iter().map(|run| lost(run, names)).collect();
    algorithm["points"] = json!(points);
    algorithm
}

/// The style of a curve.
fn look(style: Style) -> Value {
    let dash: Vec<f64> = style.dash.split_whitespace().filter_map(|d| d.parse().ok()).collect();
    json!({ "colour": style.colour, "dash": dash, "marker": style.marker })
}

/// A title of its own for each run: its experiment's name, or else its folder's.
pub fn titles(runs: &[Saved]) -> Vec<String> {
    let alone = |run: &&Saved| runs.iter().filter(|other| other.title() == run.title()).count() < 2;
    let title = |run: &Saved| if alone(&run) { run.title() } else { &run.name }.to_string();
    runs.iter().map(title).collect()
}

/// A run that diverged: its measurements by quantity.
fn lost(run: &Run, names: &[String]) -> Value {
    let column = |name: &String| {
        let values: Vec<Option<f64>> = run.rows.iter().map(|row| row.value(name)).collect();
        (name.clone(), json!(values))
    };
    names.iter().map(column).collect::<serde_json::Map<_, _>>().into()
}

/// The raw rows, for download.
fn rows(saved: &Saved, names: &[String]) -> Value {
    let row = |line: &MetricsRow| {
        let mut row = vec![json!(line.algorithm), json!(line.seed)];
        row.extend(names.iter().map(|name| json!(line.row.value(name))));
        Value::Array(row)
    };
    let columns: Vec<&str> =
        ["algorithm", "seed"].into_iter().chain(names.iter().map(String::as_str)).collect();
    json!({ "columns": columns, "rows": saved.rows.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_element() {
        let evil = json!({ "a": "</script><script>alert(1)</script><!--&" });
        let text = embedded(&evil);
        assert!(!text.contains(['<', '>', '&']));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), evil);
    }
}
