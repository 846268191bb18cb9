//! `lopa theory steps`: step sizes against the theorems' conditions.

use lopa::error::Result;
use lopa_paper::theory::bound::{balanced_batches, sigma_c, sigma_p};
use lopa_paper::theory::conditions::Condition;
use lopa_paper::theory::steps::{Admissible, Choice};
use lopa_paper::theory::study::Case;
use lopa_paper::theory::{Steps, Study};
use lopa_study::practical::{Confirmed, Judged, Suggestion};
use serde_json::{Value, json};

use super::text::{Answer, section, short};
use crate::output::Output;

/// The advice on one algorithm's step sizes.
pub struct Advice<'a> {
    pub case: &'a Case,
    pub admissible: Admissible,
    pub choice: Choice,
    pub suggestion: Suggestion,
}

pub fn advice<'a>(study: &'a Study) -> Result<Vec<Advice<'a>>> {
    let one = |case: &'a Case| {
        let (admissible, choice) = (study.admissible(case), study.choice(case));
        Ok(Advice { case, admissible, choice, suggestion: study.suggestion(case)? })
    };
    study.cases.iter().map(one).collect()
}

/// The heading of the simple bounds.
pub const BOUNDS: &str = "Your step sizes against the theorems' bounds (share of the bound used)";

pub fn answer(study: &Study, output: &Output) -> Result<Answer> {
    let advice = advice(study)?;
    let mut text = section(BOUNDS, &bounds(study, output), output);
    text += &section("Conditions of the proofs (share used)", &conditions(study, output), output);
    text += &section("Step sizes", &sizes(&advice, output), output);
    text += &section("What the theorems admit", &intervals(&advice, output), output);
    text += &section("Reasons for the practical suggestion", &reasons(&advice, output), output);
    text += &section("Batch sizes relative to grad_x_f", &batches(study, &advice, output), output);
    text += &closing(study);
    Ok(Answer { text, document: json!({ "algorithms": document(study, &advice) }) })
}

/// Which conditions the step sizes break: one sentence per algorithm.
pub fn closing(study: &Study) -> String {
    let line = |case: &Case| {
        let all = study.conditions(case, &case.steps);
        let broken: Vec<_> = all.iter().filter(|condition| !condition.holds()).collect();
        let worst = broken.iter().map(|c| c.used()).fold(0.0, f64::max);
        let worst = match worst.is_finite() {
            true => format!(", the worst by a factor of {}", short(worst)),
            false => String::new(), // the bound is 0
        };
        let names: Vec<_> = broken.iter().map(|c| format!("{} {}", c.name, c.place)).collect();
        match broken.is_empty() {
            true => format!("{}: every condition holds; the bound is a guarantee.", case.label),
            false => format!(
                "{}: {} of {} conditions are broken ({}){worst}; the theorem says nothing about these \
                 step sizes.",
                case.label,
                broken.len(),
                all.len(),
                names.join(", ")
            ),
        }
    };
    let lines: Vec<String> = study.cases.iter().map(line).collect();
    lines.join("\n")
        + "\nA theorem's step sizes suit the worst problem with these constants; practical ones suit this \
           problem and guarantee nothing."
}

/// The proofs' own conditions on the file's step sizes.
fn conditions(study: &Study, output: &Output) -> String {
    let all = study.cases.iter().map(|case| study.conditions(case, &case.steps)).collect();
    grid(study, all, output)
}

/// The simple bounds on the file's step sizes, which imply the proofs' conditions.
pub fn bounds(study: &Study, output: &Output) -> String {
    let all = study.cases.iter().map(|case| study.admissible(case).checks(&case.steps)).collect();
    grid(study, all, output)
}

/// One row per condition, one column per algorithm.
fn grid(study: &Study, per_case: Vec<Vec<Condition>>, output: &Output) -> String {
    let mut head = vec!["condition", "where", "limits", "formula"];
    head.extend(study.cases.iter().map(|case| case.label.as_str()));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for condition in per_case.iter().flatten() {
        if rows.iter().any(|row| row[0] == condition.name) {
            continue;
        }
        let cell =
            |all: &Vec<Condition>| match all.iter().find(|other| other.name == condition.name) {
                None => "–".to_string(),
                Some(own) if own.holds() => format!("{} ok", short(own.used())),
                Some(own) if own.used().is_finite() => format!("{} BROKEN", short(own.used())),
                Some(_) => "BROKEN".into(),
            };
        let places = per_case.iter().flatten().filter(|other| other.name == condition.name);
        let mut places: Vec<&str> = places.map(|other| other.place).collect();
        places.dedup();
        let mut row: Vec<String> = vec![
            condition.name.into(),
            places.join(" "),
            condition.step.into(),
            condition.says.into(),
        ];
        row.extend(per_case.iter().map(cell));
        rows.push(row);
    }
    output.list(&head, rows)
}

/// The file's, the theorem's and the practical step sizes.
pub fn sizes(advice: &[Advice], output: &Output) -> String {
    let mut rows = Vec::new();
    for Advice { case, choice, suggestion, .. } in advice {
        let row = |what: String, s: &Steps, why: String| {
            let mut row = vec![case.label.clone(), what];
            row.extend([s.alpha, s.beta, s.lambda, s.gamma, s.tau].map(short));
            row.push(why);
            row
        };
        rows.push(row("yours".into(), &case.steps, String::new()));
        let corollary = format!("the corollaries' choice; {} is binding", choice.active);
        rows.push(row("theorem".into(), &choice.steps, corollary));
        let why = survived(suggestion);
        match &suggestion.steps {
            Some(steps) => rows.push(row("practical".into(), steps, why)),
            None => {
                let mut row = vec![case.label.clone(), "practical".into()];
                row.extend(["none"; 5].map(String::from));
                row.push(why);
                rows.push(row);
            }
        }
    }
    output.list(&["algorithm", "", "alpha", "beta", "lambda", "gamma", "tau", "why"], rows)
}

