//! Vectors in a register of AVX-512, and halves of vectors in one of AVX2.

// SAFETY: every function below is unsafe for the reasons that `Vector` gives, and its caller
// guarantees what `Vector` demands. Unsafe blocks would only repeat that.
#![allow(unsafe_op_in_unsafe_fn)]
// Fused products that are instructions.
#![allow(clippy::disallowed_methods)]

use std::arch::x86_64::*;

use super::transpose::{f32x8, f32x16, f64x4, f64x8};
use super::vector::Vector;

/// Methods that are one instruction.
macro_rules! instructions {
    ($($method:ident => $op:ident),*) => {
        $(#[inline(always)]
        unsafe fn $method(self, other: Self) -> Self {
            $op(self, other)
        })*
    };
}

/// Methods that differ between the registers only in the names of the instructions.
macro_rules! common {
    ($t:ty, splat $splat:ident, load $load:ident, store $store:ident, fma $fma:ident,
     add_part $add_part:ident, bias $bias:literal, mantissa $mantissa:literal,
     to_bits $to_bits:ident, of_bits $of_bits:ident, splat_bits $splat_bits:ident,
     add_bits $add_bits:ident, shift_bits $shift_bits:ident) => {
        #[inline(always)]
        unsafe fn splat(value: $t) -> Self {
            $splat(value)
        }
        #[inline(always)]
        unsafe fn load(from: *const $t) -> Self {
            $load(from)
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut $t) {
            $store(to, self)
        }
        #[inline(always)]
        unsafe fn mul_add(self, a: Self, b: Self) -> Self {
            $fma(self, a, b)
        }
        #[inline(always)]
        unsafe fn add_part(to: *mut $t, a: $t, with: *const $t, n: usize) {
            $add_part(to, a, with, n)
        }
        #[inline(always)]
        unsafe fn half_power(self) -> Self {
            let biased = $add_bits($to_bits(self), $splat_bits($bias));
            $of_bits($shift_bits::<$mantissa>(biased))
        }
    };
}

/// Methods that are in [`transpose`](super::transpose).
macro_rules! transposed {
    ($t:ty, $by:ident) => {
        #[inline(always)]
        unsafe fn load_rows(from: *const $t, stride: usize) -> [Self; 4] {
            $by::load_rows(from, stride)
        }
        #[inline(always)]
        unsafe fn store_rows(rows: [Self; 4], to: *mut $t, stride: usize) {
            $by::store_rows(rows, to, stride)
        }
        #[inline(always)]
        unsafe fn transpose(rows: [Self; 4]) -> [Self; 4] {
            $by::transpose(rows)
        }
        #[inline(always)]
        unsafe fn transpose_bytes(rows: &[*const u8; 16], to: *mut u8) {
            $by::transpose_bytes(rows, to)
        }
    };
}

/// [`Vector::add_part`] in pieces of 8, 4, 2 and 1, according to the bits of n.
#[inline(always)]
unsafe fn add_part32(mut to: *mut f32, a: f32, mut with: *const f32, n: usize) {
    if n & 8 != 0 {
        let sum = _mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(with), _mm256_loadu_ps(to));
        _mm256_storeu_ps(to, sum);
        (to, with) = (to.add(8), with.add(8));
    }
    if n & 4 != 0 {
        let sum = _mm_fmadd_ps(_mm_set1_ps(a), _mm_loadu_ps(with), _mm_loadu_ps(to));
        _mm_storeu_ps(to, sum);
        (to, with) = (to.add(4), with.add(4));
    }
    if n & 2 != 0 {
        let own = _mm_castpd_ps(_mm_load_sd(to.cast()));
        let more = _mm_castpd_ps(_mm_load_sd(with.cast()));
        let sum = _mm_fmadd_ps(_mm_set1_ps(a), more, own);
        _mm_store_sd(to.cast(), _mm_castps_pd(sum));
        (to, with) = (to.add(2), with.add(2));
    }
    if n & 1 != 0 {
        *to = a.mul_add(*with, *to);
    }
}

