//! Frames between two peers, in a fixed little-endian layout.
//!
//! ```text
//!  0  "lopa"
//!  4  version        2 bytes, 2
//!  6  kind           1 byte
//!  7  scalar         1 byte: bytes per number, 4 or 8; 1 if the payload is not numbers
//!  8  run            16 bytes: the start of the SHA-256 of experiment, version and network
//! 24  job            4 bytes: the index of the run in the experiment
//! 28  exchange e     4 bytes
//! 32  iteration k    8 bytes
//! 40  step           8 bytes: the index of the call in the run
//! 48  length         8 bytes
//! 56  payload
//!     signature      64 bytes, where nodes pass a frame on: its author's, of everything before
//!     CRC-32 of everything before
//! ```
//!
//! The length counts payload and signature. It is never trusted: it must match the bytes received.
//! A payload that nodes pass on begins with the number of its author; all others come from a
//! neighbour over an authenticated link, and need no signature.

use crate::engine::refusal::Refusal;
use flate2::Crc;

use crate::engine::wire::Signature;
use crate::store::bytes::Hash;

const MAGIC: &[u8; 4] = b"lopa";
const VERSION: u16 = 2;
const HEAD: usize = 56;
const TAIL: usize = 4;

/// Bytes of a frame besides its payload and its signature.
pub const OVERHEAD: usize = HEAD + TAIL;

/// Bytes added to the payload of a frame that nodes pass on: the author's number and signature.
pub const AUTHOR: usize = 8 + size_of::<Signature>();

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The sender's progress: see `status.rs`.
    Status = 1,
    /// A node's message in an exchange.
    Data = 2,
    /// A message from one node to all.
    Broadcast = 3,
    /// The exchanges in which a link is used: see `decide.rs`.
    Notice = 4,
    /// A node has ended the run: see `ended.rs`.
    Ended = 5,
    /// A node's message in an exchange, some of whose numbers are not finite: the run diverges there.
    /// All nodes continue with them, as one process does, until they check their variables.
    Overflow = 6,
    /// A frame for a neighbour, which other nodes pass on because the link is cut: see `forward.rs`.
    Forwarded = 7,
    /// How far nodes are, each signed by itself: see `progress.rs`.
    Progress = 8,
    /// A node's votes on who is gone and who comes back: see `agreement.rs`.
    Statement = 9,
}

impl Kind {
    /// Whether nodes pass it on: then it is signed.
    fn is_signed(self) -> bool {
        use Kind::{Broadcast, Ended, Forwarded, Notice, Statement};
        matches!(self, Broadcast | Notice | Ended | Forwarded | Statement)
    }
}

/// Where a frame belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The index of the run in the experiment.
    pub job: u32,
    /// The index of the call in the run.
    pub step: u64,
    /// The iteration.
    pub k: u64,
    /// The exchange within the iteration.
    pub e: u32,
}

/// A valid frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Bytes per number of the payload.
    pub scalar: u8,
    /// Where it belongs.
    pub place: Place,
    /// Its content.
    pub payload: &'a [u8],
}

/// The result of handling a frame, which may be refused.
pub type FrameResult<T = ()> = Result<T, Refusal>;

/// The part of a run's digest that frames carry.
pub fn run_id(run: &Hash) -> [u8; 16] {
    std::array::from_fn(|at| run[at])
}

impl<'a> Frame<'a> {
    /// Encodes the frame; `sign` signs it where nodes pass it on.
    pub fn to_bytes(self, run: &[u8; 16], sign: impl FnOnce(&[u8]) -> Signature) -> Vec<u8> {
        let Frame { kind, scalar, place, payload } = self;
        let length = payload.len() + if kind.is_signed() { size_of::<Signature>() } else { 0 };
        let mut bytes = Vec::with_capacity(HEAD + length + TAIL);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[kind as u8, scalar]);
        bytes.extend_from_slice(run);
        bytes.extend_from_slice(&place.job.to_le_bytes());
        bytes.extend_from_slice(&place.e.to_le_bytes());
        for value in [place.k, place.step, length as u64] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(payload);
        if kind.is_signed() {
            let signature = sign(&bytes);
            bytes.extend_from_slice(&signature);
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Validates and decodes a frame.
    pub fn read(bytes: &'a [u8], run: &[u8; 16]) -> FrameResult<Frame<'a>> {
        let ensure = |valid: bool, refusal| if valid { Ok(()) } else { Err(refusal) };
        ensure(bytes.len() >= HEAD + TAIL && bytes.starts_with(MAGIC), Refusal::Garbage)?;
        ensure(u16::from_le_bytes([bytes[4], bytes[5]]) == VERSION, Refusal::Version)?;
        let (summed, sum) = bytes.split_at(bytes.len() - TAIL);
        let length = summed[48..HEAD].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        ensure(length == (summed.len() - HEAD) as u64, Refusal::Length)?;
        ensure(checksum(summed).to_le_bytes() == *sum, Refusal::Checksum)?;
        ensure(bytes[8..24] == *run, Refusal::OtherRun)?;
        Frame::known(bytes).ok_or(Refusal::Kind)
    }

    /// Decodes a frame that was validated before.
    pub fn known(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let (mut payload, _) = rest.split_last_chunk::<TAIL>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let kinds = [
            Kind::Status,
            Kind::Data,
            Kind::Broadcast,
            Kind::Notice,
            Kind::Ended,
            Kind::Overflow,
            Kind::Forwarded,
            Kind::Progress,
            Kind::Statement,
        ];
        let kind = kinds.into_iter().find(|&kind| kind as u8 == head[6])?;
        if kind.is_signed() {
            payload = payload.split_last_chunk::<{ size_of::<Signature>() }>()?.0;
        }
        let place = Place { job: half(24), e: half(28), k: word(32), step: word(40) };
        Some(Frame { kind, scalar: head[7], place, payload })
    }
}

/// The payload of a frame that was validated before.
pub fn payload(bytes: &[u8]) -> &[u8] {
    Frame::known(bytes).map_or(&[], |frame| frame.payload)
}

/// The signed content of a frame that was validated before, and its signature.
pub fn signed(bytes: &[u8]) -> Option<(&[u8], &Signature)> {
    let (summed, _) = bytes.split_last_chunk::<TAIL>()?;
    summed.split_last_chunk()
}

/// The author and the content of a payload that nodes pass on; `None` if it is malformed.
pub fn author(payload: &[u8], nodes: usize) -> Option<(usize, &[u8])> {
    let (author, said) = payload.split_first_chunk()?;
    let author = usize::try_from(u64::from_le_bytes(*author)).ok()?;
    (author < nodes).then_some((author, said))
}

/// Whether all numbers, of `scalar` bytes each, are finite. Single bytes are compressed content,
/// not numbers: it is checked after decompression.
pub fn is_finite(scalar: usize, bytes: &[u8]) -> bool {
    if scalar == 1 {
        return true;
    }
    // An exponent of all ones: infinite or NaN.
    let (at, ones) = if scalar == 4 { (2, 0x7f80) } else { (6, 0x7ff0) };
    let top = |number: &[u8]| u16::from_le_bytes([number[at], number[at + 1]]);
    bytes.chunks_exact(scalar.max(at + 2)).all(|number| top(number) & ones != ones)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
