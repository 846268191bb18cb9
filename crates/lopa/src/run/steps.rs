//! The step sizes that a rule found, in measurements.

use crate::algorithms::parts::steps::RULE;
use crate::algorithms::parts::steps::number::{CURVATURE, CUTS, LAG, STEPS};

use crate::engine::Node;
use crate::math::real::Real;

/// The names of a node's steps among the values of a measurement: α, β and λ of the last iteration, the
/// curvature behind β and λ, how often growth has halved these, and the lag of θ and v, which divides α.
pub const TOLD: [&str; 6] = ["step_alpha", "step_beta", "step_lambda", "curvature", "cuts", "lag"];

/// Their values, if a rule finds any of them.
pub fn told<T: Real>(node: &Node<T>) -> Vec<(String, f64)> {
    let variables = node.algorithm.variables();
    let Some((_, rule)) = variables.into_iter().find(|(name, _)| *name == RULE) else {
        return Vec::new();
    };
    let [alpha, beta, lambda] = STEPS;
    let places = [alpha, beta, lambda, CURVATURE, CUTS, LAG];
    let named = TOLD.iter().zip(places);
    named.map(|(name, at)| (name.to_string(), rule[at].to_f64())).collect()
}

/// Leaves them out of the metrics of a node.
pub fn forget(values: &mut Vec<(String, f64)>) {
    values.retain(|(name, _)| !TOLD.contains(&&name[..]));
}
