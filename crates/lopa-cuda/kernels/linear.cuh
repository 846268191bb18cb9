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

// The sum over the lanes of a warp. A function of its own: inlined, sums would make up most of the PTX.
template <class T> __device__ __noinline__ T summed(T a) { return in_pairs(a, 16); }

// The same for one row or four; of four, eight lanes each end with one. Lanes keep half of the rows and send the other
// half to their partners, so that every sum has the same pairs as above.
template <class T> __device__ T row_sum(const T (&rows)[1][1]) {
    return in_pairs(rows[0][0], 16);
}

template <class T> __device__ T row_sum(const T (&rows)[4][1]) {
    bool upper = threadIdx.x & 16, last = threadIdx.x & 8;
    T first = (upper ? rows[2][0] : rows[0][0]) + passed(upper ? rows[0][0] : rows[2][0], 16);
    T second = (upper ? rows[3][0] : rows[1][0]) + passed(upper ? rows[1][0] : rows[3][0], 16);
    return in_pairs((last ? second : first) + passed(last ? first : second, 8), 4);
}

// Rows that a warp takes at once, where a node has many blocks.
#define TOGETHER(most) (most <= 16 && most > 1 ? 4 : 1)

// What a linear classifier of one node works on: in global memory, or near; there, zeros come after the last weight.
template <class T, bool NEAR> struct Linear {
    T *theta, *v, *slopes; // slopes of the losses of each row, times `unit`
    u32 *picks;
};

template <class T> __device__ Linear<T, false> far(const Job<T> &job, u32 i) {
    return {job.theta + usize(i) * job.p, job.v + usize(i) * job.p,
            job.slopes + usize(i) * job.drawn * job.classes, job.picks + usize(i) * job.drawn};
}

// Minus the sum of shift times weight over a lane's features.
template <class T>
__device__ __noinline__ T shift_sum(const T *shift, const T *weights, u32 features, u32 classes, u32 wide) {
    T sum = T(0);
    for (u32 first = threadIdx.x % 32 * wide; first < features; first += 32 * wide)
        for (u32 q = first; q < min(first + wide, features); q++)
            sum = fused(-shift[q], weights[q * classes], sum);
    return sum;
}

// The scores of some rows, for all classes of one or two sets of weights. Each lane has four features of 128; with more
// than one class, one of 32.
template <int SETS, int ROWS, int MOST, bool NEAR, class T, class S>
__device__ void products(const Job<T> &job, const u32 *pick, const T *const *weights,
                         T (&out)[SETS][ROWS][MOST]) {
    constexpr int WIDE = MOST == 1 ? 4 : 1;
    u32 classes = MOST == 1 ? 1 : job.classes;
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < SETS; k++) UNROLLED for (u32 c = 0; c < MOST; c++) {
        // The shift of all rows at once.
        T start = T(0);
        if (job.shift && c < classes)
            start = shift_sum(job.shift, weights[k] + c, job.features, classes, WIDE);
#pragma unroll
        for (int j = 0; j < ROWS; j++) out[k][j][c] = start;
    }
#pragma unroll (MOST == 1 ? 4 : 1)
    for (u32 q = lane * WIDE; q < job.features; q += 32 * WIDE) {
        Some<T, WIDE> values[ROWS];
#pragma unroll
        for (int j = 0; j < ROWS; j++) values[j] = features<WIDE, T, S>(job, pick[j], q);
#pragma unroll
        for (int k = 0; k < SETS; k++) {
            Four<T> some;
            if (NEAR) some = four(weights[k] + q);
#pragma unroll
            for (int e = 0; e < WIDE; e++) UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
                // Those beyond the last feature are multiplied with 0.
                T weight = NEAR ? some.at[e] : q + e < job.features ? weights[k][(q + e) * classes + c] : T(0);
#pragma unroll
                for (int j = 0; j < ROWS; j++)
                    out[k][j][c] = fused(values[j].at[e], weight, out[k][j][c]);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < SETS; k++)
        if constexpr (MOST == 1) {
            out[k][0][0] = row_sum(out[k]) * job.unit;
        } else {
#pragma unroll
            for (int j = 0; j < ROWS; j++)
                UNROLLED for (u32 c = 0; c < MOST; c++)
                    if (c < classes) out[k][j][c] = summed(out[k][j][c]) * job.unit;
        }
}

