// The oracle of `hyperparameter`: a linear classifier.

#pragma once

#include "losses.cuh"
#include "move.cuh"

__device__ double passed(double a, int lane) { return __shfl_xor_sync(~0u, a, lane); }
__device__ float passed(float a, int lane) { return __shfl_xor_sync(~0u, a, lane); }

// The sum over lanes, in pairs that are `lane` apart, then half as far, and so on.
template <class T> __device__ T in_pairs(T a, int lane) {
#pragma unroll
    for (; lane > 0; lane /= 2) a = a + passed(a, lane);
    return a;
}

// The sum of a row over the lanes of a warp, for one row or four. Of four, eight lanes each end with one: lanes keep half
// of the rows and send the other half to their partners, so that a sum has the same pairs either way.
template <class T> __device__ T row_sum(const T (&rows)[1]) { return in_pairs(rows[0], 16); }

template <class T> __device__ T row_sum(const T (&rows)[4]) {
    bool upper = threadIdx.x & 16, last = threadIdx.x & 8;
    T first = (upper ? rows[2] : rows[0]) + passed(upper ? rows[0] : rows[2], 16);
    T second = (upper ? rows[3] : rows[1]) + passed(upper ? rows[1] : rows[3], 16);
    return in_pairs((last ? second : first) + passed(last ? first : second, 8), 4);
}

// The number of classes: kernels are made for one, for ten, and for up to 16 and 64.
#define CLASSES(most) (most == 1 || most == 10 ? most : job.classes)

// Rows that a warp takes at once, where a node has many blocks.
#define TOGETHER(most) (most <= 16 && most > 1 ? 4 : 1)

// What a linear classifier of one node works on: in global memory, feature after feature, or near, class after class,
// where zeros come after the last weight of a class.
template <class T, bool NEAR> struct Linear {
    T *theta, *v, *slopes; // slopes of the losses of each row, times `unit`
    u32 *picks;
};

// The distance between the slopes of one row and the next.
template <int MOST, bool NEAR> __device__ u32 across(u32 classes) {
    return NEAR && MOST > 1 ? (classes + 3) / 4 * 4 : classes;
}

template <class T> __device__ Linear<T, false> far(const Job<T> &job, u32 i) {
    return {job.theta + usize(i) * job.p, job.v + usize(i) * job.p,
            job.slopes + usize(i) * job.drawn * job.classes, job.picks + usize(i) * job.drawn};
}

// The weight of feature q for class c.
template <bool NEAR, class T> __device__ T weight_of(const Job<T> &job, const T *weights, u32 q, u32 c) {
    return weights[NEAR ? c * job.stride + q : q * job.classes + c];
}

// The weights of class c for four features from q on; beyond the last feature 0.
template <bool NEAR, class T> __device__ Four<T> four_weights(const Job<T> &job, const T *weights, u32 q, u32 c) {
    Four<T> some;
    if (NEAR) some = four(weights + c * job.stride + q);
    else
#pragma unroll
        for (int e = 0; e < 4; e++) some.at[e] = q + e < job.features ? weight_of<false>(job, weights, q + e, c) : T(0);
    return some;
}

// Minus the sum of shift times weight over a lane's features.
template <bool NEAR, class T> __device__ __noinline__ T shift_sum(const Job<T> &job, const T *weights, u32 c) {
    T sum = T(0);
    for (u32 q = threadIdx.x % 32 * 4; q < job.features; q += 128) {
        auto some = four_weights<NEAR>(job, weights, q, c);
        for (int e = 0; e < 4; e++) sum = fused(-job.shift[q + e], some.at[e], sum);
    }
    return sum;
}

