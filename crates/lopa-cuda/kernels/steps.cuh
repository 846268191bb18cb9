// The rule that finds step sizes: crates/lopa-core/src/algorithms/parts/steps.rs has its formulas.

#pragma once

#include "common.cuh"

// What a launch does, in this order; and what the rule is.
enum {
    SETTLES = 1,       // takes the last probe into account
    MIXES = 2,         // the numbers of the neighbours
    FINDS_BETA = 4, FINDS_LAMBDA = 8, FINDS_ALPHA = 16,
    NOTES = 32,        // the curvature along v
    SHOWS = 64,        // compares d and h with those before, and decides on a probe
    LEAVES = 128,      // keeps d and h
    ADAPTIVE = 256,    // AdaSDBO's rule
    GLOBAL = 512,
    GIVEN_ALPHA = 1024, GIVEN_BETA = 2048, GIVEN_LAMBDA = 4096,
    SENDS = 8192,      // E; then m_theta, m_v, L
    AVERAGES = 1 << 17, // continues the mean of theta
};

// Of a node in `state`: whether a product is computed for it, and what its iteration showed.
enum { AWAKE = 1, TRIGGERED = 2, SCHEDULED = 4, KEEPS = 8 };

// src/steps.rs has the same fields in the same order.
template <class T> struct Finding {
    T *rule, *sent;      // of each node: its numbers; those that it sends
    const double *units; // of each node
    u32 *state, *probes; // of each node: see above; products so far
    const T *y[2], *of_theta, *of_v; // directions of the steps that are found
    const T *d, *h, *v, *theta, *hess, *product;
    T *old_d, *old_h, *mean, *w; // w: along which a product is computed
    const u32 *links, *linked;
    const T *weights, *table; // table: of given steps
    const u32 *clock;
    u32 m, n, p, row, ahead, flags, of_alpha, of_beta, of_lambda, of_tau; // numbers in a row of the table, and where each is
};

enum { FINDERS = 512 }; // threads of a block

// The sum over all threads of a block, in every one of them.
__device__ __forceinline__ double total(double value) {
    __shared__ double all[FINDERS / 32];
#pragma unroll
    for (int s = 16; s; s >>= 1) value = value + __shfl_xor_sync(~0u, value, s);
    __syncthreads();
    if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = value;
    __syncthreads();
    value = all[threadIdx.x % (FINDERS / 32)];
#pragma unroll
    for (int s = FINDERS / 64; s; s >>= 1) value = value + __shfl_xor_sync(~0u, value, s);
    return value;
}

template <class T> __device__ __forceinline__ double wide_dot(const T *a, const T *b, u32 length) {
    double sum = 0.0;
#pragma unroll 4
    for (u32 j = threadIdx.x; j < length; j += FINDERS) sum = sum + double(a[j]) * double(b[j]);
    return total(sum);
}

template <class T> struct alignas(4 * sizeof(T)) Quad { T at[4]; };

// The largest |entry|; NaN if an entry is not a number or infinite times 0 is none.
template <class T> __device__ __forceinline__ double most(const T *a, u32 length) {
    __shared__ double all[FINDERS / 32];
    T largest = T(0), rest = T(0);
    auto look = [&](T value) {
        const T size = value < T(0) ? -value : value;
        largest = size > largest ? size : largest, rest = rest + value * T(0);
    };
    if (length % 4 == 0) {
#pragma unroll 8
        for (u32 j = threadIdx.x; j < length / 4; j += FINDERS) {
            const Quad<T> some = ((const Quad<T> *)a)[j];
#pragma unroll
            for (int e = 0; e < 4; e++) look(some.at[e]);
        }
    } else
        for (u32 j = threadIdx.x; j < length; j += FINDERS) look(a[j]);
    double size = rest == rest ? double(largest) : __longlong_as_double(0x7ff8000000000000ll);
    auto join = [&](double other) { size = size != size || other <= size ? size : other; };
#pragma unroll
    for (int s = 16; s; s >>= 1) join(__shfl_xor_sync(~0u, size, s));
    __syncthreads();
    if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = size;
    __syncthreads();
    size = all[0];
    for (int j = 1; j < FINDERS / 32; j++) join(all[j]);
    return size;
}

__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); } // one that is not a number is ignored
__device__ __forceinline__ double smaller(double a, double b) { return fmin(a, b); }

