//! Messages that are compressed, lost, late, clipped or false. The engine's `Lossy` delivery does
//! this between `share` and `step`, so that algorithms need no code for it.
//!
//! Every link adds w (v_j − v_i) at one end and w (v_i − v_j) at the other, where *both* ends hold
//! the same v of a node: its message, or a replica to which each message is added. Whatever is
//! lost, one end gains as much as the other loses:
//!
//! ```text
//! q_i  = C(message_i − x̂_i)                          what is sent; everybody then adds it to x̂_i
//! mix  = message_i + γ Σ_j w_ij clip(x̂_j − x̂_i)      over the links that are up
//! ```
//!
//! Hence mixing never moves the mean over the nodes: mean(x) moves by −τα mean(y) alone, and
//! mean(y) = mean(z) in tracking methods.

mod attack;
mod clip;
pub mod compress;
mod failures;
mod spec;

pub use attack::{Attack, Lie};
pub(crate) use clip::{Clipping, distance, factor, median};
pub use compress::{AnyCompressor, Compressor, compressor_entry, compressors};
pub use failures::{Failures, Fate};
pub use spec::{Adaptive, Bursts, Clip, Compress, Messages, Rules};

/// Counts of messages so far, over all edges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Messages sent.
    pub sent: u64,
    /// Messages that were lost.
    pub lost: u64,
    /// Messages that were late.
    pub late: u64,
    /// Iterations that nodes did not take part in.
    pub slept: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, Tally { sent, lost, late, slept }: Tally) {
        self.sent += sent;
        self.lost += lost;
        self.late += late;
        self.slept += slept;
    }
}
