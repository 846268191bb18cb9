//! The page on the reproduction, in Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use super::claims::Judgement;
use super::paper::level;
use crate::seeds::Count;

/// The page: the command, levels beside the paper's, claims with their verdicts, and the pictures
/// at these addresses.
pub fn page(
    command: &str,
    entries: &[Value],
    judgements: &[Judgement],
    pictures: &[String],
) -> String {
    let mut text = String::from(
        "# Reproduction\n\n\
         Every number here was measured by this software and is written by the command that ran \
         it:\n\n```sh\n",
    );
    let _ = writeln!(text, "{command}\n```\n");
    text.push_str(
        "Settings are in `experiments/fig*.toml`; the comment at the top of each file states what \
         the paper leaves open. *Paper* steps are those it gives or, where it gives none, the same \
         for all algorithms; *tuned* steps come from `lopa tune`, with the same number of trials \
         per algorithm, on other seeds. [Differences from the paper](errata.md) states what is \
         done here where the paper is silent or wrong.\n\n## Levels\n\nMean ± standard deviation \
         over seeds at the end of the run; the paper's levels are read from its figures by eye.\n\n",
    );
    text.push_str("| figure | data | algorithm | steps | loss | train accuracy | test accuracy | paper's test accuracy | Φ(x̄) | consensus | Hessians | seconds |\n");
    text.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for entry in entries {
        let word = |key: &str| entry[key].as_str().unwrap_or_default().to_string();
        let paper = level(entry);
        let paper = paper.map_or("".into(), |level| level.test_accuracy.to_string());
        let data = match entry["variant"].as_str() {
            Some(variant) => format!("{}, {variant}", word("dataset")),
            None => word("dataset"),
        };
        let _ = writeln!(
            text,
            "| {} | {data} | {} | {} | {} | {} | {} | {paper} | {} | {} | {} | {} |",
            word("figure"),
            count(entry).named(&word("algorithm")),
            word("steps"),
            cell(&entry["loss"], 4),
            cell(&entry["train_accuracy"], 3),
            cell(&entry["test_accuracy"], 3),
            cell(&entry["phi"], 4),
            entry["consensus"]["mean"].as_f64().map_or("".into(), |mean| format!("{mean:.1e}")),
            entry["hessians"]["mean"].as_f64().map_or("".into(), |mean| format!("{mean:.0}")),
            entry["seconds"]["mean"].as_f64().map_or("".into(), |mean| format!("{mean:.1}")),
        );
    }
    text.push_str("\n## Claims\n\n");
    text.push_str(&table(judgements));
    text.push_str("\n## Figures\n");
    for picture in pictures {
        let name = picture.rsplit('/').next().unwrap_or(picture).trim_end_matches(".svg");
        let _ = write!(text, "\n### {name}\n\n![{name}]({picture})\n");
    }
    text
}

/// The table of claims.
pub fn table(judgements: &[Judgement]) -> String {
    let mut text = String::from(
        "Tests are paired over seeds; the interval is the 95 % confidence interval of the mean \
         difference, positive if it favours the claim. A claim *held* if the interval lies above \
         zero.\n\n\
         | figure | claim | test | steps | mean (95 % interval) | pairs | verdict |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for judgement in judgements {
        let (mean, pairs) = match &judgement.interval {
            None => (String::new(), 0),
            Some(i) => (format!("{:.3} ({:.3} to {:.3})", i.mean, i.low, i.high), i.pairs),
        };
        let Judgement { figure, claim, test, steps, .. } = judgement;
        let verdict = judgement.words();
        let _ = writeln!(
            text,
            "| {figure} | {claim} | {test} | {steps} | {mean} | {pairs} | {verdict} |"
        );
    }
    text
}

fn cell(value: &Value, digits: usize) -> String {
    match (value["mean"].as_f64(), value["std"].as_f64()) {
        (Some(mean), Some(std)) => format!("{mean:.digits$} ± {std:.digits$}"),
        (Some(mean), None) => format!("{mean:.digits$}"),
        _ => "".into(),
    }
}

/// The seeds of an entry.
pub fn count(entry: &Value) -> Count {
    let of = entry["seeds"].as_array().map_or(0, Vec::len);
    let diverged = entry["diverged"].as_u64().unwrap_or(0) as usize;
    Count { sound: of.saturating_sub(diverged), of }
}
