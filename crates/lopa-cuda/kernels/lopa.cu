// One iteration of every node, in plain f32 or f64.
//
// Every sum has one order, which src/emulate.rs repeats on the processor: products are fused only where
// `fma` is written (compile with -fmad=false), nothing is added atomically. Hence a card gives the same
// bits every time, and those of the emulation.
//
//   mix       x, y, z of LoPA (9) to (12), or x and r of D-SOBA, from all neighbours
//   turn      theta and v, and the minibatches of the iteration
//   descend, settle         theta and x of DGD, after its oracle
//   forward   activations of one hidden layer                                  \
//   heads     scores, slopes, curvatures; errors back to the layer             | representation
//   rows      d and h                                                          |
//   backward  s                                                                /
//   scores, linear          d, h and s of hyperparameter
//   whole     mix, turn, scores and linear, one block a node
//   residual, quadratic     d, h and s of quadratic
//   tick      some iterations are over
//   sizes     the largest entry of every variable
//
// Iterations are recorded in some number and launched together. `at` tells a kernel which of them it belongs to, and
// which of the two buffers of x and y it reads: twice the number, and the buffer.
//
// `make` compiles this file into lopa.ptx.

typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;
typedef u64 usize;

enum { TRACKING, LOCAL, ALONE, SOBA, DESCENT };
enum { XI1, XI2, XI3, SIGMA1, SIGMA2 };

// Everything that a kernel needs; src/job.rs has the same fields in the same order.
template <class T> struct Job {
    T *x[2], *y[2], *z, *s, *theta, *v, *d, *h; // y is r in D-SOBA
    const u32 *links, *linked;                  // row i of W: linked[links[i]] ...
    const T *w;
    const T *steps;  // alpha, beta, lambda, gamma, tau of each iteration of the table
    u32 *clock;      // the iteration, its row in the table
    u32 *picks;      // the samples of the five minibatches of each node
    const u32 *own[2], *owned[2]; // of g and of f: node i owns the rows owned[own[i]] ...
    const u32 *labels;
    const void *table; // features, bytes or numbers; rows are `stride` apart, a multiple of 4
    const T *shift;    // as long as a row
    const T *weights; // of the losses, for each node and minibatch
    T *hidden, *slopes, *errors;
    const T *A, *B, *c, *D, *e, *R, *q, *noise_a, *noise_b, *gamma, *phi, *chi;
    T *rest; // D theta - e
    double *largest;
    T unit, ridge;
    u32 m, n, p, scheme, features, stride, units, classes, tanh, outputs, samples;
    u32 size[5], start[5], slot[5], full[5], block[5];
    u32 drawn, blocks, bytes, both, seed[2];
};

__device__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

__device__ float power(int k) { return __int_as_float((k + 127) << 23); }

