// What all kernels share: their first parameters, sums of a listed rule, the largest entries of variables.

#pragma once

typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;
typedef u64 usize;

enum { TRACKING, LOCAL, ALONE, SOBA, LISTED };

// The first parameters of every kernel; src/job.rs has the same fields in the same order.
template <class T> struct Common {
    T *x[2], *y[3], *z, *s, *theta, *v, *d, *h; // y is r in D-SOBA
    const u32 *links, *linked;                  // row i of W: linked[links[i]] ...; above m: nodes of other processes
    const T *w;
    const T *steps; // alpha, beta, lambda, gamma, tau of each iteration of the table
    u32 *clock;     // the iteration, its row in the table
    u32 *picks;     // of each node: the samples of its minibatches
    const u32 *own[2], *owned[2]; // of g and of f: node i owns the rows owned[own[i]] ...
    const u32 *labels;
    const u8 *table;  // features
    const T *weights; // of the losses, for each node and minibatch
    const T *found;   // the numbers of each node's rule for step sizes, if there is one
    T *hess;          // the product with v in h, if it is wanted
    const u32 *awake; // of an evaluation of some nodes: whether each is one of them
    u32 m, n, p, scheme, features, stride, units, classes, tanh, outputs, samples, bytes, drawn, blocks;
    u32 size[5], start[5], slot[5], full[5], block[5], side[5]; // of each minibatch; block: of 16 samples
    u32 seed[2];
    u32 first; // the number of node 0 in the network: nodes before it are in other processes
};

// The numbers of a node's rule for step sizes; crates/lopa-core/src/algorithms/parts/steps.rs has the same.
namespace number {
enum { CURVATURE, SQUARE, SQUARE_THETA, SQUARE_V, WAIT, GAP, SINCE, GROWN_D, GROWN_H, CUTS, ALPHA, BETA, LAMBDA, LEFT_D, LEFT_H, ALONG_V, LAG, NUMBERS };
}

// alpha, beta and lambda of node i, from `given` if there is no rule.
template <class T> __device__ __forceinline__ const T *steps_of(const Common<T> &job, u32 i, const T *given) {
    return job.found ? job.found + usize(i) * number::NUMBERS + number::ALPHA : given;
}

// Whether an evaluation leaves node i out.
template <class T> __device__ __forceinline__ bool asleep(const Common<T> &job, u32 i) { return job.awake && !(job.awake[i] & 1); }

// ---------------------------------------------------------------- sums

// An array, or the mixture of it over the row of W, times a factor; src/list.rs has the same fields.
template <class T> struct Part {
    const T *from;
    u32 mixed, factor;
};

// to = the sum of these parts.
template <class T> struct Sum {
    T *to;
    u32 first, last;
};

template <class T> struct Sums {
    const Sum<T> *sums;
    const Part<T> *parts;
    const u32 *links, *linked;
    const T *w;
    const T *factors; // of each iteration of the table
    const u32 *clock;
    u32 m, each, count, row; // nodes, numbers of a node, sums, factors of an iteration
};

// One thread for an entry of all sums, in order. Arrays that are mixed are not written: their new values go to a second
// buffer. `at`: twice the number of iterations after the clock.
template <class T> __device__ __forceinline__ void update(const Sums<T> &job, u32 at) {
    const usize entry = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry >= usize(job.m) * job.each) return;
    const u32 i = entry / job.each, j = entry % job.each, begin = job.links[i], end = job.links[i + 1];
    const T *factors = job.factors + usize(job.clock[1] + at / 2) * job.row;
    for (u32 s = 0; s < job.count; s++) {
        const Sum<T> sum = job.sums[s];
        T total = T(0);
        for (u32 q = sum.first; q < sum.last; q++) {
            const Part<T> part = job.parts[q];
            const T own = part.from[entry];
            T value = own;
            if (part.mixed)
                for (u32 l = begin; l < end; l++) value = value + job.w[l] * (part.from[usize(job.linked[l]) * job.each + j] - own);
            value = factors[part.factor] * value;
            total = q == sum.first ? value : total + value;
        }
        sum.to[entry] = total;
    }
}

// ---------------------------------------------------------------- other processes

// Some numbers of an array: all of a node.
template <class T> struct Span {
    T *at;
    usize start; // in `packed`
    u32 length, none;
};

template <class T> struct Spans {
    const Span<T> *rows;
    T *packed;
    u32 chunks, none; // blocks of a row
};

// Between rows of arrays and one piece of memory: what other processes need, or what they have sent (`in`).
template <class T> __device__ __forceinline__ void carry(const Spans<T> &job, u32 in) {
    const Span<T> row = job.rows[blockIdx.x / job.chunks];
    const u32 j = blockIdx.x % job.chunks * blockDim.x + threadIdx.x;
    if (j >= row.length) return;
    if (in) row.at[j] = job.packed[row.start + j];
    else job.packed[row.start + j] = row.at[j];
}

// ---------------------------------------------------------------- sizes

template <class T> struct Sizes {
    const T *values;
    double *largest;
    u32 length, apart; // numbers of a node; from one node's place in `largest` to the next
};

__device__ __forceinline__ bool is_finite(float a) { return fabsf(a) <= 3.4028235e38f; }
__device__ __forceinline__ bool is_finite(double a) { return fabs(a) <= 1.7976931348623157e308; }

// The largest entry of a variable, one block for each node; NaN if one is not finite.
template <class T> __device__ __forceinline__ void sizes(const Sizes<T> &job) {
    __shared__ double all[128];
    const u32 t = threadIdx.x;
    const T *values = job.values + usize(blockIdx.x) * job.length;
    double largest = 0.0;
    for (u32 j = t; j < job.length; j += 128) {
        const T value = values[j];
        const double size = is_finite(value) ? fabs(double(value)) : __longlong_as_double(0x7ff8000000000000ll);
        largest = largest != largest || size <= largest ? largest : size;
    }
    all[t] = largest;
    __syncthreads();
    if (t == 0) {
        for (int j = 1; j < 128; j++)
            if (largest == largest && !(all[j] <= largest)) largest = all[j];
        job.largest[usize(blockIdx.x) * job.apart] = largest;
    }
}
