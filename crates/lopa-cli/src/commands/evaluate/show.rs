//! Scores, as documents and tables.

use std::collections::BTreeSet;

use lopa::folder::model::Model;
use lopa::folder::serve::{ClassCounts, Score};
use lopa_study::statistics::Summary;
use serde_json::{Value, json};

use super::share::Shares;
use crate::output::Output;

/// The scores of some nodes' models.
pub type Scores = Vec<(usize, Score)>;

/// The largest number of classes whose confusion matrix is printed.
const MOST_CLASSES: usize = 12;

/// The measures of a score, by name and head.
const MEASURES: [(&str, &str); 4] = [
    ("accuracy", "accuracy"),
    ("auc", "AUC"),
    ("log_loss", "log-loss"),
    ("calibration_error", "calibration error"),
];

fn measures(score: &Score) -> [Option<f64>; 4] {
    [Some(score.accuracy()), score.auc, score.log_loss, score.calibration]
}

/// Four decimals, or a dash.
pub fn cells(score: &Score) -> impl Iterator<Item = String> {
    measures(score).into_iter().map(cell)
}

/// The heads of [`cells`].
pub fn heads() -> impl Iterator<Item = &'static str> {
    MEASURES.into_iter().map(|(_, head)| head)
}

fn cell(value: Option<f64>) -> String {
    value.map_or("–".into(), |value| format!("{value:.4}"))
}

/// Mean, smallest and largest of a measure over nodes.
fn spread(scores: &Scores, measure: usize) -> [Option<f64>; 3] {
    let all = Summary::of(scores.iter().filter_map(|(_, score)| measures(score)[measure]));
    [all.map(|all| all.mean), all.map(|all| all.low), all.map(|all| all.high)]
}

/// The share of all rows that are right, each counted once.
fn pooled(scores: &Scores) -> f64 {
    let rows: usize = scores.iter().map(|(_, score)| score.rows).sum();
    scores.iter().map(|(_, score)| score.accuracy() * score.rows as f64).sum::<f64>() / rows as f64
}

/// The accuracy of a constant prediction at each node, and the class, if it is the same at all of
/// them.
pub fn majority(found: Option<(Option<usize>, f64)>, classes: &[String]) -> String {
    match found {
        None => String::new(),
        Some((Some(class), share)) => {
            format!("\n\nalways naming the most frequent class, `{}`: {share:.4}", classes[class])
        }
        Some((None, share)) => {
            format!("\n\nalways naming the most frequent class of each node's rows: {share:.4}")
        }
    }
}

/// The scores of a model's nodes for scripts.
pub fn described(model: &Model, scores: &Scores, shares: &Shares) -> Value {
    let classes = &model.about.classes;
    let [mean, min, max] = spread(scores, 0);
    let unknown: BTreeSet<&String> = shares.truths().flat_map(|truth| &truth.unknown).collect();
    let mut described = json!({
        "algorithm": model.about.algorithm,
        "seed": model.about.seed,
        "diverged": model.about.diverged,
        "rows": shares.rows,
        "own_rows": shares.own,
        "unknown_labels": unknown,
        "accuracy": mean,
        "accuracy_of_all_rows": pooled(scores),
        "accuracy_min": min,
        "accuracy_max": max,
        "majority": shares.majority().map(|(class, share)| {
            json!({ "class": class.map(|class| &classes[class]), "accuracy": share })
        }),
        "nodes": scores.iter().map(|(node, score)| {
            let mut described = to_json(score, classes);
            described["node"] = json!(node);
            described["rows"] = json!(score.rows);
            if let Some(name) = model.about.nodes.get(*node) {
                described["name"] = json!(name);
            }
            described
        }).collect::<Vec<_>>(),
    });
    for (at, (name, _)) in MEASURES.iter().enumerate().skip(1) {
        described[*name] = json!(spread(scores, at)[0]);
    }
    described
}

/// A score for scripts.
pub fn to_json(score: &Score, names: &[String]) -> Value {
    let share = |of: usize, all: usize| (all > 0).then(|| of as f64 / all as f64);
    let class = |(name, class): (&String, ClassCounts)| {
        let ClassCounts { rows, right, predicted } = class;
        json!({
            "class": name,
            "rows": rows,
            "right": right,
            "recall": share(right, rows),
            "precision": share(right, predicted),
        })
    };
    let confusion = |&(is, taken, rows): &(usize, usize, usize)| json!({ "class": names[is], "taken_for": names[taken], "rows": rows });
    let mut described = json!({
        "classes": names.iter().zip(score.by_class()).map(class).collect::<Vec<_>>(),
        "confusions": score.confusions().iter().map(confusion).collect::<Vec<_>>(),
    });
    for ((name, _), value) in MEASURES.into_iter().zip(measures(score)) {
        described[name] = json!(value);
    }
    described
}

