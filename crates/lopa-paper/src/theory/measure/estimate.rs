//! Estimates of one node's constants at the points of a region.

use super::{Point, Region};
use crate::theory::Constants;
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::dot;
use lopa::problem::{At, Bilevel};
use lopa_study::practical::inspector::{Depth, Inspector};

/// The worst values of a node's constants at the region's points; sampling errors are those of
/// single samples.
pub fn node(part: &mut dyn Bilevel<f64>, i: usize, region: &Region, depth: Depth) -> Constants {
    let mut inspector = Inspector::new(part, depth);
    let one = |(k, point): (usize, &Point)| at_point(&mut inspector, i, k, point, depth);
    region.points.iter().enumerate().map(one).reduce(worse).expect("a region has points")
}

/// The worse of two: the smaller μ_g, and the larger of everything else.
pub fn worse(one: Constants, other: Constants) -> Constants {
    Constants { mu_g: one.mu_g.min(other.mu_g), ..one.zip(&other, |a, b| a.max(*b)) }
}

fn at_point(
    inspector: &mut Inspector,
    i: usize,
    k: usize,
    point: &Point,
    depth: Depth,
) -> Constants {
    let at = At { x: &point.x, theta: &point.theta[i] };
    let (mu_g, l_g_theta) = inspector.curvatures(at);
    let [l_f_x, l_f_theta] = inspector.outer_norms(at);
    let [l_g_x_theta, l_g_theta_theta] = match depth {
        Depth::QUADRATIC => [0.0; 2], // the matrices are constant
        _ => {
            let (x, theta) = nearby(at, i, k);
            inspector.slopes(at, At { x: &x, theta: &theta })
        }
    };
    let [f_x, f_theta, g_theta] = inspector.gradient_variances(at);
    let [g_x_theta, g_theta_theta] = inspector.matrix_variances(at);
    let best = inspector.grad_theta_f(At { x: &point.x, theta: &point.best[i] });
    Constants {
        nodes: 1,
        rho: 0.0,
        mu_g,
        l_f_x,
        l_f_theta,
        l_g_theta,
        l_g_x_theta,
        l_g_theta_theta,
        c_f_theta: dot(&best, &best).sqrt(),
        c_g_x_theta: inspector.cross_norm(at),
        sigma_f_x: f_x.sqrt(),
        sigma_f_theta: f_theta.sqrt(),
        sigma_g_theta: g_theta.sqrt(),
        sigma_g_x_theta: g_x_theta.sqrt(),
        sigma_g_theta_theta: g_theta_theta.sqrt(),
        b_f: 0.0,
        b_g: 0.0,
        b: 0.0,
    }
}

/// A nearby point, in a random direction.
fn nearby(at: At<f64>, i: usize, k: usize) -> (Vec<f64>, Vec<f64>) {
    let mut stream = Stream::new(2, Purpose::Problem, i);
    stream.seek(k as u64, 0);
    let mut near = |of: &[f64]| {
        let size = 1e-3 * (1.0 + dot(of, of).sqrt()) / (of.len() as f64).sqrt();
        of.iter().map(|value| value + size * stream.normal()).collect()
    };
    (near(at.x), near(at.theta))
}
