//! Parts with a linear function of x added to f: nodes differ more, and Φ stays the same.

use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{axpy, dot};
use lopa::problem::{At, Bilevel, Dims, Shortcuts, SingleLevel};

/// f_i + ⟨t_i, x⟩ with Σ_i t_i = 0: ∇Φ_i changes by t_i; ∇Φ and all second derivatives do not.
pub struct Tilted {
    part: Box<dyn Bilevel<f64>>,
    tilt: Vec<f64>,
}

/// Tilts all parts by random vectors with entries of order `size`.
pub fn tilt(parts: Vec<Box<dyn Bilevel<f64>>>, size: f64, seed: u64) -> Vec<Box<dyn Bilevel<f64>>> {
    let n = parts[0].dims().n;
    let mut stream = Stream::new(seed, Purpose::Problem, parts.len() + 1);
    stream.seek(2, 0);
    let mut draw = || (0..n).map(|_| size * stream.normal()).collect::<Vec<_>>();
    let mut tilts: Vec<Vec<f64>> = parts.iter().map(|_| draw()).collect();
    let mean = lopa_study::practical::snapshot::mean_row(&tilts);
    tilts.iter_mut().for_each(|tilt| axpy(-1.0, &mean, tilt));
    let one = |(part, tilt)| Box::new(Tilted { part, tilt }) as Box<dyn Bilevel<f64>>;
    parts.into_iter().zip(tilts).map(one).collect()
}

impl Bilevel<f64> for Tilted {
    fn dims(&self) -> Dims {
        self.part.dims()
    }

    fn samples_f(&self) -> usize {
        self.part.samples_f()
    }

    fn samples_g(&self) -> usize {
        self.part.samples_g()
    }

    fn f(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
        self.part.f(at, batch) + dot(at.x, &self.tilt)
    }

    fn g(&mut self, at: At<f64>, batch: &[u32]) -> f64 {
        self.part.g(at, batch)
    }

    fn grad_x_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.part.grad_x_f(at, batch, out);
        axpy(1.0, &self.tilt, out);
    }

    fn grad_theta_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.part.grad_theta_f(at, batch, out);
    }

    fn grad_theta_g(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.part.grad_theta_g(at, batch, out);
    }

    fn hess_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
        self.part.hess_g(at, batch, v, out);
    }

    fn cross_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
        self.part.cross_g(at, batch, v, out);
    }

    fn metrics(&mut self, at: At<f64>) -> Vec<(String, f64)> {
        self.part.metrics(at)
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<f64>> {
        self.part.single_level()
    }

    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<f64>> {
        self.part.shortcuts()
    }
}
