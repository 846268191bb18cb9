//! One bit per entry: its sign, and for all of them the mean size.

use super::packed::{self, Packer, unpack};
use super::{Compressor, number};
use crate::math::random::Stream;
use crate::math::real::Real;
use crate::params;

params! {
    /// Parameters of `sign`: none.
    pub struct Sign {}
}

impl<T: Real> Compressor<T> for Sign {
    fn bytes(&self, length: usize) -> usize {
        T::BYTES + packed::bytes(length, 1)
    }

    fn encode(&self, vector: &[T], _: &mut Stream, _: &mut Vec<u32>, wire: &mut Vec<u8>) {
        let sum: f64 = vector.iter().map(|&value| value.to_f64().abs()).sum();
        T::extend_le(&[T::of(sum / vector.len().max(1) as f64)], wire);
        let mut packer = Packer::new(wire, 1);
        vector.iter().for_each(|value| packer.push(u64::from(*value < T::zero())));
        packer.end();
    }

    fn add(&self, wire: &[u8], _: &mut Stream, _: &mut Vec<u32>, replica: &mut [T]) -> Option<()> {
        let (size, signs) = wire.split_at_checked(T::BYTES)?;
        let size = number::<T>(size);
        for (replica, negative) in replica.iter_mut().zip(unpack(signs, 1)) {
            *replica += if negative == 1 { -size } else { size };
        }
        Some(())
    }

    fn consensus_step(&self, _: f64) -> f64 {
        0.2
    }
}
