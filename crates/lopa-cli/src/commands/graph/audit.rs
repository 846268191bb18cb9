//! `lopa graph audit`: which peers can rebuild which nodes' data.

use std::process::ExitCode;

use clap::Args;
use lopa::error::Result;
use lopa::network::{Audit, Exposure};
use serde_json::json;

use super::read::{GraphArgs, Network, changes, read};
use crate::program::Program;

/// Bytes per number sent.
const SCALAR: u64 = 8;
/// At most this many names per cell of a table.
const SHOWN: usize = 6;
/// At most this many nodes in a table; a document has all.
const LISTED: usize = 1000;

#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// Number of entries of x, to count the bytes of a round
    #[arg(long, value_name = "N")]
    entries: Option<u64>,
}

pub fn audit(args: &AuditArgs, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let Network { graph, mixing, joint } = read(&args.graph, program)?;
    if joint.is_some() {
        let why = "what its neighbours can rebuild is known for a fixed graph only";
        return Err(changes(&args.graph.graph, why).hint("audit the graph of all its links"));
    }
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
        let listed = audit.nodes.iter().enumerate().take(LISTED);
        output.text(&output.list(&head, listed.map(row).collect()));
        if audit.nodes.len() > LISTED {
            output.text(&format!("… {} more nodes (`--json` has all)", audit.nodes.len() - LISTED));
        }
    }
    let m = audit.nodes.len();
    let bridges: Vec<String> = audit.bridges.iter().map(|(i, j)| format!("{i}–{j}")).collect();
    output.note(&format!("\nbridges, whose loss disconnects the network: {}", list(&bridges)));
    let each = if args.entries.is_some() { "" } else { " per entry of x" };
    let [lg, gt] = tracked;
    output.note(&format!("a round takes {lg} B{each} with LoPA-LG, {gt} B with LoPA-GT (f64)"));
    output.note(&format!(
        "A single peer can rebuild the hypergradients of {one} of {m} nodes, a pair of peers those \
         of {pair}; with gradient tracking, the x of {two_hops} nodes is known two hops away."
    ));
    Ok(ExitCode::SUCCESS)
}

/// The first few, and their number.
fn list(items: &[impl ToString]) -> String {
    let some: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
    match items.len() {
        0 => "–".into(),
        1..=SHOWN => some.join(", "),
        n => format!("{}, … ({n} in all)", some.join(", ")),
    }
}