// Slopes of the losses: the rows of node i from r0 on, by a warp.
template <int ROWS, int MOST, class S, class T, bool NEAR>
__device__ void scores(const Job<T> &job, const Linear<T, NEAR> &own, u32 i, u32 r0) {
    u32 lane = threadIdx.x % 32, classes = job.classes;
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
    if constexpr (MOST == 1) {
        // One lane per row needs these once it has the sum; loaded early, they are there by then.
        u32 at = lane / (32 / ROWS), of = batch[0], row = pick[0];
#pragma unroll
        for (int j = 1; j < ROWS; j++)
            if (at == j) of = batch[j], row = pick[j];
        T weight = job.weights[usize(i) * 5 + of];
        T sign = job.labels[row] == 0 ? T(-1) : T(1);
        T out[2][ROWS][1];
        const T *weights[2] = {own.theta, own.v};
        if (curved) {
            products<2, ROWS, 1, NEAR, T, S>(job, pick, weights, out);
        } else {
            T some[1][ROWS][1];
            products<1, ROWS, 1, NEAR, T, S>(job, pick, weights, some);
            out[0][0][0] = some[0][0][0], out[1][0][0] = T(0);
        }
        T p = out[0][0][0], a = out[1][0][0];
        if (lane % (32 / ROWS) != 0 || r0 + at >= job.drawn || of == XI3 || of == SIGMA2) return;
        T part = sigmoid(of == XI2 ? -(p < T(0) ? -p : p) : sign * p);
        T slope = of == XI2 ? a * (weight * part * (T(1) - part)) : part * (sign * (of == SIGMA1 ? -weight : weight));
        own.slopes[r0 + at] = slope * job.unit;
    } else {
        T out[1][ROWS][MOST], a[ROWS][MOST];
        const T *weights[1] = {own.v};
        if (curved) {
            products<1, ROWS, MOST, NEAR, T, S>(job, pick, weights, out);
#pragma unroll
            for (int j = 0; j < ROWS; j++) UNROLLED for (u32 c = 0; c < MOST; c++) a[j][c] = out[0][j][c];
        }
        weights[0] = own.theta;
        products<1, ROWS, MOST, NEAR, T, S>(job, pick, weights, out);
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            if (r0 + j >= job.drawn || batch[j] == XI3 || batch[j] == SIGMA2) continue;
            T weight = job.weights[usize(i) * 5 + batch[j]], *p = out[0][j];
            if (batch[j] == SIGMA1) weight = -weight;
            softmax<MOST>(p, classes);
            if (batch[j] == XI2) curve<MOST>(p, a[j], weight, classes);
            slopes<MOST>(p, job.labels[pick[j]], weight, classes);
            T *to = own.slopes + (r0 + j) * classes;
            UNROLLED for (u32 c = 0; c < MOST; c++)
                if (c < classes && lane == 0) to[c] = (batch[j] == XI2 ? a[j][c] : p[c]) * job.unit;
        }
    }
}

template <int MOST, class T, class S> __device__ void scores(const Job<T> &job) {
    u32 groups = (job.drawn + TOGETHER(MOST) - 1) / TOGETHER(MOST);
    usize group = usize(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (group >= usize(job.m) * groups) return;
    u32 i = group / groups;
    scores<TOGETHER(MOST), MOST, S>(job, far(job, i), i, group % groups * TOGETHER(MOST));
}

// The minibatch of each part of `linear`: h is a sum of two, for which neighbouring lanes add.
__device__ u32 batch_of(u32 part) { return part == 0 ? XI2 : part == 1 ? SIGMA1 : XI1; }

// Some features of node i: both parts of h, or d and s. Pairs of lanes that have h call it together.
template <int WIDE, int MOST, class S, class T, bool NEAR>
__device__ void linear(const Job<T> &job, const Linear<T, NEAR> &own, u32 now, u32 i, u32 q0, u32 part) {
    u32 classes = MOST == 1 ? 1 : job.classes, batch = batch_of(part);
    u32 most = q0 < job.features ? min(u32(WIDE), job.features - q0) : 0;
    usize at = usize(i) * job.features + q0;
    const T *from = batch == XI2 ? own.v : own.theta;
    T strength[WIDE], sum[WIDE][MOST];
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        T half = exponential(e < most ? job.x[now][at + e] : T(0));
        strength[e] = half + half;
        UNROLLED for (u32 c = 0; c < MOST; c++) {
            bool starts = e < most && c < classes && batch != SIGMA1;
            sum[e][c] = starts ? strength[e] * from[(q0 + e) * classes + c] : T(0);
        }
    }
    if (job.shift && most > 0)
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
            T total = T(0);
            for (u32 r = job.start[batch]; r < job.start[batch] + job.size[batch]; r++)
                total = total + own.slopes[r * classes + c];
#pragma unroll
            for (int e = 0; e < WIDE; e++)
                if (e < most) sum[e][c] = fused(-job.shift[q0 + e], total, sum[e][c]);
        }
    u32 first = job.start[batch], size = most > 0 ? job.size[batch] : 0;
