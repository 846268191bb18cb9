//! The scalar type, random numbers, step sizes, conjugate gradients, scratch memory.

pub mod conjugate;
pub mod random;
pub mod real;
pub mod schedule;
pub mod scratch;