/// The tests of the practical step sizes.
fn survived(Suggestion { steps, confirmed, judged, .. }: &Suggestion) -> String {
    let list = |seeds: &[u64]| seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let Confirmed { seeds, iterations, room, lost } = confirmed;
    let runs = format!("{iterations} iterations on seeds {} with {room} times these", list(seeds));
    let lost: Vec<String> = lost.iter().map(|&alpha| short(alpha)).collect();
    let chosen = match (steps, lost.is_empty()) {
        (Some(_), true) => format!("survives {runs}"),
        (Some(_), false) => format!("survives {runs}, and alpha {} does not", lost.join(", ")),
        (None, _) => {
            format!("none from {} down to {} survives {runs}", lost[0], lost[lost.len() - 1])
        }
    };
    match judged {
        None => chosen,
        Some(Judged { seeds, failed }) if failed.is_empty() => {
            format!("{chosen}; none of {} runs on other seeds fails; no guarantee", seeds.len())
        }
        Some(Judged { seeds, failed }) => format!(
            "{chosen}; but {} of {} runs on other seeds fail (seeds {})",
            failed.len(),
            seeds.len(),
            list(failed)
        ),
    }
}

fn intervals(advice: &[Advice], output: &Output) -> String {
    let row = |Advice { case, admissible: a, choice, .. }: &Advice| {
        let room = |room: &lopa_paper::theory::steps::Room| {
            format!("{} alpha to {}", short(room.slope), short(room.high))
        };
        vec![
            case.label.clone(),
            short(a.u1),
            short(a.u2),
            short(a.u3),
            format!("{} ({})", short(a.u), a.active),
            room(&a.lambda),
            room(&a.beta),
            room(&a.gamma),
            [choice.c_lambda, choice.c_beta, choice.c_gamma].map(short).join(", "),
        ]
    };
    let head = [
        "algorithm",
        "u1",
        "u2",
        "u3",
        "alpha up to u",
        "lambda",
        "beta",
        "gamma",
        "c of lambda, beta, gamma",
    ];
    output.list(&head, advice.iter().map(row).collect())
}

fn reasons(advice: &[Advice], output: &Output) -> String {
    let row = |Advice { case, suggestion: s, .. }: &Advice| {
        let tried = |(alpha, phi): &(f64, Option<f64>)| match phi {
            Some(phi) => format!("{}: {}", short(*alpha), short(*phi)),
            None => format!("{}: diverged", short(*alpha)),
        };
        vec![
            case.label.clone(),
            format!("{} to {}", short(s.curvature.0), short(s.curvature.1)),
            short(s.limit_beta),
            short(s.limit_lambda),
            short(s.smoothness),
            short(s.limit_alpha),
            s.tried.iter().map(tried).collect::<Vec<_>>().join("  "),
        ]
    };
    let head = [
        "algorithm",
        "curvature of g",
        "beta < 2/(mu+L)",
        "lambda < 2/L",
        "curvature of Phi",
        "alpha stable up to",
        "calibration, alpha: Phi",
    ];
    output.list(&head, advice.iter().map(row).collect())
}

fn batches(study: &Study, advice: &[Advice], output: &Output) -> String {
    if study.values().deterministic() {
        return "Every derivative is exact (full batches, or identical samples).".into();
    }
    let mut rows = Vec::new();
    for Advice { case, choice, .. } in advice {
        let variance = study.variance(case, &choice.steps);
        let share = |part: f64| format!("{:.1} %", 100.0 * part / variance.total());
        let parts = variance.list();
        let balanced = balanced_batches(&variance, study.constants.nodes, study.derived.kappa);
        for ((key, times, order), (_, part)) in balanced.into_iter().zip(parts) {
            rows.push(vec![
                case.label.clone(),
                key.into(),
                share(part),
                short(times),
                short(order),
            ]);
        }
    }
    let head = [
        "algorithm",
        "batch of",
        "share of the variance",
        "times, as measured",
        "times, the paper's order",
    ];
    output.table(&head, rows)
}

pub fn document(study: &Study, advice: &[Advice]) -> Value {
    let (values, derived) = (study.values(), &study.derived);
    let one = |Advice { case, admissible, choice, suggestion }: &Advice| {
        let conditions: Vec<Value> = study
            .conditions(case, &case.steps)
            .iter()
            .map(|c| {
                let mut value = json!(c);
                value["holds"] = json!(c.holds());
                value
            })
            .collect();
        let variance = study.variance(case, &choice.steps);
        let batches: Vec<Value> = balanced_batches(&variance, values.nodes, derived.kappa)
            .into_iter()
            .map(|(key, measured, order)| json!({ "key": key, "measured": measured, "order": order }))
            .collect();
        json!({
            "algorithm": case.label,
            "scheme": case.scheme,
            "steps": case.steps,
            "conditions": conditions,
            "guaranteed": study.conditions(case, &case.steps).iter().all(|c| c.holds()),
            "admissible": admissible,
            "theorem": choice,
            "sigma_p": sigma_p(case.scheme, &values, derived, &choice.steps),
            "sigma_c": sigma_c(case.scheme, &values, derived, &choice.steps),
            "practical": suggestion,
            "batches": batches,
        })
    };
    Value::Array(advice.iter().map(one).collect())
}
