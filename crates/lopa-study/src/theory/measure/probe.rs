//! A node's part asked for its second derivatives at a point.

use super::spectrum::{ends, norm};
use lopa::math::real::{axpy, dot};
use lopa::problem::{At, Bilevel};

/// How closely second derivatives are looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Depth {
    /// Steps of Lanczos' method at most.
    pub lanczos: usize,
    /// The width of central differences, relative to the point; quadratics bear any.
    pub width: f64,
    /// Samples that variances are taken over at most.
    pub samples: usize,
}

impl Depth {
    /// What is exact on a quadratic.
    pub const QUADRATIC: Depth = Depth { lanczos: usize::MAX, width: 1.0, samples: usize::MAX };
    /// What estimates are made with.
    pub const ESTIMATE: Depth = Depth { lanczos: 12, width: 1e-5, samples: 64 };
}

/// A node's part, its samples and the depth of the look.
pub struct Probe<'a> {
    part: &'a mut dyn Bilevel<f64>,
    all_f: Vec<u32>,
    all_g: Vec<u32>,
    depth: Depth,
}

impl<'a> Probe<'a> {
    /// Of a part.
    pub fn new(part: &'a mut dyn Bilevel<f64>, depth: Depth) -> Probe<'a> {
        let all = |count: usize| (0..count as u32).collect();
        let (all_f, all_g) = (all(part.samples_f()), all(part.samples_g()));
        Probe { part, all_f, all_g, depth }
    }

    /// ∇²_θθ g v on all samples.
    pub fn hess_g(&mut self, at: At<f64>, v: &[f64], out: &mut [f64]) {
        self.part.hess_g(at, &self.all_g, v, out);
    }

    /// ∇²_xθ g v on all samples.
    pub fn cross_g(&mut self, at: At<f64>, v: &[f64], out: &mut [f64]) {
        self.part.cross_g(at, &self.all_g, v, out);
    }

    /// (∇²_xθ g)ᵀ u = ∂/∂x of ∇_θ g along u, on all samples.
    pub fn cross_g_back(&mut self, at: At<f64>, u: &[f64], out: &mut [f64]) {
        let part = &mut *self.part;
        let all = &self.all_g;
        along_x(self.depth.width, at, u, out, |at, out| part.grad_theta_g(at, all, out));
    }

    /// μ_g and L_{g,θ} at a point: the outer eigenvalues of ∇²_θθ g.
    pub fn curvatures(&mut self, at: At<f64>) -> (f64, f64) {
        let steps = self.depth.lanczos;
        ends(at.theta.len(), steps, |v, out| self.hess_g(at, v, out))
    }

    /// C_{g,xθ} at a point: ‖∇²_xθ g‖.
    pub fn cross_norm(&mut self, at: At<f64>) -> f64 {
        let mut hold = vec![0.0; at.x.len()];
        norm(at.theta.len(), self.depth.lanczos, |v, out| {
            self.cross_g(at, v, &mut hold);
            self.cross_g_back(at, &hold, out);
        })
    }

    /// L_{f,x} and L_{f,θ} at a point: the norms of the rows of ∇²f that belong to x and to θ.
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

    /// L_{g,xθ} and L_{g,θθ} as seen between two points: how far the Jacobians and the Hessians
    /// are apart, over how far the points are.
    pub fn slopes(&mut self, one: At<f64>, other: At<f64>) -> [f64; 2] {
        let far = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let distance = (far(one.x, other.x) + far(one.theta, other.theta)).sqrt();
        let (p, steps) = (one.theta.len(), self.depth.lanczos);
        let mut hold = vec![0.0; p];
        let hessian = ends(p, steps, |v, out| {
            self.hess_g(one, v, out);
            self.hess_g(other, v, &mut hold);
            axpy(-1.0, &hold, out);
        });
        let (mut here, mut there) = (vec![0.0; one.x.len()], vec![0.0; one.x.len()]);
        let jacobian = norm(p, steps, |v, out| {
            self.cross_g(one, v, &mut here);
            self.cross_g(other, v, &mut there);
            axpy(-1.0, &there, &mut here);
            self.cross_g_back(one, &here, out);
            self.cross_g_back(other, &here, &mut hold);
            axpy(-1.0, &hold, out);
        });
        [jacobian / distance, hessian.0.abs().max(hessian.1) / distance]
    }

    /// ∇_θ f on all samples.
    pub fn grad_theta_f(&mut self, at: At<f64>) -> Vec<f64> {
        let mut out = vec![0.0; at.theta.len()];
        self.part.grad_theta_f(at, &self.all_f, &mut out);
        out
    }

    /// σ_{f,x}², σ_{f,θ}², σ_{g,θ}² of single samples at a point: E‖∇̂ − ∇‖².
    pub fn gradient_variances(&mut self, at: At<f64>) -> [f64; 3] {
        let (n, p, most) = (at.x.len(), at.theta.len(), self.depth.samples);
        let (all_f, all_g, part) = (&self.all_f, &self.all_g, &mut *self.part);
        [
            spread(n, all_f, most, |batch, out| part.grad_x_f(at, batch, out)),
            spread(p, all_f, most, |batch, out| part.grad_theta_f(at, batch, out)),
            spread(p, all_g, most, |batch, out| part.grad_theta_g(at, batch, out)),
        ]
    }

    /// σ_{g,xθ}² and σ_{g,θθ}² of single samples at a point: the largest E‖(∇̂² − ∇²) v‖² of a
    /// unit vector v, which is all that the lemmas use of E‖∇̂² − ∇²‖².
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

/// The largest eigenvalue of v ↦ mean over samples of ΔᵀΔ v, where Δ is a sample's matrix less that
/// of all samples: `product(batch or all, v, out, transposed)`.
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
    ends(p, lanczos, moment).1.max(0.0)
}

/// E‖∇̂ − ∇‖² over single samples.
fn spread(
    length: usize,
    all: &[u32],
    most: usize,
    mut gradient: impl FnMut(&[u32], &mut [f64]),
) -> f64 {
    let (mut mean, mut one) = (vec![0.0; length], vec![0.0; length]);
    gradient(all, &mut mean);
    let some = pick(all, most);
    let far = |sample: &u32| {
        gradient(std::slice::from_ref(sample), &mut one);
        axpy(-1.0, &mean, &mut one);
        dot(&one, &one)
    };
    some.iter().map(far).sum::<f64>() / some.len() as f64
}

/// At most so many, evenly spread over all.
fn pick(all: &[u32], most: usize) -> Vec<u32> {
    let count = all.len().min(most);
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

/// How far to go along a direction; `None` along nothing.
fn width(relative: f64, at: At<f64>, direction: &[f64]) -> Option<f64> {
    let length = dot(direction, direction).sqrt();
    (length > 0.0).then(|| relative * (1.0 + dot(at.x, at.x).sqrt()) / length)
}
