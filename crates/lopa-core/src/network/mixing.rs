//! The mixing matrix W: how much weight a node gives to itself and to each neighbour.

use super::graph::{Graph, check_nodes};
use super::names;
use crate::error::{Error, Result};

/// How far W may be from symmetric, and its rows from summing to 1.
const TOLERANCE: f64 = 1e-9;

/// Smaller weights are zero up to rounding.
const ROUNDING: f64 = 1e-12;

/// A symmetric, doubly stochastic matrix W, stored as sparse rows. Some rounds of a changing graph
/// are only doubly stochastic.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixing {
    rows: Vec<Vec<(usize, f64)>>,
}

impl Mixing {
    /// The matrix given row by row; it must be symmetric, without negative entries, and its rows
    /// must sum to 1.
    pub fn from_matrix(matrix: Vec<Vec<f64>>) -> Result<Mixing> {
        let m = matrix.len();
        check_nodes(m)?;
        if let Some((i, row)) = matrix.iter().enumerate().find(|(_, row)| row.len() != m) {
            return Err(Error::network(
                "network/not-square",
                format!("W has {m} rows, but row {i} has {} entries", row.len()),
            )
            .hint("a mixing matrix has one row and one column for each node"));
        }
        let sparse = |(i, row): (usize, Vec<f64>)| {
            let stored = |&(j, w): &(usize, f64)| w != 0.0 || i == j;
            row.into_iter().enumerate().filter(stored).collect()
        };
        let mixing = Mixing { rows: matrix.into_iter().enumerate().map(sparse).collect() };
        mixing.check()?;
        Ok(mixing)
    }

    /// The matrix with `weight(i, j)` on the edge i < j and the rest to 1 on the diagonal.
    pub(super) fn on(graph: &Graph, weight: impl Fn(usize, usize) -> f64) -> Result<Mixing> {
        let row = |i: usize| {
            let beside = |&j: &usize| (j, weight(i.min(j), i.max(j)));
            let mut row: Vec<_> = graph.neighbours(i).iter().map(beside).collect();
            let own = 1.0 - row.iter().map(|(_, w)| w).sum::<f64>();
            let own = if own.abs() < ROUNDING { 0.0 } else { own };
            row.insert(row.partition_point(|&(j, _)| j < i), (i, own));
            row
        };
        let mixing = Mixing { rows: (0..graph.nodes()).map(row).collect() };
        mixing.check()?;
        Ok(mixing)
    }

    /// The matrix with these rows, not symmetric, whose rows and columns sum to 1.
    pub(super) fn doubly(rows: impl Iterator<Item = Vec<(usize, f64)>>) -> Result<Mixing> {
        let sorted = |mut row: Vec<(usize, f64)>| {
            row.sort_unstable_by_key(|&(j, _)| j);
            row
        };
        let mixing = Mixing { rows: rows.map(sorted).collect() };
        mixing.check_values()?;
        mixing.check_sums()?;
        let mut ones = vec![0.0; mixing.nodes()];
        mixing.apply_transposed(&vec![1.0; mixing.nodes()], &mut ones);
        match ones.iter().all(|sum| (sum - 1.0).abs() <= TOLERANCE) {
            true => Ok(mixing),
            false => Err(Error::network("network/column-sum", "a column of W does not sum to 1")),
        }
    }

    /// Rows to be filled: see [`Mixing::fill`].
    pub(super) fn bare(rows: Vec<Vec<(usize, f64)>>) -> Mixing {
        Mixing { rows }
    }

    /// Gives row i these entries, by increasing j and without i, and the rest to 1 to i itself.
    pub(super) fn fill(&mut self, i: usize, entries: impl Iterator<Item = (usize, f64)>) {
        let row = &mut self.rows[i];
        row.clear();
        row.extend(entries);
        let own = 1.0 - row.iter().map(|(_, w)| w).sum::<f64>();
        let own = if own.abs() < ROUNDING { 0.0 } else { own };
        row.insert(row.partition_point(|&(j, _)| j < i), (i, own));
    }

    /// The number of messages in a round: pairs (i, j) in which i mixes the message of j.
    pub fn arrows(&self) -> u64 {
        let neighbours = |(i, row): (usize, &Vec<(usize, f64)>)| {
            row.iter().filter(|(j, _)| *j != i).count() as u64
        };
        self.rows.iter().enumerate().map(neighbours).sum()
    }

    /// Whether node i mixes the message of node j.
    pub fn hears(&self, i: usize, j: usize) -> bool {
        i != j && self.rows[i].binary_search_by_key(&j, |&(j, _)| j).is_ok()
    }

    /// `out ← W v`
    pub(super) fn apply(&self, v: &[f64], out: &mut [f64]) {
        for (out, row) in out.iter_mut().zip(&self.rows) {
            *out = row.iter().map(|&(j, w)| w * v[j]).sum();
        }
    }

    /// `out ← Wᵀ v`
    pub(super) fn apply_transposed(&self, v: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (v, row) in v.iter().zip(&self.rows) {
            row.iter().for_each(|&(j, w)| out[j] += w * v);
        }
    }

    /// The number of nodes, m.
    pub fn nodes(&self) -> usize {
        self.rows.len()
    }

