//! Parses graphs and matrices from text; nothing in it is trusted.

use std::path::Path;

use toml::Spanned;

use super::graph::MAX_NODES;
use crate::config::Source;
use crate::error::{Error, Kind, Result};
use crate::store::limits;

/// An edge in a file: its ends, its weight, the number of its line.
pub(super) struct EdgeLine {
    pub edge: (usize, usize),
    pub weight: Option<f64>,
    pub number: usize,
}

/// Reads a matrix: one row per line, entries separated by commas or blanks.
pub(super) fn read_matrix(path: &Path) -> Result<Vec<Vec<f64>>> {
    let (name, text) = (path.display().to_string(), read_text(path)?);
    let row = |(line, cells): (usize, Vec<&str>)| {
        let number = |cell: &str| {
            let wrong = |_| malformed(format!("`{cell}` is not a number"));
            cell.parse().map_err(|error| wrong(error).at(format!("{name}:{line}")))
        };
        cells.into_iter().map(number).collect()
    };
    cells_of(&text).map(row).collect()
}

/// Reads a text file of limited size.
pub(super) fn read_text(path: &Path) -> Result<String> {
    let place = path.display().to_string();
    let unreadable =
        |why: String| Error::network("network/unreadable", why).at(&place).hint("check the path");
    let text = limits::read_text(path, limits::GRAPH)
        .map_err(|error| unreadable(format!("cannot read the file as text: {error}")))?;
    Ok(text.trim_start_matches('\u{feff}').to_string())
}

fn malformed(message: String) -> Error {
    Error::network("network/malformed-file", message)
}

/// The contents of a graph.toml.
struct TomlGraph {
    nodes: usize,
    edges: Vec<Spanned<Vec<usize>>>,
    weights: Option<Vec<f64>>,
}

impl TomlGraph {
    fn read(name: &str, text: &str) -> Result<TomlGraph> {
        let missing = |key: &str| {
            malformed(format!("the key `{key}` is missing"))
                .at(name)
                .hint("a graph file has `nodes = 3` and `edges = [[0, 1], [1, 2]]`")
        };
        let source = Source::new(name, text);
        let mut root = source.root()?;
        let nodes = root.value("nodes")?.ok_or_else(|| missing("nodes"))?;
        let (edges, weights) = (root.value("edges")?, root.value("weights")?);
        root.finish(&["nodes", "edges", "weights"])?;
        Ok(TomlGraph { nodes, edges: edges.ok_or_else(|| missing("edges"))?, weights })
    }
}

/// The number of nodes and the edges of a graph.toml.
pub(super) fn from_toml(name: &str, text: &str) -> Result<(usize, Vec<EdgeLine>)> {
    // Errors of the strict TOML reader become errors of a graph file.
    let ours = |error: Error| Error { kind: Kind::Network, id: "network/malformed-file", ..error };
    let TomlGraph { nodes, edges, weights } = TomlGraph::read(name, text).map_err(ours)?;
    if let Some(weights) = weights.as_ref().filter(|weights| weights.len() != edges.len()) {
        return Err(malformed(format!("{} weights for {} edges", weights.len(), edges.len()))
            .at(name)
            .hint("`weights` has one number for each of `edges`, in the same order"));
    }
    let newlines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |(e, edge): (usize, Spanned<Vec<usize>>)| {
        // Line ends are found once for all edges: a scan for each would be quadratic.
        let number = newlines.partition_point(|&at| at < edge.span().start) + 1;
        let weight = weights.as_ref().map(|weights| weights[e]);
        match edge.get_ref()[..] {
            [i, j] => Ok(EdgeLine { edge: (i, j), weight, number }),
            ref other => Err(malformed(format!("an edge has two nodes, not {}", other.len()))
                .at(format!("{name}:{number}"))
                .hint("write an edge as `[0, 1]`")),
        }
    };
    let lines: Vec<EdgeLine> = edges.into_iter().enumerate().map(line).collect::<Result<_>>()?;
    Ok((nodes, lines))
}

/// The number of nodes and the edges of an edge list.
pub(super) fn from_edge_list(name: &str, text: &str) -> Result<(usize, Vec<EdgeLine>)> {
    let lines: Vec<EdgeLine> = cells_of(text)
        .map(|(number, cells)| {
            edge_line(number, &cells).map_err(|e| e.at(format!("{name}:{number}")))
        })
        .collect::<Result<_>>()?;
    let largest = lines.iter().map(|line| line.edge.0.max(line.edge.1)).max();
    let nodes = match declared_nodes(text) {
        Some(nodes) => nodes,
        None => largest.map(|top| top + 1).ok_or_else(|| {
            malformed("the file has no edges".into())
                .at(name)
                .hint("a single node is written as the line `# nodes: 1`")
        })?,
    };
    Ok((nodes, lines))
}

fn edge_line(number: usize, cells: &[&str]) -> Result<EdgeLine> {
    let wrong = |message: String| {
        malformed(message).hint("an edge is `i j` or `i,j`, optionally with a weight")
    };
    let node = |cell: &str| match cell.parse() {
        Ok(node) if node < MAX_NODES => Ok(node),
        Ok(node) => Err(wrong(format!("node {node} is above the limit of {}", MAX_NODES - 1))),
        Err(_) => Err(wrong(format!("`{cell}` is not a node number"))),
    };
    let weight = |cell: &str| match cell.parse() {
        Ok(weight) => Ok(weight),
        Err(_) => Err(wrong(format!("`{cell}` is not a weight"))),
    };
    let (edge, weight) = match cells {
        [i, j] => ((node(i)?, node(j)?), None),
        [i, j, w] => ((node(i)?, node(j)?), Some(weight(w)?)),
        _ => return Err(wrong(format!("an edge has two nodes, not {} entries", cells.len()))),
    };
    Ok(EdgeLine { edge, weight, number })
}

/// The nonempty lines with their numbers, split at commas or else at blanks.
fn cells_of(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines().enumerate().filter_map(|(number, line)| {
        let line = line.split('#').next().unwrap_or("").trim();
        let cells = match line.contains(',') {
            true => line.split(',').map(str::trim).collect(),
            false => line.split_whitespace().collect(),
        };
        (!line.is_empty()).then(|| (number + 1, cells))
    })
}

/// The number in the first comment of the form `# nodes: 5`.
fn declared_nodes(text: &str) -> Option<usize> {
    let declared = |line: &str| {
        let rest = line.trim().strip_prefix('#')?.trim_start().strip_prefix("nodes:")?;
        rest.trim().parse().ok()
    };
    text.lines().find_map(declared)
}