// A function of its own: inlined wherever it is called, it would make up most of the PTX.
__device__ __noinline__ float exponential(float x) {
    if (!(x > -87.0f)) return x != x ? x : 0.0f;
    if (x > 88.0f) return __int_as_float(0x7f800000);
    float k = rintf(x * 1.44269504f);
    float r = fused(-k, 0.693359375f, x);
    r = fused(-k, -2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fused(p, r, 1.3981999507e-3f);
    p = fused(p, r, 8.3334519073e-3f);
    p = fused(p, r, 4.1665795894e-2f);
    p = fused(p, r, 1.6666665459e-1f);
    p = fused(p, r, 5.0000001201e-1f);
    p = fused(p, r * r, r) + 1.0f;
    int half = (int)k / 2;
    return p * power(half) * power((int)k - half);
}

__device__ __noinline__ double exponential(double x) {
    if (!(x > -708.0)) return x != x ? x : 0.0;
    if (x > 709.0) return __longlong_as_double(0x7ff0000000000000ll);
    double k = rint(x * 1.4426950408889634);
    double r = fused(-k, 6.93147180369123816490e-01, x);
    r = fused(-k, 1.90821492927058770002e-10, r);
    double p = 1.0 / 6227020800.0;
    p = fused(p, r, 1.0 / 479001600.0);
    p = fused(p, r, 1.0 / 39916800.0);
    p = fused(p, r, 1.0 / 3628800.0);
    p = fused(p, r, 1.0 / 362880.0);
    p = fused(p, r, 1.0 / 40320.0);
    p = fused(p, r, 1.0 / 5040.0);
    p = fused(p, r, 1.0 / 720.0);
    p = fused(p, r, 1.0 / 120.0);
    p = fused(p, r, 1.0 / 24.0);
    p = fused(p, r, 1.0 / 6.0);
    p = fused(p, r, 0.5);
    p = fused(p, r, 1.0);
    p = fused(p, r, 1.0);
    int half = (int)k / 2;
    double first = __longlong_as_double((u64)(half + 1023) << 52);
    double second = __longlong_as_double((u64)((int)k - half + 1023) << 52);
    return p * first * second;
}

template <class T> __device__ T sigmoid(T z) { return T(1) / (T(1) + exponential(-z)); }

template <class T> __device__ T activation(T z, u32 tanh) {
    return tanh ? T(1) - T(2) / (exponential(z + z) + T(1)) : sigmoid(z);
}

template <class T> __device__ T slope(T h, u32 tanh) {
    return tanh ? T(1) - h * h : h * (T(1) - h);
}

// Some values, read at once.
template <class T, int COUNT> struct alignas(COUNT == 4 ? (sizeof(T) == 1 ? 4 : 16) : sizeof(T)) Some {
    T at[COUNT];
};

template <class T> using Four = Some<T, 4>;

template <class T> __device__ Four<T> four(const T *from) { return *(const Four<T> *)from; }

// COUNT features of a row from q on, before they are multiplied with `unit`.
template <int COUNT, class T, class S>
__device__ Some<T, COUNT> features(const Job<T> &job, u32 row, u32 q) {
    auto from = (const S *)job.table + usize(row) * job.stride + q;
    Some<T, COUNT> values;
    if (COUNT == 4 && sizeof(S) == 1) {
        u32 word = *(const u32 *)from;
        // 2^23 + byte is a byte before the exponent of 2^23: faster than a conversion, and exact.
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            values.at[e] = T(__uint_as_float(__byte_perm(word, 0x4b000000, 0x7440 + e)) - 8388608.0f);
    } else {
        auto stored = *(const Some<S, COUNT> *)from;
#pragma unroll
        for (int e = 0; e < COUNT; e++) values.at[e] = T(stored.at[e]);
    }
    if (job.shift)
#pragma unroll
        for (int e = 0; e < COUNT; e++) values.at[e] = values.at[e] - job.shift[q + e];
    return values;
}

// Feature q of a row.
template <class T, class S> __device__ T feature(const Job<T> &job, u32 row, u32 q) {
    return features<1, T, S>(job, row, q).at[0] * job.unit;
}

// alpha, beta, lambda, gamma and tau of the iteration.
template <class T> __device__ const T *steps(const Job<T> &job, u32 at) {
    return job.steps + usize(job.clock[1] + at / 2) * 5;
}

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
    T alpha = steps[0], gamma = steps[3], tau = steps[4];
    const T *x = job.x[now], *y = job.y[now];
    usize n = job.n, at = i * n + j;
    T own = x[at], own_y = y[at], s = job.s[at];
    if (job.scheme == SOBA) {
        job.x[1 - now][at] = mixed(job, i, own - alpha * own_y, [&](u32 k) {
            return x[k * n + j] - alpha * y[k * n + j];
        });
        job.y[1 - now][at] = (T(1) - gamma) * own_y + gamma * s;
        return;
    }
    T z = job.z[at], average = s + (T(1) - gamma) * (z - s);
    T wx = own, wy = own_y;
    if (job.scheme == TRACKING) {
        // Both at once: a thread waits for its neighbours once.
        for (u32 link = job.links[i]; link < job.links[i + 1]; link++) {
            usize there = job.linked[link] * n + j;
            wx = wx + job.w[link] * (x[there] - own);
            wy = wy + job.w[link] * (y[there] - own_y);
        }
    } else if (job.scheme == LOCAL) {
        wx = mixed(job, i, own, [&](u32 k) { return x[k * n + j]; });
    }
    job.x[1 - now][at] = job.scheme == ALONE ? own - tau * alpha * own_y
                                             : (T(1) - tau) * own + tau * (wx - alpha * own_y);
    job.y[1 - now][at] = job.scheme == TRACKING ? wy + average - z : average;
    job.z[at] = average;
}

