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

use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::exact::{Coefficients, x_star};

use self::noise::Noise;
use super::linalg::Matrix;

use crate::config::Params;
use crate::error::{Fault, Result};
use crate::math::real::{Real, cast, dot, update};
use crate::problem::form::{self, Form};
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel, Dims, Parts, Problem, Setting, Shortcuts, SingleLevel};

/// Parameters of the `quadratic` problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// A JSON file with the coefficients, instead of random ones: `data.A[node][row][column]`, and
    /// likewise B, c, D, e, R, q. Then `n`, `p`, `condition` and `heterogeneity` have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Length of x.
    pub n: usize,
    /// Length of θ.
    pub p: usize,
    /// Condition number of A: its eigenvalues lie between 1/condition and 1.
    pub condition: f64,
    /// How much the nodes differ; with 0 they are all equal.
    pub heterogeneity: f64,
    /// How much the samples of a node differ; with 0 they are all equal.
    pub noise: f64,
    /// The number of samples of a node.
    pub samples: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            file: None,
            n: 10,
            p: 10,
            condition: 10.0,
            heterogeneity: 1.0,
            noise: 0.0,
            samples: 100,
        }
    }
}

impl Params for Options {
    fn check(&self) -> std::result::Result<(), Fault> {
        let whole = |key, value: usize, most: usize| {
            Fault::unless((1..=most).contains(&value), key, value, &format!("1 to {most}"))
        };
        let number = |key, value: f64, least: f64, most: f64| {
            let must = format!("between {least} and {most}");
            Fault::unless((least..=most).contains(&value), key, value, &must)
        };
        whole("n", self.n, 1000)?;
        whole("p", self.p, 1000)?;
        number("condition", self.condition, 1.0, 1e10)?;
        number("heterogeneity", self.heterogeneity, 0.0, 1e6)?;
        number("noise", self.noise, 0.0, 1e6)?;
        whole("samples", self.samples, 10_000)?;
        let enough = self.noise == 0.0 || self.samples >= 2;
        Fault::unless(enough, "samples", self.samples, "at least 2 where there is noise")
    }
}

impl<T: Real> Problem<T> for Options {
    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let all = coefficients(self, setting.nodes, setting.seed)?;
        let x_star: Option<Arc<[f64]>> = match setting.scope {
            Scope::Personal => x_star(&all),
            Scope::Global => Coefficients::mean(&all).and_then(|mean| x_star(&[mean])),
        }
        .map(Arc::from);
        let part = |(i, exact): (usize, Coefficients)| {
            let noise = Noise::draw(self.noise, self.samples, exact.dims(), setting.seed, i);
            Quadratic::new(exact, noise, x_star.clone())
        };
        let some = all.into_iter().enumerate().skip(nodes.start).take(nodes.len());
        Ok(some.map(part).collect())
    }
}

/// The coefficients of every node, made at random or read from a file as the options say.
pub fn coefficients(options: &Options, nodes: usize, seed: u64) -> Result<Vec<Coefficients>> {
    match &options.file {
        Some(path) => file::read(path, nodes),
        None => Ok(make::make(options, nodes, seed)),
    }
}

/// A node's part.
pub struct Quadratic<T> {
    exact: Coefficients,
    a: Matrix<T>,
    b: Matrix<T>,
    c: Vec<T>,
    d: Matrix<T>,
    e: Vec<T>,
    r: Matrix<T>,
    q: Vec<T>,
    noise: Noise<T>,
    x_star: Option<Arc<[f64]>>,
    residual: Vec<T>,
}

impl<T: Real> Quadratic<T> {
    fn new(exact: Coefficients, noise: Noise<T>, x_star: Option<Arc<[f64]>>) -> Quadratic<T> {
        Quadratic {
            a: exact.a.cast(),
            b: exact.b.cast(),
            c: cast(&exact.c),
            d: exact.d.cast(),
            e: cast(&exact.e),
            r: exact.r.cast(),
            q: cast(&exact.q),
            noise,
            x_star,
            residual: vec![T::zero(); exact.e.len()],
            exact,
        }
    }

    /// residual ← D θ − e.
    fn find_residual(&mut self, theta: &[T]) {
        update(&mut self.residual, [&self.e], |_, [e]| -e);
        self.d.add_product(T::one(), theta, &mut self.residual);
    }
}

impl<T: Real> Bilevel<T> for Quadratic<T> {
    fn dims(&self) -> Dims {
        self.exact.dims()
    }

    fn samples_f(&self) -> usize {
        self.noise.samples()
    }

    fn samples_g(&self) -> usize {
        self.noise.samples()
    }

    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.find_residual(at.theta);
        let half = dot(&self.residual, &self.residual).to_f64() / 2.0;
        let own = half + (self.r.half_square(at.x) - dot(at.x, &self.q)).to_f64();
        own + self.noise.phi.dot(batch, at.theta) + self.noise.chi.dot(batch, at.x)
    }

    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        let (a, b) = (self.noise.a(batch), self.noise.b(batch));
        let bx: T = at.theta.iter().enumerate().map(|(i, &t)| t * dot(self.b.row(i), at.x)).sum();
        let own = a * self.a.half_square(at.theta) - b * bx - dot(at.theta, &self.c);
        own.to_f64() - self.noise.gamma.dot(batch, at.theta)
    }

    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        update(out, [&self.q], |_, [q]| -q);
        self.r.add_product(T::one(), at.x, out);
        self.noise.chi.add_mean(batch, T::one(), out);
    }

    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        self.find_residual(at.theta);
        self.d.add_transposed_product(T::one(), &self.residual, out);
        self.noise.phi.add_mean(batch, T::one(), out);
    }

    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        update(out, [&self.c], |_, [c]| -c);
        self.a.add_product(self.noise.a(batch), at.theta, out);
        self.b.add_product(-self.noise.b(batch), at.x, out);
        self.noise.gamma.add_mean(batch, -T::one(), out);
    }

    fn hess_g(&mut self, _at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.a.add_product(self.noise.a(batch), v, out);
    }

    fn cross_g(&mut self, _at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.b.add_transposed_product(-self.noise.b(batch), v, out);
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

    fn form(&self) -> std::result::Result<Form<'_, T>, &'static str> {
        let Quadratic { a, b, c, d, e, r, q, noise, .. } = self;
        let coefficients = [a.values(), b.values(), c, d.values(), e, r.values(), q];
        Ok(Form::Quadratic(form::Quadratic { coefficients, noise: noise.all() }))
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
        Some(cast(&self.exact.theta_star(&cast(x))))
    }
}
