// The oracle of `hyperparameter` and `hyper-cleaning`: a linear model. A bias is a feature that is 1.

#pragma once

#include "crossed.cuh"
#include "losses.cuh"
#include "move.cuh"

// The number of classes: kernels are made for one, and for up to 16 and 64.
#define CLASSES(most) (most == 1 ? 1 : job.classes)

// Whether that is more than one, but few.
#define FEW(most) (most > 1 && most <= 16)

// What a linear classifier of one node works on. Weights are feature after feature, as everywhere else, or class after
// class, `apart` numbers from one class to the next, with zeros after the last weight of a class.
template <class T, bool BY_CLASS> struct Linear {
    T *theta, *v, *slopes; // slopes of the losses of each row, times `unit`
    u32 *picks;
};

// The distance between the slopes of one row and the next; card.rs has the same.
__device__ u32 across(u32 classes) { return classes == 1 ? 1 : (classes + 3) / 4 * 4; }

// The distance between the weights of one class and the next. With this one, neighbouring classes do not start in the
// same bank of shared memory. card.rs has the same.
template <class T> __device__ u32 apart(const Job<T> &job) {
    return job.classes == 1 ? job.stride : (job.stride + 27) / 32 * 32 + 4;
}

// The data of node i in global memory.
template <bool BY_CLASS, class T> __device__ Linear<T, BY_CLASS> far(const Job<T> &job, u32 i) {
    return {job.theta + usize(i) * job.p, job.v + usize(i) * job.p,
            job.slopes + usize(i) * job.drawn * across(job.classes), job.picks + usize(i) * job.drawn};
}

// The weights of class c for some features from q on; beyond the last feature 0.
template <int COUNT, bool BY_CLASS, class T>
__device__ Some<T, COUNT> some_weights(const Job<T> &job, const T *weights, u32 q, u32 c) {
    Some<T, COUNT> some;
    if (BY_CLASS) some = *(const Some<T, COUNT> *)(weights + c * apart(job) + q);
    else
#pragma unroll
        for (int e = 0; e < COUNT; e++) some.at[e] = q + e < job.features ? weights[(q + e) * job.classes + c] : T(0);
    return some;
}

// Minus the sum of shift times weight over a lane's features, whose weights are `step` apart. It does not take the job,
// which would be copied for the call.
template <class T>
__device__ __noinline__ T shift_sum(const T *shift, u32 features, const T *weights, u32 step) {
    T sum = T(0);
    for (u32 q = threadIdx.x % 32 * 4; q < features; q += 128)
        for (u32 e = q; e < min(q + 4, features); e++) sum = fused(-shift[e], weights[e * step], sum);
    return sum;
}

// Scores for all classes, by one or two sets of weights. Each lane takes four features in 128 of ROWS rows, and ends with
// the scores of one of them.
template <int SETS, int ROWS, int MOST, bool BY_CLASS, class S, class T>
__device__ void products(const Job<T> &job, const u32 *pick, const T *const *weights, T (&out)[SETS][MOST]) {
    u32 classes = CLASSES(MOST);
    T sum[SETS][MOST][ROWS];
#pragma unroll
    for (int k = 0; k < SETS; k++) UNROLLED for (u32 c = 0; c < MOST; c++) {
        // The shift of all rows at once.
        T start = T(0);
        if (job.shift && c < classes)
            start = BY_CLASS ? shift_sum(job.shift, job.features, weights[k] + c * apart(job), 1)
                             : shift_sum(job.shift, job.features, weights[k] + c, classes);
#pragma unroll
        for (int j = 0; j < ROWS; j++) sum[k][c][j] = start;
    }
    // Adds four features of each row from q on.
    auto add = [&](const Stored<S, 4> (&stored)[ROWS], u32 q) {
        Four<T> values[ROWS];
#pragma unroll
        for (int j = 0; j < ROWS; j++) values[j] = numbers<T>(stored[j]);
#pragma unroll
        for (int k = 0; k < SETS; k++) UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
            auto some = some_weights<4, BY_CLASS>(job, weights[k], q, c);
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int j = 0; j < ROWS; j++)
                    sum[k][c][j] = fused(values[j].at[e], some.at[e], sum[k][c][j]);
        }
    };
    // Fetches them.
    auto fetch = [&](Stored<S, 4> (&to)[ROWS], u32 q) {
#pragma unroll
        for (int j = 0; j < ROWS; j++) to[j] = stored<4, S>(job, pick[j], q);
    };
    // Loads take long: many are under way before the first is waited for, or some during the arithmetic.
    constexpr int AHEAD = MOST > 1 ? 2 : sizeof(S) == 1 ? (ROWS == 1 ? 12 : 4) : (ROWS == 1 ? 4 : 1);
    Stored<S, 4> ahead[AHEAD][ROWS];
    u32 q = threadIdx.x % 32 * 4;
    if (MOST == 1) {
        for (; q < job.features; q += 128 * AHEAD) {
#pragma unroll
            for (int s = 0; s < AHEAD; s++) fetch(ahead[s], q + 128 * s < job.features ? q + 128 * s : 0);
#pragma unroll
            for (int s = 0; s < AHEAD; s++) if (q + 128 * s < job.features) add(ahead[s], q + 128 * s);
        }
    } else {
        if (q < job.features) fetch(ahead[1], q);
        for (; q < job.features; q += 128) {
#pragma unroll
            for (int j = 0; j < ROWS; j++) ahead[0][j] = ahead[1][j];
            if (q + 128 < job.features) fetch(ahead[1], q + 128);
            add(ahead[0], q);
        }
    }
