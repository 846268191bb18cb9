//! Activations of hidden layers.

use lopa_kernels::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::math::real::{Real, update};
use crate::problem::predictor::rectify;

/// φ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// 1 / (1 + e^{−z}).
    #[default]
    Sigmoid,
    /// tanh z.
    Tanh,
    /// z where it is positive, else 0.
    Relu,
}

impl Activation {
    /// z ← φ(z).
    pub fn apply<T: Real>(self, z: &mut [T]) {
        match self {
            Activation::Sigmoid => Level::best().sigmoid(z),
            Activation::Tanh => Level::best().tanh(z),
            Activation::Relu => rectify(z),
        }
    }

    /// back ← φ'(z) back, from h = φ(z).
    pub fn pull_back<T: Real>(self, back: &mut [T], h: &[T]) {
        let one = T::one();
        match self {
            Activation::Sigmoid => update(back, [h], |back, [h]| back * (h * (one - h))),
            Activation::Tanh => update(back, [h], |back, [h]| back * (one - h * h)),
            Activation::Relu => {
                update(back, [h], |back, [h]| back * if h > T::zero() { one } else { T::zero() });
            }
        }
    }
}