template <class T> __device__ void mix(const Job<T> &job, u32 at) {
    u32 chunks = (job.n + blockDim.x - 1) / blockDim.x;
    u32 i = blockIdx.x / chunks, j = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    if (j < job.n) mix(job, at % 2, steps(job, at), i, j);
}

// One thread an entry of theta or x. The new theta waits in v until all have read the old one.
template <class T> __device__ void descend(const Job<T> &job, u32 at) {
    u32 each = job.p + job.n;
    usize entry = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry >= usize(job.m) * each) return;
    u32 i = entry / each, j = entry % each;
    T alpha = steps(job, at)[0];
    auto moved = [&](const T *from, const T *grad, usize length) {
        usize own = i * length + j;
        return mixed(job, i, from[own], [&](u32 k) { return from[k * length + j]; }) - alpha * grad[own];
    };
    if (j < job.p) {
        job.v[usize(i) * job.p + j] = moved(job.theta, job.d, job.p);
    } else {
        j -= job.p;
        T *to = job.x[1 - at % 2];
        const T *x = job.x[at % 2];
        to[usize(i) * job.n + j] = job.both ? moved(x, job.s, job.n) : x[usize(i) * job.n + j];
    }
}

template <class T> __device__ void settle(const Job<T> &job) {
    usize at = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < usize(job.m) * job.p) job.theta[at] = job.v[at];
}

__device__ u32 turned(u32 a, int bits) { return a << bits | a >> (32 - bits); }

__device__ void quarter(u32 *a, int i, int j, int k, int l) {
    a[i] += a[j]; a[l] = turned(a[l] ^ a[i], 16);
    a[k] += a[l]; a[j] = turned(a[j] ^ a[k], 12);
    a[i] += a[j]; a[l] = turned(a[l] ^ a[i], 8);
    a[k] += a[l]; a[j] = turned(a[j] ^ a[k], 7);
}

// Sixteen words of ChaCha8, at the address that crates/lopa/src/math/random.rs defines.
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

// Entry `at` of theta and v.
template <class T> __device__ void turn(const Job<T> &job, const T *steps, usize at, T &theta, T &v) {
    job.theta[at] = theta = job.theta[at] - steps[1] * job.d[at];
    job.v[at] = v = job.v[at] - steps[2] * job.h[at];
}

// Sixteen samples of the minibatches of node i, whose rows go to `picks`.
template <class T> __device__ void draw(const Job<T> &job, u32 k, u32 i, u32 b, u32 *picks) {
    u32 batch = 0;
    while (batch < 4 && b >= job.block[batch + 1]) batch++;
    b -= job.block[batch];
    u32 side = batch >= SIGMA1, first = job.own[side][i], count = job.own[side][i + 1] - first;
    u32 word[16];
    words(job.seed, i, k + 1, (job.slot[batch] << 20) + b, word);
    u32 most = job.size[batch] - b * 16;
    // All are asked for before the first is written.
#pragma unroll
    for (u32 t = 0; t < 16; t++) {
        u32 index = job.full[batch] ? min(b * 16 + t, count - 1) : u32(u64(word[t]) * count >> 32);
        word[t] = job.owned[side] ? __ldg(job.owned[side] + first + index) : index;
    }
#pragma unroll
    for (u32 t = 0; t < 16; t++)
        if (t < most) picks[job.start[batch] + b * 16 + t] = word[t];
}

template <class T> __device__ void turn(const Job<T> &job, u32 at) {
    usize entry = usize(blockIdx.x) * blockDim.x + threadIdx.x, inner = usize(job.m) * job.p;
    if (entry < inner) {
        T theta, v;
        if (job.scheme != DESCENT) turn(job, steps(job, at), entry, theta, v);
        return;
    }
    entry -= inner;
    if (entry < usize(job.m) * job.blocks)
        draw(job, job.clock[0] + at / 2, entry / job.blocks, entry % job.blocks,
             job.picks + entry / job.blocks * job.drawn);
}

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
    u32 ty = t / 8 * 4, tx = t % 8 * 4;
    const T *x = job.x[now] + usize(i) * job.n;
    const u32 *picks = job.picks + usize(i) * job.drawn;
    bool wide = sizeof(S) == 1 && job.features % 16 == 0;
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
            ahead[e] = q <= job.features && unit < job.units ? x[usize(q) * job.units + unit] : T(0);
        }
    };
    load(0);
    for (u32 q0 = 0; q0 <= job.features; q0 += 32) {
        if (wide) {
#pragma unroll
            for (int e = 0; e < 16; e++)
                rows[half + e][t / 2] = feature_of(job, bytes, q0 + half, e);
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
        u32 most = min(32u, job.features + 1 - q0);
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

// Loops over classes are unrolled where there are few in f32, so that scores stay in registers.
#define UNROLLED _Pragma("unroll (MOST <= 16 && sizeof(T) == 4 ? MOST : 1)")

// Scores to probabilities.
template <int MOST, class T> __device__ void softmax(T *z, u32 classes) {
    T top = z[0], sum = T(0);
    UNROLLED for (u32 c = 1; c < MOST; c++) if (c < classes) top = z[c] > top ? z[c] : top;
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
        z[c] = exponential(z[c] - top);
        sum = sum + z[c];
    }
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) z[c] = z[c] / sum;
}