// Scores for all classes, by one or two sets of weights. Each lane takes four features in 128 of ROWS rows, and ends with
// the scores of one of them.
template <int SETS, int ROWS, int MOST, bool NEAR, class S, class T>
__device__ void products(const Job<T> &job, const u32 *pick, const T *const *weights, T (&out)[SETS][MOST]) {
    u32 classes = CLASSES(MOST);
    T sum[SETS][MOST][ROWS];
#pragma unroll
    for (int k = 0; k < SETS; k++) UNROLLED for (u32 c = 0; c < MOST; c++) {
        // The shift of all rows at once.
        T start = T(0);
        if (job.shift && c < classes) start = shift_sum<NEAR>(job, weights[k], c);
#pragma unroll
        for (int j = 0; j < ROWS; j++) sum[k][c][j] = start;
    }
#pragma unroll (MOST == 1 ? 4 : 1)
    for (u32 q = threadIdx.x % 32 * 4; q < job.features; q += 128) {
        Four<T> values[ROWS];
#pragma unroll
        for (int j = 0; j < ROWS; j++) values[j] = features<4, T, S>(job, pick[j], q);
#pragma unroll
        for (int k = 0; k < SETS; k++) UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
            auto some = four_weights<NEAR>(job, weights[k], q, c);
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int j = 0; j < ROWS; j++)
                    sum[k][c][j] = fused(values[j].at[e], some.at[e], sum[k][c][j]);
        }
    }
#pragma unroll
    for (int k = 0; k < SETS; k++)
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) out[k][c] = row_sum(sum[k][c]) * job.unit;
}

// Slopes of the losses: the rows of node i from r0 on, by a warp.
template <int ROWS, int MOST, class S, class T, bool NEAR>
__device__ void scores(const Job<T> &job, const Linear<T, NEAR> &own, u32 i, u32 r0) {
    u32 lane = threadIdx.x % 32, classes = CLASSES(MOST);
    u32 pick[ROWS], batch[ROWS];
    bool any = false, curved = false;
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        u32 r = min(r0 + j, job.drawn - 1);
        pick[j] = own.picks[r];
        batch[j] = (r >= job.start[1]) + (r >= job.start[2]) + (r >= job.start[3]) + (r >= job.start[4]);
        curved |= batch[j] == XI2;
        any |= batch[j] != XI3 && batch[j] != SIGMA2; // s does not depend on samples
    }
    if (!any) return;
    // One lane per row needs these once it has the sums; loaded early, they are there by then.
    u32 at = lane / (32 / ROWS), of = batch[0], row = pick[0];
#pragma unroll
    for (int j = 1; j < ROWS; j++)
        if (at == j) of = batch[j], row = pick[j];
    T weight = job.weights[usize(i) * 5 + of];
    u32 label = job.labels[row];
    T out[2][MOST];
    const T *weights[2] = {own.v, own.theta};
    if (MOST == 1 && curved) {
        products<2, ROWS, MOST, NEAR, S>(job, pick, weights, out);
    } else {
        // With more classes, registers have no room for the sums of both.
#pragma unroll
        for (int k = 0; k < 2; k++)
            if (k == 1 || MOST > 1 && curved)
                products<1, ROWS, MOST, NEAR, S>(job, pick, weights + k, (T(&)[1][MOST])out[k]);
    }
    if (lane % (32 / ROWS) != 0 || r0 + at >= job.drawn || of == XI3 || of == SIGMA2) return;
    if (of == SIGMA1) weight = -weight;
    T *a = out[0], *p = out[1], *to = own.slopes + (r0 + at) * across<MOST, NEAR>(classes);
    if (MOST == 1) {
        T sign = label == 0 ? T(-1) : T(1);
        T part = sigmoid(of == XI2 ? -(*p < T(0) ? -*p : *p) : sign * *p);
        *to = (of == XI2 ? *a * (weight * part * (T(1) - part)) : part * (sign * weight)) * job.unit;
        return;
    }
    softmax<MOST>(p, classes);
    if (of == XI2) curve<MOST>(p, a, weight, classes);
    else slopes<MOST>(p, label, weight, classes);
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) to[c] = (of == XI2 ? a[c] : p[c]) * job.unit;
}

