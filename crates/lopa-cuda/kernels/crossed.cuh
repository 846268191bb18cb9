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

// s where x has an entry for each sample: one thread for each, zero where the minibatch has not drawn it. Minibatch `batch` has these
// picks and, of each, what it adds, `apart` from one to the next.
template <class T> __device__ void cleaned(const Job<T> &job, u32 batch, const T *adds, u32 apart) {
    usize entry = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry >= usize(job.m) * job.n) return;
    u32 i = entry / job.n, row = entry % job.n - job.offset, size = job.size[batch];
    const u32 *picks = job.picks + usize(i) * job.drawn + job.start[batch];
    adds += usize(i) * job.drawn * apart + job.start[batch] * apart;
    T sum = T(0);
    if (row >= job.own[0][i] && row < job.own[0][i + 1])
        for (u32 r = 0; r < size; r++)
            if (picks[r] == row) sum = sum + adds[r * apart];
    job.s[entry] = sum;
}
