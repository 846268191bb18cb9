//! How much the nodes differ: Assumption 4 measured at a point, and Lemma 1.

use serde::Serialize;

use lopa_study::practical::inspector::{Depth, Inspector, difference_norms};

use crate::theory::{Constants, Parts, all_samples};
use lopa::math::real::axpy;
use lopa::network::Mixing;
use lopa::problem::At;
use lopa::run::evaluate::exact::{conjugate_gradients, solve};
use lopa_study::practical::snapshot::{distance_sq, mean_row};

/// In estimates, a node's matrices are compared with those of this many other nodes.
const PARTNERS: usize = 4;

/// The sums of Assumption 4 and of Lemma 1 at one x, or their maxima over several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dissimilarity {
    /// The largest Σ_i ‖∇_x f_i − ∇_x f‖² at (x, θ_j*(x)), Assumption 4 (i).
    pub outer_x: f64,
    /// The largest Σ_i ‖∇_θ f_i − ∇_θ f‖² at (x, θ_j*(x)), Assumption 4 (i).
    pub outer_theta: f64,
    /// 1/m Σ_ij ‖∇_θ g_i(x, θ_j*) − ∇_θ g_j(x, θ_j*)‖², Assumption 4 (ii).
    pub inner_gradient: f64,
    /// 1/m Σ_ij ‖∇²_xθ g_i(x, θ_j*) − ∇²_xθ g_j(x, θ_j*)‖², Assumption 4 (iii).
    pub inner_jacobian: f64,
    /// 1/m Σ_ij ‖∇²_θθ g_i(x, θ_j*) − ∇²_θθ g_j(x, θ_j*)‖², Assumption 4 (iii).
    pub inner_hessian: f64,
    /// Σ_i ‖∇Φ_i − ∇Φ‖², which Lemma 1 bounds.
    pub hypergradient: f64,
}

impl Dissimilarity {
    /// b_f² at this point.
    pub fn b_f_sq(&self) -> f64 {
        self.outer_x.max(self.outer_theta)
    }

    /// b_g² at this point.
    pub fn b_g_sq(&self) -> f64 {
        self.inner_gradient.max(self.inner_jacobian).max(self.inner_hessian)
    }

    /// The elementwise maximum.
    pub fn max(self, other: Dissimilarity) -> Dissimilarity {
        Dissimilarity {
            outer_x: self.outer_x.max(other.outer_x),
            outer_theta: self.outer_theta.max(other.outer_theta),
            inner_gradient: self.inner_gradient.max(other.inner_gradient),
            inner_jacobian: self.inner_jacobian.max(other.inner_jacobian),
            inner_hessian: self.inner_hessian.max(other.inner_hessian),
            hypergradient: self.hypergradient.max(other.hypergradient),
        }
    }
}

/// C_1 = 4 + 4 C_{g,xθ}² / μ_g² of Lemma 1, below (130).
pub fn c_1(c: &Constants) -> f64 {
    4.0 + 4.0 * (c.c_g_x_theta / c.mu_g).powi(2)
}

/// C_2 of Lemma 1, below (130).
pub fn c_2(c: &Constants) -> f64 {
    let (mu, jacobian) = (c.mu_g, c.c_g_x_theta.powi(2));
    let c_f = c.c_f_theta.powi(2);
    4.0 * (4.0 * c_f * jacobian / mu.powi(4)
        + 4.0 * c_f / mu.powi(2)
        + (c.l_f_x / mu).powi(2)
        + c.l_f_theta.powi(2) * jacobian / mu.powi(4)
        + 4.0 * c_f * jacobian * c.l_g_theta_theta.powi(2) / mu.powi(6)
        + 4.0 * c_f * c.l_g_x_theta.powi(2) / mu.powi(4))
}

/// b² = C_1 b_f² + C_2 b_g² of Lemma 1.
pub fn lemma_1(c: &Constants) -> f64 {
    c_1(c) * c.b_f.powi(2) + c_2(c) * c.b_g.powi(2)
}

/// Assumption 4 and Lemma 1 measured at x, where θ_i*(x) is near `best`.
pub fn at(parts: &mut Parts, x: &[f64], best: &[Vec<f64>], depth: Depth) -> Dissimilarity {
    let m = parts.len();
    let solutions: Vec<_> =
        parts.iter_mut().zip(best).map(|(part, guess)| solve(&mut **part, x, guess)).collect();
    let grads: Vec<_> = solutions.iter().map(|own| own.grad.clone()).collect();
    let best: Vec<_> = solutions.into_iter().map(|own| own.theta).collect();
    let (mut outer_x, mut outer_theta) = (0.0f64, 0.0f64);
    let (mut jacobian, mut hessian) = (0.0, 0.0);
    for (j, theta) in best.iter().enumerate() {
        let at = At { x, theta };
        let (mut in_x, mut in_theta) = (Vec::new(), Vec::new());
        for part in parts.iter_mut() {
            let all = all_samples(part.samples_f());
            let (mut to_x, mut to_theta) = (vec![0.0; x.len()], vec![0.0; theta.len()]);
            part.grad_x_f(at, &all, &mut to_x);
            part.grad_theta_f(at, &all, &mut to_theta);
            in_x.push(to_x);
            in_theta.push(to_theta);
        }
        outer_x = outer_x.max(scatter(&in_x));
        outer_theta = outer_theta.max(scatter(&in_theta));
        let partners = partners(m, depth);
        for &step in &partners {
            let [a, b] = matrices_apart(parts, [(j + step) % m, j], at, depth);
            let weight = (m - 1) as f64 / partners.len() as f64;
            (jacobian, hessian) = (jacobian + weight * a * a, hessian + weight * b * b);
        }
    }
    let inner = inner_gradients(parts, x, &best);
    Dissimilarity {
        outer_x,
        outer_theta,
        inner_gradient: inner.iter().map(|d| d * d).sum(),
        inner_jacobian: jacobian / m as f64,
        inner_hessian: hessian / m as f64,
        hypergradient: scatter(&grads),
    }
}

