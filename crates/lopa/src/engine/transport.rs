//! The way to nodes that live in other processes. It knows bytes, and no algorithm.

use std::ops::Range;

use crate::error::Result;

/// Which exchange: of which iteration, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// The iteration.
    pub k: u64,
    /// The exchange of the iteration.
    pub e: usize,
}

/// Bytes for another process, or from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parcel {
    /// The other process.
    pub rank: usize,
    /// What is sent or received.
    pub bytes: Vec<u8>,
}

/// Moves bytes between the processes of a run, which all make the same calls in the same order.
pub trait Transport: Send {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// Sends and receives parcels, while `meanwhile` goes on; each that comes in is as long as its
    /// place was made.
    fn exchange(
        &mut self,
        round: Round,
        out: &[Parcel],
        into: &mut [Parcel],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()>;

    /// What every process says, in their order, from what this one says.
    fn all(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// The same for process 0; the others get nothing.
    fn gather(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>>;
}

/// One process, and nobody to talk to.
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
        _: &[Parcel],
        _: &mut [Parcel],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        meanwhile();
        Ok(())
    }

    fn all(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![ours.to_vec()])
    }

    fn gather(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.all(ours)
    }
}

/// The nodes that live in a process: blocks as even as can be.
pub fn block(nodes: usize, size: usize, rank: usize) -> Range<usize> {
    rank * nodes / size..(rank + 1) * nodes / size
}
