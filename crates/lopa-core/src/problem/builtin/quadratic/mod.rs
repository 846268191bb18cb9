//! Quadratics with everything in closed form.
//!
//! ```text
//! g_i(x, θ) = ½ θᵀA θ − θᵀ(B x + c)
//! f_i(x, θ) = ½ |D θ − e|² + ½ xᵀR x − xᵀq
//!
//! θ_i*(x)   = A⁻¹(B x + c)
//! v_i*(x)   = A⁻¹Dᵀ(D θ* − e)
//! ∇Φ_i(x)   = R x − q + Bᵀv*
//! x*        : Σ_i (R + MᵀM) x* = Σ_i (q − Mᵀ(D A⁻¹c − e)),   M = D A⁻¹B
//! ```
//!
//! With noise, sample k of a node is the same pair of functions with
//!
//! ```text
//! A_k = (1 + a_k) A,   B_k = (1 + b_k) B,   c_k = c + γ_k,      f_k = f + ⟨φ_k, θ⟩ + ⟨χ_k, x⟩
//! ```
//!
//! where |a_k| < 1, so that every batch is strongly convex, and all of a_k, b_k, γ_k, φ_k, χ_k have
//! mean zero over the samples, so that the full batch is the problem without noise.

mod exact;
mod file;
mod make;
mod noise;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

pub use self::exact::{Coefficients, x_star};

use self::exact::Sums;
use self::noise::Noise;
use super::linalg::{Cholesky, Matrix, View};

use crate::error::{Fault, Result};
use crate::math::parallel;
use crate::math::real::{Real, axpy, cast, dot, update};
use crate::math::scratch::lent;
use crate::params;
use crate::problem::form::{self, Form};
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel, Dims, Parts, Problem, Setting, Shortcuts, SingleLevel};

params! {
    /// Parameters of the `quadratic` problem.
    #[derive(PartialEq)]
    pub struct Options {
        /// A JSON file with the coefficients, instead of random ones: `data.A[node][row][column]`, and
        /// likewise B, c, D, e, R, q. Then `n`, `p`, `condition` and `heterogeneity` have no effect.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String> = None;
        /// Length of x.
        n: usize = 10, from_to(1, 1000);
        /// Length of θ.
        p: usize = 10, from_to(1, 1000);
        /// Condition number of A: its eigenvalues lie between 1/condition and 1.
        condition: f64 = 10.0, from_to(1.0, 1e10);
        /// How much the nodes differ; with 0 they are all equal.
        heterogeneity: f64 = 1.0, from_to(0.0, 1e6);
        /// How much the samples of a node differ; with 0 they are all equal.
        noise: f64 = 0.0, from_to(0.0, 1e6);
        /// The number of samples of a node.
        samples: usize = 100, from_to(1, 10_000);
    }
    check |options| {
        let enough = options.noise == 0.0 || options.samples >= 2;
        Fault::unless(enough, "samples", options.samples, "at least 2 where there is noise")
    }
}

impl<T: Real> Problem<T> for Options {
    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let given = match (&self.file, setting.scope) {
            (None, Scope::Personal) => None,
            _ => Some(coefficients(self, setting.nodes, setting.seed)?),
        };
        let common = match (&given, setting.scope) {
            (Some(all), Scope::Global) => Coefficients::mean(all).and_then(|mean| x_star(&[mean])),
            _ => None,
        };
        let (mut parts, mut sums) = (Vec::with_capacity(nodes.len()), Sums::default());
        // Some at a time: for nodes of other processes, only the sums of their contributions to x*
        // are kept.
        for some in pieces(setting.nodes) {
            let made = parallel::map(setting.pool, some, |i| {
                let exact = match &given {
                    Some(all) => Cow::Borrowed(&all[i]),
                    None => Cow::Owned(make::make_node(self, setting.seed, i)),
                };
                let noise = || Noise::draw(self.noise, self.samples, exact.dims(), setting.seed, i);
                let part = nodes.contains(&i).then(|| Quadratic::new(&exact, noise()));
                (part, (setting.scope == Scope::Personal).then(|| Sums::of(&exact)))
            });
            for (part, own) in made {
                parts.extend(part);
                own.iter().for_each(|own| sums.add(own));
            }
        }
        let x_star: Option<Arc<[f64]>> = common.or_else(|| sums.x_star()).map(Arc::from);
        let with = |part| Quadratic { x_star: x_star.clone(), ..part };
        Ok(parts.into_iter().map(with).collect())
    }
}

