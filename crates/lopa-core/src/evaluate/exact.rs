//! Φ_i and ∇Φ_i to high accuracy, by solving the inner problem and the linear system.
//!
//! ```text
//! θ*(x) = argmin_θ g(x, θ)          Newton's method; steps by conjugate gradients, line search
//! v*(x) = [∇²_θθ g]⁻¹ ∇_θ f         conjugate gradients
//! Φ_i   = f(x, θ*)
//! ∇Φ_i  = ∇_x f − ∇²_xθ g v*        all at (x, θ*), on all samples
//! ```
//!
//! It is not timed, and its calls are not counted.

use crate::math::conjugate::ConjugateGradients;
use crate::math::portable::sin;
use crate::math::real::{axpy, dot, update};
use crate::problem::{At, Bilevel};

/// ‖∇_θ g‖ and the residual of the linear system are reduced below this times their initial size, or
/// below 1e-14.
pub const TOLERANCE: f64 = 1e-10;

/// A node's part solved at x.
#[derive(Debug, Clone)]
pub struct Solution {
    /// θ*(x)
    pub theta: Vec<f64>,
    /// v*(x)
    pub v: Vec<f64>,
    /// Φ_i(x)
    pub phi: f64,
    /// ∇Φ_i(x)
    pub grad: Vec<f64>,
    /// Whether both solves reached [`TOLERANCE`].
    pub converged: bool,
}

/// Solves a node's part at x, starting Newton's method at `guess`.
pub fn solve(part: &mut dyn Bilevel<f64>, x: &[f64], guess: &[f64]) -> Solution {
    let all_g: Vec<u32> = (0..part.samples_g() as u32).collect();
    let all_f: Vec<u32> = (0..part.samples_f() as u32).collect();
    let (theta, inner) = inner(part, x, guess);
    let at = At { x, theta: &theta };
    let mut b = vec![0.0; theta.len()];
    part.grad_theta_f(at, &all_f, &mut b);
    let (cg, linear) = inverse_product(part, at, &all_g, &b, TOLERANCE);
    let (v, _) = cg.into_parts();
    let phi = part.f(at, &all_f);
    let (mut grad, mut cross_v) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    part.grad_x_f(at, &all_f, &mut grad);
    part.cross_g(at, &all_g, &v, &mut cross_v);
    axpy(-1.0, &cross_v, &mut grad);
    Solution { theta, v, phi, grad, converged: inner && linear }
}

/// θ*(x), starting at `guess`, and whether ‖∇_θ g‖ reached [`TOLERANCE`].
pub fn inner(part: &mut dyn Bilevel<f64>, x: &[f64], guess: &[f64]) -> (Vec<f64>, bool) {
    match part.shortcuts().and_then(|known| known.theta_star(x)) {
        Some(theta) => (theta, true),
        None => {
            let all: Vec<u32> = (0..part.samples_g() as u32).collect();
            newton(part, x, guess, &all)
        }
    }
}

fn newton(part: &mut dyn Bilevel<f64>, x: &[f64], guess: &[f64], all: &[u32]) -> (Vec<f64>, bool) {
    let mut theta = guess.to_vec();
    let mut grad = vec![0.0; theta.len()];
    part.grad_theta_g(At { x, theta: &theta }, all, &mut grad);
    let target = (TOLERANCE * size(part, x, all, &grad)).max(1e-14);
    let mut value = part.g(At { x, theta: &theta }, all);
    for _ in 0..100 {
        let norm = dot(&grad, &grad).sqrt();
        if norm <= target {
            return (theta, true);
        }
        // An inexact Newton step: looser far from the solution, tight near it.
        let forcing = (norm.sqrt() * 0.1).min(0.1).max(target / norm * 0.1);
        let at = At { x, theta: &theta };
        let (cg, _) = inverse_product(part, at, all, &grad, forcing);
        // θ may have millions of entries: the trial point reuses the memory of a direction.
        let (step, mut trial) = cg.into_parts();
        let slope = dot(&grad, &step);
        let mut length = 1.0;
        let accepted = loop {
            update(&mut trial, [&theta, &step], |_, [theta, step]| theta - length * step);
            let there = part.g(At { x, theta: &trial }, all);
            // Near the solution the decrease is lost in rounding, and the full step is right.
            if there <= value - 1e-4 * length * slope + 1e-13 * value.abs() {
                value = there;
                break true;
            }
            length *= 0.5;
            if length < 1e-10 {
                break false;
            }
        };
        if !accepted {
            return (theta, false);
        }
        theta = trial;
        drop(step);
        part.grad_theta_g(At { x, theta: &theta }, all, &mut grad);
    }
    (theta, false)
}

