//! The search for a graph with a given ρ.

use super::graph::{Graph, check_nodes};
use super::{Mixing, WeightsBuild};
use crate::config::Choice;
use crate::error::{Error, Result};
use crate::math::random::{Purpose, Stream};

/// The most nodes of a search, which holds all pairs of them in memory.
const MAX_SEARCHED: usize = 1000;

/// A graph found by a search.
#[derive(Debug, Clone)]
pub struct Found {
    /// The graph.
    pub graph: Graph,
    /// Its mixing matrix under the rule of the search.
    pub mixing: Mixing,
    /// Its ρ = ‖W − 11ᵀ/m‖².
    pub rho: f64,
}

/// Finds a connected graph whose ρ under a rule of weights is `target_rho` ± `tolerance`.
///
/// A draw puts all pairs of nodes in a random order, a random path first; ρ falls roughly with
/// the number of pairs taken as edges, so bisection finds how many to take. Single edges are then
/// flipped as long as that helps. The result depends only on the arguments.
pub fn search(
    nodes: usize,
    target_rho: f64,
    weights: &Choice<WeightsBuild>,
    tolerance: f64,
    seed: u64,
) -> Result<Found> {
    check(nodes, target_rho, &weights.name, tolerance)?;
    let goal = Goal { nodes, target: target_rho, tolerance, rule: &*weights.build };
    let mut stream = Stream::new(seed, Purpose::Graph, 1);
    let mut best: Option<Found> = None;
    let draws = (2000 / nodes).clamp(2, 40);
    for draw in 0..draws {
        stream.seek(draw as u64, 0);
        let found = goal.draw(&mut stream)?;
        let found = goal.nearer(best.take(), found);
        if goal.miss(&found) <= tolerance {
            return Ok(found);
        }
        best = Some(found);
    }
    let nearest = best.map_or(f64::NAN, |found| found.rho);
    Err(Error::network(
        "network/rho-not-found",
        format!(
            "no graph of {nodes} nodes with rho = {target_rho} ± {tolerance} under `{}` weights \
             was found; the nearest has {nearest:.4}",
            weights.name
        ),
    )
    .hint("allow a larger tolerance, or take other weights or another number of nodes"))
}

fn check(nodes: usize, target: f64, weights: &str, tolerance: f64) -> Result<()> {
    check_nodes(nodes)?;
    let wrong = |message: String, hint: &str| {
        Err(Error::network("network/bad-search", message).hint(hint.to_string()))
    };
    if nodes > MAX_SEARCHED {
        let message = format!("{nodes} nodes are more than the {MAX_SEARCHED} that are searched");
        return wrong(message, "choose a graph by name for a network as large as this");
    }
    if ["matrix", "file"].contains(&weights) {
        let message = format!("`{weights}` weights are given and belong to one graph");
        return wrong(message, "search with a rule that makes weights, such as `metropolis`");
    }
    if !(0.0..1.0).contains(&target) {
        return wrong(format!("no network has rho = {target}"), "rho is at least 0 and below 1");
    }
    if !(tolerance > 0.0 && tolerance.is_finite()) {
        return wrong(format!("the tolerance {tolerance} is not above 0"), "0.005 is usual");
    }
    Ok(())
}

/// The goal of the search, and the rule of weights.
struct Goal<'a> {
    nodes: usize,
    target: f64,
    tolerance: f64,
    rule: &'a WeightsBuild,
}

impl Goal<'_> {
    fn measure(&self, edges: &[(usize, usize)]) -> Result<Found> {
        let graph = Graph::from_edges(self.nodes, edges.iter().copied())?;
        let mixing = (self.rule)(&graph)?;
        let rho = mixing.rho();
        Ok(Found { graph, mixing, rho })
    }

    /// How far a graph is from the goal; infinite if it never mixes.
    fn miss(&self, found: &Found) -> f64 {
        let Found { graph, mixing, rho } = found;
        match graph.is_connected() && mixing.check_mixes(graph).is_ok() {
            true => (rho - self.target).abs(),
            false => f64::INFINITY,
        }
    }

    fn nearer(&self, old: Option<Found>, new: Found) -> Found {
        match old {
            Some(old) if self.miss(&old) <= self.miss(&new) => old,
            _ => new,
        }
    }

    fn draw(&self, stream: &mut Stream) -> Result<Found> {
        let pairs = shuffled_pairs(self.nodes, stream);
        let mut best = None;
        // Fewer than `few` edges mix too slowly, `many` do not.
        let (mut few, mut many) = (self.nodes - 1, pairs.len());
        while few < many {
            let middle = few.midpoint(many);
            let found = self.measure(&pairs[..middle])?;
            match found.rho > self.target {
                true => few = middle + 1,
                false => many = middle,
            }
            best = Some(self.nearer(best, found));
        }
        let best = self.nearer(best, self.measure(&pairs[..many])?);
        self.refine(best, &pairs, stream)
    }

    /// Flips random edges, and keeps each flip that comes nearer.
    fn refine(
        &self,
        mut best: Found,
        pairs: &[(usize, usize)],
        stream: &mut Stream,
    ) -> Result<Found> {
        // The larger the graph, the less one edge changes ρ.
        for _ in 0..(20_000 / self.nodes).clamp(10, 200) {
            if self.miss(&best) <= self.tolerance || pairs.is_empty() {
                break;
            }
            let flip = pairs[stream.below(pairs.len())];
            let mut edges: Vec<_> = best.graph.edges().filter(|&edge| edge != flip).collect();
            if !best.graph.joins(flip.0, flip.1) {
                edges.push(flip);
            }
            let found = self.measure(&edges)?;
            best = self.nearer(Some(best), found);
        }
        Ok(best)
    }
}

/// All pairs i < j: first those of a path through all nodes in random order, then the rest.
fn shuffled_pairs(m: usize, stream: &mut Stream) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..m).collect();
    stream.shuffle(&mut order);
    let mut place = vec![0; m];
    order.iter().enumerate().for_each(|(at, &node)| place[node] = at);
    let pairs = (0..m).flat_map(|j| (0..j).map(move |i| (i, j)));
    let (mut path, mut rest): (Vec<_>, Vec<_>) =
        pairs.partition(|&(i, j)| place[i].abs_diff(place[j]) == 1);
    stream.shuffle(&mut rest);
    path.append(&mut rest);
    path
}