#pragma unroll
    for (int k = 0; k < SETS; k++)
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) out[k][c] = row_sum(sum[k][c]) * job.unit;
}

// Rows with scores by v: those of xi2, and of xi3 where s depends on samples.
template <class T> __device__ u32 curved(const Job<T> &job) {
    return job.size[XI2] + (job.per == PER_SAMPLE ? job.size[XI3] : 0);
}

// Rows with slopes: those come first, since they take longest, then those of xi1 and sigma1. Nothing depends on other
// rows.
template <class T> __device__ u32 sloped(const Job<T> &job) { return curved(job) + job.size[XI1] + job.size[SIGMA1]; }

struct Row { u32 at, batch; };

// The k-th of these rows, or the last if there are fewer.
template <class T> __device__ Row row_of(const Job<T> &job, u32 k) {
    k = min(k, sloped(job) - 1);
    if (k < job.size[XI2]) return {job.start[XI2] + k, XI2};
    if (k < curved(job)) return {job.start[XI3] + k - job.size[XI2], XI3};
    k -= curved(job);
    if (k < job.size[XI1]) return {job.start[XI1] + k, XI1};
    return {job.start[SIGMA1] + k - job.size[XI1], SIGMA1};
}

// The slopes of some rows of node i, from row k0 on, by a warp.
template <int ROWS, int MOST, class S, class T, bool BY_CLASS>
__device__ void scores(const Job<T> &job, const Linear<T, BY_CLASS> &own, u32 now, u32 i, u32 k0) {
    u32 lane = threadIdx.x % 32, classes = CLASSES(MOST), k = k0 + lane / (32 / ROWS), pick[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; j++) pick[j] = own.picks[row_of(job, k0 + j).at];
    bool along = k0 < curved(job);
    // One lane per row needs these once it has the sums; loaded early, they are there by then.
    auto [at, batch] = row_of(job, k);
    T weight = job.weights[usize(i) * 5 + batch];
    u32 row = own.picks[at], label = label_of(job, row);
    if (job.per == PER_SAMPLE && batch <= XI3) {
        T x = job.x[now][usize(i) * job.n + job.offset + row], part = sigmoid(x);
        weight = weight * (batch == XI3 ? part * sigmoid(-x) : part);
    }
    T a[MOST], p[MOST]; // scores by v and by theta
    if (MOST == 1 && along) {
        T out[2][MOST];
        const T *weights[2] = {own.v, own.theta};
        products<2, ROWS, MOST, BY_CLASS, S>(job, pick, weights, out);
        *a = *out[0], *p = *out[1];
    } else {
        // With more classes, the sums of both would not fit in registers. One copy of the loop is faster than two.
#pragma unroll 1
        for (int round = along ? 0 : 1; round < 2; round++) {
            UNROLLED for (u32 c = 0; c < MOST; c++) if (round == 1) a[c] = p[c];
            const T *weights = round == 0 ? own.v : own.theta;
            products<1, ROWS, MOST, BY_CLASS, S>(job, pick, &weights, (T(&)[1][MOST])p);
        }
    }
    if (MOST > 1) softmax<MOST, 32 / ROWS>(job, p, classes);
    if (lane % (32 / ROWS) != 0 || k >= sloped(job)) return;
    if (batch == SIGMA1 || batch == XI3) weight = -weight;
    T *to = own.slopes + at * across(classes);
    if (batch == XI2) curve<MOST>(job, p, a, row, weight, classes);
    else slopes<MOST>(job, p, row, label, weight, classes);
    if (batch == XI3) {
        // What the sample adds to its entry of s.
        T dot = T(0);
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) dot = fused(p[c], a[c], dot);
        *to = dot;
        return;
    }
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) to[c] = (batch == XI2 ? a[c] : p[c]) * job.unit;
}

