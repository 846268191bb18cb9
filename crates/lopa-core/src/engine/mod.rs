//! Engines move the shared vectors. They do not depend on the algorithm.

mod chapter;
mod cluster;
mod company;
mod delivery;
pub mod device;
pub mod dial;
mod expect;
mod failing;
pub mod list;
pub mod masked;
pub mod messages;
#[cfg(feature = "mpi")]
mod mpi;
mod peers;
mod refusal;
mod simulation;
mod timing;
mod transport;
pub mod variables;
mod wire;

pub use chapter::{Back, Chapter, Position};
pub use cluster::Cluster;
pub use delivery::{Delivery, Direct, Lossy, Site, outboxes, pieces, wire_bytes};
pub use expect::Expect;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use peers::{Cause, Connection, Picture, Sight, Waits};
pub use peers::{FileJournal, Frame, FrameKind, Journal, Note, Peers, Place, Policy, Settings};
pub use peers::{NEXT_CHAPTER, stopped};
pub use refusal::Refusal;
pub use simulation::Simulation;
pub use timing::Timing;
pub use transport::{
    Accepts, Alone, Begin, Independent, Limits, Messages, Parcel, Round, Transport, anything, block,
};
pub use wire::{Event, Signature, Wire};

use crate::algorithms::Algorithm;
use crate::algorithms::parts::directions::TABLE;
use crate::algorithms::parts::steps::RULE;
use crate::engine::messages::Tally;
use crate::math::real::{Real, largest};
use crate::problem::oracle::Oracle;

/// A node: its algorithm's state and its oracle.
pub struct Node<T: Real> {
    /// The node's state in the algorithm.
    pub algorithm: Box<dyn Algorithm<T>>,
    /// The node's part of the problem.
    pub oracle: Oracle<T>,
}

impl<T: Real> Node<T> {
    /// The largest entry of each watched variable; NaN if an entry is not finite.
    pub fn sizes(&self) -> Vec<f64> {
        self.watched().map(|(_, values)| largest(values)).collect()
    }

    /// The variables whose growth means divergence: all but the numbers of the rule for step sizes and SAGA's tables.
    pub fn watched(&self) -> impl Iterator<Item = (&'static str, &[T])> {
        self.algorithm.variables().into_iter().filter(|(name, _)| ![RULE, TABLE].contains(name))
    }
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Iterations done.
    pub k: u64,
    /// Rounds of communication done.
    pub exchanges: u64,
    /// Scalars sent over all links.
    pub floats: u64,
    /// Bytes sent over all links.
    pub bytes: u64,
    /// Counts of messages, if the file has `[messages]` or `[attack]`.
    pub tally: Tally,
}
