//! Entries drawn at random. Both ends draw the same, so that only values are sent.

use super::{Compressor, entries, limited, number};
use crate::math::random::Stream;
use crate::math::real::Real;
use crate::params;

params! {
    /// Parameters of `random-k`.
    pub struct RandomK {
        /// The part of each vector's entries that is sent, rounded up.
        share: f64 = 0.1, weight;
    }
}

/// The first `k` indices of a random order.
fn choose(k: usize, length: usize, draw: &mut Stream, order: &mut Vec<u32>) {
    order.clear();
    order.extend(0..length as u32);
    (0..k).for_each(|at| order.swap(at, at + draw.below(length - at)));
    order.truncate(k);
}

impl<T: Real> Compressor<T> for RandomK {
    fn bytes(&self, length: usize) -> usize {
        entries(self.share, length) * T::BYTES
    }

    fn encode(&self, vector: &[T], draw: &mut Stream, order: &mut Vec<u32>, wire: &mut Vec<u8>) {
        choose(entries(self.share, vector.len()), vector.len(), draw, order);
        order.iter().for_each(|&at| T::extend_le(&[vector[at as usize]], wire));
    }

    fn add(
        &self,
        wire: &[u8],
        draw: &mut Stream,
        order: &mut Vec<u32>,
        replica: &mut [T],
    ) -> Option<()> {
        choose(entries(self.share, replica.len()), replica.len(), draw, order);
        for (&at, value) in order.iter().zip(wire.chunks_exact(T::BYTES)) {
            replica[at as usize] += number(value);
        }
        Some(())
    }

    /// The error, a share of 1 − δ in the mean, must not amplify itself: with a step of at most 2 δ
    /// / (2 − δ) / (1 − λ_min), it does not.
    fn consensus_step(&self, spread: f64) -> f64 {
        limited(2.0 * self.share / (2.0 - self.share), spread)
    }
}
