//! The weighted sum over a node and its neighbours, Σ_j w_ij message_j.

use std::ops::Range;

use crate::math::real::{Real, update};

/// Row i of W in the precision of the run: (j, w_ij) for the neighbours of i, increasing j.
pub type Row<T> = Vec<(usize, T)>;

/// Row i of W, without the node itself: see [`Mixed`].
pub fn row<T: Real>(i: usize, weights: &[(usize, f64)]) -> Row<T> {
    weights.iter().filter(|(j, _)| *j != i).map(|&(j, w)| (j, T::of(w))).collect()
}

/// Σ_j w_ij message_j, formed when a node asks for it: whole, or piece by piece by those who go
/// over long vectors but once.
///
/// All engines mix here, at the receiver, as own + Σ_j w_ij (message_j − own), in the order of the
/// row: that is why they agree to the last bit. The difference form makes exact consensus a fixed
/// point to the bit.
pub struct Mixed<'a, T> {
    /// Row i of W.
    pub row: &'a [(usize, T)],
    /// What this node shared.
    pub own: &'a [T],
    /// What node j shared.
    pub message: &'a dyn Fn(usize) -> &'a [T],
    /// Where sums are put.
    pub room: &'a mut Vec<T>,
}

impl<'a, T: Real> Mixed<'a, T> {
    /// All of it.
    pub fn whole(self) -> &'a [T] {
        let Mixed { row, own, message, room } = self;
        room.resize(own.len().max(room.len()), T::zero());
        for at in cut(own.len()) {
            mix(row, &own[at.clone()], message, at.start, &mut room[at]);
        }
        &room[..own.len()]
    }

    /// A piece, from `start` on, of each of the vectors that the message consists of: `own` is what
    /// this node shared of it.
    pub fn piece<const N: usize>(&mut self, start: usize, own: [&[T]; N]) -> [&[T]; N] {
        let length = self.own.len() / N;
        self.room.resize(self.room.len().max(N * PIECE), T::zero());
        for (v, (own, out)) in own.iter().zip(self.room.chunks_exact_mut(PIECE)).enumerate() {
            assert!(start + own.len() <= length, "a piece of what was shared");
            mix(self.row, own, self.message, v * length + start, &mut out[..own.len()]);
        }
        std::array::from_fn(|v| &self.room[v * PIECE..][..own[v].len()])
    }
}

/// `out ← own + Σ_j w_ij (message_j − own)`, where `own` is what starts at `from` in messages.
fn mix<'a, T: Real>(
    row: &[(usize, T)],
    own: &[T],
    message: &dyn Fn(usize) -> &'a [T],
    from: usize,
    out: &mut [T],
) {
    let theirs = |j: usize| &message(j)[from..from + own.len()];
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

/// Cuts vectors into pieces that stay in the cache while several of them are gone through.
pub fn cut(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(PIECE).map(move |start| start..length.min(start + PIECE))
}

/// Numbers in a piece.
const PIECE: usize = 512;
