//! How bytes travel between peers that are machines of their own. It knows no rounds.

use std::time::Duration;

/// What a wire brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// There is a way to this peer, who was asked who they are; what was sent before may be lost.
    Up(usize),
    /// The way to this peer is gone; the wire looks for a new one by itself.
    Down(usize),
    /// Bytes from this peer, whole and as they were sent; frames may be missing, late or doubled.
    Frame(usize, Vec<u8>),
    /// Somebody asked this process to stop.
    Stop,
}

/// Carries frames to neighbours as well as it can: what must arrive is sent again by who uses it.
pub trait Wire: Send {
    /// Sends a frame on its way, without waiting; it is lost if there is no way at the moment.
    fn send(&mut self, to: usize, frame: &[u8]);

    /// The next event, or `None` when the clock shows `until` and nothing came.
    fn next(&mut self, until: Duration) -> Option<Event>;

    /// The time on this wire's clock, which never goes back.
    fn now(&self) -> Duration;
}
