//! What a peer is told before a run, and what it tells.

use std::time::Duration;

use super::frame::Refusal;
use super::journal::Journal;

/// What to do about a neighbour that is silent.
pub enum Policy {
    /// Wait for it, until the deadline.
    Wait,
    /// Stop as soon as the way to it is gone.
    Stop,
    /// Leave its link out of the exchange, at both ends.
    SkipLink {
        /// How long to wait for its message first.
        patience: Duration,
        /// Where skipped exchanges are written down before anybody acts on them.
        journal: Box<dyn Journal>,
    },
}

/// How a peer waits.
pub struct Settings {
    /// What to do about a neighbour that is silent.
    pub policy: Policy,
    /// No wait is longer; it must be more than the longest iteration or measurement of any peer.
    pub deadline: Duration,
    /// A frame that does not come is asked for again after this time.
    pub resend: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            policy: Policy::Wait,
            deadline: Duration::from_secs(600),
            resend: Duration::from_secs(1),
        }
    }
}

/// What whoever runs a peer should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Frames of a peer are not taken; told once for each peer and reason.
    Refused {
        /// Whose.
        peer: usize,
        /// Why.
        why: Refusal,
    },
    /// A link was left out of an exchange, at both ends.
    Skipped {
        /// The neighbour.
        peer: usize,
        /// The iteration.
        k: u64,
        /// The exchange of the iteration.
        e: usize,
    },
}

impl Note {
    /// In words, with the neighbours' names.
    pub fn text(&self, name: impl Fn(usize) -> String) -> String {
        match *self {
            Note::Refused { peer, why } => {
                format!("refused a frame of {}: {}", name(peer), why.text())
            }
            Note::Skipped { peer, k, .. } => {
                format!("iteration {k}: the link to {} is left out", name(peer))
            }
        }
    }
}
