//! Every kernel, on random shapes and data, at every level that this processor has: close to plain
//! loops in f64, and equal to the other levels bit for bit. Also extreme shapes and arguments of
//! eˣ, and refused arguments.

// Expected values may be the system's: they are compared with a tolerance.
#![allow(clippy::disallowed_methods)]

mod draw;
mod functions;
mod products;
mod refused;
