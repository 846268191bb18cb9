//! Settings of a peer, and the notes it sends to its user.

use std::time::Duration;

use super::journal::Journal;
use crate::engine::refusal::Refusal;

/// What to do about a silent neighbour.
pub enum Policy {
    /// Wait for it, until the deadline.
    Wait,
    /// Stop as soon as the connection to it is lost.
    Stop,
    /// Skip its link in the exchange, at both ends.
    SkipLink {
        /// How long to wait for its message.
        patience: Duration,
        /// Records skipped exchanges before any node acts on them.
        journal: Box<dyn Journal>,
    },
    /// Wait for it; after a long silence the others agree to go on without it. Peers must state how far they
    /// are: see [`Peers::watch`](super::Peers::watch).
    Leave {
        /// How long a node must be silent, towards all; it must exceed the longest iteration or
        /// measurement of any peer.
        silence: Duration,
        /// Records votes and agreements before any node acts on them.
        journal: Box<dyn Journal>,
    },
}

/// How a peer waits.
pub struct Settings {
    /// What to do about a silent neighbour.
    pub policy: Policy,
    /// The longest wait; it must exceed the longest iteration or measurement of any peer.
    pub deadline: Duration,
    /// How often to ask for missing frames.
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

/// A note for the user of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A frame was refused; reported once per peer and reason.
    Refused {
        /// The sender.
        peer: usize,
        /// The reason.
        why: Refusal,
    },
    /// A neighbour's numbers are not finite from here on: the run diverges; reported once per run.
    Overflow {
        /// The neighbour.
        peer: usize,
        /// The iteration.
        k: u64,
    },
    /// Nodes have left, and the others go on without them.
    Left {
        /// Those that left.
        nodes: Vec<usize>,
        /// The index of the run.
        job: u32,
        /// The iteration from which the others continue; `None` for the start of the run.
        k: Option<u64>,
    },
    /// Nodes come back, and all go on with them.
    Back {
        /// Those that come back.
        nodes: Vec<usize>,
        /// The index of the run.
        job: u32,
        /// The iteration from which all continue; `None` for the start of the run.
        k: Option<u64>,
    },
    /// A link was skipped in an exchange, at both ends.
    Skipped {
        /// The neighbour.
        peer: usize,
        /// The iteration.
        k: u64,
        /// The exchange within the iteration.
        e: usize,
    },
}

impl Note {
    /// The note as text, with the neighbours' names.
    pub fn text(&self, name: impl Fn(usize) -> String) -> String {
        let names = |nodes: &[usize]| -> String {
            nodes.iter().map(|&node| name(node)).collect::<Vec<_>>().join(", ")
        };
        let them = |nodes: &[usize]| if nodes.len() == 1 { "it" } else { "them" };
        let from =
            |k: Option<u64>| k.map_or("the start of the run".into(), |k| format!("iteration {k}"));
        match *self {
            Note::Left { ref nodes, k, .. } => {
                let (who, it, from) = (names(nodes), them(nodes), from(k));
                format!("{who} left: the others go on without {it}, from {from}")
            }
            Note::Back { ref nodes, k, .. } => {
                let (who, it, from) = (names(nodes), them(nodes), from(k));
                format!("{who} came back: all go on with {it}, from {from}")
            }
            Note::Refused { peer, why } => {
                format!("refused a frame from {}: {}", name(peer), why.text())
            }
            Note::Overflow { peer, k } => {
                format!("iteration {k}: what {} sends is no longer finite", name(peer))
            }
            Note::Skipped { peer, k, .. } => {
                format!("iteration {k}: skipped the link to {}", name(peer))
            }
        }
    }
}
