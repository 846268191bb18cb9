//! How much of an iteration is the algorithm's own part.

use lopa::engine::{Node, Simulation};
use lopa::math::real::Real;
use lopa::problem::oracle::{SIGMA1, SIGMA2, XI1, XI2, XI3};

use crate::clock::fastest;

/// Seconds per iteration of LoPA, and the share of it that is not its five derivatives.
pub fn of<T: Real>(simulation: &mut Simulation<T>, budget: f64) -> (f64, f64) {
    let all = fastest(budget, || simulation.iterate());
    let (k, nodes) = (simulation.k(), simulation.nodes_mut());
    let length = |node: &Node<T>| node.algorithm.at().x.len().max(node.algorithm.at().theta.len());
    let mut out = vec![T::zero(); length(&nodes[0])];
    let mut step = k;
    let derivatives = fastest(budget, || {
        step += 1;
        nodes.iter_mut().for_each(|node| five(node, step, &mut out));
    });
    (all, 1.0 - derivatives / all)
}

/// The derivatives that LoPA requests from a node's oracle per iteration.
fn five<T: Real>(node: &mut Node<T>, k: u64, out: &mut [T]) {
    let Node { algorithm, oracle } = node;
    oracle.begin(k);
    let at = algorithm.at();
    let (n, p) = (at.x.len(), at.theta.len());
    // The value of v does not matter; θ has its length.
    oracle.grad_theta_g(at, XI1, &mut out[..p]);
    oracle.hess_g(at, XI2, at.theta, &mut out[..p]);
    oracle.grad_theta_f(at, SIGMA1, &mut out[..p]);
    oracle.grad_x_f(at, SIGMA2, &mut out[..n]);
    oracle.cross_g(at, XI3, at.theta, &mut out[..n]);
}
