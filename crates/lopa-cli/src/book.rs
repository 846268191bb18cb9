//! The Rust code of the README, tested as documentation: it needs both crates.

#[doc = include_str!("../../../README.md")]
mod readme {}
