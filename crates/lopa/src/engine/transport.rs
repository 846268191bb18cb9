//! The way to nodes that live in other processes. It knows bytes, and no algorithm.

use std::ops::Range;

use super::peers::Longest;
use crate::error::Result;
use crate::network::Mixing;

/// Which exchange: of which iteration, its number in it, and what its messages are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// The iteration.
    pub k: u64,
    /// The exchange of the iteration.
    pub e: usize,
    /// Bytes of a number.
    pub scalar: usize,
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

    /// This process, if it keeps for itself where it stands; else process 0 keeps it for all.
    fn independent(&mut self) -> Option<&mut dyn Independent> {
        None
    }
}

/// A process that keeps for itself where it stands, and goes on from there while others go on.
pub trait Independent {
    /// A run begins, or goes on from what [`Independent::save`] gave.
    fn begin(&mut self, run: Begin) -> Result<()>;

    /// A run that came to its end before: it is not run again.
    fn pass(&mut self, run: Begin) -> Result<()>;

    /// Here is where a checkpoint goes on from.
    fn mark(&mut self);

    /// What a checkpoint must know, with all that came since the mark; whether that is all that the
    /// run needs.
    fn save(&self, complete: bool) -> Vec<u8>;

    /// What was saved last is on disk.
    fn kept(&mut self) -> Result<()>;

    /// All that the run's end needs is on disk: waits until the neighbours are as far.
    fn end(&mut self) -> Result<()>;

    /// The results of all runs are on disk: stays for neighbours whose are not, until the deadline.
    fn linger(&mut self) -> Result<()>;

    /// Whether somebody asked this process to stop.
    fn stopped(&self) -> bool;
}

/// A run that begins.
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// The how manieth of the experiment, from 0.
    pub job: u32,
    /// W.
    pub mixing: &'a Mixing,
    /// What was saved of it, if it goes on.
    pub kept: Option<&'a [u8]>,
    /// What others may send at most.
    pub longest: Longest,
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
