//! `lopa graph show` and `lopa graph check`.

use std::process::ExitCode;

use lopa::error::Result;
use lopa::network::{self, Analysis, Graph, Joint, Mixing, warnings};
use serde_json::{Value, json};

use super::read::{GraphArgs, Network, described, read};
use crate::output::{Output, number};
use crate::program::Program;

pub fn show(args: &GraphArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let Network { graph, mixing, joint } = read(args, program)?;
    let analysis = mixing.analyse(&graph);
    match output.json() {
        true => {
            let mut document = described(&graph, &mixing, &analysis);
            if let Some(joint) = joint {
                document["rounds"] = json!(joint);
            }
            output.document(&document);
        }
        false => output.text(&format!(
            "{}\n\n{}",
            weights(&graph, &mixing, output),
            properties(&analysis, joint.as_ref(), output)
        )),
    }
    say(joint.as_ref(), output);
    Ok(ExitCode::SUCCESS)
}

pub fn check(args: &GraphArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let Network { graph, mixing, joint } = read(args, program)?;
    if joint.is_none() {
        network::check(&graph, &mixing)?;
    }
    let analysis = mixing.analyse(&graph);
    for warning in warnings(analysis.lambda_min, true) {
        output.warn(&warning);
    }
    match output.json() {
        true => {
            let mut document = json!(analysis);
            if let Some(joint) = joint {
                document["rounds"] = json!(joint);
            }
            output.document(&document);
        }
        false => output.text(&properties(&analysis, joint.as_ref(), output)),
    }
    say(joint.as_ref(), output);
    output.note("valid: a run can use it");
    Ok(ExitCode::SUCCESS)
}

/// W as a matrix if there are few nodes, else the neighbours of each node.
fn weights(graph: &Graph, mixing: &Mixing, output: &Output) -> String {
    const FEW: usize = 16;
    const SHOWN: usize = 40;
    let m = graph.nodes();
    if m > FEW {
        let others = |i: usize| graph.neighbours(i).iter().map(usize::to_string);
        let line = |i: usize| vec![i.to_string(), others(i).collect::<Vec<_>>().join(" ")];
        let shown = output.list(&["node", "neighbours"], (0..m.min(SHOWN)).map(line).collect());
        return match m {
            ..=SHOWN => shown,
            _ => format!("{shown}\n… {} more nodes", m - SHOWN),
        };
    }
    let head: Vec<String> =
        std::iter::once("W".into()).chain((0..m).map(|j| j.to_string())).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let cell = |i, j| match mixing.weight(i, j) {
        0.0 => "·".to_string(),
        w => format!("{w:.3}"),
    };
    let row = |i: usize| std::iter::once(i.to_string()).chain((0..m).map(|j| cell(i, j))).collect();
    output.table(&head, (0..m).map(row).collect())
}

/// Explains the numbers of a changing graph.
fn say(joint: Option<&Joint>, output: &Output) {
    let Some(Joint { window, rho_round, symmetric, .. }) = joint else { return };
    output.note(&format!(
        "It changes from round to round: W and rho above are those of all its links, used at once. Over \
         a window of {window} rounds it does what a fixed graph with rho = {rho_round:.4} does."
    ));
    if !symmetric {
        output.note(
            "Its links work in one direction: W is doubly stochastic, not symmetric. That is enough \
             for averaging and gradient tracking, and too little for augmented Lagrangians and EXTRA.",
        );
    }
}

fn properties(analysis: &Analysis, joint: Option<&Joint>, output: &Output) -> String {
    let mut value = json!(analysis);
    if let (Some(joint), Some(all)) = (joint, value.as_object_mut()) {
        let Joint { window, rho_window, rho_round, messages, symmetric } = *joint;
        all.insert("rounds in a window".into(), json!(window));
        all.insert("rho of a window".into(), json!(rho_window));
        all.insert("rho per round".into(), json!(rho_round));
        all.insert("messages per node and round".into(), json!(messages));
        all.insert("rounds are symmetric".into(), json!(symmetric));
    }
    let object = value.as_object().expect("an analysis is an object");
    let shown = |value: &Value| match value {
        Value::Number(n) if n.is_f64() => number(n.as_f64().unwrap_or(f64::NAN)),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.into(),
        Value::Null => "–".into(),
        Value::Array(pairs) if pairs.is_empty() => "none".into(),
        Value::Array(pairs) => bridges(pairs),
        other => other.to_string(),
    };
    let row = |(key, value): (&String, &Value)| match key.as_str() {
        "diameter_between" => {
            vec!["diameter between".into(), format!("{} and {}", value[0], value[1])]
        }
        "estimated" => vec![
            "estimated".into(),
            "rho, sigma, lambda 2, lambda min: the true rho is not smaller".into(),
        ],
        _ => vec![key.replace('_', " "), shown(value)],
    };
    // A value whose bounds follow below is not also listed as unknown.
    let known = |(key, _): &(&String, &Value)| {
        key.as_str() != "diameter" || analysis.diameter_between.is_none()
    };
    output.list(&["property", "value"], object.iter().filter(known).map(row).collect())
}

fn bridges(pairs: &[Value]) -> String {
    const SHOWN: usize = 8;
    let some: Vec<String> =
        pairs.iter().take(SHOWN).map(|pair| format!("{}–{}", pair[0], pair[1])).collect();
    match pairs.len() {
        ..=SHOWN => some.join(", "),
        n => format!("{}, … ({n} in all)", some.join(", ")),
    }
}