    /// The pairs (j, w_ij) that node i mixes, by increasing j, including itself.
    pub fn row(&self, i: usize) -> &[(usize, f64)] {
        &self.rows[i]
    }

    /// All rows.
    pub fn rows(&self) -> &[Vec<(usize, f64)>] {
        &self.rows
    }

    /// The weight w_ij, zero where none is stored.
    pub fn weight(&self, i: usize, j: usize) -> f64 {
        let row = &self.rows[i];
        row.binary_search_by_key(&j, |&(j, _)| j).map_or(0.0, |at| row[at].1)
    }

    fn entries(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(i, row)| row.iter().map(move |&(j, w)| (i, j, w)))
    }

    fn check(&self) -> Result<()> {
        self.check_values()?;
        self.check_symmetry()?;
        self.check_sums()
    }

    fn check_values(&self) -> Result<()> {
        let Some((i, j, w)) = self.entries().find(|&(_, _, w)| !(w.is_finite() && w >= 0.0)) else {
            return Ok(());
        };
        let id = if w.is_finite() { "network/negative-weight" } else { "network/not-a-number" };
        Err(match i == j {
            true => Error::network(id, format!("node {i} keeps w[{i}][{i}] = {w} for itself"))
                .hint("the weights of a node's edges sum to at most 1"),
            false => Error::network(id, format!("nodes {i} and {j} have w[{i}][{j}] = {w}"))
                .hint("weights are between 0 and 1"),
        })
    }

    pub(super) fn check_symmetry(&self) -> Result<()> {
        let uneven = |&(i, j, w): &(usize, usize, f64)| (w - self.weight(j, i)).abs() > TOLERANCE;
        match self.entries().find(uneven) {
            None => Ok(()),
            Some((i, j, w)) => Err(Error::network(
                "network/asymmetric",
                format!(
                    "W is not symmetric: w[{i}][{j}] = {w}, but w[{j}][{i}] = {} (nodes {i}, {j})",
                    self.weight(j, i)
                ),
            )
            .hint("give both directions of an edge the same weight")),
        }
    }

    pub(super) fn check_sums(&self) -> Result<()> {
        let sums = self.rows.iter().map(|row| row.iter().map(|(_, w)| w).sum::<f64>());
        match sums.enumerate().find(|(_, sum)| (sum - 1.0).abs() > TOLERANCE) {
            None => Ok(()),
            Some((i, sum)) => Err(Error::network(
                "network/row-sum",
                format!("the weights of node {i} sum to {sum}, not to 1"),
            )
            .hint(format!("set w[{i}][{i}] to 1 less the weights of node {i}'s neighbours"))),
        }
    }

    /// Refuses a weight without an edge, and an edge without a weight.
    pub(super) fn check_support(&self, graph: &Graph) -> Result<()> {
        if self.nodes() != graph.nodes() {
            return Err(Error::network(
                "network/wrong-size",
                format!("W is for {} nodes, the graph has {}", self.nodes(), graph.nodes()),
            )
            .hint("a mixing matrix has one row and one column for each node"));
        }
        if let Some((i, j, w)) = self.entries().find(|&(i, j, _)| i != j && !graph.joins(i, j)) {
            return Err(Error::network(
                "network/weight-without-edge",
                format!("w[{i}][{j}] = {w}, but nodes {i} and {j} share no edge"),
            )
            .hint("set the weight to 0, or add the edge to the graph"));
        }
        match graph.edges().find(|&(i, j)| self.weight(i, j) <= 0.0) {
            None => Ok(()),
            Some((i, j)) => Err(Error::network(
                "network/edge-without-weight",
                format!("nodes {i} and {j} share an edge, but w[{i}][{j}] = 0"),
            )
            .hint("give the edge a weight, or take it out of the graph")),
        }
    }

    /// Refuses ρ = 1 on a connected graph, where two sides would swap their values forever.
    ///
    /// By Perron and Frobenius this holds exactly if the graph is bipartite and the diagonal of W
    /// is zero; no eigenvalue is needed.
    pub(super) fn check_mixes(&self, graph: &Graph) -> Result<()> {
        let zero_diagonal = (0..self.nodes()).all(|i| self.weight(i, i) < ROUNDING);
        match graph.sides().filter(|_| zero_diagonal && self.nodes() > 1) {
            None => Ok(()),
            Some([one, other]) => Err(Error::network(
                "network/never-mixes",
                format!(
                    "rho = 1: no node has a weight for itself, so nodes {} and nodes {} swap their \
                     values forever and never agree",
                    names(&one),
                    names(&other)
                ),
            )
            .hint("use lazy weights, (W + I)/2: `lazy-metropolis`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diagonal_is_always_there() {
        let swap = Mixing::from_matrix(vec![vec![0.0, 1.0], vec![1.0, 0.0]]).unwrap();
        assert_eq!(swap.row(0), [(0, 0.0), (1, 1.0)]);
        assert_eq!(swap.row(1), [(0, 1.0), (1, 0.0)]);
    }

    #[test]
    fn rounding_does_not_make_a_diagonal_negative() {
        // 1 − 9 · (1/9) is not 0 in floating point if summed one by one.
        let star = Graph::from_edges(10, (1..10).map(|i| (0, i))).unwrap();
        assert_eq!(Mixing::on(&star, |_, _| 1.0 / 9.0).unwrap().weight(0, 0), 0.0);
    }
}
