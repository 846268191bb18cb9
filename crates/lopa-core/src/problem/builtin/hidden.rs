//! Hidden layers: h_0 = s, h_l = φ(h_{l−1} W_l + b_l), with or without the b_l, and backpropagation
//! through them.

use std::ops::Range;

use super::activation::Activation;
use super::affine::{Affine, Rows, Table};
use super::losses::Losses;
use crate::math::random::Stream;
use crate::math::real::{Real, equal};
use crate::problem::predictor::{Layer, Then};

/// The shapes of the layers; their weights are stored layer by layer: W_1, b_1, W_2, …
#[derive(Debug, Clone)]
pub struct Hidden {
    layers: Vec<Affine>,
    activation: Activation,
}

impl Hidden {
    /// From the number of features, the units of each layer, and whether there are biases.
    pub fn new(features: usize, units: &[usize], activation: Activation, bias: bool) -> Hidden {
        let inputs = std::iter::once(features).chain(units.iter().copied());
        let shape = |(inputs, &outputs)| Affine { inputs, outputs, bias };
        Hidden { layers: inputs.zip(units).map(shape).collect(), activation }
    }

    /// The number of weights of all layers.
    pub fn size(&self) -> usize {
        self.layers.iter().map(Affine::size).sum()
    }

    /// Units of the last layer.
    pub fn outputs(&self) -> usize {
        self.layers.last().expect("there is a layer").outputs
    }

    /// The layers with their weights, as a saved model has them; `None` if x does not fit.
    pub fn layers(&self, mut x: &[f64]) -> Option<Vec<Layer>> {
        let then = match self.activation {
            Activation::Sigmoid => Then::Sigmoid,
            Activation::Tanh => Then::Tanh,
            Activation::Relu => Then::Relu,
        };
        let mut layers = Vec::new();
        for shape in &self.layers {
            let (weights, rest) = x.split_at_checked(shape.size())?;
            layers.push(shape.layer(weights, then)?);
            x = rest;
        }
        x.is_empty().then_some(layers)
    }

    /// The units of each layer.
    pub fn units(&self) -> Vec<usize> {
        self.layers.iter().map(|layer| layer.outputs).collect()
    }

    /// Whether there are biases.
    pub fn bias(&self) -> bool {
        self.layers.iter().all(|layer| layer.bias)
    }

    /// What the units compute.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Uniform in (−1/h, 1/h), h being the units of the layer.
    pub fn start(&self, stream: &mut Stream) -> Vec<f64> {
        let mut x = Vec::with_capacity(self.size());
        for layer in &self.layers {
            let bound = 1.0 / layer.outputs as f64;
            x.extend((0..layer.size()).map(|_| stream.between(-bound, bound)));
        }
        x
    }

    /// `layers[l]` ← h_{l+1} for every row.
    pub fn forward<T: Real>(&self, rows: &impl Rows<T>, mut x: &[T], layers: &mut Vec<Vec<T>>) {
        layers.resize_with(self.layers.len(), Vec::new);
        for (l, shape) in self.layers.iter().enumerate() {
            let (weights, rest) = x.split_at(shape.size());
            let (below, here) = layers.split_at_mut(l);
            match below.last() {
                None => shape.apply(rows, weights, &mut here[0]),
                Some(below) => {
                    let below = Table { values: below, cols: shape.inputs };
                    shape.apply(&below, weights, &mut here[0]);
                }
            }
            self.activation.apply(&mut here[0]);
            x = rest;
        }
    }

    /// `out += ∂/∂x`, given `back` = ∂/∂h_L for every row, which is overwritten.
    pub fn add_gradient<T: Real>(
        &self,
        rows: &impl Rows<T>,
        x: &[T],
        layers: Layers<T>,
        back: &mut Vec<T>,
        out: &mut [T],
        spare: &mut Spare<T>,
    ) {
        let mut end = self.size();
        for (l, shape) in self.layers.iter().enumerate().rev() {
            let start = end - shape.size();
            let here = &mut out[start..end];
            // δ = ∂/∂z_l = φ'(z_l) ∂/∂h_l
            self.activation.pull_back(back, layers.at(l));
            if l == 0 {
                shape.add_gradient(rows, back, here);
            } else {
                let below = Table { values: layers.at(l - 1), cols: shape.inputs };
                shape.add_gradient(&below, back, here);
                let Spare { back: below, scratch } = spare;
                shape.pull_back(&x[start..end], back, false, below, scratch);
                std::mem::swap(back, &mut spare.back);
            }
            end = start;
        }
    }
}

/// Scratch memory for backpropagation.
#[derive(Debug, Clone, Default)]
pub struct Spare<T> {
    back: Vec<T>,
    scratch: Vec<T>,
}

