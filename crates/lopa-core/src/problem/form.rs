//! A node's part as plain numbers, for a device that computes its derivatives elsewhere.

use std::any::Any;

use super::builtin::activation::Activation;
use super::builtin::goal::Goals;
use super::builtin::loss::Loss;
use crate::data::Samples;

/// The functions of a part, for a device that takes it over.
pub enum Form<'a, T> {
    /// `quadratic`: see there for the names.
    Quadratic(Quadratic<'a, T>),
    /// `hyperparameter` and `hyper-cleaning`: a linear model.
    Linear {
        /// The data term of g.
        inner: Term<'a, T>,
        /// The data term of f.
        outer: Term<'a, T>,
        /// The losses.
        loss: Loss,
        /// Columns of θ.
        columns: usize,
        /// Whether there is a bias, the last row of θ.
        bias: bool,
        /// What x has an entry for.
        per: Per<'a, T>,
    },
    /// `representation`: hidden layers and a head with a bias.
    Layers {
        /// The data term of g.
        inner: Term<'a, T>,
        /// The data term of f.
        outer: Term<'a, T>,
        /// The losses.
        loss: Loss,
        /// Columns of the head.
        columns: usize,
        /// Units of each hidden layer.
        units: Vec<usize>,
        /// Whether hidden layers have biases.
        bias: bool,
        /// What the units compute.
        activation: Activation,
        /// μ
        ridge: T,
    },
    /// Code of another language, as the device of that language knows it.
    Code(&'a (dyn Any + Send + Sync)),
}

/// What x of a linear model has an entry for.
#[derive(Debug, Clone, Copy)]
pub enum Per<'a, T> {
    /// Each row of θ: its strength in θᵀ diag(eˣ) θ.
    Row,
    /// Groups of consecutive rows of θ: theirs; with the group of each row.
    Group(&'a [u32]),
    /// Each column of θ: its strength.
    Column,
    /// Each training sample of all nodes, in order: the weight σ(x) of its loss.
    Sample {
        /// The entry of the node's first sample.
        first: usize,
        /// r of the ridge r |θ|².
        ridge: T,
    },
}

/// c times a mean of losses over samples.
pub struct Term<'a, T> {
    /// The samples.
    pub samples: &'a Samples<T>,
    /// What each of them is trained on.
    pub goals: &'a Goals<T>,
    /// c
    pub c: f64,
}

/// The coefficients of a quadratic and the perturbations of its samples.
pub struct Quadratic<'a, T> {
    /// A, B, c, D, e, R, q, matrices row by row.
    pub coefficients: [&'a [T]; 7],
    /// The number of samples.
    pub samples: usize,
    /// a, b, γ, φ, χ, sample by sample; empty where all are zero.
    pub noise: [&'a [T]; 5],
}
