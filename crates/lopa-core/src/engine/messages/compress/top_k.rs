//! The largest entries: their indices, in increasing order, then their values. Of entries of equal
//! size, the first are taken.

use super::{Compressor, entries, limited, number};
use crate::math::portable::sin;
use crate::math::random::Stream;
use crate::math::real::Real;
use crate::params;

params! {
    /// Parameters of `top-k`.
    pub struct TopK {
        /// The part of each vector's entries that is sent, rounded up.
        share: f64 = 0.1, weight;
    }
}

/// Bytes of an index.
fn width(length: usize) -> usize {
    if length <= 1 << 16 { 2 } else { 4 }
}

impl<T: Real> Compressor<T> for TopK {
    fn bytes(&self, length: usize) -> usize {
        entries(self.share, length) * (width(length) + T::BYTES)
    }

    fn encode(&self, vector: &[T], _: &mut Stream, order: &mut Vec<u32>, wire: &mut Vec<u8>) {
        let k = entries(self.share, vector.len());
        let size = |at: &u32| vector[*at as usize].to_f64().abs();
        order.clear();
        order.extend(0..vector.len() as u32);
        if k < vector.len() {
            order.select_nth_unstable_by(k, |a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
            order.truncate(k);
            order.sort_unstable();
        }
        let width = width(vector.len());
        order.iter().for_each(|at| wire.extend_from_slice(&at.to_le_bytes()[..width]));
        order.iter().for_each(|&at| T::extend_le(&[vector[at as usize]], wire));
    }

    fn add(&self, wire: &[u8], _: &mut Stream, _: &mut Vec<u32>, replica: &mut [T]) -> Option<()> {
        let (k, width) = (entries(self.share, replica.len()), width(replica.len()));
        let (indices, values) = wire.split_at_checked(k * width)?;
        let mut next = 0;
        for (index, value) in indices.chunks_exact(width).zip(values.chunks_exact(T::BYTES)) {
            let at = index.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
            if at < next {
                return None;
            }
            *replica.get_mut(at)? += number(value);
            next = at + 1;
        }
        Some(())
    }

    /// Every entry is sent about once in 1 / share messages: neighbours hold entries that are d =
    /// (1 / share − 1) / 2 iterations old, on average. Mixing with vectors of that age, x ← x − γ
    /// (I − W) x(k − d), is stable where γ (1 − λ_min) < 2 sin(π / (4 d + 2)); the step is 0.6
    /// times that.
    fn consensus_step(&self, spread: f64) -> f64 {
        limited(1.2 * sin(std::f64::consts::FRAC_PI_2 * self.share), spread)
    }
}
