//! `lopa theory heterogeneity`: how much the nodes differ.

use lopa::error::Result;
use lopa_paper::theory::Study;
use lopa_paper::theory::measure::heterogeneity::{Forecast, c_1, c_2, inner_share, lemma_1};
use lopa_paper::theory::study::Case;
use serde_json::{Value, json};

use super::text::{Answer, section, short};
use crate::output::Output;

pub fn answer(study: &Study, output: &Output) -> Result<Answer> {
    let values = study.values();
    let (mut rows, mut documents, mut forecasts) = (Vec::new(), Vec::new(), Vec::new());
    for case in &study.cases {
        let along = study.dissimilarities(case)?;
        for (k, seen) in &along {
            let cells = [seen.b_f_sq(), seen.b_g_sq(), seen.hypergradient].map(short);
            let mut row = vec![case.label.clone(), k.to_string()];
            row.extend(cells);
            row.push(short(c_1(&values) * seen.b_f_sq() + c_2(&values) * seen.b_g_sq()));
            rows.push(row);
        }
        let forecast = study.forecast(case)?;
        let along: Vec<Value> = along
            .iter()
            .map(|(k, seen)| {
                json!({ "iteration": k, "b_f_sq": seen.b_f_sq(), "b_g_sq": seen.b_g_sq(),
                    "parts": seen })
            })
            .collect();
        documents.push(json!({
            "algorithm": case.label,
            "along": along,
            "forecast": {
                "floor": forecast.floor,
                "reached": forecast.reached,
                "tracking_pays": forecast.tracking_pays(),
            },
        }));
        forecasts.push(verdict(case, &forecast));
    }
    let head = [
        "algorithm",
        "k",
        "b_f^2",
        "b_g^2",
        "sum |grad Phi_i - grad Phi|^2",
        "Lemma 1's bound there",
    ];
    let mut text =
        section("How much the nodes differ along the run", &output.table(&head, rows), output);
    let lemma = format!(
        "C_1 = {}, C_2 = {}; over the region b^2 = {} is below C_1 b_f^2 + C_2 b_g^2 = {}; the inner \
         level contributes {:.0} %.",
        short(c_1(&values)),
        short(c_2(&values)),
        short(values.b.powi(2)),
        short(lemma_1(&values)),
        100.0 * inner_share(&values)
    );
    text += &section("Lemma 1", &lemma, output);
    text += &section("Is gradient tracking worth its bytes?", &forecasts.join("\n"), output);
    let document = json!({
        "lemma_1": {
            "c_1": c_1(&values), "c_2": c_2(&values), "bound": lemma_1(&values),
            "b_sq": values.b.powi(2), "inner_share": inner_share(&values),
        },
        "algorithms": documents,
    });
    Ok(Answer { text, document })
}

fn verdict(case: &Case, forecast: &Forecast) -> String {
    let Forecast { floor, reached } = *forecast;
    let alpha = short(case.steps.alpha);
    let (floor, reached) = (short(floor), short(reached));
    match forecast.tracking_pays() {
        true => format!(
            "With alpha = {alpha} ({}) local gradients stall near |grad Phi|^2 = {floor}; these \
             runs reach {reached}: tracking is worth sending y with x.",
            case.label
        ),
        false => format!(
            "With alpha = {alpha} ({}) local gradients stall near |grad Phi|^2 = {floor}, below \
             the {reached} that these runs reach: send x alone and save half the bytes.",
            case.label
        ),
    }
}
