//! One file a command, and what several of them need.

pub mod again;
mod bars;
pub mod check;
pub mod compare;
pub mod data;
pub mod doctor;
pub mod evaluate;
pub mod graph;
pub mod list;
pub mod ls;
#[cfg(feature = "mpi")]
mod mpi;
pub mod predict;
pub mod report;
pub mod reporter;
pub mod reproduce;
pub mod run;
pub mod saved;
pub mod score;
pub mod signals;
pub mod source;
pub mod summary;
pub mod texts;
pub mod theory;
pub mod threads;
pub mod tune;
