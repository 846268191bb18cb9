//! A node's second derivatives at a point.

use super::all_samples;
use super::snapshot::distance_sq;
use super::spectrum::{extreme_eigenvalues, norm};
use lopa::math::real::{axpy, dot};
use lopa::problem::{At, Bilevel};

/// How precisely second derivatives are measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Depth {
    /// The maximal number of Lanczos steps.
    pub lanczos: usize,
    /// The width of central differences, relative to the point; quadratics tolerate any.
    pub width: f64,
    /// The maximal number of samples in a variance.
    pub samples: usize,
}

impl Depth {
    /// Exact on a quadratic.
    pub const QUADRATIC: Depth = Depth { lanczos: usize::MAX, width: 1.0, samples: usize::MAX };
    /// For estimates.
    pub const ESTIMATE: Depth = Depth { lanczos: 12, width: 1e-5, samples: 64 };
}

/// The matrices of second derivatives of g.
#[derive(Debug, Clone, Copy)]
pub enum Matrix {
    /// ∇²_θθ g
    Hessian,
    /// ∇²_xθ g
    Jacobian,
    /// (∇²_xθ g)ᵀ
    JacobianTransposed,
}

/// Measures the second derivatives of a node's part.
pub struct Inspector<'a> {
    part: &'a mut dyn Bilevel<f64>,
    all_f: Vec<u32>,
    all_g: Vec<u32>,
    depth: Depth,
}

