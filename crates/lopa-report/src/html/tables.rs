//! Tables of results.

use std::collections::BTreeMap;

use lopa::run::Outcome;
use lopa::run::evaluate::Quartiles;
use lopa::run::trace::{baseline_name, baseline_of};
use lopa_study::seeds::Ended;
use lopa_study::statistics::Summary;
use serde_json::Value;

use super::about::setting;
use super::data::PREFERRED;
use super::number::Format;
use crate::pictures::{Styles, quantities};
use crate::quantity::{self, Better, COSTS, is_cost};
use crate::saved::Saved;
use crate::statistics::{Trace, traces};
use crate::svg::escape;

/// The final measures, one row per algorithm; the best of each column is bold. An algorithm that
/// diverged on some seed is never the best. The last row has those of the majority class or the mean.
pub fn quality(traces: &[Trace], styles: &Styles) -> String {
    let names = quantities(traces);
    let names = names.iter().map(String::as_str);
    let measures: Vec<&str> = names
        .filter(|name| {
            !is_cost(name) && !name.ends_with("_majority") && !name.ends_with("_of_mean")
        })
        .collect();
    ending(traces, &measures, styles, "Quality: mean ± standard deviation over seeds")
}

/// The total costs that were measured, one row per algorithm.
pub fn costs(traces: &[Trace], styles: &Styles) -> String {
    let measured = |name: &&str| traces.iter().any(|trace| trace.last.contains_key(*name));
    let names: Vec<&str> = COSTS.iter().map(|cost| cost.name).filter(measured).collect();
    ending(traces, &names, styles, "Cost: mean ± standard deviation over seeds")
}

fn ending(traces: &[Trace], names: &[&str], styles: &Styles, caption: &str) -> String {
    if traces.is_empty() {
        return String::new();
    }
    let columns: Vec<Column> = names.iter().map(|name| Column::of(name, traces)).collect();
    let part = |columns: &[Column]| {
        let titles = columns.iter().map(|column| quantity::title(column.name));
        let titles: Vec<String> = ["Algorithm".into()].into_iter().chain(titles).collect();
        let row = |trace: &Trace| {
            let cells = columns.iter().map(|column| column.cell(trace));
            [row_head(trace, styles)].into_iter().chain(cells).collect()
        };
        let mut rows: Vec<Vec<String>> = traces.iter().map(row).collect();
        rows.extend(baseline(columns, traces));
        table("numbers", caption, &titles, rows)
    };
    evenly(&columns).map(part).collect()
}

/// The final measures of all algorithms of several runs, one row each. Nothing is bold: the runs may
/// have solved different problems.
pub fn overview(runs: &[Saved], titles: &[String]) -> String {
    let of_runs: Vec<Vec<Trace>> = runs.iter().map(traces).collect();
    let all: Vec<Trace> = of_runs.iter().flatten().cloned().collect();
    let measured = quantities(&all);
    let names = PREFERRED.iter().chain(&["virtual_seconds", "seconds"]);
    let names = names.filter(|name| measured.iter().any(|known| known == *name));
    let columns: Vec<Column> =
        names.map(|name| Column { best: None, ..Column::of(name, &all) }).collect();
    let words = |text: &str| format!("<td class=\"words\">{}</td>", escape(text));
    let mut rows = Vec::new();
    for (n, ((saved, title), own)) in runs.iter().zip(titles).zip(&of_runs).enumerate() {
        let setting = words(&setting(saved));
        for trace in own {
            let link = format!("<th scope=\"row\"><a href=\"#run-{n}\">{}</a></th>", escape(title));
            let cells = columns.iter().map(|column| column.cell(trace));
            let label = words(&trace.count.named(&trace.algorithm));
            rows.push([link, label, setting.clone()].into_iter().chain(cells).collect());
        }
    }
    let titles = ["Run", "Algorithm", "Setting"].map(String::from).into_iter();
    let titles: Vec<String> =
        titles.chain(columns.iter().map(|column| quantity::title(column.name))).collect();
    table("numbers", "At the end: mean ± standard deviation over seeds", &titles, rows)
}

