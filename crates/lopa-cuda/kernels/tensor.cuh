// What the kernels of tensor.cu share: their parameters, draws, and the head of the network.

#include "cores.cuh"

// The rows of a node, minibatch after minibatch: SLOT each of xi1, xi2, sigma1, sigma2 and xi3.
enum { SLOT = 50, ROWS = 5 * SLOT, LAST = 4 * SLOT, BACK = 3 * SLOT };
// Units and classes that there is room for; the unit after the last is 1, for the bias of the head.
enum { UNITS = 28, CLASSES = 10, WIDE = 12, PARTS = (UNITS + 1) * CLASSES };
// Numbers of a group of 16 features: see `place` of src/tensor/layout.rs.
enum { GROUP = 16 * UNITS };

// Everything that a kernel needs; src/tensor/work.rs has the same fields in the same order. Of the shared fields: n has the
// numbers of a node's x in this layout, `linked` the neighbours without the node, `clock` two numbers for each node, `picks`
// 256 samples for each node, row * 16 + label; a row of `table` has 128 * (chunks + 1) bytes.
struct Work : Common<float> {
    u32 *flags; // how far the blocks of a cluster are
    float unit, ridge;
    u32 chunks, none;
};

// Shared memory of a block.
extern __shared__ __align__(1024) u8 sm[];

// ---------------------------------------------------------------- draws

// What a lane draws: sixteen samples of a minibatch, of `count` from `begin` on; twenty lanes draw for a node.
struct Source {
    u32 batch, first, size, begin, count;
};

__device__ __forceinline__ Source source(const Work &job, u32 node, u32 lane) {
    Source of = {min(lane >> 2, 4u), 16 * (lane & 3), 0, 0, 0};
    if (lane >= 20) return of;
    const u32 *own = job.own[job.side[of.batch]];
    of.size = job.size[of.batch];
    of.begin = own[node];
    of.count = own[node + 1] - of.begin;
    return of;
}

// `put` gets places among the rows of a node, and rows of the table with their labels.
template <class Put> __device__ __forceinline__ void draw(const Work &job, const Source &of, u32 node, u32 k, Put put) {
    if (of.first >= of.size) return;
    u32 o[16];
    words(o, job.seed, job.first + node, k + 1, (job.slot[of.batch] << 20) + of.first / 16);
    const u32 *owned = job.owned[job.side[of.batch]] + of.begin;
    const bool full = job.full[of.batch];
#pragma unroll
    for (u32 i = 0; i < 16; i++)
        if (of.first + i < of.size) o[i] = __ldg(owned + (full ? of.first + i : u32(u64(o[i]) * of.count >> 32)));
#pragma unroll
    for (u32 i = 0; i < 16; i++)
        if (of.first + i < of.size) put(of.batch * SLOT + of.first + i, o[i] << 4 | __ldg(job.labels + o[i]));
}

// ---------------------------------------------------------------- the head

// Powers of two by which weights, slopes and errors are multiplied before they are split.
struct Scales {
    float theta, slope, error, score, back; // score, back: what products are multiplied by afterwards
};

// From bounds of |theta| and |v|: activations are at most 1, slopes of a softmax at most 2 in sum.
__device__ __forceinline__ Scales scales(float theta, float v, u32 tanh) {
    Scales s;
    s.theta = power_below(fmaxf(theta, v), 14);
    s.slope = power_below(fmaxf(1.0f, 58.0f * v), 14);
    s.error = power_below((2.0f * theta + 2.0f * v + 58.0f * theta * v) * (tanh ? 1.0f : 0.25f), 14);
    s.score = 1.0f / s.theta;
    s.back = s.error / (s.slope * s.theta);
    return s;
}

// theta and v as second factors, split: 16 bytes {first high, second high, first low, second low} for each lane and
// Q = 0 .. 15. 0 to 3 theta, 4 to 7 v for scores; 8 to 11 theta, 12 to 15 v for errors.
__device__ __forceinline__ uint4 factor(const float *theta, const float *v, int Q, float scale, int g, int t) {
    const float *from = (Q >> 2) & 1 ? v : theta;
    float a0 = 0, a1 = 0, b0 = 0, b1 = 0;
    uint4 o;
    if (Q < 8) {
        const int kk = (Q >> 1) & 1, nt = Q & 1;
        const float *p = from + (16 * kk + 2 * t) * WIDE + 8 * nt + g;
        if (nt == 0 || g < 4) { a0 = p[0]; a1 = p[WIDE]; b0 = p[8 * WIDE]; b1 = p[9 * WIDE]; }
    } else {
        const float *p = from + (8 * (Q & 3) + g) * WIDE + 2 * t;
        const float2 a = *(const float2 *)p;
        a0 = a.x; a1 = a.y;
        if (t < 2) { const float2 b = *(const float2 *)(p + 8); b0 = b.x; b1 = b.y; }
    }
    split(a0 * scale, a1 * scale, o.x, o.z);
    split(b0 * scale, b1 * scale, o.y, o.w);
    return o;
}

