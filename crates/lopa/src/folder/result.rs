//! A run's result, as scripts see it and as it is read back.

use serde_json::{Value, json};

use crate::evaluate::Point;
use crate::run::Outcome;

/// A run as scripts see it.
pub fn result(outcome: &Outcome) -> Value {
    let mut entry = json!({
        "algorithm": outcome.algorithm,
        "seed": outcome.seed,
        "digest": outcome.digest,
        "stop": outcome.stop.name(),
    });
    let row = serde_json::to_value(&outcome.row).expect("a row is JSON");
    if let (Value::Object(entry), Value::Object(row)) = (&mut entry, row) {
        entry.extend(row);
        if let Some(diagnosis) = &outcome.diagnosis {
            entry.insert("diagnosis".into(), json!(diagnosis));
        }
        let named = |values: &Vec<(String, f64)>| -> Value {
            values.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
        };
        entry.insert("nodes".into(), outcome.nodes.iter().map(named).collect());
    }
    entry
}

/// The outcome that a result tells of; `None` if it tells of none.
pub(super) fn outcome(result: &Value, models: Vec<Point>) -> Option<Outcome> {
    let mut entry = result.as_object()?.clone();
    let mut take = |key: &str| entry.remove(key);
    let (algorithm, seed, digest) = (take("algorithm")?, take("seed")?, take("digest")?);
    let (stop, diagnosis, nodes) = (take("stop")?, take("diagnosis"), take("nodes")?);
    let named = |node: &Value| -> Option<Vec<(String, f64)>> {
        node.as_object()?
            .iter()
            .map(|(name, value)| Some((name.clone(), value.as_f64()?)))
            .collect()
    };
    Some(Outcome {
        algorithm: algorithm.as_str()?.into(),
        seed: seed.as_u64()?,
        stop: serde_json::from_value(stop).ok()?,
        diagnosis: diagnosis.and_then(|text| text.as_str().map(String::from)),
        row: serde_json::from_value(Value::Object(entry)).ok()?,
        nodes: nodes.as_array()?.iter().map(named).collect::<Option<_>>()?,
        digest: digest.as_str()?.into(),
        models,
    })
}