impl<'a> Inspector<'a> {
    /// An inspector of a part.
    pub fn new(part: &'a mut dyn Bilevel<f64>, depth: Depth) -> Inspector<'a> {
        let (all_f, all_g) = (all_samples(part.samples_f()), all_samples(part.samples_g()));
        Inspector { part, all_f, all_g, depth }
    }

    /// A matrix times v, on all samples; (∇²_xθ g)ᵀ v = ∂/∂x of ∇_θ g along v.
    pub fn product(&mut self, matrix: Matrix, at: At<f64>, v: &[f64], out: &mut [f64]) {
        let (part, all) = (&mut *self.part, &self.all_g);
        match matrix {
            Matrix::Hessian => part.hess_g(at, all, v, out),
            Matrix::Jacobian => part.cross_g(at, all, v, out),
            Matrix::JacobianTransposed => {
                along_x(self.depth.width, at, v, out, |at, out| part.grad_theta_g(at, all, out));
            }
        }
    }

    /// μ_g and L_{g,θ} at a point: the extreme eigenvalues of ∇²_θθ g.
    pub fn curvatures(&mut self, at: At<f64>) -> (f64, f64) {
        let steps = self.depth.lanczos;
        extreme_eigenvalues(at.theta.len(), steps, |v, out| {
            self.product(Matrix::Hessian, at, v, out)
        })
    }

    /// C_{g,xθ} at a point: ‖∇²_xθ g‖.
    pub fn cross_norm(&mut self, at: At<f64>) -> f64 {
        let mut scratch = vec![0.0; at.x.len()];
        norm(at.theta.len(), self.depth.lanczos, |v, out| {
            self.product(Matrix::Jacobian, at, v, &mut scratch);
            self.product(Matrix::JacobianTransposed, at, &scratch, out);
        })
    }

    /// L_{f,x} and L_{f,θ} at a point: the norms of the rows of ∇²f for x and for θ.
    pub fn outer_norms(&mut self, at: At<f64>) -> [f64; 2] {
        let (n, p) = (at.x.len(), at.theta.len());
        let steps = self.depth.lanczos;
        let mut rows = |mine: std::ops::Range<usize>| {
            let (mut wide, mut image) = (vec![0.0; n + p], vec![0.0; n + p]);
            norm(mine.len(), steps, |v, out| {
                wide.fill(0.0);
                wide[mine.clone()].copy_from_slice(v);
                self.hess_f(at, &wide, &mut image);
                wide.copy_from_slice(&image);
                self.hess_f(at, &wide, &mut image);
                out.copy_from_slice(&image[mine.clone()]);
            })
        };
        [rows(0..n), rows(n..n + p)]
    }

    /// ∇²f (d_x, d_θ), by a central difference of (∇_x f, ∇_θ f).
    fn hess_f(&mut self, at: At<f64>, direction: &[f64], out: &mut [f64]) {
        let n = at.x.len();
        let Some(h) = width(self.depth.width, at, direction) else { return out.fill(0.0) };
        let mut other = vec![0.0; out.len()];
        for (sign, into) in [(1.0, &mut *out), (-1.0, &mut other[..])] {
            let (mut x, mut theta) = (at.x.to_vec(), at.theta.to_vec());
            axpy(sign * h, &direction[..n], &mut x);
            axpy(sign * h, &direction[n..], &mut theta);
            let there = At { x: &x, theta: &theta };
            let (in_x, in_theta) = into.split_at_mut(n);
            self.part.grad_x_f(there, &self.all_f, in_x);
            self.part.grad_theta_f(there, &self.all_f, in_theta);
        }
        axpy(-1.0, &other, out);
        out.iter_mut().for_each(|out| *out /= 2.0 * h);
    }

    /// L_{g,xθ} and L_{g,θθ} as seen between two points: the norms of the differences of the
    /// Jacobians and of the Hessians, divided by the distance of the points.
    pub fn slopes(&mut self, one: At<f64>, other: At<f64>) -> [f64; 2] {
        let distance = (distance_sq(one.x, other.x) + distance_sq(one.theta, other.theta)).sqrt();
        let (n, p) = (one.x.len(), one.theta.len());
        let norms = difference_norms(n, p, self.depth.lanczos, |side, matrix, v, out| {
            self.product(matrix, [one, other][side], v, out)
        });
        norms.map(|norm| norm / distance)
    }

    /// ∇_θ f on all samples.
    pub fn grad_theta_f(&mut self, at: At<f64>) -> Vec<f64> {
        let mut out = vec![0.0; at.theta.len()];
        self.part.grad_theta_f(at, &self.all_f, &mut out);
        out
    }

    /// σ_{f,x}², σ_{f,θ}², σ_{g,θ}² of single samples at a point: E‖∇̂ − ∇‖².
    pub fn gradient_variances(&mut self, at: At<f64>) -> [f64; 3] {
        let (n, p, limit) = (at.x.len(), at.theta.len(), self.depth.samples);
        let (all_f, all_g, part) = (&self.all_f, &self.all_g, &mut *self.part);
        [
            sampling_variance(n, all_f, limit, |batch, out| part.grad_x_f(at, batch, out)),
            sampling_variance(p, all_f, limit, |batch, out| part.grad_theta_f(at, batch, out)),
            sampling_variance(p, all_g, limit, |batch, out| part.grad_theta_g(at, batch, out)),
        ]
    }

    /// σ_{g,xθ}² and σ_{g,θθ}² of single samples at a point: the largest E‖(∇̂² − ∇²) v‖² of a
    /// unit vector v, which is all the lemmas need of E‖∇̂² − ∇²‖².
    pub fn matrix_variances(&mut self, at: At<f64>) -> [f64; 2] {
        let (n, p) = (at.x.len(), at.theta.len());
        let Depth { lanczos, width, samples } = self.depth;
        let some = pick(&self.all_g, samples);
        let (all, part) = (&self.all_g, &mut *self.part);
        let hessian = second_moment(p, p, lanczos, &some, |batch, v, out, _| {
            part.hess_g(at, batch.unwrap_or(all), v, out)
        });
        let jacobian = second_moment(p, n, lanczos, &some, |batch, v, out, back| {
            let batch = batch.unwrap_or(all);
            match back {
                false => part.cross_g(at, batch, v, out),
                true => along_x(width, at, v, out, |at, out| part.grad_theta_g(at, batch, out)),
            }
        });
        [jacobian, hessian]
    }
}

/// ‖J_0 − J_1‖ of two Jacobians of g and ‖H_0 − H_1‖ of two Hessians, given
/// `product(0 or 1, matrix, v, out)`.
pub fn difference_norms(
    n: usize,
    p: usize,
    lanczos: usize,
    mut product: impl FnMut(usize, Matrix, &[f64], &mut [f64]),
) -> [f64; 2] {
    let mut difference = |matrix: Matrix, v: &[f64], out: &mut [f64]| {
        let mut scratch = vec![0.0; out.len()];
        product(0, matrix, v, out);
        product(1, matrix, v, &mut scratch);
        axpy(-1.0, &scratch, out);
    };
    let (low, high) = extreme_eigenvalues(p, lanczos, |v, out| difference(Matrix::Hessian, v, out));
    let mut image = vec![0.0; n];
    let jacobian = norm(p, lanczos, |v, out| {
        difference(Matrix::Jacobian, v, &mut image);
        difference(Matrix::JacobianTransposed, &image, out);
    });
    [jacobian, low.abs().max(high)]
}

/// The largest eigenvalue of v ↦ mean over samples of ΔᵀΔ v, where Δ is a sample's matrix minus
/// that of all samples; given `product(batch or all, v, out, transposed)`.
fn second_moment(
    p: usize,
    rows: usize,
    lanczos: usize,
    some: &[u32],
    mut product: impl FnMut(Option<&[u32]>, &[f64], &mut [f64], bool),
) -> f64 {
    let [mut all, mut one, mut sum] = std::array::from_fn(|_| vec![0.0; rows]);
    let mut back = vec![0.0; p];
    let share = 1.0 / some.len() as f64;
    // mean of Δᵀ(Δv) = mean of Mᵀ(Δv) − M̄ᵀ(mean of Δv)
    let moment = |v: &[f64], out: &mut [f64]| {
        out.fill(0.0);
        sum.fill(0.0);
        product(None, v, &mut all, false);
        for sample in some {
            let batch = Some(std::slice::from_ref(sample));
            product(batch, v, &mut one, false);
            axpy(-1.0, &all, &mut one);
            product(batch, &one, &mut back, true);
            axpy(share, &back, out);
            axpy(share, &one, &mut sum);
        }
        product(None, &sum, &mut back, true);
        axpy(-1.0, &back, out);
    };
    extreme_eigenvalues(p, lanczos, moment).1.max(0.0)
}

/// E‖∇̂ − ∇‖² over single samples.
fn sampling_variance(
    length: usize,
    all: &[u32],
    limit: usize,
    mut gradient: impl FnMut(&[u32], &mut [f64]),
) -> f64 {
    let (mut mean, mut one) = (vec![0.0; length], vec![0.0; length]);
    gradient(all, &mut mean);
    let some = pick(all, limit);
    let far = |sample: &u32| {
        gradient(std::slice::from_ref(sample), &mut one);
        axpy(-1.0, &mean, &mut one);
        dot(&one, &one)
    };
    some.iter().map(far).sum::<f64>() / some.len() as f64
}

/// At most `limit` samples, evenly spaced.
fn pick(all: &[u32], limit: usize) -> Vec<u32> {
    let count = all.len().min(limit);
    (0..count).map(|k| all[k * all.len() / count]).collect()
}

/// ∂/∂x of a gradient along u, by a central difference.
fn along_x(
    relative: f64,
    at: At<f64>,
    u: &[f64],
    out: &mut [f64],
    mut gradient: impl FnMut(At<f64>, &mut [f64]),
) {
    let Some(h) = width(relative, at, u) else { return out.fill(0.0) };
    let mut below = vec![0.0; out.len()];
    let mut x = at.x.to_vec();
    axpy(h, u, &mut x);
    gradient(At { x: &x, ..at }, out);
    axpy(-2.0 * h, u, &mut x);
    gradient(At { x: &x, ..at }, &mut below);
    axpy(-1.0, &below, out);
    out.iter_mut().for_each(|out| *out /= 2.0 * h);
}

/// The width of a difference along a direction; `None` for the zero vector.
fn width(relative: f64, at: At<f64>, direction: &[f64]) -> Option<f64> {
    let length = dot(direction, direction).sqrt();
    (length > 0.0).then(|| relative * (1.0 + dot(at.x, at.x).sqrt()) / length)
}
