//! Who is linked to whom, and by which ways messages travel.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::engine::block;
use crate::network::Mixing;

/// The way of a message from a node to one neighbour, or to all of them: then `to` is the node itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
}

/// A node's end of a link.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Its edge.
    pub edge: usize,
    /// The way of what the node sends.
    pub out: usize,
    /// The way of what its neighbour sends.
    pub into: usize,
}

/// A way that crosses to or from another process, and the edges that need it there.
pub type Crossing = (usize, Vec<usize>);

/// What crosses between this process and another.
#[derive(Debug, Clone)]
pub struct Border {
    /// The other process.
    pub rank: usize,
    /// Ways out.
    pub out: Vec<Crossing>,
    /// Ways in.
    pub into: Vec<Crossing>,
}

/// The links of the nodes here, and the ways of their messages.
pub struct Map {
    /// The nodes here.
    pub here: Range<usize>,
    /// All edges i < j of the network.
    pub edges: Vec<(usize, usize)>,
    /// Ways: those of the nodes here first.
    pub ways: Vec<Way>,
    /// The number of ways of the nodes here.
    pub ours: usize,
    /// The edge of a way that is for one neighbour.
    pub edge_of: Vec<Option<usize>>,
    /// Whether a way of the nodes here crosses to another process.
    pub crosses: Vec<bool>,
    /// The links of each node here, in the order of its row of W.
    pub links: Vec<Vec<Link>>,
    /// The other processes.
    pub borders: Vec<Border>,
}

impl Map {
    /// The map of process `rank` out of `size`; `apart` if each neighbour has a way of its own.
    pub fn new(mixing: &Mixing, (size, rank): (usize, usize), apart: bool) -> Map {
        let m = mixing.nodes();
        let here = block(m, size, rank);
        let beside = |i: usize| mixing.row(i).iter().map(|&(j, _)| j).filter(move |&j| j != i);
        let edges: Vec<(usize, usize)> =
            (0..m).flat_map(|i| beside(i).filter(move |&j| i < j).map(move |j| (i, j))).collect();
        let edge = |i: usize, j: usize| position(&edges, i, j);
        let way = |from: usize, to: usize| Way { from, to: if apart { to } else { from } };
        let out = here.clone().flat_map(|i| beside(i).map(move |j| way(i, j)));
        let out: BTreeSet<Way> = out.collect();
        let far = |j: &usize| !here.contains(j);
        let into = here.clone().flat_map(|i| beside(i).filter(far).map(move |j| way(j, i)));
        let into: BTreeSet<Way> = into.collect();
        let ways: Vec<Way> = out.iter().chain(&into).copied().collect();
        let index: BTreeMap<Way, usize> = ways.iter().copied().zip(0..).collect();
        let link = |i: usize, j: usize| Link {
            edge: edge(i, j),
            out: index[&way(i, j)],
            into: index[&way(j, i)],
        };
        let links = here.clone().map(|i| beside(i).map(|j| link(i, j)).collect()).collect();
        let mut borders = Vec::new();
        for other in (0..size).filter(|&other| other != rank) {
            let there = block(m, size, other);
            let (mut out, mut into) = (BTreeMap::new(), BTreeMap::new());
            for i in here.clone() {
                for j in beside(i).filter(|j| there.contains(j)) {
                    let edge = edge(i, j);
                    out.entry(way(i, j)).or_insert_with(Vec::new).push(edge);
                    into.entry(way(j, i)).or_insert_with(Vec::new).push(edge);
                }
            }
            let crossings = |all: BTreeMap<Way, Vec<usize>>| -> Vec<Crossing> {
                all.into_iter().map(|(way, edges)| (index[&way], edges)).collect()
            };
            if !out.is_empty() {
                borders.push(Border { rank: other, out: crossings(out), into: crossings(into) });
            }
        }
        let ours = out.len();
        let mut crosses = vec![false; ours];
        let outs = borders.iter().flat_map(|border| &border.out);
        outs.for_each(|&(way, _)| crosses[way] = true);
        let one = |way: &Way| (way.from != way.to).then(|| edge(way.from, way.to));
        let edge_of = ways.iter().map(one).collect();
        Map { here, ways, ours, edge_of, crosses, links, borders, edges }
    }

    /// The number of the edge between two neighbours.
    pub fn edge(&self, i: usize, j: usize) -> usize {
        position(&self.edges, i, j)
    }

    /// Whether a node here has neighbours in other processes.
    pub fn is_far(&self, i: usize) -> bool {
        self.links[i].iter().any(|link| link.into >= self.ours)
    }

    /// The ways whose content a node here knows: its own, then its neighbours'.
    pub fn known(&self, i: usize) -> Vec<usize> {
        let mut own: Vec<usize> = self.links[i].iter().map(|link| link.out).collect();
        own.dedup();
        own.extend(self.links[i].iter().map(|link| link.into));
        own
    }
}

/// The place of an edge in the list of all, which is sorted, as rows of W are.
fn position(edges: &[(usize, usize)], i: usize, j: usize) -> usize {
    edges.binary_search(&(i.min(j), i.max(j))).expect("neighbours share an edge")
}
