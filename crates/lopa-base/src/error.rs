//! One error type: what went wrong, where, and what to do about it.

use std::fmt;

/// The kind of an error, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run failed: it diverged or missed a required target.
    Run,
    /// An invalid command line or experiment file.
    Config,
    /// Data that is missing or malformed.
    Data,
    /// An invalid graph or invalid weights.
    Network,
    /// A file that cannot be written or read back.
    Storage,
    /// A peer was lost or did not respond in time.
    Peer,
    /// A peer rejected this node's key or terms, or this node rejected a peer's.
    Refused,
    /// Saved results that differ from recomputed ones.
    Mismatch,
    /// This node is no longer a member of the run: the others go on without it.
    Left,
}

impl Kind {
    /// The process exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Run => 1,
            Kind::Config => 2,
            Kind::Data => 3,
            Kind::Network => 4,
            Kind::Storage => 5,
            Kind::Peer => 6,
            Kind::Refused => 7,
            Kind::Mismatch => 8,
            Kind::Left => 10,
        }
    }
}

/// An error a user can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Its kind.
    pub kind: Kind,
    /// A stable identifier for scripts and lookup, such as `config/unknown-key`.
    pub id: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The place: `file:line:column`, a flag, a file and row.
    pub place: Option<String>,
    /// The remedy.
    pub hint: Option<String>,
}

/// The library's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without place and hint; add them with [`Error::at`] and [`Error::hint`].
    pub fn new(kind: Kind, id: &'static str, message: impl Into<String>) -> Error {
        Error { kind, id, message: message.into(), place: None, hint: None }
    }

    /// An invalid command line or experiment file.
    pub fn config(id: &'static str, message: impl Into<String>) -> Error {
        Error::new(Kind::Config, id, message)
    }

    /// Data that is missing or malformed.
    pub fn data(id: &'static str, message: impl Into<String>) -> Error {
        Error::new(Kind::Data, id, message)
    }

    /// An invalid graph or invalid weights.
    pub fn network(id: &'static str, message: impl Into<String>) -> Error {
        Error::new(Kind::Network, id, message)
    }

    /// A file that cannot be written or read back.
    pub fn storage(id: &'static str, message: impl Into<String>) -> Error {
        Error::new(Kind::Storage, id, message)
    }

    /// Sets the place, unless it is already set: that of inner code is more precise.
    pub fn at(mut self, place: impl Into<String>) -> Error {
        self.place.get_or_insert_with(|| place.into());
        self
    }

    /// Sets the hint, unless it is already set.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(out, "{place}: ")?;
        }
        write!(out, "{}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(out, "\n  help: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// A value out of its range: which key, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl Fault {
    /// `Ok` if `holds`; else a fault: `key` is `value` but must be `must`.
    pub fn unless(
        holds: bool,
        key: &'static str,
        value: impl std::fmt::Display,
        must: &str,
    ) -> Result<(), Fault> {
        match holds {
            true => Ok(()),
            false => Err(Fault { key, message: format!("`{key} = {value}` must be {must}") }),
        }
    }

    /// `Ok` if the key is given; else a fault: `key` must be `must`.
    pub fn without(given: bool, key: &'static str, must: &str) -> Result<(), Fault> {
        match given {
            true => Ok(()),
            false => Err(Fault { key, message: format!("`{key}` is missing: it must be {must}") }),
        }
    }
}

/// The known name closest to a mistyped one, if any is close; upper or lower case does not matter.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = typed.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + typed.len().max(name.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
