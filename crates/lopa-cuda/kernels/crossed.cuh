// s of a linear model.

#pragma once

#include "job.cuh"

__device__ double passed(double a, int lane) { return __shfl_xor_sync(~0u, a, lane); }
__device__ float passed(float a, int lane) { return __shfl_xor_sync(~0u, a, lane); }

// The sum over lanes, in pairs that are `lane` apart, then half as far, and so on.
template <class T> __device__ T in_pairs(T a, int lane) {
#pragma unroll
    for (; lane > 0; lane /= 2) a = a + passed(a, lane);
    return a;
}

// The sum of a row over the lanes of a warp, for one, two or four rows. Of several, as many lanes each end with one: lanes keep half
// of the rows and send the other half to their partners, so that a sum has the same pairs either way.
template <class T> __device__ T row_sum(const T (&rows)[1]) { return in_pairs(rows[0], 16); }

template <class T> __device__ T row_sum(const T (&rows)[2]) {
    bool upper = threadIdx.x & 16;
    return in_pairs((upper ? rows[1] : rows[0]) + passed(upper ? rows[0] : rows[1], 16), 8);
}

template <class T> __device__ T row_sum(const T (&rows)[4]) {
    bool upper = threadIdx.x & 16, last = threadIdx.x & 8;
    T first = (upper ? rows[2] : rows[0]) + passed(upper ? rows[0] : rows[2], 16);
    T second = (upper ? rows[3] : rows[1]) + passed(upper ? rows[1] : rows[3], 16);
    return in_pairs((last ? second : first) + passed(last ? first : second, 8), 4);
}

// s where x has an entry for each group of features or each column: a warp for each.
template <class T> __device__ void crossed(const Job<T> &job, u32 now) {
    usize entry = (usize(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (entry >= usize(job.m) * job.n) return;
    u32 i = entry / job.n, k = entry % job.n, first = k, count = job.features, step = job.classes;
    if (job.per == PER_GROUP)
        first = job.groups[k] * job.classes, count = job.groups[k + 1] * job.classes - first, step = 1;
    const T *theta = job.theta + usize(i) * job.p + first, *v = job.v + usize(i) * job.p + first;
    T sum = T(0);
    for (u32 e = threadIdx.x % 32; e < count; e += 32) sum = fused(theta[e * step], v[e * step], sum);
    sum = in_pairs(sum, 16);
    T half = exponential(job.x[now][entry]);
    if (threadIdx.x % 32 == 0) job.s[entry] = -(half + half) * sum;
}

// How many entries of x a thread of `cleaned` computes.
enum { CLEANS = 4 };

// s where x has an entry for each sample: zero where the minibatch has not drawn it. Minibatch `batch` has these picks and, of each,
// what it adds, `apart` from one to the next.
template <class T> __device__ void cleaned(const Job<T> &job, u32 batch, const T *adds, u32 apart) {
    const u32 each = blockDim.x * CLEANS, pieces = (job.n + each - 1) / each, i = blockIdx.x / pieces;
    const u32 size = job.size[batch], begin = job.own[0][i], end = job.own[0][i + 1];
    const u32 *picks = job.picks + usize(i) * job.drawn + job.start[batch];
    adds += usize(i) * job.drawn * apart + job.start[batch] * apart;
    T *const s = job.s + usize(i) * job.n;
#pragma unroll
    for (int e = 0; e < CLEANS; e++) {
        const u32 entry = blockIdx.x % pieces * each + e * blockDim.x + threadIdx.x, row = entry - job.offset;
        if (entry >= job.n) break;
        T sum = T(0);
        if (row >= begin && row < end)
            for (u32 r = 0; r < size; r++)
                if (picks[r] == row) sum = sum + adds[r * apart];
        s[entry] = sum;
    }
}
