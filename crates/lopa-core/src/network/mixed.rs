//! The weighted sum over a node and its neighbours, Σ_j w_ij message_j.

use std::ops::Range;

use super::outbox::{Combine, Outbox};
use crate::math::real::{Real, update};

/// Row i of W in the precision of the run: (j, w_ij) for the neighbours of i, increasing j, without
/// the node itself: see [`Mixed`].
pub type Row<T> = Vec<(usize, T)>;

/// Σ_j w_ij message_j, formed on request: all vectors at once ([`vectors`](Mixed::vectors)), or in
/// pieces ([`each_piece`](Mixed::each_piece)), so that long vectors are passed over only once. The
/// sums come in the order in which `share` named the vectors.
///
/// All engines mix here, at the receiver, as own + Σ_j w_ij (message_j − own), in the order of the
/// row: that is why they agree to the last bit. The difference form makes exact consensus a fixed
/// point to the bit.
pub struct Mixed<'a, T> {
    row: &'a [(usize, T)],
    own: &'a Outbox<T>,
    here: &'a [Outbox<T>], // messages of the nodes of this process
    there: &'a [Vec<T>],   // then, in the row, those of others
    scratch: &'a mut Vec<T>,
    start: usize,           // of the part not yet mixed in pieces
    numbers: usize,         // that were taken
    moved: Option<&'a [T]>, // the weighted sum of differences, or the largest, where it is known
}

impl<'a, T: Real> Mixed<'a, T> {
    /// From row i of W, the message of this node, the messages of this and of other processes in
    /// the order of the row's columns, and memory for the sums.
    pub fn new(
        row: &'a [(usize, T)],
        own: &'a Outbox<T>,
        (here, there): (&'a [Outbox<T>], &'a [Vec<T>]),
        scratch: &'a mut Vec<T>,
    ) -> Mixed<'a, T> {
        Mixed { row, own, here, there, scratch, start: 0, numbers: 0, moved: None }
    }

    /// From the message of this node, and Σ_j w_ij (message_j − own), however it was computed; where the
    /// largest is taken, it is in its place.
    pub fn moved(own: &'a Outbox<T>, moved: &'a [T], scratch: &'a mut Vec<T>) -> Mixed<'a, T> {
        let (here, there) = (&[][..], &[][..]);
        Mixed { row: &[], own, here, there, scratch, start: 0, numbers: 0, moved: Some(moved) }
    }

    /// The sums of all N vectors of the message, after the numbers that were taken.
    ///
    /// # Panics
    /// If the message does not have N vectors.
    pub fn vectors<const N: usize>(self) -> [&'a [T]; N] {
        let sent = self.own.vectors().len() - self.numbers;
        assert_eq!(N, sent, "`step` takes {N} sums, and `share` sent {sent} vectors");
        let mut sums = self.sums();
        std::array::from_fn(|_| sums.together(1))
    }

    /// The sums of all vectors of the message, after the numbers that were taken, in their order.
    pub fn sums(self) -> Sums<'a, T> {
        let Mixed { row, own, here, there, scratch, numbers, moved, .. } = self;
        let (values, lengths) = (own.values(), own.vectors());
        if row.is_empty() && moved.is_none() {
            // Without neighbours, the sums are what was sent.
            return Sums { values: &values[numbers..], lengths: &lengths[numbers..] };
        }
        scratch.resize(values.len().max(scratch.len()), T::zero());
        let sums = &mut scratch[..values.len()];
        match moved {
            Some(moved) => update(sums, [values, moved], |_, [own, moved]| own + moved),
            None => {
                for at in cut(values.len()) {
                    mix(row, &values[at.clone()], (here, there), at.start, &mut sums[at]);
                }
            }
        }
        let mut at = 0;
        for piece in own.pieces() {
            if piece.kind == Combine::Largest {
                sums[at] = largest(row, values[at], (here, there), (at, moved));
            }
            at += piece.length;
        }
        Sums { values: &sums[numbers..], lengths: &lengths[numbers..] }
    }

    /// The next number of the message, combined with those of the neighbours. Numbers come before vectors.
    pub fn number(&mut self, kind: Combine) -> T {
        let Mixed { row, own, here, there, start: at, moved, .. } = *self;
        let value = own.values()[at];
        self.start += 1;
        self.numbers += 1;
        match (kind, moved) {
            (Combine::Largest, _) => largest(row, value, (here, there), (at, moved)),
            (_, Some(moved)) => value + moved[at],
            (_, None) => {
                let mut sum = [value];
                mix(row, &[value], (here, there), at, &mut sum);
                sum[0]
            }
        }
    }

    /// Calls `f` with the weighted sums of the next N vectors of the message, these vectors
    /// themselves (`shared`), others to be changed (`own`) and others to be read (`with`), piece by
    /// piece: all pieces of a call fit the cache. All vectors have one length, and `shared` still
    /// holds the values sent.
    pub fn each_piece<const N: usize, const M: usize, const K: usize>(
        &mut self,
        mut shared: [&mut [T]; N],
        mut own: [&mut [T]; M],
        with: [&[T]; K],
        mut f: impl FnMut([&[T]; N], [&mut [T]; N], [&mut [T]; M], [&[T]; K]),
    ) {
        let lengths = shared.iter().chain(&own).map(|vector| vector.len());
        let length = lengths.chain(with.iter().map(|vector| vector.len())).next().unwrap_or(0);
        self.scratch.resize(self.scratch.len().max(N * PIECE), T::zero());
        for at in cut(length) {
            let sums = self.scratch.chunks_exact_mut(PIECE);
            for (v, (vector, sum)) in shared.iter().zip(sums).enumerate() {
                let from = self.start + v * length + at.start;
                let (vector, sum) = (&vector[at.clone()], &mut sum[..at.len()]);
                match self.moved {
                    None => mix(self.row, vector, (self.here, self.there), from, sum),
                    Some(moved) => {
                        let moved = &moved[from..from + at.len()];
                        update(sum, [vector, moved], |_, [own, moved]| own + moved);
                    }
                }
            }
            let sums = std::array::from_fn(|v| &self.scratch[v * PIECE..][..at.len()]);
            f(
                sums,
                shared.each_mut().map(|vector| &mut vector[at.clone()]),
                own.each_mut().map(|vector| &mut vector[at.clone()]),
                with.map(|vector| &vector[at.clone()]),
            );
        }
        self.start += N * length;
    }
}

