// What comes before the oracle: minibatches, theta and v, and x, y, z from all neighbours.

#pragma once

#include "job.cuh"

// How many entries a thread of `move` mixes at once: it waits less often, and reads the number and weight of a neighbour once.
enum { SOME = 4 };
// The nodes of a block of `move`, a warp each: neighbours find each other's entries in the cache of the multiprocessor.
enum { TEAM = 4 };

// own + sum of w_ij (message_j - own), in the order of the row, for some entries.
template <int TOGETHER, class T, class M>
__device__ void mixed(const Job<T> &job, u32 i, const T (&own)[TOGETHER], T (&sum)[TOGETHER], M message) {
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) sum[e] = own[e];
    for (u32 at = __ldg(job.links + i); at < __ldg(job.links + i + 1); at++) {
        const u32 j = __ldg(job.linked + at);
        const T w = __ldg(job.w + at);
        T their[TOGETHER];
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) their[e] = message(j, e);
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) sum[e] = sum[e] + w * (their[e] - own[e]);
    }
}

// Some entries of x, y and z of node i: j, and those after it that are `apart`. `moved` receives the new entries of x.
template <int TOGETHER, class T, class F>
__device__ void mix(const Job<T> &job, u32 now, const T *steps, u32 i, u32 j, u32 apart, F moved) {
    constexpr u32 LINKS = TOGETHER == 1 ? 4 : 2; // neighbours at a time
    const T alpha = *steps_of(job, i, steps), gamma = steps[3], tau = steps[4];
    const T *x = job.x[now], *y = job.y[now];
    const usize n = job.n;
    u32 place[TOGETHER];
    bool there[TOGETHER];
    T own[TOGETHER], own_y[TOGETHER], s[TOGETHER], z[TOGETHER], wx[TOGETHER], wy[TOGETHER];
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) {
        there[e] = j + e * apart < job.n;
        place[e] = there[e] ? j + e * apart : j;
        const usize at = i * n + place[e];
        own[e] = x[at], own_y[e] = y[at], s[e] = job.s[at];
        z[e] = job.scheme == SOBA ? T(0) : job.z[at];
    }
    if (job.scheme == SOBA) {
        T sent[TOGETHER];
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) sent[e] = own[e] - alpha * own_y[e];
        mixed(job, i, sent, wx, [&](u32 k, int e) {
            return x[k * n + place[e]] - (job.found ? *steps_of(job, k, steps) : alpha) * y[k * n + place[e]];
        });
    } else if (job.scheme == TRACKING) {
        // Both at once: fewer waits.
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) wx[e] = own[e], wy[e] = own_y[e];
        const u32 last = __ldg(job.links + i + 1);
        for (u32 link = __ldg(job.links + i); link < last; link += LINKS) {
            T w[LINKS], their[LINKS][TOGETHER], their_y[LINKS][TOGETHER];
#pragma unroll
            for (u32 l = 0; l < LINKS; l++) if (link + l < last) {
                const usize first = __ldg(job.linked + link + l) * n;
                w[l] = __ldg(job.w + link + l);
#pragma unroll
                for (int e = 0; e < TOGETHER; e++) their[l][e] = x[first + place[e]], their_y[l][e] = y[first + place[e]];
            }
#pragma unroll
            for (u32 l = 0; l < LINKS; l++) if (link + l < last)
#pragma unroll
                for (int e = 0; e < TOGETHER; e++) {
                    wx[e] = wx[e] + w[l] * (their[l][e] - own[e]);
                    wy[e] = wy[e] + w[l] * (their_y[l][e] - own_y[e]);
                }
        }
    } else if (job.scheme == LOCAL) {
        mixed(job, i, own, wx, [&](u32 k, int e) { return x[k * n + place[e]]; });
    }
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) {
        if (!there[e]) continue;
        const usize at = i * n + place[e];
        if (job.scheme == SOBA) {
            job.x[1 - now][at] = wx[e];
            moved(e, wx[e]);
            job.y[1 - now][at] = (T(1) - gamma) * own_y[e] + gamma * s[e];
            continue;
        }
        const T average = s[e] + (T(1) - gamma) * (z[e] - s[e]);
        const T x = job.scheme == ALONE ? own[e] - tau * alpha * own_y[e]
                                        : (T(1) - tau) * own[e] + tau * (wx[e] - alpha * own_y[e]);
        job.x[1 - now][at] = x;
        moved(e, x);
        job.y[1 - now][at] = job.scheme == TRACKING ? wy[e] + average - z[e] : average;
        job.z[at] = average;
    }
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

