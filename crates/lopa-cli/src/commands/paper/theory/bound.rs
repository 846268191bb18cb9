//! `lopa theory bound`: the bound beside the measured curve.

use lopa::error::Result;
use lopa_paper::theory::study::Case;
use lopa_paper::theory::{Study, Weights};
use lopa_study::practical::course::Course;
use lopa_study::practical::snapshot::TERMS;
use serde_json::{Value, json};

use super::text::{Answer, section, short};
use crate::output::Output;

/// Iterations over which the lemmas are checked step by step.
const CHECKED: u64 = 40;

/// One algorithm's measured and predicted curves.
pub struct Curves<'a> {
    pub case: &'a Case,
    /// A run with the theorem's step sizes.
    pub theorem: Course,
    /// A run with the practical step sizes, if requested.
    pub practical: Option<Course>,
}

pub fn answer(study: &Study, output: &Output) -> Result<Answer> {
    let (mut text, mut documents) = (String::new(), Vec::new());
    for case in &study.cases {
        let theorem = study.run(case, &study.choice(case).steps)?;
        let curves = Curves { case, theorem, practical: None };
        let title = format!("{}: mean of |grad Phi|^2 over k = 0 ... K", case.label);
        text += &section(&title, &table(study, &curves, output), output);
        text += &section("Terms of the bound at the end", &terms(study, case, output), output);
        text +=
            &section("The Lyapunov function along the run", &lyapunov(study, case, output), output);
        let mut document = document(study, &curves);
        if lopa_study::practical::course::quadratic(&study.setup) {
            let lemmas = study.lemmas(case, &case.steps, CHECKED)?;
            let row = |one: &lopa_paper::theory::study::Worst| {
                let verdict = if one.holds() { "respected" } else { "BROKEN" };
                vec![one.name.into(), one.place.into(), short(one.excess), verdict.into()]
            };
            let head = ["lemma", "where", "largest (left - right) / size", ""];
            let body = output.list(&head, lemmas.iter().map(row).collect());
            let title = format!("Lemmas over the first {CHECKED} iterations on full batches");
            text += &section(&title, &body, output);
            document["lemmas"] = json!(lemmas);
        }
        documents.push(document);
    }
    text += &closing(study);
    let document = json!({ "phi_low": study.phi_low, "algorithms": documents });
    Ok(Answer { text, document })
}

pub fn closing(study: &Study) -> String {
    let whole = study.cases.first().is_some_and(|case| case.course.whole);
    let how = match whole {
        true => "Measured means are over every iteration",
        false => "Measured means are interpolated between the iterations shown",
    };
    format!(
        "{how}. A bound is a guarantee if every condition holds and no constant is an estimate; for \
         your step sizes, {}.",
        match study.cases.iter().all(|case| guaranteed(study, case)) {
            true => "all conditions hold",
            false => "conditions are broken (`lopa theory steps`)",
        }
    )
}

fn guaranteed(study: &Study, case: &Case) -> bool {
    study.conditions(case, &case.steps).iter().all(|condition| condition.holds())
}

pub fn table(study: &Study, curves: &Curves, output: &Output) -> String {
    let Curves { case, theorem, practical } = curves;
    let at = |course: &Course, k: u64| {
        let found = course.averages.iter().find(|(at, _)| *at == k);
        found.map_or("diverged".to_string(), |(_, mean)| short(*mean))
    };
    let sizes = study.choice(case).steps;
    let row = |&(k, _): &(u64, f64)| {
        let mut row = vec![k.to_string(), at(&case.course, k)];
        row.extend(practical.iter().map(|course| at(course, k)));
        row.push(at(theorem, k));
        row.push(short(study.bound(case, &sizes, k).total()));
        row.push(short(study.bound(case, &case.steps, k).total()));
        row
    };
    let mut head = vec!["K", "yours, measured"];
    head.extend(practical.iter().map(|_| "practical, measured"));
    head.extend(["theorem's, measured", "theorem's, bound"]);
    head.push(if guaranteed(study, case) { "yours, bound" } else { "yours, no bound" });
    output.table(&head, theorem.averages.iter().map(row).collect())
}

fn terms(study: &Study, case: &Case, output: &Output) -> String {
    let choice = study.choice(case);
    let row = |name: &str, steps| {
        let bound = study.bound(case, steps, study.watched);
        let cells = [bound.transient, bound.variance, bound.heterogeneity, bound.total()];
        std::iter::once(name.to_string()).chain(cells.map(short)).collect()
    };
    let rows = vec![row("theorem's", &choice.steps), row("yours", &case.steps)];
    output.table(&["step sizes", "start", "variance", "heterogeneity", "sum"], rows)
}

fn lyapunov(study: &Study, case: &Case, output: &Output) -> String {
    let weights = Weights::of(case.scheme, &study.values(), &study.derived, &case.steps);
    let mut head = vec!["k"];
    head.extend(TERMS);
    head.push("V");
    let mut rows = vec![
        std::iter::once("d".to_string())
            .chain(weights.list().map(short))
            .chain([String::new()])
            .collect::<Vec<_>>(),
    ];
    for (k, seen) in &case.course.seen {
        let terms = weights.terms(&seen.errors);
        let mut row = vec![k.to_string()];
        row.extend(terms.map(short));
        row.push(short(terms.iter().sum()));
        rows.push(row);
    }
    output.table(&head, rows)
}

pub fn document(study: &Study, Curves { case, theorem, practical }: &Curves) -> Value {
    let choice = study.choice(case);
    let weights = Weights::of(case.scheme, &study.values(), &study.derived, &case.steps);
    let curve = |course: &Course| -> Vec<Value> {
        course.averages.iter().map(|(k, mean)| json!({ "iteration": k, "mean": mean })).collect()
    };
    let bounds = |steps| -> Vec<Value> {
        let at = |(k, _): &(u64, f64)| {
            let bound = study.bound(case, steps, *k);
            json!({ "iteration": k, "total": bound.total(), "terms": bound })
        };
        theorem.averages.iter().map(at).collect()
    };
    let trace: Vec<Value> = case
        .course
        .seen
        .iter()
        .map(|(k, seen)| {
            let weighted = weights.terms(&seen.errors);
            json!({ "iteration": k, "grad_phi_sq": seen.grad_phi_sq(), "errors": seen.errors,
                "weighted": weighted, "v": weighted.iter().sum::<f64>() })
        })
        .collect();
    json!({
        "algorithm": case.label,
        "scheme": case.scheme,
        "guaranteed": guaranteed(study, case),
        "measured": { "yours": curve(&case.course), "theorem": curve(theorem),
            "practical": practical.as_ref().map(curve) },
        "bound": { "yours": bounds(&case.steps), "theorem": bounds(&choice.steps) },
        "weights": weights,
        "lyapunov": trace,
    })
}
