//! The partition of the paper's comparison with DGD: label proportions that differ by node.

use super::{Partition, Rows, cut};
use crate::error::{Error, Fault, Result};
use crate::params;

params! {
    /// Parameters of `label-proportion`.
    pub struct Proportion {
        /// Share of class 0 at the first half of the nodes.
        first: f64 = 0.8;
        /// Share of class 0 at the second half.
        second: f64 = 0.35;
        /// A node's share deviates by a, uniform in [-spread, spread].
        spread: f64 = 0.15, from_to(0.0, 0.5);
        /// Samples per node; by default the most that the classes allow.
        samples: Option<usize> = None, at_least(1);
    }
    check |params| {
        let &Proportion { first, second, spread, .. } = params;
        // Rounding must not exclude 0.85 with a spread of 0.15.
        let fits = |share: f64| share - spread >= -1e-12 && share + spread <= 1.0 + 1e-12;
        Fault::unless(fits(first), "first", first, "in [spread, 1 - spread]")?;
        Fault::unless(fits(second), "second", second, "in [spread, 1 - spread]")
    }
}

pub fn proportion(params: &Proportion, rows: &Rows) -> Result<Partition> {
    let Proportion { first, second, spread, samples } = params.clone();
    if rows.classes != 2 {
        let message =
            format!("`label-proportion` needs two classes, the data has {}", rows.classes);
        return Err(Error::config("partition/not-binary", message)
            .hint("choose two with `classes = [a, b]` in the data section"));
    }
    let mut stream = rows.stream();
    let mut share = |node: usize| {
        let middle = if node < rows.nodes.div_ceil(2) { first } else { second };
        (middle + stream.between(-spread, spread)).clamp(0.0, 1.0)
    };
    let shares: Vec<f64> = (0..rows.nodes).map(&mut share).collect();
    let by_class = rows.by_class(&mut stream);
    let stock = [by_class[0].len(), by_class[1].len()];
    let limit = largest(&shares, stock);
    let samples = samples.unwrap_or(limit);
    if samples > limit || limit == 0 {
        let [zero, one] = stock;
        let message = format!(
            "{} nodes cannot have {samples} samples each in these proportions: class 0 has {zero}, \
             class 1 has {one}",
            rows.nodes
        );
        return Err(Error::data("partition/too-few-samples", message)
            .hint(format!("at most {limit} samples per node are possible")));
    }
    let zeros = zeros(&shares, samples);
    let ones: Vec<usize> = zeros.iter().map(|zeros| samples - zeros).collect();
    let pieces = cut(&by_class[0], &zeros).into_iter().zip(cut(&by_class[1], &ones));
    let nodes = pieces.map(|(zeros, ones)| [zeros, ones].concat()).collect();
    Ok(Partition { nodes }.mixed(rows.seed))
}

/// Samples of class 0 at each node.
fn zeros(shares: &[f64], samples: usize) -> Vec<usize> {
    shares.iter().map(|share| (share * samples as f64).round() as usize).collect()
}

/// The largest number of samples per node that the classes allow.
fn largest(shares: &[f64], [zero, one]: [usize; 2]) -> usize {
    let fits = |samples: usize| {
        let zeros: usize = zeros(shares, samples).iter().sum();
        zeros <= zero && shares.len() * samples - zeros <= one
    };
    // Rounding changes at most half a sample per node, so the answer is near the unrounded one.
    let sum: f64 = shares.iter().sum();
    let rest = shares.len() as f64 - sum;
    let unrounded = (zero as f64 / sum).min(one as f64 / rest);
    let above = (unrounded + 2.0 + shares.len() as f64 / sum.min(rest)).min((zero + one) as f64);
    (0..=above as usize).rev().find(|&samples| fits(samples)).unwrap_or(0)
}
