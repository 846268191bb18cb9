//! Engines: what moves the shared vectors. They know no algorithm.

mod cluster;
mod links;
#[cfg(feature = "mpi")]
mod mpi;
mod peers;
mod simulation;
mod transport;
mod wire;

pub use cluster::Cluster;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub(crate) use peers::stopped;
pub use peers::{
    FileJournal, Frame, FrameKind, Journal, Longest, Note, Peers, Place, Policy, Refusal, Settings,
};
pub use simulation::Simulation;
pub use transport::{Alone, Begin, Independent, Parcel, Round, Transport, block};
pub use wire::{Event, Wire};

use crate::algorithms::Algorithm;
use crate::oracle::Oracle;
use crate::real::{Real, update};

/// A node: its algorithm's state and its oracle.
pub struct Node<T: Real> {
    /// One side of the algorithm.
    pub algorithm: Box<dyn Algorithm<T>>,
    /// The node's part of the problem.
    pub oracle: Oracle<T>,
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
}

/// Row i of W in the precision of the run: (j, w_ij) for the neighbours of i, increasing j.
pub type Row<T> = Vec<(usize, T)>;

/// Row i of W, without the node itself: see [`mix`].
pub fn row<T: Real>(i: usize, weights: &[(usize, f64)]) -> Row<T> {
    weights.iter().filter(|(j, _)| *j != i).map(|&(j, w)| (j, T::of(w))).collect()
}

/// `out ← own + Σ_j w_ij (message_j − own)`: the weighted sum over a node and its neighbours.
///
/// All engines mix here, at the receiver, in the order of the row: that is why they agree to the
/// last bit. The difference form makes exact consensus a fixed point to the bit.
pub fn mix<'a, T: Real>(
    row: &[(usize, T)],
    own: &[T],
    message: impl Fn(usize) -> &'a [T],
    out: &mut Vec<T>,
) {
    out.clear();
    out.extend_from_slice(own);
    // Piece by piece, so that a piece of the sum stays in the cache while neighbours are added.
    for (piece, out) in out.chunks_mut(PIECE).enumerate() {
        let at = piece * PIECE..piece * PIECE + out.len();
        for &(j, w) in row {
            let theirs = message(j);
            assert_eq!(theirs.len(), own.len(), "all nodes share vectors of one length");
            let (own, theirs) = (&own[at.clone()], &theirs[at.clone()]);
            update(out, [own, theirs], |sum, [own, theirs]| sum + w * (theirs - own));
        }
    }
}

/// Numbers mixed at a time.
const PIECE: usize = 1024;
