//! What a run with `[privacy]` asks of the ledger of its rows, and what the ledger answers.

use crate::error::Error;
use crate::problem::private::Key;

/// A run's entry in the ledger of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// A hash of the experiment, its networks, its data and this version: the same run has the same questions, and hence the
    /// same noise.
    pub run: String,
    /// The experiment's name, for readers of the ledger.
    pub name: String,
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

/// What a ledger answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reserved {
    /// The secret of the rows' owner.
    pub key: Key,
    /// What an earlier part of the same run has claimed.
    pub claim: Claim,
}

/// The iterations that a peer may have sent something of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Claim {
    /// All before this one.
    pub until: u64,
    /// How many iterations were repeated after a crash, with messages that may have differed.
    pub repeated: u64,
}

/// The error of a store without a ledger.
pub fn no_ledger() -> Error {
    let message =
        "`[privacy]` protects rows, and this command keeps no ledger of what they have spent";
    Error::config("privacy/no-ledger", message)
        .at("[privacy]")
        .hint("use `lopa run` or `lopa node`, or simulate the run with `seed` in `[privacy]`")
}
