//! Where a peer is, and what it has kept.

use crate::store::bytes::{Reader, Writer};

/// Durable to the end of a run: nothing of it will be needed again.
pub const END: u64 = u64::MAX;

/// What a peer tells a neighbour of itself. Its place has the step that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The sender would go on from this step after a crash: nothing before it is needed.
    pub durable: u64,
    /// What the sender knows of the receiver's `durable`: nothing before it is there any more.
    pub yours: u64,
    /// Whether the sender waits for what the receiver has for it.
    pub asks: bool,
    /// Whether the sender needs nobody any more, for this run's result is on disk.
    pub done: bool,
}

impl Status {
    /// As a payload.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Writer::default();
        let flags = u64::from(self.asks) | u64::from(self.done) << 1;
        [self.durable, self.yours, flags].into_iter().for_each(|value| out.u64(value));
        out.done()
    }

    /// Of a payload; `None` if it is none.
    pub fn read(payload: &[u8]) -> Option<Status> {
        let mut bytes = Reader::new(payload);
        let (durable, yours, flags) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        bytes.end()?;
        let status = Status { durable, yours, asks: flags & 1 == 1, done: flags & 2 == 2 };
        (flags < 4).then_some(status)
    }
}
