//! `lopa theory`, `lopa reproduce`: the paper that introduced LoPA.

pub mod args;
#[cfg(not(feature = "paper"))]
mod missing;
#[cfg(feature = "paper")]
mod reproduce;
#[cfg(feature = "paper")]
mod theory;

#[cfg(not(feature = "paper"))]
pub use missing::{reproduce, theory};
#[cfg(feature = "paper")]
pub use {reproduce::reproduce, theory::theory};
