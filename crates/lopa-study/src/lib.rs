//! What lopa's runs say: the paper's [theory] made executable, fair [comparison](compare),
//! [tuning](tune) with equal budgets, and the [reproduction](reproduce) of the paper's experiments.
//!
//! Nothing below this crate needs it.

pub mod compare;
pub mod reproduce;
pub mod statistics;
pub mod theory;
pub mod tune;
