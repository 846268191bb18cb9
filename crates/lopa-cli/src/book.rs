//! Tests the Rust code of this crate's page.

#[doc = include_str!("../README.md")]
mod readme {}