// a to the weighted curvature of the loss along it, given probabilities.
template <int MOST, class T> __device__ void curve(const T *p, T *a, T weight, u32 classes) {
    T mean = T(0);
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) mean = fused(p[c], a[c], mean);
    UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) a[c] = weight * p[c] * (a[c] - mean);
}

// Probabilities to weighted slopes.
template <int MOST, class T> __device__ void slopes(T *p, u32 label, T weight, u32 classes) {
    UNROLLED for (u32 c = 0; c < MOST; c++)
        if (c < classes) p[c] = weight * (c == label ? p[c] - T(1) : p[c]);
}

// One thread a row, blocks of one node; UNITS is the most units, whose weights are kept at hand.
template <int MOST, int UNITS, class T> __device__ void heads(const Job<T> &job) {
    __shared__ __align__(16) T near_theta[(UNITS + 1) * MOST], near_v[(UNITS + 1) * MOST];
    u32 down = (job.drawn + blockDim.x - 1) / blockDim.x, i = blockIdx.x / down;
    u32 r = blockIdx.x % down * blockDim.x + threadIdx.x, batch = 0;
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
    u32 label = job.labels[job.picks[at]];
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
    softmax<MOST>(p, classes);
    if (batch == XI3 || batch == SIGMA1) weight = -weight;
    if (curved) curve<MOST>(p, a, weight, classes);
    slopes<MOST>(p, label, weight, classes);
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
    const T *h = job.hidden + (usize(i) * job.units + u) * job.drawn;
    const T *by = job.slopes + usize(i) * job.drawn * job.classes + c;
    auto add = [&](u32 batch, T sum) {
#pragma unroll 8
        for (u32 r = job.start[batch]; r < job.start[batch] + job.size[batch]; r++)
            sum = fused(u < job.units ? h[r] : T(1), by[usize(r) * job.classes], sum);
        return sum;
    };
    job.d[at] = add(XI1, T(0)) + job.ridge * job.theta[at];
    job.h[at] = add(SIGMA1, add(XI2, T(0))) + job.ridge * job.v[at];
}