/// The sums of the vectors of a message, in their order.
pub struct Sums<'a, T> {
    values: &'a [T],
    lengths: &'a [(&'static str, usize)],
}

impl<'a, T> Sums<'a, T> {
    /// The sums of the next `count` vectors, one after the other.
    ///
    /// # Panics
    /// If fewer vectors are left.
    pub fn together(&mut self, count: usize) -> &'a [T] {
        let (next, rest) = self.lengths.split_at(count);
        let length = next.iter().map(|(_, length)| length).sum();
        let (sums, values) = self.values.split_at(length);
        (self.values, self.lengths) = (values, rest);
        sums
    }
}

impl<'a, T> Iterator for Sums<'a, T> {
    type Item = &'a [T];

    fn next(&mut self) -> Option<&'a [T]> {
        (!self.lengths.is_empty()).then(|| self.together(1))
    }
}

/// The largest of a node's number and those of its neighbours, which are at `at` in messages.
fn largest<T: Real>(
    row: &[(usize, T)],
    own: T,
    (here, there): (&[Outbox<T>], &[Vec<T>]),
    (at, moved): (usize, Option<&[T]>),
) -> T {
    let theirs = |&(j, _): &(usize, T)| match here.get(j) {
        Some(message) => message.values()[at],
        None => there[j - here.len()][at],
    };
    let known = moved.map_or(own, |moved| moved[at]);
    row.iter().map(theirs).fold(known, T::max)
}

/// `out ← own + Σ_j w_ij (message_j − own)`, where `own` starts at `from` in messages.
fn mix<T: Real>(
    row: &[(usize, T)],
    own: &[T],
    (here, there): (&[Outbox<T>], &[Vec<T>]),
    from: usize,
    out: &mut [T],
) {
    let theirs = |j: usize| {
        let message = here.get(j).map_or_else(|| &there[j - here.len()][..], Outbox::values);
        &message[from..from + own.len()]
    };
    // Two neighbours at a time: most nodes of sparse graphs have few.
    let (pairs, rest) = row.as_chunks::<2>();
    match pairs.first() {
        None => out.copy_from_slice(own),
        Some(&[(i, u), (j, w)]) => update(out, [own, theirs(i), theirs(j)], |_, [own, a, b]| {
            own + u * (a - own) + w * (b - own)
        }),
    }
    for &[(i, u), (j, w)] in pairs.iter().skip(1) {
        update(out, [own, theirs(i), theirs(j)], |sum, [own, a, b]| {
            sum + u * (a - own) + w * (b - own)
        });
    }
    for &(j, w) in rest {
        update(out, [own, theirs(j)], |sum, [own, theirs]| sum + w * (theirs - own));
    }
}

/// Cuts vectors into pieces that stay in the cache while several vectors are passed over.
fn cut(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(PIECE).map(move |start| start..length.min(start + PIECE))
}

/// Numbers in a piece.
const PIECE: usize = 512;
