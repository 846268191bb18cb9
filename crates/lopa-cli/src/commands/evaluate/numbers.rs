//! The errors of predicted numbers, by node and overall.

use lopa::folder::model::Model;
use lopa::math::errors::Errors;
use lopa_study::statistics::Summary;
use serde_json::{Map, Value, json};

use super::share::Shares;
use crate::output::{Output, number};

/// A node's errors.
pub struct Line {
    pub node: usize,
    pub rows: usize,
    pub errors: Option<Errors>,
    /// Those of always naming the mean of its rows.
    pub of_mean: Option<Errors>,
}

/// The lines of each model, in their order.
pub fn by_model<'a, L>(all: &'a [(&'a Model, L)]) -> Vec<(&'a Model, Vec<&'a L>)> {
    let mut models: Vec<(&Model, Vec<&L>)> = Vec::new();
    for (model, line) in all {
        match models.last_mut().filter(|(last, _)| std::ptr::eq(*last, *model)) {
            Some((_, lines)) => lines.push(line),
            None => models.push((model, vec![line])),
        }
    }
    models
}

/// The mean over nodes of each measure.
fn mean(errors: &[Option<Errors>]) -> Option<Errors> {
    let of = |measure: fn(&Errors) -> f64| {
        Summary::of(errors.iter().flatten().map(measure)).map(|all| all.mean)
    };
    Some(Errors { r2: of(|e| e.r2)?, rmse: of(|e| e.rmse)?, mae: of(|e| e.mae)? })
}

/// The heads of [`cells`].
pub const HEADS: [&str; 3] = ["R²", "RMSE", "MAE"];

/// R², RMSE and MAE, or dashes.
pub fn cells(errors: Option<Errors>) -> Vec<String> {
    match errors {
        None => vec!["–".into(); 3],
        Some(errors) => {
            vec![format!("{:.4}", errors.r2), number(errors.rmse), number(errors.mae)]
        }
    }
}

/// A table for each model: R², RMSE and MAE of every node and, beside them, those of the mean.
pub fn table(all: &[(&Model, Line)], output: &Output) -> String {
    let head = ["node", "rows", "R²", "RMSE", "MAE", "RMSE of the mean", "MAE of the mean"];
    let mut text = Vec::new();
    for (model, lines) in by_model(all) {
        let line = |name: String, rows: usize, errors, of_mean: Option<Errors>| {
            let mut line = vec![name, rows.to_string()];
            line.extend(cells(errors));
            line.extend(cells(of_mean).into_iter().skip(1));
            line
        };
        let own = |l: &&Line| line(model.name(l.node), l.rows, l.errors, l.of_mean);
        let mut rows: Vec<Vec<String>> = lines.iter().map(own).collect();
        if lines.len() > 1 {
            let [errors, of_mean]: [Vec<_>; 2] = [|l: &&Line| l.errors, |l: &&Line| l.of_mean]
                .map(|of| lines.iter().map(of).collect());
            let count = lines.iter().map(|line| line.rows).sum();
            rows.push(line("mean".into(), count, mean(&errors), mean(&of_mean)));
        }
        let title = format!("{}, seed {}", model.about.algorithm, model.about.seed);
        text.push(format!("{title}, predicts {}\n\n{}", outputs(model), output.table(&head, rows)));
    }
    text.join("\n\n")
}

fn outputs(model: &Model) -> String {
    match &model.about.outputs[..] {
        [one] => format!("`{one}`"),
        several => format!("{} numbers; measures are means over them", several.len()),
    }
}

/// Errors for scripts.
pub fn to_json(errors: Option<Errors>) -> Value {
    errors.map_or(Value::Null, |errors| {
        let named = errors.named().map(|(name, value)| (name.to_string(), json!(value)));
        Value::Object(Map::from_iter(named))
    })
}

/// The same for scripts.
pub fn described(all: &[(&Model, Line)], shares: &Shares) -> Value {
    let model = |(model, lines): (&Model, Vec<&Line>)| {
        let node = |line: &&Line| {
            let mut node = to_json(line.errors);
            node["node"] = json!(line.node);
            node["rows"] = json!(line.rows);
            node["of_mean"] = to_json(line.of_mean);
            if let Some(name) = model.about.nodes.get(line.node) {
                node["name"] = json!(name);
            }
            node
        };
        let all: Vec<Option<Errors>> = lines.iter().map(|line| line.errors).collect();
        let of_mean: Vec<Option<Errors>> = lines.iter().map(|line| line.of_mean).collect();
        let mut described = json!({
            "algorithm": model.about.algorithm,
            "seed": model.about.seed,
            "diverged": model.about.diverged,
            "outputs": model.about.outputs,
            "rows": shares.rows,
            "own_rows": shares.own,
            "of_mean": to_json(mean(&of_mean)),
            "nodes": lines.iter().map(node).collect::<Vec<_>>(),
        });
        for (name, value) in mean(&all).iter().flat_map(Errors::named) {
            described[name] = json!(value);
        }
        described
    };
    Value::Array(by_model(all).into_iter().map(model).collect())
}