// The threads of a block load and store every j below `length`, each several before its first store.
template <int AHEAD, class Load, class Store> __device__ void pass_over(u32 length, Load load, Store store) {
    for (u32 j = threadIdx.x; j < length; j += AHEAD * blockDim.x) {
        decltype(load(j)) some[AHEAD];
#pragma unroll
        for (u32 e = 0; e < AHEAD; e++) if (j + e * blockDim.x < length) some[e] = load(j + e * blockDim.x);
#pragma unroll
        for (u32 e = 0; e < AHEAD; e++) if (j + e * blockDim.x < length) store(j + e * blockDim.x, some[e]);
    }
}

// Stores entry j of weights, which are feature after feature, in its place class after class.
template <int MOST, class T> __device__ void put(const Job<T> &job, T *weights, u32 j, T value) {
    u32 classes = CLASSES(MOST);
    weights[j % classes * apart(job) + j / classes] = value;
}

// Stores zeros after the last weight of each class.
template <int MOST, class T> __device__ void put_zeros(const Job<T> &job, const Linear<T, true> &near) {
    u32 gap = job.stride - job.features;
    for (u32 t = threadIdx.x; t < CLASSES(MOST) * gap; t += blockDim.x) {
        u32 to = t / gap * apart(job) + job.features + t % gap;
        near.theta[to] = near.v[to] = T(0);
    }
}

// How many warps of a block compute scores where a node has many blocks; the others only help to copy weights. card.rs
// has the same.
enum { WARPS = 4 };

// Some rows of a node, which has many blocks.
template <int MOST, class T, class S> __device__ void scores(const Job<T> &job, u32 now) {
    constexpr u32 ROWS = FEW(MOST) ? 4 : 1;
    u32 each = WARPS * ROWS, chunks = (sloped(job) + each - 1) / each;
    u32 i = blockIdx.x / chunks, k0 = blockIdx.x % chunks * each, k = k0 + threadIdx.x / 32 * ROWS;
    if (asleep(job, i)) return;
    bool busy = threadIdx.x < 32 * WARPS && k < sloped(job);
    auto own = far<false>(job, i);
    if constexpr (FEW(MOST)) {
        if (shared_bytes() > 0) {
            extern __shared__ __align__(16) u8 room[];
            T *theta = (T *)room;
            Linear<T, true> near = {theta, theta + CLASSES(MOST) * apart(job), own.slopes, own.picks};
            auto copy = [&](const T *from, T *to) {
                pass_over<8>(job.p, [&](u32 j) { return from[j]; }, [&](u32 j, T value) { put<MOST>(job, to, j, value); });
            };
            copy(own.theta, near.theta);
            if (k0 < curved(job)) copy(own.v, near.v);
            put_zeros<MOST>(job, near);
            __syncthreads();
            if (busy) scores<ROWS, MOST, S>(job, near, now, i, k);
            return;
        }
    }
    if (!busy) return;
    // A single class lies as it should, if no zeros need to come after its last weight.
    if (MOST == 1 && job.stride == job.features) scores<ROWS, MOST, S>(job, far<MOST == 1>(job, i), now, i, k);
    else scores<ROWS, MOST, S>(job, own, now, i, k);
}

// The strengths of some features of node i: 2 exp(x), or twice the ridge.
template <int WIDE, class T>
__device__ void strengths(const Job<T> &job, u32 now, u32 i, u32 q0, u32 most, T (&strength)[WIDE]) {
    const T *x = job.x[now] + usize(i) * job.n;
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        T half = job.ridge;
        if (job.per <= PER_GROUP)
            half = exponential(e < most ? x[job.per == PER_ROW ? q0 + e : job.group[q0 + e]] : T(0));
        strength[e] = half + half;
    }
}

// The slopes of row r.
template <int MOST, class T, bool BY_CLASS>
__device__ void slopes_of(const Linear<T, BY_CLASS> &own, u32 classes, u32 r, T (&slope)[MOST]) {
    const T *from = own.slopes + r * across(classes);
    if constexpr (MOST == 1) {
        slope[0] = from[0];
    } else {
#pragma unroll
        for (u32 c = 0; c < MOST; c += 4) if (c < classes) {
            auto some = four(from + c);
#pragma unroll
            for (int e = 0; e < 4; e++) if (c + e < MOST) slope[c + e] = some.at[e];
        }
    }
}

