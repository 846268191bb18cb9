//! The information about each other that peers can reconstruct from the messages they exchange.
//!
//! A peer a sees the messages of its closed neighbourhood N\[a\]. With LoPA-LG, node i sends x_i,
//! and y_i follows from the recursion of x_i once x_j is known for all j in N\[i\]: a peer that
//! sees all of N\[i\] reconstructs node i's stochastic hypergradient of every round. With LoPA-GT,
//! node i sends y_i as well: the same peers reconstruct it, and each neighbour i of a reveals the
//! sum Σ_j w_ij x_j, a linear equation in the x_j that a does not see; some of these have a unique
//! solution.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::{Graph, Mixing};

/// Smaller coefficients count as zero.
const ZERO: f64 = 1e-12;

/// The information about each node that peers can reconstruct.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// Each node.
    pub nodes: Vec<Exposure>,
    /// Links whose loss disconnects the network.
    pub bridges: Vec<(usize, usize)>,
    /// Messages per communication round: two per link.
    pub messages: usize,
}

/// The information about one node that peers can reconstruct.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Exposure {
    /// Peers that can reconstruct its hypergradient alone.
    pub one: Vec<usize>,
    /// Pairs of peers that can reconstruct it together, but not alone.
    pub pairs: Vec<(usize, usize)>,
    /// Peers that are not its neighbours, but can compute its x if gradients are tracked.
    pub two_hops: Vec<usize>,
}

impl Audit {
    /// Audits every node of a network.
    pub fn new(graph: &Graph, mixing: &Mixing) -> Audit {
        let near: Vec<Vec<usize>> = (0..graph.nodes()).map(|i| closed(graph, i)).collect();
        let largest = near.iter().fold([0; 2], |[first, second], nodes| {
            let now = nodes.len();
            [first.max(now), second.max(now.min(first))]
        });
        let exposed = |i| exposure(&near, largest, i);
        let mut nodes: Vec<Exposure> = (0..graph.nodes()).map(exposed).collect();
        for peer in 0..graph.nodes() {
            for node in solved(graph, mixing, &near, peer) {
                nodes[node].two_hops.push(peer);
            }
        }
        Audit { nodes, bridges: graph.bridges(), messages: 2 * graph.edges().count() }
    }

    /// The number of nodes whose hypergradient one peer can reconstruct, whose hypergradient some
    /// pair can, and whose x a peer two hops away can.
    pub fn counts(&self) -> [usize; 3] {
        let count = |of: fn(&Exposure) -> bool| self.nodes.iter().filter(|node| of(node)).count();
        [
            count(|node| !node.one.is_empty()),
            count(|node| !node.one.is_empty() || !node.pairs.is_empty()),
            count(|node| !node.two_hops.is_empty()),
        ]
    }
}

/// N\[i\]: node i and its neighbours, in increasing order.
fn closed(graph: &Graph, i: usize) -> Vec<usize> {
    let mut nodes = graph.neighbours(i).to_vec();
    nodes.insert(nodes.partition_point(|&j| j < i), i);
    nodes
}

fn exposure(near: &[Vec<usize>], largest: [usize; 2], i: usize) -> Exposure {
    let mut found = Exposure::default();
    let all = near[i].len();
    // A helper other than i sees at most this many nodes: the centre of a star needs no search.
    let most = if all == largest[0] { largest[1] } else { largest[0] };
    let mut unseen_by: HashMap<usize, Vec<usize>> = HashMap::new();
    // At least one of them must see node i itself.
    for &a in near[i].iter().filter(|&&a| a != i) {
        if all > near[a].len() + most {
            continue;
        }
        let unseen = apart(&near[i], &near[a]);
        let Some(&first) = unseen.first() else {
            found.one.push(a);
            continue;
        };
        for &b in near[first].iter().filter(|&&b| b != i && b != a) {
            if near[b].len() < unseen.len() {
                continue;
            }
            let other = unseen_by.entry(b).or_insert_with(|| apart(&near[i], &near[b]));
            if disjoint(&unseen, other) {
                found.pairs.push((a.min(b), a.max(b)));
            }
        }
    }
    let one: HashSet<usize> = found.one.iter().copied().collect();
    found.pairs.retain(|(a, b)| !one.contains(a) && !one.contains(b));
    found.pairs.sort_unstable();
    found.pairs.dedup();
    found
}

