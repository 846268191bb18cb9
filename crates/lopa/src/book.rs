//! The Rust code on the pages of the book, tested as documentation.

#[doc = include_str!("../../../docs/own-problem.md")]
mod own_problem {}
