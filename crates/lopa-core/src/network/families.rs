//! The graphs that files choose by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::changing::{self, Rounds};
use super::drawn::{erdos_renyi, random_regular};
use super::file::{GraphFile, InFile};
use super::graph::{Graph, MAX_NODES, around, check_nodes, impossible};
use super::{Mixing, WeightsBuild};
use crate::config::{Entry, NoParams, Params, Registry};
use crate::error::{Error, Fault, Result};
use crate::params;

/// A kind of graph, with its parameters.
pub type GraphBuild = dyn Topology;

/// A kind of graph, with its parameters: see [`graph_entry`].
pub trait Topology: Send + Sync {
    /// The graph of this many nodes, from a seed; for a changing graph, all links that are ever
    /// used.
    fn graph(&self, nodes: usize, seed: u64) -> Result<Graph>;

    /// Whether the graph changes from round to round.
    fn changes(&self) -> bool {
        false
    }

    /// Which links are used in which round, if that changes.
    fn rounds(&self, _whole: &Whole) -> Result<Option<Rounds>> {
        Ok(None)
    }

    /// The same kind, with the graphs that it names found in a registry.
    fn within(&self, _registry: &Registry<GraphBuild>) -> Result<Option<Arc<GraphBuild>>> {
        Ok(None)
    }
}

/// All links that a changing graph ever uses, as if they were used in every round.
pub struct Whole<'a> {
    /// All links.
    pub graph: &'a Graph,
    /// W on them.
    pub mixing: &'a Mixing,
    /// The rule for weights.
    pub weights: &'a WeightsBuild,
    /// The seed.
    pub seed: u64,
}

struct Fixed<F>(F);

impl<F: Fn(usize, u64) -> Result<Graph> + Send + Sync> Topology for Fixed<F> {
    fn graph(&self, nodes: usize, seed: u64) -> Result<Graph> {
        (self.0)(nodes, seed)
    }
}

/// The graphs.
pub fn graphs() -> Registry<GraphBuild> {
    let entries = vec![
        graph_entry("ring", "a cycle: two neighbours each", ring),
        graph_entry("path", "a line from the first node to the last", path),
        graph_entry("star", "node 0 in the middle, the others know it alone", star),
        graph_entry("complete", "every node is linked to every other", complete),
        graph_entry("grid", "a rectangle of rows and columns (a path if m is prime)", grid),
        graph_entry("torus", "a grid whose opposite borders are joined", torus),
        graph_entry("circulant", "a ring with neighbours at the given distances", circulant),
        graph_entry(
            "exponential",
            "neighbours at distances 1, 2, 4, 8, … along a ring",
            exponential,
        ),
        graph_entry("hypercube", "2^d nodes, neighbours differ in one binary digit", hypercube),
        graph_entry(
            "erdos-renyi",
            "every edge with probability p, drawn until connected",
            erdos_renyi,
        ),
        graph_entry("random-regular", "every node the same degree, else at random", random_regular),
        graph_entry("barbell", "two complete halves with a bridge between them", barbell),
        graph_entry("file", "read from graph.toml or an edge list", from_file),
        changing::one_peer(),
        changing::random_matching(),
        changing::random_edges(),
        changing::sequence(),
    ];
    Registry::new("graph", entries)
}

/// An entry of the registry: `build` makes the graph of m nodes from a seed.
pub fn graph_entry<P: Params>(
    name: impl Into<String>,
    about: impl Into<String>,
    build: fn(&P, usize, u64) -> Result<Graph>,
) -> Entry<GraphBuild> {
    let checked = move |params: &P, m: usize, seed: u64| {
        check_nodes(m)?;
        build(params, m, seed)
    };
    Entry::new(name, about, move |params: P| -> Arc<GraphBuild> {
        Arc::new(Fixed(move |m, seed| checked(&params, m, seed)))
    })
}

/// The error for a graph that cannot have this number of nodes, with a remedy.
fn ring(_: &NoParams, m: usize, _: u64) -> Result<Graph> {
    around(m, (m > 1).then_some(1))
}

fn path(_: &NoParams, m: usize, _: u64) -> Result<Graph> {
    Graph::from_edges(m, (1..m).map(|i| (i - 1, i)))
}

fn star(_: &NoParams, m: usize, _: u64) -> Result<Graph> {
    Graph::from_edges(m, (1..m).map(|i| (0, i)))
}

fn complete(_: &NoParams, m: usize, _: u64) -> Result<Graph> {
    complete_graph(m)
}

/// Every node is linked to every other.
pub(super) fn complete_graph(m: usize) -> Result<Graph> {
    Graph::from_edges(m, (0..m).flat_map(|j| (0..j).map(move |i| (i, j))))
}

params! {
    /// The shape of a grid or torus.
    #[derive(Copy)]
    struct Shape {
        /// Number of rows; without rows and columns the shape is the one nearest to a square.
        rows: Option<usize> = None, from_to(1, MAX_NODES);
        /// Number of columns.
        cols: Option<usize> = None, from_to(1, MAX_NODES);
    }
}

