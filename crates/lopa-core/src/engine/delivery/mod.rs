//! Delivery of messages from their senders to the weighted sums at their receivers: unchanged
//! ([`Direct`]), or compressed, lost, delayed, clipped and false ([`Lossy`]).

mod buffers;
mod checkpoint;
mod crossings;
mod direct;
mod edges;
mod lossy;
mod states;
mod workers;

pub use crossings::{Border, borders};
pub use direct::Direct;
pub use lossy::{Lossy, wire_bytes};
pub use workers::{Scratch, Workers};

use super::refusal::Refusal;
use super::transport::Parcel;
use crate::algorithms::Algorithm;
use crate::engine::messages::{Failures, Tally};
use crate::error::Result;
use crate::math::real::Real;
use crate::network::mixed::Mixed;
use crate::network::outbox::{Outbox, Piece, Round};
use crate::network::{Cursor, Mixing};

/// Brings the messages of the nodes of this process to their receivers, round by round: [`go`], [`begin`],
/// then [`mixed`] for the nodes that need not wait for other processes, [`receive`], [`mixed`] for the
/// others, [`end`]. Only the nodes of this process are numbered, from 0.
///
/// [`go`]: Delivery::go
/// [`begin`]: Delivery::begin
/// [`mixed`]: Delivery::mixed
/// [`receive`]: Delivery::receive
/// [`end`]: Delivery::end
pub trait Delivery<T: Real>: Send + Sync {
    /// Moves to a round, the `number`-th with messages; `graph` has its edges, where they change.
    fn go(&mut self, round: Round, number: u64, graph: Option<&mut Cursor>);

    /// Takes the messages of the nodes, fills the parcels for other processes, and sizes the
    /// buffers for theirs.
    fn begin(
        &mut self,
        round: Round,
        messages: &[Outbox<T>],
        workers: &Workers<T>,
        parcels: &mut Parcels,
    ) -> Result<()>;

    /// Whether a parcel is one that process `rank` may have sent, with finite numbers if and only if
    /// `finite`: checked on arrival, before it is used.
    fn accepts(&self, round: Round, rank: usize, bytes: &[u8], finite: bool)
    -> Result<(), Refusal>;

    /// Takes the messages of other processes out of their parcels.
    fn receive(&mut self, round: Round, workers: &Workers<T>, parcels: &Parcels) -> Result<()>;

    /// The weighted sums of the messages of node `i` and its neighbours.
    fn mixed<'a>(
        &'a self,
        round: Round,
        i: usize,
        messages: &'a [Outbox<T>],
        scratch: &'a mut Scratch<T>,
    ) -> Mixed<'a, T>;

    /// The cost of exchange `e`, over all nodes, with messages of `length` scalars.
    fn end(&self, e: usize, length: u64) -> Carried;

    /// Whether any node of this process has neighbours in other processes.
    fn spans(&self) -> bool;

    /// Whether node `i` has neighbours in other processes.
    fn waits(&self, i: usize) -> bool;

    /// Whether node `i` takes part in this iteration.
    fn takes_part(&self, _i: usize) -> bool {
        true
    }

    /// Bytes per scalar of a parcel: 1 if its content is compressed.
    fn scalar(&self) -> usize {
        T::BYTES
    }

    /// How edges and nodes fail, if they do.
    fn failures(&self) -> Option<&Failures> {
        None
    }

    /// The state of node `i` for a checkpoint.
    fn save(&self, _i: usize) -> Vec<u8> {
        Vec::new()
    }

    /// Restores the saved state of node `i`; `None` if it does not fit.
    fn restore(&mut self, _i: usize, bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }
}

/// The cost of an exchange, over all nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carried {
    /// Scalars sent.
    pub floats: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Bytes of one message.
    pub message: u64,
    /// Counts of messages, where they can be lost.
    pub tally: Tally,
}

/// The setting of a delivery: network, process, messages.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// W; for a changing graph, as if all its edges were used in every round.
    pub mixing: &'a Mixing,
    /// Whether rounds use only some of these edges: see [`Delivery::go`].
    pub changes: bool,
    /// 1 minus the smallest eigenvalue of any W.
    pub spread: f64,
    /// The seed of the run.
    pub seed: u64,
    /// The number of processes.
    pub size: usize,
    /// The rank of this one.
    pub rank: usize,
    /// For each exchange of an iteration, the vectors and numbers of a message.
    pub pieces: &'a [Vec<Piece>],
}

/// The bytes of a round to and from other processes, in memory that is kept.
#[derive(Debug, Default)]
pub struct Parcels {
    out: Vec<Parcel>, // those of this round come first
    sends: usize,
    into: Vec<Parcel>, // likewise
    receives: usize,
}

impl Parcels {
    /// Begins a round without parcels.
    fn clear(&mut self) {
        (self.sends, self.receives) = (0, 0);
    }

    /// A parcel to a process, to be filled.
    fn send(&mut self, rank: usize) -> &mut Parcel {
        next(&mut self.out, &mut self.sends, rank)
    }

    /// Expects a parcel of this length from a process.
    fn expect(&mut self, rank: usize, length: usize) {
        next(&mut self.into, &mut self.receives, rank).bytes.resize(length, 0);
    }

    /// Those received.
    fn received(&self) -> &[Parcel] {
        &self.into[..self.receives]
    }

    /// Those to send, and those to receive.
    pub(super) fn both(&mut self) -> (&[Parcel], &mut [Parcel]) {
        (&self.out[..self.sends], &mut self.into[..self.receives])
    }
}

/// The next parcel, empty.
fn next<'p>(parcels: &'p mut Vec<Parcel>, count: &mut usize, rank: usize) -> &'p mut Parcel {
    if *count == parcels.len() {
        parcels.push(Parcel::default());
    }
    let parcel = &mut parcels[*count];
    *count += 1;
    (parcel.rank, parcel.finite) = (rank, true);
    parcel.bytes.clear();
    parcel
}

/// What a node sends in each exchange of the first iteration.
pub fn outboxes<T: Real>(algorithm: &dyn Algorithm<T>) -> impl Iterator<Item = Outbox<T>> {
    (0..algorithm.exchanges()).map(|e| {
        let mut out = Outbox::default();
        algorithm.share(Round { k: 0, e }, &mut out);
        out
    })
}

/// The vectors and numbers that a node sends in each exchange of an iteration.
pub fn pieces<T: Real>(algorithm: &dyn Algorithm<T>) -> Vec<Vec<Piece>> {
    outboxes(algorithm).map(|out| out.pieces().collect()).collect()
}
