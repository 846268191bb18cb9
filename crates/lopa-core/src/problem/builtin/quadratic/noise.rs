//! The perturbations of the samples of a quadratic; each has mean zero over all samples.

use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, axpy, cast, dot};
use crate::problem::Dims;

/// The perturbations of one node's samples.
#[derive(Debug, Clone)]
pub(super) struct Noise<T> {
    samples: usize,
    dims: Dims,
    /// a, b, γ, φ, χ, each sample by sample; nothing where all are zero.
    values: Box<[T]>,
}

impl<T: Real> Noise<T> {
    /// Additive parts have the standard deviation `noise`, relative ones are below
    /// noise/(1 + noise), hence below 1.
    pub(super) fn draw(noise: f64, samples: usize, dims: Dims, seed: u64, node: usize) -> Noise<T> {
        if noise == 0.0 {
            return Noise { samples, dims, values: Box::default() };
        }
        // Node 0's stream is used by the part common to all nodes.
        let mut stream = Stream::new(seed, Purpose::Problem, node + 1);
        stream.seek(1, 0);
        let relative = noise / (1.0 + noise);
        let uniform = |stream: &mut Stream| stream.between(-1.0, 1.0);
        let mut values = Vec::with_capacity(samples * (2 + 2 * dims.p + dims.n));
        // Centring moves a value by less than 1, so that it stays within (−2, 2).
        let mut halves = || spread(1, samples, relative / 2.0, || uniform(&mut stream));
        values.extend(halves());
        values.extend(halves());
        for length in [dims.p, dims.p, dims.n] {
            values.extend(spread(length, samples, noise, || stream.normal()));
        }
        Noise { samples, dims, values: cast(&values).into() }
    }

    /// The number of samples.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// a, b, γ, φ, χ, sample by sample; empty where all are zero.
    pub(super) fn all(&self) -> [&[T]; 5] {
        let Dims { n, p } = self.dims;
        let mut rest = &*self.values;
        [1, 1, p, p, n].map(|length| {
            let (these, others) = rest.split_at((self.samples * length).min(rest.len()));
            rest = others;
            these
        })
    }

    /// 1 + mean of a_k over the batch.
    pub(super) fn a(&self, batch: &[u32]) -> T {
        T::one() + mean(self.all()[0], batch)
    }

    /// 1 + mean of b_k over the batch.
    pub(super) fn b(&self, batch: &[u32]) -> T {
        T::one() + mean(self.all()[1], batch)
    }

    /// γ_k, added to c.
    pub(super) fn gamma(&self) -> Spread<'_, T> {
        Spread { length: self.dims.p, values: self.all()[2] }
    }

    /// φ_k, added to ∇_θ f.
    pub(super) fn phi(&self) -> Spread<'_, T> {
        Spread { length: self.dims.p, values: self.all()[3] }
    }

    /// χ_k, added to ∇_x f.
    pub(super) fn chi(&self) -> Spread<'_, T> {
        Spread { length: self.dims.n, values: self.all()[4] }
    }
}

/// A vector for each sample, with mean zero over all.
fn spread(length: usize, samples: usize, size: f64, mut draw: impl FnMut() -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = (0..samples * length).map(|_| draw()).collect();
    for j in 0..length {
        let own = || (0..samples).map(|k| k * length + j);
        let mean = own().map(|at| values[at]).sum::<f64>() / samples as f64;
        own().for_each(|at| values[at] = size * (values[at] - mean));
    }
    values
}

/// The mean over a batch of one number for each sample.
fn mean<T: Real>(values: &[T], batch: &[u32]) -> T {
    if values.is_empty() {
        return T::zero();
    }
    let sum: T = batch.iter().map(|&k| values[k as usize]).sum();
    sum / T::of(batch.len() as f64)
}

/// A vector for each sample; none where all are zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread<'a, T> {
    length: usize,
    values: &'a [T],
}

impl<T: Real> Spread<'_, T> {
    fn vector(&self, k: u32) -> &[T] {
        &self.values[k as usize * self.length..][..self.length]
    }

    /// `out += sign · mean over the batch`.
    pub(super) fn add_mean(self, batch: &[u32], sign: T, out: &mut [T]) {
        if self.values.is_empty() {
            return;
        }
        let weight = sign / T::of(batch.len() as f64);
        batch.iter().for_each(|&k| axpy(weight, self.vector(k), out));
    }

    /// ⟨mean over the batch, x⟩.
    pub(super) fn dot(self, batch: &[u32], x: &[T]) -> f64 {
        if self.values.is_empty() {
            return 0.0;
        }
        let sum: f64 = batch.iter().map(|&k| dot(self.vector(k), x).to_f64()).sum();
        sum / batch.len() as f64
    }
}