impl Shape {
    /// Rows and columns for m nodes.
    fn sides(self, m: usize) -> Result<(usize, usize)> {
        let nearest_to_square = || (1..=m.isqrt()).rev().find(|rows| m.is_multiple_of(*rows));
        let (rows, cols) = match (self.rows, self.cols) {
            (Some(rows), Some(cols)) => (rows, cols),
            (Some(rows), None) => (rows, m / rows),
            (None, Some(cols)) => (m / cols, cols),
            (None, None) => nearest_to_square().map(|r| (r, m / r)).expect("1 divides m"),
        };
        match rows * cols == m {
            true => Ok((rows, cols)),
            false => Err(impossible(
                format!("{rows} rows of {cols} are not {m} nodes"),
                "make `rows` times `cols` the number of nodes, or leave both out",
            )),
        }
    }
}

fn grid(shape: &Shape, m: usize, _: u64) -> Result<Graph> {
    let (_, cols) = shape.sides(m)?;
    let across = (0..m).filter(move |i| (i + 1) % cols != 0).map(|i| (i, i + 1));
    let down = (cols..m).map(|i| (i - cols, i));
    Graph::from_edges(m, across.chain(down))
}

fn torus(shape: &Shape, m: usize, _: u64) -> Result<Graph> {
    if m == 1 {
        return Graph::from_edges(1, []);
    }
    let (rows, cols) = shape.sides(m)?;
    if rows.min(cols) < 3 {
        return Err(impossible(
            format!("a torus has at least 3 rows and 3 columns; {m} nodes make {rows} by {cols}"),
            "take 9, 12, 15, 16, 18, … nodes, or `grid`",
        ));
    }
    let across = (0..m).map(|i| (i, i - i % cols + (i + 1) % cols));
    let down = (0..m).map(|i| (i, (i + cols) % m));
    Graph::from_edges(m, across.chain(down))
}

params! {
    /// The distances at which a node of a circulant graph has neighbours.
    struct Offsets {
        /// Distances along the ring, each between 1 and half the number of nodes.
        offsets: Vec<usize> = vec![1, 2];
    }
    check |Offsets { offsets }| {
        let distinct: BTreeSet<_> = offsets.iter().collect();
        let sane = distinct.len() == offsets.len()
            && !offsets.is_empty()
            && offsets.iter().all(|offset| (1..MAX_NODES).contains(offset));
        let shown = format!("{offsets:?}");
        Fault::unless(sane, "offsets", shown, "different distances from 1 to half the nodes")
    }
}

fn circulant(with: &Offsets, m: usize, _: u64) -> Result<Graph> {
    if m == 1 {
        return Graph::from_edges(1, []);
    }
    if let Some(&far) = with.offsets.iter().find(|&&offset| offset > m / 2) {
        return Err(impossible(
            format!("offset {far} is more than half way round {m} nodes"),
            format!("keep `offsets` between 1 and {}", m / 2),
        ));
    }
    around(m, with.offsets.iter().copied())
}

fn exponential(_: &NoParams, m: usize, _: u64) -> Result<Graph> {
    exponential_graph(m)
}

/// Neighbours at distances 1, 2, 4, 8, … along a ring.
pub(super) fn exponential_graph(m: usize) -> Result<Graph> {
    let powers = std::iter::successors(Some(1), |power| Some(2 * power)).take_while(|&p| p < m);
    // Links work both ways here, so a jump of 2^k forward is also one of m − 2^k.
    let offsets: BTreeSet<usize> = powers.map(|power| power.min(m - power)).collect();
    around(m, offsets)
}

fn hypercube(_: &NoParams, m: usize, _: u64) -> Result<Graph> {
    if !m.is_power_of_two() {
        let (below, above) = (1 << m.ilog2(), m.next_power_of_two());
        return Err(impossible(
            format!("a hypercube has 1, 2, 4, 8, … nodes, not {m}"),
            format!("take {below} or {above} nodes, or `exponential`, which works for any number"),
        ));
    }
    let up = |i: usize| (0..m.ilog2()).map(move |d| (i, i | 1 << d)).filter(|(i, j)| i != j);
    Graph::from_edges(m, (0..m).flat_map(up))
}

fn barbell(_: &NoParams, m: usize, _: u64) -> Result<Graph> {
    // If m is odd, the middle node is on the bridge.
    let half = m / 2;
    let clique =
        |from: usize| (0..half).flat_map(move |j| (0..j).map(move |i| (from + i, from + j)));
    let bridge = (half.max(1)..m - half + usize::from(m > 1)).map(|i| (i - 1, i));
    Graph::from_edges(m, clique(0).chain(clique(m - half)).chain(bridge))
}

fn from_file(with: &InFile, m: usize, _: u64) -> Result<Graph> {
    let graph = GraphFile::read(&with.path)?.graph;
    match graph.nodes() == m {
        true => Ok(graph),
        false => Err(Error::network(
            "network/wrong-size",
            format!("the graph has {} nodes, the experiment {m}", graph.nodes()),
        )
        .at(with.path.display().to_string())
        .hint(format!("set `nodes = {}`, or give another file", graph.nodes()))),
    }
}
