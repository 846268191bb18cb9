//! What becomes of a trained model: judged on new rows, adapted to a new node, exported.

mod adapt;
mod onnx;
mod score;

pub use adapt::{Adapted, Newcomer, Personal, adapt};
pub use onnx::onnx;
pub use score::{BINS, ClassCounts, Score, Truth};