/// The size that residuals of ∇_θ g are compared with: the larger of ‖∇_θ g‖ at 0 and at the guess.
fn size(part: &mut dyn Bilevel<f64>, x: &[f64], all: &[u32], grad: &[f64]) -> f64 {
    let mut at_zero = vec![0.0; grad.len()];
    part.grad_theta_g(At { x, theta: &vec![0.0; grad.len()] }, all, &mut at_zero);
    dot(&at_zero, &at_zero).max(dot(grad, grad)).sqrt()
}

/// [∇²_θθ g]⁻¹ b at a point, on all samples, to a residual of `tolerance` ‖b‖.
fn inverse_product(
    part: &mut dyn Bilevel<f64>,
    at: At<f64>,
    all: &[u32],
    b: &[f64],
    tolerance: f64,
) -> (ConjugateGradients<f64>, bool) {
    let mut cg = ConjugateGradients::new(b.len());
    if let Some(diagonal) = part.shortcuts().and_then(|known| known.hess_diagonal(at)) {
        cg = cg.with_diagonal(diagonal);
    }
    descend(cg, |v, out| part.hess_g(at, all, v, out), b, tolerance)
}

/// Solves H v = b for a positive definite H, to a residual of `tolerance` ‖b‖.
pub fn conjugate_gradients(
    product: impl FnMut(&[f64], &mut [f64]),
    b: &[f64],
    tolerance: f64,
) -> (Vec<f64>, bool) {
    let (cg, converged) = descend(ConjugateGradients::new(b.len()), product, b, tolerance);
    (cg.v, converged)
}

fn descend(
    mut cg: ConjugateGradients<f64>,
    mut product: impl FnMut(&[f64], &mut [f64]),
    b: &[f64],
    tolerance: f64,
) -> (ConjugateGradients<f64>, bool) {
    cg.begin(b);
    let target = (tolerance * cg.residual()).max(1e-14);
    for _ in 0..10 * b.len() + 100 {
        if cg.residual() <= target {
            return (cg, true);
        }
        if !cg.step(&mut product) {
            return (cg, false);
        }
    }
    let solved = cg.residual() <= target;
    (cg, solved)
}

/// The largest eigenvalue of ∇²_θθ g at a point, by power iteration: an estimate from below.
pub fn largest_curvature(part: &mut dyn Bilevel<f64>, at: At<f64>) -> f64 {
    let all: Vec<u32> = (0..part.samples_g() as u32).collect();
    // Has a component along every eigenvector, for all practical purposes.
    let mut v: Vec<f64> = (0..at.theta.len()).map(|i| 1.0 + sin(i as f64 * 0.7)).collect();
    let mut hv = v.clone();
    let mut estimate = 0.0;
    for _ in 0..60 {
        let norm = dot(&v, &v).sqrt();
        update(&mut v, [], |v, []| v / norm);
        part.hess_g(at, &all, &v, &mut hv);
        estimate = dot(&v, &hv);
        std::mem::swap(&mut v, &mut hv);
    }
    estimate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conjugate_gradients_solve_a_known_system() {
        let h = [[4.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 2.0]];
        let product = |v: &[f64], out: &mut [f64]| {
            (0..3).for_each(|i| out[i] = dot(&h[i], v));
        };
        let mut b = [0.0; 3];
        product(&[1.0, -2.0, 3.0], &mut b);
        let (v, converged) = conjugate_gradients(product, &b, 1e-12);
        assert!(converged);
        for (got, want) in v.iter().zip([1.0, -2.0, 3.0]) {
            assert!((got - want).abs() < 1e-12);
        }
    }

    #[test]
    fn an_indefinite_system_is_not_called_solved() {
        let product = |v: &[f64], out: &mut [f64]| (out[0], out[1]) = (v[0], -v[1]);
        assert!(!conjugate_gradients(product, &[1.0, 2.0], 1e-12).1);
    }
}