// The contribution of a minibatch to d or h of some features, and that of the regulariser; x of the node.
template <int WIDE, int MOST, class S, class T, bool BY_CLASS>
__device__ void slope_sums(const Job<T> &job, const Linear<T, BY_CLASS> &own, const T *x, u32 batch, u32 q0, u32 most,
                           const T (&strength)[WIDE], T (&sum)[WIDE][MOST]) {
    u32 classes = CLASSES(MOST);
    const T *from = batch == XI2 ? own.v : own.theta;
    bool starts = most > 0 && batch != SIGMA1;
    UNROLLED for (u32 c = 0; c < MOST; c++) {
        Some<T, WIDE> some = {};
        if (starts && c < classes) some = some_weights<WIDE, BY_CLASS>(job, from, q0, c);
        T own_strength = T(0);
        if (job.per == PER_COLUMN && c < classes) own_strength = exponential(x[c]), own_strength = own_strength + own_strength;
#pragma unroll
        for (int e = 0; e < WIDE; e++) sum[e][c] = (job.per == PER_COLUMN ? own_strength : strength[e]) * some.at[e];
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
    // As in `products`, many rows are fetched at once, or some during the arithmetic.
    constexpr int AHEAD = MOST == 1 ? (WIDE == 1 ? 25 : 10) : FEW(MOST) ? 5 : 2;
    Stored<S, WIDE> some[AHEAD], next[AHEAD];
    auto fetch = [&](Stored<S, WIDE> (&to)[AHEAD], u32 r0) {
#pragma unroll
        for (u32 r = 0; r < AHEAD; r++) to[r] = stored<WIDE, S>(job, own.picks[min(r0 + r, first + size - 1)], q0);
    };
    if (MOST > 1 && size > 0) fetch(next, first);
    for (u32 r0 = first; r0 < first + size; r0 += AHEAD) {
        if (MOST == 1) {
            fetch(some, r0);
        } else {
#pragma unroll
            for (u32 r = 0; r < AHEAD; r++) some[r] = next[r];
            if (r0 + AHEAD < first + size) fetch(next, r0 + AHEAD);
        }
#pragma unroll
        for (u32 r = 0; r < AHEAD; r++) if (r0 + r < first + size) {
            auto values = numbers<T>(some[r]);
            slopes_of(own, classes, r0 + r, slope);
            UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes)
#pragma unroll
                for (int e = 0; e < WIDE; e++) sum[e][c] = fused(values.at[e], slope[c], sum[e][c]);
        }
    }
}

// Stores d or h of some features; with d, also s.
template <int WIDE, int MOST, class T, bool BY_CLASS>
__device__ void store(const Job<T> &job, const Linear<T, BY_CLASS> &own, T *to, u32 i, u32 q0, u32 most,
                      const T (&strength)[WIDE], const T (&sum)[WIDE][MOST]) {
    u32 classes = CLASSES(MOST);
    usize at = usize(i) * job.features + q0;
#pragma unroll
    for (int e = 0; e < WIDE; e++)
        UNROLLED for (u32 c = 0; c < MOST; c++)
            if (e < most && c < classes) to[(at + e) * classes + c] = sum[e][c];
    if (to != job.d || most == 0 || job.per != PER_ROW) return;
    T dots[WIDE] = {};
    for (u32 c = 0; c < classes; c++) {
        auto theta = some_weights<WIDE, BY_CLASS>(job, own.theta, q0, c);
        auto v = some_weights<WIDE, BY_CLASS>(job, own.v, q0, c);
#pragma unroll
        for (int e = 0; e < WIDE; e++) dots[e] = fused(theta.at[e], v.at[e], dots[e]);
    }
#pragma unroll
    for (int e = 0; e < WIDE; e++) if (e < most) job.s[at + e] = -strength[e] * dots[e];
}

