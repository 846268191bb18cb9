//! Registers of AVX-512 and of AVX2 with FMA.

use std::arch::x86_64::*;

use super::vector::{FACTORIALS32, FACTORIALS64, SPLIT32, SPLIT64, Vector};

/// The methods that differ only in names.
macro_rules! simple {
    ($($method:ident => $op:ident),*) => {
        $(#[inline(always)]
        unsafe fn $method(self, other: Self) -> Self {
            unsafe { $op(self, other) }
        })*
    };
}

/// [`Vector::add_part`] in pieces of 8, 4, 2 and 1.
#[inline(always)]
unsafe fn add_part32(mut to: *mut f32, a: f32, mut with: *const f32, n: usize) {
    // SAFETY: the pieces add up to n.
    unsafe {
        if n & 8 != 0 {
            let sum =
                _mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(with), _mm256_loadu_ps(to));
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
}

/// [`Vector::add_part`] in pieces of 4, 2 and 1.
#[inline(always)]
unsafe fn add_part64(mut to: *mut f64, a: f64, mut with: *const f64, n: usize) {
    // SAFETY: the pieces add up to n.
    unsafe {
        if n & 4 != 0 {
            let sum =
                _mm256_fmadd_pd(_mm256_set1_pd(a), _mm256_loadu_pd(with), _mm256_loadu_pd(to));
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
}

macro_rules! avx512 {
    ($v:ty, $t:ty, $mask:ty, $lanes:expr, $split:expr, $bias:expr, $shift:expr, $range:expr, $factorials:expr, $add_part:ident,
     $splat:ident, $load:ident, $load_part:ident, $expand:ident, $store:ident, $store_part:ident,
     $add:ident, $sub:ident, $mul:ident, $div:ident, $max:ident, $min:ident, $fma:ident, $fnma:ident, $blend:ident,
     $total:ident, $top:ident, $to_bits:ident, $of_bits:ident, $splat_bits:ident, $add_bits:ident, $shift_bits:ident) => {
        #[allow(unsafe_code)]
        // SAFETY: only the given pointers are touched, and no more of them than the trait says.
        unsafe impl Vector for $v {
            type Scalar = $t;
            type Mask = $mask;
            const LANES: usize = $lanes;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const INVERSE_FACTORIALS: &'static [$t] = &$factorials;
            const EXP_RANGE: [$t; 2] = $range;

            simple!(add => $add, sub => $sub, mul => $mul, div => $div, max => $max, min => $min);

            #[inline(always)]
            unsafe fn mask(n: usize) -> $mask {
                ((1u32 << n) - 1) as $mask
            }
            #[inline(always)]
            unsafe fn splat(value: $t) -> Self {
                unsafe { $splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn load_part(from: *const $t, mask: $mask) -> Self {
                unsafe { $load_part(mask, from) }
            }
            #[inline(always)]
            unsafe fn expand(from: *const $t, bits: u32) -> Self {
                unsafe { $expand(bits as $mask, from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $t, mask: $mask) {
                unsafe { $store_part(to, mask, self) }
            }
            #[inline(always)]
            unsafe fn add_part(to: *mut $t, a: $t, with: *const $t, n: usize) {
                unsafe { $add_part(to, a, with, n) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                unsafe { $fma(self, a, b) }
            }
            #[inline(always)]
            unsafe fn or_else(self, other: Self, mask: $mask) -> Self {
                unsafe { $blend(mask, other, self) }
            }
            #[inline(always)]
            unsafe fn total(self) -> $t {
                unsafe { $total(self) }
            }
            #[inline(always)]
            unsafe fn top(self) -> $t {
                unsafe { $top(self) }
            }
            #[inline(always)]
            unsafe fn reduce(self) -> (Self, Self) {
                unsafe {
                    let round = $splat($split.round);
                    let shifted = $fma(self, $splat($split.log2_e), round);
                    let n = $sub(shifted, round);
                    let r = $fnma(n, $splat($split.high), self);
                    let r = $fnma(n, $splat($split.low), r);
                    let biased = $add_bits($to_bits(shifted), $splat_bits($bias));
                    (r, $of_bits($shift_bits::<$shift>(biased)))
                }
            }
        }
    };
}

avx512!(
    __m512,
    f32,
    __mmask16,
    16,
    SPLIT32,
    126,
    23,
    [-86.6, 89.0],
    FACTORIALS32,
    add_part32,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_maskz_expandloadu_ps,
    _mm512_storeu_ps,
    _mm512_mask_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_div_ps,
    _mm512_max_ps,
    _mm512_min_ps,
    _mm512_fmadd_ps,
    _mm512_fnmadd_ps,
    _mm512_mask_blend_ps,
    _mm512_reduce_add_ps,
    _mm512_reduce_max_ps,
    _mm512_castps_si512,
    _mm512_castsi512_ps,
    _mm512_set1_epi32,
    _mm512_add_epi32,
    _mm512_slli_epi32
);

avx512!(
    __m512d,
    f64,
    __mmask8,
    8,
    SPLIT64,
    1022,
    52,
    [-707.7, 709.9],
    FACTORIALS64,
    add_part64,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_maskz_expandloadu_pd,
    _mm512_storeu_pd,
    _mm512_mask_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_div_pd,
    _mm512_max_pd,
    _mm512_min_pd,
    _mm512_fmadd_pd,
    _mm512_fnmadd_pd,
    _mm512_mask_blend_pd,
    _mm512_reduce_add_pd,
    _mm512_reduce_max_pd,
    _mm512_castpd_si512,
    _mm512_castsi512_pd,
    _mm512_set1_epi64,
    _mm512_add_epi64,
    _mm512_slli_epi64
);

macro_rules! avx2 {
    ($v:ty, $t:ty, $int:ty, $lanes:expr, $split:expr, $bias:expr, $shift:expr, $range:expr, $factorials:expr, $add_part:ident,
     $splat:ident, $load:ident, $load_part:ident, $store:ident, $store_part:ident,
     $add:ident, $sub:ident, $mul:ident, $div:ident, $max:ident, $min:ident, $fma:ident, $fnma:ident, $blend:ident,
     $to_bits:ident, $of_bits:ident, $splat_bits:ident, $add_bits:ident, $shift_bits:ident) => {
        #[allow(unsafe_code)]
        // SAFETY: only the given pointers are touched, and no more of them than the trait says.
        unsafe impl Vector for $v {
            type Scalar = $t;
            type Mask = __m256i;
            const LANES: usize = $lanes;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const INVERSE_FACTORIALS: &'static [$t] = &$factorials;
            const EXP_RANGE: [$t; 2] = $range;

            simple!(add => $add, sub => $sub, mul => $mul, div => $div, max => $max, min => $min);

            #[inline(always)]
            unsafe fn mask(n: usize) -> __m256i {
                const FROM: [$int; 2 * $lanes] = {
                    let mut from = [0; 2 * $lanes];
                    let mut l = 0;
                    while l < $lanes {
                        from[l] = -1;
                        l += 1;
                    }
                    from
                };
                assert!(n <= $lanes);
                unsafe { _mm256_loadu_si256(FROM.as_ptr().add($lanes - n).cast()) }
            }
            #[inline(always)]
            unsafe fn splat(value: $t) -> Self {
                unsafe { $splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn load_part(from: *const $t, mask: __m256i) -> Self {
                unsafe { $load_part(from, mask) }
            }
            #[inline(always)]
            unsafe fn expand(mut from: *const $t, bits: u32) -> Self {
                let mut lanes = [0.0; $lanes];
                for l in 0..$lanes {
                    if bits >> l & 1 == 1 {
                        unsafe {
                            lanes[l] = *from;
                            from = from.add(1);
                        }
                    }
                }
                unsafe { $load(lanes.as_ptr()) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $t, mask: __m256i) {
                unsafe { $store_part(to, mask, self) }
            }
            #[inline(always)]
            unsafe fn add_part(to: *mut $t, a: $t, with: *const $t, n: usize) {
                unsafe { $add_part(to, a, with, n) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                unsafe { $fma(self, a, b) }
            }
            #[inline(always)]
            unsafe fn or_else(self, other: Self, mask: __m256i) -> Self {
                unsafe { $blend(other, self, $of_bits(mask)) }
            }
            #[inline(always)]
            unsafe fn total(self) -> $t {
                let mut lanes = [0.0; $lanes];
                unsafe { $store(lanes.as_mut_ptr(), self) };
                lanes.into_iter().sum()
            }
            #[inline(always)]
            unsafe fn top(self) -> $t {
                let mut lanes = [0.0; $lanes];
                unsafe { $store(lanes.as_mut_ptr(), self) };
                lanes.into_iter().fold(<$t>::NEG_INFINITY, <$t>::max)
            }
            #[inline(always)]
            unsafe fn reduce(self) -> (Self, Self) {
                unsafe {
                    let round = $splat($split.round);
                    let shifted = $fma(self, $splat($split.log2_e), round);
                    let n = $sub(shifted, round);
                    let r = $fnma(n, $splat($split.high), self);
                    let r = $fnma(n, $splat($split.low), r);
                    let biased = $add_bits($to_bits(shifted), $splat_bits($bias));
                    (r, $of_bits($shift_bits::<$shift>(biased)))
                }
            }
        }
    };
}

avx2!(
    __m256,
    f32,
    i32,
    8,
    SPLIT32,
    126,
    23,
    [-86.6, 89.0],
    FACTORIALS32,
    add_part32,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_maskload_ps,
    _mm256_storeu_ps,
    _mm256_maskstore_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_div_ps,
    _mm256_max_ps,
    _mm256_min_ps,
    _mm256_fmadd_ps,
    _mm256_fnmadd_ps,
    _mm256_blendv_ps,
    _mm256_castps_si256,
    _mm256_castsi256_ps,
    _mm256_set1_epi32,
    _mm256_add_epi32,
    _mm256_slli_epi32
);

avx2!(
    __m256d,
    f64,
    i64,
    4,
    SPLIT64,
    1022,
    52,
    [-707.7, 709.9],
    FACTORIALS64,
    add_part64,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_maskload_pd,
    _mm256_storeu_pd,
    _mm256_maskstore_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_div_pd,
    _mm256_max_pd,
    _mm256_min_pd,
    _mm256_fmadd_pd,
    _mm256_fnmadd_pd,
    _mm256_blendv_pd,
    _mm256_castpd_si256,
    _mm256_castsi256_pd,
    _mm256_set1_epi64x,
    _mm256_add_epi64,
    _mm256_slli_epi64
);