// Two rows that a lane has a part of, 8 apart in a tile of 16.
struct Pair {
    int row[2];
    u32 label[2];
    float weight[2]; // of the losses, the largest of the node being 1; 0 where there is no row
};

// The head on 16 rows. `hidden`: activations in the order of accumulators (unit 28 is 1). `store`: activations and
// slopes for d and h go to rows of 144 bytes of shared memory, 64 of them high and 64 low. `errors`: the errors of
// blocks of units from `block0` to `block1` are made, high and low, by half of the tile and block.
__device__ __forceinline__ void head(const float (&hidden)[16], const uint4 *factors, const bool curved, const bool store,
        const bool errors, const int block0, const int block1, const Pair &rows, const Scales &s, u32 classes, u32 tanh,
        u8 *H0, u8 *Q0, const int t, u32 (&eh)[2][4], u32 (&el)[2][4]) {
    u32 hh[2][4], hl[2][4];
#pragma unroll
    for (int nc = 0; nc < 4; nc++) {
        split(hidden[4 * nc], hidden[4 * nc + 1], hh[nc >> 1][2 * (nc & 1)], hl[nc >> 1][2 * (nc & 1)]);
        split(hidden[4 * nc + 2], hidden[4 * nc + 3], hh[nc >> 1][2 * (nc & 1) + 1], hl[nc >> 1][2 * (nc & 1) + 1]);
    }
    float L[2][4] = {}, U[2][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint4 b = factors[i * 32];
        mma(L[i & 1], hh[i >> 1], b.x, b.y); mma(L[i & 1], hl[i >> 1], b.x, b.y); mma(L[i & 1], hh[i >> 1], b.z, b.w);
    }
    if (curved)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint4 b = factors[(4 + i) * 32];
            mma(U[i & 1], hh[i >> 1], b.x, b.y); mma(U[i & 1], hl[i >> 1], b.x, b.y); mma(U[i & 1], hh[i >> 1], b.z, b.w);
        }
    if (store)
#pragma unroll
        for (int nc = 0; nc < 4; nc++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                u8 *to = H0 + r * 8 * 144 + 16 * nc + 4 * t;
                *(u32 *)to = hh[nc >> 1][2 * (nc & 1) + r];
                *(u32 *)(to + 64) = hl[nc >> 1][2 * (nc & 1) + r];
            }
    float of_theta[2][4], of_v[2][4];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int batch = rows.row[r] / SLOT;
        const float weight = rows.weight[r];
        float l[4], p[4], q[4], curve[4];
        bool there[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 c = i < 2 ? 2 * t + i : 6 + i; // of the two more classes of lane 0
            there[i] = (i < 2 || t == 0) && c < classes;
            l[i] = there[i] ? L[i >> 1][2 * r + (i & 1)] * s.score : __int_as_float(0xff800000);
        }
        const float top = quad_max(fmaxf(fmaxf(l[0], l[1]), fmaxf(l[2], l[3])));
