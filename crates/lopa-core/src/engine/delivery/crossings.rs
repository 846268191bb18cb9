//! Messages between processes.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::engine::transport::block;
use crate::network::Mixing;

/// A sender, and its receivers in the other process.
pub type Crossing = (usize, Vec<usize>);

/// The possible messages between this process and another; both list them in the same order.
#[derive(Debug)]
pub struct Border {
    /// The other process.
    pub rank: usize,
    /// From here.
    pub out: Vec<Crossing>,
    /// To here.
    pub into: Vec<Crossing>,
}

/// The borders of process `rank` out of `size`.
pub fn borders(mixing: &Mixing, size: usize, rank: usize) -> Vec<Border> {
    let range = |rank| block(mixing.nodes(), size, rank);
    let here = range(rank);
    let border = |other: usize| {
        let there = range(other);
        let (out, into) = (heard(mixing, &here, &there), heard(mixing, &there, &here));
        Border { rank: other, out, into }
    };
    let all = (0..size).filter(|&other| other != rank).map(border);
    all.filter(|border| !border.out.is_empty() || !border.into.is_empty()).collect()
}

/// The nodes of `from` that have receivers in `to`.
fn heard(mixing: &Mixing, from: &Range<usize>, to: &Range<usize>) -> Vec<Crossing> {
    let mut all: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for j in to.clone() {
        let near = mixing.row(j).iter().map(|&(i, _)| i).filter(|i| from.contains(i));
        near.for_each(|i| all.entry(i).or_default().push(j));
    }
    all.into_iter().collect()
}
