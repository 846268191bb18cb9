//! Random graphs.

use super::graph::{Graph, around, check_edges, impossible};
use crate::error::{Error, Fault, Result};
use crate::math::portable::{ln, ln_1p, powf};
use crate::math::random::{Purpose, Stream};
use crate::params;

/// Maximum number of draws of a connected graph.
const DRAWS: u64 = 1000;

/// TOML integers end here.
const MAX_SEED: u64 = i64::MAX as u64;

params! {
    /// Parameters of an Erdős–Rényi graph.
    pub(super) struct ErdosRenyi {
        /// Probability of each edge.
        p: f64 = 0.4, weight;
        /// A seed for the graph alone; by default the run's seed.
        seed: Option<u64> = None, from_to(0, MAX_SEED);
    }
}

pub(super) fn erdos_renyi(with: &ErdosRenyi, m: usize, seed: u64) -> Result<Graph> {
    let &ErdosRenyi { p, seed: own } = with;
    let threshold = ln(m as f64) / m as f64;
    let hint = format!("take p above ln(m)/m = {threshold:.3}, preferably twice that");
    // With n isolated nodes expected, a draw is connected with probability about e^−n.
    let isolated = m as f64 * powf(1.0 - p, m as f64 - 1.0);
    if m > 1 && isolated > 20.0 {
        return Err(Error::network(
            "network/no-connected-draw",
            format!("with p = {p}, about {isolated:.0} of {m} nodes would have no neighbour"),
        )
        .hint(hint));
    }
    let draw = |stream: &mut Stream| Graph::from_edges(m, bernoulli_pairs(m, p, stream));
    until_connected(own.unwrap_or(seed), draw, &format!("erdos-renyi graph with p = {p}"), hint)
}

/// Every pair with probability p: the gaps between pairs taken are geometric, so that the cost
/// grows with the edges and not with all pairs.
fn bernoulli_pairs(m: usize, p: f64, stream: &mut Stream) -> impl Iterator<Item = (usize, usize)> {
    // 64 bits on every processor, so that a large gap ends the draw on all alike.
    let (m, mut i, mut column) = (m as u64, 0u64, 0u64);
    std::iter::from_fn(move || {
        let gap = ln(1.0 - stream.unit()) / ln_1p(-p);
        // `as` saturates, and a gap past the last pair ends the draw.
        column = column.saturating_add(gap as u64);
        while i + 1 < m && column >= m - 1 - i {
            column -= m - 1 - i;
            i += 1;
        }
        (i + 1 < m).then(|| {
            column += 1;
            (i as usize, (i + column) as usize)
        })
    })
}

params! {
    /// Parameters of a random regular graph.
    pub(super) struct RandomRegular {
        /// Neighbours per node.
        degree: usize = 4;
        /// A seed for the graph alone; by default the run's seed.
        seed: Option<u64> = None, from_to(0, MAX_SEED);
    }
    check |with| {
        let sane = with.degree < super::graph::MAX_NODES;
        Fault::unless(sane, "degree", with.degree, "below the number of nodes")
    }
}

pub(super) fn random_regular(with: &RandomRegular, m: usize, seed: u64) -> Result<Graph> {
    let &RandomRegular { degree, seed: own } = with;
    if degree >= m {
        return Err(impossible(
            format!("{m} nodes cannot have {degree} neighbours each"),
            format!("take `degree` below {m}, or more than {degree} nodes"),
        ));
    }
    if !(m * degree).is_multiple_of(2) {
        return Err(impossible(
            format!("{m} nodes of degree {degree} have an odd number of edge ends, {}", m * degree),
            "make the number of nodes or the degree even",
        ));
    }
    check_edges(m * degree / 2)?;
    let middle = (!degree.is_multiple_of(2)).then_some(m / 2);
    let regular = around(m, (1..=degree / 2).chain(middle))?;
    let draw = |stream: &mut Stream| Graph::from_edges(m, swapped(&regular, degree, stream));
    let what = format!("random-regular graph of degree {degree}");
    until_connected(own.unwrap_or(seed), draw, &what, "take a degree of 3 or more".into())
}

