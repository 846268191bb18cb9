//! What a measurement needs from all nodes.

use crate::engine::{Cluster, Node};
use crate::error::Result;
use crate::evaluate::{self, Point};
use crate::math::real::{Real, cast};
use crate::problem::At;
use crate::problem::scope::Scope;

/// The points of all nodes.
pub struct Points {
    /// (x_i, θ_i) of every node.
    pub all: Vec<Point>,
    /// Whether all of them are finite.
    pub sound: bool,
}

/// The points of all nodes. A personal θ_i never leaves its peer: other peers see NaN in its place.
pub fn points<T: Real>(cluster: &mut Cluster<T>, scope: Scope) -> Result<Points> {
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    let own = own_points(cluster);
    if scope == Scope::Personal && cluster.independent().is_some() {
        let told = |(x, theta): &Point| [&x[..], &[f64::from(finite(theta))]].concat();
        let mut all = cluster.everyone(own.iter().map(told).collect())?;
        let flags: Vec<f64> = all.iter_mut().filter_map(Vec::pop).collect();
        let sound = flags.iter().all(|&sound| sound == 1.0) && all.iter().all(|x| finite(x));
        let unknown = vec![f64::NAN; own[0].1.len()];
        let mut all: Vec<Point> = all.into_iter().map(|x| (x, unknown.clone())).collect();
        all.splice(cluster.here(), own);
        return Ok(Points { all, sound });
    }
    if cluster.is_whole() {
        let sound = own.iter().all(|(x, theta)| finite(x) && finite(theta));
        return Ok(Points { all: own, sound });
    }
    let n = own[0].0.len();
    let all = cluster.everyone(own.into_iter().map(|(x, theta)| [x, theta].concat()).collect())?;
    let sound = all.iter().all(|point| finite(point));
    let point = |mut x: Vec<f64>| {
        let theta = x.split_off(n);
        (x, theta)
    };
    Ok(Points { all: all.into_iter().map(point).collect(), sound })
}

/// The points of the nodes here.
pub fn own_points<T: Real>(cluster: &Cluster<T>) -> Vec<Point> {
    let point = |node: &Node<T>| {
        let At { x, theta } = node.algorithm.at();
        (cast(x), cast(theta))
    };
    cluster.nodes().iter().map(point).collect()
}

/// ‖mean y − mean z‖, and how much of it may be rounding.
pub struct Tracking {
    /// The distance.
    pub gap: f64,
    /// What roundings may add up to.
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
    let mut all = cluster.everyone(ours)?;
    let sizes = all.iter_mut().filter_map(Vec::pop);
    let size = sizes.fold(1.0, f64::max);
    let gap = evaluate::mean(all.iter().map(|gap| &gap[..]));
    // Errors of single roundings add up like the steps of a random walk.
    let steps = ((1 + cluster.progress().k) * gap.len() as u64) as f64;
    let rounding = ROUNDINGS * T::epsilon().to_f64() * size * steps.sqrt();
    Ok(Some(Tracking { gap: gap.iter().map(|g| g * g).sum::<f64>().sqrt(), rounding }))
}

/// A generous bound on the roundings of an iteration.
const ROUNDINGS: f64 = 100.0;
