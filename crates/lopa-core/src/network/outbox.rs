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

/// The vectors that a node sends in an exchange. Their weighted sums over the neighbours come back in
/// the same order: see [`Mixed`](super::mixed::Mixed).
#[derive(Debug, Clone, Default)]
pub struct Outbox<T> {
    values: Vec<T>, // one vector after the other
    vectors: Vec<(&'static str, usize)>,
}

impl<T: Real> Outbox<T> {
    /// Adds a vector under its name in the paper.
    pub fn vector(&mut self, name: &'static str, values: &[T]) {
        self.values.extend_from_slice(values);
        self.vectors.push((name, values.len()));
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
        let (start, length) = (self.values.len(), of.first().map_or(0, |vector| vector.len()));
        self.values.resize(start + length, T::zero());
        update(&mut self.values[start..], of, |_, entries| f(entries));
        self.vectors.push((name, length));
    }

    /// All vectors, one after the other.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The name and the length of each vector; those that are not sent have length 0.
    pub fn vectors(&self) -> &[(&'static str, usize)] {
        &self.vectors
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.vectors.clear();
    }
}
