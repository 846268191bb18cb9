//! The tests of lopa-paper, in one program.

#[path = "../../../lopa/tests/suite/common/mod.rs"]
mod common;
mod figures;
mod reproduce;
mod theory;
