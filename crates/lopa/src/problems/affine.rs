//! The affine map s ↦ s W + b, dense or sparse: classifiers and hidden layers are made of it.

use crate::data::{Features, Samples};
use crate::real::{Real, Strided, axpy};

/// Rows that can be multiplied with a matrix: a batch, a whole data set, activations in memory.
pub trait Rows<T: Real> {
    /// How many rows there are.
    fn count(&self) -> usize;
    /// `out[r, :] = Σ_q s_r[q] weights[q, :]`, with `width` columns.
    fn product(&self, weights: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>);
    /// `out[q, :] += Σ_r s_r[q] delta[r, :]`, with `width` columns.
    fn add_transposed_product(
        &self,
        delta: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    );
}

/// The samples of a batch.
#[derive(Clone, Copy)]
pub struct Batch<'a, T> {
    /// Where they are taken from.
    pub samples: &'a Samples<T>,
    /// Their numbers.
    pub numbers: &'a [u32],
}

impl<T: Real> Rows<T> for Batch<'_, T> {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn product(&self, weights: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>) {
        self.samples.product(self.numbers, weights, width, out, scratch);
    }

    fn add_transposed_product(
        &self,
        delta: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        self.samples.add_transposed_product(self.numbers, delta, width, out, scratch);
    }
}

/// Every sample, in order.
impl<T: Real> Rows<T> for Samples<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn product(&self, weights: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>) {
        let rows = self.rows().iter().map(|&row| row as usize);
        self.features().product(rows, weights, width, out, scratch);
    }

    fn add_transposed_product(
        &self,
        delta: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        let rows = self.rows().iter().map(|&row| row as usize);
        self.features().add_transposed_product(rows, delta, width, out, scratch);
    }
}

/// Every row, in order.
impl<T: Real> Rows<T> for Features<T> {
    fn count(&self) -> usize {
        self.rows()
    }

    fn product(&self, weights: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>) {
        Features::product(self, 0..self.rows(), weights, width, out, scratch);
    }

    fn add_transposed_product(
        &self,
        delta: &[T],
        width: usize,
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        Features::add_transposed_product(self, 0..self.rows(), delta, width, out, scratch);
    }
}

/// Dense rows in memory, one after the other: the activations of a layer.
#[derive(Clone, Copy)]
pub struct Table<'a, T> {
    /// rows × cols entries.
    pub values: &'a [T],
    /// Length of a row.
    pub cols: usize,
}

impl<T: Real> Rows<T> for Table<'_, T> {
    fn count(&self) -> usize {
        self.values.len() / self.cols
    }

    fn product(&self, weights: &[T], width: usize, out: &mut [T], _scratch: &mut Vec<T>) {
        let (a, b) = (Strided(self.values, self.cols, 1), Strided(weights, width, 1));
        T::gemm([self.count(), self.cols, width], T::one(), a, b, T::zero(), out);
    }

    fn add_transposed_product(
        &self,
        delta: &[T],
        width: usize,
        out: &mut [T],
        _scratch: &mut Vec<T>,
    ) {
        let (a, b) = (Strided(self.values, 1, self.cols), Strided(delta, width, 1));
        T::gemm([self.cols, self.count(), width], T::one(), a, b, T::one(), out);
    }
}

/// The shape of s ↦ s W + b. Its numbers lie feature-major, `W[q * outputs + o]`, then b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Affine {
    /// Length of s.
    pub inputs: usize,
    /// Length of the result.
    pub outputs: usize,
    /// Whether there is a b.
    pub bias: bool,
}

impl Affine {
    /// How many numbers W and b have together.
    pub fn size(&self) -> usize {
        (self.inputs + usize::from(self.bias)) * self.outputs
    }

    /// `out[r, :] = s_r W + b`; `out` is given the right length.
    pub fn apply<T: Real>(
        &self,
        rows: &impl Rows<T>,
        weights: &[T],
        out: &mut Vec<T>,
        scratch: &mut Vec<T>,
    ) {
        assert_eq!(weights.len(), self.size(), "as many weights as the map has");
        let (weights, bias) = weights.split_at(self.inputs * self.outputs);
        out.resize(rows.count() * self.outputs, T::zero());
        rows.product(weights, self.outputs, out, scratch);
        if self.bias {
            out.chunks_exact_mut(self.outputs).for_each(|out| axpy(T::one(), bias, out));
        }
    }

    /// `out += (Σ_r s_rᵀ δ_r, Σ_r δ_r)`: the gradient with respect to (W, b), given that with
    /// respect to the results.
    pub fn add_gradient<T: Real>(
        &self,
        rows: &impl Rows<T>,
        delta: &[T],
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        assert_eq!(out.len(), self.size(), "as many entries as the map has weights");
        let (weights, bias) = out.split_at_mut(self.inputs * self.outputs);
        rows.add_transposed_product(delta, self.outputs, weights, scratch);
        if self.bias {
            delta.chunks_exact(self.outputs).for_each(|delta| axpy(T::one(), delta, bias));
        }
    }

    /// `out[r, :] = keep · out[r, :] + δ_r Wᵀ`: the gradient with respect to the rows.
    pub fn pull_back<T: Real>(&self, weights: &[T], delta: &[T], keep: T, out: &mut Vec<T>) {
        let count = delta.len() / self.outputs;
        out.resize(count * self.inputs, T::zero());
        let (a, b) = (Strided(delta, self.outputs, 1), Strided(weights, 1, self.outputs));
        T::gemm([count, self.outputs, self.inputs], T::one(), a, b, keep, out);
    }
}
