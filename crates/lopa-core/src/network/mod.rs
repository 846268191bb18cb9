//! The network: a graph, the mixing matrix W on it, and their effect on a run.
//!
//! ```text
//! W is symmetric, its rows sum to 1, and w_ij > 0 exactly where i and j share an edge;
//! w_ii ≥ 0 is the weight of a node's own vector.
//! ρ = ‖W − 11ᵀ/m‖²            ‖W x − x̄‖² ≤ ρ ‖x − x̄‖²
//! ```
//!
//! A graph may change from round to round: see [`Rounds`].

mod analysis;
mod audit;
mod changing;
mod drawn;
mod families;
mod file;
mod graph;
pub mod mixed;
mod mixing;
pub mod outbox;
mod parse;
mod search;
mod spectrum;
mod structure;
pub mod time;
mod weights;

pub use analysis::{Analysis, Spectrum, warnings};
pub use audit::{Audit, Exposure};
pub use changing::{Cursor, Joint, Rounds};
pub use families::{GraphBuild, Topology, Whole, graph_entry, graphs};
pub use file::{Format, GraphFile};
pub use graph::{Graph, MAX_EDGES, MAX_NODES};
pub use mixing::Mixing;
pub use search::{Found, search};
pub use spectrum::Tridiagonal;
pub use weights::{WeightsBuild, weights, weights_entry};

use crate::config::{Choice, Registry, Section};
use crate::error::{Error, Result};

/// Builds a network that can reach consensus; the error names the nodes that prevent it.
pub fn build(
    graph: &Choice<GraphBuild>,
    weights: &Choice<WeightsBuild>,
    nodes: usize,
    seed: u64,
) -> Result<(Graph, Mixing)> {
    let changes = graph.build.changes();
    let graph = graph.build.graph(nodes, seed)?;
    check_connected(&graph)?;
    let mixing = (weights.build)(&graph)?;
    match changes {
        // The rounds of a changing graph are checked by `rounds`.
        true => mixing.check_support(&graph)?,
        false => check(&graph, &mixing)?,
    }
    Ok((graph, mixing))
}

/// The rounds of a changing graph and their effect, for a network from [`build`].
pub fn rounds(
    graph: &Choice<GraphBuild>,
    weights: &Choice<WeightsBuild>,
    (whole, mixing): (&Graph, &Mixing),
    seed: u64,
) -> Result<Option<(Rounds, Joint)>> {
    let whole = Whole { graph: whole, mixing, weights: &*weights.build, seed };
    let Some(rounds) = graph.build.rounds(&whole)? else { return Ok(None) };
    let joint = rounds.joint();
    joint.check()?;
    Ok(Some((rounds, joint)))
}

/// Reads a graph from a section of a file; the graphs that it names are from the same registry.
pub fn read_graph(registry: &Registry<GraphBuild>, section: Section) -> Result<Choice<GraphBuild>> {
    let place = section.place();
    let choice = registry.read(section)?;
    settled(registry, choice).map_err(|error| error.at(place))
}

/// The same choice, with the graphs that it names found in a registry.
pub fn settled(
    registry: &Registry<GraphBuild>,
    mut choice: Choice<GraphBuild>,
) -> Result<Choice<GraphBuild>> {
    if let Some(build) = choice.build.within(registry)? {
        choice.build = build;
    }
    Ok(choice)
}

/// Whether a run can reach consensus on this network; the error names the nodes that prevent it.
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
