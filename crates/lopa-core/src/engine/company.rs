//! The processes of a run whose nodes devices compute: all of them begin, or none.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use super::delivery::{Border, borders};
use super::transport::{Transport, anything, block};
use crate::error::{Error, Kind, Result};
use crate::network::Mixing;
use crate::store::bytes::{Reader, Writer};

/// This process among those of a run.
pub struct Company<'a> {
    transport: RefCell<&'a mut dyn Transport>,
    refused: Cell<bool>, // one of them has failed, and all know it
    rank: usize,
    size: usize,
    place: usize,
    divisible: bool,
}

/// What a process tells the others of its device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// What must be the same in all processes, in words.
    pub same: String,
    /// What each may have of its own.
    pub own: Vec<f64>,
}

impl<'a> Company<'a> {
    /// The processes that a transport connects.
    pub fn new(transport: &'a mut dyn Transport) -> Company<'a> {
        let (rank, size, place) = (transport.rank(), transport.size(), transport.place());
        let divisible = transport.is_divisible();
        let transport = RefCell::new(transport);
        Company { transport, refused: Cell::new(false), rank, size, place, divisible }
    }

    /// The number of this process among those on its machine: which of several devices it uses.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Whether the same run in another number of processes must have the same bits.
    pub fn is_divisible(&self) -> bool {
        self.divisible
    }

    /// The nodes of this process, out of this many.
    pub fn here(&self, nodes: usize) -> Range<usize> {
        block(nodes, self.size, self.rank)
    }

    /// The possible messages between this process and each of the others.
    pub fn borders(&self, mixing: &Mixing) -> Vec<Border> {
        borders(mixing, self.size, self.rank)
    }

    /// The own numbers of all processes, in rank order. If one of them has an error in place of its facts, or
    /// is not the same where all must be, then all have an error.
    pub fn agree(&self, ours: Result<&Facts, &Error>) -> Result<Vec<Vec<f64>>> {
        if self.size == 1 {
            return ours.map(|facts| vec![facts.own.clone()]).map_err(Error::clone);
        }
        let all = self.transport.borrow_mut().all(&packed(ours), &anything)?;
        let mut said = Vec::new();
        for (rank, bytes) in all.iter().enumerate() {
            match unpacked(bytes).ok_or_else(garbled)? {
                Ok(facts) => said.push(facts),
                Err(theirs) => {
                    self.refused.set(true);
                    return Err(match ours {
                        Err(own) if rank == self.rank => own.clone(),
                        _ => passed_on(rank, &theirs),
                    });
                }
            }
        }
        let first = &said[0].same;
        if let Some(rank) = said.iter().position(|facts| facts.same != *first) {
            self.refused.set(true);
            let message = format!(
                "the devices of processes 0 and {rank} differ: {first}; {}",
                said[rank].same
            );
            return Err(Error::config("device/processes", message)
                .at("run.device")
                .hint("start the same build of lopa with the same files in all processes"));
        }
        Ok(said.into_iter().map(|facts| facts.own).collect())
    }

    /// What this process has opened, if all others have opened theirs.
    pub fn all_open<V>(&self, opened: Result<V>) -> Result<V> {
        if !self.refused.get() {
            let none = Facts::default();
            self.agree(opened.as_ref().map(|_| &none))?;
        }
        opened
    }
}

/// An error as other processes hear of it.
struct Passed {
    kind: Kind,
    message: String,
    hint: String,
}

fn passed_on(rank: usize, Passed { kind, message, hint }: &Passed) -> Error {
    let message = format!("process {rank} cannot use its device: {message}");
    let error = Error::new(*kind, "device/processes", message).at("run.device");
    if hint.is_empty() { error } else { error.hint(hint) }
}

fn packed(ours: Result<&Facts, &Error>) -> Vec<u8> {
    let mut out = Writer::default();
    match ours {
        Ok(Facts { same, own }) => {
            out.u64(0);
            out.bytes(same.as_bytes());
            out.reals(own);
        }
        Err(Error { kind, message, hint, .. }) => {
            // What is wrong with a card while it runs is no mistake in a file.
            out.u64(if *kind == Kind::Run { 2 } else { 1 });
            out.bytes(message.as_bytes());
            out.bytes(hint.as_deref().unwrap_or_default().as_bytes());
        }
    }
    out.done()
}

fn unpacked(bytes: &[u8]) -> Option<Result<Facts, Passed>> {
    let mut bytes = Reader::new(bytes);
    let kind = match bytes.u64()? {
        0 => {
            let same = text(&mut bytes)?;
            return Some(Ok(Facts { same, own: bytes.reals()? }));
        }
        1 => Kind::Config,
        _ => Kind::Run,
    };
    let (message, hint) = (text(&mut bytes)?, text(&mut bytes)?);
    Some(Err(Passed { kind, message, hint }))
}

fn text(bytes: &mut Reader) -> Option<String> {
    bytes.bytes().map(|text| String::from_utf8_lossy(text).into_owned())
}

fn garbled() -> Error {
    Error::new(Kind::Run, "engine/garbled", "malformed message from another process")
        .hint("start the same lopa with the same files in all processes")
}
