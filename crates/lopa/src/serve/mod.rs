//! What becomes of a trained model: judged on new rows, adapted to a new node.

mod adapt;
mod score;

pub use adapt::{Adapted, Newcomer, Personal, adapt};
pub use score::{Answers, AnyScore, BINS, ClassCounts, Score, Truth};