/// Columns that fit a page, beside the head of the row.
const FITTING: usize = 9;

/// Splits columns into parts that fit a page.
fn evenly<T>(columns: &[T]) -> impl Iterator<Item = &[T]> {
    let parts = columns.len().div_ceil(FITTING).max(1);
    columns.chunks(columns.len().div_ceil(parts).max(1))
}

/// A cell without a value.
const NONE: &str = "<td class=\"none\">–</td>";

/// Always naming a node's most frequent class, or the mean of its numbers, below the measures.
fn baseline(columns: &[Column], traces: &[Trace]) -> Option<Vec<String>> {
    let value = |column: &Column| {
        let name = baseline_of(column.name)?;
        let found = traces.iter().find_map(|trace| trace.last.get(&name))?;
        Some(format!("<td>{}</td>", column.format.write(found.mean)))
    };
    let values: Vec<Option<String>> = columns.iter().map(value).collect();
    let found = values.iter().any(Option::is_some);
    let cells = values.into_iter().map(|value| value.unwrap_or_else(|| NONE.into()));
    let known = columns.iter().find(|column| baseline_of(column.name).is_some());
    let who = known.map_or("", |column| baseline_name(column.name));
    let head = format!("<th scope=\"row\">{who}</th>");
    found.then(|| std::iter::once(head).chain(cells).collect())
}

/// The final values of one quantity.
struct Column<'a> {
    name: &'a str,
    format: Format,
    best: Option<f64>,
}

impl Column<'_> {
    fn of<'a>(name: &'a str, traces: &[Trace]) -> Column<'a> {
        let last = |trace: &Trace| Some(trace.last.get(name)?.mean);
        let means: Vec<f64> = traces.iter().filter_map(last).collect();
        let ranked: Vec<f64> =
            traces.iter().filter(|trace| trace.count.ranked()).filter_map(last).collect();
        let best = match quantity::known(name).map(|quantity| quantity.better) {
            Some(Better::More) => ranked.iter().copied().reduce(f64::max),
            Some(Better::Less) => ranked.iter().copied().reduce(f64::min),
            _ => None,
        };
        Column { name, format: Format::of(name, &means), best: best.filter(|_| ranked.len() > 1) }
    }

    fn cell(&self, trace: &Trace) -> String {
        let Some(Summary { mean, sd, .. }) = trace.last.get(self.name) else {
            return NONE.into();
        };
        let best = self.best == Some(*mean) && trace.count.ranked();
        let class = if best { " class=\"best\"" } else { "" };
        let spread = match sd.map(|sd| self.format.spread(sd)).unwrap_or_default() {
            spread if spread.is_empty() => spread,
            spread => format!(" <span class=\"sd\">{spread}</span>"),
        };
        format!("<td{class}><span>{}</span>{spread}</td>", self.format.write(*mean))
    }
}

/// The most nodes that are listed one by one; of more, quartiles are shown.
const LISTED: usize = 1000;

/// The final measures of every node: one table per measure, one row per node, means over the seeds
/// that did not diverge. With many nodes, only the spread of the measures.
pub fn nodes(saved: &Saved) -> String {
    let sound = || saved.results.iter().filter(|result| !result.diverged());
    if sound().any(|result| result.nodes.len() > LISTED || !result.spread.is_empty()) {
        return spreads(&sound().collect::<Vec<_>>(), &saved.algorithms());
    }
    let mut values: BTreeMap<&str, BTreeMap<(usize, &str), Vec<f64>>> = BTreeMap::new();
    for Outcome { algorithm, nodes, .. } in sound() {
        for (i, node) in nodes.iter().enumerate() {
            for (name, value) in node {
                let of_measure = values.entry(name).or_default();
                of_measure.entry((i, algorithm)).or_default().push(*value);
            }
        }
    }
    let algorithms = saved.algorithms();
    let one = |(name, values): (&&str, &BTreeMap<(usize, &str), Vec<f64>>)| {
        node_table(name, values, &algorithms)
    };
    values.iter().map(one).collect()
}

