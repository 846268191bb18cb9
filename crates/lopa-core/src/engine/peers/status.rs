//! A peer's progress, as it reports it to its neighbours.

use crate::store::bytes::{Reader, Writer};

/// Durable to the end of a run: nothing of the run is needed again.
pub const END: u64 = u64::MAX;

/// A peer's progress; the frame's place has its current step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// The step that the sender would resume from after a crash: it needs nothing before it.
    pub durable: u64,
    /// The receiver's `durable`, as last received by the sender: the sender has discarded frames
    /// before it.
    pub yours: u64,
    /// Whether the sender asks the receiver to resend the frames it lacks.
    pub asks: bool,
    /// Whether the sender's result is on disk, so that it needs no other peer.
    pub done: bool,
    /// Whether the sender has received that the receiver's result is on disk.
    pub knows: bool,
    /// Whether the sender needs nothing of the receiver any more: it has received that the receiver
    /// is done, and that the receiver knows the same of it.
    pub settled: bool,
}

impl Status {
    /// Bytes of a payload.
    pub const BYTES: usize = 3 * size_of::<u64>();

    /// Encodes the payload.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Writer::default();
        let flags = [self.asks, self.done, self.knows, self.settled];
        let flags = flags.iter().rev().fold(0, |flags, &flag| flags << 1 | u64::from(flag));
        [self.durable, self.yours, flags].into_iter().for_each(|value| out.u64(value));
        out.done()
    }

    /// Decodes a payload; `None` if it is malformed.
    pub fn read(payload: &[u8]) -> Option<Status> {
        let mut bytes = Reader::new(payload);
        let (durable, yours, flags) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        bytes.end()?;
        let [asks, done, knows, settled] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
        (flags < 16).then_some(Status { durable, yours, asks, done, knows, settled })
    }
}
