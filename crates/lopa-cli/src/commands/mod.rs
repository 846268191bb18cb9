//! One file a command.

pub mod check;
pub mod graph;
pub mod list;
pub mod ls;
pub mod report;
pub mod run;
pub mod saved;
pub mod source;
pub mod summary;
pub mod texts;