/// Swaps the ends of random pairs of edges, ten times per edge: degrees stay, everything else is
/// randomised.
fn swapped(graph: &Graph, degree: usize, stream: &mut Stream) -> Vec<(usize, usize)> {
    let mut edges: Vec<_> = graph.edges().collect();
    // Rows of neighbours in any order: with four neighbours, ten times as fast as a set of all
    // edges.
    let mut near: Vec<u32> =
        (0..graph.nodes()).flat_map(|i| graph.neighbours(i).iter().map(|&j| j as u32)).collect();
    let sorted = |i: usize, j: usize| (i.min(j), i.max(j));
    for _ in 0..10 * edges.len() {
        let (a, b) = (stream.below(edges.len()), stream.below(edges.len()));
        let ((i, j), (mut k, mut l)) = (edges[a], edges[b]);
        if stream.below(2) == 1 {
            (k, l) = (l, k);
        }
        let joined = |i: usize, j: usize| near[i * degree..][..degree].contains(&(j as u32));
        if i == l || k == j || joined(i, l) || joined(k, j) {
            continue;
        }
        for (of, old, new) in [(i, j, l), (j, i, k), (k, l, j), (l, k, i)] {
            let row = &mut near[of * degree..][..degree];
            let at = row.iter().position(|&n| n as usize == old).expect("they share an edge");
            row[at] = new as u32;
        }
        (edges[a], edges[b]) = (sorted(i, l), sorted(k, j));
    }
    edges
}

fn until_connected(
    seed: u64,
    draw: impl Fn(&mut Stream) -> Result<Graph>,
    what: &str,
    hint: String,
) -> Result<Graph> {
    let mut stream = Stream::new(seed, Purpose::Graph, 0);
    for k in 0..DRAWS {
        stream.seek(k, 0);
        let graph = draw(&mut stream)?;
        if graph.is_connected() {
            return Ok(graph);
        }
    }
    Err(Error::network(
        "network/no-connected-draw",
        format!("none of {DRAWS} draws of the {what} was connected"),
    )
    .hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_equally_likely() {
        let mut stream = Stream::new(3, Purpose::Graph, 0);
        let (m, p, draws) = (6, 0.3, 20_000);
        let mut hits = vec![vec![0.0; m]; m];
        for _ in 0..draws {
            bernoulli_pairs(m, p, &mut stream).for_each(|(i, j)| hits[i][j] += 1.0);
        }
        // Five standard deviations of a binomial frequency.
        let margin = 5.0 * (p * (1.0 - p) / f64::from(draws)).sqrt();
        for (i, j) in (0..m).flat_map(|j| (0..j).map(move |i| (i, j))) {
            let frequency = hits[i][j] / f64::from(draws);
            assert!((frequency - p).abs() < margin, "({i}, {j}): {frequency}");
        }
    }

    #[test]
    fn p_one_is_the_complete_graph() {
        let graph = erdos_renyi(&ErdosRenyi { p: 1.0, seed: None }, 7, 0).unwrap();
        assert_eq!(graph.edges().count(), 21);
    }

    #[test]
    fn regular_graphs_are_regular_and_differ_by_seed() {
        for (m, degree) in [(1, 0), (2, 1), (8, 2), (8, 3), (9, 4), (10, 9), (50, 5)] {
            let graph = random_regular(&RandomRegular { degree, seed: None }, m, 5).unwrap();
            assert!((0..m).all(|i| graph.degree(i) == degree) && graph.is_connected());
        }
        let draw =
            |seed| random_regular(&RandomRegular { degree: 4, seed: None }, 30, seed).unwrap();
        assert!(draw(1) == draw(1) && draw(1) != draw(2));
    }

    #[test]
    fn an_own_seed_wins() {
        let draw = |own, seed| erdos_renyi(&ErdosRenyi { p: 0.4, seed: own }, 12, seed).unwrap();
        assert_eq!(draw(Some(7), 1), draw(Some(7), 2));
        assert_eq!(draw(Some(7), 1), draw(None, 7));
        assert_ne!(draw(None, 1), draw(None, 2));
    }
}
