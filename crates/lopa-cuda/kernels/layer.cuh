// The oracle of `representation`: hidden layers and a head.

#pragma once

#include "losses.cuh"

// In place of a type of features: those of a layer are the activations of the layer below.
struct Below;
template <class S> struct Source { static constexpr bool BELOW = false, BYTES = sizeof(S) == 1; };
template <> struct Source<Below> { static constexpr bool BELOW = true, BYTES = false; };

// The features of `row` from `q0` on, 16 bytes at once; zeros where there are none.
template <class T> __device__ uint4 sixteen(const Job<T> &job, bool there, u32 row, u32 q0) {
    if (!there || q0 >= job.features) return make_uint4(0, 0, 0, 0);
    return *(const uint4 *)((const u8 *)job.table + usize(row) * job.stride + q0);
}

// Byte `e` of them as a feature; that after the last one is 1, for the bias.
template <class T> __device__ T feature_of(const Job<T> &job, const uint4 &bytes, u32 q0, int e) {
    u32 word = e < 4 ? bytes.x : e < 8 ? bytes.y : e < 12 ? bytes.z : bytes.w;
    u32 q = q0 + e;
    if (q >= job.features) return q == job.features ? T(1) : T(0);
    T value = T(word >> (e % 4 * 8) & 255);
    return (job.shift ? value - job.shift[q] : value) * job.unit;
}

// sum += a b^T
template <class T> __device__ void add_product(Four<T> a, Four<T> b, T (&sum)[4][4]) {
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = fused(a.at[i], b.at[j], sum[i][j]);
}

// Activations, unit by unit: 64 rows by 32 units in a block.
template <class T, class S> __device__ void forward(const Job<T> &job, u32 now) {
    __shared__ __align__(16) T rows[32][68], weights[32][32];
    u32 down = (job.drawn + 63) / 64, across = (job.units + 31) / 32;
    u32 i = blockIdx.x / (down * across), rest = blockIdx.x % (down * across);
    u32 row0 = rest % down * 64, unit0 = rest / down * 32, t = threadIdx.x;
    if (asleep(job, i)) return;
    u32 ty = t / 8 * 4, tx = t % 8 * 4;
    u32 inputs = job.features + job.bias;
    const T *x = job.x[now] + usize(i) * job.n + job.offset, *below = job.below + usize(i) * job.features * job.drawn;
    const u32 *picks = job.picks + usize(i) * job.drawn;
    bool wide = Source<S>::BYTES && job.features % 16 == 0;
    bool there = row0 + t / 2 < job.drawn;
    u32 half = t % 2 * 16, own = there ? picks[row0 + t / 2] : 0, unit = unit0 + t % 32;
    T sum[4][4] = {}, ahead[8];
    uint4 bytes = {};
    // Loaded one tile ahead.
    auto load = [&](u32 q0) {
        if (wide) bytes = sixteen(job, there, own, q0 + half);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            u32 q = q0 + t / 32 + 4 * e;
            ahead[e] = q < inputs && unit < job.units ? x[usize(q) * job.units + unit] : T(0);
        }
    };
    load(0);
    for (u32 q0 = 0; q0 < inputs; q0 += 32) {
        if (wide) {
#pragma unroll
            for (int e = 0; e < 16; e++)
                rows[half + e][t / 2] = feature_of(job, bytes, q0 + half, e);
        } else if constexpr (Source<S>::BELOW) {
            // Neighbours in memory are rows.
            u32 row = row0 + t % 64;
            for (u32 j = t / 64; j < 32; j += 2) {
                T value = T(0);
                if (row < job.drawn && q0 + j < job.features) value = below[usize(q0 + j) * job.drawn + row];
                if (q0 + j == job.features) value = T(1);
                rows[j][t % 64] = value;
            }
        } else {
            u32 q = q0 + t % 32;
            for (u32 j = t / 32; j < 64; j += 4) {
                T value = T(0);
                if (row0 + j < job.drawn && q < job.features)
                    value = feature<T, S>(job, picks[row0 + j], q);
                if (q == job.features) value = T(1);
                rows[t % 32][j] = value;
            }
        }
#pragma unroll
        for (int e = 0; e < 8; e++) weights[t / 32 + 4 * e][t % 32] = ahead[e];
        __syncthreads();
        load(q0 + 32);
        u32 most = min(32u, inputs - q0);
#pragma unroll 8
        for (u32 k = 0; k < most; k++) add_product(four(&rows[k][ty]), four(&weights[k][tx]), sum);
        __syncthreads();
    }
#pragma unroll
    for (int b = 0; b < 4; b++)
#pragma unroll
        for (int a = 0; a < 4; a++)
            if (row0 + ty + a < job.drawn && unit0 + tx + b < job.units)
                job.hidden[(usize(i) * job.units + unit0 + tx + b) * job.drawn + row0 + ty + a] =
                    activation(sum[a][b], job.tanh);
}

