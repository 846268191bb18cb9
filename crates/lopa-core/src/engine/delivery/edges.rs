//! The edges of the network, and the replicas that their ends hold of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::buffers::Address;
use super::crossings::{self, Crossing};
use crate::engine::transport::block;
use crate::network::Mixing;
use crate::network::outbox::Round;

/// A replica of a node, held by one neighbour, or the same by all of them: then `by` is the node
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica {
    /// The sender.
    pub of: usize,
    /// The receiver.
    pub by: usize,
}

/// A node's end of an edge.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// The edge.
    pub edge: usize,
    /// The replica of this node that the neighbour holds.
    pub out: usize,
    /// The replica of the neighbour that this node holds.
    pub into: usize,
}

/// The replicas that are updated by messages between this process and another, and the edges of
/// each.
#[derive(Debug)]
pub struct Border {
    /// The other process.
    pub rank: usize,
    /// Of nodes of this process.
    pub out: Vec<(usize, Vec<usize>)>,
    /// Of nodes of the other process.
    pub into: Vec<(usize, Vec<usize>)>,
}

/// The edges of the network, and the replicas of the nodes of this process and of their neighbours.
pub struct Edges {
    /// The number of nodes of the network.
    pub nodes: usize,
    /// The nodes here.
    pub here: Range<usize>,
    /// All edges i < j of the network.
    pub all: Vec<(usize, usize)>,
    /// Replicas: those of the nodes of this process first.
    pub replicas: Vec<Replica>,
    /// The number of replicas of the nodes of this process.
    pub ours: usize,
    /// The edge of a replica that one neighbour holds.
    pub edge_of: Vec<Option<usize>>,
    /// Whether a replica of a node of this process is held in another process.
    pub crosses: Vec<bool>,
    /// The edge ends of each node of this process, in the order of its row of W.
    pub ends: Vec<Vec<End>>,
    /// The other processes.
    pub borders: Vec<Border>,
}

impl Edges {
    /// The edges of process `rank` out of `size`; `apart` if each neighbour holds its own replica.
    pub fn new(mixing: &Mixing, (size, rank): (usize, usize), apart: bool) -> Edges {
        let m = mixing.nodes();
        let here = block(m, size, rank);
        let beside = |i: usize| mixing.row(i).iter().map(|&(j, _)| j).filter(move |&j| j != i);
        let all: Vec<(usize, usize)> =
            (0..m).flat_map(|i| beside(i).filter(move |&j| i < j).map(move |j| (i, j))).collect();
        let edge = |i: usize, j: usize| position(&all, i, j);
        let replica = |of: usize, by: usize| Replica { of, by: if apart { by } else { of } };
        let out = here.clone().flat_map(|i| beside(i).map(move |j| replica(i, j)));
        let out: BTreeSet<Replica> = out.collect();
        let far = |j: &usize| !here.contains(j);
        let into = here.clone().flat_map(|i| beside(i).filter(far).map(move |j| replica(j, i)));
        let into: BTreeSet<Replica> = into.collect();
        let replicas: Vec<Replica> = out.iter().chain(&into).copied().collect();
        let index: BTreeMap<Replica, usize> = replicas.iter().copied().zip(0..).collect();
        let end = |i: usize, j: usize| End {
            edge: edge(i, j),
            out: index[&replica(i, j)],
            into: index[&replica(j, i)],
        };
        let ends = here.clone().map(|i| beside(i).map(|j| end(i, j)).collect()).collect();
        let crossing = |all: Vec<Crossing>| {
            let mut found: BTreeMap<Replica, Vec<usize>> = BTreeMap::new();
            for (of, by) in all {
                by.into_iter()
                    .for_each(|by| found.entry(replica(of, by)).or_default().push(edge(of, by)));
            }
            found.into_iter().map(|(replica, edges)| (index[&replica], edges)).collect()
        };
        let border = |border: crossings::Border| Border {
            rank: border.rank,
            out: crossing(border.out),
            into: crossing(border.into),
        };
        let borders: Vec<Border> =
            crossings::borders(mixing, size, rank).into_iter().map(border).collect();
        let ours = out.len();
        let mut crosses = vec![false; ours];
        let outs = borders.iter().flat_map(|border| &border.out);
        outs.for_each(|&(replica, _)| crosses[replica] = true);
        let one = |held: &Replica| (held.of != held.by).then(|| edge(held.of, held.by));
        let edge_of = replicas.iter().map(one).collect();
        Edges { nodes: m, here, replicas, ours, edge_of, crosses, ends, borders, all }
    }

    /// The address of the draws for a replica's updates.
    pub fn address(&self, seed: u64, Round { k, e }: Round, replica: usize) -> Address {
        let Replica { of, by } = self.replicas[replica];
        Address { seed, stream: of * self.nodes + by, k, e }
    }

    /// The number of the edge between two neighbours.
    pub fn edge(&self, i: usize, j: usize) -> usize {
        position(&self.all, i, j)
    }

    /// Whether a node of this process has neighbours in other processes.
    pub fn is_far(&self, i: usize) -> bool {
        self.ends[i].iter().any(|end| end.into >= self.ours)
    }

    /// The replicas that a node of this process holds: its own, then its neighbours'.
    pub fn known(&self, i: usize) -> Vec<usize> {
        let mut own: Vec<usize> = self.ends[i].iter().map(|end| end.out).collect();
        own.dedup();
        own.extend(self.ends[i].iter().map(|end| end.into));
        own
    }
}

/// The index of an edge in the list of all, which is sorted, like rows of W.
fn position(edges: &[(usize, usize)], i: usize, j: usize) -> usize {
    edges.binary_search(&(i.min(j), i.max(j))).expect("neighbours share an edge")
}
