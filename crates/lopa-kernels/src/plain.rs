//! A vector in plain Rust, for any processor.

// SAFETY: every function below is unsafe for the reasons that `Vector` gives, and its caller
// guarantees what `Vector` demands. Unsafe blocks would only repeat that.
#![allow(unsafe_op_in_unsafe_fn)]
// Fused products that are instructions.
#![allow(clippy::disallowed_methods)]

use super::vector::Vector;

/// `N` numbers.
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize>([T; N]);

macro_rules! lane_by_lane {
    ($n:expr, $($method:ident => |$a:ident, $b:ident| $result:expr),*) => {
        $(#[inline(always)]
        unsafe fn $method(self, other: Self) -> Self {
            Plain(std::array::from_fn(|l| {
                let ($a, $b) = (self.0[l], other.0[l]);
                $result
            }))
        })*
    };
}

/// x86-64 without FMA and WebAssembly have no fused products; other processors have them.
const FUSED: bool =
    cfg!(any(not(any(target_arch = "x86_64", target_family = "wasm")), target_feature = "fma"));

/// `a · b + c`, rounded once. Where that is no instruction it is `libm`'s function, because those of some systems, such as
/// MinGW's, round twice.
#[inline(always)]
fn fused32(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { libm::fmaf(a, b, c) }
}

/// The same.
#[inline(always)]
fn fused64(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { libm::fma(a, b, c) }
}

macro_rules! plain {
    ($t:ty, $n:literal, bias $bias:literal, mantissa $mantissa:literal, fused $fused:ident) => {
        // SAFETY: only the given pointers are accessed, and only in the lanes that the trait says.
        unsafe impl Vector for Plain<$t, $n> {
            type Scalar = $t;
            type Mask = usize;
            const LANES: usize = $n;
            const WHOLE: bool = false;
            const FUSED: bool = FUSED;

            lane_by_lane! { $n,
                add => |a, b| a + b,
                sub => |a, b| a - b,
                mul => |a, b| a * b,
                div => |a, b| a / b,
                max => |a, b| if a > b { a } else { b },
                min => |a, b| if a < b { a } else { b }
            }

            #[inline(always)]
            unsafe fn mask(n: usize) -> usize {
                n
            }
            #[inline(always)]
            unsafe fn splat(value: $t) -> Self {
                Plain([value; $n])
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                Plain(std::array::from_fn(|l| *from.add(l)))
            }
            #[inline(always)]
            unsafe fn load_part(from: *const $t, mask: usize) -> Self {
                Plain(std::array::from_fn(|l| if l < mask { *from.add(l) } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn load_bytes(from: *const u8) -> Self {
                Plain(std::array::from_fn(|l| <$t>::from(*from.add(l))))
            }
            #[inline(always)]
            unsafe fn load_rows(from: *const $t, stride: usize) -> [Self; 4] {
                let at = |l: usize, i| *from.add((l / 4 * 4 + i) * stride + l % 4);
                [0, 1, 2, 3].map(|i| Plain(std::array::from_fn(|l| at(l, i))))
            }
            #[inline(always)]
            unsafe fn store_rows(rows: [Self; 4], to: *mut $t, stride: usize) {
                for (i, row) in rows.into_iter().enumerate() {
                    let at = |l: usize| to.wrapping_add((l / 4 * 4 + i) * stride + l % 4);
                    (0..$n).for_each(|l| *at(l) = row.0[l]);
                }
            }
            #[inline(always)]
            unsafe fn transpose(rows: [Self; 4]) -> [Self; 4] {
                let column = |c| std::array::from_fn(|l| rows[l % 4].0[l / 4 * 4 + c]);
                [0, 1, 2, 3].map(|c| Plain(column(c)))
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                (0..$n).for_each(|l| *to.add(l) = self.0[l]);
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $t, mask: usize) {
                (0..mask).for_each(|l| *to.add(l) = self.0[l]);
            }
            #[inline(always)]
            unsafe fn add_part(to: *mut $t, a: $t, with: *const $t, n: usize) {
                (0..n).for_each(|l| *to.add(l) = $fused(a, *with.add(l), *to.add(l)));
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                Plain(std::array::from_fn(|l| $fused(self.0[l], a.0[l], b.0[l])))
            }
            #[inline(always)]
            unsafe fn blend(self, other: Self, mask: usize) -> Self {
                Plain(std::array::from_fn(|l| if l < mask { self.0[l] } else { other.0[l] }))
            }
            #[inline(always)]
            unsafe fn sum_lanes(mut self) -> $t {
                let mut half = $n / 2;
                while half > 0 {
                    (0..half).for_each(|l| self.0[l] += self.0[l + half]);
                    half /= 2;
                }
                self.0[0]
            }
            #[inline(always)]
            unsafe fn max_lane(self) -> $t {
                self.0.into_iter().fold(<$t>::NEG_INFINITY, <$t>::max)
            }
            #[inline(always)]
            unsafe fn half_power(self) -> Self {
                let power = |t: $t| <$t>::from_bits(t.to_bits().wrapping_add($bias) << $mantissa);
                Plain(self.0.map(power))
            }
        }
    };
}

plain!(f32, 16, bias 126, mantissa 23, fused fused32);
plain!(f64, 8, bias 1022, mantissa 52, fused fused64);