// s: 64 features by 32 units in a block; the last feature is 1, for the bias.
template <class T, class S> __device__ void backward(const Job<T> &job) {
    __shared__ __align__(16) T rows[32][68], errors[32][32];
    u32 down = (job.features + 64) / 64, across = (job.units + 31) / 32;
    u32 i = blockIdx.x / (down * across), rest = blockIdx.x % (down * across);
    u32 q0 = rest % down * 64, unit0 = rest / down * 32, t = threadIdx.x;
    u32 ty = t / 8 * 4, tx = t % 8 * 4, count = job.size[SIGMA2] + job.size[XI3];
    const u32 *picks = job.picks + usize(i) * job.drawn;
    const T *from = job.errors + usize(i) * count * job.units;
    bool wide = sizeof(S) == 1 && job.features % 16 == 0;
    auto pick = [&](u32 r) {
        return r < job.size[SIGMA2] ? picks[job.start[SIGMA2] + r]
                                    : picks[job.start[XI3] + r - job.size[SIGMA2]];
    };
    T sum[4][4] = {};
    for (u32 r0 = 0; r0 < count; r0 += 32) {
        if (wide) {
            u32 r = r0 + t / 4, q = q0 + t % 4 * 16;
            uint4 bytes = sixteen(job, r < count, r < count ? pick(r) : 0, q);
#pragma unroll
            for (int e = 0; e < 16; e++) rows[t / 4][t % 4 * 16 + e] = feature_of(job, bytes, q, e);
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
            if (q0 + ty + a <= job.features && unit0 + tx + b < job.units)
                job.s[usize(i) * job.n + usize(q0 + ty + a) * job.units + unit0 + tx + b] = sum[a][b];
}

__device__ double passed(double a, int lane) { return __shfl_xor_sync(~0u, a, lane); }
__device__ float passed(float a, int lane) { return __shfl_xor_sync(~0u, a, lane); }

// The sum over the lanes of a warp, in pairs.
template <class T> __device__ T summed(T a) {
    for (int lane = 16; lane > 0; lane /= 2) a = a + passed(a, lane);
    return a;
}

// The same as a function of its own, where there are many sums: inlined, they would make up most of the PTX.
template <class T> __device__ __noinline__ T summed_there(T a) { return summed(a); }

// Rows that a warp takes at once, and features that a thread does.
#define TOGETHER(most) (most <= 16 ? 4 : 1)
#define ABREAST(most) (most == 1 ? 4 : 1)

// What a linear classifier of one node works on: in global memory, or near; there, zeros come after the last weight.
template <class T, bool NEAR> struct Linear {
    T *theta, *v, *slopes; // slopes of the losses of each row, times `unit`
    u32 *picks;
};

template <class T> __device__ Linear<T, false> far(const Job<T> &job, u32 i) {
    return {job.theta + usize(i) * job.p, job.v + usize(i) * job.p,
            job.slopes + usize(i) * job.drawn * job.classes, job.picks + usize(i) * job.drawn};
}

// The scores of some rows, for all classes of one or two sets of weights. Each lane has four features of 128.
template <int SETS, int MOST, bool NEAR, class T, class S>
__device__ void products(const Job<T> &job, const u32 *pick, const T *const *weights,
                         T (&out)[SETS][TOGETHER(MOST)][MOST]) {
    constexpr int ROWS = TOGETHER(MOST), WIDE = ABREAST(MOST);
    u32 classes = MOST == 1 ? 1 : job.classes;
#pragma unroll
    for (int k = 0; k < SETS; k++)
#pragma unroll
        for (int j = 0; j < ROWS; j++) UNROLLED for (u32 c = 0; c < MOST; c++) out[k][j][c] = T(0);
#pragma unroll (MOST == 1 ? 4 : 1)
    for (u32 q = threadIdx.x % 32 * 4; q < job.features; q = q % 4 + WIDE < 4 ? q + WIDE : q / 4 * 4 + 128) {
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
#pragma unroll
        for (int j = 0; j < ROWS; j++)
            UNROLLED for (u32 c = 0; c < MOST; c++)
                if (c < classes)
                    out[k][j][c] = (MOST == 1 ? summed(out[k][j][c]) : summed_there(out[k][j][c])) * job.unit;
}

// Slopes of the losses: the rows of node i from r0 on, by a warp.
template <int MOST, class S, class T, bool NEAR>
__device__ void scores(const Job<T> &job, const Linear<T, NEAR> &own, u32 i, u32 r0) {
    constexpr int ROWS = TOGETHER(MOST);
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
        T out[2][ROWS][1];
        const T *weights[2] = {own.theta, own.v};
        if (curved) {
            products<2, 1, NEAR, T, S>(job, pick, weights, out);
        } else {
            T some[1][ROWS][1];
            products<1, 1, NEAR, T, S>(job, pick, weights, some);
#pragma unroll
            for (int j = 0; j < ROWS; j++) out[0][j][0] = some[0][j][0], out[1][j][0] = T(0);
        }
        // A lane a row.
        T p = out[0][0][0], a = out[1][0][0];
        u32 of = batch[0], row = pick[0];
#pragma unroll
        for (int j = 1; j < ROWS; j++)
            if (lane == j) p = out[0][j][0], a = out[1][j][0], of = batch[j], row = pick[j];
        if (lane >= ROWS || r0 + lane >= job.drawn || of == XI3 || of == SIGMA2) return;
        T weight = job.weights[usize(i) * 5 + of];
        T sign = job.labels[row] == 0 ? T(-1) : T(1);
        T part = sigmoid(of == XI2 ? -(p < T(0) ? -p : p) : sign * p);
        T slope = of == XI2 ? a * (weight * part * (T(1) - part)) : part * (sign * (of == SIGMA1 ? -weight : weight));
        own.slopes[r0 + lane] = slope * job.unit;
    } else {
        T out[1][ROWS][MOST], a[ROWS][MOST];
        const T *weights[1] = {own.v};
        if (curved) {
            products<1, MOST, NEAR, T, S>(job, pick, weights, out);
#pragma unroll
            for (int j = 0; j < ROWS; j++) UNROLLED for (u32 c = 0; c < MOST; c++) a[j][c] = out[0][j][c];
        }
        weights[0] = own.theta;
        products<1, MOST, NEAR, T, S>(job, pick, weights, out);
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
    scores<MOST, S>(job, far(job, i), i, group % groups * TOGETHER(MOST));
}

// Some features of node i: d and s, or h.
template <int MOST, class S, class T, bool NEAR>
__device__ void linear(const Job<T> &job, const Linear<T, NEAR> &own, u32 now, u32 i, u32 q0, bool of_h) {
    constexpr int WIDE = ABREAST(MOST);
    u32 classes = MOST == 1 ? 1 : job.classes, most = min(u32(WIDE), job.features - q0);
    usize at = usize(i) * job.features + q0;
    const T *from = of_h ? own.v : own.theta;
    T strength[WIDE], sum[WIDE][MOST], more[WIDE][MOST];
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        T half = exponential(e < most ? job.x[now][at + e] : T(0));
        strength[e] = half + half;
        UNROLLED for (u32 c = 0; c < MOST; c++) {
            sum[e][c] = e < most && c < classes ? strength[e] * from[(q0 + e) * classes + c] : T(0);
            more[e][c] = T(0);
        }
    }
    auto add = [&](u32 r, T (&sum)[WIDE][MOST]) {
        auto values = features<WIDE, T, S>(job, own.picks[r], q0);
        UNROLLED for (u32 c = 0; c < MOST; c++) if (c < classes) {
            T slope = own.slopes[r * classes + c];
#pragma unroll
            for (int e = 0; e < WIDE; e++) sum[e][c] = fused(values.at[e], slope, sum[e][c]);
        }
    };
    u32 first = job.start[of_h ? XI2 : XI1], size = job.size[of_h ? XI2 : XI1];
#pragma unroll (MOST == 1 ? 8 : 2)
    for (u32 r = 0; r < size; r++) add(first + r, sum);
    if (of_h)
#pragma unroll (MOST == 1 ? 8 : 2)
        for (u32 r = 0; r < job.size[SIGMA1]; r++) add(job.start[SIGMA1] + r, more);
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        if (e >= most) break;
        usize base = (at + e) * classes;
        T *to = of_h ? job.h : job.d;
        UNROLLED for (u32 c = 0; c < MOST; c++)
            if (c < classes) to[base + c] = of_h ? sum[e][c] + more[e][c] : sum[e][c];
        if (of_h) continue;
        T dots = T(0);
        for (u32 c = 0; c < classes; c++) {
            u32 weight = (q0 + e) * classes + c;
            dots = fused(own.theta[weight], own.v[weight], dots);
        }
        job.s[at + e] = -strength[e] * dots;
    }
}

template <int MOST, class T, class S> __device__ void linear(const Job<T> &job, u32 now) {
    u32 wide = (job.features + ABREAST(MOST) - 1) / ABREAST(MOST);
    usize at = usize(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= usize(job.m) * 2 * wide) return;
    u32 i = at / (2 * wide), q = at % (2 * wide);
    linear<MOST, S>(job, far(job, i), now, i, q % wide * ABREAST(MOST), q >= wide);
}

// An iteration of node i with one class, all of which is near. Of others it reads x and y of the iteration before,
// which nobody writes meanwhile.
template <class T, class S> __device__ void whole(const Job<T> &job, u32 at) {
    extern __shared__ __align__(16) u8 room[];
    T *theta = (T *)room, *v = theta + job.stride, *slopes = v + job.stride;
    Linear<T, true> near = {theta, v, slopes, (u32 *)(slopes + job.drawn)};
    u32 i = blockIdx.x, t = threadIdx.x, all = blockDim.x;
    const T *now = steps(job, at);
    for (u32 b = t; b < job.blocks; b += all) draw(job, job.clock[0] + at / 2, i, b, near.picks);
    for (u32 j = t; j < job.stride; j += all) {
        theta[j] = v[j] = T(0);
        if (j < job.p) turn(job, now, usize(i) * job.p + j, theta[j], v[j]);
    }
    for (u32 j = t; j < job.n; j += all) mix(job, at % 2, now, i, j);
    __syncthreads();
    for (u32 r = t / 32 * TOGETHER(1); r < job.drawn; r += all / 32 * TOGETHER(1))
        scores<1, S>(job, near, i, r);
    __syncthreads();
    u32 wide = job.stride / ABREAST(1);
    for (u32 q = t; q < 2 * wide; q += all)
        linear<1, S>(job, near, 1 - at % 2, i, q % wide * ABREAST(1), q >= wide);
}

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
        job.h[row] = a * dot(job.A + row * p, v, p) - (back + mean(SIGMA1, job.phi, p, j));
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

template <class T> __device__ void tick(const Job<T> &job, u32 count) {
    if (threadIdx.x < 2) job.clock[threadIdx.x] += count;
}

// The largest entry of a variable of a node, one block each; NaN if one is not finite.
template <class T> __device__ void sizes(const Job<T> &job, u32 now) {
    __shared__ double most[128];
    u32 i = blockIdx.x / 8, which = blockIdx.x % 8, t = threadIdx.x;
    const T *all[8] = {job.theta, job.d, job.v, job.h, job.s, job.z, job.y[now], job.x[now]};
    usize length = which < 4 ? job.p : job.n;
    const T *values = all[which];
    double largest = 0;
    if (values)
        for (usize j = t; j < length; j += 128) {
            double value = double(values[i * length + j]);
            if (value < 0) value = -value;
            if (!(value <= 1.7976931348623157e308)) value = __longlong_as_double(0x7ff8000000000000ll);
            largest = largest != largest || value <= largest ? largest : value;
        }
    most[t] = largest;
    __syncthreads();
    if (t == 0) {
        for (int j = 1; j < 128; j++)
            if (largest == largest && !(most[j] <= largest)) largest = most[j];
        job.largest[blockIdx.x] = largest;
    }
}

#define WIDE_ENTRY(threads, name, T, call) \
    extern "C" __global__ void __launch_bounds__(threads) name(const Job<T> job, u32 at) { call; }
#define ENTRY(name, T, call) WIDE_ENTRY(128, name, T, call)
// For up to this many classes, on bytes or numbers.
#define LINEAR(most, end, T) \
    ENTRY(scores_bytes_##most##_##end, T, (scores<most, T, u8>(job))) \
    ENTRY(scores_##most##_##end, T, (scores<most, T, T>(job))) \
    ENTRY(linear_bytes_##most##_##end, T, (linear<most, T, u8>(job, at % 2))) \
    ENTRY(linear_##most##_##end, T, (linear<most, T, T>(job, at % 2)))
#define ENTRIES(end, T) \
    ENTRY(mix_##end, T, mix(job, at)) \
    ENTRY(descend_##end, T, descend(job, at)) \
    ENTRY(settle_##end, T, settle(job)) \
    ENTRY(turn_##end, T, turn(job, at)) \
    ENTRY(forward_bytes_##end, T, (forward<T, u8>(job, at % 2))) \
    ENTRY(forward_##end, T, (forward<T, T>(job, at % 2))) \
    ENTRY(heads_##end, T, (heads<64, 0>(job))) \
    ENTRY(rows_##end, T, rows(job)) \
    ENTRY(backward_bytes_##end, T, (backward<T, u8>(job))) \
    ENTRY(backward_##end, T, (backward<T, T>(job))) \
    LINEAR(1, end, T) LINEAR(16, end, T) LINEAR(64, end, T) \
    WIDE_ENTRY(512, whole_bytes_##end, T, (whole<T, u8>(job, at))) \
    WIDE_ENTRY(512, whole_##end, T, (whole<T, T>(job, at))) \
    ENTRY(residual_##end, T, residual(job)) \
    ENTRY(quadratic_##end, T, quadratic(job, at % 2)) \
    ENTRY(tick_##end, T, tick(job, at)) \
    ENTRY(sizes_##end, T, sizes(job, at))

ENTRY(heads_16_f32, float, (heads<16, 256>(job)))
ENTRIES(f32, float)
ENTRIES(f64, double)
