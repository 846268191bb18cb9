//! Conformance tests: one line of a test checks everything that a problem or an algorithm promises.
//!
//! ```
//! use lopa::prelude::*;
//!
//! # fn registries() -> Registries {
//! #     Registries::default()
//! # }
//! let text = "problem = { name = 'quadratic', n = 3, p = 2, noise = 0.5, samples = 6 }";
//! lopa::conformance::problem(&registries(), text).unwrap();
//! lopa::conformance::algorithm(&registries(), "dgd").unwrap();
//! ```
//!
//! An error names the check by its id (`conformance/cross-g`), the place, the two numbers that
//! should agree, and the usual cause.
//!
//! Iterations and derivatives should allocate nothing once they have run. That is checked in
//! programs that count their allocations, and skipped in others:
//!
//! ```
//! #[global_allocator]
//! static COUNTING: lopa::conformance::Counting = lopa::conformance::Counting;
//! # fn main() {}
//! ```

mod algorithm;
mod compare;
mod derivatives;
mod lab;
mod limit;
mod problem;
mod question;
mod subject;

pub use algorithm::{algorithm, variant};
pub use lopa_kernels::counting::Counting;
pub use problem::problem;

use crate::error::{Error, Kind, Result};

/// A promise that is not kept.
fn broken(id: &'static str, message: impl Into<String>) -> Error {
    Error::new(Kind::Mismatch, id, message)
}

/// `Ok` if `holds`, else the promise that is not kept.
fn ensure(holds: bool, id: &'static str, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(broken(id, message())) }
}

/// The allocations of a call on this thread; `None` in programs that do not count them.
fn allocations(call: impl FnOnce()) -> Option<u64> {
    let counts = Counting::is_installed();
    let before = Counting::allocations();
    call();
    counts.then(|| Counting::allocations() - before)
}
