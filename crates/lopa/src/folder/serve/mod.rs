//! What becomes of a trained model: judged on new rows, adapted to a new node, compared by a site.

mod adapt;
mod score;
mod site;

pub use adapt::{Adapted, Newcomer, Personal, adapt};
pub use score::{Answers, AnyScore, BINS, ClassCounts, Score, Truth};
pub use site::{DRAWS, Interval, Judged, Site, judge};
