//! The tests of lopa-study, in one program.

#[path = "../../../lopa/tests/suite/common/mod.rs"]
mod common;
mod compare;
mod shares;
mod statistics;
mod tune;
