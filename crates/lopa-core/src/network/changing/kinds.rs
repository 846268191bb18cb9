//! The changing graphs that files choose by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::drawn::{Drawn, LONGEST};
use super::{Rounds, fixed_weights, single};
use crate::config::{Choice, Entry, NoParams, Params, Registry};
use crate::error::{Error, Fault, Result};
use crate::network::families::{Topology, complete_graph, exponential_graph, graphs};
use crate::network::graph::check_nodes;
use crate::network::{Graph, GraphBuild, Mixing, Whole};
use crate::params;

/// The most graphs in a sequence, and the most rounds for which each stays.
const MOST: u64 = 10_000;

/// An entry whose parameters are the graph itself.
fn entry<P: Params + Topology>(name: &str, about: &str) -> Entry<GraphBuild> {
    Entry::new(name, about, |params: P| -> Arc<GraphBuild> { Arc::new(params) })
}

pub fn one_peer() -> Entry<GraphBuild> {
    let about = "changing: one neighbour a round, at distances 1, 2, 4, 8, … in turn";
    Entry::new("one-peer-exponential", about, |_: NoParams| -> Arc<GraphBuild> {
        Arc::new(OnePeer)
    })
}

pub fn random_matching() -> Entry<GraphBuild> {
    entry::<Matching>("random-matching", "changing: nodes in pairs, drawn in every round")
}

pub fn random_edges() -> Entry<GraphBuild> {
    let about = "changing: every edge of a graph with probability p in every round";
    entry::<Edges>("random-edges", about)
}

pub fn sequence() -> Entry<GraphBuild> {
    entry::<Sequence>("sequence", "changing: several graphs in turn, each for some rounds")
}

/// One neighbour per round. With 2^d nodes, node i meets i ⊕ 2^t; otherwise it sends to i + 2^t.
struct OnePeer;

impl Topology for OnePeer {
    fn graph(&self, m: usize, _: u64) -> Result<Graph> {
        check_nodes(m)?;
        match m.is_power_of_two() {
            true => Graph::from_edges(m, powers(m).flat_map(|p| meetings(m, p))),
            false => exponential_graph(m),
        }
    }

    fn rounds(&self, whole: &Whole) -> Result<Option<Rounds>> {
        let m = whole.graph.nodes();
        let weight = single(whole.weights, m)?;
        let round = |power: usize| match m.is_power_of_two() {
            true => {
                let graph = Graph::from_edges(m, meetings(m, power))?;
                Mixing::on(&graph, |_, _| weight)
            }
            false => Mixing::doubly(
                (0..m).map(|i| vec![(i, 1.0 - weight), ((i + m - power) % m, weight)]),
            ),
        };
        let mut each: Vec<Mixing> = powers(m).map(round).collect::<Result<_>>()?;
        if each.is_empty() {
            each.push(whole.mixing.clone()); // a node alone
        }
        Rounds::cycle(each, 1).map(Some)
    }

    fn changes(&self) -> bool {
        true
    }
}

/// 1, 2, 4, … below m.
fn powers(m: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |power| Some(2 * power)).take_while(move |&power| power < m)
}

/// The pairs (i, i ⊕ power).
fn meetings(m: usize, power: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..m).filter(move |i| i & power == 0).map(move |i| (i, i | power))
}

/// A graph inside another: its name, or a table with its name and parameters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "invalid graph: write its name, or a table with `name` and its parameters"
)]
enum Inner {
    /// Its name.
    Name(String),
    /// Its name and parameters.
    Table(#[schemars(with = "Named")] Table),
}

/// Stands for a table with a name in the schema.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Named {
    /// Its name.
    name: String,
}

impl Inner {
    /// The graph that it names; changing ones cannot be inside others.
    fn choose(&self, registry: &Registry<GraphBuild>) -> Result<Choice<GraphBuild>> {
        let (name, params) = match self {
            Inner::Name(name) => (name.clone(), Table::new()),
            Inner::Table(table) => {
                let mut params = table.clone();
                let name = params.remove("name");
                let name = name.as_ref().and_then(toml::Value::as_str).ok_or_else(|| {
                    Error::config("config/missing-key", "which graph? `name` is missing in a table")
                        .hint("write `{ name = \"ring\" }`, or `\"ring\"`")
                })?;
                (name.to_string(), params)
            }
        };
        let choice =
            registry.choose(&name, &params).map_err(|error| Error { place: None, ..error })?;
        match choice.build.changes() {
            false => Ok(choice),
            true => Err(Error::config(
                "network/nested-rounds",
                format!("`{name}` changes by itself and cannot be part of another changing graph"),
            )
            .hint("name fixed graphs: `lopa list graphs`")),
        }
    }
}

/// A graph that was chosen: see [`Topology::within`].
type Chosen = Option<Choice<GraphBuild>>;

/// The graph that was chosen; without a registry, that of the library.
fn chosen(known: &Chosen, inner: &Inner) -> Result<Choice<GraphBuild>> {
    known.clone().map_or_else(|| inner.choose(&graphs()), Ok)
}

