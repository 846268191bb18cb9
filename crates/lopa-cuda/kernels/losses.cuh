// Losses: from scores to slopes and curvatures.

#pragma once

#include "job.cuh"

// Loops over classes are unrolled where there are few in f32, so that scores stay in registers.
#define UNROLLED _Pragma("unroll (MOST <= 16 && sizeof(T) == 4 ? MOST : 1)")

// Scores to probabilities, where the loss is of several classes.
template <int MOST, class T> __device__ void softmax(const Job<T> &job, T *z, u32 classes) {
    if (job.loss != SOFTMAX) return;
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
template <int MOST, int LANES, class T> __device__ void softmax(const Job<T> &job, T *z, u32 classes) {
    if (job.loss != SOFTMAX) return;
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

// The class of a row; any number where rows have none.
template <class T> __device__ u32 label_of(const Job<T> &job, u32 row) { return job.loss <= LOGISTIC ? job.labels[row] : 0; }

// a to the weighted curvature of the loss of a row along it, given probabilities, or scores.
template <int MOST, class T> __device__ void curve(const Job<T> &job, const T *p, T *a, u32 row, T weight, u32 classes) {
    if (MOST > 1 && job.loss == SOFTMAX) {
        T mean = T(0);
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) mean = fused(p[c], a[c], mean);
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) a[c] = weight * p[c] * (a[c] - mean);
    } else if (job.loss == LOGISTIC) {
        T part = sigmoid(-(*p < T(0) ? -*p : *p));
        *a = *a * (weight * part * (T(1) - part));
    } else {
        const T *target = job.targets + usize(row) * classes;
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
            T off = p[c] - target[c];
            bool far = job.loss == HUBER && (off > job.delta || off < -job.delta);
            a[c] = a[c] * (far ? T(0) : weight);
        }
    }
}

// Probabilities, or scores, to weighted slopes.
template <int MOST, class T> __device__ void slopes(const Job<T> &job, T *p, u32 row, u32 label, T weight, u32 classes) {
    if (MOST > 1 && job.loss == SOFTMAX) {
        UNROLLED for (u32 c = 0; c < MOST; c++)
            if (c < classes) p[c] = weight * (c == label ? p[c] - T(1) : p[c]);
    } else if (job.loss == LOGISTIC) {
        T sign = label == 0 ? T(-1) : T(1);
        *p = sigmoid(sign * *p) * (sign * weight);
    } else {
        const T *target = job.targets + usize(row) * classes;
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
            T off = p[c] - target[c];
            if (job.loss == HUBER) off = off > job.delta ? job.delta : off < -job.delta ? -job.delta : off;
            p[c] = weight * off;
        }
    }
}
