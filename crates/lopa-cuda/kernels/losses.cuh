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
