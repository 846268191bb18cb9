//! Studies of lopa's runs: the paper's [theory] as code, fair [comparison](compare), [tuning](tune)
//! with equal budgets, a [first experiment](init) on one's own data with [chosen](choose) step sizes,
//! and the [reproduction](reproduce) of the paper's experiments.
//!
//! The crates below do not depend on this one.

pub mod choose;
pub mod compare;
pub mod init;
pub mod reproduce;
pub mod seeds;
pub mod sentences;
pub mod statistics;
pub mod theory;
pub mod tune;

use lopa::math::parallel;
