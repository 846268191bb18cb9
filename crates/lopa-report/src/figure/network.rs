//! A graph with its weights, laid out so that distances on paper match distances in the graph.

use std::collections::VecDeque;

use super::Frame;
use crate::svg::{Anchor, Drawing};
use lopa::math::portable::{cos, hypot, sin};

/// A graph and its mixing weights.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// For each node i the pairs (j, w_ij), including (i, w_ii).
    pub weights: Vec<Vec<(usize, f64)>>,
    /// The names of the nodes; may be fewer than nodes.
    pub names: Vec<String>,
}

/// Larger graphs are not drawn.
pub const MAX_NODES: usize = 150;

/// In larger graphs, names are shown only under the pointer.
const MAX_NAMED: usize = 24;

/// Longer names are cut.
const NAME: usize = 14;

impl Network {
    /// The edges i < j with their weights.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let rows = self.weights.iter().enumerate();
        let pairs = rows.flat_map(|(i, row)| row.iter().map(move |&(j, w)| (i, j, w)));
        pairs.filter(|&(i, j, w)| i < j && w != 0.0)
    }

    pub(super) fn draw(&self, drawing: &mut Drawing, frame: Frame) {
        let m = self.weights.len();
        if m > MAX_NODES {
            let text = format!("{m} nodes are too many to draw");
            drawing.text(frame.middle(), Anchor::Middle, &text, "");
            return;
        }
        let named = !self.names.is_empty() && m <= MAX_NAMED;
        let margin = if named { [84.0, 52.0] } else { [28.0; 2] };
        let positions = fit(&self.layout(), frame, margin);
        let radius = (90.0 / (m as f64 + 2.0)).clamp(3.0, 11.0);
        let edges: Vec<_> = self.edges().collect();
        let largest = edges.iter().map(|edge| edge.2).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        for &(i, j, w) in &edges {
            let look = format!(
                "stroke=\"currentColor\" stroke-opacity=\"0.45\" stroke-width=\"{:.2}\"",
                0.6 + 2.4 * w / largest
            );
            drawing.line(positions[i], positions[j], &look);
        }
        if edges.len() <= 24 {
            edges
                .iter()
                .for_each(|&(i, j, w)| write_weight(drawing, positions[i], positions[j], w));
        }
        for (i, at) in positions.iter().enumerate() {
            let own = self.weights[i].iter().find(|(j, _)| *j == i).map_or(0.0, |(_, w)| *w);
            let name = self.names.get(i).map(String::as_str).unwrap_or_default();
            let comma = if name.is_empty() { "" } else { ", " };
            let about = format!("node {i}{comma}{name}, own weight {own:.3}");
            drawing.disc(*at, radius, &about, "fill=\"#0077BB\"");
            if named {
                write_name(drawing, [at[0], at[1] + radius + 11.0], name);
            }
            if radius > 7.0 {
                let at = [at[0], at[1] + 3.5];
                let look =
                    "font-size=\"10\" font-weight=\"600\" fill=\"#fff\" pointer-events=\"none\"";
                drawing.text(at, Anchor::Middle, &i.to_string(), look);
            }
        }
    }

    /// Positions by stress majorisation from a circle: deterministic, and a ring stays a ring.
    fn layout(&self) -> Vec<[f64; 2]> {
        let m = self.weights.len();
        let distance: Vec<Vec<f64>> = (0..m).map(|i| self.distances(i)).collect();
        let size = m as f64 / std::f64::consts::TAU;
        let on_circle = |i: usize| {
            let angle = std::f64::consts::TAU * (i as f64 / m as f64 - 0.25);
            [size * cos(angle), size * sin(angle)]
        };
        let mut positions: Vec<[f64; 2]> = (0..m).map(on_circle).collect();
        for _ in 0..300 {
            for i in 0..m {
                positions[i] = settle(i, &positions, &distance[i]);
            }
        }
        positions
    }

    /// The number of edges from a node to every node.
    fn distances(&self, from: usize) -> Vec<f64> {
        let m = self.weights.len();
        // Unreachable nodes are placed far away.
        let mut distance = vec![m as f64; m];
        distance[from] = 0.0;
        let mut queue = VecDeque::from([from]);
        while let Some(i) = queue.pop_front() {
            for &(j, w) in &self.weights[i] {
                if w != 0.0 && j < m && distance[j] == m as f64 && j != from {
                    distance[j] = distance[i] + 1.0;
                    queue.push_back(j);
                }
            }
        }
        distance
    }
}