params! {
    /// Pairs of nodes, drawn in every round.
    struct Matching {
        /// Pairs are neighbours in this graph; by default, any two nodes may meet.
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<Inner> = None;
        /// Rounds over which all nodes are connected; by default the shortest power of two that serves.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64> = None, from_to(1, LONGEST);
        #[serde(skip)]
        chosen: Chosen = None;
    }
}

impl Topology for Matching {
    fn graph(&self, m: usize, seed: u64) -> Result<Graph> {
        match &self.base {
            Some(base) => chosen(&self.chosen, base)?.build.graph(m, seed),
            None => complete_graph(m),
        }
    }

    fn rounds(&self, whole: &Whole) -> Result<Option<Rounds>> {
        let m = whole.graph.nodes();
        let weight = single(whole.weights, m)?;
        let base = self.base.as_ref().map(|_| whole.graph.clone());
        let drawn = Drawn::matching(whole.seed, base, m, weight);
        Rounds::drawn(drawn, self.window, 1.0 - 2.0 * weight).map(Some)
    }

    fn changes(&self) -> bool {
        true
    }

    fn within(&self, registry: &Registry<GraphBuild>) -> Result<Option<Arc<GraphBuild>>> {
        let chosen = self.base.as_ref().map(|base| base.choose(registry)).transpose()?;
        Ok(Some(Arc::new(Matching { chosen, ..self.clone() })))
    }
}

params! {
    /// Every edge of a graph with probability p, in every round.
    struct Edges {
        /// The graph with all edges.
        base: Inner = Inner::Name("complete".into()), required;
        /// Probability of each edge in a round.
        p: f64 = 0.5, weight;
        /// Rounds over which all nodes are connected; by default the shortest power of two that serves.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64> = None, from_to(1, LONGEST);
        #[serde(skip)]
        chosen: Chosen = None;
    }
}

impl Topology for Edges {
    fn graph(&self, m: usize, seed: u64) -> Result<Graph> {
        chosen(&self.chosen, &self.base)?.build.graph(m, seed)
    }

    fn rounds(&self, whole: &Whole) -> Result<Option<Rounds>> {
        let drawn = Drawn::edges(whole.seed, whole.mixing, self.p);
        // W_r = I − L_r with L_r ≤ L: eigenvalues can only grow.
        let lambda_min = whole.mixing.eigenvalues().1;
        Rounds::drawn(drawn, self.window, lambda_min).map(Some)
    }

    fn changes(&self) -> bool {
        true
    }

    fn within(&self, registry: &Registry<GraphBuild>) -> Result<Option<Arc<GraphBuild>>> {
        let chosen = Some(self.base.choose(registry)?);
        Ok(Some(Arc::new(Edges { chosen, ..self.clone() })))
    }
}

params! {
    /// Several graphs in turn.
    struct Sequence {
        /// The graphs, in their order; after the last comes the first.
        graphs: Vec<Inner> = Vec::new(), required;
        /// Rounds for which each stays.
        every: u64 = 1, from_to(1, MOST);
        #[serde(skip)]
        chosen: Vec<Chosen> = Vec::new();
    }
    check |sequence| {
        let count = sequence.graphs.len();
        let sane = (1..=MOST).contains(&(count as u64));
        Fault::unless(sane, "graphs", format!("{count} graphs"), "a list of 1 to 10000 graphs")
    }
}

impl Sequence {
    fn parts(&self, m: usize, seed: u64) -> Result<Vec<Graph>> {
        let known = self.chosen.iter().cloned().chain(std::iter::repeat(None));
        let part = |(at, (inner, known)): (u64, (&Inner, Chosen))| {
            // Random graphs of the same kind differ, unless they have seeds of their own.
            chosen(&known, inner)?.build.graph(m, seed.wrapping_add(at << 40))
        };
        (0..).zip(self.graphs.iter().zip(known)).map(part).collect()
    }
}

impl Topology for Sequence {
    fn graph(&self, m: usize, seed: u64) -> Result<Graph> {
        let parts = self.parts(m, seed)?;
        let union: BTreeSet<_> = parts.iter().flat_map(Graph::edges).collect();
        Graph::from_edges(m, union)
    }

    fn rounds(&self, whole: &Whole) -> Result<Option<Rounds>> {
        let parts = self.parts(whole.graph.nodes(), whole.seed)?;
        let each = parts.iter().map(|graph| {
            let mixing = (whole.weights)(graph).map_err(|error| fixed_weights(&error))?;
            mixing.check_support(graph)?;
            Ok(mixing)
        });
        Rounds::cycle(each.collect::<Result<_>>()?, self.every).map(Some)
    }

    fn changes(&self) -> bool {
        true
    }

    fn within(&self, registry: &Registry<GraphBuild>) -> Result<Option<Arc<GraphBuild>>> {
        let chosen = self.graphs.iter().map(|inner| inner.choose(registry).map(Some));
        let chosen = chosen.collect::<Result<_>>()?;
        Ok(Some(Arc::new(Sequence { chosen, ..self.clone() })))
    }
}
