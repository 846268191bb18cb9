//! The messages of one exchange of the iteration, as their receivers hold them.

use std::ops::Range;
use std::sync::Mutex;

use super::workers::Scratch;
use crate::engine::messages::Compressor;
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, update};
use crate::network::outbox::{Combine, Piece};

/// The buffers of one exchange of the iteration; each exchange sends different vectors.
pub struct Buffers<T> {
    /// The vectors and numbers of a message.
    pub pieces: Vec<Piece>,
    /// The sum of their lengths.
    pub length: usize,
    /// Bytes of a message.
    pub wire: usize,
    /// One for each replica.
    pub replicas: Vec<Held<T>>,
    /// For each node of this process, the radius for each vector, where it adapts: updated when the
    /// node mixes.
    pub radii: Vec<Mutex<Vec<T>>>,
}

/// The state of a sender at its receivers.
pub struct Held<T> {
    /// The message, or a replica of it; then the sender's radii, where nodes send them.
    pub value: Vec<T>,
    /// The same one iteration before, where messages may be late.
    pub old: Vec<T>,
    /// The message in bytes, for a node of this process.
    pub wire: Vec<u8>,
}

impl<T: Real> Held<T> {
    /// Keeps the value as the previous one, where messages may be late.
    pub fn keep_old(&mut self) {
        if !self.old.is_empty() {
            self.old.copy_from_slice(&self.value);
        }
    }
}

/// The address of a message's draws.
#[derive(Debug, Clone, Copy)]
pub struct Address {
    pub seed: u64,
    /// Of the replica.
    pub stream: usize,
    pub k: u64,
    pub e: usize,
}

impl Address {
    /// The draws for one vector of the message.
    fn draw(self, vector: usize) -> Stream {
        let mut draw = Stream::new(self.seed, Purpose::Compression, self.stream);
        draw.seek(self.k, ((self.e * 8 + vector) & 0xfff) as u32);
        draw
    }
}

/// The kinds and ranges of vectors and numbers, one after the other.
pub fn ranges(pieces: &[Piece]) -> impl Iterator<Item = (Combine, Range<usize>)> {
    pieces.iter().scan(0, |start, &Piece { kind, length }| {
        let range = *start..*start + length;
        *start = range.end;
        Some((kind, range))
    })
}

/// Compresses the difference between `said` and the replica, vector by vector, appends the bytes to
/// its wire, and adds the decoded difference to the replica; `None` if the compressor breaks its
/// promises. Numbers are copied.
pub fn send<T: Real>(
    compressor: &dyn Compressor<T>,
    address: Address,
    pieces: &[Piece],
    said: &[T],
    Held { value, wire, .. }: &mut Held<T>,
    Scratch { difference, order, .. }: &mut Scratch<T>,
) -> Option<()> {
    difference.resize(said.len().max(difference.len()), T::zero());
    let difference = &mut difference[..said.len()];
    update(difference, [said, &value[..said.len()]], |_, [said, value]| said - value);
    for (at, (kind, piece)) in ranges(pieces).enumerate() {
        if kind != Combine::Vector {
            T::extend_le(&said[piece.clone()], wire);
            value[piece.clone()].copy_from_slice(&said[piece]);
            continue;
        }
        let start = wire.len();
        compressor.encode(&difference[piece.clone()], &mut address.draw(at), order, wire);
        if wire.len() - start != compressor.bytes(piece.len()) {
            return None;
        }
        compressor.add(&wire[start..], &mut address.draw(at), order, &mut value[piece])?;
    }
    Some(())
}

/// Reads the messages of one exchange.
pub struct Opener<'a, T: Real> {
    pub compressor: Option<&'a dyn Compressor<T>>,
    /// Whether a replica grows by its sender's messages.
    pub feedback: bool,
    pub pieces: &'a [Piece],
    /// The sum of their lengths.
    pub length: usize,
}

impl<T: Real> Opener<'_, T> {
    /// Updates the value of a sender by its message; `None` if the bytes are malformed.
    pub fn open(
        &self,
        address: Address,
        bytes: &[u8],
        value: &mut [T],
        order: &mut Vec<u32>,
    ) -> Option<()> {
        let Some(compressor) = self.compressor else {
            T::read_le(bytes, value);
            return Some(());
        };
        if !self.feedback {
            value.fill(T::zero());
        }
        let (vectors, radii) = value.split_at_mut(self.length);
        let rest = receive(compressor, address, self.pieces, bytes, vectors, order)?;
        T::read_le(rest, radii);
        Some(())
    }
}

/// Adds the decoded bytes to `value`, vector by vector, and returns the bytes left.
fn receive<'w, T: Real>(
    compressor: &dyn Compressor<T>,
    address: Address,
    pieces: &[Piece],
    mut wire: &'w [u8],
    value: &mut [T],
    order: &mut Vec<u32>,
) -> Option<&'w [u8]> {
    for (at, (kind, piece)) in ranges(pieces).enumerate() {
        let length = encoded(compressor, kind, piece.len());
        let (bytes, rest) = wire.split_at_checked(length)?;
        match kind {
            Combine::Vector => {
                compressor.add(bytes, &mut address.draw(at), order, &mut value[piece])?;
            }
            Combine::Number | Combine::Largest => T::read_le(bytes, &mut value[piece]),
        }
        wire = rest;
    }
    Some(wire)
}

/// Bytes of a vector or number.
pub fn encoded<T: Real>(compressor: &dyn Compressor<T>, kind: Combine, length: usize) -> usize {
    match kind {
        Combine::Vector => compressor.bytes(length),
        Combine::Number | Combine::Largest => length * T::BYTES,
    }
}
