//! A node's part as plain numbers, for a device that computes its derivatives elsewhere.

use std::any::Any;

use crate::data::Samples;

/// The functions of a part, for a device that takes it over.
pub enum Form<'a, T> {
    /// `quadratic`: see there for the names.
    Quadratic(Quadratic<'a, T>),
    /// `hyperparameter`: a linear classifier without a bias, one column of θ or one for each class,
    /// with the regulariser θᵀ diag(eˣ) θ.
    Linear {
        /// The data term of g.
        inner: Term<'a, T>,
        /// The data term of f.
        outer: Term<'a, T>,
        /// Columns of θ.
        columns: usize,
    },
    /// `representation` with one hidden layer.
    Layer {
        /// The data term of g.
        inner: Term<'a, T>,
        /// The data term of f.
        outer: Term<'a, T>,
        /// Hidden units.
        units: usize,
        /// Classes of the head.
        classes: usize,
        /// Whether units compute tanh; a sigmoid otherwise.
        tanh: bool,
        /// μ
        ridge: T,
    },
    /// Code of another language, as the device of that language knows it.
    Code(&'a (dyn Any + Send + Sync)),
}

/// c times a mean of losses over samples.
pub struct Term<'a, T> {
    /// The samples.
    pub samples: &'a Samples<T>,
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
