//! A problem of your own: ridge regression with a learnt strength, registered under a name and run
//! from an experiment file like any other.
//!
//! ```text
//! f_i(θ)    = mean over validation of (aᵀθ − b)² / 2
//! g_i(x, θ) = mean over training   of (aᵀθ − b)² / 2  +  eˣ/2 |θ|²
//! ```
//!
//! `cargo run --release --example own_problem`

mod common;

use std::ops::Range;

use lopa::prelude::*;

params! {
    /// Parameters of `ridge`.
    struct Ridge {
        /// Entries of θ.
        features: usize = 5;
        /// Samples of f, and of g, at each node.
        samples: usize = 8;
    }
}

impl<T: Real> Problem<T> for Ridge {
    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let part = |i: usize| {
            let mut stream = Stream::new(setting.seed, Purpose::Data, i);
            let mut row = || (0..=self.features).map(|_| T::of(stream.normal())).collect();
            let [validation, training] =
                [(); 2].map(|()| (0..self.samples).map(|_| row()).collect());
            Part { validation, training }
        };
        Ok(nodes.map(part).collect())
    }
}

/// Each row is a, then b.
struct Part<T> {
    validation: Vec<Vec<T>>,
    training: Vec<Vec<T>>,
}

/// `out` ← the mean over a batch of (aᵀu − b) a, where b counts only if `with_b`.
fn gradient<T: Real>(rows: &[Vec<T>], u: &[T], with_b: bool, batch: &[u32], out: &mut [T]) {
    out.fill(T::zero());
    for &j in batch {
        let (b, a) = rows[j as usize].split_last().expect("b is there");
        let residual = dot(a, u) - if with_b { *b } else { T::zero() };
        axpy(residual / T::of(batch.len() as f64), a, out);
    }
}

fn loss<T: Real>(rows: &[Vec<T>], theta: &[T], batch: &[u32]) -> f64 {
    let square = |&j: &u32| {
        let (b, a) = rows[j as usize].split_last().expect("b is there");
        (dot(a, theta) - *b).to_f64().powi(2) / 2.0
    };
    batch.iter().map(square).sum::<f64>() / batch.len() as f64
}

impl<T: Real> Bilevel<T> for Part<T> {
    fn dims(&self) -> Dims {
        Dims { n: 1, p: self.training[0].len() - 1 }
    }
    fn samples_f(&self) -> usize {
        self.validation.len()
    }
    fn samples_g(&self) -> usize {
        self.training.len()
    }
    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        loss(&self.validation, at.theta, batch)
    }
    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        let ridge = at.x[0].exp().to_f64() * dot(at.theta, at.theta).to_f64() / 2.0;
        loss(&self.training, at.theta, batch) + ridge
    }
    fn grad_x_f(&mut self, _: At<T>, _: &[u32], out: &mut [T]) {
        out[0] = T::zero();
    }
    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        gradient(&self.validation, at.theta, true, batch, out);
    }
    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        gradient(&self.training, at.theta, true, batch, out);
        axpy(at.x[0].exp(), at.theta, out);
    }
    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        gradient(&self.training, v, false, batch, out);
        axpy(at.x[0].exp(), v, out);
    }
    fn cross_g(&mut self, at: At<T>, _: &[u32], v: &[T], out: &mut [T]) {
        out[0] = at.x[0].exp() * dot(at.theta, v);
    }
}

const EXPERIMENT: &str = r#"
    problem   = { name = "ridge", samples = 20 }
    network   = { nodes = 6, graph = "ring", weights = "lazy-metropolis" }
    run       = { iterations = 4000, evaluations = 8 }
    algorithm = [{ name = "lopa-gt", alpha = 0.5, beta = 0.2, lambda = 0.2 }]
"#;

/// The registries of the library, and `ridge`. A test of it is one line:
/// `lopa::conformance::problem(&registries(), "problem = { name = 'ridge' }").unwrap()`
pub fn registries() -> Registries {
    let mut registries = Registries::default();
    registries.problems.add(problem_entry::<Ridge>("ridge", "ridge regression, learnt strength"));
    registries
}

fn main() -> Result<()> {
    common::run(EXPERIMENT, &registries())
}
