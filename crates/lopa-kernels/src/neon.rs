//! Halves of vectors in two registers of NEON, with the lanes of one register of AVX2.

// SAFETY: every function below is unsafe for the reasons that `Vector` gives, and its caller
// guarantees what `Vector` demands. Unsafe blocks would only repeat that.
#![allow(unsafe_op_in_unsafe_fn)]
// Fused products that are instructions.
#![allow(clippy::disallowed_methods)]

use std::arch::aarch64::*;

use super::interleave::transpose_bytes;
use super::vector::Vector;

/// Eight numbers.
pub type Single = float32x4x2_t;
/// Four numbers.
pub type Double = float64x2x2_t;

/// Methods that are one instruction for each register.
macro_rules! instructions {
    ($t:ident, $($method:ident => $op:ident),*) => {
        $(#[inline(always)]
        unsafe fn $method(self, other: Self) -> Self {
            $t($op(self.0, other.0), $op(self.1, other.1))
        })*
    };
}

/// Methods that differ between the precisions only in the names of the instructions.
macro_rules! common {
    ($vector:ident, $t:ty, half $half:literal, splat $splat:ident, load $load:ident, part $part:ident,
     store $store:ident, store_part $store_part:ident, fma $fma:ident, more $more:ident,
     less $less:ident, select $select:ident, bias $bias:literal, mantissa $mantissa:literal,
     to_bits $to_bits:ident, of_bits $of_bits:ident, splat_bits $splat_bits:ident,
     add_bits $add_bits:ident, shift_bits $shift_bits:ident, within $within:ident) => {
        type Scalar = $t;
        /// How many lanes.
        type Mask = usize;
        const LANES: usize = 2 * $half;
        const WHOLE: bool = true;

        #[inline(always)]
        unsafe fn mask(n: usize) -> usize {
            n
        }
        #[inline(always)]
        unsafe fn splat(value: $t) -> Self {
            $vector($splat(value), $splat(value))
        }
        #[inline(always)]
        unsafe fn load(from: *const $t) -> Self {
            $vector($load(from), $load(from.add($half)))
        }
        #[inline(always)]
        unsafe fn load_part(from: *const $t, mask: usize) -> Self {
            if mask == Self::LANES {
                return Self::load(from);
            }
            let above = from.wrapping_add($half);
            $vector($part(from, mask.min($half)), $part(above, mask.saturating_sub($half)))
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut $t) {
            $store(to, self.0);
            $store(to.add($half), self.1);
        }
        #[inline(always)]
        unsafe fn store_part(self, to: *mut $t, mask: usize) {
            if mask == Self::LANES {
                return self.store(to);
            }
            $store_part(self.0, to, mask.min($half));
            $store_part(self.1, to.wrapping_add($half), mask.saturating_sub($half));
        }
        #[inline(always)]
        unsafe fn mul_add(self, a: Self, b: Self) -> Self {
            $vector($fma(b.0, self.0, a.0), $fma(b.1, self.1, a.1))
        }
        // A comparison and a choice: the instructions `fmax` and `fmin` treat NaN and the sign of zero in another
        // way than the processors of x86.
        #[inline(always)]
        unsafe fn max(self, other: Self) -> Self {
            let of = |a, b| $select($more(a, b), a, b);
            $vector(of(self.0, other.0), of(self.1, other.1))
        }
        #[inline(always)]
        unsafe fn min(self, other: Self) -> Self {
            let of = |a, b| $select($less(a, b), a, b);
            $vector(of(self.0, other.0), of(self.1, other.1))
        }
        #[inline(always)]
        unsafe fn blend(self, other: Self, mask: usize) -> Self {
            let (below, above) = $within(mask);
            $vector($select(below, self.0, other.0), $select(above, self.1, other.1))
        }
        #[inline(always)]
        unsafe fn half_power(self) -> Self {
            let of =
                |x| $of_bits($shift_bits::<$mantissa>($add_bits($to_bits(x), $splat_bits($bias))));
            $vector(of(self.0), of(self.1))
        }
        #[inline(always)]
        unsafe fn transpose_bytes(rows: &[*const u8; 16], to: *mut u8) {
            bytes128(rows, to)
        }
    };
}

#[inline(always)]
unsafe fn no_bytes() -> uint8x16_t {
    vdupq_n_u8(0)
}

transpose_bytes! { bytes128, 1, no_bytes, vld1q_u8, vst1q_u8, vzip1q_u8, vzip2q_u8 }

