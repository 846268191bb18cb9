//! One file per command, and what several of them share.

pub mod audit;
mod bars;
pub mod check;
pub mod compare;
pub mod data;
pub mod doctor;
pub mod evaluate;
mod finished;
pub mod graph;
#[cfg(feature = "peers")]
pub mod key;
pub mod list;
pub mod ls;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "peers")]
pub mod node;
mod outside;
pub mod predict;
mod reevaluate;
pub mod report;
pub mod reproduce;
#[cfg(feature = "peers")]
pub mod roster;
pub mod run;
pub mod score;
pub mod signals;
pub mod source;
pub mod summary;
pub mod texts;
pub mod theory;
pub mod threads;
pub mod tune;
