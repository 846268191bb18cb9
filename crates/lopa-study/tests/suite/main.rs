//! The tests of lopa-study, in one program.

// Expected values may be the system's: they are compared with a tolerance.
#![allow(clippy::disallowed_methods)]

#[path = "../../../lopa/tests/suite/common/mod.rs"]
mod common;
mod compare;
mod shares;
mod statistics;
mod tune;
