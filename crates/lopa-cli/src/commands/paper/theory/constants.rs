//! `lopa theory constants`: the constants of the assumptions.

use lopa::error::Result;
use lopa_paper::theory::{Origin, Study};
use serde_json::{Map, Value, json};

use super::text::{Answer, section, short};
use crate::output::Output;

pub fn answer(study: &Study, output: &Output) -> Result<Answer> {
    let text = section("Constants of the assumptions", &table(study, output), output)
        + &section("Derived constants", &derived(study, output), output)
        + &closing(study);
    Ok(Answer { text, document: document(study) })
}

pub fn document(study: &Study) -> Value {
    let known: Map<String, Value> = study
        .constants
        .entries()
        .into_iter()
        .map(|(symbol, about, known)| {
            let value = json!({
                "value": known.value, "origin": known.origin, "how": known.how, "about": about,
            });
            (symbol.to_string(), value)
        })
        .collect();
    let derived: Map<String, Value> = study
        .derived
        .entries()
        .into_iter()
        .map(|(symbol, formula, value)| {
            (symbol.to_string(), json!({ "value": value, "formula": formula }))
        })
        .collect();
    json!({ "nodes": study.constants.nodes, "constants": known, "derived": derived })
}

pub fn table(study: &Study, output: &Output) -> String {
    let row = |(symbol, about, known): (&str, &str, &lopa_paper::theory::Known)| {
        vec![
            symbol.into(),
            short(known.value),
            known.origin.name().into(),
            known.how.clone(),
            about.rsplit(", ").next().unwrap_or_default().into(),
        ]
    };
    let rows = study.constants.entries().into_iter().map(row).collect();
    output.list(&["constant", "value", "origin", "how", "of"], rows)
}

fn derived(study: &Study, output: &Output) -> String {
    let row = |(symbol, formula, value): (&str, &str, f64)| {
        vec![symbol.to_string(), short(value), formula.to_string()]
    };
    let rows = study.derived.entries().into_iter().map(row).collect();
    output.list(&["constant", "value", "formula"], rows)
}

/// How far the constants can be trusted.
pub fn closing(study: &Study) -> String {
    let says = match study.constants.weakest() {
        Origin::Exact => "All are exact.",
        Origin::Bound => "All hold over the region; bounds may be loose.",
        Origin::Estimate => {
            "Estimates are the largest values at sampled points of the region: nothing derived from \
             them is guaranteed."
        }
    };
    format!("Region: {}. {says}", study.region.says())
}
