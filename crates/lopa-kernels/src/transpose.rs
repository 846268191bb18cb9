//! Transposing four columns of numbers, or bytes, in registers of AVX-512 and AVX2.
//!
//! The functions implement the methods of [`Vector`](super::vector::Vector) of the same names.

// SAFETY: every function below is unsafe for the reasons that `Vector` gives, and its caller
// guarantees what `Vector` demands. Unsafe blocks would only repeat that.
#![allow(unsafe_op_in_unsafe_fn)]

use std::arch::x86_64::*;

use super::interleave::transpose_bytes;

transpose_bytes! {
    bytes512, 4, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512,
    _mm512_unpacklo_epi8, _mm512_unpackhi_epi8
}
transpose_bytes! {
    bytes256, 2, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm256_unpacklo_epi8, _mm256_unpackhi_epi8
}

pub mod f32x16 {
    use std::arch::x86_64::*;

    pub use super::bytes512 as transpose_bytes;

    #[inline(always)]
    pub unsafe fn load_rows(from: *const f32, stride: usize) -> [__m512; 4] {
        let mut rows = [_mm512_setzero_ps(); 4];
        for i in 0..4 {
            let row = |j: usize| from.wrapping_add((i + j) * stride);
            let all = _mm512_castps128_ps512(_mm_loadu_ps(row(0)));
            let all = _mm512_insertf32x4::<1>(all, _mm_loadu_ps(row(4)));
            let all = _mm512_insertf32x4::<2>(all, _mm_loadu_ps(row(8)));
            rows[i] = _mm512_insertf32x4::<3>(all, _mm_loadu_ps(row(12)));
        }
        rows
    }
    #[inline(always)]
    pub unsafe fn store_rows(rows: [__m512; 4], to: *mut f32, stride: usize) {
        for i in 0..4 {
            let row = |j: usize| to.wrapping_add((i + j) * stride);
            _mm_storeu_ps(row(0), _mm512_castps512_ps128(rows[i]));
            _mm_storeu_ps(row(4), _mm512_extractf32x4_ps::<1>(rows[i]));
            _mm_storeu_ps(row(8), _mm512_extractf32x4_ps::<2>(rows[i]));
            _mm_storeu_ps(row(12), _mm512_extractf32x4_ps::<3>(rows[i]));
        }
    }
    #[inline(always)]
    pub unsafe fn transpose([a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
        let (ab, cd) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
        let (ef, gh) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
        let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
        let (ef, gh) = (_mm512_castps_pd(ef), _mm512_castps_pd(gh));
        [
            _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpacklo_pd(ef, gh)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ef, gh)),
        ]
    }
}

pub mod f64x8 {
    use std::arch::x86_64::*;

    pub use super::bytes512 as transpose_bytes;

    #[inline(always)]
    pub unsafe fn load_rows(from: *const f64, stride: usize) -> [__m512d; 4] {
        let mut rows = [_mm512_setzero_pd(); 4];
        for i in 0..4 {
            let row = |j: usize| from.wrapping_add((i + j) * stride);
            let below = _mm512_castpd256_pd512(_mm256_loadu_pd(row(0)));
            rows[i] = _mm512_insertf64x4::<1>(below, _mm256_loadu_pd(row(4)));
        }
        rows
    }
    #[inline(always)]
    pub unsafe fn store_rows(rows: [__m512d; 4], to: *mut f64, stride: usize) {
        for i in 0..4 {
            let below = _mm512_castpd512_pd256(rows[i]);
            let above = _mm512_extractf64x4_pd::<1>(rows[i]);
            _mm256_storeu_pd(to.add(i * stride), below);
            _mm256_storeu_pd(to.add((i + 4) * stride), above);
        }
    }
    #[inline(always)]
    pub unsafe fn transpose([a, b, c, d]: [__m512d; 4]) -> [__m512d; 4] {
        let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
        let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        let (ab, cd) = (_mm512_unpacklo_pd(a, b), _mm512_unpacklo_pd(c, d));
        let (ef, gh) = (_mm512_unpackhi_pd(a, b), _mm512_unpackhi_pd(c, d));
        [
            _mm512_permutex2var_pd(ab, low, cd),
            _mm512_permutex2var_pd(ef, low, gh),
            _mm512_permutex2var_pd(ab, high, cd),
            _mm512_permutex2var_pd(ef, high, gh),
        ]
    }
}

pub mod f32x8 {
    use std::arch::x86_64::*;

    pub use super::bytes256 as transpose_bytes;

    #[inline(always)]
    pub unsafe fn load_rows(from: *const f32, stride: usize) -> [__m256; 4] {
        let mut rows = [_mm256_setzero_ps(); 4];
        for i in 0..4 {
            let (below, above) = (from.add(i * stride), from.add((i + 4) * stride));
            rows[i] = _mm256_set_m128(_mm_loadu_ps(above), _mm_loadu_ps(below));
        }
        rows
    }
    #[inline(always)]
    pub unsafe fn store_rows(rows: [__m256; 4], to: *mut f32, stride: usize) {
        for i in 0..4 {
            _mm_storeu_ps(to.add(i * stride), _mm256_castps256_ps128(rows[i]));
            _mm_storeu_ps(to.add((i + 4) * stride), _mm256_extractf128_ps::<1>(rows[i]));
        }
    }
    #[inline(always)]
    pub unsafe fn transpose([a, b, c, d]: [__m256; 4]) -> [__m256; 4] {
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ef, gh) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        let (ab, cd) = (_mm256_castps_pd(ab), _mm256_castps_pd(cd));
        let (ef, gh) = (_mm256_castps_pd(ef), _mm256_castps_pd(gh));
        [
            _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)),
            _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)),
            _mm256_castpd_ps(_mm256_unpacklo_pd(ef, gh)),
            _mm256_castpd_ps(_mm256_unpackhi_pd(ef, gh)),
        ]
    }
}

pub mod f64x4 {
    use std::arch::x86_64::*;

    pub use super::bytes256 as transpose_bytes;

    #[inline(always)]
    pub unsafe fn load_rows(from: *const f64, stride: usize) -> [__m256d; 4] {
        let row = |i: usize| from.add(i * stride);
        [
            _mm256_loadu_pd(row(0)),
            _mm256_loadu_pd(row(1)),
            _mm256_loadu_pd(row(2)),
            _mm256_loadu_pd(row(3)),
        ]
    }
    #[inline(always)]
    pub unsafe fn store_rows(rows: [__m256d; 4], to: *mut f64, stride: usize) {
        for i in 0..4 {
            _mm256_storeu_pd(to.add(i * stride), rows[i]);
        }
    }
    #[inline(always)]
    pub unsafe fn transpose([a, b, c, d]: [__m256d; 4]) -> [__m256d; 4] {
        let (ab, cd) = (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d));
        let (ef, gh) = (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d));
        [
            _mm256_permute2f128_pd::<0x20>(ab, cd),
            _mm256_permute2f128_pd::<0x20>(ef, gh),
            _mm256_permute2f128_pd::<0x31>(ab, cd),
            _mm256_permute2f128_pd::<0x31>(ef, gh),
        ]
    }
}