// One thread a row, blocks of one node; UNITS is the most units, whose weights are kept at hand.
template <int MOST, int UNITS, class T> __device__ void heads(const Job<T> &job) {
    __shared__ __align__(16) T near_theta[(UNITS + 1) * MOST], near_v[(UNITS + 1) * MOST];
    u32 down = (job.drawn + blockDim.x - 1) / blockDim.x, i = blockIdx.x / down;
    u32 r = blockIdx.x % down * blockDim.x + threadIdx.x, batch = 0;
    if (asleep(job, i)) return;
    u32 classes = job.classes, drawn = job.drawn;
    const T *theta = job.theta + usize(i) * job.p, *v = job.v + usize(i) * job.p;
    // Rows of MOST weights, so that loops over classes need not ask whether there are as many.
    u32 wide = UNITS > 0 ? MOST : classes;
    if (UNITS > 0) {
        for (u32 at = threadIdx.x; at < (job.units + 1) * MOST; at += blockDim.x) {
            u32 from = at / MOST * classes + at % MOST;
            near_theta[at] = at % MOST < classes ? theta[from] : T(0);
            near_v[at] = at % MOST < classes ? v[from] : T(0);
        }
        __syncthreads();
        theta = near_theta;
        v = near_v;
    }
    if (r >= drawn) return;
    while (batch < 4 && r >= job.start[batch + 1]) batch++;
    usize at = usize(i) * drawn + r;
    T weight = job.weights[usize(i) * 5 + batch];
    u32 row = job.picks[at], label = label_of(job, row);
    const T *h = job.hidden + usize(i) * job.units * drawn + r;
    T p[MOST], a[MOST];
    bool curved = batch == XI2 || batch == XI3;
    UNROLLED for (u32 c = 0; c < MOST; c++) p[c] = a[c] = T(0);
#pragma unroll 4
    for (u32 u = 0; u < job.units; u++) {
        T value = h[usize(u) * drawn];
        UNROLLED for (u32 c = 0; c < MOST; c++)
            if (c < wide) p[c] = fused(value, theta[u * wide + c], p[c]);
    }
    if (curved)
#pragma unroll 4
        for (u32 u = 0; u < job.units; u++) {
            T value = h[usize(u) * drawn];
            UNROLLED for (u32 c = 0; c < MOST; c++)
                if (c < wide) a[c] = fused(value, v[u * wide + c], a[c]);
        }
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < wide) {
        p[c] = p[c] + theta[job.units * wide + c];
        a[c] = a[c] + v[job.units * wide + c];
    }
    softmax<MOST>(job, p, classes);
    if (batch == XI3 || batch == SIGMA1) weight = -weight;
    if (curved) curve<MOST>(job, p, a, row, weight, classes);
    slopes<MOST>(job, p, row, label, weight, classes);
    if (batch == XI3 || batch == SIGMA2) {
        // The rows of sigma2 come first.
        u32 place = batch == SIGMA2 ? r - job.start[SIGMA2] : job.size[SIGMA2] + r - job.start[XI3];
        T *error = job.errors + (usize(i) * (job.size[SIGMA2] + job.size[XI3]) + place) * job.units;
#pragma unroll 2
        for (u32 u = 0; u < job.units; u++) {
            T back = T(0);
            // Those of classes that there are not are zeros.
            UNROLLED for (u32 c = 0; c < MOST; c++)
                if (c < wide) back = fused(batch == XI3 ? a[c] : p[c], theta[u * wide + c], back);
            if (batch == XI3)
                UNROLLED for (u32 c = 0; c < MOST; c++)
                    if (c < wide) back = fused(p[c], v[u * wide + c], back);
            error[u] = back * slope(h[usize(u) * drawn], job.tanh);
        }
    } else {
        UNROLLED for (u32 c = 0; c < MOST; c++)
            if (c < classes) job.slopes[at * classes + c] = batch == XI2 ? a[c] : p[c];
    }
}

// One thread an entry of theta: d and h.
template <class T> __device__ void rows(const Job<T> &job) {
    usize at = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= usize(job.m) * job.p) return;
    u32 i = at / job.p, j = at % job.p, u = j / job.classes, c = j % job.classes;
    if (asleep(job, i)) return;
    const T *h = job.hidden + (usize(i) * job.units + u) * job.drawn;
    const T *by = job.slopes + usize(i) * job.drawn * job.classes + c;
    auto add = [&](u32 batch, T sum) {
#pragma unroll 8
        for (u32 r = job.start[batch]; r < job.start[batch] + job.size[batch]; r++)
            sum = fused(u < job.units ? h[r] : T(1), by[usize(r) * job.classes], sum);
        return sum;
    };
    job.d[at] = add(XI1, T(0)) + job.ridge * job.theta[at];
    T along = add(XI2, T(0)), ridge = job.ridge * job.v[at];
    if (job.hess) job.hess[at] = along + ridge;
    job.h[at] = add(SIGMA1, along) + ridge;
}

