//! Every kernel, on random shapes and data, at every level that this processor has: close to plain
//! loops in f64, and equal to the other levels bit for bit. Also the edges of shapes and of eˣ, and
//! what kernels refuse.

mod draw;
mod functions;
mod products;
mod refused;