/// [`Vector::add_part`] in pieces of 4, 2 and 1, according to the bits of n.
#[inline(always)]
unsafe fn add_part64(mut to: *mut f64, a: f64, mut with: *const f64, n: usize) {
    if n & 4 != 0 {
        let sum = _mm256_fmadd_pd(_mm256_set1_pd(a), _mm256_loadu_pd(with), _mm256_loadu_pd(to));
        _mm256_storeu_pd(to, sum);
        (to, with) = (to.add(4), with.add(4));
    }
    if n & 2 != 0 {
        let sum = _mm_fmadd_pd(_mm_set1_pd(a), _mm_loadu_pd(with), _mm_loadu_pd(to));
        _mm_storeu_pd(to, sum);
        (to, with) = (to.add(2), with.add(2));
    }
    if n & 1 != 0 {
        *to = a.mul_add(*with, *to);
    }
}

/// [`Vector::sum_lanes`] of eight lanes.
#[inline(always)]
unsafe fn sum32(x: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// [`Vector::sum_lanes`] of four lanes.
#[inline(always)]
unsafe fn sum64(x: __m256d) -> f64 {
    let two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

/// The lower and the upper half.
#[inline(always)]
unsafe fn halves32(x: __m512) -> (__m256, __m256) {
    let (below, above) = halves64(_mm512_castps_pd(x));
    (_mm256_castpd_ps(below), _mm256_castpd_ps(above))
}

/// The lower and the upper half.
#[inline(always)]
unsafe fn halves64(x: __m512d) -> (__m256d, __m256d) {
    (_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd::<1>(x))
}

// SAFETY: only the given pointers are accessed, and only in the lanes that the trait says.
unsafe impl Vector for __m512 {
    type Scalar = f32;
    type Mask = __mmask16;
    const LANES: usize = 16;
    const WHOLE: bool = true;

    instructions!(
        add => _mm512_add_ps, sub => _mm512_sub_ps, mul => _mm512_mul_ps,
        div => _mm512_div_ps, max => _mm512_max_ps, min => _mm512_min_ps
    );
    common! {
        f32, splat _mm512_set1_ps, load _mm512_loadu_ps, store _mm512_storeu_ps,
        fma _mm512_fmadd_ps, add_part add_part32, bias 126, mantissa 23,
        to_bits _mm512_castps_si512, of_bits _mm512_castsi512_ps,
        splat_bits _mm512_set1_epi32, add_bits _mm512_add_epi32, shift_bits _mm512_slli_epi32
    }

    transposed!(f32, f32x16);
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())))
    }
    #[inline(always)]
    unsafe fn load_windows(from: [*const f32; 2]) -> Self {
        let below = _mm512_castpd256_pd512(_mm256_loadu_pd(from[0].cast()));
        let above = _mm256_loadu_pd(from[1].cast());
        _mm512_castpd_ps(_mm512_insertf64x4::<1>(below, above))
    }
    #[inline(always)]
    unsafe fn store_windows(self, to: [*mut f32; 2]) {
        let (below, above) = halves32(self);
        _mm256_storeu_ps(to[1], above);
        _mm256_storeu_ps(to[0], below);
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __mmask16 {
        ((1u32 << n) - 1) as __mmask16
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, mask: __mmask16) -> Self {
        _mm512_maskz_loadu_ps(mask, from)
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, mask: __mmask16) {
        _mm512_mask_storeu_ps(to, mask, self)
    }
    #[inline(always)]
    unsafe fn blend(self, other: Self, mask: __mmask16) -> Self {
        _mm512_mask_blend_ps(mask, other, self)
    }
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f32 {
        let (below, above) = halves32(self);
        sum32(_mm256_add_ps(below, above))
    }
    #[inline(always)]
    unsafe fn max_lane(self) -> f32 {
        _mm512_reduce_max_ps(self)
    }
}

// SAFETY: only the given pointers are accessed, and only in the lanes that the trait says.
unsafe impl Vector for __m512d {
    type Scalar = f64;
    type Mask = __mmask8;
    const LANES: usize = 8;
    const WHOLE: bool = true;

    instructions!(
        add => _mm512_add_pd, sub => _mm512_sub_pd, mul => _mm512_mul_pd,
        div => _mm512_div_pd, max => _mm512_max_pd, min => _mm512_min_pd
    );
    common! {
        f64, splat _mm512_set1_pd, load _mm512_loadu_pd, store _mm512_storeu_pd,
        fma _mm512_fmadd_pd, add_part add_part64, bias 1022, mantissa 52,
        to_bits _mm512_castpd_si512, of_bits _mm512_castsi512_pd,
        splat_bits _mm512_set1_epi64, add_bits _mm512_add_epi64, shift_bits _mm512_slli_epi64
    }