/// The first n of four lanes; the others are zero.
#[inline(always)]
unsafe fn part32(from: *const f32, n: usize) -> float32x4_t {
    let two = |from| vcombine_f32(vld1_f32(from), vdup_n_f32(0.0));
    match n {
        0 => vdupq_n_f32(0.0),
        1 => vld1q_lane_f32::<0>(from, vdupq_n_f32(0.0)),
        2 => two(from),
        3 => vld1q_lane_f32::<2>(from.add(2), two(from)),
        _ => vld1q_f32(from),
    }
}

/// The first n of two lanes; the others are zero.
#[inline(always)]
unsafe fn part64(from: *const f64, n: usize) -> float64x2_t {
    match n {
        0 => vdupq_n_f64(0.0),
        1 => vld1q_lane_f64::<0>(from, vdupq_n_f64(0.0)),
        _ => vld1q_f64(from),
    }
}

#[inline(always)]
unsafe fn store_part32(x: float32x4_t, to: *mut f32, n: usize) {
    match n {
        0 => {}
        1 => vst1q_lane_f32::<0>(to, x),
        2 => vst1_f32(to, vget_low_f32(x)),
        3 => {
            vst1_f32(to, vget_low_f32(x));
            vst1q_lane_f32::<2>(to.add(2), x);
        }
        _ => vst1q_f32(to, x),
    }
}

#[inline(always)]
unsafe fn store_part64(x: float64x2_t, to: *mut f64, n: usize) {
    match n {
        0 => {}
        1 => vst1q_lane_f64::<0>(to, x),
        _ => vst1q_f64(to, x),
    }
}

/// Ones in the first n of eight lanes.
#[inline(always)]
unsafe fn within32(n: usize) -> (uint32x4_t, uint32x4_t) {
    const LANES: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    let n = vdupq_n_u32(n as u32);
    let first = |from: usize| vcltq_u32(vld1q_u32(LANES.as_ptr().add(from)), n);
    (first(0), first(4))
}

/// Ones in the first n of four lanes.
#[inline(always)]
unsafe fn within64(n: usize) -> (uint64x2_t, uint64x2_t) {
    const LANES: [u64; 4] = [0, 1, 2, 3];
    let n = vdupq_n_u64(n as u64);
    let first = |from: usize| vcltq_u64(vld1q_u64(LANES.as_ptr().add(from)), n);
    (first(0), first(2))
}

// SAFETY: only the given pointers are accessed, and only in the lanes that the trait says.
unsafe impl Vector for Single {
    common! {
        float32x4x2_t, f32, half 4, splat vdupq_n_f32, load vld1q_f32, part part32, store vst1q_f32,
        store_part store_part32, fma vfmaq_f32, more vcgtq_f32, less vcltq_f32, select vbslq_f32,
        bias 126, mantissa 23, to_bits vreinterpretq_u32_f32, of_bits vreinterpretq_f32_u32,
        splat_bits vdupq_n_u32, add_bits vaddq_u32, shift_bits vshlq_n_u32, within within32
    }
    instructions!(
        float32x4x2_t, add => vaddq_f32, sub => vsubq_f32, mul => vmulq_f32, div => vdivq_f32
    );

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        let eight = vmovl_u8(vld1_u8(from));
        let of = |four| vcvtq_f32_u32(vmovl_u16(four));
        float32x4x2_t(of(vget_low_u16(eight)), of(vget_high_u16(eight)))
    }
    #[inline(always)]
    unsafe fn load_rows(from: *const f32, stride: usize) -> [Self; 4] {
        let mut rows = [Self::splat(0.0); 4];
        for i in 0..4 {
            let (below, above) = (from.add(i * stride), from.add((i + 4) * stride));
            rows[i] = float32x4x2_t(vld1q_f32(below), vld1q_f32(above));
        }
        rows
    }
    #[inline(always)]
    unsafe fn store_rows(rows: [Self; 4], to: *mut f32, stride: usize) {
        for i in 0..4 {
            vst1q_f32(to.add(i * stride), rows[i].0);
            vst1q_f32(to.add((i + 4) * stride), rows[i].1);
        }
    }
    #[inline(always)]
    unsafe fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let (e, f, g, h) = transpose32(a.0, b.0, c.0, d.0);
        let (i, j, k, l) = transpose32(a.1, b.1, c.1, d.1);
        [float32x4x2_t(e, i), float32x4x2_t(f, j), float32x4x2_t(g, k), float32x4x2_t(h, l)]
    }
    #[inline(always)]
    unsafe fn add_part(mut to: *mut f32, a: f32, mut with: *const f32, n: usize) {
        if n & 4 != 0 {
            vst1q_f32(to, vfmaq_n_f32(vld1q_f32(to), vld1q_f32(with), a));
            (to, with) = (to.add(4), with.add(4));
        }
        if n & 2 != 0 {
            vst1_f32(to, vfma_n_f32(vld1_f32(to), vld1_f32(with), a));
            (to, with) = (to.add(2), with.add(2));
        }
        if n & 1 != 0 {
            *to = a.mul_add(*with, *to);
        }
    }
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f32 {
        let four = vaddq_f32(self.0, self.1);
        vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)))
    }
    #[inline(always)]
    unsafe fn max_lane(self) -> f32 {
        vmaxnmvq_f32(vmaxnmq_f32(self.0, self.1))
    }
}

