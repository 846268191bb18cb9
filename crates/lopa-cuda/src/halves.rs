//! Numbers as halves of half precision, as the tensor cores take them.

/// 2^24: a byte with a zero byte above it is the half-precision number byte * 2^-24.
pub const SUBNORMAL: f32 = 16_777_216.0;

/// The nearest number in half precision.
pub fn half(a: f32) -> f32 {
    // Below 2^-14 the last bit is 2^-24, as it is of numbers from 1/2 to 1.
    let size = a.abs();
    if size < 2f32.powi(-14) {
        return ((size + 0.5) - 0.5).copysign(a);
    }
    let bits = a.to_bits();
    let near = f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & !0x1fff);
    // A number beyond 65 504 overflows, as on the card.
    match near.abs() {
        _ if a.is_nan() => a,
        size if size > 65_504.0 => f32::INFINITY.copysign(a),
        _ => near,
    }
}

/// The bits of a number that half precision has.
pub fn bits(a: f32) -> u16 {
    let sign = ((a.to_bits() >> 16) & 0x8000) as u16;
    let size = a.abs();
    let rest = match size {
        _ if size.is_nan() => 0x7e00,
        _ if size > 65_504.0 => 0x7c00,
        _ if size < 2f32.powi(-14) => (size * 2f32.powi(24)) as u16,
        _ => ((size.to_bits() - (112 << 23)) >> 13) as u16,
    };
    sign | rest
}

/// High and low halves.
pub fn split(a: f32) -> [f32; 2] {
    let high = half(a);
    [high, half(a - high)]
}

/// The largest power of two that times `bound` is below 2^e.
pub fn power_below(bound: f32, e: i32) -> f32 {
    if bound.is_nan() || bound <= 0.0 {
        return 1.0;
    }
    let exponent = ((bound.to_bits() >> 23) & 255) as i32 - 126;
    2f32.powi((e - exponent).clamp(-100, 100))
}

#[cfg(test)]
mod tests {
    use super::{bits, half, power_below, split};

    #[test]
    fn halves_are_those_of_the_standard() {
        for (a, b) in [
            (1.0, 1.0),
            (1.0 + 1.0 / 2048.0, 1.0),
            (1.0 + 3.0 / 2048.0, 1.0 + 4.0 / 2048.0),
            (65_504.0, 65_504.0),
            (65_520.0, f32::INFINITY),
            (2f32.powi(-24), 2f32.powi(-24)),
            (2f32.powi(-25), 0.0),
            (1.5 * 2f32.powi(-24), 2f32.powi(-23)),
            (-0.333_333_34, -0.333_251_95),
        ] {
            assert_eq!(half(a), b, "{a}");
        }
        let [high, low] = split(0.1);
        assert!((high + low - 0.1).abs() < 3e-8);
    }

    /// All of them, from their bits and back.
    #[test]
    fn bits_are_those_of_the_standard() {
        for all in 0..=u16::MAX {
            let (sign, exponent, rest) = (all >> 15, i32::from(all >> 10 & 31), all & 1023);
            if exponent == 31 && rest > 0 {
                continue;
            }
            let size = match exponent {
                0 => f32::from(rest) * 2f32.powi(-24),
                31 => f32::INFINITY,
                _ => (1.0 + f32::from(rest) / 1024.0) * 2f32.powi(exponent - 15),
            };
            let value = if sign == 1 { -size } else { size };
            assert_eq!(half(value), value);
            assert_eq!(bits(value), all, "{value}");
        }
        assert_eq!(bits(f32::NAN) & 0x7c00, 0x7c00);
    }

    #[test]
    fn a_scale_is_the_largest_that_fits() {
        for bound in [1e-20, 0.3, 1.0, 1.5, 700.0] {
            let scaled = bound * power_below(bound, 14);
            assert!((8192.0..16_384.0).contains(&scaled), "{bound}: {scaled}");
        }
        assert_eq!(power_below(0.0, 14), 1.0);
    }
}