/// Ranges of `0..nodes`, small enough to hold the coefficients of all their nodes in memory.
fn pieces(nodes: usize) -> impl Iterator<Item = Range<usize>> {
    const PIECE: usize = 1 << 12;
    (0..nodes).step_by(PIECE).map(move |start| start..nodes.min(start + PIECE))
}

/// The coefficients of every node, drawn at random or read from a file.
pub fn coefficients(options: &Options, nodes: usize, seed: u64) -> Result<Vec<Coefficients>> {
    match &options.file {
        Some(path) => file::read(path, nodes),
        None => Ok((0..nodes).map(|i| make::make_node(options, seed, i)).collect()),
    }
}

/// A node's part. A million of them must fit in memory: its numbers are in one allocation.
pub struct Quadratic<T> {
    dims: Dims,
    numbers: Box<[T]>,         // A, B, c, D, e, R, q
    exact: Option<Box<[f64]>>, // A, B, c in double precision, where T is not
    noise: Noise<T>,
    x_star: Option<Arc<[f64]>>,
}

/// The coefficients of a part, borrowed.
struct Numbers<'a, T> {
    a: View<'a, T>,
    b: View<'a, T>,
    c: &'a [T],
    d: View<'a, T>,
    e: &'a [T],
    r: View<'a, T>,
    q: &'a [T],
}

impl<T: Real> Quadratic<T> {
    fn new(exact: &Coefficients, noise: Noise<T>) -> Quadratic<T> {
        let Coefficients { a, b, c, d, e, r, q, .. } = exact;
        let inner = [a.values(), b.values(), c];
        let all = inner.into_iter().chain([d.values(), e, r.values(), q]);
        let numbers = all.flatten().map(|&number| T::of(number)).collect();
        let kept = || inner.into_iter().flatten().copied().collect();
        let exact_abc = (T::BYTES < f64::BYTES).then(kept);
        Quadratic { dims: exact.dims(), numbers, exact: exact_abc, noise, x_star: None }
    }

    #[inline]
    fn numbers(&self) -> Numbers<'_, T> {
        let Dims { n, p } = self.dims;
        // D has as many rows as e has entries: the rest of the numbers.
        let rows = (self.numbers.len() - (p * p + p * n + p + n * n + n)) / (p + 1);
        let (a, rest) = self.numbers.split_at(p * p);
        let (b, rest) = rest.split_at(p * n);
        let (c, rest) = rest.split_at(p);
        let (d, rest) = rest.split_at(rows * p);
        let (e, rest) = rest.split_at(rows);
        let (r, q) = rest.split_at(n * n);
        let view = |values, cols| View { cols, values };
        Numbers { a: view(a, p), b: view(b, n), c, d: view(d, p), e, r: view(r, n), q }
    }
}

impl<T: Real> Bilevel<T> for Quadratic<T> {
    fn dims(&self) -> Dims {
        self.dims
    }

    fn samples_f(&self) -> usize {
        self.noise.samples()
    }

