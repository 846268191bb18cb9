//! One vector's worth of numbers, so that every kernel is written once.
//!
//! A vector has 64 bytes on every processor, in one register, in two or in four: sums then have the
//! same order, and results the same bits, whatever the registers are.

use std::ops::{Add, Mul, Sub};

/// Numbers side by side. Kernels are generic over it; each instruction set has its own.
///
/// # Safety
/// Methods may use instructions beyond the baseline: call them only where the processor has them,
/// and inside a function compiled for them. Pointers must be good for [`LANES`](Vector::LANES)
/// numbers, or for those that the mask selects.
pub unsafe trait Vector: Copy {
    /// f32 or f64.
    type Scalar: Number;
    /// The lanes that a partial load or store touches.
    type Mask: Copy;
    /// How many numbers there are.
    const LANES: usize;
    /// Whether a whole vector fits one register: loops then keep more of them at a time.
    const WHOLE: bool;

    /// The first `n` lanes.
    unsafe fn mask(n: usize) -> Self::Mask;
    unsafe fn splat(value: Self::Scalar) -> Self;
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// Lanes outside the mask are zero.
    unsafe fn load_part(from: *const Self::Scalar, mask: Self::Mask) -> Self;
    /// Lane l is the number that byte l is.
    unsafe fn bytes(from: *const u8) -> Self;
    /// Eight lanes from each place, as many places as there are eights, in order.
    #[inline(always)]
    unsafe fn load_windows(from: [*const Self::Scalar; 2]) -> Self {
        if Self::LANES == 8 {
            return unsafe { Self::load(from[0]) };
        }
        let mut all = [Self::Scalar::ZERO; 16];
        for l in 0..16 {
            all[l] = unsafe { *from[l / 8].add(l % 8) };
        }
        unsafe { Self::load(all.as_ptr()) }
    }
    /// The reverse of [`load_windows`](Vector::load_windows). Where places are the same, the first
    /// lanes prevail.
    #[inline(always)]
    unsafe fn store_windows(self, to: [*mut Self::Scalar; 2]) {
        if Self::LANES == 8 {
            return unsafe { self.store(to[0]) };
        }
        let mut all = [Self::Scalar::ZERO; 16];
        unsafe { self.store(all.as_mut_ptr()) };
        for l in (0..16).rev() {
            unsafe { *to[l / 8].add(l % 8) = all[l] };
        }
    }
    /// Four columns of as many rows as there are lanes: the i-th vector has rows i, i + 4, …, four
    /// lanes each.
    unsafe fn load_rows(from: *const Self::Scalar, stride: usize) -> [Self; 4];
    /// The reverse of [`load_rows`](Vector::load_rows).
    unsafe fn store_rows(rows: [Self; 4], to: *mut Self::Scalar, stride: usize);
    /// Makes the four columns of such rows, and such rows of four columns.
    unsafe fn transpose(rows: [Self; 4]) -> [Self; 4];
    /// 64 bytes of 16 rows as 64 columns of 16, in the order 0, 16, 32, 48, 1, 17, …
    #[inline(always)]
    unsafe fn transpose_bytes(rows: &[*const u8; 16], to: *mut u8) {
        for (r, row) in rows.iter().enumerate() {
            for q in 0..64 {
                unsafe { *to.add((q % 16 * 4 + q / 16) * 16 + r) = *row.add(q) };
            }
        }
    }
    unsafe fn store(self, to: *mut Self::Scalar);
    unsafe fn store_part(self, to: *mut Self::Scalar, mask: Self::Mask);
    /// `to[l] += a · with[l]` for the first `n` < LANES lanes, with stores that touch no others: a
    /// load that follows a masked store close by would have to wait for it.
    unsafe fn add_part(to: *mut Self::Scalar, a: Self::Scalar, with: *const Self::Scalar, n: usize);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self · a + b`, rounded once.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// The larger; `other` where one is not a number.
    unsafe fn max(self, other: Self) -> Self;
    /// The smaller; `other` where one is not a number.
    unsafe fn min(self, other: Self) -> Self;
    /// Lanes outside the mask become `other`'s.
    unsafe fn or_else(self, other: Self, mask: Self::Mask) -> Self;
    /// The sum of all lanes: lane l with lane l + LANES / 2, then the halves of that, and so on.
    unsafe fn total(self) -> Self::Scalar;
    /// The largest lane.
    unsafe fn top(self) -> Self::Scalar;
    /// 2ⁿ⁻¹, for an integer n to which [`Split::round`] has been added.
    unsafe fn half_power(self) -> Self;
}

/// What the kernels need to know of f32 and f64.
pub trait Number:
    Copy + 'static + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// Below every number.
    const LOWEST: Self;
    /// 1/0!, 1/1!, … as far as eˣ needs them for |x| ≤ ln 2 / 2.
    const INVERSE_FACTORIALS: &'static [Self];
    /// Below the first, eˣ is taken for the least it can be; above the second it is infinite.
    const EXP_RANGE: [Self; 2];
    const SPLIT: Split<Self>;
}

/// The parts of ln 2, and the number whose addition rounds to an integer.
#[derive(Clone, Copy)]
pub struct Split<T> {
    pub log2_e: T,
    pub minus_high: T,
    pub minus_low: T,
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
    const SPLIT: Split<f32> = Split {
        log2_e: std::f32::consts::LOG2_E,
        minus_high: -355.0 / 512.0, // nine bits, so that n · high is exact
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
    const SPLIT: Split<f64> = Split {
        log2_e: std::f64::consts::LOG2_E,
        minus_high: -0.693_147_180_369_123_8, // 32 bits, so that n · high is exact
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