// Errors of the layer below, from those of this one: 32 rows by 32 of its units in a block.
template <class T> __device__ void pull(const Job<T> &job, u32 now) {
    __shared__ T errors[32][33], weights[32][33];
    u32 count = job.size[SIGMA2] + job.size[XI3], down = (count + 31) / 32, across = (job.features + 31) / 32;
    u32 i = blockIdx.x / (down * across), rest = blockIdx.x % (down * across);
    u32 row0 = rest % down * 32, q0 = rest / down * 32, t = threadIdx.x, q = q0 + t % 32;
    const T *x = job.x[now] + usize(i) * job.n + job.offset, *from = job.errors + usize(i) * count * job.units;
    T sum[8] = {};
    for (u32 u0 = 0; u0 < job.units; u0 += 32) {
        u32 u = u0 + t % 32;
        for (u32 j = t / 32; j < 32; j += 4) {
            errors[j][t % 32] = row0 + j < count && u < job.units ? from[usize(row0 + j) * job.units + u] : T(0);
            weights[j][t % 32] = q0 + j < job.features && u < job.units ? x[usize(q0 + j) * job.units + u] : T(0);
        }
        __syncthreads();
        u32 most = min(32u, job.units - u0);
        for (u32 k = 0; k < most; k++)
#pragma unroll
            for (int e = 0; e < 8; e++) sum[e] = fused(errors[t / 32 * 8 + e][k], weights[t % 32][k], sum[e]);
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
        u32 place = row0 + t / 32 * 8 + e;
        if (place >= count || q >= job.features) continue;
        u32 r = place < job.size[SIGMA2] ? job.start[SIGMA2] + place : job.start[XI3] + place - job.size[SIGMA2];
        T h = job.below[(usize(i) * job.features + q) * job.drawn + r];
        job.pulled[(usize(i) * count + place) * job.features + q] = sum[e] * slope(h, job.tanh);
    }
}

// s: 64 features by 32 units in a block; the last feature is 1, for the bias.
template <class T, class S> __device__ void backward(const Job<T> &job) {
    __shared__ __align__(16) T rows[32][68], errors[32][32];
    u32 inputs = job.features + job.bias, down = (inputs + 63) / 64, across = (job.units + 31) / 32;
    u32 i = blockIdx.x / (down * across), rest = blockIdx.x % (down * across);
    u32 q0 = rest % down * 64, unit0 = rest / down * 32, t = threadIdx.x;
    u32 ty = t / 8 * 4, tx = t % 8 * 4, count = job.size[SIGMA2] + job.size[XI3];
    const u32 *picks = job.picks + usize(i) * job.drawn;
    const T *from = job.errors + usize(i) * count * job.units, *below = job.below + usize(i) * job.features * job.drawn;
    bool wide = Source<S>::BYTES && job.features % 16 == 0;
    auto place = [&](u32 r) {
        return r < job.size[SIGMA2] ? job.start[SIGMA2] + r : job.start[XI3] + r - job.size[SIGMA2];
    };
    auto pick = [&](u32 r) { return picks[place(r)]; };
    T sum[4][4] = {};
    for (u32 r0 = 0; r0 < count; r0 += 32) {
        if (wide) {
            u32 r = r0 + t / 4, q = q0 + t % 4 * 16;
            uint4 bytes = sixteen(job, r < count, r < count ? pick(r) : 0, q);
#pragma unroll
            for (int e = 0; e < 16; e++) rows[t / 4][t % 4 * 16 + e] = feature_of(job, bytes, q, e);
        } else if constexpr (Source<S>::BELOW) {
            u32 r = r0 + t % 32;
            for (u32 j = t / 32; j < 64; j += 4) {
                u32 q = q0 + j;
                T value = T(0);
                if (r < count && q < job.features) value = below[usize(q) * job.drawn + place(r)];
                if (q == job.features) value = T(1);
                rows[t % 32][j] = value;
            }
        } else {
            u32 q = q0 + t % 64;
            for (u32 j = t / 64; j < 32; j += 2) {
                u32 r = r0 + j;
                T value = T(0);
                if (r < count && q < job.features)
                    value = feature<T, S>(job, pick(r), q);
                if (q == job.features) value = T(1);
                rows[j][t % 64] = value;
            }
        }
        for (u32 j = t / 32; j < 32; j += 4) {
            bool there = r0 + j < count && unit0 + t % 32 < job.units;
            errors[j][t % 32] = there ? from[usize(r0 + j) * job.units + unit0 + t % 32] : T(0);
        }
        __syncthreads();
        u32 most = min(32u, count - r0);
#pragma unroll 8
        for (u32 k = 0; k < most; k++) add_product(four(&rows[k][ty]), four(&errors[k][tx]), sum);
        __syncthreads();
    }
#pragma unroll
    for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++)
            if (q0 + ty + a < inputs && unit0 + tx + b < job.units)
                job.s[usize(i) * job.n + job.offset + usize(q0 + ty + a) * job.units + unit0 + tx + b] = sum[a][b];
}