    transposed!(f64, f64x8);
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        _mm512_cvtepi64_pd(_mm512_cvtepu8_epi64(_mm_loadl_epi64(from.cast())))
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __mmask8 {
        ((1u32 << n) - 1) as __mmask8
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f64, mask: __mmask8) -> Self {
        _mm512_maskz_loadu_pd(mask, from)
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f64, mask: __mmask8) {
        _mm512_mask_storeu_pd(to, mask, self)
    }
    #[inline(always)]
    unsafe fn blend(self, other: Self, mask: __mmask8) -> Self {
        _mm512_mask_blend_pd(mask, other, self)
    }
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f64 {
        let (below, above) = halves64(self);
        sum64(_mm256_add_pd(below, above))
    }
    #[inline(always)]
    unsafe fn max_lane(self) -> f64 {
        _mm512_reduce_max_pd(self)
    }
}

// SAFETY: only the given pointers are accessed, and only in the lanes that the trait says.
unsafe impl Vector for __m256 {
    type Scalar = f32;
    type Mask = __m256i;
    const LANES: usize = 8;
    const WHOLE: bool = true;

    instructions!(
        add => _mm256_add_ps, sub => _mm256_sub_ps, mul => _mm256_mul_ps,
        div => _mm256_div_ps, max => _mm256_max_ps, min => _mm256_min_ps
    );
    common! {
        f32, splat _mm256_set1_ps, load _mm256_loadu_ps, store _mm256_storeu_ps,
        fma _mm256_fmadd_ps, add_part add_part32, bias 126, mantissa 23,
        to_bits _mm256_castps_si256, of_bits _mm256_castsi256_ps,
        splat_bits _mm256_set1_epi32, add_bits _mm256_add_epi32, shift_bits _mm256_slli_epi32
    }

    transposed!(f32, f32x8);
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())))
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __m256i {
        const FROM: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(n <= 8);
        _mm256_loadu_si256(FROM.as_ptr().add(8 - n).cast())
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, mask: __m256i) -> Self {
        _mm256_maskload_ps(from, mask)
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, mask: __m256i) {
        _mm256_maskstore_ps(to, mask, self)
    }
    #[inline(always)]
    unsafe fn blend(self, other: Self, mask: __m256i) -> Self {
        _mm256_blendv_ps(other, self, _mm256_castsi256_ps(mask))
    }
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f32 {
        sum32(self)
    }
    #[inline(always)]
    unsafe fn max_lane(self) -> f32 {
        let mut lanes = [0.0; 8];
        _mm256_storeu_ps(lanes.as_mut_ptr(), self);
        lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
}

// SAFETY: only the given pointers are accessed, and only in the lanes that the trait says.
unsafe impl Vector for __m256d {
    type Scalar = f64;
    type Mask = __m256i;
    const LANES: usize = 4;
    const WHOLE: bool = true;

    instructions!(
        add => _mm256_add_pd, sub => _mm256_sub_pd, mul => _mm256_mul_pd,
        div => _mm256_div_pd, max => _mm256_max_pd, min => _mm256_min_pd
    );
    common! {
        f64, splat _mm256_set1_pd, load _mm256_loadu_pd, store _mm256_storeu_pd,
        fma _mm256_fmadd_pd, add_part add_part64, bias 1022, mantissa 52,
        to_bits _mm256_castpd_si256, of_bits _mm256_castsi256_pd,
        splat_bits _mm256_set1_epi64x, add_bits _mm256_add_epi64, shift_bits _mm256_slli_epi64
    }

    transposed!(f64, f64x4);
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_loadu_si32(from)))
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __m256i {
        const FROM: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];
        assert!(n <= 4);
        _mm256_loadu_si256(FROM.as_ptr().add(4 - n).cast())
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f64, mask: __m256i) -> Self {
        _mm256_maskload_pd(from, mask)
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f64, mask: __m256i) {
        _mm256_maskstore_pd(to, mask, self)
    }
    #[inline(always)]
    unsafe fn blend(self, other: Self, mask: __m256i) -> Self {
        _mm256_blendv_pd(other, self, _mm256_castsi256_pd(mask))
    }
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f64 {
        sum64(self)
    }
    #[inline(always)]
    unsafe fn max_lane(self) -> f64 {
        let mut lanes = [0.0; 4];
        _mm256_storeu_pd(lanes.as_mut_ptr(), self);
        lanes.into_iter().fold(f64::NEG_INFINITY, f64::max)
    }
}
