//! The network: a graph, the mixing matrix W on it, and what both mean for a run.
//!
//! ```text
//! W is symmetric, its rows sum to 1, and w_ij > 0 exactly where i and j share an edge;
//! w_ii ≥ 0 is the weight of a node's own vector.
//! ρ = ‖W − 11ᵀ/m‖²            ‖W x − x̄‖² ≤ ρ ‖x − x̄‖²
//! ```

mod analysis;
mod audit;
mod drawn;
mod families;
mod file;
mod graph;
pub mod mixed;
mod mixing;
mod parse;
mod search;
mod spectrum;
mod structure;
mod weights;

pub use analysis::{Analysis, Spectrum, warnings};
pub use audit::{Audit, Exposure};
pub use families::{GraphBuild, graph_entry, graphs};
pub use file::{Format, GraphFile};
pub use graph::{Graph, MAX_EDGES, MAX_NODES};
pub use mixing::Mixing;
pub use search::{Found, search};
pub use spectrum::Tridiagonal;
pub use weights::{WeightsBuild, weights, weights_entry};

use crate::config::Choice;
use crate::error::{Error, Result};

/// Builds a network that can reach agreement, or says which nodes stand in the way.
pub fn build(
    graph: &Choice<GraphBuild>,
    weights: &Choice<WeightsBuild>,
    nodes: usize,
    seed: u64,
) -> Result<(Graph, Mixing)> {
    let graph = (graph.build)(nodes, seed)?;
    check_connected(&graph)?;
    let mixing = (weights.build)(&graph)?;
    check(&graph, &mixing)?;
    Ok((graph, mixing))
}

/// Whether a run can reach agreement on this network; if not, which nodes stand in the way.
pub fn check(graph: &Graph, mixing: &Mixing) -> Result<()> {
    check_connected(graph)?;
    mixing.check_support(graph)?;
    mixing.check_mixes(graph)
}

fn check_connected(graph: &Graph) -> Result<()> {
    let components = graph.components();
    let [first, second, ..] = components.as_slice() else { return Ok(()) };
    Err(Error::network(
        "network/disconnected",
        format!(
            "the graph is not connected but in {} pieces: nodes {} have no way to nodes {}",
            components.len(),
            names(first),
            names(second)
        ),
    )
    .hint(format!("join them, for example by the edge {} – {}", first[0], second[0])))
}

/// Node indices for a message: all if few, else the first ones.
fn names(nodes: &[usize]) -> String {
    let shown: Vec<_> = nodes.iter().take(8).map(usize::to_string).collect();
    match nodes.len() {
        n if n <= 8 => shown.join(", "),
        n => format!("{}, … ({n} in all)", shown.join(", ")),
    }
}
