//! Which nodes communicate: an undirected simple graph.

use crate::error::{Error, Result};

/// The largest number of nodes accepted, by files, commands and runs alike, so that a mistyped size is
/// refused and not allocated.
pub const MAX_NODES: usize = 1_000_000;

/// The largest number of edges accepted.
pub const MAX_EDGES: usize = 10_000_000;

/// An undirected graph on the nodes `0..m`, without self-loops or double edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    neighbours: Vec<Vec<usize>>,
}

impl Graph {
    /// The graph with these edges; a self-loop, a double edge or an unknown node is an error.
    pub fn from_edges(m: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Result<Graph> {
        check_nodes(m)?;
        let edges: Vec<_> = edges.into_iter().take(MAX_EDGES + 1).collect();
        Graph::checked(m, &edges).map_err(|fault| fault.error)
    }

    /// Like [`Graph::from_edges`], but the error has the edge, so that a reader can name its line.
    pub(super) fn checked(m: usize, edges: &[(usize, usize)]) -> Result<Graph, EdgeFault> {
        let whole = |error| EdgeFault { edge: None, error };
        check_nodes(m).map_err(whole)?;
        check_edges(edges.len()).map_err(whole)?;
        let mut neighbours = vec![Vec::new(); m];
        for (e, &(i, j)) in edges.iter().enumerate() {
            check_edge(m, i, j).map_err(|error| EdgeFault { edge: Some(e), error })?;
            neighbours[i].push(j);
            neighbours[j].push(i);
        }
        for (i, list) in neighbours.iter_mut().enumerate() {
            list.sort_unstable();
            if let Some(twice) = list.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(duplicate(edges, i, twice[0]));
            }
        }
        Ok(Graph { neighbours })
    }

    /// The number of nodes, m.
    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    /// The neighbours of node i in increasing order, without itself.
    pub fn neighbours(&self, i: usize) -> &[usize] {
        &self.neighbours[i]
    }

    /// The number of neighbours of node i, itself not counted.
    pub fn degree(&self, i: usize) -> usize {
        self.neighbours[i].len()
    }

    /// The largest degree.
    pub fn max_degree(&self) -> usize {
        self.neighbours.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The edges (i, j) with i < j, in increasing order.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.neighbours.iter().enumerate().flat_map(|(i, list)| {
            let above = &list[list.partition_point(|&j| j < i)..];
            above.iter().map(move |&j| (i, j))
        })
    }

    /// Whether i and j share an edge.
    pub fn joins(&self, i: usize, j: usize) -> bool {
        self.neighbours[i].binary_search(&j).is_ok()
    }
}

/// An error in a list of edges, and the edge that has it.
pub(super) struct EdgeFault {
    pub edge: Option<usize>,
    pub error: Error,
}

/// Refuses an impossible number of nodes.
pub(super) fn check_nodes(m: usize) -> Result<()> {
    match m {
        0 => Err(Error::network("network/no-nodes", "a network needs at least one node")
            .hint("set `nodes` to 1 or more")),
        m if m > MAX_NODES => Err(Error::network(
            "network/too-large",
            format!("{m} nodes exceed the limit of {MAX_NODES}"),
        )
        .hint("check for a mistyped number")),
        _ => Ok(()),
    }
}

/// The error for a kind of graph that does not exist for the number of nodes.
pub(super) fn impossible(message: String, hint: impl Into<String>) -> Error {
    Error::network("network/impossible-size", message).hint(hint)
}

/// Neighbours at the given distances along a ring, each at most m / 2.
pub(super) fn around(m: usize, offsets: impl IntoIterator<Item = usize>) -> Result<Graph> {
    // Halfway round the ring, both ends would name the same edge.
    let starts = |offset: usize| if 2 * offset == m { offset } else { m };
    let edges = |offset| (0..starts(offset)).map(move |i| (i, (i + offset) % m));
    Graph::from_edges(m, offsets.into_iter().flat_map(edges))
}

/// Refuses a number of edges that would take too much memory.
pub(super) fn check_edges(edges: usize) -> Result<()> {
    match edges <= MAX_EDGES {
        true => Ok(()),
        false => Err(Error::network(
            "network/too-large",
            format!("the graph exceeds the limit of {MAX_EDGES} edges"),
        )
        .hint("take fewer nodes or a sparser graph")),
    }
}

fn check_edge(m: usize, i: usize, j: usize) -> Result<()> {
    let top = i.max(j);
    if top >= m {
        return Err(Error::network(
            "network/unknown-node",
            format!("the edge {i} – {j} names node {top}, but the nodes are 0 to {}", m - 1),
        )
        .hint("nodes are counted from 0"));
    }
    if i == j {
        return Err(Error::network("network/self-loop", format!("node {i} has an edge to itself"))
            .hint("leave it out: a node's own value counts through its weight w_ii"));
    }
    Ok(())
}

fn duplicate(edges: &[(usize, usize)], i: usize, j: usize) -> EdgeFault {
    let same = |&(a, b): &(usize, usize)| (a, b) == (i, j) || (b, a) == (i, j);
    let error =
        Error::network("network/duplicate-edge", format!("the edge {i} – {j} occurs twice"))
            .hint("edges have no direction: write each once, as `i j` or as `j i`");
    EdgeFault { edge: edges.iter().rposition(same), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_edges_come_once() {
        let graph = Graph::from_edges(4, [(3, 0), (1, 0), (2, 1)]).unwrap();
        assert_eq!(graph.neighbours(0), [1, 3]);
        assert_eq!(graph.neighbours(1), [0, 2]);
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1), (0, 3), (1, 2)]);
        assert_eq!((graph.degree(3), graph.max_degree()), (1, 2));
        assert!(graph.joins(0, 3) && graph.joins(3, 0) && !graph.joins(2, 3));
    }

    #[test]
    fn the_second_of_two_equal_edges_is_blamed() {
        let fault = Graph::checked(3, &[(0, 1), (1, 2), (1, 0)]).err().unwrap();
        assert_eq!(fault.edge, Some(2));
        assert_eq!(fault.error.id, "network/duplicate-edge");
    }

    #[test]
    fn sizes_are_checked_before_anything_is_allocated() {
        let endless = (0..).map(|i| (i, i + 1));
        assert_eq!(Graph::from_edges(usize::MAX, endless).unwrap_err().id, "network/too-large");
        assert_eq!(Graph::from_edges(0, []).unwrap_err().id, "network/no-nodes");
    }
}
