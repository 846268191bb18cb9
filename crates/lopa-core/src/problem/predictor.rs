//! A trained model as layers, for predictions on new rows and for export.

use crate::data::Features;
use crate::math::real::{Real, update};
use lopa_kernels::{Level, Rows, each_block};

/// Layers, one after the other; the last one gives a probability for each class, or scaled numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictor {
    /// The layers; the outputs of one are the inputs of the next.
    pub layers: Vec<Layer>,
}

/// h ↦ φ(h W + b)
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Length of h.
    pub inputs: usize,
    /// Length of the result.
    pub outputs: usize,
    /// W, `weights[input * outputs + output]`.
    pub weights: Vec<f64>,
    /// b, empty if there is none.
    pub bias: Vec<f64>,
    /// φ
    pub then: Then,
}

/// φ
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// 1 / (1 + e^{−z}), for every entry.
    Sigmoid,
    /// tanh z, for every entry.
    Tanh,
    /// The larger of z and 0, for every entry.
    Relu,
    /// e^{z_c} / Σ_k e^{z_k}; one score z stands for the scores (z, 0) of two classes.
    Softmax,
    /// z itself: numbers.
    Nothing,
}

impl Predictor {
    /// The probability of each class for each row, rows × classes entries; or each scaled number.
    pub fn apply(&self, rows: &Features<f64>) -> Vec<f64> {
        let mut below = Vec::new();
        for (at, layer) in self.layers.iter().enumerate() {
            let mut here = vec![0.0; rows.rows() * layer.outputs];
            match at {
                0 => {
                    let numbers: Vec<u32> = (0..rows.rows() as u32).collect();
                    let all = Rows { numbers: &numbers, of: None };
                    rows.product(all, &layer.weights, layer.outputs, &mut here);
                }
                _ => each_block(&below, layer.inputs, |first, some| {
                    let out = &mut here[first * layer.outputs..][..some.len() * layer.outputs];
                    Level::best().dense_product(some, &layer.weights, layer.outputs, false, out);
                }),
            }
            below = layer.finish(here);
        }
        below
    }
}

impl Layer {
    /// φ(z + b), from z = h W for every row.
    fn finish(&self, mut z: Vec<f64>) -> Vec<f64> {
        if !self.bias.is_empty() {
            Level::best().add_to_each_row(&self.bias, &mut z);
        }
        match self.then {
            Then::Sigmoid => Level::best().sigmoid(&mut z),
            Then::Tanh => Level::best().tanh(&mut z),
            Then::Relu => rectify(&mut z),
            Then::Softmax if self.outputs == 1 => {
                let mut both: Vec<f64> = z.iter().flat_map(|&z| [z, -z]).collect();
                Level::best().sigmoid(&mut both);
                return both;
            }
            Then::Softmax => Level::best().softmax(&mut z, self.outputs),
            Then::Nothing => {}
        }
        z
    }
}

/// z ← the larger of z and 0, for every entry; NaN stays.
pub fn rectify<T: Real>(z: &mut [T]) {
    update(z, [], |z, []| if z < T::zero() { T::zero() } else { z });
}

/// The most probable class of each row, the first of several.
pub fn decide(probabilities: &[f64], classes: usize) -> Vec<u32> {
    let best = |p: &[f64]| (1..p.len()).fold(0, |best, c| if p[c] > p[best] { c } else { best });
    probabilities.chunks_exact(classes.max(1)).map(|p| best(p) as u32).collect()
}
