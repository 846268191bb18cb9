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
}

impl Status {
    /// Encodes the payload.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Writer::default();
        let flags = u64::from(self.asks) | u64::from(self.done) << 1 | u64::from(self.knows) << 2;
        [self.durable, self.yours, flags].into_iter().for_each(|value| out.u64(value));
        out.done()
    }

    /// Decodes a payload; `None` if it is malformed.
    pub fn read(payload: &[u8]) -> Option<Status> {
        let mut bytes = Reader::new(payload);
        let (durable, yours, flags) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        bytes.end()?;
        let [asks, done, knows] = [1, 2, 4].map(|flag| flags & flag != 0);
        (flags < 8).then_some(Status { durable, yours, asks, done, knows })
    }
}
