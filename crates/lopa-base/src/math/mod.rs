//! The scalar type, functions with the same bits everywhere, random numbers, step sizes, conjugate gradients, exact sums,
//! ranks, errors of predictions, threads, scratch memory, and formatting of numbers.

pub mod concordance;
pub mod conjugate;
pub mod errors;
pub mod exact;
mod number;
pub mod parallel;
pub mod portable;
pub mod random;
pub mod rank;
pub mod real;
pub mod schedule;
pub mod scratch;

pub use number::{number, written};