/// The scores of one node's model, class by class.
pub fn detailed(model: &Model, scores: &Scores, output: &Output) -> String {
    let names = &model.about.classes;
    let (node, score) = &scores[0];
    let node = model.name(*node);
    let share = |of: usize, all: usize| match all {
        0 => "–".to_string(),
        _ => format!("{:.3}", of as f64 / all as f64),
    };
    let line = |(name, class): (&String, ClassCounts)| {
        let ClassCounts { rows, right, predicted } = class;
        let counts = [rows.to_string(), right.to_string()];
        let shares = [share(right, rows), share(right, predicted)];
        [name.clone()].into_iter().chain(counts).chain(shares).collect()
    };
    let lines = names.iter().zip(score.by_class()).map(line).collect();
    let head = ["class", "rows", "right", "recall", "precision"];
    let measures: Vec<String> =
        heads().zip(cells(score)).map(|(h, c)| format!("{h} {c}")).collect();
    let title = format!("{}, seed {}, node {node}", model.about.algorithm, model.about.seed);
    format!(
        "{title}: {}\n\n{}{}",
        measures.join(", "),
        output.table(&head, lines),
        confusion(scores, names, output)
    )
}

/// The scores of every node of one model; with the numbers of rows where each node has its own.
pub fn by_node(model: &Model, scores: &Scores, own: bool, output: &Output) -> String {
    let rows = own.then_some("rows");
    let head: Vec<&str> = std::iter::once("node").chain(rows).chain(heads()).collect();
    let line = |name: String, rows: Option<usize>, cells: Vec<String>| -> Vec<String> {
        let rows = rows.map_or(String::new(), |rows| rows.to_string());
        std::iter::once(name).chain(own.then_some(rows)).chain(cells).collect()
    };
    let node = |(node, score): &(usize, Score)| {
        line(model.name(*node), Some(score.rows), cells(score).collect())
    };
    let mut lines: Vec<Vec<String>> = scores.iter().map(node).collect();
    for (at, name) in ["mean", "min", "max"].into_iter().enumerate() {
        let values = (0..MEASURES.len()).map(|measure| cell(spread(scores, measure)[at]));
        lines.push(line(name.to_string(), None, values.collect()));
    }
    if own {
        let rows = scores.iter().map(|(_, score)| score.rows).sum();
        let only = std::iter::once(cell(Some(pooled(scores))));
        let values = only.chain((1..MEASURES.len()).map(|_| cell(None)));
        lines.push(line("all rows".into(), Some(rows), values.collect()));
    }
    let matrix = confusion(scores, &model.about.classes, output);
    format!("{}{matrix}", output.table(&head, lines))
}

/// The accuracy of every node, one column per algorithm, and all measures of each algorithm.
pub fn by_algorithm(results: &[(&Model, Scores)], own: bool, output: &Output) -> String {
    let mut head = vec!["node"];
    head.extend(results.iter().map(|(model, _)| model.about.algorithm.as_str()));
    let line = |name: String, value: &dyn Fn(&Scores) -> Option<f64>| {
        let cells = results.iter().map(|(_, scores)| cell(value(scores)));
        std::iter::once(name).chain(cells).collect::<Vec<_>>()
    };
    let nodes = results.first().map_or(0, |(_, scores)| scores.len());
    let of_node = |i: usize| {
        line(results[0].0.name(results[0].1[i].0), &|scores| Some(scores.get(i)?.1.accuracy()))
    };
    let of_all = |i: usize| line(["mean", "min", "max"][i].into(), &|s| spread(s, 0)[i]);
    let mut lines: Vec<Vec<String>> = (0..nodes).map(of_node).chain((0..3).map(of_all)).collect();
    if own {
        lines.push(line("all rows".into(), &|scores| Some(pooled(scores))));
    }
    let accuracies = output.table(&head, lines);
    let head: Vec<&str> = std::iter::once("mean over nodes").chain(heads()).collect();
    let algorithm = |(model, scores): &(&Model, Scores)| {
        let values = (0..MEASURES.len()).map(|measure| cell(spread(scores, measure)[0]));
        std::iter::once(model.about.algorithm.clone()).chain(values).collect()
    };
    let all = output.table(&head, results.iter().map(algorithm).collect());
    format!("{accuracies}\n\n{all}")
}

/// The confusion matrix of all these nodes together, or the most frequent mistakes of many classes.
fn confusion(scores: &Scores, names: &[String], output: &Output) -> String {
    let count = |is: usize, said: usize| -> usize {
        scores.iter().filter_map(|(_, score)| score.counts.get(&(is, said))).sum()
    };
    if names.len() <= MOST_CLASSES {
        let head: Vec<&str> =
            std::iter::once("is \\ said").chain(names.iter().map(String::as_str)).collect();
        let line = |is: usize| {
            let cells = (0..names.len()).map(|said| count(is, said).to_string());
            std::iter::once(names[is].clone()).chain(cells).collect()
        };
        return format!("\n\n{}", output.table(&head, (0..names.len()).map(line).collect()));
    }
    let [(_, score)] = &scores[..] else { return String::new() };
    let mistake = |(is, taken, count): &(usize, usize, usize)| {
        format!("{} for {} ({count})", names[*is], names[*taken])
    };
    let worst: Vec<String> = score.confusions().iter().take(5).map(mistake).collect();
    match worst.is_empty() {
        true => "\n\nno row of a known class was mistaken for another".to_string(),
        false => format!("\n\nmost often mistaken: {}", worst.join(", ")),
    }
}
