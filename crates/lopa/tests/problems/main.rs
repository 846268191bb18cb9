//! Every problem of the registry keeps the promises of `Bilevel`.

mod cases;
mod conformance;
mod golden;
mod particular;
mod refusals;
