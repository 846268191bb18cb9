//! Where a peer is, and what it has kept.

use crate::bytes::{Reader, Writer};

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
}

impl Status {
    /// As a payload.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Writer::default();
        [self.durable, self.yours, u64::from(self.asks)].into_iter().for_each(|v| out.u64(v));
        out.done()
    }

    /// Of a payload; `None` if it is none.
    pub fn read(payload: &[u8]) -> Option<Status> {
        let mut bytes = Reader::new(payload);
        let (durable, yours, asks) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        bytes.end()?;
        (asks <= 1).then_some(Status { durable, yours, asks: asks == 1 })
    }
}
