//! Differences between neighbours that are too long, shortened.
//!
//! A difference and its opposite are shortened alike, at both ends of a link: what one node gains the
//! other loses, and the mean over all nodes stays.

use super::spec::{Adaptive, Clip};
use crate::math::real::{Real, dot, update};

/// Clipping in the precision of the run.
#[derive(Debug, Clone, Copy)]
pub enum Clipping<T> {
    /// To a fixed radius.
    Radius(T),
    /// To so many times the median.
    Median(T),
}

impl<T: Real> Clipping<T> {
    pub fn new(clip: Clip) -> Clipping<T> {
        match clip {
            Clip::Radius(radius) => Clipping::Radius(T::of(radius)),
            Clip::Adaptive(Adaptive { median }) => Clipping::Median(T::of(median)),
        }
    }

    /// Whether nodes tell each other their radii.
    pub fn is_told(&self) -> bool {
        matches!(self, Clipping::Median(_))
    }
}

/// ‖a − b‖; `difference` is memory for it.
pub fn distance<T: Real>(a: &[T], b: &[T], difference: &mut [T]) -> T {
    update(difference, [a, b], |_, [a, b]| a - b);
    dot(difference, difference).sqrt()
}

/// What a difference of this length is multiplied by.
pub fn factor<T: Real>(length: T, radius: T) -> T {
    if length > radius { radius / length } else { T::one() }
}

/// The median, of an even number the upper one; `None` of nothing. With the lower one, two neighbours
/// of one mind would keep a node of a ring from hearing its other neighbours for ever.
pub fn median<T: Real>(lengths: &mut [T]) -> Option<T> {
    if lengths.is_empty() {
        return None;
    }
    let middle = lengths.len() / 2;
    let order = |a: &T, b: &T| (*a).to_f64().total_cmp(&(*b).to_f64());
    Some(*lengths.select_nth_unstable_by(middle, order).1)
}