#pragma unroll (MOST == 1 ? 10 : 2)
    for (u32 r = first; r < first + size; r++) {
        auto values = features<WIDE, T, S>(job, own.picks[r], q0);
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
            T slope = own.slopes[r * classes + c];
#pragma unroll
            for (int e = 0; e < WIDE; e++) sum[e][c] = fused(values.at[e], slope, sum[e][c]);
        }
    }
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        usize base = (at + e) * classes;
        T *to = batch == XI1 ? job.d : job.h;
        UNROLLED for (u32 c = 0; c < MOST; c++) {
            T other = passed(sum[e][c], 1);
            if (batch == XI2) sum[e][c] = sum[e][c] + other;
            if (e < most && c < classes && batch != SIGMA1) to[base + c] = sum[e][c];
        }
        if (e >= most || batch != XI1) continue;
        T dots = T(0);
        for (u32 c = 0; c < classes; c++) {
            u32 weight = (q0 + e) * classes + c;
            dots = fused(own.theta[weight], own.v[weight], dots);
        }
        job.s[at + e] = -strength[e] * dots;
    }
}

// Item q of `linear`: pairs for h come first.
template <int WIDE, int MOST, class S, class T, bool NEAR>
__device__ void items(const Job<T> &job, const Linear<T, NEAR> &own, u32 now, u32 i, u32 q) {
    u32 wide = (job.features + WIDE - 1) / WIDE;
    u32 part = q < 2 * wide ? q % 2 : 2, some = part < 2 ? q / 2 : q - 2 * wide;
    linear<WIDE, MOST, S>(job, own, now, i, some * WIDE, part);
}

template <int MOST, class T, class S> __device__ void linear(const Job<T> &job, u32 now) {
    u32 chunks = (3 * job.features + blockDim.x - 1) / blockDim.x, i = blockIdx.x / chunks;
    items<1, MOST, S>(job, far(job, i), now, i, blockIdx.x % chunks * blockDim.x + threadIdx.x);
}

// An iteration of node i with one class, in shared memory. Of other nodes it reads only x and y of the iteration
// before, which nobody writes meanwhile.
template <class T, class S> __device__ void whole(const Job<T> &job, u32 at) {
    extern __shared__ __align__(16) u8 room[];
    T *theta = (T *)room, *v = theta + job.stride, *slopes = v + job.stride;
    Linear<T, true> near = {theta, v, slopes, (u32 *)(slopes + job.drawn)};
    u32 i = blockIdx.x, t = threadIdx.x, all = blockDim.x;
    const T *now = steps(job, at);
    // The last warps draw while the first ones move.
    for (u32 b = all - 1 - t; b < job.blocks; b += all) draw(job, job.clock[0] + at / 2, i, b, near.picks);
    for (u32 j = t; j < job.stride; j += all) {
        theta[j] = v[j] = T(0);
        if (j < job.p) turn(job, now, usize(i) * job.p + j, theta[j], v[j]);
    }
    for (u32 j = t; j < job.n; j += all) mix(job, at % 2, now, i, j);
    __syncthreads();
    for (u32 r = t / 32 * 4; r < job.drawn; r += all / 32 * 4) scores<4, 1, S>(job, near, i, r);
    __syncthreads();
    // Four numbers at once would take too many registers.
    constexpr int WIDE = sizeof(S) == 1 ? 4 : 1;
    u32 wide = (job.features + WIDE - 1) / WIDE;
    // Whole warps, because `passed` needs them.
    for (u32 q = t; q < (3 * wide + 31) / 32 * 32; q += all) items<WIDE, 1, S>(job, near, 1 - at % 2, i, q);
}