template <int MOST, class T, class S> __device__ void scores(const Job<T> &job) {
    u32 groups = (job.drawn + TOGETHER(MOST) - 1) / TOGETHER(MOST);
    usize group = usize(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (group >= usize(job.m) * groups) return;
    u32 i = group / groups;
    scores<TOGETHER(MOST), MOST, S>(job, far(job, i), i, group % groups * TOGETHER(MOST));
}

// 2 exp(x) for some features of node i.
template <int WIDE, class T>
__device__ void strengths(const Job<T> &job, u32 now, u32 i, u32 q0, u32 most, T (&strength)[WIDE]) {
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        T half = exponential(e < most ? job.x[now][usize(i) * job.features + q0 + e] : T(0));
        strength[e] = half + half;
    }
}

// The slopes of row r.
template <int MOST, class T, bool NEAR>
__device__ void slopes_of(const Linear<T, NEAR> &own, u32 classes, u32 r, T (&slope)[MOST]) {
    const T *from = own.slopes + r * across<MOST, NEAR>(classes);
    if constexpr (NEAR && MOST > 1) {
#pragma unroll
        for (u32 c = 0; c < MOST; c += 4) if (c < classes) {
            auto some = four(from + c);
#pragma unroll
            for (int e = 0; e < 4; e++) if (c + e < MOST) slope[c + e] = some.at[e];
        }
    } else {
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) slope[c] = from[c];
    }
}

// The contribution of a minibatch to d or h of some features, and that of the regulariser.
template <int WIDE, int MOST, class S, class T, bool NEAR>
__device__ void slope_sums(const Job<T> &job, const Linear<T, NEAR> &own, u32 batch, u32 q0, u32 most,
                           const T (&strength)[WIDE], T (&sum)[WIDE][MOST]) {
    u32 classes = CLASSES(MOST);
    const T *from = batch == XI2 ? own.v : own.theta;
#pragma unroll
    for (int e = 0; e < WIDE; e++) UNROLLED for (u32 c = 0; c < MOST; c++) {
        bool starts = e < most && c < classes && batch != SIGMA1;
        sum[e][c] = starts ? strength[e] * weight_of<NEAR>(job, from, q0 + e, c) : T(0);
    }
    u32 first = job.start[batch], size = most > 0 ? job.size[batch] : 0;
    T slope[MOST];
    if (job.shift && most > 0) {
        T total[MOST] = {};
        for (u32 r = first; r < first + size; r++) {
            slopes_of(own, classes, r, slope);
            UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) total[c] = total[c] + slope[c];
        }
#pragma unroll
        for (int e = 0; e < WIDE; e++) if (e < most)
            UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes)
                sum[e][c] = fused(-job.shift[q0 + e], total[c], sum[e][c]);
    }
#pragma unroll (MOST == 1 ? 10 : NEAR ? 5 : 2)
    for (u32 r = first; r < first + size; r++) {
        auto values = features<WIDE, T, S>(job, own.picks[r], q0);
        slopes_of(own, classes, r, slope);
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes)
#pragma unroll
            for (int e = 0; e < WIDE; e++) sum[e][c] = fused(values.at[e], slope[c], sum[e][c]);
    }
}

// Stores d or h of some features; with d, also s.
template <int WIDE, int MOST, class T, bool NEAR>
__device__ void store(const Job<T> &job, const Linear<T, NEAR> &own, T *to, u32 i, u32 q0, u32 most,
                      const T (&strength)[WIDE], const T (&sum)[WIDE][MOST]) {
    u32 classes = CLASSES(MOST);
#pragma unroll
    for (int e = 0; e < WIDE; e++) if (e < most) {
        usize at = usize(i) * job.features + q0 + e;
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) to[at * classes + c] = sum[e][c];
        if (to != job.d) continue;
        T dots = T(0);
        for (u32 c = 0; c < classes; c++)
            dots = fused(weight_of<NEAR>(job, own.theta, q0 + e, c), weight_of<NEAR>(job, own.v, q0 + e, c), dots);
        job.s[at] = -strength[e] * dots;
    }
}

