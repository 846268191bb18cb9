// The oracle of `quadratic`.

#pragma once

#include "job.cuh"

// sum of a[j] b[j]
template <class T> __device__ T dot(const T *a, const T *b, u32 length) {
    T sum = T(0);
    for (u32 j = 0; j < length; j++) sum = fused(a[j], b[j], sum);
    return sum;
}

// D theta - e, one thread an entry.
template <class T> __device__ void residual(const Job<T> &job) {
    usize at = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= usize(job.m) * job.outputs) return;
    u32 i = at / job.outputs;
    job.rest[at] = dot(job.D + at * job.p, job.theta + usize(i) * job.p, job.p) - job.e[at];
}

// One thread an entry of d, h or s.
template <class T> __device__ void quadratic(const Job<T> &job, u32 now) {
    u32 each = 2 * job.p + job.n, n = job.n, p = job.p;
    usize at = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= usize(job.m) * each) return;
    u32 i = at / each, j = at % each;
    if (asleep(job, i)) return;
    const T *theta = job.theta + usize(i) * p, *v = job.v + usize(i) * p;
    const T *x = job.x[now] + usize(i) * n;
    const u32 *picks = job.picks + usize(i) * job.drawn;
    // The mean over a minibatch of entry `entry` of vectors of some length.
    auto mean = [&](u32 batch, const T *vectors, u32 length, u32 entry) {
        T sum = T(0);
        for (u32 r = 0; r < job.size[batch]; r++) {
            usize sample = usize(i) * job.samples + picks[job.start[batch] + r];
            sum = sum + vectors[sample * length + entry];
        }
        return sum / T(job.size[batch]);
    };
    if (j < p) {
        usize row = usize(i) * p + j;
        T a = T(1) + mean(XI1, job.noise_a, 1, 0), b = T(1) + mean(XI1, job.noise_b, 1, 0);
        T sum = a * dot(job.A + row * p, theta, p) - b * dot(job.B + row * n, x, n);
        job.d[row] = sum - job.c[row] - mean(XI1, job.gamma, p, j);
    } else if (j < 2 * p) {
        j -= p;
        usize row = usize(i) * p + j;
        T back = T(0);
        for (u32 k = 0; k < job.outputs; k++) {
            usize of = usize(i) * job.outputs + k;
            back = fused(job.D[of * p + j], job.rest[of], back);
        }
        T a = T(1) + mean(XI2, job.noise_a, 1, 0);
        T along = a * dot(job.A + row * p, v, p);
        if (job.hess) job.hess[row] = along;
        // Without samples of f, the product alone.
        job.h[row] = job.size[SIGMA1] ? along - (back + mean(SIGMA1, job.phi, p, j)) : along;
    } else {
        j -= 2 * p;
        usize row = usize(i) * n + j;
        T back = T(0);
        for (u32 k = 0; k < p; k++) back = fused(job.B[(usize(i) * p + k) * n + j], v[k], back);
        T b = T(1) + mean(XI3, job.noise_b, 1, 0);
        T sum = dot(job.R + row * n, x, n) - job.q[row] + mean(SIGMA2, job.chi, n, j);
        job.s[row] = sum + b * back;
    }
}
