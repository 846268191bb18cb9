//! Tests the Rust code of the README, which needs both crates.

#[doc = include_str!("../../../README.md")]
mod readme {}
