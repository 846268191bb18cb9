//! What algorithms are put together from.

pub mod consensus;
pub mod directions;
pub mod estimator;
pub mod hypergradient;
pub mod prox;
