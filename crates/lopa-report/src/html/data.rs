//! The data for a report's script.

use std::collections::BTreeMap;

use lopa::folder::{MetricsRow, Run};
use lopa_study::statistics::Summary;
use serde_json::{Value, json};

use crate::pictures::{Styles, View, quantities};
use crate::quantity::{self, is_cost};
use crate::saved::Saved;
use crate::statistics::{Trace, traces};

/// The measures that charts show first, by preference.
pub const PREFERRED: [&str; 5] =
    ["own_test_accuracy", "test_accuracy", "loss", "grad_phi_sq", "consensus"];

/// The script element that holds the data of all runs.
pub fn script(runs: &[Saved], styles: &Styles, view: &View) -> String {
    let runs: Vec<Value> = runs.iter().map(|saved| run(saved, styles, view)).collect();
    let text = embedded(&json!({ "runs": runs }));
    format!("<script type=\"application/json\" id=\"data\">{text}</script>\n")
}

/// JSON that cannot end the script element it stands in.
fn embedded(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn run(saved: &Saved, styles: &Styles, view: &View) -> Value {
    let traces = traces(saved);
    let names = quantities(&traces);
    let describe = |name: &String| {
        let log = quantity::known(name).is_some_and(|quantity| quantity.log);
        json!({ "name": name, "title": quantity::title(name), "log": log, "cost": is_cost(name) })
    };
    json!({
        "name": saved.name,
        "x": view.x(&traces),
        "y": first(view, &traces),
        "quantities": names.iter().map(describe).collect::<Vec<_>>(),
        "algorithms": traces.iter().map(|t| algorithm(t, &names, styles)).collect::<Vec<_>>(),
        "rows": rows(saved, &names),
    })
}

/// The measures of the two charts: an accuracy if there is one, and the loss.
fn first(view: &View, traces: &[Trace]) -> Vec<String> {
    let mut names = view.y(traces, &PREFERRED, PREFERRED.len());
    if view.y.is_empty() && names.first().is_some_and(|name| name == "own_test_accuracy") {
        names.retain(|name| name != "test_accuracy");
    }
    names.truncate(2);
    names
}

fn algorithm(trace: &Trace, names: &[String], styles: &Styles) -> Value {
    let style = styles.style(&trace.algorithm);
    let dash: Vec<f64> = style.dash.split_whitespace().filter_map(|d| d.parse().ok()).collect();
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
    json!({
        "label": trace.algorithm,
        "name": trace.count.named(&trace.algorithm),
        "seeds": trace.seeds,
        "diverged": trace.count.diverged(),
        "lost": trace.lost.iter().map(|run| lost(run, names)).collect::<Vec<_>>(),
        "colour": style.colour,
        "dash": dash,
        "points": points,
    })
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