    fn samples_g(&self) -> usize {
        self.noise.samples()
    }

    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        let Numbers { d, e, r, q, .. } = self.numbers();
        let mut half = 0.0;
        lent(|residual: &mut Vec<T>| {
            residual.clear();
            residual.extend(e.iter().map(|&e| -e));
            d.add_product(T::one(), at.theta, residual);
            half = dot(residual, residual).to_f64() / 2.0;
        });
        let own = half + (r.half_square(at.x) - dot(at.x, q)).to_f64();
        own + self.noise.phi().dot(batch, at.theta) + self.noise.chi().dot(batch, at.x)
    }

    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        let Numbers { a, b, c, .. } = self.numbers();
        let (by_a, by_b) = (self.noise.a(batch), self.noise.b(batch));
        let bx: T = at.theta.iter().enumerate().map(|(i, &t)| t * dot(b.row(i), at.x)).sum();
        let own = by_a * a.half_square(at.theta) - by_b * bx - dot(at.theta, c);
        own.to_f64() - self.noise.gamma().dot(batch, at.theta)
    }

    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        let Numbers { r, q, .. } = self.numbers();
        update(out, [q], |_, [q]| -q);
        r.add_product(T::one(), at.x, out);
        self.noise.chi().add_mean(batch, T::one(), out);
    }

    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        let Numbers { d, e, .. } = self.numbers();
        out.fill(T::zero());
        for (i, &e) in e.iter().enumerate() {
            let residual = -e + dot(d.row(i), at.theta);
            axpy(residual, d.row(i), out);
        }
        self.noise.phi().add_mean(batch, T::one(), out);
    }

    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        let Numbers { a, b, c, .. } = self.numbers();
        update(out, [c], |_, [c]| -c);
        a.add_product(self.noise.a(batch), at.theta, out);
        b.add_product(-self.noise.b(batch), at.x, out);
        self.noise.gamma().add_mean(batch, -T::one(), out);
    }

    fn hess_g(&mut self, _at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.numbers().a.add_product(self.noise.a(batch), v, out);
    }

    fn cross_g(&mut self, _at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.numbers().b.add_transposed_product(-self.noise.b(batch), v, out);
    }

    /// `loss` is f, `x_error` is |x − x*|².
    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let all: Vec<u32> = (0..self.samples_f() as u32).collect();
        let mut metrics = vec![("loss".into(), self.f(at, &all))];
        if let Some(x_star) = &self.x_star {
            let far = at.x.iter().zip(x_star.iter()).map(|(&x, star)| (x.to_f64() - star).powi(2));
            metrics.push(("x_error".into(), far.sum()));
        }
        metrics
    }

    fn form(&self) -> Result<Form<'_, T>, &'static str> {
        let Numbers { a, b, c, d, e, r, q } = self.numbers();
        let coefficients = [a.values, b.values, c, d.values, e, r.values, q];
        let (samples, noise) = (self.noise.samples(), self.noise.all());
        Ok(Form::Quadratic(form::Quadratic { coefficients, samples, noise }))
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }

    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<T>> {
        Some(self)
    }
}

impl<T: Real> SingleLevel<T> for Quadratic<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        // g depends on x through −θᵀB x alone.
        self.cross_g(at, batch, at.theta, out);
    }
}

impl<T: Real> Shortcuts<T> for Quadratic<T> {
    fn theta_star(&mut self, x: &[T]) -> Option<Vec<T>> {
        let Dims { n, p } = self.dims;
        // Factorised on each call: it takes no longer than the solves that follow.
        let owned: Vec<f64>;
        let abc = match &self.exact {
            Some(exact) => exact,
            None => {
                owned = cast(&self.numbers[..p * p + p * n + p]);
                &owned[..]
            }
        };
        let (a, rest) = abc.split_at(p * p);
        let (b, c) = rest.split_at(p * n);
        let factor = Cholesky::new(&Matrix::from_fn(p, p, |i, j| a[i * p + j]))?;
        let mut rhs = c.to_vec();
        View { cols: n, values: b }.add_product(1.0, &cast::<T, f64>(x), &mut rhs);
        Some(cast(&factor.solve(&rhs)))
    }
}
