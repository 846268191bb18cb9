//! Sums of doubles without rounding, and with masks that cancel.
//!
//! ```text
//! Σ values = N / 2¹⁰⁷⁴,   N a whole number modulo 2²¹⁷⁶
//! ```
//!
//! Every finite double is a whole multiple of 2⁻¹⁰⁷⁴ below 2¹⁰²⁴: sums of up to 2⁷⁷ of them are exact in any order. A
//! uniformly random number may be added at one place and subtracted at another: what is sent in between says nothing.

/// Words of a number.
pub const WORDS: usize = 34;

/// A sum, as a whole number in two's complement; the lowest word first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact(pub [u64; WORDS]);

impl Default for Exact {
    fn default() -> Exact {
        Exact([0; WORDS])
    }
}

impl Exact {
    /// A double; `None` if it is not finite.
    pub fn of(value: f64) -> Option<Exact> {
        if !value.is_finite() {
            return None;
        }
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        // The value is `whole` · 2^`shift` · 2⁻¹⁰⁷⁴.
        let (whole, shift) = match exponent {
            0 => (fraction, 0),
            exponent => (fraction | 1 << 52, exponent as usize - 1),
        };
        let mut sum = Exact::default();
        let wide = u128::from(whole) << (shift % 64);
        sum.0[shift / 64] = wide as u64;
        sum.0[shift / 64 + 1] = (wide >> 64) as u64;
        Some(if value.is_sign_negative() { Exact::default().minus(&sum) } else { sum })
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(mut self, other: &Exact) -> Exact {
        let mut carry = false;
        for (own, other) in self.0.iter_mut().zip(other.0) {
            let (sum, one) = own.overflowing_add(other);
            let (sum, two) = sum.overflowing_add(u64::from(carry));
            (*own, carry) = (sum, one || two);
        }
        self
    }

    /// The difference of two.
    #[must_use]
    pub fn minus(self, other: &Exact) -> Exact {
        let mut one = [0; WORDS];
        one[0] = 1;
        self.plus(&Exact(other.0.map(|word| !word))).plus(&Exact(one))
    }

    /// The nearest double; an even last digit where two are equally near, and infinite beyond the largest.
    pub fn to_f64(&self) -> f64 {
        let negative = self.0[WORDS - 1] >> 63 == 1;
        let size = if negative { Exact::default().minus(self) } else { self.clone() };
        let Some(top) = size.0.iter().rposition(|&word| word != 0) else { return 0.0 };
        let highest = 64 * top + 63 - size.0[top].leading_zeros() as usize;
        let value = match highest < 53 {
            true => size.0[0] as f64 * f64::from_bits(1),
            false => {
                // The 64 highest bits; those below them matter only where half of a last digit is left.
                let from = highest.saturating_sub(63);
                let word = |at: usize| size.0.get(at).copied().unwrap_or(0);
                let wide = u128::from(word(from / 64)) | u128::from(word(from / 64 + 1)) << 64;
                let head = (wide >> (from % 64)) as u64;
                let below = (0..from / 64).any(|at| size.0[at] != 0)
                    || size.0[from / 64] & ((1u64 << (from % 64)) - 1) != 0;
                let head = (head | u64::from(below)) as f64;
                // In two steps: a power of two that is not a double occurs on the way to one that is.
                let power = from as i32 - 1074;
                head * exp2(power / 2) * exp2(power - power / 2)
            }
        };
        if negative { -value } else { value }
    }
}

/// A power of two that is a normal double.
fn exp2(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::portable::powf;
    use crate::math::random::{Purpose, Stream};

    fn sum(values: &[f64]) -> f64 {
        let add = |sum: Exact, &value: &f64| sum.plus(&Exact::of(value).unwrap());
        values.iter().fold(Exact::default(), add).to_f64()
    }

    fn drawn(stream: &mut Stream) -> f64 {
        f64::from_bits(stream.bits())
    }

    #[test]
    fn a_double_is_itself() {
        let mut stream = Stream::new(1, Purpose::Data, 0);
        let odd =
            [0.0, 1.0, -1.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, f64::from_bits(1), 5e-310];
        let drawn = (0..20_000).map(|_| drawn(&mut stream)).filter(|value| value.is_finite());
        for value in odd.into_iter().chain(drawn) {
            let value = if value == 0.0 { 0.0 } else { value };
            assert_eq!(sum(&[value]).to_bits(), value.to_bits(), "{value:e}");
        }
        assert!([f64::NAN, f64::INFINITY].into_iter().all(|value| Exact::of(value).is_none()));
    }

    #[test]
    fn sums_of_two_are_rounded_as_the_processor_does() {
        let mut stream = Stream::new(2, Purpose::Data, 0);
        for _ in 0..50_000 {
            let a = drawn(&mut stream);
            // Near the first, so that digits overlap.
            let b = a * stream.normal() * powf(2.0, 0.1 * stream.normal());
            if a.is_finite() && b.is_finite() && a + b != 0.0 {
                assert_eq!(sum(&[a, b]).to_bits(), (a + b).to_bits(), "{a:e} {b:e}");
            }
        }
        // Half of a last digit, and a little more.
        let half = f64::EPSILON / 2.0;
        assert_eq!([sum(&[1.0, half]), sum(&[1.0, half, 1e-300])], [1.0, 1.0 + f64::EPSILON]);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
    }

    #[test]
    fn order_and_masks_change_nothing() {
        let mut stream = Stream::new(3, Purpose::Data, 0);
        for _ in 0..200 {
            let mut values: Vec<f64> =
                (0..9).map(|_| stream.normal() * powf(2.0, 40.0 * stream.normal())).collect();
            let want = sum(&values);
            stream.shuffle(&mut values);
            assert_eq!(sum(&values).to_bits(), want.to_bits());
            let mask = Exact(std::array::from_fn(|_| stream.bits()));
            let first = Exact::of(values[0]).unwrap().plus(&mask);
            let second = Exact::of(values[1]).unwrap().minus(&mask);
            assert_eq!(first.plus(&second).to_f64(), sum(&values[..2]));
        }
    }
}