/// How the final measures spread over the nodes: one table per measure, one row per algorithm, means
/// over seeds.
fn spreads(results: &[&Outcome], algorithms: &[&str]) -> String {
    let mut found: BTreeMap<String, BTreeMap<&str, Vec<Quartiles>>> = BTreeMap::new();
    for Outcome { algorithm, nodes, spread, .. } in results {
        let spread = if spread.is_empty() { Quartiles::of_nodes(nodes) } else { spread.clone() };
        for (name, quartiles) in spread {
            found.entry(name).or_default().entry(algorithm).or_default().push(quartiles);
        }
    }
    let of = |&Quartiles { min, lower, median, upper, max }: &Quartiles| {
        [min, lower, median, upper, max]
    };
    let one = |(name, found): (&String, &BTreeMap<&str, Vec<Quartiles>>)| {
        let all: Vec<f64> = found.values().flatten().flat_map(of).collect();
        let format = Format::of(name, &all);
        let row = |algorithm: &&str| {
            let seeds = found.get(algorithm)?;
            let mean =
                |at: usize| seeds.iter().map(|q| of(q)[at]).sum::<f64>() / seeds.len() as f64;
            let cells = (0..5).map(|at| format!("<td>{}</td>", format.write(mean(at))));
            let head = format!("<th scope=\"row\">{}</th>", escape(algorithm));
            Some([head].into_iter().chain(cells).collect())
        };
        let caption = format!("{} over the nodes: mean over seeds", quantity::title(name));
        let titles = ["Algorithm", "Least", "Lower quartile", "Median", "Upper quartile", "Most"];
        table("numbers", &caption, &titles, algorithms.iter().filter_map(row).collect())
    };
    found.iter().map(one).collect()
}

fn node_table(
    name: &str,
    values: &BTreeMap<(usize, &str), Vec<f64>>,
    algorithms: &[&str],
) -> String {
    let mean = |i: usize, algorithm: &str| {
        Some(Summary::of(values.get(&(i, algorithm))?.iter().copied())?.mean)
    };
    let all: Vec<f64> = values.keys().filter_map(|(i, algorithm)| mean(*i, algorithm)).collect();
    let format = Format::of(name, &all);
    let nodes = values.keys().map(|(i, _)| i + 1).max().unwrap_or(0);
    let caption = format!("{} at each node: mean over seeds", quantity::title(name));
    let part = |algorithms: &[&str]| {
        let row = |i: usize| {
            let cell = |algorithm: &&str| match mean(i, algorithm) {
                Some(value) => format!("<td>{}</td>", format.write(value)),
                None => NONE.into(),
            };
            let head = format!("<th scope=\"row\">{i}</th>");
            [head].into_iter().chain(algorithms.iter().map(cell)).collect()
        };
        let titles: Vec<&str> = ["Node"].iter().chain(algorithms).copied().collect();
        table("numbers", &caption, &titles, (0..nodes).map(row).collect())
    };
    evenly(algorithms).map(part).collect()
}

/// How every run ended.
pub fn runs(saved: &Saved) -> String {
    let row = |entry: &Outcome| {
        let digest: String = entry.digest.chars().take(16).collect();
        vec![
            format!("<th scope=\"row\">{}</th>", escape(&entry.algorithm)),
            format!("<td>{}</td>", entry.seed),
            format!("<td>{}</td>", entry.stop.name()),
            format!("<td>{}</td>", entry.row.iteration),
            format!("<td><code>{}</code></td>", escape(&digest)),
        ]
    };
    let titles = ["Algorithm", "Seed", "Stop", "Iterations", "Digest of the trajectory"];
    table("text", "How every run ended", &titles, saved.results.iter().map(row).collect())
}

/// The verdicts on claims, with one column per key.
pub fn claims(claims: &[Value]) -> String {
    let mut keys: Vec<&String> = Vec::new();
    for key in claims.iter().filter_map(Value::as_object).flat_map(|claim| claim.keys()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return String::new();
    }
    let titles: Vec<String> =
        keys.iter().map(|key| quantity::capital(&key.replace('_', " "))).collect();
    let row = |claim: &Value| keys.iter().map(|key| claim_cell(&claim[key.as_str()])).collect();
    let rows = claims.iter().map(row).collect();
    let table = table("text", "Each claim, how it was tested, and the result", &titles, rows);
    format!("<section id=\"claims\"><h2>Claims</h2>\n{table}</section>\n")
}

