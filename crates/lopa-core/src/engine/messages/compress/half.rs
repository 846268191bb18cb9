//! 16 bits per entry, rounded to the nearest, ties to even.

use super::Compressor;
use crate::math::random::Stream;
use crate::math::real::{Real, largest};
use crate::params;

params! {
    /// Parameters of `bf16`: none.
    pub struct Bf16 {}
}

/// The largest finite bf16.
const LARGEST: f32 = f32::from_bits(0x7f7f_0000);

impl<T: Real> Compressor<T> for Bf16 {
    fn bytes(&self, length: usize) -> usize {
        2 * length
    }

    fn encode(&self, vector: &[T], _: &mut Stream, _: &mut Vec<u32>, wire: &mut Vec<u8>) {
        for &value in vector {
            // Larger values are clipped; the rest follows in later messages.
            let bits = (value.to_f64() as f32).clamp(-LARGEST, LARGEST).to_bits();
            let rounded = match value.is_nan() {
                true => 0x7fc0,
                false => (bits + 0x7fff + (bits >> 16 & 1)) >> 16,
            };
            wire.extend_from_slice(&(rounded as u16).to_le_bytes());
        }
    }

    fn add(&self, wire: &[u8], _: &mut Stream, _: &mut Vec<u32>, replica: &mut [T]) -> Option<()> {
        for (replica, bytes) in replica.iter_mut().zip(wire.as_chunks::<2>().0) {
            let bits = u32::from(u16::from_le_bytes(*bytes)) << 16;
            *replica += T::of(f64::from(f32::from_bits(bits)));
        }
        Some(())
    }

    fn consensus_step(&self, _: f64) -> f64 {
        1.0
    }
}

params! {
    /// Parameters of `f16`: none.
    pub struct F16 {}
}

/// The smallest exponent of two to scale by: that of the smallest normal f32.
const LEAST: i32 = -126;

/// The largest: its inverse is also a normal number.
const MOST: i32 = 1022;

/// 2^e, exactly, for e from −1022 to 1023.
fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// The exponent e with size < 2^e, for a finite size.
fn exponent(size: f64) -> i32 {
    ((size.to_bits() >> 52) as i32 - 1022).max(LEAST)
}

/// The f16 nearest to a number of size at most 1.
fn to_f16(value: f64) -> u16 {
    if !value.is_finite() {
        return 0x7e00;
    }
    let size = value.abs();
    let e = ((size.to_bits() >> 52) as i32 - 1023).max(-14);
    let steps = (size / power(e - 10)).round_ties_even() as i32;
    // A carry out of the significant bits correctly raises the exponent.
    let bits = ((e + 14) << 10) + steps;
    bits as u16 | if value < 0.0 { 0x8000 } else { 0 }
}

fn from_f16(bits: u16) -> f64 {
    let (e, rest) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let size = match e {
        0 => rest * power(-24),
        31 => f64::NAN,
        e => (1024.0 + rest) * power(e - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

impl<T: Real> Compressor<T> for F16 {
    fn bytes(&self, length: usize) -> usize {
        2 + 2 * length
    }

    fn encode(&self, vector: &[T], _: &mut Stream, _: &mut Vec<u32>, wire: &mut Vec<u8>) {
        let e = exponent(largest(vector)).min(MOST);
        wire.extend_from_slice(&(e as i16).to_le_bytes());
        let scale = power(-e);
        for &value in vector {
            wire.extend_from_slice(&to_f16(value.to_f64() * scale).to_le_bytes());
        }
    }

    fn add(&self, wire: &[u8], _: &mut Stream, _: &mut Vec<u32>, replica: &mut [T]) -> Option<()> {
        let (e, values) = wire.split_first_chunk::<2>()?;
        let e = i32::from(i16::from_le_bytes(*e));
        if !(LEAST..=MOST).contains(&e) {
            return None;
        }
        for (replica, bytes) in replica.iter_mut().zip(values.as_chunks::<2>().0) {
            *replica += T::of(from_f16(u16::from_le_bytes(*bytes)) * power(e));
        }
        Some(())
    }

    fn consensus_step(&self, _: f64) -> f64 {
        1.0
    }
}
