//! What the check of a link finds out.

use std::time::Duration;

/// The application protocol of a check.
pub const ALPN: &[u8] = b"lopa/check/1";

/// How packets reach a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Directly, at this address.
    Direct(String),
    /// Through the relay with this URL.
    Relayed(String),
}

/// What a check found out about a neighbour.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// How packets reach it.
    pub reach: Reach,
    /// The time of a question and its answer.
    pub round_trip: Duration,
    /// Its clock less ours, in seconds.
    pub clock: f64,
    /// Its version of lopa.
    pub lopa: String,
    /// How its terms differ from ours; `None` if they do not.
    pub differs: Option<String>,
    /// Whether it is only checking, and not yet waiting for the run.
    pub checking: bool,
}

/// The state of a check of one neighbour.
#[derive(Debug, Default)]
pub struct Progress {
    pub answered: Option<Found>, // it answered this node
    pub asked: Option<Found>,    // it asked this node
    pub why: Option<String>,     // this node's last attempt failed
    pub busy: bool,              // a question of it is being answered
}

impl Progress {
    /// Whether both ends have what they need, as far as they can call each other: a neighbour that
    /// checks needs this node's answer.
    pub fn is_over(&self, can_call: bool, is_callable: bool) -> bool {
        match (&self.answered, &self.asked) {
            (Some(answer), None) => !answer.checking || !is_callable,
            (Some(_), Some(_)) => true,
            (None, Some(_)) => !can_call,
            (None, None) => false,
        }
    }
}
