//! Studies of lopa's runs: fair [comparison](compare), [tuning](tune) with equal budgets, a [first experiment](init)
//! on one's own data with [chosen](choose) step sizes, and [statistics].
//!
//! The crates below do not depend on this one.

pub mod choose;
pub mod compare;
pub mod init;
pub mod practical;
pub mod seeds;
pub mod sentences;
pub mod statistics;
pub mod table;
pub mod tune;

use lopa::math::parallel;
