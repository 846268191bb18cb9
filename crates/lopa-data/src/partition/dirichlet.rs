//! Partitions by Dirichlet draws. The literature has two under one name; here each has its own.

use super::{Partition, Rows, cut, near, sizes};
use crate::error::Result;
use crate::math::portable::{exp, ln};
use crate::math::random::Stream;
use crate::params;

params! {
    /// Parameters of `dirichlet-class`.
    pub struct ByClass {
        /// Concentration: small values make nodes differ, large ones make them alike.
        alpha: f64 = 0.5, from_to(1e-6, 1e6);
        /// Minimum samples per node; the largest nodes give some to those below it.
        min_size: usize = 1, at_least(1);
    }
}

/// The shares of a class among the nodes are Dirichlet; every sample goes to one node.
pub fn by_class(params: &ByClass, rows: &Rows) -> Result<Partition> {
    let ByClass { alpha, min_size } = params.clone();
    rows.enough(min_size)?;
    let mut stream = rows.stream();
    let mut nodes = vec![Vec::new(); rows.nodes];
    for class in rows.by_class(&mut stream) {
        let shares = dirichlet(&mut stream, alpha, rows.nodes);
        for (node, piece) in nodes.iter_mut().zip(cut(&class, &near(class.len(), &shares))) {
            node.extend(piece);
        }
    }
    // Shuffled first, so that a node gives away a random part of its samples.
    nodes.iter_mut().for_each(|node| stream.shuffle(node));
    Ok(Partition { nodes }.repaired(min_size).mixed(rows.seed))
}

params! {
    /// Parameters of `dirichlet-node`.
    pub struct ByNode {
        /// Concentration: small values make nodes differ, large ones make them alike.
        alpha: f64 = 0.5, from_to(1e-6, 1e6);
        /// Samples per node; by default all are used.
        samples: Option<usize> = None, at_least(1);
    }
}

/// The shares of the classes at a node are Dirichlet, while the classes last.
///
/// Nodes take turns, one sample at a time, so that no node gets only the classes that the others
/// left.
pub fn by_node(params: &ByNode, rows: &Rows) -> Result<Partition> {
    let ByNode { alpha, samples } = params.clone();
    let sizes = sizes(rows, samples)?;
    let mut stream = rows.stream();
    let mut stock = rows.by_class(&mut stream);
    let mixes: Vec<Vec<f64>> =
        sizes.iter().map(|_| dirichlet(&mut stream, alpha, rows.classes)).collect();
    let mut nodes = vec![Vec::new(); rows.nodes];
    for turn in 0..sizes.iter().copied().max().unwrap_or(0) {
        for (node, mix) in mixes.iter().enumerate().filter(|&(node, _)| turn < sizes[node]) {
            let class = draw(mix, &stock, &mut stream);
            nodes[node].extend(stock[class].pop());
        }
    }
    Ok(Partition { nodes }.mixed(rows.seed))
}

/// Draws a class by its share among those with samples left.
fn draw(mix: &[f64], stock: &[Vec<u32>], stream: &mut Stream) -> usize {
    let share = |c: usize| if stock[c].is_empty() { 0.0 } else { mix[c] };
    let mut left = stream.unit() * (0..mix.len()).map(share).sum::<f64>();
    let mut last = None;
    for class in (0..mix.len()).filter(|&class| share(class) > 0.0) {
        last = Some(class);
        left -= share(class);
        if left < 0.0 {
            break;
        }
    }
    // No class with a share is left: take the one with the most samples.
    last.unwrap_or_else(|| (0..mix.len()).max_by_key(|&c| stock[c].len()).expect("has classes"))
}

/// A draw from the symmetric Dirichlet distribution.
pub fn dirichlet(stream: &mut Stream, alpha: f64, count: usize) -> Vec<f64> {
    // In logarithms: for a small alpha, all draws may underflow.
    let logs: Vec<f64> = (0..count).map(|_| ln_gamma_draw(stream, alpha)).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: Vec<f64> = logs.iter().map(|log| exp(log - largest)).collect();
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum).collect()
}

/// The logarithm of a draw from the gamma distribution of this shape and scale 1.
///
/// Marsaglia and Tsang, *A simple method for generating gamma variables*, 2000; for a shape below
/// one, a draw of shape + 1 times U^(1/shape).
fn ln_gamma_draw(stream: &mut Stream, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost = ln(1.0 - stream.unit()) / shape;
        return ln_gamma_draw(stream, shape + 1.0) + boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = (9.0 * d).sqrt().recip();
    loop {
        let x = stream.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && ln(1.0 - stream.unit()) < 0.5 * x * x + d - d * v + d * ln(v) {
            return ln(d * v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::random::Purpose;

    fn moments(draws: &[f64]) -> (f64, f64) {
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>();
        (mean, variance / draws.len() as f64)
    }

    #[test]
    fn gamma_has_mean_and_variance_equal_to_its_shape() {
        for shape in [0.1, 0.5, 1.0, 2.5, 40.0] {
            let mut stream = Stream::new(7, Purpose::Data, 0);
            let draws: Vec<f64> =
                (0..200_000).map(|_| exp(ln_gamma_draw(&mut stream, shape))).collect();
            let (mean, variance) = moments(&draws);
            // Standard errors: of the mean √(s/n), of the variance √((2s² + 6s)/n).
            let (s, n) = (shape, 200_000f64);
            assert!((mean - s).abs() < 5.0 * (s / n).sqrt(), "mean {mean} of shape {s}");
            let error = ((2.0 * s * s + 6.0 * s) / n).sqrt();
            assert!((variance - s).abs() < 5.0 * error, "variance {variance} of shape {s}");
        }
    }

    #[test]
    fn dirichlet_shares_have_the_right_mean_and_variance() {
        let (alpha, count) = (0.3, 5);
        let mut stream = Stream::new(3, Purpose::Data, 0);
        let draws: Vec<Vec<f64>> =
            (0..40_000).map(|_| dirichlet(&mut stream, alpha, count)).collect();
        let expected = 1.0 / count as f64;
        let spread = expected * (1.0 - expected) / (alpha * count as f64 + 1.0);
        for part in 0..count {
            let (mean, variance) = moments(&draws.iter().map(|d| d[part]).collect::<Vec<_>>());
            assert!((mean - expected).abs() < 0.01, "mean {mean}");
            assert!((variance / spread - 1.0).abs() < 0.05, "variance {variance}, not {spread}");
        }
    }

    #[test]
    fn the_smallest_alpha_gives_all_to_one() {
        let mut stream = Stream::new(0, Purpose::Data, 0);
        for _ in 0..100 {
            let shares = dirichlet(&mut stream, 1e-6, 10);
            assert!(shares.iter().all(|share| share.is_finite()));
            assert!((shares.iter().copied().fold(0.0, f64::max) - 1.0).abs() < 1e-6);
        }
    }
}
