//! What travels between two peers, in a fixed little-endian layout.
//!
//! ```text
//!  0  "lopa"
//!  4  version        2 bytes, 1
//!  6  kind           1 byte
//!  7  scalar         1 byte: 4 or 8 bytes a number, 1 if the payload is not numbers
//!  8  run            16 bytes: the first of the SHA-256 of experiment, version and network
//! 24  job            4 bytes: the how manieth run of the experiment, from 0
//! 28  exchange e     4 bytes
//! 32  iteration k    8 bytes
//! 40  step           8 bytes: the how manieth call of all peers, from 0
//! 48  length         8 bytes
//! 56  payload
//!     CRC-32 of all that is before
//! ```
//!
//! Nobody's word is taken for a length: it must be that of the bytes that came.

use flate2::Crc;

use crate::store::bytes::Hash;

const MAGIC: &[u8; 4] = b"lopa";
const VERSION: u16 = 1;
const HEAD: usize = 56;
const TAIL: usize = 4;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Where the sender is, and what it has kept: see `status.rs`.
    Status = 1,
    /// A node's message of an exchange.
    Data = 2,
    /// What one node says to all.
    Flood = 3,
    /// Which exchanges a link is used in: see `decide.rs`.
    Notice = 4,
}

/// Where in a run a frame belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The how manieth run of the experiment.
    pub job: u32,
    /// The how manieth call that all peers make.
    pub step: u64,
    /// The iteration.
    pub k: u64,
    /// The exchange of the iteration.
    pub e: u32,
}

/// A frame that was found sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is for.
    pub kind: Kind,
    /// Bytes of a number of the payload.
    pub scalar: u8,
    /// Where it belongs.
    pub place: Place,
    /// What it says.
    pub payload: &'a [u8],
}

/// What comes of a frame that may be refused.
pub type Taken<T = ()> = Result<T, Refusal>;

/// Why a frame is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is none of ours, or it was cut.
    Garbage,
    /// Another version of the layout.
    Version,
    /// Its length is not that of its bytes.
    Length,
    /// It was changed on its way.
    Checksum,
    /// It belongs to another experiment, network or version of lopa.
    OtherRun,
    /// There is no such kind of frame.
    Kind,
    /// It is from nobody who is a neighbour.
    Stranger,
    /// It is from too far ahead.
    Future,
    /// Its numbers are not of the kind, or not as many, as belong there; or its words make no sense.
    Shape,
    /// It holds what is not a finite number.
    NotFinite,
    /// It says something else than a frame of the same place said before.
    Equivocation,
}

impl Refusal {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::Garbage => "it is not a frame of lopa's",
            Refusal::Version => "it is of another version",
            Refusal::Length => "its length is not that of its bytes",
            Refusal::Checksum => "it was damaged on its way",
            Refusal::OtherRun => "it belongs to another experiment, network or version of lopa",
            Refusal::Kind => "there is no such kind of frame",
            Refusal::Stranger => "its sender is no neighbour in this run",
            Refusal::Future => "it is from too far ahead",
            Refusal::Shape => "it is not what belongs there",
            Refusal::NotFinite => "it holds what is not a finite number",
            Refusal::Equivocation => "it contradicts what came before it",
        }
    }
}

/// The part of a run's digest that frames carry.
pub fn short(run: &Hash) -> [u8; 16] {
    std::array::from_fn(|at| run[at])
}

impl<'a> Frame<'a> {
    /// The frame as bytes.
    pub fn to_bytes(self, run: &[u8; 16]) -> Vec<u8> {
        let Frame { kind, scalar, place, payload } = self;
        let mut bytes = Vec::with_capacity(HEAD + payload.len() + TAIL);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[kind as u8, scalar]);
        bytes.extend_from_slice(run);
        bytes.extend_from_slice(&place.job.to_le_bytes());
        bytes.extend_from_slice(&place.e.to_le_bytes());
        for value in [place.k, place.step, payload.len() as u64] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(payload);
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a frame, or says why it is not taken.
    pub fn read(bytes: &'a [u8], run: &[u8; 16]) -> Taken<Frame<'a>> {
        let unless = |sound: bool, refusal| if sound { Ok(()) } else { Err(refusal) };
        unless(bytes.len() >= HEAD + TAIL && bytes.starts_with(MAGIC), Refusal::Garbage)?;
        unless(u16::from_le_bytes([bytes[4], bytes[5]]) == VERSION, Refusal::Version)?;
        let (summed, sum) = bytes.split_at(bytes.len() - TAIL);
        let length = summed[48..HEAD].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        unless(length == (summed.len() - HEAD) as u64, Refusal::Length)?;
        unless(checksum(summed).to_le_bytes() == *sum, Refusal::Checksum)?;
        unless(bytes[8..24] == *run, Refusal::OtherRun)?;
        Frame::known(bytes).ok_or(Refusal::Kind)
    }

    /// Reads a frame that was found sound before.
    pub fn known(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let (payload, _) = rest.split_last_chunk::<TAIL>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let kinds = [Kind::Status, Kind::Data, Kind::Flood, Kind::Notice];
        let kind = kinds.into_iter().find(|&kind| kind as u8 == head[6])?;
        let place = Place { job: half(24), e: half(28), k: word(32), step: word(40) };
        Some(Frame { kind, scalar: head[7], place, payload })
    }
}

/// The payload of a frame that was found sound before.
pub fn payload(bytes: &[u8]) -> &[u8] {
    Frame::known(bytes).map_or(&[], |frame| frame.payload)
}

/// Whether all numbers of so many bytes each are finite.
pub fn is_finite(scalar: usize, bytes: &[u8]) -> bool {
    // An exponent of all ones: infinite, or not a number.
    let (at, ones) = if scalar == 4 { (2, 0x7f80) } else { (6, 0x7ff0) };
    let top = |number: &[u8]| u16::from_le_bytes([number[at], number[at + 1]]);
    bytes.chunks_exact(scalar.max(at + 2)).all(|number| top(number) & ones != ones)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
