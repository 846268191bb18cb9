//! The affine map s ↦ s W + b, dense or sparse: classifiers and hidden layers consist of it.

use crate::data::{Features, Samples};
use crate::math::real::Real;
use crate::problem::predictor::{Layer, Then};
use lopa_kernels::{Level, each_block};

/// Rows that can be multiplied with a matrix: a batch, a whole data set, activations in memory.
pub trait Rows<T: Real> {
    /// How many rows there are.
    fn count(&self) -> usize;
    /// `out[r, :] = Σ_q s_r[q] weights[q, :]`, with `width` columns.
    fn product(&self, weights: &[T], width: usize, out: &mut [T]);
    /// `out[q, :] += Σ_r s_r[q] delta[r, :]`, with `width` columns.
    fn add_transposed_product(&self, delta: &[T], width: usize, out: &mut [T]);

    /// [`product`](Rows::product) with two matrices.
    fn two_products(&self, weights: [&[T]; 2], width: usize, outs: [&mut [T]; 2]) {
        weights.into_iter().zip(outs).for_each(|(weights, out)| self.product(weights, width, out));
    }

    /// [`add_transposed_product`](Rows::add_transposed_product) with two matrices.
    fn add_two_transposed_products(&self, deltas: [&[T]; 2], width: usize, outs: [&mut [T]; 2]) {
        let each = deltas.into_iter().zip(outs);
        each.for_each(|(delta, out)| self.add_transposed_product(delta, width, out));
    }
}

/// The samples of a batch.
#[derive(Clone, Copy)]
pub struct Batch<'a, T> {
    /// The data set.
    pub samples: &'a Samples<T>,
    /// Their numbers.
    pub numbers: &'a [u32],
}

impl<T: Real> Rows<T> for Batch<'_, T> {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn product(&self, weights: &[T], width: usize, out: &mut [T]) {
        self.samples.product(self.numbers, weights, width, out);
    }

    fn add_transposed_product(&self, delta: &[T], width: usize, out: &mut [T]) {
        self.samples.add_transposed_product(self.numbers, delta, width, out);
    }

    fn two_products(&self, weights: [&[T]; 2], width: usize, outs: [&mut [T]; 2]) {
        self.samples.products(self.numbers, weights, width, outs);
    }

    fn add_two_transposed_products(&self, deltas: [&[T]; 2], width: usize, outs: [&mut [T]; 2]) {
        self.samples.add_transposed_products(self.numbers, deltas, width, outs);
    }
}

/// Every sample, in order.
impl<T: Real> Rows<T> for Samples<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn product(&self, weights: &[T], width: usize, out: &mut [T]) {
        self.whole_product(weights, width, out);
    }

    fn add_transposed_product(&self, delta: &[T], width: usize, out: &mut [T]) {
        self.add_whole_transposed_product(delta, width, out);
    }
}

/// Every row, in order.
impl<T: Real> Rows<T> for Features<T> {
    fn count(&self) -> usize {
        self.rows()
    }

    fn product(&self, weights: &[T], width: usize, out: &mut [T]) {
        let numbers: Vec<u32> = (0..self.rows() as u32).collect();
        Features::product(
            self,
            lopa_kernels::Rows { numbers: &numbers, of: None },
            weights,
            width,
            out,
        );
    }

    fn add_transposed_product(&self, delta: &[T], width: usize, out: &mut [T]) {
        let numbers: Vec<u32> = (0..self.rows() as u32).collect();
        let rows = lopa_kernels::Rows { numbers: &numbers, of: None };
        Features::add_transposed_product(self, rows, delta, width, out);
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

    fn product(&self, weights: &[T], width: usize, out: &mut [T]) {
        each_block(self.values, self.cols, |first, rows| {
            let out = &mut out[first * width..(first + rows.len()) * width];
            Level::best().dense_product(rows, weights, width, false, out);
        });
    }

    fn add_transposed_product(&self, delta: &[T], width: usize, out: &mut [T]) {
        each_block(self.values, self.cols, |first, rows| {
            let delta = &delta[first * width..(first + rows.len()) * width];
            Level::best().add_dense_transposed(rows, delta, width, out);
        });
    }
}

/// The shape of s ↦ s W + b. Its numbers are stored feature by feature, `W[q * outputs + o]`, then
/// b.
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