/// The nodes of the first list that are not in the second; both increase.
fn apart(these: &[usize], those: &[usize]) -> Vec<usize> {
    if 16 * these.len() < those.len() {
        // The centre of a star is not read again for every leaf.
        return these.iter().copied().filter(|node| those.binary_search(node).is_err()).collect();
    }
    let mut those = those.iter().peekable();
    let mut is_there = |i: usize| {
        while those.next_if(|&&j| j < i).is_some() {}
        those.peek().is_some_and(|&&j| j == i)
    };
    these.iter().copied().filter(|&i| !is_there(i)).collect()
}

/// Whether two increasing lists have no node in common.
fn disjoint(these: &[usize], those: &[usize]) -> bool {
    let (short, long) = if these.len() < those.len() { (these, those) } else { (those, these) };
    short.iter().all(|node| long.binary_search(node).is_err())
}

/// How many nodes of N\[i\] a peer does not see, at least.
fn unseen_at_least(near: &[Vec<usize>], i: usize, peer: usize) -> usize {
    near[i].len().saturating_sub(near[peer].len())
}

/// The nodes that a peer does not see, but whose x its neighbours' equations determine.
fn solved(graph: &Graph, mixing: &Mixing, near: &[Vec<usize>], peer: usize) -> Vec<usize> {
    let seen = &near[peer];
    // The equation of a neighbour with two unknowns that no other has determines nothing. The
    // equation of a hub is of this kind for most of its neighbours, and too long to be built for
    // each of them.
    let mut ways: Vec<usize> = graph.neighbours(peer).to_vec();
    let unknowns_of = |i: usize| near[i].len(); // at most
    let mut others: usize = ways.iter().map(|&i| unknowns_of(i)).sum();
    ways.sort_by_key(|&i| std::cmp::Reverse(near[i].len()));
    let mut skipped = 0;
    for &i in &ways {
        let rest = others - unknowns_of(i);
        if unseen_at_least(near, i, peer) < rest + 2 {
            break;
        }
        (others, skipped) = (rest, skipped + 1);
    }
    let mut ways = ways.split_off(skipped);
    ways.sort_unstable();
    let unseen = |&(j, _): &(usize, f64)| seen.binary_search(&j).is_err();
    let row = |&i: &usize| -> Vec<(usize, f64)> {
        mixing.row(i).iter().copied().filter(unseen).collect()
    };
    let sparse: Vec<Vec<(usize, f64)>> = ways.iter().map(row).collect();
    let mut unknown: Vec<usize> = sparse.iter().flatten().map(|&(j, _)| j).collect();
    unknown.sort_unstable();
    unknown.dedup();
    let dense = |row: &Vec<(usize, f64)>| {
        let mut dense = vec![0.0; unknown.len()];
        for (j, w) in row {
            dense[unknown.binary_search(j).expect("it was collected")] = *w;
        }
        dense
    };
    let mut rows: Vec<Vec<f64>> = sparse.iter().map(dense).collect();
    reduce(&mut rows);
    let alone = |row: &Vec<f64>| {
        let mut entries = row.iter().enumerate().filter(|(_, w)| **w != 0.0);
        entries.next().filter(|_| entries.next().is_none()).map(|(at, _)| unknown[at])
    };
    rows.iter().filter_map(alone).collect()
}

/// Gauss-Jordan elimination: an unknown is determined if a row contains it alone.
fn reduce(rows: &mut [Vec<f64>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let mut done = 0;
    for column in 0..columns {
        let size = |row: &Vec<f64>| row[column].abs();
        let best = (done..rows.len()).max_by(|&a, &b| size(&rows[a]).total_cmp(&size(&rows[b])));
        let Some(pivot) = best.filter(|&row| rows[row][column].abs() > ZERO) else { continue };
        rows.swap(done, pivot);
        let lead = rows[done][column];
        rows[done].iter_mut().for_each(|w| *w /= lead);
        let lead = rows[done].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != done) {
            let factor = row[column];
            for (w, lead) in row.iter_mut().zip(&lead) {
                *w -= factor * lead;
                if w.abs() < ZERO {
                    *w = 0.0;
                }
            }
        }
        done += 1;
    }
}
