//! The data of all nodes that a measurement needs.

use crate::engine::{Cluster, Expect, Node};
use crate::error::Result;
use crate::math::real::{Real, all_finite, cast};
use crate::problem::At;
use crate::run::evaluate::{self, Point};
use crate::store::bytes::{Reader, Writer};

/// The points of the nodes of this process, with the running mean of θ where there is one, if it is
/// `averaged`.
pub fn own_points<T: Real>(cluster: &Cluster<T>, averaged: bool) -> Vec<Point> {
    let point = |node: &Node<T>| {
        let At { x, theta } = node.algorithm.at();
        let mean = node.algorithm.mean_theta().filter(|_| averaged);
        (cast(x), cast(mean.unwrap_or(theta)))
    };
    cluster.nodes().iter().map(point).collect()
}

/// x of all nodes, and whether all points are finite.
pub struct Xs {
    /// x_i of every node.
    pub all: Vec<Vec<f64>>,
    /// Whether all x_i and θ_i are finite.
    pub sound: bool,
}

/// x of all nodes: the only part of a point with a personal θ that others need.
pub fn xs<T: Real>(cluster: &mut Cluster<T>) -> Result<Xs> {
    let told = |node: &Node<T>| {
        let At { x, theta } = node.algorithm.at();
        let mut told: Vec<f64> = Vec::with_capacity(x.len() + 1);
        told.extend(x.iter().map(|&x| x.to_f64()));
        told.push(f64::from(all_finite(x) && all_finite(theta)));
        told
    };
    let ours = cluster.nodes().iter().map(told).collect();
    let mut all = cluster.everyone(ours, Expect::Sound)?;
    let sound = all.iter_mut().filter_map(Vec::pop).all(|sound| sound == 1.0);
    Ok(Xs { all, sound })
}

/// A node's point, packed in its own precision.
pub fn packed<T: Real>(node: &Node<T>) -> Vec<u8> {
    let At { x, theta } = node.algorithm.at();
    let mut out = Writer::default();
    out.packed(x);
    out.packed(theta);
    out.done()
}

/// The point that was packed; `None` if it is not one of this node.
pub fn unpacked<T: Real>(node: &Node<T>, bytes: &[u8]) -> Option<Point> {
    let At { x, theta } = node.algorithm.at();
    let mut bytes = Reader::new(bytes);
    Some((cast(&bytes.packed::<T>(x.len())?), cast(&bytes.packed::<T>(theta.len())?)))
}

/// ‖mean y − mean z‖, and how much of it may be rounding.
pub struct Tracking {
    /// The distance.
    pub gap: f64,
    /// The largest effect of rounding.
    pub rounding: f64,
}

/// The gap of gradient tracking: zero up to rounding, or tracking is broken.
pub fn tracking<T: Real>(cluster: &mut Cluster<T>) -> Result<Option<Tracking>> {
    let pairs = cluster.nodes().iter().map(|node| node.algorithm.tracked());
    let one = |(y, z): (&[T], &[T])| -> Vec<f64> {
        let size = y.iter().chain(z).fold(0.0, |most: f64, &value| value.to_f64().abs().max(most));
        let gap = y.iter().zip(z).map(|(&y, &z)| y.to_f64() - z.to_f64());
        gap.chain([size]).collect()
    };
    let Some(ours) = pairs.map(|pair| pair.map(one)).collect() else { return Ok(None) };
    let mut all = cluster.everyone(ours, Expect::Numbers)?;
    let sizes = all.iter_mut().filter_map(Vec::pop);
    let size = sizes.fold(1.0, f64::max);
    let gap = evaluate::mean(all.iter().map(|gap| &gap[..]));
    // Rounding errors add up like the steps of a random walk.
    let steps = ((1 + cluster.progress().k) * gap.len() as u64) as f64;
    let rounding = ROUNDINGS * T::epsilon().to_f64() * size * steps.sqrt();
    Ok(Some(Tracking { gap: gap.iter().map(|g| g * g).sum::<f64>().sqrt(), rounding }))
}

/// A generous bound on the roundings of an iteration.
const ROUNDINGS: f64 = 100.0;
