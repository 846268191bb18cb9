//! The concordance of predicted risks with times and events, by node and overall.

use lopa::folder::model::Model;
use lopa_study::statistics::Summary;
use serde_json::{Value, json};

use super::numbers::by_model;
use super::share::Shares;
use crate::output::Output;

/// A node's concordance.
pub struct Line {
    pub node: usize,
    pub rows: usize,
    /// Rows whose event was seen.
    pub events: usize,
    pub concordance: Option<f64>,
}

/// The mean over the nodes that have one.
fn mean(lines: &[&Line]) -> Option<f64> {
    Summary::of(lines.iter().filter_map(|line| line.concordance)).map(|all| all.mean)
}

/// A table for each model: the concordance of every node.
pub fn table(all: &[(&Model, Line)], output: &Output) -> String {
    let mut text = Vec::new();
    for (model, lines) in by_model(all) {
        let line = |name: String, rows: usize, events: usize, share: Option<f64>| {
            let share = share.map_or("–".into(), |share| format!("{share:.4}"));
            vec![name, rows.to_string(), events.to_string(), share]
        };
        let own = |l: &&Line| line(model.name(l.node), l.rows, l.events, l.concordance);
        let mut rows: Vec<Vec<String>> = lines.iter().map(own).collect();
        if lines.len() > 1 {
            let sum = |of: fn(&Line) -> usize| lines.iter().map(|line| of(line)).sum();
            rows.push(line("mean".into(), sum(|l| l.rows), sum(|l| l.events), mean(&lines)));
        }
        let title = format!("{}, seed {}", model.about.algorithm, model.about.seed);
        let table = output.table(&["node", "rows", "events", "concordance"], rows);
        text.push(format!(
            "{title}, predicts risks (by chance, the concordance is 0.5)\n\n{table}"
        ));
    }
    text.join("\n\n")
}

/// The same for scripts.
pub fn described(all: &[(&Model, Line)], shares: &Shares) -> Value {
    let model = |(model, lines): (&Model, Vec<&Line>)| {
        let node = |line: &&Line| {
            let mut node = json!({
                "node": line.node,
                "rows": line.rows,
                "events": line.events,
                "concordance": line.concordance,
            });
            if let Some(name) = model.about.nodes.get(line.node) {
                node["name"] = json!(name);
            }
            node
        };
        json!({
            "algorithm": model.about.algorithm,
            "seed": model.about.seed,
            "diverged": model.about.diverged,
            "rows": shares.rows,
            "own_rows": shares.own,
            "concordance": mean(&lines),
            "nodes": lines.iter().map(node).collect::<Vec<_>>(),
        })
    };
    Value::Array(by_model(all).into_iter().map(model).collect())
}
