//! The library's tests, in one program: the algorithms are generic in the precision, and every
//! program that uses them compiles them again.

// The examples, which conformance tests include, each have their `mod common`.
#![allow(clippy::duplicate_mod)]
// Expected values may be the system's: they are compared with a tolerance.
#![allow(clippy::disallowed_methods)]

mod advice;
mod algorithms;
mod bad_data;
mod changing;
mod checkpoint;
mod citation;
mod clock;
mod clock_failing;
mod common;
mod config;
mod conformance;
mod convergence;
mod data;
mod documentation;
mod exact;
mod extends;
#[cfg(feature = "fetch")]
mod fetch;
mod field;
mod files;
mod folder;
mod golden;
mod large;
mod messages;
mod missing;
mod network;
mod new_rows;
mod own_files;
mod pages;
mod paper;
mod partition;
mod parts;
mod portable;
mod problems;
mod reference;
mod regression;
mod rivals;
mod runs;
mod saga;
mod scaling;
mod scope;
mod seam;
mod steps;
mod survival;
mod validation;
mod work;

/// Lets the conformance tests count allocations.
#[global_allocator]
static COUNTING: lopa::conformance::Counting = lopa::conformance::Counting;
