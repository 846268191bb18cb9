//! When to call a neighbour, and which of two connections to it to keep. It has no network and no
//! clock: the caller reports events and times, and queries it.
//!
//! One end of a link calls, the other only if that has not led to a link for a while. A call is
//! never abandoned because a link came up in the meantime: the other end may have chosen this very
//! call. When two calls cross, both ends see both, and keep the same one.

use std::time::Duration;

/// Pause after a call that led to no lasting link: the shortest and the longest, before jitter.
pub const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(4));
/// How long the end that usually does not call waits for the other: at the start of its process,
/// which the other may not have noticed, and later.
const FALLBACK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));
/// A link that lasts this long resets the pause.
const LASTING: Duration = Duration::from_secs(20);

/// Which end of a link calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// This end.
    Caller,
    /// The other end; this one calls if the other does not.
    Fallback,
}

/// The calls to one neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialling {
    role: Role,
    pause: Duration,         // after the next call
    next: Duration,          // the time of the next call
    since: Option<Duration>, // when the link came up, while it is
    calling: bool,
}

impl Dialling {
    /// At the start, without a link.
    pub fn new(role: Role, now: Duration) -> Dialling {
        let next = now.saturating_add(role.head_start(FALLBACK.0));
        Dialling { role, pause: BACK_OFF.0, next, since: None, calling: false }
    }

    /// When to call: not while there is a link or a pending call.
    pub fn due(&self) -> Option<Duration> {
        (self.since.is_none() && !self.calling).then_some(self.next)
    }

    /// A call begins.
    pub fn called(&mut self) {
        self.calling = true;
    }

    /// The call ended, whether it led to a link or not; `jitter` is in 0..1.
    pub fn answered(&mut self, now: Duration, jitter: f64) {
        self.calling = false;
        self.back_off(now, jitter);
    }

    /// A link came up.
    pub fn up(&mut self, now: Duration) {
        self.since.get_or_insert(now);
    }

    /// The link is lost. The pause grows unless the link has lasted.
    pub fn down(&mut self, now: Duration, jitter: f64) {
        let lasted = self.since.take().is_some_and(|since| now >= since.saturating_add(LASTING));
        if lasted {
            self.pause = BACK_OFF.0;
        }
        self.back_off(now, jitter);
    }

    fn back_off(&mut self, now: Duration, jitter: f64) {
        // 50 to 100 % of the pause, so that two ends do not keep calling in step.
        let pause = self.pause.mul_f64(0.5 + 0.5 * jitter) + self.role.head_start(FALLBACK.1);
        self.next = now.saturating_add(pause);
        self.pause = (2 * self.pause).min(BACK_OFF.1);
    }
}

impl Role {
    /// The role of a node on its link to another: the one with the smaller number calls. A node
    /// without a reachable address always calls.
    pub fn of(node: usize, neighbour: usize, callable: bool) -> Role {
        match node < neighbour || !callable {
            true => Role::Caller,
            false => Role::Fallback,
        }
    }

    /// How long this end waits for a call of the other.
    fn head_start(self, given: Duration) -> Duration {
        match self {
            Role::Caller => Duration::ZERO,
            Role::Fallback => given,
        }
    }
}

/// Decides between two connections of the same link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// A random number that identifies the process at the other end.
    pub session: u64,
    /// Whether the end with the smaller number made the call.
    pub by_smaller: bool,
}

impl Connected {
    /// Whether a new connection replaces this one. Both ends decide in the same way, in whichever
    /// order they see the two.
    pub fn gives_way_to(self, new: Connected) -> bool {
        // An end calls only when it has no link: a second call means that the first is lost. Of two
        // calls that crossed, that of the end with the smaller number stays.
        self.session != new.session || self.by_smaller == new.by_smaller || new.by_smaller
    }
}