#pragma unroll
        for (int i = 0; i < 4; i++) p[i] = there[i] ? __expf(l[i] - top) : 0.0f;
        const float over = __fdividef(1.0f, quad_sum((p[0] + p[1]) + (p[2] + p[3])));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 c = i < 2 ? 2 * t + i : 6 + i;
            p[i] *= over;
            q[i] = (p[i] - (there[i] && rows.label[r] == c ? 1.0f : 0.0f)) * s.slope * weight;
            curve[i] = 0.0f;
        }
        if (curved) {
            const float mean = quad_sum(fmaf(p[0], U[0][2 * r], p[1] * U[0][2 * r + 1]) +
                                        fmaf(p[2], U[1][2 * r], p[3] * U[1][2 * r + 1]));
            const float by = s.score * s.slope * weight;
#pragma unroll
            for (int i = 0; i < 4; i++) curve[i] = p[i] * (U[i >> 1][2 * r + (i & 1)] - mean) * by;
        }
        if (store) {
            u8 *to = Q0 + r * 8 * 144 + 4 * t;
            float c[4];
            u32 high, low;
#pragma unroll
            for (int i = 0; i < 4; i++) c[i] = batch == 0 ? q[i] : 0.0f;
            split(c[0], c[1], high, low); *(u32 *)to = high; *(u32 *)(to + 64) = low;
            split(c[2], c[3], high, low); *(u32 *)(to + 16) = high; *(u32 *)(to + 80) = low;
#pragma unroll
            for (int i = 0; i < 4; i++) c[i] = batch == 1 ? curve[i] : batch == 2 ? -q[i] : 0.0f;
            split(c[0], c[1], high, low); *(u32 *)(to + 32) = high; *(u32 *)(to + 96) = low;
            split(c[2], c[3], high, low); *(u32 *)(to + 48) = high; *(u32 *)(to + 112) = low;
        }
        if (errors)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                of_theta[i >> 1][2 * r + (i & 1)] = batch == 3 ? q[i] : batch == 4 ? -curve[i] : 0.0f;
                of_v[i >> 1][2 * r + (i & 1)] = batch == 4 ? -q[i] : 0.0f;
            }
    }
    if (!errors) return;
    u32 th[4], tl[4], vh[4], vl[4];
#pragma unroll
    for (int i = 0; i < 4; i++) split(of_theta[i >> 1][2 * (i & 1)], of_theta[i >> 1][2 * (i & 1) + 1], th[i], tl[i]);
    if (curved)
#pragma unroll
        for (int i = 0; i < 4; i++) split(of_v[i >> 1][2 * (i & 1)], of_v[i >> 1][2 * (i & 1) + 1], vh[i], vl[i]);
#pragma unroll
    for (int nc = 0; nc < 4; nc++)
        if (nc >= block0 && nc < block1) {
            float d[4] = {};
            uint4 b = factors[(8 + nc) * 32];
            mma(d, th, b.x, b.y); mma(d, tl, b.x, b.y); mma(d, th, b.z, b.w);
            if (curved) {
                b = factors[(12 + nc) * 32];
                mma(d, vh, b.x, b.y); mma(d, vl, b.x, b.y); mma(d, vh, b.z, b.w);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float a = hidden[4 * nc + i];
                d[i] *= s.back * ((tanh ? 1.0f : a) - a * a);
            }
            split(d[0], d[1], eh[0][nc], el[0][nc]);
            split(d[2], d[3], eh[1][nc], el[1][nc]);
        }
}

// Activations times slopes on rows 16 * first to 16 * last: one tile of units 16 * mt ... by columns 8 * nt ...
__device__ __forceinline__ void outer(float (&c)[4], u32 H, u32 Q, int mt, int nt, int first, int last, int lane) {
    const u32 a = H + ((lane >> 4) * 8 + (lane & 7)) * 144 + ((lane >> 3) & 1) * 16 + mt * 32;
    const u32 q = Q + ((lane & 7) + ((lane >> 3) & 1) * 8) * 144 + (lane >> 4) * 64 + nt * 16;
    for (int k = first; k < last; k++) {
        u32 h[4], l[4], b[4];
        transposed(h, a + k * 2304); transposed(l, a + k * 2304 + 64); transposed(b, q + k * 2304);
        mma(c, h, b[0], b[1]); mma(c, l, b[0], b[1]); mma(c, h, b[2], b[3]);
    }
}

// Where entry (u, c) of theta is; unit UNITS is the bias.
__device__ __forceinline__ bool part(const Work &job, u32 u, u32 c, u32 &at) {
    at = (u == UNITS ? job.units : u) * job.classes + c;
    return c < job.classes && (u < job.units || u == UNITS);
}

// The weight of the losses of row r of a node, over the largest of the node, which is `most`.
__device__ __forceinline__ float row_weight(const Work &job, u32 node, u32 r, float &most) {
    most = 0.0f;
#pragma unroll
    for (int b = 0; b < 5; b++) most = fmaxf(most, fabsf(__ldg(job.weights + node * 5 + b)));
    if (!(most > 0.0f)) most = 1.0f;
    const u32 batch = r / SLOT;
    return batch < 5 && r % SLOT < job.size[min(batch, 4u)] ? __ldg(job.weights + node * 5 + batch) / most : 0.0f;
}
