//! `[privacy]`: a row moves a derivative by no more than the clip, noise is never used twice, and the budget holds.

// Expected values may be the system's: they are compared with a tolerance.
#![allow(clippy::disallowed_methods)]

mod audit;
mod mechanism;
mod problems;
mod protection;
mod runs;
