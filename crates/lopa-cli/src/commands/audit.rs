//! `lopa graph audit`: who can rebuild what of whom.

use std::process::ExitCode;

use lopa::error::Result;
use lopa::network::{Audit, Exposure};
use serde_json::json;

use super::graph::read;
use crate::Program;
use crate::args::AuditArgs;

/// Bytes of a number on its way.
const SCALAR: u64 = 8;
/// As many names are shown in a table as this.
const SHOWN: usize = 6;

pub fn audit(args: &AuditArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let (graph, mixing) = read(&args.graph, program)?;
    let audit = Audit::new(&graph, &mixing);
    let entries = args.entries.unwrap_or(1);
    let tracked = [1, 2].map(|vectors| audit.messages as u64 * vectors * SCALAR * entries);
    let [one, pair, two_hops] = audit.counts();
    if output.json() {
        output.document(&json!({
            "nodes": audit.nodes, "bridges": audit.bridges, "entries": entries,
            "bytes_per_round": { "lopa-lg": tracked[0], "lopa-gt": tracked[1] },
            "exposed": { "to_one_peer": one, "to_some_pair": pair, "x_two_hops_away": two_hops },
        }));
    } else {
        let row = |(i, node): (usize, &Exposure)| {
            let pairs: Vec<String> = node.pairs.iter().map(|(a, b)| format!("{a}+{b}")).collect();
            vec![i.to_string(), list(&node.one), list(&pairs), list(&node.two_hops)]
        };
        let head = ["node", "rebuilt by one peer", "by a pair", "GT: x known two hops away to"];
        output.text(&output.list(&head, audit.nodes.iter().enumerate().map(row).collect()));
    }
    let m = audit.nodes.len();
    let bridges: Vec<String> = audit.bridges.iter().map(|(i, j)| format!("{i}–{j}")).collect();
    output.note(&format!("\nbridges, whose loss cuts the network in two: {}", list(&bridges)));
    let each = if args.entries.is_some() { "" } else { " for each entry of x" };
    let [lg, gt] = tracked;
    output.note(&format!("a round takes {lg} B{each} with LoPA-LG, {gt} B with LoPA-GT (f64)"));
    output.note(&format!(
        "One curious peer can rebuild the hypergradients of {one} of {m} nodes, some pair those of \
         {pair}; with gradient tracking {two_hops} nodes' x is known to a peer two hops away."
    ));
    Ok(ExitCode::SUCCESS)
}

/// A few of them, and how many there are.
fn list(items: &[impl ToString]) -> String {
    let some: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
    match items.len() {
        0 => "–".into(),
        1..=SHOWN => some.join(", "),
        n => format!("{}, … ({n} in all)", some.join(", ")),
    }
}
