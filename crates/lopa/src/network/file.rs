//! Graph files: `graph.toml`, edge lists, and matrices as text.
//!
//! ```text
//! graph.toml                         edge list: `i j`, `i j w`, `i,j` or `i,j,w`
//!   nodes = 3                          # nodes: 3
//!   edges = [[0, 1], [1, 2]]           0 1 0.25
//!   weights = [0.25, 0.5]              1 2 0.5
//! ```
//!
//! Weights are optional, one for each edge; a node keeps what its edges leave of 1. An edge list
//! without the comment `# nodes: m` has as many nodes as its largest number says.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::{Line, from_edge_list, from_toml, text_of};
use super::{Graph, Mixing};
use crate::config::Params;
use crate::error::{Error, Result};

/// Parameters of a thing that is read from a graph file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InFile {
    /// The file: `graph.toml`, or an edge list by any other name.
    pub path: PathBuf,
}

impl Params for InFile {}

/// How a graph is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `nodes`, `edges` and perhaps `weights`.
    Toml,
    /// An edge on each line.
    EdgeList,
}

impl Format {
    /// The format a file's name stands for: `.toml` or an edge list.
    pub fn of(path: &Path) -> Format {
        let toml = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
        if toml { Format::Toml } else { Format::EdgeList }
    }
}

/// A graph as a file holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFile {
    /// The graph.
    pub graph: Graph,
    /// The weights of its edges, in the order of [`Graph::edges`], unless the edges have none.
    pub weights: Option<Vec<f64>>,
}

impl GraphFile {
    /// A graph with the weights that a mixing matrix gives to its edges.
    pub fn new(graph: Graph, mixing: &Mixing) -> GraphFile {
        let weights = Some(graph.edges().map(|(i, j)| mixing.weight(i, j)).collect());
        GraphFile { graph, weights }
    }

    /// Reads a file, in the format its name stands for.
    pub fn read(path: &Path) -> Result<GraphFile> {
        GraphFile::parse(&path.display().to_string(), &text_of(path)?, Format::of(path))
    }

    /// Reads a text; `name` stands for it in messages.
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

    /// Writes a file, in the format its name stands for.
    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.to_text(Format::of(path))).map_err(|error| {
            Error::storage("storage/unwritable", format!("the graph cannot be written: {error}"))
                .at(path.display().to_string())
        })
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

/// The weights in the order of the sorted edges; all edges have one or none has.
fn sorted_weights(name: &str, lines: Vec<Line>) -> Result<Option<Vec<f64>>> {
    // Where there is no edge, no weight is missing.
    if !lines.is_empty() && lines.iter().all(|line| line.weight.is_none()) {
        return Ok(None);
    }
    let weight = |Line { edge: (i, j), weight, number }: Line| {
        let weight = check_weight(i, j, weight).map_err(|e| e.at(format!("{name}:{number}")))?;
        Ok(((i.min(j), i.max(j)), weight))
    };
    let mut sorted: Vec<_> = lines.into_iter().map(weight).collect::<Result<_>>()?;
    sorted.sort_unstable_by_key(|(edge, _)| *edge);
    Ok(Some(sorted.into_iter().map(|(_, weight)| weight).collect()))
}

fn check_weight(i: usize, j: usize, weight: Option<f64>) -> Result<f64> {
    let Some(weight) = weight else {
        let message = format!("the edge {i} – {j} has no weight, though others have");
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