/// The activations of some rows of a forward pass.
#[derive(Debug, Clone)]
pub struct Layers<'a, T> {
    all: &'a [Vec<T>],
    count: usize, // of all rows
    rows: Range<usize>,
}

impl<'a, T> Layers<'a, T> {
    /// h_{l+1}, row after row.
    pub fn at(&self, l: usize) -> &'a [T] {
        let units = self.all[l].len() / self.count.max(1);
        &self.all[l][self.rows.start * units..self.rows.end * units]
    }

    /// h_L.
    pub fn top(&self) -> &'a [T] {
        self.at(self.all.len() - 1)
    }
}

/// The last forward pass of one set of samples, so that it is not repeated at the same point.
///
/// An exact inner solve needs many products at one x on the full batch, and only θ or v changes
/// between them; with shared samples all derivatives of an iteration have one minibatch. It holds
/// one number per unit and sample, and a copy of x only while the same batch is used again.
#[derive(Debug, Clone)]
pub struct Pass<T> {
    x: Vec<T>,
    batch: Vec<u32>,
    layers: Vec<Vec<T>>,
    again: bool,                 // whether the last batch was used more than once
    together: Vec<Range<usize>>, // batches of a joint pass, as long as x stays the same
}

impl<T: Real> Pass<T> {
    /// Empty.
    pub fn new() -> Pass<T> {
        let (x, batch, layers, together) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Pass { x, batch, layers, again: true, together }
    }

    /// The activations of every layer for a batch at x.
    pub fn layers(
        &mut self,
        hidden: &Hidden,
        rows: &impl Rows<T>,
        x: &[T],
        batch: &[u32],
    ) -> Layers<'_, T> {
        let mut together = self.together.iter();
        let passed = together.find(|&rows| self.batch[rows.clone()] == *batch).cloned();
        let rows = passed.unwrap_or_else(|| {
            self.pass(hidden, rows, x, batch);
            0..batch.len()
        });
        Layers { all: &self.layers, count: self.batch.len(), rows }
    }

    fn pass(&mut self, hidden: &Hidden, rows: &impl Rows<T>, x: &[T], batch: &[u32]) {
        let again = self.batch == batch;
        if !(again && equal(&self.x, x)) {
            hidden.forward(rows, x, &mut self.layers);
            self.x.clear();
            // A copy of x costs as much as a small batch: make it only if the batch is used again.
            if again || self.again {
                self.x.extend_from_slice(x);
            }
            self.batch.clear();
            self.batch.extend_from_slice(batch);
        }
        self.again = again;
    }

    /// Passes batches together, as long as x stays the same: until [`part`](Pass::part).
    pub fn join(&mut self, hidden: &Hidden, losses: &Losses<T>, x: &[T], batches: &[&[u32]]) {
        self.batch.clear();
        for batch in batches {
            if !self.together.iter().any(|rows| self.batch[rows.clone()] == **batch) {
                self.together.push(self.batch.len()..self.batch.len() + batch.len());
                self.batch.extend_from_slice(batch);
            }
        }
        hidden.forward(&losses.rows(&self.batch), x, &mut self.layers);
        self.x.clear();
        self.again = false;
    }

    /// Ends [`join`](Pass::join).
    pub fn part(&mut self) {
        self.together.clear();
    }
}

impl<T: Real> Default for Pass<T> {
    fn default() -> Pass<T> {
        Pass::new()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Rows that count how often they are multiplied.
    struct Counted<'a>(Table<'a, f64>, Cell<usize>);

    impl Rows<f64> for Counted<'_> {
        fn count(&self) -> usize {
            self.0.count()
        }

        fn product(&self, weights: &[f64], width: usize, out: &mut [f64]) {
            self.1.set(self.1.get() + 1);
            self.0.product(weights, width, out);
        }

        fn add_transposed_product(&self, _: &[f64], _: usize, _: &mut [f64]) {
            unreachable!("a forward pass multiplies forward");
        }
    }

    #[test]
    fn a_pass_is_repeated_only_where_x_or_the_batch_differ() {
        let hidden = Hidden::new(2, &[3], Activation::Tanh, true);
        let rows = Counted(Table { values: &[1.0, 2.0, -1.0, 0.5], cols: 2 }, Cell::new(0));
        let mut pass = Pass::new();
        let mut x = vec![0.25; hidden.size()];
        let first = pass.layers(&hidden, &rows, &x, &[0, 1]).top().to_vec();
        assert_eq!(first, pass.layers(&hidden, &rows, &x, &[0, 1]).top());
        assert_eq!(rows.1.get(), 1);
        x[4] = 0.5;
        assert_ne!(first, pass.layers(&hidden, &rows, &x, &[0, 1]).top());
        assert_eq!(rows.1.get(), 2);
        pass.layers(&hidden, &rows, &x, &[1, 0]);
        assert_eq!(rows.1.get(), 3);
    }
}