// Entry `at` after the step of its node.
template <class T> __device__ Both<T> turn(const Job<T> &job, const T *steps, usize at) {
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
    u32 side = job.side[batch], first = job.own[side][i], count = job.own[side][i + 1] - first;
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

// How `move` treats theta and v, and new entries of x: as numbers alone. Kernels on tensor cores have ways of their own (layers.cu).
struct Numbers {
    template <class T> static __device__ void clear(const Job<T> &, u32, u32) {}
    static __device__ u32 each() { return blockDim.x * SOME; }
    template <class T> static __device__ u32 pieces(const Job<T> &job) { return (job.p + each() - 1) / each(); }
    // Some entries of theta and v of node i; `turned` receives their new values.
    template <class T, class F> static __device__ void turn(const Job<T> &job, u32 at, u32 i, u32 piece, F turned) {
        const u32 width = blockDim.x, first = piece * each() + threadIdx.x;
        const T *own = steps_of(job, i, steps(job, at));
        Both<T> both[SOME];
#pragma unroll
        for (int e = 0; e < SOME; e++)
            if (first + e * width < job.p) both[e] = ::turn(job, own, usize(i) * job.p + first + e * width);
#pragma unroll
        for (int e = 0; e < SOME; e++)
            if (first + e * width < job.p) keep(job, usize(i) * job.p + first + e * width, both[e]), turned(both[e]);
    }
    template <class T> static __device__ void turn(const Job<T> &job, u32 at, u32 i, u32 piece) { turn(job, at, i, piece, [](Both<T>) {}); }
    // A warp's new entries of x: of each lane those from j on, 32 apart.
    template <class T> static __device__ void weights(const Job<T> &, u32, u32, u32, const T (&)[SOME]) {}
};

// How many blocks draw, with one thread for sixteen samples.
template <class T> __device__ usize drawers(const Job<T> &job) { return (usize(job.m) * job.blocks + blockDim.x - 1) / blockDim.x; }

template <class Way, class T> __device__ void draw(const Job<T> &job, u32 at) {
    usize entry = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    const u32 i = entry / job.blocks, block = entry % job.blocks;
    if (entry >= usize(job.m) * job.blocks || asleep(job, i)) return;
    if (block == 0) Way::clear(job, i, at);
    draw(job, job.clock[0] + at / 2, i, block, job.picks + usize(i) * job.drawn);
}

// The first blocks draw, which takes longest, others move theta and v, and the rest x.
template <class Way, class T> __device__ void move(const Job<T> &job, u32 at) {
    u32 block = blockIdx.x;
    if (block < drawers(job)) return draw<Way>(job, at);
    block -= drawers(job);
    const u32 pieces = Way::pieces(job), turners = job.m * pieces;
    if (block < turners) return Way::turn(job, at, block / pieces, block % pieces);
    block -= turners;
    const u32 lanes = 32 * SOME, chunks = (job.n + lanes - 1) / lanes;
    const u32 i = block / chunks * TEAM + threadIdx.x / 32, j = block % chunks * lanes + threadIdx.x % 32;
    if (i >= job.m) return;
    T x[SOME] = {};
    if (j < job.n) mix<SOME>(job, at % 2, steps(job, at), i, j, 32, [&](int e, T value) { x[e] = value; });
    Way::weights(job, i, j, at, x);
}