    /// The map with its weights and its activation; `None` if the weights do not fit.
    pub fn layer(&self, weights: &[f64], then: Then) -> Option<Layer> {
        let (inputs, outputs) = (self.inputs, self.outputs);
        (weights.len() == self.size()).then(|| {
            let (weights, bias) = weights.split_at(inputs * outputs);
            Layer { inputs, outputs, weights: weights.to_vec(), bias: bias.to_vec(), then }
        })
    }

    /// `out[r, :] = s_r W + b`; `out` is given the right length.
    pub fn apply<T: Real>(&self, rows: &impl Rows<T>, weights: &[T], out: &mut Vec<T>) {
        assert_eq!(weights.len(), self.size(), "as many weights as the map has");
        let (weights, bias) = weights.split_at(self.inputs * self.outputs);
        out.resize(rows.count() * self.outputs, T::zero());
        rows.product(weights, self.outputs, out);
        if self.bias {
            Level::best().add_to_each_row(bias, out);
        }
    }

    /// [`apply`](Affine::apply) with two sets of weights.
    pub fn apply_two<T: Real>(
        &self,
        rows: &impl Rows<T>,
        weights: [&[T]; 2],
        outs: [&mut Vec<T>; 2],
    ) {
        let cut = self.inputs * self.outputs;
        assert!(weights.iter().all(|weights| weights.len() == self.size()), "weights of the map");
        let outs = outs.map(|out| {
            out.resize(rows.count() * self.outputs, T::zero());
            &mut out[..]
        });
        let [first, second] = outs;
        let matrices = weights.map(|weights| &weights[..cut]);
        rows.two_products(matrices, self.outputs, [&mut *first, &mut *second]);
        if self.bias {
            let biases = weights.map(|weights| &weights[cut..]);
            let each = biases.into_iter().zip([first, second]);
            each.for_each(|(bias, out)| Level::best().add_to_each_row(bias, out));
        }
    }

    /// [`add_gradient`](Affine::add_gradient) of two sets of weights.
    pub fn add_two_gradients<T: Real>(
        &self,
        rows: &impl Rows<T>,
        deltas: [&[T]; 2],
        outs: [&mut [T]; 2],
    ) {
        let cut = self.inputs * self.outputs;
        assert!(outs.iter().all(|out| out.len() == self.size()), "as many entries as weights");
        let [(first, first_bias), (second, second_bias)] = outs.map(|out| out.split_at_mut(cut));
        rows.add_two_transposed_products(deltas, self.outputs, [first, second]);
        if self.bias {
            let each = deltas.into_iter().zip([first_bias, second_bias]);
            each.for_each(|(delta, bias)| Level::best().add_row_sum(delta, bias));
        }
    }

    /// `out += (Σ_r s_rᵀ δ_r, Σ_r δ_r)`: the gradient with respect to (W, b), given that with
    /// respect to the results.
    pub fn add_gradient<T: Real>(&self, rows: &impl Rows<T>, delta: &[T], out: &mut [T]) {
        assert_eq!(out.len(), self.size(), "as many entries as the map has weights");
        let (weights, bias) = out.split_at_mut(self.inputs * self.outputs);
        rows.add_transposed_product(delta, self.outputs, weights);
        if self.bias {
            Level::best().add_row_sum(delta, bias);
        }
    }

    /// `out[r, :] = δ_r Wᵀ`, added to what was there if `add`: the gradient with respect to the
    /// rows.
    pub fn pull_back<T: Real>(
        &self,
        weights: &[T],
        delta: &[T],
        add: bool,
        out: &mut Vec<T>,
        scratch: &mut Vec<T>,
    ) {
        let (inputs, outputs) = (self.inputs, self.outputs);
        out.resize(delta.len() / outputs * inputs, T::zero());
        scratch.resize(inputs * outputs, T::zero());
        for (q, weights) in weights[..inputs * outputs].chunks_exact(outputs).enumerate() {
            for (o, &weight) in weights.iter().enumerate() {
                scratch[o * inputs + q] = weight;
            }
        }
        each_block(delta, outputs, |first, delta| {
            let out = &mut out[first * inputs..(first + delta.len()) * inputs];
            Level::best().dense_product(delta, scratch, inputs, add, out);
        });
    }
}