// Item q of a node. The first items are the two parts of h, which neighbouring lanes add; d and s follow. A warp calls it
// as a whole.
template <int WIDE, int MOST, class S, class T, bool BY_CLASS>
__device__ void item(const Job<T> &job, const Linear<T, BY_CLASS> &own, u32 now, u32 i, u32 q) {
    u32 wide = (job.features + WIDE - 1) / WIDE;
    bool pairs = q < 2 * wide;
    u32 batch = !pairs ? XI1 : q % 2 == 0 ? XI2 : SIGMA1;
    u32 q0 = (pairs ? q / 2 : q - 2 * wide) * WIDE, most = q0 < job.features ? min(u32(WIDE), job.features - q0) : 0;
    T strength[WIDE], sum[WIDE][MOST];
    strengths(job, now, i, q0, most, strength);
    slope_sums<WIDE, MOST, S>(job, own, job.x[now] + usize(i) * job.n, batch, q0, most, strength, sum);
    // The product with v alone first, if it is wanted. One copy of the stores is smaller than two.
#pragma unroll 1
    for (int both = job.hess ? 0 : 1; both < 2; both++) {
        if (both)
#pragma unroll
            for (int e = 0; e < WIDE; e++) UNROLLED for (u32 c = 0; c < MOST; c++) {
                T other = passed(sum[e][c], 1);
                if (batch == XI2) sum[e][c] = sum[e][c] + other;
            }
        T *to = !both ? job.hess : pairs ? job.h : job.d;
        if (both ? batch != SIGMA1 : batch == XI2) store(job, own, to, i, q0, most, strength, sum);
    }
}

// Some items of a node, which has many blocks.
template <int MOST, class T, class S> __device__ void linear(const Job<T> &job, u32 now) {
    u32 chunks = (3 * job.features + blockDim.x - 1) / blockDim.x, all = job.drawn * across(CLASSES(MOST));
    u32 i = blockIdx.x / chunks, q = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    if (asleep(job, i)) return;
    auto own = far<false>(job, i);
    if (shared_bytes() > 0) {
        // Every thread reads these.
        extern __shared__ __align__(16) u8 room[];
        T *slopes = (T *)room;
        u32 *picks = (u32 *)(slopes + all);
        typedef Some<T, MOST == 1 ? 1 : 4> Slopes; // `all` is a multiple of this
        pass_over<6>(all / (sizeof(Slopes) / sizeof(T)), [&](u32 j) { return ((const Slopes *)own.slopes)[j]; },
                     [&](u32 j, Slopes some) { ((Slopes *)slopes)[j] = some; });
        for (u32 j = threadIdx.x; j < job.drawn; j += blockDim.x) picks[j] = own.picks[j];
        __syncthreads();
        // Called here, it is compiled for slopes in shared memory.
        item<1, MOST, S>(job, Linear<T, false>{own.theta, own.v, slopes, picks}, now, i, q);
    } else {
        item<1, MOST, S>(job, own, now, i, q);
    }
}

// An iteration of node i in shared memory. Of other nodes it reads only x and y of the iteration before, which nobody
// writes meanwhile.
template <int MOST, class T, class S> __device__ void whole(const Job<T> &job, u32 at) {
    extern __shared__ __align__(16) u8 room[];
    u32 i = blockIdx.x, t = threadIdx.x, all = blockDim.x, classes = CLASSES(MOST);
    u32 length = classes * apart(job);
    T *theta = (T *)room, *slopes = theta + 2 * length;
    Linear<T, true> near = {theta, theta + length, slopes, (u32 *)(slopes + job.drawn * across(classes))};
    const T *now = steps(job, at);
    // The last warps draw while the first ones move.
    for (u32 b = all - 1 - t; b < job.blocks; b += all) draw(job, job.clock[0] + at / 2, i, b, near.picks);
    usize first = usize(i) * job.p;
    const T *own = steps_of(job, i, now);
    pass_over<4>(job.p, [&](u32 j) { return turn(job, own, first + j); }, [&](u32 j, Both<T> both) {
        keep(job, first + j, both);
        put<MOST>(job, near.theta, j, both.theta);
        put<MOST>(job, near.v, j, both.v);
    });
    put_zeros<MOST>(job, near);
    for (u32 j = t; j < job.n; j += all) mix<1>(job, at % 2, now, i, j, all, [](int, T) {});
    __syncthreads();
    for (u32 k = t / 32 * 4; k < sloped(job); k += all / 32 * 4) scores<4, MOST, S>(job, near, 1 - at % 2, i, k);
    __syncthreads();
    // Four numbers at once would take too many registers.
    constexpr int WIDE = sizeof(S) == 1 ? 4 : 1;
    u32 wide = (job.features + WIDE - 1) / WIDE;
    for (u32 q = t; q < (3 * wide + 31) / 32 * 32; q += all) item<WIDE, MOST, S>(job, near, 1 - at % 2, i, q);
}