// Item q of a node. The first items are the two parts of h, which neighbouring lanes add; d and s follow. A warp calls it
// as a whole.
template <int WIDE, int MOST, class S, class T, bool NEAR>
__device__ void item(const Job<T> &job, const Linear<T, NEAR> &own, u32 now, u32 i, u32 q) {
    u32 wide = (job.features + WIDE - 1) / WIDE;
    bool pairs = q < 2 * wide;
    u32 batch = !pairs ? XI1 : q % 2 == 0 ? XI2 : SIGMA1;
    u32 q0 = (pairs ? q / 2 : q - 2 * wide) * WIDE, most = q0 < job.features ? min(u32(WIDE), job.features - q0) : 0;
    T strength[WIDE], sum[WIDE][MOST];
    strengths(job, now, i, q0, most, strength);
    slope_sums<WIDE, MOST, S>(job, own, batch, q0, most, strength, sum);
#pragma unroll
    for (int e = 0; e < WIDE; e++) UNROLLED for (u32 c = 0; c < MOST; c++) {
        T other = passed(sum[e][c], 1);
        if (batch == XI2) sum[e][c] = sum[e][c] + other;
    }
    if (batch != SIGMA1) store(job, own, pairs ? job.h : job.d, i, q0, most, strength, sum);
}

template <int MOST, class T, class S> __device__ void linear(const Job<T> &job, u32 now) {
    u32 each = MOST == 1 ? 3 * job.features : job.features, chunks = (each + blockDim.x - 1) / blockDim.x;
    u32 i = blockIdx.x / chunks, q = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    auto own = far(job, i);
    if (MOST == 1) return item<1, MOST, S>(job, own, now, i, q);
    // With more classes, one feature is enough work for a thread, and neighbouring threads read neighbouring features.
    if (q >= job.features) return;
    T strength[1], sum[1][MOST], h[1][MOST];
    strengths(job, now, i, q, 1, strength);
    slope_sums<1, MOST, S>(job, own, XI2, q, 1, strength, h);
    slope_sums<1, MOST, S>(job, own, SIGMA1, q, 1, strength, sum);
    UNROLLED for (u32 c = 0; c < MOST; c++) h[0][c] = h[0][c] + sum[0][c];
    store(job, own, job.h, i, q, 1, strength, h);
    slope_sums<1, MOST, S>(job, own, XI1, q, 1, strength, sum);
    store(job, own, job.d, i, q, 1, strength, sum);
}

// An iteration of node i in shared memory. Of other nodes it reads only x and y of the iteration before, which nobody
// writes meanwhile.
template <int MOST, class T, class S> __device__ void whole(const Job<T> &job, u32 at) {
    extern __shared__ __align__(16) u8 room[];
    u32 i = blockIdx.x, t = threadIdx.x, all = blockDim.x, classes = CLASSES(MOST);
    u32 length = classes * job.stride;
    T *theta = (T *)room, *v = theta + length, *slopes = v + length;
    Linear<T, true> near = {theta, v, slopes, (u32 *)(slopes + job.drawn * across<MOST, true>(classes))};
    const T *now = steps(job, at);
    // The last warps draw while the first ones move.
    for (u32 b = all - 1 - t; b < job.blocks; b += all) draw(job, job.clock[0] + at / 2, i, b, near.picks);
    for (u32 j = t; j < job.p; j += all) {
        u32 to = j % classes * job.stride + j / classes;
        turn(job, now, usize(i) * job.p + j, theta[to], v[to]);
    }
    u32 gap = job.stride - job.features;
    if (t < classes * gap) {
        u32 to = t / gap * job.stride + job.features + t % gap;
        theta[to] = v[to] = T(0);
    }
    for (u32 j = t; j < job.n; j += all) mix(job, at % 2, now, i, j);
    __syncthreads();
    for (u32 r = t / 32 * 4; r < job.drawn; r += all / 32 * 4) scores<4, MOST, S>(job, near, i, r);
    __syncthreads();
    // Four numbers at once would take too many registers.
    constexpr int WIDE = sizeof(S) == 1 ? 4 : 1;
    u32 wide = (job.features + WIDE - 1) / WIDE;
    for (u32 q = t; q < (3 * wide + 31) / 32 * 32; q += all) item<WIDE, MOST, S>(job, near, 1 - at % 2, i, q);
}
