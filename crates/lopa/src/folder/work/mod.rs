//! Work lists: independent units with stable names. One process does a list alone, or several parts share it
//! through a folder; every unit is done once, and the results are the same.
//!
//! A command lists its units, such as the trials of a search or the runs of an experiment, and [`walk`]s the list.
//! A [`Ledger`] hands out the units and keeps their results: a journal where one process works alone, a [`Part`]
//! where several share a folder, and [`Merge`] where all have ended.

mod list;
mod merge;
mod notes;
mod part;
mod share;

pub use list::{Ledger, Next, Sender, Unit, interrupted, walk, walk_alone, walk_sent};
pub use merge::Merge;
pub use part::{Beating, Clock, Member, Part};
pub use share::Share;
