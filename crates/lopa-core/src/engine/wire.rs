//! Moves frames between peers on separate machines. A wire does not depend on rounds.

use std::time::Duration;

/// A node's signature.
pub type Signature = [u8; 64];

/// An event of a wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An authenticated connection to this peer is open; frames sent earlier may be lost.
    Up(usize),
    /// The connection to this peer is lost; the wire reconnects by itself.
    Down(usize),
    /// A whole frame from this peer; frames may be lost, late, duplicated or reordered.
    Frame(usize, Vec<u8>),
    /// This process was asked to stop.
    Stop,
}

/// Delivers frames to neighbours, best effort; callers retransmit. It has the keys of all nodes.
pub trait Wire: Send {
    /// Sends a frame without waiting; it is lost if there is no connection.
    fn send(&mut self, to: usize, frame: &[u8]);

    /// The next event, or `None` if none arrives by `until`.
    fn next(&mut self, until: Duration) -> Option<Event>;

    /// The time on this wire's monotonic clock.
    fn now(&self) -> Duration;

    /// Signs bytes as this node: the same bytes get the same signature.
    fn sign(&self, bytes: &[u8]) -> Signature;

    /// A secret of this node and another, from the keys of both: the same at both, and at no other.
    fn secret(&self, node: usize) -> Option<[u8; 32]>;

    /// Whether a node of the run signed these bytes.
    fn verify(&self, node: usize, bytes: &[u8], signature: &Signature) -> bool;
}