fn claim_cell(value: &Value) -> String {
    match value {
        Value::Null => NONE.into(),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            format!("<td class=\"number\">{}</td>", Format::of("", &[number]).write(number))
        }
        Value::String(text) => match text.as_str() {
            "held" => "<td><span class=\"verdict held\">✓ held</span></td>".into(),
            "reversed" => "<td><span class=\"verdict failed\">✗ reversed</span></td>".into(),
            "no difference above the margin" => {
                "<td><span class=\"verdict\">≈ no difference above the margin</span></td>".into()
            }
            text => format!("<td>{}</td>", escape(text)),
        },
        Value::Array(list) if list.iter().all(Value::is_number) => {
            let write = |number: &Value| {
                let number = number.as_f64().unwrap_or(f64::NAN);
                Format::of("", &[number]).write(number)
            };
            let numbers: Vec<String> = list.iter().map(write).collect();
            format!("<td class=\"number\">{}</td>", numbers.join(" to "))
        }
        Value::Object(interval) if interval.contains_key("low") => {
            let write = |key: &str| {
                let number = interval.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
                Format::of("", &[number]).write(number)
            };
            let (mean, low, high) = (write("mean"), write("low"), write("high"));
            format!("<td class=\"number\">{mean} ({low} to {high})</td>")
        }
        other => format!("<td>{}</td>", escape(&other.to_string())),
    }
}

fn row_head(trace: &Trace, styles: &Styles) -> String {
    let colour = styles.style(&trace.algorithm).colour;
    format!(
        "<th scope=\"row\"><span class=\"swatch\" style=\"background:{colour}\"></span>{}</th>",
        escape(&trace.count.named(&trace.algorithm))
    )
}

/// A table of rows of cells, which are `th` and `td` elements. Each cell carries its column's title:
/// on a narrow screen, rows become lists.
pub(crate) fn table(
    class: &str,
    caption: &str,
    titles: &[impl AsRef<str>],
    rows: Vec<Vec<String>>,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let titles: Vec<String> = titles.iter().map(|title| escape(title.as_ref())).collect();
    let head: String = titles.iter().map(|t| format!("<th scope=\"col\">{t}</th>")).collect();
    let row = |cells: Vec<String>| {
        let labelled = |(cell, title): (String, &String)| {
            cell.replacen("<td", &format!("<td data-title=\"{title}\""), 1)
        };
        let cells: String = cells.into_iter().zip(&titles).map(labelled).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.into_iter().map(row).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\
         <table class=\"{class}\"><caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>{rows}</tbody></table></div>\n",
        caption = escape(caption)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_of_any_shape_are_shown_and_escaped() {
        assert_eq!(claims(&[]), "");
        let list = [
            json!({ "claim": "a <b> & c", "verdict": "held", "ci": [0.1, 0.2] }),
            json!({ "claim": "d", "verdict": "reversed", "p_value": 0.25 }),
            json!({ "interval": { "mean": 0.5, "low": 0.25, "high": 0.75, "pairs": 5 } }),
        ];
        let html = claims(&list);
        assert!(html.contains("a &lt;b&gt; &amp; c"));
        assert!(html.contains("verdict held") && html.contains("verdict failed"));
        assert!(html.contains("0.1000 to 0.2000"));
        assert!(html.contains("0.5000 (0.2500 to 0.7500)"));
        assert!(html.contains(">P value<") && html.contains(">–</td>"));
        assert!(html.contains("<td data-title=\"P value\" class=\"number\">0.2500</td>"));
    }

    #[test]
    fn many_columns_are_split_evenly() {
        let sizes = |n: usize| -> Vec<usize> { evenly(&vec![(); n]).map(<[()]>::len).collect() };
        assert_eq!((sizes(0), sizes(9), sizes(10)), (vec![], vec![9], vec![5, 5]));
        assert_eq!(sizes(19), [7, 7, 5]);
    }
}
