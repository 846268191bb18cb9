//! `lopa theory show`: the whole theory of an experiment on one screen.

use lopa::error::Result;
use lopa_paper::theory::Study;
use serde_json::json;

use super::bound::Curves;
use super::text::{Answer, section, short};
use super::{bound, constants, steps};
use crate::output::Output;

pub fn answer(study: &Study, output: &Output) -> Result<Answer> {
    let advice = steps::advice(study)?;
    let mut text = section("Constants", &constants::table(study, output), output);
    let d = &study.derived;
    let line: Vec<String> = d
        .entries()
        .into_iter()
        .map(|(symbol, _, value)| format!("{symbol} = {}", short(value)))
        .collect();
    text += &format!("{}\n{}\n\n", line.join("   "), constants::closing(study));
    text += &section(steps::BOUNDS, &steps::bounds(study, output), output);
    text += &section("What to use instead", &steps::sizes(&advice, output), output);
    let mut documents = Vec::new();
    for one in &advice {
        let case = one.case;
        let theorem = study.run(case, &one.choice.steps)?;
        let practical = one.suggestion.steps.as_ref();
        let practical = practical.map(|steps| study.run(case, steps)).transpose()?;
        let curves = Curves { case, theorem, practical };
        let title = format!("{}: mean of |grad Phi|^2 over k = 0 ... K", case.label);
        text += &section(&title, &bound::table(study, &curves, output), output);
        documents.push(bound::document(study, &curves));
    }
    text += &format!("{}\n{}", steps::closing(study), bound::closing(study));
    let mut document = constants::document(study);
    document["steps"] = steps::document(study, &advice);
    document["curves"] = json!(documents);
    Ok(Answer { text, document })
}
