// Losses of classes: from scores to slopes and curvatures.

#pragma once

#include "job.cuh"

// Loops over classes are unrolled where there are few in f32, so that scores stay in registers.
#define UNROLLED _Pragma("unroll (MOST <= 16 && sizeof(T) == 4 ? MOST : 1)")

// Scores to probabilities.
template <int MOST, class T> __device__ void softmax(T *z, u32 classes) {
    T top = z[0], sum = T(0);
    UNROLLED for (u32 c = 1; c < MOST; c++) if (c < classes) top = z[c] > top ? z[c] : top;
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
        z[c] = exponential(z[c] - top);
        sum = sum + z[c];
    }
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) z[c] = z[c] / sum;
}

// The same by neighbouring lanes that have the same scores: each computes the exponentials
// and quotients of some classes.
template <int MOST, int LANES, class T> __device__ void softmax(T *z, u32 classes) {
    u32 own = threadIdx.x % LANES;
    T top = z[0], sum = T(0);
    UNROLLED for (u32 c = 1; c < MOST; c++) if (c < classes) top = z[c] > top ? z[c] : top;
    auto each = [&](auto f) {
        UNROLLED for (u32 round = 0; round * LANES < MOST; round++) {
            T mine = top;
            UNROLLED for (u32 c = 0; c < MOST; c++) if (c == round * LANES + own) mine = z[c];
            mine = f(mine);
            UNROLLED for (u32 c = 0; c < MOST; c++)
                if (c / LANES == round) z[c] = __shfl_sync(~0u, mine, c % LANES, LANES);
        }
    };
    each([&](T score) { return exponential(score - top); });
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) sum = sum + z[c];
    each([&](T part) { return part / sum; });
}

// a to the weighted curvature of the loss along it, given probabilities.
template <int MOST, class T> __device__ void curve(const T *p, T *a, T weight, u32 classes) {
    T mean = T(0);
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) mean = fused(p[c], a[c], mean);
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) a[c] = weight * p[c] * (a[c] - mean);
}

// Probabilities to weighted slopes.
template <int MOST, class T> __device__ void slopes(T *p, u32 label, T weight, u32 classes) {
    UNROLLED for (u32 c = 0; c < MOST; c++)
        if (c < classes) p[c] = weight * (c == label ? p[c] - T(1) : p[c]);
}
