//! eˣ as the kernels compute it, operation by operation.

// Fused products of the card, emulated for tests.
#![allow(clippy::disallowed_methods)]

use lopa::math::real::Real;

/// `f32` or `f64`.
pub trait Exponential: Real {
    /// eˣ
    fn exponential(self) -> Self;
}

impl Exponential for f32 {
    // The constants are those of the kernel, digit by digit.
    #[allow(clippy::approx_constant, clippy::excessive_precision)]
    fn exponential(self) -> f32 {
        let x = self;
        if x.is_nan() || x <= -87.0 {
            return if x.is_nan() { x } else { 0.0 };
        }
        if x > 88.0 {
            return f32::INFINITY;
        }
        let k = (x * 1.44269504).round_ties_even();
        let r = (-k).mul_add(0.693359375, x);
        let r = (-k).mul_add(-2.12194440e-4, r);
        let rest =
            [1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1];
        let p = rest.iter().fold(1.9875691500e-4f32, |p, &c| p.mul_add(r, c));
        let p = p.mul_add(r * r, r) + 1.0;
        let (k, half) = (k as i32, k as i32 / 2);
        let power = |k: i32| f32::from_bits(((k + 127) as u32) << 23);
        p * power(half) * power(k - half)
    }
}

impl Exponential for f64 {
    #[allow(clippy::approx_constant, clippy::excessive_precision)]
    fn exponential(self) -> f64 {
        let x = self;
        if x.is_nan() || x <= -708.0 {
            return if x.is_nan() { x } else { 0.0 };
        }
        if x > 709.0 {
            return f64::INFINITY;
        }
        let k = (x * 1.4426950408889634).round_ties_even();
        let r = (-k).mul_add(6.93147180369123816490e-01, x);
        let r = (-k).mul_add(1.90821492927058770002e-10, r);
        let below = [
            479_001_600.0,
            39_916_800.0,
            3_628_800.0,
            362_880.0,
            40_320.0,
            5040.0,
            720.0,
            120.0,
            24.0,
            6.0,
            2.0,
            1.0,
            1.0,
        ];
        let p = below.iter().fold(1.0 / 6_227_020_800.0, |p: f64, c| p.mul_add(r, 1.0 / c));
        let (k, half) = (k as i32, k as i32 / 2);
        let power = |k: i32| f64::from_bits(((k + 1023) as u64) << 52);
        p * power(half) * power(k - half)
    }
}

#[cfg(test)]
mod tests {
    use super::Exponential;
    use lopa::math::portable::exp;

    #[test]
    fn it_is_the_exponential() {
        for step in -860..=860 {
            let x = f64::from(step) / 10.0;
            let (single, double) = ((x as f32).exponential(), x.exponential());
            assert!((f64::from(single) / exp(f64::from(x as f32)) - 1.0).abs() < 2e-7, "{x}");
            assert!((double / exp(x) - 1.0).abs() < 1e-15, "{x}");
        }
        assert!(f32::NAN.exponential().is_nan() && f64::NAN.exponential().is_nan());
        assert_eq!(
            (f32::INFINITY.exponential(), (-f32::INFINITY).exponential()),
            (f32::INFINITY, 0.0)
        );
        assert_eq!((1e4f64.exponential(), (-1e4f64).exponential()), (f64::INFINITY, 0.0));
    }
}
