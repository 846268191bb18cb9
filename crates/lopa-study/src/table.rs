//! The results of an experiment as a table, for the terminal and for Python.

use std::collections::BTreeSet;

use lopa::math::number;
use lopa::run::Outcome;
use lopa::run::trace::{MEASURES, baseline_name, baseline_of};

use crate::seeds::Seeds;
use crate::sentences::bytes;
use crate::statistics::Summary;

/// Columns of how well models predict: name in rows, head, format of mean and spread.
const PREDICTED: [(&str, &str, Style); 11] = [
    ("holdout_accuracy", "accuracy, own rows", Style::Share),
    ("test_accuracy", "test accuracy", Style::Share),
    ("own_test_accuracy", "own classes", Style::Share),
    ("holdout_r2", "R², own rows", Style::Share),
    ("holdout_rmse", "RMSE, own rows", Style::Spread),
    ("holdout_mae", "MAE, own rows", Style::Spread),
    ("test_r2", "test R²", Style::Share),
    ("test_rmse", "test RMSE", Style::Spread),
    ("test_mae", "test MAE", Style::Spread),
    ("holdout_concordance", "concordance, own rows", Style::Share),
    ("test_concordance", "test concordance", Style::Share),
];

/// The columns after the problem's own measures. Only those that fit a terminal: rows have all.
const COMMON: [(&str, &str, Style); 10] = [
    ("loss", "loss", Style::Spread),
    ("grad_phi_sq", "|∇Φ|²", Style::Mean),
    ("consensus", "consensus", Style::Mean),
    ("x_error", "|x−x*|²", Style::Mean),
    ("epsilon", "ε spent", Style::Mean),
    ("hessians", "Hess·v", Style::Count),
    ("gradients", "gradients", Style::Count),
    ("bytes", "sent", Style::Bytes),
    ("virtual_seconds", "virtual s", Style::Seconds),
    ("seconds", "seconds", Style::Seconds),
];

/// The head of a measure's column.
pub fn head(name: &str) -> String {
    let known = PREDICTED.iter().chain(&COMMON).find(|(known, _, _)| *known == name);
    match known {
        Some((_, head, _)) => head.to_string(),
        None if name == "phi" => "Φ".into(),
        None => name.replace('_', " "),
    }
}

/// The measures of a problem's own that a table has room for.
const MOST_OWN: usize = 8;

#[derive(Clone, Copy)]
enum Style {
    Share,
    Spread,
    Mean,
    Count,
    Bytes,
    Seconds,
}

impl Style {
    fn write(self, summary: Summary) -> String {
        let Summary { mean, sd, .. } = summary;
        match (self, sd) {
            (Style::Share, _) => summary.to_thousandths(),
            (Style::Spread, Some(sd)) => format!("{} ± {}", number(mean), short(sd)),
            (Style::Spread | Style::Mean, _) => number(mean),
            (Style::Count, _) => format!("{mean:.0}"),
            (Style::Bytes, _) => bytes(mean),
            (Style::Seconds, _) => format!("{mean:.2}"),
        }
    }
}

fn short(sd: f64) -> String {
    if sd == 0.0 || (1e-3..1e5).contains(&sd) { format!("{sd:.3}") } else { format!("{sd:.0e}") }
}

/// One line per algorithm: mean ± standard deviation over the seeds that did not diverge. The last line is that of a
/// prediction without features.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// As many cells per line.
    pub lines: Vec<Vec<String>>,
}

impl Table {
    /// The algorithms in the order in which they ran first.
    pub fn of(outcomes: &[Outcome]) -> Table {
        let mut labels: Vec<&str> = Vec::new();
        for outcome in outcomes {
            if !labels.contains(&&outcome.algorithm[..]) {
                labels.push(&outcome.algorithm);
            }
        }
        let group = |label| (label, Seeds::of(label, outcomes));
        let groups: Vec<(&str, Seeds<Outcome>)> = labels.into_iter().map(group).collect();
        let own = own_measures(outcomes);
        let own = own.iter().map(|name| (name.as_str(), name.as_str(), Style::Spread));
        let all = PREDICTED.into_iter().chain(own).chain(COMMON);
        let measured = |name: &str| groups.iter().any(|(_, seeds)| seeds.last(name).is_some());
        let columns: Vec<_> = all.filter(|(name, _, _)| measured(name)).collect();
        let line = |(label, seeds): &(&str, Seeds<Outcome>)| {
            let cell = |(name, _, style): &(&str, &str, Style)| {
                seeds.last(name).map_or("–".into(), |summary| style.write(summary))
            };
            std::iter::once(seeds.count().named(label)).chain(columns.iter().map(cell)).collect()
        };
        let mut lines: Vec<Vec<String>> = groups.iter().map(line).collect();
        lines.extend(baseline(outcomes, columns.iter().map(|(name, _, style)| (*name, *style))));
        let heads = columns.iter().map(|(_, head, _)| head.to_string());
        Table { head: std::iter::once("algorithm".into()).chain(heads).collect(), lines }
    }
}

/// The measures that only the problem knows, if a table has room for them.
fn own_measures(outcomes: &[Outcome]) -> Vec<String> {
    let nodes = outcomes.iter().flat_map(|outcome| outcome.nodes.iter().flatten());
    let spread = outcomes.iter().flat_map(|outcome| outcome.spread.keys());
    let all = nodes.map(|(name, _)| name).chain(spread);
    let own = |name: &&String| !MEASURES.contains(&name.as_str()) && *name != "last_loss";
    let own: BTreeSet<&String> = all.filter(own).collect();
    if own.len() > MOST_OWN { Vec::new() } else { own.into_iter().cloned().collect() }
}

/// The last line: always naming each node's most frequent class, or the mean of its numbers.
fn baseline<'a>(
    outcomes: &[Outcome],
    columns: impl Iterator<Item = (&'a str, Style)>,
) -> Option<Vec<String>> {
    let mut who = "";
    // The same for every algorithm of a seed, whether it diverged or not.
    let mut cell = |(name, style): (&str, Style)| {
        let baseline = baseline_of(name)?;
        who = baseline_name(name);
        let mut seeds: Vec<(u64, f64)> = Vec::new();
        for outcome in outcomes {
            let known = seeds.iter().any(|(seed, _)| *seed == outcome.seed);
            if let Some(value) = outcome.row.value(&baseline).filter(|_| !known) {
                seeds.push((outcome.seed, value));
            }
        }
        Some(style.write(Summary::of(seeds.into_iter().map(|(_, value)| value))?))
    };
    let cells: Vec<_> = columns.map(&mut cell).collect();
    let found = cells.iter().any(Option::is_some);
    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".into()));
    found.then(|| std::iter::once(who.to_string()).chain(cells).collect())
}
