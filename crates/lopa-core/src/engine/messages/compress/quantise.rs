//! Few bits per entry: a whole number of steps between minus and plus the largest entry, rounded at
//! random so that it is right in the mean.
//!
//! Rounding adds variance, ω times the vector's square. Hence the decoded vector is multiplied by
//! 1/(1 + ω): the squared error is then ω/(1 + ω) of the vector's square in the mean, always less
//! than 1.

use super::packed::{self, Packer, unpack};
use super::{Compressor, number};
use crate::math::random::Stream;
use crate::math::real::{Real, largest};
use crate::params;

params! {
    /// Parameters of `quantise`.
    pub struct Quantise {
        /// Bits per entry, its sign among them.
        bits: u32 = 8, from_to(2, 16);
    }
}

impl Quantise {
    /// Steps from 0 to the largest entry.
    fn steps(&self) -> u64 {
        (1 << (self.bits - 1)) - 1
    }
}

/// One more than the largest word.
const TWO_32: f64 = 4_294_967_296.0;

impl<T: Real> Compressor<T> for Quantise {
    fn bytes(&self, length: usize) -> usize {
        T::BYTES + packed::bytes(length, self.bits)
    }

    fn encode(&self, vector: &[T], draw: &mut Stream, _: &mut Vec<u32>, wire: &mut Vec<u8>) {
        let steps = self.steps();
        let step = largest(vector) / steps as f64;
        // Whole steps and the rest of one; a vector of zeros, or of numbers too small for steps, is all zero steps.
        let in_steps = |value: &T| {
            let count = (*value).to_f64().abs() / step;
            let count = if count.is_finite() { count.min(steps as f64) } else { 0.0 };
            let whole = count as u32;
            (whole, count - f64::from(whole))
        };
        let (mut variance, mut square) = (0.0, 0.0);
        for (whole, part) in vector.iter().map(in_steps) {
            let count = f64::from(whole) + part;
            variance += part * (1.0 - part);
            square += count * count;
        }
        let shortened = if square > 0.0 { step / (1.0 + variance / square) } else { step };
        T::extend_le(&[T::of(shortened)], wire);
        let mut packer = Packer::new(wire, self.bits);
        for value in vector {
            let (whole, part) = in_steps(value);
            let up = f64::from(draw.word()) < part * TWO_32;
            let level = u64::from(whole) + u64::from(up);
            packer.push(if *value < T::zero() { steps - level } else { steps + level });
        }
        packer.end();
    }

    fn add(&self, wire: &[u8], _: &mut Stream, _: &mut Vec<u32>, replica: &mut [T]) -> Option<()> {
        let (step, levels) = wire.split_at_checked(T::BYTES)?;
        let (step, steps) = (number::<T>(step), self.steps());
        for (replica, level) in replica.iter_mut().zip(unpack(levels, self.bits)) {
            if level > 2 * steps {
                return None;
            }
            *replica += T::of(level as f64 - steps as f64) * step;
        }
        Some(())
    }

    fn consensus_step(&self, _: f64) -> f64 {
        1.0 - 1.0 / f64::from(1 << (self.bits - 1))
    }
}
