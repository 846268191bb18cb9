//! The peak performance of one core of this processor.
#![allow(unsafe_code)]
#![cfg_attr(not(target_arch = "x86_64"), allow(unused))]

use std::hint::black_box;

use crate::clock::fastest;

/// Scalars whose peak is known.
pub trait Peak {
    /// Operations per second of fused multiply-adds in registers, each counted as two. Infinite
    /// where they cannot be measured.
    fn peak(budget: f64) -> f64;
}

/// Independent sums: more than latency times operations per cycle.
const SUMS: usize = 16;
const TURNS: usize = 2000;

macro_rules! peak {
    ($scalar:ident, $([$feature:tt, $lanes:literal, $splat:ident, $fma:ident]),*) => {
        impl Peak for $scalar {
            fn peak(budget: f64) -> f64 {
                #[cfg(target_arch = "x86_64")]
                {
                    use std::arch::x86_64::{$($splat, $fma),*};
                    $(if is_x86_feature_detected!($feature) && is_x86_feature_detected!("fma") {
                        #[target_feature(enable = $feature, enable = "fma")]
                        fn spin() {
                            let (a, b) = (black_box($splat(0.5)), black_box($splat(0.25)));
                            let mut sums = [a; SUMS];
                            for _ in 0..TURNS {
                                for sum in &mut sums {
                                    *sum = $fma(*sum, a, b);
                                }
                            }
                            black_box(sums);
                        }
                        // SAFETY: the processor has the features that `spin` is compiled for.
                        let seconds = fastest(budget, || unsafe { spin() });
                        return (2 * $lanes * SUMS * TURNS) as f64 / seconds;
                    })*
                }
                f64::INFINITY
            }
        }
    };
}

peak!(
    f32,
    ["avx512f", 16, _mm512_set1_ps, _mm512_fmadd_ps],
    ["avx2", 8, _mm256_set1_ps, _mm256_fmadd_ps]
);
peak!(
    f64,
    ["avx512f", 8, _mm512_set1_pd, _mm512_fmadd_pd],
    ["avx2", 4, _mm256_set1_pd, _mm256_fmadd_pd]
);
