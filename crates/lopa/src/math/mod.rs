//! The scalar type, random numbers, step sizes, conjugate gradients, scratch memory; numbers for people.

pub mod conjugate;
mod number;
pub mod random;
pub mod real;
pub mod schedule;
pub mod scratch;

pub use number::{number, written};