/// Where the other nodes, each at its graph distance, pull node i.
fn settle(i: usize, positions: &[[f64; 2]], distance: &[f64]) -> [f64; 2] {
    let (mut sum, mut total) = ([0.0; 2], 0.0);
    for (j, other) in positions.iter().enumerate().filter(|(j, _)| *j != i) {
        let apart = [positions[i][0] - other[0], positions[i][1] - other[1]];
        let length = hypot(apart[0], apart[1]).max(1e-9);
        let weight = 1.0 / distance[j].powi(2);
        for axis in 0..2 {
            sum[axis] += weight * (other[axis] + distance[j] * apart[axis] / length);
        }
        total += weight;
    }
    if total > 0.0 { sum.map(|sum| sum / total) } else { positions[i] }
}

/// Scales positions into a frame less its margins, keeping the aspect ratio.
fn fit(positions: &[[f64; 2]], frame: Frame, margin: [f64; 2]) -> Vec<[f64; 2]> {
    let range = |axis: usize| {
        let values = positions.iter().map(|position| position[axis]);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    let [(left, right), (top, bottom)] = [range(0), range(1)];
    let size = [frame.width - margin[0], frame.height - margin[1]];
    let scale = (size[0] / (right - left).max(1e-9)).min(size[1] / (bottom - top).max(1e-9));
    let [x, y] = frame.middle();
    let put = |position: &[f64; 2]| {
        [
            x + scale * (position[0] - (left + right) / 2.0),
            y + scale * (position[1] - (top + bottom) / 2.0),
        ]
    };
    positions.iter().map(put).collect()
}

/// A weight on its edge, with a halo as its background.
fn write_weight(drawing: &mut Drawing, from: [f64; 2], to: [f64; 2], weight: f64) {
    // Off the middle, where edges cross.
    let at = [0.62 * from[0] + 0.38 * to[0], 0.62 * from[1] + 0.38 * to[1] + 3.0];
    let text = format!("{weight:.2}");
    let text = text.trim_start_matches('0');
    let look = "class=\"halo\" font-size=\"9\" stroke=\"#fff\" stroke-width=\"3\" \
                paint-order=\"stroke\"";
    drawing.text(at, Anchor::Middle, text, look);
}

/// The name of a node, below it.
fn write_name(drawing: &mut Drawing, at: [f64; 2], name: &str) {
    let short: String = match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name.into(),
    };
    let look = "class=\"halo\" font-size=\"10\" stroke=\"#fff\" stroke-width=\"3\" \
                paint-order=\"stroke\"";
    drawing.text(at, Anchor::Middle, &short, look);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(m: usize, edges: &[(usize, usize)]) -> Network {
        let mut weights: Vec<Vec<(usize, f64)>> = (0..m).map(|i| vec![(i, 0.5)]).collect();
        for &(i, j) in edges {
            weights[i].push((j, 0.25));
            weights[j].push((i, 0.25));
        }
        Network { weights, names: Vec::new() }
    }

    fn apart(a: [f64; 2], b: [f64; 2]) -> f64 {
        hypot(a[0] - b[0], a[1] - b[1])
    }

    #[test]
    fn a_star_has_its_centre_in_the_middle() {
        let star = network(6, &[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
        let positions = star.layout();
        let rays: Vec<f64> = (1..6).map(|i| apart(positions[0], positions[i])).collect();
        for ray in &rays {
            assert!((ray - rays[0]).abs() < 0.15, "{rays:?}");
        }
        assert_eq!(star.distances(3), [1.0, 2.0, 2.0, 0.0, 2.0, 2.0]);
        assert_eq!(star.edges().count(), 5);
    }

    #[test]
    fn single_nodes_and_disconnected_graphs_are_drawn_within_the_frame() {
        let frame = Frame { left: 10.0, top: 20.0, width: 100.0, height: 80.0 };
        for network in [network(1, &[]), network(2, &[]), network(5, &[(0, 1), (2, 3)])] {
            for [x, y] in fit(&network.layout(), frame, [28.0; 2]) {
                assert!((10.0..=110.0).contains(&x) && (20.0..=100.0).contains(&y));
            }
        }
    }
}
