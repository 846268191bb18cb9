//! The vector that every kernel is written over, once for all instruction sets.
//!
//! A vector has 64 bytes on every processor, in one register or in several: sums then have the same
//! order, and results the same bits, with every size of register.

use std::ops::{Add, Mul, Sub};

/// [`LANES`](Vector::LANES) numbers of 64 bytes together.
///
/// # Safety
/// An implementation must access memory only through the pointers passed to a method, and no
/// further than the method says.
///
/// A caller of any method must guarantee that the processor has the instructions of the
/// implementation (and be inlined into a function compiled for them), and that pointers are valid
/// for `LANES` numbers, or for the lanes in the mask. The kernels pass the first duty on to their
/// own caller, which dispatches on a [`Level`](crate::Level).
pub unsafe trait Vector: Copy {
    /// f32 or f64.
    type Scalar: Number;
    /// The lanes that a partial load or store accesses.
    type Mask: Copy;
    /// How many numbers a vector has: 16 of f32, 8 of f64.
    const LANES: usize;
    /// Whether a vector fits in one register: loops then keep more of them at a time.
    const WHOLE: bool;
    /// Whether fused products are instructions. Otherwise each is a call of a library function that
    /// takes longer than all the rest: loops are then compiled in their simplest form only.
    const FUSED: bool = true;

    /// The first `n` lanes.
    unsafe fn mask(n: usize) -> Self::Mask;
    /// `value` in every lane.
    unsafe fn splat(value: Self::Scalar) -> Self;
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// Lanes outside the mask are zero.
    unsafe fn load_part(from: *const Self::Scalar, mask: Self::Mask) -> Self;
    /// Converts `LANES` bytes to numbers.
    unsafe fn load_bytes(from: *const u8) -> Self;
    /// Eight lanes from each address, in order; with eight lanes the second address is not used.
    #[inline(always)]
    unsafe fn load_windows(from: [*const Self::Scalar; 2]) -> Self {
        // SAFETY: the caller's addresses are valid for eight numbers each, and 16 are collected.
        unsafe {
            if Self::LANES == 8 {
                return Self::load(from[0]);
            }
            let mut all = [Self::Scalar::ZERO; 16];
            for l in 0..16 {
                all[l] = *from[l / 8].add(l % 8);
            }
            Self::load(all.as_ptr())
        }
    }
    /// The reverse of [`load_windows`](Vector::load_windows). If both addresses are the same, the
    /// first eight lanes win.
    #[inline(always)]
    unsafe fn store_windows(self, to: [*mut Self::Scalar; 2]) {
        // SAFETY: as in `load_windows`.
        unsafe {
            if Self::LANES == 8 {
                return self.store(to[0]);
            }
            let mut all = [Self::Scalar::ZERO; 16];
            self.store(all.as_mut_ptr());
            for l in (0..16).rev() {
                *to[l / 8].add(l % 8) = all[l];
            }
        }
    }
    /// Four columns of `LANES` rows: vector i has rows i, i + 4, …, four lanes each.
    unsafe fn load_rows(from: *const Self::Scalar, stride: usize) -> [Self; 4];
    /// The reverse of [`load_rows`](Vector::load_rows).
    unsafe fn store_rows(rows: [Self; 4], to: *mut Self::Scalar, stride: usize);
    /// Turns such rows into their four columns, and four columns into such rows.
    unsafe fn transpose(rows: [Self; 4]) -> [Self; 4];
    /// Transposes 16 rows of 64 bytes into 64 columns of 16, in the order 0, 16, 32, 48, 1, 17, …
    #[inline(always)]
    unsafe fn transpose_bytes(rows: &[*const u8; 16], to: *mut u8) {
        for (r, row) in rows.iter().enumerate() {
            for q in 0..64 {
                // SAFETY: q < 64 and r < 16: within 64 bytes of the row and 1024 of `to`.
                unsafe { *to.add((q % 16 * 4 + q / 16) * 16 + r) = *row.add(q) };
            }
        }
    }
    unsafe fn store(self, to: *mut Self::Scalar);
    unsafe fn store_part(self, to: *mut Self::Scalar, mask: Self::Mask);
    /// `to[l] += a · with[l]` for the first `n` < `LANES` lanes, without masked stores: a load soon
    /// after a masked store would wait for it.
    unsafe fn add_part(to: *mut Self::Scalar, a: Self::Scalar, with: *const Self::Scalar, n: usize);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self · a + b`, rounded once.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// The larger in each lane; `other` where either is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// The smaller in each lane; `other` where either is NaN.
    unsafe fn min(self, other: Self) -> Self;
    /// `self` in the lanes of the mask, `other` in the rest.
    unsafe fn blend(self, other: Self, mask: Self::Mask) -> Self;
    /// The sum of all lanes: lane l with lane l + LANES / 2, then the halves of that, and so on.
    unsafe fn sum_lanes(self) -> Self::Scalar;
    /// The largest lane.
    unsafe fn max_lane(self) -> Self::Scalar;
    /// 2ⁿ⁻¹, for an integer n to which [`Reduction::round`] has been added.
    unsafe fn half_power(self) -> Self;
}

/// The constants of f32 and f64 that the kernels need.
pub trait Number:
    Copy + 'static + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// Below every number.
    const LOWEST: Self;
    /// 1/0!, 1/1!, … as far as eˣ needs them for |x| ≤ ln 2 / 2.
    const INVERSE_FACTORIALS: &'static [Self];
    /// eˣ is constant below the first, and infinite above the second.
    const EXP_RANGE: [Self; 2];
    /// tanh is 1 from here on.
    const TANH_END: Self;
    const REDUCTION: Reduction<Self>;
}

/// Constants of the argument reduction x = n ln 2 + r.
#[derive(Clone, Copy)]
pub struct Reduction<T> {
    pub log2_e: T,
    /// −ln 2 in two parts; n times the first is exact.
    pub minus_high: T,
    pub minus_low: T,
    /// Rounds to an integer when added.
    pub round: T,
}

impl Number for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const LOWEST: f32 = f32::NEG_INFINITY;
    const INVERSE_FACTORIALS: &'static [f32] = &{
        let (from, mut all): ([f64; 8], _) = (inverse_factorials(), [1.0; 8]);
        let mut k = 0;
        while k < 8 {
            all[k] = from[k] as f32;
            k += 1;
        }
        all
    };
    const EXP_RANGE: [f32; 2] = [-86.6, 89.0];
    const TANH_END: f32 = 10.0;
    const REDUCTION: Reduction<f32> = Reduction {
        log2_e: std::f32::consts::LOG2_E,
        minus_high: -355.0 / 512.0, // nine bits
        minus_low: 2.121_944_4e-4,
        round: 12_582_912.0, // 1.5 · 2²³
    };
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const LOWEST: f64 = f64::NEG_INFINITY;
    const INVERSE_FACTORIALS: &'static [f64] = &inverse_factorials::<14>();
    const EXP_RANGE: [f64; 2] = [-707.7, 709.9];
    const TANH_END: f64 = 20.0;
    const REDUCTION: Reduction<f64> = Reduction {
        log2_e: std::f64::consts::LOG2_E,
        minus_high: -0.693_147_180_369_123_8, // 32 bits
        minus_low: -1.908_214_929_270_587_7e-10,
        round: 6_755_399_441_055_744.0, // 1.5 · 2⁵²
    };
}

const fn inverse_factorials<const N: usize>() -> [f64; N] {
    let mut all = [1.0; N];
    let mut k = 1;
    while k < N {
        all[k] = all[k - 1] / k as f64;
        k += 1;
    }
    all
}
