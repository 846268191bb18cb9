//! The perturbations of the samples of a quadratic; each has mean zero over all samples.

use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, axpy, dot};
use crate::problem::Dims;

/// The perturbations of one node's samples.
#[derive(Debug, Clone)]
pub(super) struct Noise<T> {
    /// a_k, b_k: relative changes of A and B.
    a: Spread<T>,
    b: Spread<T>,
    /// γ_k, added to c.
    pub(super) gamma: Spread<T>,
    /// φ_k, added to ∇_θ f.
    pub(super) phi: Spread<T>,
    /// χ_k, added to ∇_x f.
    pub(super) chi: Spread<T>,
}

impl<T: Real> Noise<T> {
    /// Additive parts have the standard deviation `noise`, relative ones are below
    /// noise/(1 + noise), hence below 1.
    pub(super) fn draw(noise: f64, samples: usize, dims: Dims, seed: u64, node: usize) -> Noise<T> {
        // Node 0's stream belongs to the part common to all nodes.
        let mut stream = Stream::new(seed, Purpose::Problem, node + 1);
        stream.seek(1, 0);
        let relative = noise / (1.0 + noise);
        let uniform = |stream: &mut Stream| stream.between(-1.0, 1.0);
        // Centring moves a value by less than 1, so that it stays within (−2, 2).
        let mut halves = || Spread::draw(1, samples, relative / 2.0, || uniform(&mut stream));
        let (a, b) = (halves(), halves());
        let mut normals = |length| Spread::draw(length, samples, noise, || stream.normal());
        Noise { a, b, gamma: normals(dims.p), phi: normals(dims.p), chi: normals(dims.n) }
    }

    /// The number of samples.
    pub(super) fn samples(&self) -> usize {
        self.a.values.len()
    }

    /// a, b, γ, φ, χ, sample by sample.
    pub(super) fn all(&self) -> [&[T]; 5] {
        [&self.a, &self.b, &self.gamma, &self.phi, &self.chi].map(|spread| &spread.values[..])
    }

    /// 1 + mean of a_k over the batch.
    pub(super) fn a(&self, batch: &[u32]) -> T {
        T::one() + self.a.mean(batch)
    }

    /// 1 + mean of b_k over the batch.
    pub(super) fn b(&self, batch: &[u32]) -> T {
        T::one() + self.b.mean(batch)
    }
}

/// A vector for each sample, with mean zero over all.
#[derive(Debug, Clone)]
pub(super) struct Spread<T> {
    length: usize,
    values: Vec<T>,
}

impl<T: Real> Spread<T> {
    fn draw(length: usize, samples: usize, size: f64, mut draw: impl FnMut() -> f64) -> Spread<T> {
        let mut values: Vec<f64> = (0..samples * length).map(|_| draw()).collect();
        for j in 0..length {
            let own = || (0..samples).map(|k| k * length + j);
            let mean = own().map(|at| values[at]).sum::<f64>() / samples as f64;
            own().for_each(|at| values[at] = size * (values[at] - mean));
        }
        Spread { length, values: crate::math::real::cast(&values) }
    }

    fn vector(&self, k: u32) -> &[T] {
        &self.values[k as usize * self.length..][..self.length]
    }

    /// The mean over a batch, where vectors have length 1.
    fn mean(&self, batch: &[u32]) -> T {
        let sum: T = batch.iter().map(|&k| self.vector(k)[0]).sum();
        sum / T::of(batch.len() as f64)
    }

    /// `out += sign · mean over the batch`.
    pub(super) fn add_mean(&self, batch: &[u32], sign: T, out: &mut [T]) {
        let weight = sign / T::of(batch.len() as f64);
        batch.iter().for_each(|&k| axpy(weight, self.vector(k), out));
    }

    /// ⟨mean over the batch, x⟩.
    pub(super) fn dot(&self, batch: &[u32], x: &[T]) -> f64 {
        let sum: f64 = batch.iter().map(|&k| dot(self.vector(k), x).to_f64()).sum();
        sum / batch.len() as f64
    }
}
