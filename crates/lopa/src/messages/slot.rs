//! The messages of one exchange of the iteration, as their receivers hold them.

use super::compress::Compressor;
use super::map::Way;
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, update};

/// The messages of one exchange of the iteration: what it shares differs from that of the others.
pub struct Slot<T> {
    /// The lengths of the vectors in a message.
    pub lengths: Vec<usize>,
    /// Their sum.
    pub length: usize,
    /// Bytes of a message.
    pub wire: usize,
    /// For each way, what its receivers hold of its sender: the message, or a replica of it; then the
    /// sender's radii, where nodes tell them.
    pub values: Vec<Vec<T>>,
    /// The same one iteration before, where messages may be late.
    pub old: Vec<Vec<T>>,
    /// For each node here, the radius for each vector, where it adapts.
    pub reach: Vec<Vec<T>>,
}

/// Memory for one thread.
#[derive(Default)]
pub struct Desk<T> {
    /// What would be held of a neighbour, were its message accepted.
    pub(super) trial: Vec<T>,
    /// Σ_j w_ij (v_j − v_i) of a node.
    pub moved: Vec<T>,
    pub(super) difference: Vec<T>,
    pub(super) order: Vec<u32>,
    pub(super) distances: Vec<T>,
}

/// Where the draws of a message are.
#[derive(Debug, Clone, Copy)]
pub struct Address {
    pub seed: u64,
    /// Of the way.
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

/// The places of vectors of these lengths, one after the other.
pub fn pieces(lengths: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> {
    lengths.iter().scan(0, |start, &length| {
        let piece = *start..*start + length;
        *start = piece.end;
        Some(piece)
    })
}

/// Compresses what `value` lacks of `said`, vector by vector, appends the bytes to `wire`, and adds
/// what they stand for to `value`; `None` if the compressor breaks its promises.
pub fn send<T: Real>(
    compressor: &dyn Compressor<T>,
    address: Address,
    lengths: &[usize],
    said: &[T],
    value: &mut [T],
    desk: &mut Desk<T>,
    wire: &mut Vec<u8>,
) -> Option<()> {
    let Desk { difference, order, .. } = desk;
    let difference = &mut difference[..said.len()];
    update(difference, [said, &value[..said.len()]], |_, [said, value]| said - value);
    for (at, piece) in pieces(lengths).enumerate() {
        let start = wire.len();
        compressor.encode(&difference[piece.clone()], &mut address.draw(at), order, wire);
        if wire.len() - start != compressor.bytes(piece.len()) {
            return None;
        }
        compressor.add(&wire[start..], &mut address.draw(at), order, &mut value[piece])?;
    }
    Some(())
}

impl<T> Slot<T> {
    /// The numbers that are held of each sender.
    pub fn held(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }
}

/// How the messages of one exchange are read.
pub struct Opener<'a, T: Real> {
    pub compressor: Option<&'a dyn Compressor<T>>,
    /// Whether what is held of a node grows by its messages.
    pub feedback: bool,
    pub lengths: &'a [usize],
    /// The sum of the lengths.
    pub length: usize,
    /// Where the draws of the exchange are.
    pub address: Address,
    /// The number of nodes.
    pub nodes: usize,
}

impl<T: Real> Opener<'_, T> {
    /// Renews what is held of a sender by its message; `None` if that stands for nothing.
    pub fn open(
        &self,
        Way { from, to }: Way,
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
        let address = Address { stream: from * self.nodes + to, ..self.address };
        let (vectors, radii) = value.split_at_mut(self.length);
        let rest = receive(compressor, address, self.lengths, bytes, vectors, order)?;
        T::read_le(rest, radii);
        Some(())
    }
}

/// Adds what the bytes stand for to `value`, vector by vector, and returns the bytes left.
fn receive<'w, T: Real>(
    compressor: &dyn Compressor<T>,
    address: Address,
    lengths: &[usize],
    mut wire: &'w [u8],
    value: &mut [T],
    order: &mut Vec<u32>,
) -> Option<&'w [u8]> {
    for (at, piece) in pieces(lengths).enumerate() {
        let (bytes, rest) = wire.split_at_checked(compressor.bytes(piece.len()))?;
        compressor.add(bytes, &mut address.draw(at), order, &mut value[piece])?;
        wire = rest;
    }
    Some(wire)
}
