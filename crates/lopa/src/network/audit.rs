//! What peers can reconstruct about each other from the messages they exchange anyway.
//!
//! A peer a sees the messages of its closed neighbourhood N\[a\]. With LoPA-LG, node i sends x_i,
//! and y_i follows from the recursion of x_i once x_j is known for all j in N\[i\]: whoever sees all
//! of N\[i\] reconstructs node i's stochastic hypergradient of every round. With LoPA-GT, node i
//! sends y_i as well: the same peers reconstruct it, and each neighbour i of a reveals the sum
//! Σ_j w_ij x_j, a linear equation in the x_j that a does not see; some of these have a unique
//! solution.

use serde::Serialize;

use super::{Graph, Mixing};

/// Smaller coefficients count as zero.
const ZERO: f64 = 1e-12;

/// What peers can reconstruct about each node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// Each node.
    pub nodes: Vec<Exposure>,
    /// Links whose loss disconnects the network.
    pub bridges: Vec<(usize, usize)>,
    /// Messages per communication round: two per link.
    pub messages: usize,
}

/// What peers can reconstruct about one node.
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
        let mut nodes: Vec<Exposure> = (0..graph.nodes()).map(|i| exposure(&near, i)).collect();
        for peer in 0..graph.nodes() {
            for node in solved(graph, mixing, &near[peer], peer) {
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

fn exposure(near: &[Vec<usize>], i: usize) -> Exposure {
    let mut found = Exposure::default();
    let sees = |a: usize, j: usize| near[a].binary_search(&j).is_ok();
    // At least one of them must see node i itself.
    for &a in near[i].iter().filter(|&&a| a != i) {
        let unseen: Vec<usize> = near[i].iter().copied().filter(|&j| !sees(a, j)).collect();
        let Some(&first) = unseen.first() else {
            found.one.push(a);
            continue;
        };
        let other = |b: usize| b != i && b != a && unseen.iter().all(|&j| sees(b, j));
        let others = near[first].iter().copied().filter(|&b| other(b));
        found.pairs.extend(others.map(|b| (a.min(b), a.max(b))));
    }
    found.pairs.retain(|(a, b)| !found.one.contains(a) && !found.one.contains(b));
    found.pairs.sort_unstable();
    found.pairs.dedup();
    found
}

/// The nodes that a peer does not see, but whose x its neighbours' equations determine.
fn solved(graph: &Graph, mixing: &Mixing, near: &[usize], peer: usize) -> Vec<usize> {
    let unseen = |&(j, _): &(usize, f64)| near.binary_search(&j).is_err();
    let row = |&i: &usize| -> Vec<(usize, f64)> {
        mixing.row(i).iter().copied().filter(unseen).collect()
    };
    let sparse: Vec<Vec<(usize, f64)>> = graph.neighbours(peer).iter().map(row).collect();
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
