//! Distributed stochastic bilevel optimisation with personal inner problems.

pub mod config;
pub mod data;
pub mod error;
pub mod problem;
pub mod problems;
pub mod random;
pub mod real;
pub mod registry;
