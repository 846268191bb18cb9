//! Every problem of the registry keeps the promises of `Bilevel`.

pub mod cases;
mod conformance;
mod golden;
mod particular;
mod refusals;
