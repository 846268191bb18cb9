//! Shortens differences between neighbours that are too long.
//!
//! A difference and its opposite are shortened in the same way, at both ends of a link: one node
//! gains as much as the other loses, and the mean over all nodes is unchanged.

use super::spec::{Adaptive, Clip};
use crate::math::real::{Real, dot, update};

/// Clipping in the precision of the run.
#[derive(Debug, Clone, Copy)]
pub enum Clipping<T> {
    /// To a fixed radius.
    Radius(T),
    /// To this multiple of the median.
    Median(T),
}

impl<T: Real> Clipping<T> {
    pub fn new(clip: Clip) -> Clipping<T> {
        match clip {
            Clip::Radius(radius) => Clipping::Radius(T::of(radius)),
            Clip::Adaptive(Adaptive { median }) => Clipping::Median(T::of(median)),
        }
    }

    /// Whether nodes send each other their radii.
    pub fn is_told(&self) -> bool {
        matches!(self, Clipping::Median(_))
    }
}

/// ‖a − b‖; `difference` is memory for it.
pub fn distance<T: Real>(a: &[T], b: &[T], difference: &mut [T]) -> T {
    update(difference, [a, b], |_, [a, b]| a - b);
    dot(difference, difference).sqrt()
}

/// The factor of a difference of this length.
pub fn factor<T: Real>(length: T, radius: T) -> T {
    if length > radius { radius / length } else { T::one() }
}

/// The median, the upper one of an even number; `None` if there are no values. With the lower one,
/// a node of a ring that agrees with one neighbour would have the radius 0, and ignore the other
/// for ever.
pub fn median<T: Real>(lengths: &mut [T]) -> Option<T> {
    if lengths.is_empty() {
        return None;
    }
    let middle = lengths.len() / 2;
    let order = |a: &T, b: &T| (*a).to_f64().total_cmp(&(*b).to_f64());
    Some(*lengths.select_nth_unstable_by(middle, order).1)
}
