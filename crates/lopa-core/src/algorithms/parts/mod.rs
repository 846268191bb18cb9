//! The building blocks of algorithms.

pub mod consensus;
pub mod directions;
pub mod estimator;
pub mod hypergradient;
pub mod loopless;
pub mod prox;
pub mod steps;