/// The columns of four rows.
#[inline(always)]
unsafe fn transpose32(
    a: float32x4_t,
    b: float32x4_t,
    c: float32x4_t,
    d: float32x4_t,
) -> (float32x4_t, float32x4_t, float32x4_t, float32x4_t) {
    let pair =
        |x, y| (vreinterpretq_f64_f32(vtrn1q_f32(x, y)), vreinterpretq_f64_f32(vtrn2q_f32(x, y)));
    let ((even_ab, odd_ab), (even_cd, odd_cd)) = (pair(a, b), pair(c, d));
    (
        vreinterpretq_f32_f64(vtrn1q_f64(even_ab, even_cd)),
        vreinterpretq_f32_f64(vtrn1q_f64(odd_ab, odd_cd)),
        vreinterpretq_f32_f64(vtrn2q_f64(even_ab, even_cd)),
        vreinterpretq_f32_f64(vtrn2q_f64(odd_ab, odd_cd)),
    )
}

// SAFETY: only the given pointers are accessed, and only in the lanes that the trait says.
unsafe impl Vector for Double {
    common! {
        float64x2x2_t, f64, half 2, splat vdupq_n_f64, load vld1q_f64, part part64, store vst1q_f64,
        store_part store_part64, fma vfmaq_f64, more vcgtq_f64, less vcltq_f64, select vbslq_f64,
        bias 1022, mantissa 52, to_bits vreinterpretq_u64_f64, of_bits vreinterpretq_f64_u64,
        splat_bits vdupq_n_u64, add_bits vaddq_u64, shift_bits vshlq_n_u64, within within64
    }
    instructions!(
        float64x2x2_t, add => vaddq_f64, sub => vsubq_f64, mul => vmulq_f64, div => vdivq_f64
    );

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        let bytes = vcreate_u8(u64::from(from.cast::<u32>().read_unaligned()));
        let four = vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
        let of = |two| vcvtq_f64_u64(vmovl_u32(two));
        float64x2x2_t(of(vget_low_u32(four)), of(vget_high_u32(four)))
    }
    #[inline(always)]
    unsafe fn load_rows(from: *const f64, stride: usize) -> [Self; 4] {
        let row = |i: usize| Self::load(from.add(i * stride));
        [row(0), row(1), row(2), row(3)]
    }
    #[inline(always)]
    unsafe fn store_rows(rows: [Self; 4], to: *mut f64, stride: usize) {
        for i in 0..4 {
            rows[i].store(to.add(i * stride));
        }
    }
    #[inline(always)]
    unsafe fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        [
            float64x2x2_t(vtrn1q_f64(a.0, b.0), vtrn1q_f64(c.0, d.0)),
            float64x2x2_t(vtrn2q_f64(a.0, b.0), vtrn2q_f64(c.0, d.0)),
            float64x2x2_t(vtrn1q_f64(a.1, b.1), vtrn1q_f64(c.1, d.1)),
            float64x2x2_t(vtrn2q_f64(a.1, b.1), vtrn2q_f64(c.1, d.1)),
        ]
    }
    #[inline(always)]
    unsafe fn add_part(mut to: *mut f64, a: f64, mut with: *const f64, n: usize) {
        if n & 2 != 0 {
            vst1q_f64(to, vfmaq_n_f64(vld1q_f64(to), vld1q_f64(with), a));
            (to, with) = (to.add(2), with.add(2));
        }
        if n & 1 != 0 {
            *to = a.mul_add(*with, *to);
        }
    }
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f64 {
        vpaddd_f64(vaddq_f64(self.0, self.1))
    }
    #[inline(always)]
    unsafe fn max_lane(self) -> f64 {
        vmaxnmvq_f64(vmaxnmq_f64(self.0, self.1))
    }
}
