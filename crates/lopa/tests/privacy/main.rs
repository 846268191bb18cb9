//! `[privacy]`: a row moves a derivative by no more than the clip, noise is never used twice, and the budget holds.

mod audit;
mod mechanism;
mod problems;
mod protection;
mod runs;