// One block for each node. `at`: twice the number of iterations after the clock, and the buffer of y.
template <class T> __device__ void find_steps(const Finding<T> &job, u32 at) {
    using namespace number;
    __shared__ T own[NUMBERS];
    __shared__ u32 now;
    const u32 i = blockIdx.x, t = threadIdx.x, flags = job.flags;
    const usize first = usize(i) * job.p;
    T *const rule = job.rule + usize(i) * NUMBERS;
    const double k = double(job.clock[0] + at / 2 + job.ahead);
    if (t < NUMBERS) own[t] = rule[t];
    if (t == 0) now = job.state[i];
    __syncthreads();
    auto raise = [&](double curvature) { own[CURVATURE] = T(larger(double(own[CURVATURE]), double(T(curvature)))); };
    if (flags & SETTLES) {
        const u32 shown = now;
        __syncthreads(); // before the first thread writes it
        const double curvature = shown & AWAKE ? sqrt(wide_dot(job.product + first, job.product + first, job.p)) : 0.0;
        if (t == 0) {
            if (shown & (TRIGGERED | SCHEDULED)) {
                const double before = own[CURVATURE];
                raise(curvature);
                double wait = own[WAIT], gap = own[GAP];
                if (curvature > 1.02 * before) wait = larger(floor(wait / 2.0), 1.0), gap = 1.0;
                else {
                    if (shown & SCHEDULED) wait = smaller(2.0 * wait, 32.0);
                    if (shown & TRIGGERED) gap = smaller(2.0 * gap, 32.0);
                }
                own[WAIT] = T(wait), own[GAP] = T(gap);
            }
            if (shown & KEEPS) raise(2.0 * double(own[CURVATURE])), own[CUTS] = own[CUTS] + T(1);
            now = 0;
        }
        __syncthreads();
    }
    if (flags & MIXES) {
        // E, m_theta and m_v are mixed; of L, the largest counts.
        const u32 at_number[4] = {SQUARE, SQUARE_THETA, SQUARE_V, CURVATURE};
        if (t < 4 && flags & SENDS << t) {
            const T value = job.sent[i * 4 + t];
            T sum = value;
            for (u32 l = job.links[i]; l < job.links[i + 1]; l++) {
                const T other = job.sent[job.linked[l] * 4 + t];
                if (t < 3) sum = sum + job.weights[l] * (other - value);
                else sum = other > sum ? other : sum;
            }
            own[at_number[t]] = sum > T(0) ? sum : T(0);
        }
        __syncthreads();
    }
    const T *const given = job.table + usize(job.clock[1] + at / 2 + job.ahead) * job.row;
    const bool adapts = flags & ADAPTIVE;
    if (flags & FINDS_BETA) {
        const double square = adapts ? wide_dot(job.of_theta + first, job.of_theta + first, job.p) : 0.0;
        if (t == 0) {
            double beta;
            const double sum = double(own[SQUARE_THETA]) + square, curvature = own[CURVATURE];
            if (adapts) own[SQUARE_THETA] = T(sum), beta = 1.0 / sqrt(sum);
            else beta = curvature == 0.0 ? 1.0 : (flags & GLOBAL ? 0.6 : 1.4) / curvature;
            own[BETA] = flags & GIVEN_BETA ? given[job.of_beta] : T(beta);
        }
        __syncthreads();
    }
    if (flags & FINDS_LAMBDA) {
        const double square = adapts ? wide_dot(job.of_v + first, job.of_v + first, job.p) : 0.0;
        if (t == 0) {
            double lambda;
            const double sum = double(own[SQUARE_V]) + square, curvature = own[CURVATURE];
            if (adapts) own[SQUARE_V] = T(sum), lambda = 1.0 / sqrt(larger(sum, double(own[SQUARE_THETA])));
            else lambda = curvature == 0.0 ? 1.0 : (flags & GLOBAL ? 0.6 : 1.4) / curvature;
            own[LAMBDA] = flags & GIVEN_LAMBDA ? given[job.of_lambda] : T(lambda);
        }
        __syncthreads();
    }
    if (flags & FINDS_ALPHA) {
        const T *const y = job.y[at % 2] + usize(i) * job.n;
        double size = 0.0;
        if (!(flags & GIVEN_ALPHA)) size = adapts ? wide_dot(y, y, job.n) : most(y, job.n);
        if (t == 0) {
            if (flags & GIVEN_ALPHA) own[ALPHA] = given[job.of_alpha];
            else {
                const double mixed = own[SQUARE];
                double square, alpha;
                if (adapts) {
                    square = mixed + size;
                    alpha = 1.0 / sqrt(square * larger(double(own[SQUARE_THETA]), double(own[SQUARE_V])));
                } else {
                    const double count = k + 1.0, along_v = own[ALONG_V];
                    const double of_v = along_v > 0.0 ? double(own[CURVATURE]) / (1.4 * along_v) : 1.0;
                    const double left = larger(double(own[LEFT_D]), double(own[LEFT_H]));
                    const double lag = larger(smaller(smaller(1.0 / (1.0 - left), of_v), 0.25 * count), 1.0);
                    own[LAG] = T(lag);
                    const double r = lag * size * (lag * size);
                    square = mixed + (r - mixed) / count;
                    const double all = sqrt(larger(square, 0.25 * r)) * sqrt(count);
                    alpha = all == 0.0 ? 0.0 : job.units[i] * smaller(count / 32.0, 1.0) / all;
                }
                own[SQUARE] = T(square);
                own[ALPHA] = T(alpha / double(given[job.of_tau]));
            }
        }
        __syncthreads();
    }
    if (flags & NOTES) {
        const double size = sqrt(wide_dot(job.v + first, job.v + first, job.p));
        const double hess = sqrt(wide_dot(job.hess + first, job.hess + first, job.p));
        if (t == 0) {
            const double along_v = size > 0.0 ? hess / size : 0.0;
            raise(along_v);
            own[ALONG_V] = is_finite(along_v) ? T(along_v) : T(0);
        }
        __syncthreads();
    }
    if (flags & SHOWS) {
        const T *const direction[2] = {job.d + first, job.h + first};
        T *const old[2] = {job.old_d + first, job.old_h + first};
        double size[2], old_size[2], product[2], turned[2];
        for (int e = 0; e < 2; e++) {
            size[e] = sqrt(wide_dot(direction[e], direction[e], job.p));
            old_size[e] = sqrt(wide_dot<T>(old[e], old[e], job.p));
            product[e] = wide_dot<T>(direction[e], old[e], job.p);
            const double both = size[e] * old_size[e];
            turned[e] = both == 0.0 ? 0.0 : product[e] / both;
        }
        const bool of_d = turned[0] < turned[1];
        if (t == 0) {
            for (int e = 0; e < 2; e++) {
                const double mean = own[LEFT_D + e], square = old_size[e] * old_size[e], over = square == 0.0 ? 0.0 : product[e] / square;
                const double left = over > 0.0 ? smaller(over, 1.0) : 0.0;
                own[LEFT_D + e] = T(mean + 0.0625 * (left - mean));
            }
            const double since = double(own[SINCE]) + 1.0;
            u32 shown = 0;
            if (smaller(turned[0], turned[1]) < -0.8 && since >= double(own[GAP])) shown |= TRIGGERED;
            if (since >= double(own[WAIT])) shown |= SCHEDULED;
            own[SINCE] = shown ? T(0) : T(since);
            for (int e = 0; e < 2; e++) {
                double growth = 0.0;
                if (old_size[e] > 0.0 && size[e] > 1.5 * old_size[e])
                    growth = larger(double(own[GROWN_D + e]), 1.0) * smaller(size[e] / old_size[e], 3.2);
                own[GROWN_D + e] = T(growth);
                if (growth >= 100.0) shown |= KEEPS;
            }
            now = shown;
        }
        __syncthreads();
        const bool probes = now & (TRIGGERED | SCHEDULED);
        __syncthreads();
        if (probes) {
            const T *const a = direction[of_d ? 0 : 1], *const b = old[of_d ? 0 : 1];
            double sum = 0.0;
            for (u32 j = t; j < job.p; j += FINDERS) {
                const T w = a[j] - b[j];
                job.w[first + j] = w;
                sum = sum + double(w) * double(w);
            }
            const double length = sqrt(total(sum));
            if (length != 0.0) {
                for (u32 j = t; j < job.p; j += FINDERS) job.w[first + j] = T(double(job.w[first + j]) / length);
                if (t == 0) now |= AWAKE, job.probes[i]++;
            }
        }
    }
    if (flags & AVERAGES) {
        const T weight = T(k == 0.0 ? 1.0 : 8.0 / (k + 8.0));
        for (u32 j = t; j < job.p; j += FINDERS) {
            const T mean = job.mean[first + j];
            job.mean[first + j] = mean + weight * (job.theta[first + j] - mean);
        }
    }
    if (flags & LEAVES)
        for (u32 j = t; j < job.p; j += FINDERS) job.old_d[first + j] = job.d[first + j], job.old_h[first + j] = job.h[first + j];
    __syncthreads();
    if (t < NUMBERS) rule[t] = own[t];
    if (t == 0) job.state[i] = now;
    // Nobody reads them in a launch that does not mix.
    if (!(flags & MIXES) && t == 0) {
        T *const to = job.sent + i * 4;
        to[0] = own[SQUARE], to[1] = own[SQUARE_THETA], to[2] = own[SQUARE_V], to[3] = own[CURVATURE];
    }
}
