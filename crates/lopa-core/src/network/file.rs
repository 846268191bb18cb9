//! Graph files: `graph.toml`, edge lists, and matrices as text.
//!
//! ```text
//! graph.toml                         edge list: `i j`, `i j w`, `i,j` or `i,j,w`
//!   nodes = 3                          # nodes: 3
//!   edges = [[0, 1], [1, 2]]           0 1 0.25
//!   weights = [0.25, 0.5]              1 2 0.5
//! ```
//!
//! Weights are optional, one per edge; a node's own weight is 1 minus those of its edges. In an
//! edge list without the comment `# nodes: m`, the largest number is the last node.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::parse::{EdgeLine, from_edge_list, from_toml, read_text};
use super::{Graph, Mixing};
use crate::error::{Error, Result};
use crate::params;
use crate::store::output;

params! {
    /// Parameters of a graph or of weights in a graph file.
    pub(super) struct InFile {
        /// The file: `graph.toml`, or an edge list by any other name.
        path: PathBuf = PathBuf::new(), required;
    }
}

/// The format of a graph file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `nodes`, `edges` and optionally `weights`.
    Toml,
    /// One edge per line.
    EdgeList,
}

impl Format {
    /// The format of a file by its name: `.toml`, else an edge list.
    pub fn of(path: &Path) -> Format {
        let toml = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
        if toml || output::is_stream(path) { Format::Toml } else { Format::EdgeList }
    }
}

/// The contents of a graph file.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFile {
    /// The graph.
    pub graph: Graph,
    /// The weights of its edges, in the order of [`Graph::edges`], if they have any.
    pub weights: Option<Vec<f64>>,
}

impl GraphFile {
    /// A graph with the weights that a mixing matrix gives to its edges.
    pub fn new(graph: Graph, mixing: &Mixing) -> GraphFile {
        let weights = Some(graph.edges().map(|(i, j)| mixing.weight(i, j)).collect());
        GraphFile { graph, weights }
    }

    /// Reads a file, in the format of its name.
    pub fn read(path: &Path) -> Result<GraphFile> {
        GraphFile::parse(&path.display().to_string(), &read_text(path)?, Format::of(path))
    }

    /// Parses a text; `name` is its name in messages.
    pub fn parse(name: &str, text: &str, format: Format) -> Result<GraphFile> {
        let (nodes, lines) = match format {
            Format::Toml => from_toml(name, text)?,
            Format::EdgeList => from_edge_list(name, text)?,
        };
        let edges: Vec<_> = lines.iter().map(|line| line.edge).collect();
        let graph = Graph::checked(nodes, &edges).map_err(|fault| match fault.edge {
            Some(edge) => fault.error.at(format!("{name}:{}", lines[edge].number)),
            None => fault.error.at(name),
        })?;
        Ok(GraphFile { graph, weights: sorted_weights(name, lines)? })
    }

    /// The mixing matrix of the weights, if the file has any.
    pub fn mixing(&self) -> Result<Option<Mixing>> {
        let Some(weights) = &self.weights else { return Ok(None) };
        let edges: Vec<_> = self.graph.edges().collect();
        let weight = |i, j| weights[edges.binary_search(&(i, j)).expect("i < j is an edge")];
        Mixing::on(&self.graph, weight).map(Some)
    }

    /// Writes a file, in the format of its name.
    pub fn write(&self, path: &Path) -> Result<()> {
        output::write(path, self.to_text(Format::of(path)).as_bytes(), "the graph", output::OTHER)
    }

    /// The text of the file.
    pub fn to_text(&self, format: Format) -> String {
        let mut text = String::new();
        let weight = |e: usize| self.weights.as_ref().map(|weights| weights[e]);
        match format {
            Format::Toml => {
                let edges: Vec<_> = self.graph.edges().map(|(i, j)| [i, j]).collect();
                let _ = writeln!(text, "nodes = {}\nedges = {edges:?}", self.graph.nodes());
                if let Some(weights) = &self.weights {
                    let _ = writeln!(text, "weights = {weights:?}");
                }
            }
            Format::EdgeList => {
                let _ = writeln!(text, "# nodes: {}", self.graph.nodes());
                for (e, (i, j)) in self.graph.edges().enumerate() {
                    let weight = weight(e).map(|w| format!(",{w}")).unwrap_or_default();
                    let _ = writeln!(text, "{i},{j}{weight}");
                }
            }
        }
        text
    }
}

/// The weights in the order of the sorted edges; either all edges have one or none does.
fn sorted_weights(name: &str, lines: Vec<EdgeLine>) -> Result<Option<Vec<f64>>> {
    // Without edges, no weight is missing.
    if !lines.is_empty() && lines.iter().all(|line| line.weight.is_none()) {
        return Ok(None);
    }
    let weight = |EdgeLine { edge: (i, j), weight, number }: EdgeLine| {
        let weight = check_weight(i, j, weight).map_err(|e| e.at(format!("{name}:{number}")))?;
        Ok(((i.min(j), i.max(j)), weight))
    };
    let mut sorted: Vec<_> = lines.into_iter().map(weight).collect::<Result<_>>()?;
    sorted.sort_unstable_by_key(|(edge, _)| *edge);
    Ok(Some(sorted.into_iter().map(|(_, weight)| weight).collect()))
}

fn check_weight(i: usize, j: usize, weight: Option<f64>) -> Result<f64> {
    let Some(weight) = weight else {
        let message = format!("the edge {i} – {j} has no weight, but others have one");
        return Err(Error::network("network/edge-without-weight", message)
            .hint("give every edge a weight, or none"));
    };
    let id = match weight {
        w if !w.is_finite() => "network/not-a-number",
        w if w < 0.0 => "network/negative-weight",
        0.0 => "network/edge-without-weight",
        _ => return Ok(weight),
    };
    Err(Error::network(id, format!("the edge {i} – {j} has the weight {weight}"))
        .hint("the weight of an edge is above 0 and at most 1"))
}
