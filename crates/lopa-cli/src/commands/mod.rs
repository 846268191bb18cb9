//! One file per command, with its arguments, and the code that several commands share.

// Commands.
pub mod adapt;
pub mod check;
pub mod compare;
pub mod data;
pub mod doctor;
pub mod evaluate;
pub mod export;
pub mod graph;
pub mod init;
pub mod list;
pub mod ls;
// Without the feature, nothing reads the arguments.
#[cfg_attr(not(feature = "paper"), allow(dead_code))]
pub mod paper;
#[cfg_attr(not(feature = "peers"), allow(dead_code))]
pub mod peers;
pub mod predict;
pub mod privacy;
pub mod report;
pub mod run;
pub mod texts;
pub mod tune;

// Shared.
mod bars;
mod environment;
mod finished;
mod run_folder;
mod share;
mod signals;
mod source;
mod summary;
mod threads;
