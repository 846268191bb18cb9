//! The message of a node in an exchange: named vectors, in order.

use crate::math::real::{Real, update};

/// Exchange `e` of iteration `k`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// The iteration.
    pub k: u64,
    /// The exchange within the iteration.
    pub e: usize,
}

impl Round {
    /// The exchange after this one, where an iteration has `exchanges`.
    pub fn next(self, exchanges: usize) -> Round {
        match self.e + 1 < exchanges {
            true => Round { e: self.e + 1, ..self },
            false => Round { k: self.k + 1, e: 0 },
        }
    }
}

/// How the entries of a node and its neighbours combine, and whether they may be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// A vector: a weighted sum, compressed as `[messages]` says.
    Vector,
    /// A number: a weighted sum, never compressed.
    Number,
    /// A number: the largest of all, never compressed or clipped.
    Largest,
}

/// A vector or number of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// How it combines.
    pub kind: Combine,
    /// Its length.
    pub length: usize,
}

/// The vectors that a node sends in an exchange. Their weighted sums over the neighbours come back in
/// the same order: see [`Mixed`](super::mixed::Mixed).
#[derive(Debug, Clone, Default)]
pub struct Outbox<T> {
    values: Vec<T>, // one vector after the other; beyond `length` those of earlier messages
    length: usize,
    vectors: Vec<(&'static str, usize)>,
    kinds: Vec<Combine>, // of each vector
}

impl<T: Real> Outbox<T> {
    /// Adds a vector under its name in the paper.
    pub fn vector(&mut self, name: &'static str, values: &[T]) {
        self.add(name, values.len(), Combine::Vector).copy_from_slice(values);
    }

    /// The place for the values of one more vector.
    fn add(&mut self, name: &'static str, length: usize, kind: Combine) -> &mut [T] {
        self.vectors.push((name, length));
        self.kinds.push(kind);
        let start = self.length;
        self.length += length;
        if self.values.len() < self.length {
            self.values.resize(self.length, T::zero());
        }
        &mut self.values[start..self.length]
    }

    /// Adds a number, before all vectors. It is never compressed: a code for vectors may lose all of it.
    pub fn number(&mut self, name: &'static str, kind: Combine, value: T) {
        self.add(name, 1, kind)[0] = value;
    }

    /// Adds a vector that is sent only if `sent`; otherwise its sum is empty.
    pub fn vector_if(&mut self, sent: bool, name: &'static str, values: &[T]) {
        self.vector(name, if sent { values } else { &[] });
    }

    /// Adds the vector f(a\[i\], b\[i\], …) of others, which all have one length.
    pub fn formed<const N: usize>(
        &mut self,
        name: &'static str,
        of: [&[T]; N],
        f: impl Fn([T; N]) -> T,
    ) {
        let length = of.first().map_or(0, |vector| vector.len());
        update(self.add(name, length, Combine::Vector), of, |_, entries| f(entries));
    }

    /// All vectors, one after the other.
    pub fn values(&self) -> &[T] {
        &self.values[..self.length]
    }

    /// The name and the length of each vector; those that are not sent have length 0.
    pub fn vectors(&self) -> &[(&'static str, usize)] {
        &self.vectors
    }

    /// What is sent, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> {
        let all = self.vectors.iter().zip(&self.kinds);
        all.map(|(&(_, length), &kind)| Piece { kind, length }).filter(|piece| piece.length > 0)
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
        self.vectors.clear();
        self.kinds.clear();
    }
}
