// What comes before the oracle: minibatches, theta and v, and x, y, z from all neighbours.

#pragma once

#include "job.cuh"

// own + sum of w_ij (message_j - own), in the order of the row
template <class T, class M>
__device__ T mixed(const Job<T> &job, u32 i, T own, M message) {
    T sum = own;
    for (u32 at = job.links[i]; at < job.links[i + 1]; at++)
        sum = sum + job.w[at] * (message(job.linked[at]) - own);
    return sum;
}

// Entry j of x, y and z of node i.
template <class T> __device__ void mix(const Job<T> &job, u32 now, const T *steps, u32 i, u32 j) {
    T alpha = *steps_of(job, i, steps), gamma = steps[3], tau = steps[4];
    const T *x = job.x[now], *y = job.y[now];
    usize n = job.n, at = i * n + j;
    T own = x[at], own_y = y[at], s = job.s[at];
    if (job.scheme == SOBA) {
        job.x[1 - now][at] = mixed(job, i, own - alpha * own_y, [&](u32 k) {
            return x[k * n + j] - (job.found ? *steps_of(job, k, steps) : alpha) * y[k * n + j];
        });
        job.y[1 - now][at] = (T(1) - gamma) * own_y + gamma * s;
        return;
    }
    T z = job.z[at], average = s + (T(1) - gamma) * (z - s);
    T wx = own, wy = own_y;
    if (job.scheme == TRACKING) {
        u32 last = __ldg(job.links + i + 1);
        // Both at once and four neighbours at a time: fewer waits.
        for (u32 link = __ldg(job.links + i); link < last; link += 4) {
            T w[4], their[4], their_y[4];
#pragma unroll
            for (u32 e = 0; e < 4; e++) if (link + e < last) {
                usize there = __ldg(job.linked + link + e) * n + j;
                w[e] = __ldg(job.w + link + e), their[e] = x[there], their_y[e] = y[there];
            }
#pragma unroll
            for (u32 e = 0; e < 4; e++) if (link + e < last) {
                wx = wx + w[e] * (their[e] - own);
                wy = wy + w[e] * (their_y[e] - own_y);
            }
        }
    } else if (job.scheme == LOCAL) {
        wx = mixed(job, i, own, [&](u32 k) { return x[k * n + j]; });
    }
    job.x[1 - now][at] = job.scheme == ALONE ? own - tau * alpha * own_y
                                             : (T(1) - tau) * own + tau * (wx - alpha * own_y);
    job.y[1 - now][at] = job.scheme == TRACKING ? wy + average - z : average;
    job.z[at] = average;
}

__device__ u32 turned(u32 a, int bits) { return a << bits | a >> (32 - bits); }

__device__ void quarter(u32 *a, int i, int j, int k, int l) {
    a[i] += a[j]; a[l] = turned(a[l] ^ a[i], 16);
    a[k] += a[l]; a[j] = turned(a[j] ^ a[k], 12);
    a[i] += a[j]; a[l] = turned(a[l] ^ a[i], 8);
    a[k] += a[l]; a[j] = turned(a[j] ^ a[k], 7);
}

// Sixteen words of ChaCha8, at the address that crates/lopa-base/src/math/random.rs defines.
__device__ void words(const u32 *seed, u32 node, u32 address, u32 word, u32 *out) {
    const u32 from[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, seed[0], seed[1], 1, 0,
                          0, 0, 0, 0, word, address, node, 0};
    for (int t = 0; t < 16; t++) out[t] = from[t];
    for (int round = 0; round < 4; round++) {
        quarter(out, 0, 4, 8, 12); quarter(out, 1, 5, 9, 13);
        quarter(out, 2, 6, 10, 14); quarter(out, 3, 7, 11, 15);
        quarter(out, 0, 5, 10, 15); quarter(out, 1, 6, 11, 12);
        quarter(out, 2, 7, 8, 13); quarter(out, 3, 4, 9, 14);
    }
    for (int t = 0; t < 16; t++) out[t] += from[t];
}

// An entry of theta and one of v.
template <class T> struct Both { T theta, v; };

// Entry `at` after the step.
template <class T> __device__ Both<T> turn(const Job<T> &job, const T *steps, usize at) {
    if (job.found) steps = steps_of(job, at / job.p, steps);
    return {job.theta[at] - steps[1] * job.d[at], job.v[at] - steps[2] * job.h[at]};
}

template <class T> __device__ void keep(const Job<T> &job, usize at, Both<T> both) {
    job.theta[at] = both.theta, job.v[at] = both.v;
}

// Sixteen samples of the minibatches of node i, whose rows go to `picks`.
template <class T> __device__ void draw(const Job<T> &job, u32 k, u32 i, u32 b, u32 *picks) {
    u32 batch = 0;
    while (batch < 4 && b >= job.block[batch + 1]) batch++;
    b -= job.block[batch];
    u32 side = batch >= SIGMA1, first = job.own[side][i], count = job.own[side][i + 1] - first;
    u32 word[16];
    words(job.seed, job.first + i, k + 1, (job.slot[batch] << 20) + b, word);
    u32 most = job.size[batch] - b * 16;
    // All loads before the first store: one wait instead of sixteen.
#pragma unroll
    for (u32 t = 0; t < 16; t++) {
        u32 index = job.full[batch] ? min(b * 16 + t, count - 1) : u32(u64(word[t]) * count >> 32);
        word[t] = job.owned[side] ? __ldg(job.owned[side] + first + index) : index;
    }
#pragma unroll
    for (u32 t = 0; t < 16; t++)
        if (t < most) picks[job.start[batch] + b * 16 + t] = word[t];
}

// Blocks that draw, one thread for sixteen samples.
template <class T> __device__ usize drawers(const Job<T> &job) { return (usize(job.m) * job.blocks + blockDim.x - 1) / blockDim.x; }

template <class T> __device__ void draw(const Job<T> &job, u32 at) {
    usize entry = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry < usize(job.m) * job.blocks && !asleep(job, entry / job.blocks))
        draw(job, job.clock[0] + at / 2, entry / job.blocks, entry % job.blocks, job.picks + entry / job.blocks * job.drawn);
}

// The first blocks draw, which takes longest, others move theta and v, and the rest x.
template <class T> __device__ void move(const Job<T> &job, u32 at) {
    u32 width = blockDim.x, block = blockIdx.x;
    if (block < drawers(job)) return draw(job, at);
    block -= drawers(job);
    usize inner = usize(job.m) * job.p, turners = (inner + width - 1) / width;
    if (block < turners) {
        usize entry = usize(block) * width + threadIdx.x;
        if (entry < inner) keep(job, entry, turn(job, steps(job, at), entry));
        return;
    }
    block -= turners;
    u32 chunks = (job.n + width - 1) / width, j = block % chunks * width + threadIdx.x;
    if (j < job.n) mix(job, at % 2, steps(job, at), block / chunks, j);
}