/// (∇_θ g_i(x, θ_j*) − ∇_θ g_j(x, θ_j*)) / √m for all i and j, concatenated.
pub(super) fn inner_gradients(parts: &mut Parts, x: &[f64], best: &[Vec<f64>]) -> Vec<f64> {
    let root = (parts.len() as f64).sqrt();
    let mut all = Vec::new();
    for (j, theta) in best.iter().enumerate() {
        let mut of = |i: usize| {
            let batch = all_samples(parts[i].samples_g());
            let mut out = vec![0.0; theta.len()];
            parts[i].grad_theta_g(At { x, theta }, &batch, &mut out);
            out
        };
        let own = of(j);
        for i in 0..best.len() {
            all.extend(of(i).iter().zip(&own).map(|(other, own)| (other - own) / root));
        }
    }
    all
}

/// Offsets from j of the nodes whose matrices are compared with those of j: all nodes, or for an
/// estimate a few, evenly spaced.
fn partners(m: usize, depth: Depth) -> Vec<usize> {
    let count = if depth == Depth::QUADRATIC { m - 1 } else { (m - 1).min(PARTNERS) };
    (0..count).map(|k| 1 + k * (m - 1) / count).collect()
}

/// Σ_i ‖a_i − ā‖²
fn scatter(own: &[Vec<f64>]) -> f64 {
    let mean = mean_row(own);
    own.iter().map(|own| distance_sq(own, &mean)).sum()
}

/// ‖∇²_xθ g_i − ∇²_xθ g_j‖ and ‖∇²_θθ g_i − ∇²_θθ g_j‖ at a point.
fn matrices_apart(parts: &mut Parts, [i, j]: [usize; 2], at: At<f64>, depth: Depth) -> [f64; 2] {
    let [one, other] = parts.get_disjoint_mut([i, j]).expect("two different nodes");
    let mut both = [one, other].map(|part| Inspector::new(&mut **part, depth));
    let (n, p) = (at.x.len(), at.theta.len());
    difference_norms(n, p, depth.lanczos, |side, matrix, v, out| {
        both[side].product(matrix, at, v, out)
    })
}

/// Whether gradient tracking is worth twice the communication.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// The level at which ‖∇Φ‖² stalls with local gradients.
    pub floor: f64,
    /// The level that the run reaches, limited by its length and its sampling errors.
    pub reached: f64,
}

impl Forecast {
    /// Tracking pays if heterogeneity alone stalls local gradients above the level that the run
    /// reaches.
    pub fn tracking_pays(&self) -> bool {
        self.floor > self.reached
    }
}

/// ‖∇Φ(x̄)‖² at the fixed point of local gradients with step α, from x̄ near a stationary point.
///
/// At the fixed point x_i − x̄ = −α [(I − W)⁺ (∇Φ_j − ∇Φ)_j]_i and Σ_i ∇Φ_i(x_i) = 0, so that ∇Φ(x̄)
/// is minus the mean of ∇Φ_i(x_i) − ∇Φ_i(x̄): correct to first order in α, not a bound.
pub fn floor(parts: &mut Parts, mixing: &Mixing, x: &[f64], best: &[Vec<f64>], alpha: f64) -> f64 {
    let (m, n) = (parts.len(), x.len());
    let mut grads = |points: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let all = parts.iter_mut().zip(points.iter().zip(best));
        all.map(|(part, (x, guess))| solve(&mut **part, x, guess).grad).collect()
    };
    let here = grads(&vec![x.to_vec(); m]);
    let common = mean_row(&here);
    let mut points = vec![x.to_vec(); m];
    for j in 0..n {
        let push: Vec<f64> = here.iter().map(|own| alpha * (own[j] - common[j])).collect();
        let laplacian = |v: &[f64], out: &mut [f64]| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = mixing.row(i).iter().map(|&(k, w)| w * (v[i] - v[k])).sum();
            }
        };
        let (offsets, _) = conjugate_gradients(laplacian, &push, 1e-10);
        points.iter_mut().zip(&offsets).for_each(|(point, offset)| point[j] -= offset);
    }
    let mut moved = mean_row(&grads(&points));
    axpy(-1.0, &common, &mut moved);
    moved.iter().map(|g| g * g).sum()
}

/// The share of b² that Lemma 1 attributes to the inner level.
pub fn inner_share(c: &Constants) -> f64 {
    c_2(c) * c.b_g.powi(2) / lemma_1(c)
}
