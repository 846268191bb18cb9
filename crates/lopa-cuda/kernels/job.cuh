// What a run is on the card, and what all kernels share: functions, features, step sizes.

#pragma once

#include "common.cuh"

enum { XI1, XI2, XI3, SIGMA1, SIGMA2 };

enum { SIGMOID, TANH, RELU };             // `tanh` of Common: what hidden units compute
enum { SOFTMAX, LOGISTIC, SQUARED, HUBER }; // losses
enum { PER_ROW, PER_GROUP, PER_COLUMN, PER_SAMPLE }; // what x of a linear model has an entry for

// Everything that a kernel needs; src/job.rs has the same fields in the same order. Rows of the table are `stride` apart, a
// multiple of 4. Of several hidden layers, each has a job of its own: `features` are its inputs, `units` its outputs, and
// its weights start at `offset` in x.
template <class T> struct Job : Common<T> {
    const T *shift; // as long as a row
    T *hidden, *slopes, *errors;
    const T *A, *B, *c, *D, *e, *R, *q, *noise_a, *noise_b, *gamma, *phi, *chi;
    T *rest; // D theta - e
    const T *targets;          // of each row of the table: `classes` numbers
    const T *below;            // activations of the layer below
    T *pulled;                 // errors of the layer below
    u8 *heads;                 // see layers.cu: theta and v
    T *adds;                   // what a sample adds to its entry of s
    const struct Layer *layers;
    u32 *tops;                 // `many` words of each node
    const u32 *group, *groups; // the group of each row of theta; where each group starts
    T unit, ridge, delta;
    u32 loss, per, bias, offset, many, hidden_layers, pieces, head_row, head_behind; // offset: with PER_SAMPLE, the entry of x of the first sample
};

// Shared memory that a kernel was given when it was launched.
__device__ u32 shared_bytes() {
    u32 bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

__device__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

__device__ float power(int k) { return __int_as_float((k + 127) << 23); }

// A function of its own: inlined wherever it is called, it would make up most of the PTX.
__device__ __noinline__ float exponential(float x) {
    if (!(x > -87.0f)) return x != x ? x : 0.0f;
    if (x > 88.0f) return __int_as_float(0x7f800000);
    float k = rintf(x * 1.44269504f);
    float r = fused(-k, 0.693359375f, x);
    r = fused(-k, -2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fused(p, r, 1.3981999507e-3f);
    p = fused(p, r, 8.3334519073e-3f);
    p = fused(p, r, 4.1665795894e-2f);
    p = fused(p, r, 1.6666665459e-1f);
    p = fused(p, r, 5.0000001201e-1f);
    p = fused(p, r * r, r) + 1.0f;
    int half = (int)k / 2;
    return p * power(half) * power((int)k - half);
}

__device__ __noinline__ double exponential(double x) {
    if (!(x > -708.0)) return x != x ? x : 0.0;
    if (x > 709.0) return __longlong_as_double(0x7ff0000000000000ll);
    double k = rint(x * 1.4426950408889634);
    double r = fused(-k, 6.93147180369123816490e-01, x);
    r = fused(-k, 1.90821492927058770002e-10, r);
    double p = 1.0 / 6227020800.0;
    p = fused(p, r, 1.0 / 479001600.0);
    p = fused(p, r, 1.0 / 39916800.0);
    p = fused(p, r, 1.0 / 3628800.0);
    p = fused(p, r, 1.0 / 362880.0);
    p = fused(p, r, 1.0 / 40320.0);
    p = fused(p, r, 1.0 / 5040.0);
    p = fused(p, r, 1.0 / 720.0);
    p = fused(p, r, 1.0 / 120.0);
    p = fused(p, r, 1.0 / 24.0);
    p = fused(p, r, 1.0 / 6.0);
    p = fused(p, r, 0.5);
    p = fused(p, r, 1.0);
    p = fused(p, r, 1.0);
    int half = (int)k / 2;
    double first = __longlong_as_double((u64)(half + 1023) << 52);
    double second = __longlong_as_double((u64)((int)k - half + 1023) << 52);
    return p * first * second;
}

template <class T> __device__ T sigmoid(T z) { return T(1) / (T(1) + exponential(-z)); }

template <class T> __device__ T activation(T z, u32 kind) {
    if (kind == RELU) return z < T(0) ? T(0) : z;
    return kind == TANH ? T(1) - T(2) / (exponential(z + z) + T(1)) : sigmoid(z);
}

template <class T> __device__ T slope(T h, u32 kind) {
    if (kind == RELU) return h > T(0) ? T(1) : T(0);
    return kind == TANH ? T(1) - h * h : h * (T(1) - h);
}

// Some values, read at once.
template <class T, int COUNT> struct alignas(COUNT == 4 ? (sizeof(T) == 1 ? 4 : 16) : sizeof(T)) Some {
    T at[COUNT];
};

template <class T> using Four = Some<T, 4>;

template <class T> __device__ Four<T> four(const T *from) { return *(const Four<T> *)from; }

// Some features as the table has them: numbers or bytes, four of which are one word.
template <class S, int COUNT> struct Stored { Some<S, COUNT> some; };
template <> struct Stored<u8, 4> { u32 word; };

// COUNT features of a row from q on, without `shift` and `unit`.
template <int COUNT, class S, class T> __device__ Stored<S, COUNT> stored(const Job<T> &job, u32 row, u32 q) {
    usize first;
    // One instruction, where the compiler takes several.
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(first) : "r"(row), "r"(job.stride * u32(sizeof(S))));
    return *(const Stored<S, COUNT> *)((const u8 *)((const S *)job.table + q) + first);
}

// The same as numbers.
template <class T, class S, int COUNT> __device__ Some<T, COUNT> numbers(Stored<S, COUNT> stored) {
    Some<T, COUNT> values;
#pragma unroll
    for (int e = 0; e < COUNT; e++) values.at[e] = T(stored.some.at[e]);
    return values;
}

template <class T> __device__ Four<T> numbers(Stored<u8, 4> stored) {
    Four<T> values;
    // With the byte in its last place, 2^23 becomes 2^23 + byte: exact, and faster than a conversion.
#pragma unroll
    for (int e = 0; e < 4; e++)
        values.at[e] = T(__uint_as_float(__byte_perm(stored.word, 0x4b000000, 0x7440 + e)) - 8388608.0f);
    return values;
}

// Feature q of a row.
template <class T, class S> __device__ T feature(const Job<T> &job, u32 row, u32 q) {
    T value = numbers<T>(stored<1, S>(job, row, q)).at[0];
    return sizeof(S) == 1 ? (job.shift ? value - job.shift[q] : value) * job.unit : value;
}

// alpha, beta, lambda, gamma and tau of the iteration.
template <class T> __device__ const T *steps(const Job<T> &job, u32 at) {
    return job.steps + usize(job.clock[1] + at / 2) * 5;
}
