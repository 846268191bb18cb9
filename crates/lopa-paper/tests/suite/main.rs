//! The tests of lopa-paper, in one program.

// Expected values may be the system's: they are compared with a tolerance.
#![allow(clippy::disallowed_methods)]

#[path = "../../../lopa/tests/suite/common/mod.rs"]
mod common;
mod figures;
mod reproduce;
mod theory;
