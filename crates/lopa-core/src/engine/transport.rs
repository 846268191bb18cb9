//! Moves bytes between the processes of a run. A transport does not depend on the algorithm.

use std::ops::Range;

use super::chapter::Chapter;
use super::refusal::Refusal;
use crate::error::Result;
#[cfg(feature = "mpi")]
use crate::error::{Error, Kind};
use crate::network::Mixing;
pub use crate::network::outbox::Round;

/// Bytes to or from another process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parcel {
    /// The other process.
    pub rank: usize,
    /// The content.
    pub bytes: Vec<u8>,
    /// Whether its sender assures that all numbers in it are finite. Where a run diverges they are not.
    pub finite: bool,
}

/// Checks bytes on arrival, before they are used; the first argument is the rank of their sender.
pub type Accepts<'a> = &'a dyn Fn(usize, &[u8]) -> std::result::Result<(), Refusal>;

/// Accepts all bytes: from trusted processes, or where the caller checks them.
pub fn anything(_: usize, _: &[u8]) -> std::result::Result<(), Refusal> {
    Ok(())
}

/// Like [`Accepts`], for messages; the last argument is whether their numbers must be finite.
pub type Messages<'a> = &'a dyn Fn(usize, &[u8], bool) -> std::result::Result<(), Refusal>;

/// Moves bytes between the processes of a run, which all make the same calls in the same order.
pub trait Transport: Send {
    /// The rank of this process, from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// The number of this process among those on its machine, from 0.
    fn place(&self) -> usize {
        0
    }

    /// Whether the same run in another number of processes must have the same bits, also on devices.
    fn is_divisible(&self) -> bool {
        self.size() > 1
    }

    /// Sends `out` and fills `into`, whose buffers have the lengths to receive, with messages that
    /// `accepts` admits; runs `meanwhile` while messages are in transit. `scalar` is the number of
    /// bytes per scalar, 1 for compressed content.
    fn exchange(
        &mut self,
        round: Round,
        scalar: usize,
        out: &[Parcel],
        into: &mut [Parcel],
        accepts: Messages,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()>;

    /// Gathers the bytes of all processes, in rank order, at every process; all of them are accepted.
    fn all(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>>;

    /// Gathers them at process 0; the others get nothing.
    fn gather(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>>;

    /// A secret of this process and another, if they have one: the same at both, and at no other.
    fn secret(&self, _rank: usize) -> Option<[u8; 32]> {
        None
    }

    /// This process, if it keeps its own checkpoints; otherwise process 0 keeps them for all.
    fn independent(&mut self) -> Option<&mut dyn Independent> {
        None
    }
}

/// A process that keeps its own checkpoints and resumes from them while the others keep running.
pub trait Independent {
    /// Begins a run, or resumes it from the bytes of [`Independent::save`].
    fn begin(&mut self, run: Begin) -> Result<()>;

    /// Passes over a run that is already complete.
    fn pass(&mut self, run: Begin) -> Result<()>;

    /// Marks the current step as the one the next checkpoint resumes from.
    fn mark(&mut self);

    /// The transport's part of a checkpoint, with all messages received since the mark; `complete`
    /// if the run can finish with these alone.
    fn save(&self, complete: bool) -> Vec<u8>;

    /// Whether this process should write a checkpoint soon.
    fn wants_checkpoint(&self) -> bool;

    /// Called when the last saved state is on disk.
    fn kept(&mut self) -> Result<()>;

    /// Called when everything that the end of the run needs is on disk: waits until the same holds
    /// for the neighbours.
    fn end(&mut self) -> Result<()>;

    /// Called when the results of all runs are on disk: serves neighbours that are not done yet,
    /// until the deadline.
    fn linger(&mut self) -> Result<()>;

    /// Whether links to silent neighbours are skipped.
    fn skips(&self) -> bool {
        false
    }

    /// Whether this process was asked to stop.
    fn stopped(&self) -> bool;

    /// The number of this process's node, which stays the same when others leave.
    fn node(&self) -> usize;

    /// The parts of the runs with different members; one if no node has left.
    fn chapters(&mut self) -> Result<Vec<Chapter>>;

    /// Whether members that are silent for long are left out: then checkpoints of all nodes must be of
    /// the same iterations, and the last two stay.
    fn leaves(&self) -> bool {
        false
    }

    /// Waits until this node, which was left out, is a member again; `held` are the iterations of its own states of
    /// the run with this index, on disk. False if the others have ended all runs without it.
    fn come_back(&mut self, _job: u32, _held: &[u64]) -> Result<bool> {
        Ok(true)
    }

    /// Called when the state after this many iterations is on disk.
    fn note_checkpoint(&mut self, _k: u64) {}
}

/// Size limits of a neighbour's messages, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// In an exchange.
    pub message: usize,
    /// In a broadcast.
    pub broadcast: usize,
}

/// The start of a run.
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// The run's index in the experiment, from 0.
    pub job: u32,
    /// W.
    pub mixing: &'a Mixing,
    /// The saved state, if the run resumes.
    pub kept: Option<&'a [u8]>,
    /// The iterations of the checkpoints on disk, for a run that can go on without a node.
    pub held: Option<&'a [u64]>,
    /// Whether this node comes back without the state that the chapter begins with; `held` then lists the states that it
    /// does have.
    pub lacks: bool,
    /// Size limits of incoming messages.
    pub limits: Limits,
}

/// A single process, which holds all nodes.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Transport for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(
        &mut self,
        _: Round,
        _: usize,
        _: &[Parcel],
        _: &mut [Parcel],
        _: Messages,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        meanwhile();
        Ok(())
    }

    fn all(&mut self, ours: &[u8], _: Accepts) -> Result<Vec<Vec<u8>>> {
        Ok(vec![ours.to_vec()])
    }

    fn gather(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>> {
        self.all(ours, accepts)
    }
}

/// The bytes of all processes, if all are accepted; trusted processes end otherwise.
#[cfg(feature = "mpi")]
pub fn accepted(all: Vec<Vec<u8>>, accepts: Accepts) -> Result<Vec<Vec<u8>>> {
    for (rank, bytes) in all.iter().enumerate() {
        accepts(rank, bytes).map_err(|why| {
            let message = format!("a message of process {rank} cannot be used: {}", why.text());
            Error::new(Kind::Run, "engine/garbled", message)
                .hint("start the same lopa with the same files in all processes")
        })?;
    }
    Ok(all)
}

/// The nodes of process `rank` out of `size`: contiguous blocks of nearly equal size.
pub fn block(nodes: usize, size: usize, rank: usize) -> Range<usize> {
    rank * nodes / size..(rank + 1) * nodes / size
}
