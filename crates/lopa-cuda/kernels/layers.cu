// One iteration of every node of `representation`, `hyperparameter` and `hyper-cleaning` in f32 on the tensor cores of any card from
// sm_80 on: any number of hidden layers, none in a linear model, biases or none, any activation, any loss.
//
//   draw, update, find, tick, carry, sizes    as in lopa.cu
//   move       as in lopa.cu; it also finds the largest entries of theta and v
//   tops       the same where no `move` comes before
//   halves     theta, v and x split
//   move_split      move and halves in one
//   forward    inputs of a layer times its weights: activations
//   head       the last of them, or features, times theta and v: scores, and from these the slopes of the losses
//   outer      activations or features, transposed, times slopes: d and h
//   single, chunks    d and h of a linear model with one column of weights
//   errors     slopes times theta and v, or errors of the layer above times its weights, both times the activation's slope
//   backward   inputs of a layer, transposed, times its errors: s
//   crossed, cleaned    s of a linear model, where x has entries for groups or columns, and for samples; halves and move_split: for features
//
// Tensor cores multiply halves (11 bits) and add in f32. The numbers of a matrix are scaled by a power of two to at most 2^14 per
// node, then split into a high and a low half, 22 bits together. High times high, high times low and low times high are three
// products in place of one, and give almost the precision of f32. A byte is a half as it is. With `run.precision = "tf32"` there
// are high halves only. Sums have a fixed order, except within a tensor core.
//
// A kernel needs the power of two before it has computed the numbers, and takes it from a bound: the largest entries of the
// factors, multiplied. The bound may be 2^12 times too large without loss, since halves have bits down to 2^-24.
//
// Minibatches are in the order xi1, xi2, sigma1 (the front), sigma2, xi3 (the back). Theta and v are the even and the odd columns
// of one matrix. Slopes of the back have the same columns, since they are multiplied by it; slopes of the front have a column per
// class. A row has 32 high halves, then the 32 low halves of the same numbers, and so on; in tf32 high halves only. It ends with
// zeros, up to a whole number of 128 bytes. The activation after the last unit is 1, for the bias.
//
// `make` compiles this file into layers.ptx.lzma and, for Hopper cards, into hopper.cubin.lzma. On those, four warps multiply together
// (warpgroups.cuh), and tiles can be wider.

#include "crossed.cuh"
#include "instructions.cuh"
#include "losses.cuh"
#include "move.cuh"
#include "steps.cuh"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "warpgroups.cuh"
enum { HOPPER = 1 };
// src/card.rs starts kernels early; each waits here for the one before it. What still earlier kernels wrote may be read before,
// since the one before has waited for them.
__device__ __forceinline__ void wait_for_last() { asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n" ::: "memory"); }
#else
enum { HOPPER = 0 };
__device__ __forceinline__ void wait_for_last() {}
__device__ __forceinline__ void async_fence() {}
template <int N> __device__ __forceinline__ void multiplied() {}
#endif

// Words per node: the largest |entry| of a matrix (TOP, as the bits of a number) or a bound of it, and the power of two it was scaled
// by (BY). HEAD is theta and v as the products need them; TURN the same as `move` leaves them, in the word after its iteration, modulo
// 3; DIRECTION d and h, in the word of the buffer that x was read from; TARGET never changes. Those of the layers begin at LAYERS, OF_LAYER
// each; WEIGHT has a word for each buffer of x. src/layers/shape.rs has the same places.
enum { HEAD_TOP, HEAD_BY, TURN_TOP, DIRECTION_TOP = TURN_TOP + 3, TARGET_TOP = DIRECTION_TOP + 2, SLOPE_TOP, SLOPE_BY, LAYERS };
enum { HIDDEN_TOP, HIDDEN_BY, ERROR_TOP, ERROR_BY, WEIGHT_TOP, OF_LAYER = WEIGHT_TOP + 2 };

// A product for all nodes, in up to three parts with factors and results of their own; src/layers/product.rs has the same fields
// in the same order. Lengths are in bytes.
struct Product {
    const u8 *left, *right;   // rows of halves, or of bytes
    const u32 *picks;         // the numbers of the rows of `left`, if they are not one after the other
    u8 *to[3];                // numbers, or halves
    const u8 *with[3];        // activations whose slopes are wanted; theta or v
    const float *left_by, *right_by; // what factors of each node were multiplied by; none: `left_is`, `right_is`
    float *to_by;             // the same of results
    const float *with_by;
    const u32 *samples, *labels;     // of the losses: those of the rows; as in `Job`
    const float *targets, *weights;
    const u32 *target_top;
    const u32 *left_top, *right_top; // where `to_by` follows from them: the largest of factors; none: `left_most`
    u32 *to_top;              // where that of results is wanted
    const float *x[2];        // of a linear model, where strengths or weights depend on it
    const u32 *group;
    float *adds;              // what a sample adds to its entry of s
    float *sums;              // of each node and part, where the head has several
    const u32 *awake;
    usize right_node, to_node, with_node; // from one node to the next
    usize right_first[3];     // where the second factor of a part begins
    u32 parts, down, across, deep[3]; // results; terms of a sum; of the head: terms, and those of a part
    u32 each, first[3];       // rows of a node in `left` (or in `picks`), and the first that is used
    u32 left_row, right_row, to_row, with_row, sums_row; // from one row to the next, the last in numbers
    u32 right_behind, to_behind;               // from a high half to the low one; not of results other than slopes
    u32 even;                 // numbers of results are at multiples of sixteen bytes in fours
    u32 stages;               // how many fit into shared memory: 3, 4 or 6
    u32 start[5], loss;
    u32 activation, bias, many; // bias: the row of the second factor after the last is added
    u32 fresh;                // the kernel before has drawn the rows
    u32 chunks;               // of the rows of a part, where there is one column of weights
    u32 per, n, offset;       // as in `Job`
    float unit, ridge;        // what sums of bytes are multiplied by
    float left_is, right_is, left_most, delta;
};

// The most stages that are copied before the first is used.
enum { AHEAD = 5 };

extern __shared__ __align__(1024) u8 room[];

__device__ __forceinline__ bool both_halves() { return halves() == 2; }

// What x is multiplied by.
#define WEIGHTS 64.0f

// The power of two for numbers up to `bound`. The inverse of a product of two of them is still finite.
__device__ __forceinline__ float scale(float bound) { return fminf(fmaxf(power_below(bound, 14), 0x1p-50f), 0x1p60f); }
__device__ __forceinline__ float top_of(const u32 *top, usize at) { return __uint_as_float(top[at]); }

// Terms per stage: 32 with two halves each, or 64 with one.
__device__ __forceinline__ u32 depth() { return both_halves() ? 32 : 64; }
// Where the high half of a column is in a row, and how far behind it the low one is.
// Rows of at most 32 columns that are second factors only may be narrower: their low halves are nearer.
enum { BEHIND = 64 };
__device__ __forceinline__ u32 place_of(u32 column) { return both_halves() ? column / 32 * 128 + column % 32 * 2 : column * 2; }
// Bytes of a row.
__device__ __forceinline__ u32 row_of(u32 columns) { return (columns + depth() - 1) / depth() * 128; }

// Eight numbers.
struct Eight { float at[8]; };
__device__ __forceinline__ Eight eight(const u8 *from, float by) {
    const uint4 high = *(const uint4 *)from, low = both_halves() ? *(const uint4 *)(from + BEHIND) : make_uint4(0, 0, 0, 0);
    Eight o;
    const u32 h[4] = {high.x, high.y, high.z, high.w}, l[4] = {low.x, low.y, low.z, low.w};
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const float2 a = __half22float2(*(const __half2 *)&h[e]), b = __half22float2(*(const __half2 *)&l[e]);
        o.at[2 * e] = (a.x + b.x) * by, o.at[2 * e + 1] = (a.y + b.y) * by;
    }
    return o;
}
__device__ __forceinline__ void keep(u8 *to, const Eight &from, float by, u32 behind = BEHIND) {
    u32 h[4], l[4];
#pragma unroll
    for (int e = 0; e < 4; e++) split(from.at[2 * e] * by, from.at[2 * e + 1] * by, h[e], l[e]);
    *(uint4 *)to = make_uint4(h[0], h[1], h[2], h[3]);
    if (both_halves()) *(uint4 *)(to + behind) = make_uint4(l[0], l[1], l[2], l[3]);
}
__device__ __forceinline__ void keep(u8 *to, float from, float by, u32 behind = BEHIND) {
    const __half high = __float2half_rn(from * by);
    *(__half *)to = high;
    if (both_halves()) *(__half *)(to + behind) = __float2half_rn(from * by - __half2float(high));
}
// Two neighbours.
__device__ __forceinline__ void keep(u8 *to, float a, float b, float by, u32 behind) {
    u32 high, low;
    split(a * by, b * by, high, low);
    *(u32 *)to = high;
    if (both_halves()) *(u32 *)(to + behind) = low;
}
__device__ __forceinline__ u32 bits_of(float value) { return __float_as_uint(fabsf(value)); }

// The largest |entry| that threads of a warp have seen counts for a word of a node. `known`: what the word was earlier in this kernel;
// warps that find nothing larger, which are most, write nothing: they would all wait for the same word.
__device__ __forceinline__ void note(u32 *word, u32 known, u32 top) {
    top = __reduce_max_sync(~0u, top);
    if (threadIdx.x % 32 == 0 && top > known) atomicMax(word, top);
}

__device__ __forceinline__ float active(float z, u32 kind) {
    return kind == RELU ? (z < 0.0f ? 0.0f : z) : activated(z * exponent(kind), kind);
}

// Where `right` keeps a term of 32 if `left` has bytes: a lane reads four of these at once; see `term` below.
__device__ __forceinline__ u32 place_in_bytes(u32 term) { return term / 16 * 16 + term % 4 / 2 * 8 + term % 16 / 4 * 2 + term % 2; }

// What a product's sums become: activations, slopes of the losses, errors, d and h, s.
enum { ACTIVATES, LOSES, SLOPES, REGULARISES, SCALES };

// A warp computes all WIDTH columns of its block and 32 rows, or 16 rows of more than 128 columns. A stage consists of two slabs:
// the high and the low halves of 32 terms, or the first and the last 32 of 64.
//
// The second-level cache needs as long to find a part of a line of 128 bytes as to find all of it. So whole lines are copied: a row
// of `left` has both slabs in shared memory, in the order that they have in global memory.
template <int END_, bool BYTES_, int WARPS_, int WIDTH_> struct Tile {
    static constexpr int END = END_, WARPS = WARPS_, WIDTH = WIDTH_, SIXTEENS = WIDTH > 128 ? 1 : 2;
    static constexpr bool BYTES = BYTES_, DOWN = END >= REGULARISES, TURNED = END == SLOPES, HALVES = END == ACTIVATES || TURNED;
    // DOWN: the rows of `left` are terms. TURNED: those of `right` are columns.
    static constexpr int OWN_ROWS = 16 * SIXTEENS, ROWS = OWN_ROWS * WARPS, THREADS = 32 * WARPS, K = 32, TILES = WIDTH / 8;
    // Four warps multiply together: then `right` has a layout of wgmma. TURNED, a column has a line of 128 bytes with both slabs; else
    // a slab has the terms of 32 columns, 64 bytes each, then those of the next 32.
    static constexpr bool TOGETHER = HOPPER && WARPS % 4 == 0;
    // Where a multiprocessor has room for one block only, products run while the next terms are read into other registers; a stage is
    // then in use for longer before the next copy into it.
    static constexpr bool AHEAD = TOGETHER && WIDTH > 128;
    struct Factors { u32 one[2][SIXTEENS][4], other[2][SIXTEENS][4]; }; // of both slabs
    static constexpr int CHUNKS = (WIDTH + 31) / 32;
    // RIGHT: bytes from one row of `right` to the next in shared memory, so that neighbours are in different banks. A, B: bytes of
    // `left`, and of a slab of `right`.
    static constexpr int RIGHT = TURNED ? 80 : WIDTH == 104 ? 208 : WIDTH * 2 + 16;
    static constexpr int A = DOWN ? 2 * K * (ROWS * (BYTES ? 1 : 2) + 16) : ROWS * (BYTES ? 80 : 144);
    static constexpr int B = !TOGETHER ? (TURNED ? WIDTH : K) * RIGHT : TURNED ? WIDTH * 64 : CHUNKS * K * 64;
    // A piece has sixteen bytes. MOST, EACH: how many a thread copies of `left` and of `right`. BESIDE: how many a row of `right` has.
    static constexpr int MOST = ROWS * (BYTES ? 4 : 8) / THREADS;
    static constexpr int BESIDE = (TURNED ? K : WIDTH) / 8, ALL = (TURNED ? WIDTH : K) * BESIDE;
    static constexpr int EACH = (TOGETHER && !TURNED ? CHUNKS * 256 : 2 * ALL + THREADS - 1) / THREADS;
    static constexpr int APART = WIDTH % 32 == 8 ? WIDTH : WIDTH + 8; // of sums
    static constexpr int BLOCKS = (WIDTH > 64 ? 2 : WIDTH == 64 ? 3 : 4) * 4 / WARPS;
};

// Samples and labels of the rows that a lane shares: every eighth one. All are read before any is used, and before the products.
template <int GROUPS> struct Drawn { u32 picks[GROUPS], labels[GROUPS]; };
template <int GROUPS> __device__ __forceinline__ Drawn<GROUPS> drawn(const Product &job, u32 i, u32 row0) {
    Drawn<GROUPS> o;
    const u32 first = row0 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int e = 0; e < GROUPS; e++) o.picks[e] = first + 8 * e < job.down ? __ldg(job.samples + usize(i) * job.each + first + 8 * e) : 0;
#pragma unroll
    for (int e = 0; e < GROUPS; e++) o.labels[e] = first + 8 * e < job.down && job.loss <= LOGISTIC ? __ldg(job.labels + o.picks[e]) : 0;
    return o;
}

// Scores of 32 rows (or 8 GROUPS), and those along v, become what d, h and errors sum up: for xi1 and sigma2 the slopes, for sigma1 minus the
// slopes, for xi2 the curvature along v, for xi3 minus both. Four lanes share a row, each with every fourth class.
template <class C, int GROUPS> __device__ __forceinline__ void losses(const Product &job, u32 i, u32 row0, const Drawn<GROUPS> &drawn, const float *sums, u32 now) {
    const u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, classes = job.across / 2;
    const usize of_node = usize(i) * job.many;
    // Bounds of scores, then of slopes and curvatures.
    const float bound = (job.left_top ? float(job.deep[0]) * top_of(job.left_top, of_node) : job.left_most) * top_of(job.right_top, of_node);
    const float most = job.loss == SQUARED ? bound + top_of(job.target_top, of_node) : job.loss == HUBER ? job.delta : 1.0f;
    float weights[5], heaviest = 0.0f;
#pragma unroll
    for (u32 b = 0; b < 5; b++) {
        weights[b] = __ldg(job.weights + i * 5 + b);
        if (job.start[b] < (b == 4 ? job.down : job.start[b + 1])) heaviest = fmaxf(heaviest, weights[b]);
    }
    const float by = scale(heaviest * fmaxf(most, 2.0f * bound));
    if (row0 == 0 && lane == 0) job.to_by[of_node] = by;
    u8 *const to = job.to[0] + usize(i) * job.to_node;
    auto one_of = [](const u32 (&all)[GROUPS], int e) {
        u32 one = all[0];
#pragma unroll
        for (int k = 1; k < GROUPS; k++) one = e == k ? all[k] : one;
        return one;
    };
    u32 top = 0;
#pragma unroll 1
    for (int e = 0; e < GROUPS; e++) {
        const u32 row = row0 + 8 * e + g;
        const bool there = row < job.down;
        enum { OF_XI1, OF_XI2, OF_SIGMA1, OF_SIGMA2, OF_XI3 };
        u32 batch = 0;
        float weight = weights[0];
#pragma unroll
        for (u32 b = 1; b < 5; b++)
            if (row >= job.start[b]) batch = b, weight = weights[b];
        const u32 pick = one_of(drawn.picks, e), label = one_of(drawn.labels, e);
        const float *const x = job.x[now] + usize(i) * job.n + job.offset;
        if (job.x[now] && there && (batch <= OF_XI2 || batch == OF_XI3)) {
            const float part = sigmoid(x[pick]);
            weight *= batch == OF_XI3 ? part * sigmoid(-x[pick]) : part;
        }
        float z[C::TILES], a[C::TILES], q[C::TILES], curved[C::TILES];
        auto in = [&](int n) { return 4 * n + t < classes; };
#pragma unroll
        for (int n = 0; n < C::TILES; n++) { // what this lane has left there
            const float2 both = *(const float2 *)(sums + (8 * e + g) * C::APART + 8 * n + 2 * t);
            z[n] = both.x, a[n] = both.y;
        }
        if (job.loss == SOFTMAX) {
            float top = __int_as_float(0xff800000), all = 0.0f, mean = 0.0f;
#pragma unroll
            for (int n = 0; n < C::TILES; n++) top = in(n) ? fmaxf(top, z[n]) : top;
            top = quad_max(top);
#pragma unroll
            for (int n = 0; n < C::TILES; n++) z[n] = in(n) ? power((z[n] - top) * 1.44269504f) : 0.0f, all += z[n];
            const float part = inverse(quad_sum(all));
#pragma unroll
            for (int n = 0; n < C::TILES; n++) z[n] *= part, mean = in(n) ? fmaf(z[n], a[n], mean) : mean;
            mean = quad_sum(mean);
#pragma unroll
            for (int n = 0; n < C::TILES; n++) {
                q[n] = weight * (4 * n + t == label ? z[n] - 1.0f : z[n]);
                curved[n] = weight * z[n] * (a[n] - mean);
            }
        } else
#pragma unroll
            for (int n = 0; n < C::TILES; n++) {
                if (job.loss == LOGISTIC) {
                    const float sign = label == 0 ? -1.0f : 1.0f, part = sigmoid(-fabsf(z[n]));
                    q[n] = sigmoid(sign * z[n]) * (sign * weight);
                    curved[n] = a[n] * (weight * part * (1.0f - part));
                } else {
                    const float off = z[n] - (there && in(n) ? __ldg(job.targets + usize(pick) * classes + 4 * n + t) : 0.0f);
                    const bool far = job.loss == HUBER && fabsf(off) > job.delta;
                    q[n] = weight * (far ? copysignf(job.delta, off) : off);
                    curved[n] = a[n] * (far ? 0.0f : weight);
                }
            }
        if (job.adds) { // every lane takes part in the sums
            float dot = 0.0f;
#pragma unroll
            for (int n = 0; n < C::TILES; n++) dot = in(n) ? fmaf(q[n], a[n], dot) : dot;
            dot = quad_sum(dot);
            if (there && t == 0 && batch == OF_XI3) job.adds[usize(i) * job.each + row] = -dot;
        }
        const bool kept = there && !(job.adds && batch >= OF_SIGMA2);
        u8 *const into = to + usize(row) * job.to_row;
#pragma unroll
        for (int n = 0; n < C::TILES; n++) {
            if (!kept || !in(n)) continue;
            const u32 c = 4 * n + t;
            top = max(top, max(bits_of(q[n]), bits_of(curved[n])));
            const float first = batch == OF_XI2 ? curved[n] : batch == OF_XI3 ? -curved[n] : batch == OF_SIGMA1 ? -q[n] : q[n];
            if (batch <= OF_SIGMA1) keep(into + place_of(c), first, by, job.to_behind);
            else keep(into + place_of(2 * c), first, batch == OF_XI3 ? -q[n] : 0.0f, by, job.to_behind);
        }
    }
    note(job.to_top + of_node, 0, top);
}

template <class C> __device__ __forceinline__ void product(const Product &job, u32 at) {
    constexpr bool BYTES = C::BYTES, DOWN = C::DOWN, TURNED = C::TURNED;
    const u32 down = (job.down + C::ROWS - 1) / C::ROWS, across = (job.across + C::WIDTH - 1) / C::WIDTH, tiles = down * across;
    // Parts of the head are parts of a sum.
    const u32 of_sum = blockIdx.x / tiles % job.parts, part = C::END == LOSES ? 0 : of_sum, i = blockIdx.x / tiles / job.parts;
    const u32 skipped = C::END == LOSES ? of_sum * job.deep[1] : 0;
    if (job.awake && !(job.awake[i] & 1)) return;
    if (job.fresh) wait_for_last();
    const u32 row0 = blockIdx.x % tiles % down * C::ROWS, column0 = blockIdx.x % tiles / down * C::WIDTH;
    const u32 tid = threadIdx.x, lane = tid % 32, g = lane / 4, t = lane % 4, deep = C::END == LOSES ? min(job.deep[0] - skipped, job.deep[1]) : job.deep[part];
    const u32 row_w = tid / 32 * C::OWN_ROWS; // the first of this warp
    const u32 base = shared(room);
    const bool both = both_halves();
    constexpr u32 stage = C::A + 2 * C::B;
    const u32 depth = ::depth();
    const usize of_node = usize(i) * job.many;

    // The rows of `left` of a stage are rows of results, or terms: their bytes, the distance between them, and where the second slab
    // begins (bytes in f32 have none).
    const u32 bytes = DOWN ? C::ROWS * (BYTES ? 1 : both ? 4 : 2) : !BYTES ? 128 : both ? 32 : 64, pitch = bytes + 16;
    const u32 second_slab = DOWN && (BYTES || !both) ? 32 * pitch : BYTES ? 32 : 64;
    // This thread copies a piece of every `step`th of them, from `own` on.
    const u32 pieces = bytes / 16, own = tid / pieces, piece = tid % pieces, step = C::THREADS / pieces;
    const usize before = usize(i) * job.each + job.first[part];
    auto number = [&](u32 r, u32 end) {
        const usize at = before + min(r, end - 1);
        return found(job.picks, at);
    };
    auto mine = [&](int j) { return !BYTES || !both || 2 * j < C::MOST; };
    const u8 *rows[DOWN ? 1 : C::MOST];
    u32 next[DOWN ? C::MOST : 1], soon[DOWN ? AHEAD : 1][DOWN ? C::MOST : 1];
    const u32 side = row0 * (BYTES ? 1 : both ? 4 : 2) + piece * 16; // DOWN: in the row
    if constexpr (DOWN) {
        rows[0] = job.left + side;
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++)
#pragma unroll
            for (int j = 0; j < C::MOST; j++) soon[k][j] = k * depth < deep && mine(j) ? number(k * depth + own + j * step, deep) : 0;
    } else {
#pragma unroll
        for (int j = 0; j < C::MOST; j++)
            if (mine(j)) rows[j] = job.left + usize(number(row0 + own + j * step, job.down)) * job.left_row + piece * 16 + skipped * (BYTES ? 1 : both ? 4 : 2);
    }
    // And these pieces of `right`: of column or term `l`, from number `p` of a slab on.
    const u8 *right = job.right + usize(i) * job.right_node + job.right_first[part];
    const u8 *const bias = right + usize(deep) * job.right_row;
    if (TURNED) right += usize(column0) * job.right_row;
    right += usize(skipped) * job.right_row;
    u32 from[C::EACH], into[C::EACH], line[C::EACH];
    bool wanted[C::EACH];
#pragma unroll
    for (int j = 0; j < C::EACH; j++) {
        u32 slab, l, p;
        if (!C::TOGETHER) {
            const u32 at = tid / 2 + j * (C::THREADS / 2);
            slab = tid % 2, l = at / C::BESIDE, p = at % C::BESIDE * 8, wanted[j] = at < C::ALL;
            into[j] = l * C::RIGHT + p * 2 + slab * C::B;
        } else {
            const u32 at = tid + j * C::THREADS;
            if (TURNED) {
                slab = at % 8 / 4, l = at / 8, p = at % 4 * 8, wanted[j] = l < C::WIDTH;
                into[j] = l * 128 + (at % 8 ^ l % 8) * 16;
            } else {
                slab = at / 128 % 2, l = at / 4 % 32, p = at / 256 * 32 + at % 4 * 8, wanted[j] = p < C::WIDTH;
                const u32 term = BYTES && !DOWN ? place_in_bytes(l) : l;
                into[j] = slab * C::B + at / 256 * 2048 + term * 64 + (at % 4 ^ term / 2 % 4) * 16;
            }
        }
        into[j] += C::A;
        const u32 later = both ? 0 : 32 * slab; // terms
        from[j] = TURNED ? l * job.right_row + slab * 64 + p * 2 : (l + later) * job.right_row + place_of(column0 + p) + (both ? slab * job.right_behind : 0);
        // The first term of the piece, which is copied while it is below `left_terms`; or no term at all.
        if (TURNED) line[j] = column0 + l < job.across ? later + p : ~0u;
        else line[j] = column0 + p < job.across ? later + l : ~0u;
    }
    const u32 count = (deep + depth - 1) / depth, last = base + job.stages * stage;
    u32 slot = base, left_terms = deep; // not copied yet
    auto load = [&](u32 k) {
        if (k < count) {
#pragma unroll
            for (int j = 0; j < C::MOST; j++) {
                if (!mine(j)) continue;
                const u32 to = slot + (own + j * step) * pitch + piece * 16;
                if constexpr (DOWN) copy16(to, rows[0] + usize(next[j]) * job.left_row, own + j * step < left_terms && side < job.left_row ? 16 : 0, true);
                else {
                    copy16(to, rows[j], BYTES && skipped + k * depth + piece * 16 >= job.left_row ? 0 : 16, true);
                    rows[j] += bytes;
                }
            }
#pragma unroll
            for (int j = 0; j < C::EACH; j++) copy16(slot + into[j], right + from[j], line[j] < left_terms ? 16 : 0, wanted[j]);
            right += TURNED ? 128 : usize(depth) * job.right_row;
            left_terms -= min(left_terms, depth);
            slot = slot + stage == last ? base : slot + stage;
        }
        commit();
    };

    // Neighbouring lanes compute neighbouring results: four numbers each where all are at multiples of sixteen bytes. For d and h they
    // also read theta and v, MANY numbers at once, since the compiler lets no read pass a write; with few warps before the products.
    // Strengths of the regulariser belong to rows or to columns; a lane holds those of one row, or of every 32nd column.
    constexpr int MANY = 16, STRENGTHS = C::END == REGULARISES ? C::CHUNKS : 1;
    constexpr bool READS = C::END == REGULARISES, EARLY = READS && C::WIDTH <= 32 && C::WARPS == 2;
    const u32 rows_w = row0 + row_w < job.down ? min(u32(C::OWN_ROWS), job.down - row0 - row_w) : 0;
    const u32 wide = min(u32(C::WIDTH), job.across - column0), fours = job.even ? 4 : 1, beside = wide / fours;
    const u32 all = rows_w * beside, over = (1 << 20) / beside + 1; // at * over >> 20 is at / beside, for at up to 2^12
    // Row and column of a lane's result with this number, and whether there is one.
    auto spot = [&](u32 item, u32 &r, u32 &c) {
        const u32 at = lane + item * 32;
        r = at * over >> 20, c = (at - r * beside) * fours;
        return at < all;
    };
    const float *const with_w = (const float *)(job.with[part] + usize(i) * job.with_node + usize(row0 + row_w) * job.with_row) + column0;
    float others[READS ? MANY : 1], strengths[STRENGTHS];
    auto read_others = [&](u32 item) {
        u32 r, c;
        auto from = [&] { return (const float *)((const u8 *)with_w + r * job.with_row) + c; };
        if (job.even) {
#pragma unroll
            for (int e = 0; e < MANY / 4; e++)
                if (spot(item + e, r, c)) *(float4 *)(others + 4 * e) = *(const float4 *)from();
        } else
#pragma unroll
            for (int e = 0; e < MANY; e++)
                if (spot(item + e, r, c)) others[e] = *from();
    };
    if constexpr (EARLY) read_others(0);
    Drawn<C::END == LOSES ? 4 : 1> rows_drawn;
    if constexpr (C::END == LOSES)
        if (job.parts == 1) rows_drawn = drawn<4>(job, i, row0 + row_w);
    if constexpr (READS) {
        const float *const x = job.x[at % 2] ? job.x[at % 2] + usize(i) * job.n : nullptr;
#pragma unroll
        for (int e = 0; e < STRENGTHS; e++) {
            strengths[e] = job.ridge;
            const u32 row = min(row0 + row_w + lane, job.down - 1), column = min(column0 + e * 32 + lane, job.across - 1);
            if (!x || e > 0 && job.per != PER_COLUMN) continue;
            const float half = exponential(x[job.per == PER_COLUMN ? column : job.per == PER_GROUP ? job.group[row] : row]);
            strengths[e] = half + half;
        }
    }

    float sum[C::SIXTEENS][C::TILES][4] = {};
    // The row that this lane addresses in matrices of 8 by 8, of the first factor and of the second. With bytes a lane reads four
    // at once, which changes the order of sixteen terms: place 2t + e (e < 2) is 4t + e, place 8 + 2t + e is 4t + 2 + e.
    const u32 place = lane % 8, later = lane / 8 % 2;
    const u32 at_a = DOWN ? (place + lane / 16 * 8) * pitch + place_of(row_w + later * 8) : (row_w + lane % 16) * pitch + lane / 16 * 16;
    const u32 term = BYTES && !DOWN ? place / 2 * 4 + place % 2 + later * 2 : place + later * 8;
    const u32 at_b = TURNED ? (place + lane / 16 * 8) * C::RIGHT + later * 16 : term * C::RIGHT + lane / 16 * 16;
    auto second = [&](auto &b, u32 from) {
        if (TURNED) matrices(b, from);
        else transposed(b, from);
    };
    // The first factor of sixteen terms of a slab.
    auto fetch = [&](u32 (&a)[C::SIXTEENS][4], u32 from, u32 s) {
        if constexpr (BYTES && DOWN) { // four rows of results in a word
            const u8 *const p0 = room + (from - base) + (16 * s + 2 * t) * pitch + row_w + 4 * g;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u8 *const p = p0 + 8 * h * pitch;
                const u32 u = *(const u32 *)p, v = *(const u32 *)(p + pitch), p01 = __byte_perm(u, v, 0x5140), p23 = __byte_perm(u, v, 0x7362);
                a[0][2 * h] = __byte_perm(p01, 0, 0x4140), a[0][2 * h + 1] = __byte_perm(p01, 0, 0x4342);
                a[C::SIXTEENS - 1][2 * h] = __byte_perm(p23, 0, 0x4140), a[C::SIXTEENS - 1][2 * h + 1] = __byte_perm(p23, 0, 0x4342);
            }
        } else if constexpr (BYTES) {
            const u8 *const p = room + (from - base) + (row_w + g) * pitch + 16 * s + 4 * t;
#pragma unroll
            for (int e = 0; e < 2 * C::SIXTEENS; e++) {
                const u32 four = *(const u32 *)(p + 8 * e * pitch);
                a[e / 2][e % 2] = __byte_perm(four, 0, 0x4140), a[e / 2][e % 2 + 2] = __byte_perm(four, 0, 0x4342);
            }
        } else {
#pragma unroll
            for (int w = 0; w < C::SIXTEENS; w++) {
                if (DOWN) transposed(a[w], from + at_a + 16 * s * pitch + 32 * w);
                else matrices(a[w], from + at_a + 16 * w * pitch + 32 * s);
            }
        }
    };
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // All terms of a stage, by four warps.
    auto together = [&](u32 stage, typename C::Factors &factors) {
        const u32 b0 = stage + C::A, b1 = b0 + (TURNED ? 64 : C::B);
        auto &one = factors.one, &other = factors.other;
#pragma unroll
        for (int s = 0; s < 2; s++) {
            fetch(one[s], stage, s);
            if (!BYTES || !both) fetch(other[s], stage + second_slab, s);
        }
        // Registers are written before products begin. Otherwise the translator converts bytes to halves between products, which then
        // wait for each other.
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int w = 0; w < C::SIXTEENS; w++) {
                written(one[s][w]);
                if (!BYTES || !both) written(other[s][w]);
            }
        begin_products();
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int w = 0; w < C::SIXTEENS; w++) {
                auto multiply = [&](const u32 (&a)[C::SIXTEENS][4], u32 b) {
                    auto &sums = *(float(*)[C::WIDTH / 2])sum[w];
                    if (TURNED) product<false>(sums, a[w], lines(b + s * 32));
                    else product<true>(sums, a[w], chunks(b + s * 1024));
                };
                if (!BYTES || !both) multiply(other[s], both ? b0 : b1);
                if (both) multiply(one[s], b1);
                multiply(one[s], b0);
            }
        end_products();
        multiplied<C::AHEAD ? 1 : 0>();
    };
#endif
    auto products = [&](u32 left, u32 right, u32 s) {
        const u32 b_ = right + at_b + (TURNED ? 32 * s : 16 * s * C::RIGHT);
        u32 high[C::SIXTEENS][4], low[C::SIXTEENS][4];
        fetch(high, left, s);
        if (!BYTES && both) fetch(low, left + second_slab, s);
#pragma unroll
        for (int n = 0; n < C::TILES; n += 2) { // products that wait for each other are apart
            const u32 from = b_ + (TURNED ? n * 8 * C::RIGHT : n * 16);
            u32 b[4], rest[4];
            auto multiply = [&](const u32 (&a)[C::SIXTEENS][4], const u32 (&b)[4]) {
#pragma unroll
                for (int q = 0; q < 2; q++)
                    if (n + q < C::TILES)
#pragma unroll
                        for (int w = 0; w < C::SIXTEENS; w++) mma(sum[w][n + q], a[w], b[2 * q], b[2 * q + 1]);
            };
            auto get = [&](u32 (&b)[4], u32 from) {
                if (n + 1 < C::TILES) second(b, from);
                else second(*(u32(*)[2])b, from);
            };
            get(b, from);
            if (both) {
                get(rest, from + C::B);
                if (!BYTES) multiply(low, b);
                multiply(high, rest);
            }
            multiply(high, b);
        }
    };
    auto multiply = [&](u32 stage, typename C::Factors &factors) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        if constexpr (C::TOGETHER) return together(stage, factors);
#endif
        const u32 right = stage + C::A;
        products(stage, right, 0);
        products(stage, right, 1);
        if (!both) {
            products(stage + second_slab, right + C::B, 0);
            products(stage + second_slab, right + C::B, 1);
        }
    };
    wait_for_last();
    // The numbers of rows are known before they are wanted: those of the first stages all at once, later ones a stage ahead.
    const u32 ahead = job.stages - (C::AHEAD ? 2 : 1);
    auto look = [&](u32 k) {
        if constexpr (DOWN)
#pragma unroll
            for (int j = 0; j < C::MOST; j++) next[j] = k * depth < deep && mine(j) ? number(k * depth + own + j * step, deep) : 0;
    };
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++) {
        if (k >= ahead) break;
        if constexpr (DOWN)
#pragma unroll
            for (int j = 0; j < C::MOST; j++) next[j] = soon[k][j];
        load(k);
    }
    look(ahead);
    // The powers of two that factors were multiplied by, and that of results, are read while the first copies are under way.
    const float left_by = job.left_by ? job.left_by[of_node] : job.left_is, right_by = job.right_by ? job.right_by[of_node] : job.right_is;
    float to_by = 8192.0f, with_by = 0.0f; // activations are at most 1
    if (C::HALVES && (TURNED || job.activation == RELU)) {
        const float left_top = job.left_top ? top_of(job.left_top, of_node) : job.left_most;
        to_by = scale(fmaxf(float(deep + 1) * left_top * top_of(job.right_top, of_node), TURNED ? 0.0f : 1.0f));
    }
    if (TURNED) with_by = 1.0f / (job.with_by ? job.with_by[of_node] : 8192.0f);
    u32 use = base;
    auto advance = [&](u32 k, typename C::Factors &factors) {
        if (ahead == 2) copied<1>();
        else copied<4>();
        if (C::TOGETHER) async_fence();
        __syncthreads();
        load(k + ahead);
        look(k + ahead + 1);
        multiply(use, factors);
        use = use + stage == last ? base : use + stage;
    };
    typename C::Factors factors[C::AHEAD ? 2 : 1];
    u32 k = 0;
    if constexpr (C::AHEAD)
#pragma unroll 1
        for (; k + 1 < count; k += 2) advance(k, factors[0]), advance(k + 1, factors[1]);
#pragma unroll 1
    for (; k < count; k++) advance(k, factors[0]);
    if (C::AHEAD) multiplied<0>();
    copied<0>();
    __syncthreads();

    // Each warp turns its sums into results.
    float *const sums = (float *)room + row_w * C::APART;
    // A power of two, times the unit of bytes whose scores are wanted.
    const float by = (C::BYTES && C::END == LOSES ? job.unit : 1.0f) / (left_by * right_by);
#pragma unroll
    for (int e = 0; e < 2 * C::SIXTEENS; e++)
#pragma unroll
        for (int n = 0; n < C::TILES; n++) {
            const u32 r = BYTES && DOWN ? 4 * g + e : 8 * e + g;
            *(float2 *)(sums + r * C::APART + 8 * n + 2 * t) = make_float2(sum[e / 2][n][e % 2 * 2] * by, sum[e / 2][n][e % 2 * 2 + 1] * by);
        }
    if constexpr (C::END == LOSES) {
        if (job.parts > 1) {
            __syncwarp();
            float *const to = job.sums + (usize(i) * job.parts + of_sum) * job.down * job.sums_row;
            for (u32 at = lane; at < C::OWN_ROWS * C::WIDTH / 4; at += 32) {
                const u32 r = at / (C::WIDTH / 4), c = at % (C::WIDTH / 4) * 4, row = row0 + row_w + r;
                if (row < job.down && c < job.sums_row) *(float4 *)(to + usize(row) * job.sums_row + c) = *(const float4 *)(sums + r * C::APART + c);
            }
            return;
        }
        losses<C>(job, i, row0 + row_w, rows_drawn, sums, at % 2);
        return;
    }
    __syncwarp();
    u8 *const to = job.to[part] + usize(i) * job.to_node;
    const u8 *const with = job.with[part] + usize(i) * job.with_node;
    if constexpr (C::HALVES) {
        if (blockIdx.x % tiles == 0 && tid == 0) job.to_by[of_node] = to_by;
        u32 top = TURNED ? 0 : __float_as_uint(1.0f); // of the unit that is 1
        // A lane reads what four of its eights need before it writes the first: one wait instead of four.
        constexpr int EIGHTS = C::TILES * C::SIXTEENS / 2, SOME = EIGHTS < 4 ? EIGHTS : 4;
#pragma unroll 1
        for (int first = 0; first < EIGHTS; first += SOME) {
            Eight others[SOME];
            auto place = [&](int e, u32 &r, u32 &c) {
                const u32 at = lane + (first + e) * 32;
                r = at / C::TILES, c = at % C::TILES * 8;
                return first + e < EIGHTS && row0 + row_w + r < job.down && column0 + c < job.across;
            };
            u32 r, c;
#pragma unroll
            for (int e = 0; e < SOME; e++) {
                others[e] = {};
                if (!place(e, r, c)) continue;
                if (TURNED) others[e] = eight(with + usize(row0 + row_w + r) * job.with_row + place_of(column0 + c), with_by);
                else if (BYTES && job.bias) others[e] = eight(bias + place_of(column0 + c), 1.0f / right_by);
            }
#pragma unroll
            for (int j = 0; j < SOME; j++) {
                if (!place(j, r, c)) continue;
                const u32 column = column0 + c;
                Eight all;
                *(float4 *)all.at = *(const float4 *)(sums + r * C::APART + c);
                *(float4 *)(all.at + 4) = *(const float4 *)(sums + r * C::APART + c + 4);
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    if (TURNED) all.at[e] = column + e < job.across ? all.at[e] * slope(others[j].at[e], job.activation) : 0.0f;
                    else {
                        if (BYTES) all.at[e] = fmaf(all.at[e], job.unit, others[j].at[e]);
                        const float a = active(all.at[e], job.activation);
                        all.at[e] = column + e < job.across ? a : column + e == job.across ? 1.0f : 0.0f;
                    }
                }
                keep(to + usize(row0 + row_w + r) * job.to_row + place_of(column), all, to_by);
#pragma unroll
                for (int e = 0; e < 8; e++) top = max(top, bits_of(all.at[e]));
            }
        }
        if (job.to_top) note(job.to_top + of_node, 0, top);
        // The unit that is 1, if no other unit shares its eight columns.
        if (!TURNED && job.across % 8 == 0 && column0 + C::WIDTH >= job.across && tid < C::ROWS && row0 + tid < job.down)
            keep(to + usize(row0 + tid) * job.to_row + place_of(job.across), 1.0f, to_by);
    } else {
        // The strengths are kept behind the results, in the row of the lane that holds them.
        if constexpr (READS)
#pragma unroll
            for (int e = 0; e < STRENGTHS; e++) sums[lane * C::APART + C::WIDTH + e] = strengths[e];
        __syncwarp();
        const bool of_columns = READS && job.per == PER_COLUMN && job.x[0];
        float *const to_w = (float *)(to + usize(row0 + row_w) * job.to_row) + column0;
        auto result = [&](u32 r, u32 c, float other) {
            const float sum = sums[r * C::APART + c];
            if (!READS) return sum * (job.bias && row0 + row_w + r + 1 == job.down ? 1.0f : job.unit);
            return fmaf(sums[(of_columns ? c % 32 : r) * C::APART + C::WIDTH + (of_columns ? c / 32 : 0)], other, BYTES ? sum * job.unit : sum);
        };
        auto into = [&](u32 r, u32 c) { return (float *)((u8 *)to_w + r * job.to_row) + c; };
        u32 top = 0; // of d and h
        auto seen = [&](float value) { return top = max(top, bits_of(value)), value; };
        const u32 step = READS ? MANY / fours : 4, items = (all + 31) / 32;
#pragma unroll 1
        for (u32 item = 0; item < items; item += step) {
            if constexpr (READS)
                if (!EARLY || item > 0) read_others(item);
            u32 r, c;
            auto other = [&](int e) { return READS ? others[e] : 0.0f; };
            if (job.even) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    if (spot(item + e, r, c))
                        *(float4 *)into(r, c) = make_float4(seen(result(r, c, other(4 * e))), seen(result(r, c + 1, other(4 * e + 1))), seen(result(r, c + 2, other(4 * e + 2))), seen(result(r, c + 3, other(4 * e + 3))));
            } else
#pragma unroll
                for (int e = 0; e < (READS ? MANY : 4); e++)
                    if (spot(item + e, r, c)) *into(r, c) = seen(result(r, c, other(e)));
        }
        if (READS && job.to_top) note(job.to_top + of_node, 0, top);
    }
}

// Adds the parts of sums, which become slopes of the losses. A block has eight rows, so that many blocks work at the same time: all
// warps add, one computes the slopes.
template <int WIDTH> __device__ __forceinline__ void slopes_of_parts(const Product &job, u32 now) {
    typedef Tile<LOSES, false, 4, WIDTH> C;
    constexpr u32 ROWS = 8, BESIDE = WIDTH / 4, EACH = (ROWS * BESIDE + 127) / 128; // fours of a row, and of a thread
    const u32 tiles = (job.down + ROWS - 1) / ROWS, i = blockIdx.x / tiles, row0 = blockIdx.x % tiles * ROWS;
    if (job.awake && !(job.awake[i] & 1)) return;
    const Drawn<1> rows_drawn = drawn<1>(job, i, row0);
    wait_for_last();
    float *const sums = (float *)room;
    const usize part = usize(job.down) * job.sums_row;
    const float *from[EACH];
    bool there[EACH];
    float4 sum[EACH] = {};
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
        const u32 at = threadIdx.x + e * 128, row = row0 + at / BESIDE, c = at % BESIDE * 4;
        there[e] = at < ROWS * BESIDE && row < job.down && c < job.sums_row;
        from[e] = job.sums + usize(i) * job.parts * part + (there[e] ? usize(row) * job.sums_row + c : 0);
    }
    // The parts in order; those of eight are all read before the first is added.
    enum { TOGETHER = 8 };
    for (u32 first = 0; first < job.parts; first += TOGETHER) {
        float4 ones[TOGETHER][EACH];
#pragma unroll
        for (u32 k = 0; k < TOGETHER; k++)
#pragma unroll
            for (u32 e = 0; e < EACH; e++)
                ones[k][e] = there[e] && first + k < job.parts ? *(const float4 *)(from[e] + (first + k) * part) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (u32 k = 0; k < TOGETHER; k++)
#pragma unroll
            for (u32 e = 0; e < EACH; e++) {
                const float4 one = ones[k][e];
                sum[e] = make_float4(sum[e].x + one.x, sum[e].y + one.y, sum[e].z + one.z, sum[e].w + one.w);
            }
    }
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
        const u32 at = threadIdx.x + e * 128;
        if (at < ROWS * BESIDE) *(float4 *)(sums + at / BESIDE * C::APART + at % BESIDE * 4) = sum[e];
    }
    __syncthreads();
    if (threadIdx.x < 32) losses<C, 1>(job, i, row0, rows_drawn, sums, now);
}

#define PARTS(width) \
    extern "C" __global__ void __launch_bounds__(128) slopes_##width##_f32(const __grid_constant__ Product job, u32 at) { slopes_of_parts<width>(job, at % 2); }
PARTS(16) PARTS(32) PARTS(64) PARTS(128)

#define PRODUCT(name, end, bytes, warps, width) \
    extern "C" __global__ void __launch_bounds__(32 * warps, Tile<end, bytes, warps, width>::BLOCKS) \
    name##_##warps##_##width##_f32(const __grid_constant__ Product job, u32 at) { product<Tile<end, bytes, warps, width>>(job, at); }
#define SMALL(name, end, bytes, warps) PRODUCT(name, end, bytes, warps, 16) PRODUCT(name, end, bytes, warps, 32) PRODUCT(name, end, bytes, warps, 64)
#define PRODUCTS(name, end, bytes) \
    SMALL(name, end, bytes, 2) SMALL(name, end, bytes, 4) PRODUCT(name, end, bytes, 4, 104) LARGE(name, end, bytes)
// Tiles that pay on Hopper cards only.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LARGE(name, end, bytes) PRODUCT(name, end, bytes, 4, 128) WIDE_##bytes(name, end)
#define WIDE_false(name, end) PRODUCT(name, end, false, 8, 208) PRODUCT(name, end, false, 8, 256)
#define WIDE_true(name, end)
#else
#define LARGE(name, end, bytes)
#endif
PRODUCTS(forward_bytes, ACTIVATES, true)
PRODUCTS(forward, ACTIVATES, false)
#define HEADS(name, bytes) \
    SMALL(name, LOSES, bytes, 2) SMALL(name, LOSES, bytes, 4) PRODUCT(name, LOSES, bytes, 2, 128) PRODUCT(name, LOSES, bytes, 4, 128)
#define OUTERS(name, bytes) SMALL(name, REGULARISES, bytes, 2) SMALL(name, REGULARISES, bytes, 4)
HEADS(head_bytes, true)
HEADS(head, false)
OUTERS(outer_bytes, true)
OUTERS(outer, false)
PRODUCTS(errors, SLOPES, false)
PRODUCTS(backward_bytes, SCALES, true)
PRODUCTS(backward, SCALES, false)

// ---------------------------------------------------------------- one column of weights

// Features of a linear model with one column of weights, eight of a row at once.
__device__ __forceinline__ Eight features(const Product &job, u32 row, u32 q) {
    return place_of(q) < job.left_row ? eight(job.left + usize(row) * job.left_row + place_of(q), 1.0f) : Eight{};
}

// What a row adds to d or h, per unit of its features: its slope, the curvature along v, or minus the slope.
__device__ __forceinline__ float slope_of(const Product &job, u32 pick, float z, float a, float weight, bool curves) {
    if (job.loss == LOGISTIC) {
        const float sign = __ldg(job.labels + pick) == 0 ? -1.0f : 1.0f, part = sigmoid(-fabsf(z));
        return curves ? a * (weight * part * (1.0f - part)) : sigmoid(sign * z) * (sign * weight);
    }
    const float off = z - __ldg(job.targets + pick);
    const bool far = job.loss == HUBER && fabsf(off) > job.delta;
    return curves ? a * (far ? 0.0f : weight) : weight * (far ? copysignf(job.delta, off) : off);
}

// Entry q of d or h: the sum over the rows and the regulariser. Returns its size.
__device__ __forceinline__ u32 leave(const Product &job, u32 at, u32 i, u32 part, u32 q, float sum) {
    const float *const x = job.x[at % 2] ? job.x[at % 2] + usize(i) * job.n : nullptr;
    float strength = job.ridge;
    if (x) {
        const float half = exponential(x[job.per == PER_COLUMN ? 0 : job.per == PER_GROUP ? job.group[q] : q]);
        strength = half + half;
    }
    const float value = fmaf(strength, ((const float *)(job.with[part] + usize(i) * job.with_node))[q], sum);
    ((float *)(job.to[part] + usize(i) * job.to_node))[q] = value;
    return bits_of(value);
}
__device__ __forceinline__ void leave_top(const Product &job, u32 i, u32 top) {
    if (job.to_top) note(job.to_top + usize(i) * job.many, 0, top);
}

// Sums over some rows of a minibatch, which are read once: lanes keep their features until they know the slopes. A warp has `256 STEPS` of
// the features; `across` warps share ROWS rows.
template <int STEPS> __device__ __forceinline__ void single(const Product &job, u32 at) {
    constexpr int WARPS = 8, ROWS = 4 / STEPS, OWN = 256 * STEPS;
    __shared__ float scores[2][WARPS][ROWS][2];
    __shared__ __align__(16) float sums[WARPS][OWN];
    const u32 chunk = blockIdx.x % job.chunks, part = blockIdx.x / job.chunks % job.parts, i = blockIdx.x / job.chunks / job.parts;
    if (job.awake && !(job.awake[i] & 1)) return;
    wait_for_last();
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, slices = job.across, group = warp / slices, q0 = warp % slices * OWN + lane * 8;
    const u32 deep = job.deep[part], curved = part ? job.start[2] - job.start[1] : 0, together = WARPS / slices * ROWS;
    // Rows of this block.
    const u32 share = (deep + job.chunks * together - 1) / (job.chunks * together) * together, begin = min(deep, chunk * share), end = min(deep, begin + share);
    const float *const weights = job.weights + i * 5;
    const float weight = __ldg(weights + (part ? 1 : 0)), other = -__ldg(weights + 2);
    const float by = 1.0f / job.left_is;
    Eight theta[STEPS] = {}, v[STEPS] = {}, sum[STEPS] = {};
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const u32 q = q0 + 256 * s + e;
            if (q >= job.down) continue;
            theta[s].at[e] = ((const float *)(job.with[0] + usize(i) * job.with_node))[q];
            if (part) v[s].at[e] = ((const float *)(job.with[1] + usize(i) * job.with_node))[q];
        }
    const u32 *const picks = job.picks + usize(i) * job.each + job.first[part];
    u32 turn = 0;
    for (u32 r0 = begin; r0 < end; r0 += together, turn ^= 1) {
        const u32 first = r0 + group * ROWS, row = first + lane / (32 / ROWS), pick = picks[min(row, end - 1)];
        const bool along = first < curved;
        Eight of[ROWS][STEPS];
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            const u32 own = __shfl_sync(~0u, pick, j * (32 / ROWS));
#pragma unroll
            for (int s = 0; s < STEPS; s++) of[j][s] = features(job, own, q0 + 256 * s);
        }
        auto score = [&](const Eight (&by)[STEPS]) {
            float all[ROWS];
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                all[j] = 0.0f;
#pragma unroll
                for (int s = 0; s < STEPS; s++)
#pragma unroll
                    for (int e = 0; e < 8; e++) all[j] = fmaf(of[j][s].at[e], by[s].at[e], all[j]);
            }
            return row_sum(all);
        };
        float z = score(theta), a = 0.0f; // of `row`
        if (along) a = score(v);
        if (slices > 1) {
            if (lane % (32 / ROWS) == 0) {
                float *const own = scores[turn][warp][lane / (32 / ROWS)];
                own[0] = z, own[1] = a;
            }
            __syncthreads();
            z = a = 0.0f;
            for (u32 k = 0; k < slices; k++) {
                const float *const one = scores[turn][group * slices + k][lane / (32 / ROWS)];
                z += one[0], a += one[1];
            }
        }
        const bool curves = row < curved;
        const float slope = row < end ? slope_of(job, pick, z * by, a * by, part && !curves ? other : weight, curves) * by : 0.0f;
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            const float own = __shfl_sync(~0u, slope, j * (32 / ROWS));
#pragma unroll
            for (int s = 0; s < STEPS; s++)
#pragma unroll
                for (int e = 0; e < 8; e++) sum[s].at[e] = fmaf(own, of[j][s].at[e], sum[s].at[e]);
        }
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        float *const to = sums[warp] + 256 * s + lane * 8;
        *(float4 *)to = *(const float4 *)sum[s].at, *(float4 *)(to + 4) = *(const float4 *)(sum[s].at + 4);
    }
    __syncthreads();
    u32 top = 0;
    for (u32 q = threadIdx.x; q < job.down; q += 32 * WARPS) {
        float all = 0.0f;
        for (u32 k = q / OWN; k < WARPS; k += slices) all += sums[k][q % OWN];
        if (job.chunks > 1) job.sums[(usize(blockIdx.x)) * job.down + q] = all;
        else top = max(top, leave(job, at, i, part, q, all));
    }
    if (job.chunks == 1) leave_top(job, i, top);
}

// Adds the chunks, in order: a thread for an entry.
extern "C" __global__ void __launch_bounds__(128) chunks_f32(const __grid_constant__ Product job, u32 at) {
    wait_for_last();
    const u32 pieces = (job.down + 127) / 128, q = blockIdx.x % pieces * 128 + threadIdx.x, part = blockIdx.x / pieces % job.parts, i = blockIdx.x / pieces / job.parts;
    if (job.awake && !(job.awake[i] & 1)) return;
    u32 top = 0;
    if (q < job.down) {
        const float *const from = job.sums + usize(i * job.parts + part) * job.chunks * job.down + q;
        float all = 0.0f;
#pragma unroll 8
        for (u32 k = 0; k < job.chunks; k++) all += from[usize(k) * job.down];
        top = leave(job, at, i, part, q, all);
    }
    leave_top(job, i, top);
}

#define SINGLE(steps) \
    extern "C" __global__ void __launch_bounds__(256, 2) single_##steps##_f32(const __grid_constant__ Product job, u32 at) { single<steps>(job, at); }
SINGLE(1) SINGLE(2)

// ---------------------------------------------------------------- x, theta and v as halves

// A layer; src/layers/mod.rs has the same fields in the same order.
struct Layer {
    u8 *to;
    u32 *top;
    u32 rows, units, offset, blocks; // offset: in x; blocks: of a node
};

enum { SPLITTERS = 256, TURNS = 4 };

// How many lanes split a row of theta and v; each takes four classes.
__device__ __forceinline__ u32 lanes_of(u32 classes) {
    u32 lanes = 1;
    while (4 * lanes < classes) lanes *= 2;
    return lanes;
}

// Rows of theta and v, MANY for each thread of a block; lanes share a row, four classes each.
template <int MANY> struct Rows {
    u32 classes, rows, lanes, each, c, first;
    __device__ __forceinline__ Rows(const Job<float> &job, u32 piece) : classes(job.classes), rows(job.p / job.classes) {
        lanes = lanes_of(classes), each = blockDim.x / lanes, c = threadIdx.x % lanes * 4, first = piece * MANY * each + threadIdx.x / lanes;
    }
    static __device__ __forceinline__ u32 pieces(const Job<float> &job) {
        const u32 together = MANY * blockDim.x / lanes_of(job.classes);
        return (job.p / job.classes + together - 1) / together;
    }
    __device__ __forceinline__ u32 row(int j) const { return first + j * each; }
    __device__ __forceinline__ bool has(int j) const { return row(j) < rows && c < classes; }
    // Theta and v of a row in turn; `before`: where its numbers begin.
    __device__ __forceinline__ Eight read(const float *theta, const float *v, int j, u32 before) const {
        Eight both = {};
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (row(j) < rows && c + e < classes) both.at[2 * e] = theta[before + c + e], both.at[2 * e + 1] = v[before + c + e];
        return both;
    }
    __device__ __forceinline__ void split(const Job<float> &job, u32 i, int j, const Eight &both, float by) const {
        u8 *const to = job.heads + (usize(i) * rows + row(j)) * job.head_row + place_of(2 * c);
        if (has(j)) keep(to, both, by, job.head_behind);
    }
    // Theta times v of a row, in the first of its lanes.
    __device__ __forceinline__ float times(const Eight &both) const {
        float sum = 0.0f;
#pragma unroll
        for (int e = 0; e < 4; e++) sum = fmaf(both.at[2 * e], both.at[2 * e + 1], sum);
        for (u32 lane = lanes / 2; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
        return sum;
    }
};

// Whether x has an entry for each row of theta. Then s is known as soon as they are.
__device__ __forceinline__ bool with_s(const Job<float> &job) { return job.hidden_layers == 0 && job.per == PER_ROW; }
__device__ __forceinline__ void leave_s(const Job<float> &job, u32 i, u32 row, float x, float times) {
    const float half = exponential(x);
    job.s[usize(i) * job.n + row] = -(half + half) * times;
}

// The word for theta and v after this iteration, or before it.
__device__ __forceinline__ u32 turn_top(const Job<float> &job, u32 at, u32 after = 1) { return TURN_TOP + (job.clock[0] + at / 2 + after) % 3; }

// Splits some rows of theta and v of node i, and computes their s.
__device__ __forceinline__ void heads(const Job<float> &job, u32 i, u32 piece, u32 at) {
    u32 *const known = job.tops + usize(i) * job.many;
    const u32 top = known[turn_top(job, at)];
    const float by = scale(__uint_as_float(top));
    if (piece == 0 && threadIdx.x == 0) known[HEAD_TOP] = top, known[HEAD_BY] = __float_as_uint(by);
    const Rows<TURNS> own(job, piece);
    const bool computes = with_s(job) && !job.awake;
    const float *const theta = job.theta + usize(i) * job.p, *const v = job.v + usize(i) * job.p;
    Eight both[TURNS];
    float x[TURNS];
    // All are read before the first is written: one wait instead of four.
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        both[j] = own.read(theta, v, j, own.row(j) * own.classes);
        x[j] = computes && own.c == 0 && own.has(j) ? job.x[at % 2][usize(i) * job.n + own.row(j)] : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        own.split(job, i, j, both[j], by);
        if (!computes) continue;
        const float times = own.times(both[j]);
        if (own.c == 0 && own.has(j)) leave_s(job, i, own.row(j), x[j], times);
    }
}

// A block splits some rows of a layer of x; a thread takes eight columns of a row at a time.
__device__ __forceinline__ void weights(const Job<float> &job, u32 i, const Layer &layer, u32 block, u32 now) {
    const u32 units = layer.units, pieces = (units + 7) / 8, all = layer.rows * pieces, first = block * SPLITTERS * TURNS + threadIdx.x;
    const float *const of = job.x[now] + usize(i) * job.n + layer.offset;
    u8 *const to = layer.to + usize(i) * layer.rows * row_of(units);
    const bool even = (job.n | units | layer.offset) % 4 == 0;
    Eight values[TURNS];
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        const u32 at = first + j * SPLITTERS, row = at / pieces, column = at % pieces * 8, many = at < all ? min(8u, units - column) : 0;
        const float *const from = of + usize(row) * units + column;
        if (even && many) {
            *(float4 *)values[j].at = *(const float4 *)from;
            if (many == 8) *(float4 *)(values[j].at + 4) = *(const float4 *)(from + 4);
            else values[j].at[4] = values[j].at[5] = values[j].at[6] = values[j].at[7] = 0.0f;
        } else
#pragma unroll
            for (int e = 0; e < 8; e++) values[j].at[e] = e < many ? from[e] : 0.0f;
    }
    u32 top = 0;
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        const u32 at = first + j * SPLITTERS;
        if (at >= all) break;
        keep(to + usize(at / pieces) * row_of(units) + place_of(at % pieces * 8), values[j], WEIGHTS);
#pragma unroll
        for (int e = 0; e < 8; e++) top = max(top, bits_of(values[j].at[e]));
    }
    note(layer.top + usize(i) * job.many + (job.scheme == LISTED || job.awake ? 0 : now), 0, top); // after `move`, a word for each buffer
}

// Divides by the same number many times.
struct Divisor {
    u32 by, over; // over: 2^32 / by, rounded up
    __device__ __forceinline__ Divisor(u32 by) : by(by), over(by > 1 ? ~0u / by + 1 : 0) {}
    __device__ __forceinline__ u32 of(u32 a) const {
        const u32 near = by > 1 ? u32(u64(a) * over >> 32) : a; // at most one too large
        return near - (near * by > a);
    }
};

// `move` where `halves` follows: it finds the largest of theta and v.
struct Tops : Numbers {
    // What this evaluation finds the largest of.
    static __device__ __forceinline__ void clear(const Job<float> &job, u32 i, u32 at) {
        u32 *const known = job.tops + usize(i) * job.many;
        known[turn_top(job, at, 2)] = known[DIRECTION_TOP + 1 - at % 2] = known[SLOPE_TOP] = 0;
        for (u32 l = 0; l < job.hidden_layers; l++) {
            u32 *const own = known + LAYERS + l * OF_LAYER;
            own[HIDDEN_TOP] = own[ERROR_TOP] = own[WEIGHT_TOP + at % 2] = 0;
        }
    }
    static __device__ __forceinline__ void turn(const Job<float> &job, u32 at, u32 i, u32 piece) {
        u32 *const word = job.tops + usize(i) * job.many + turn_top(job, at), earlier = __ldca(word), top = 0;
        Numbers::turn(job, at, i, piece, [&](Both<float> both) { top = max(top, max(bits_of(both.theta), bits_of(both.v))); });
        note(word, earlier, top);
    }
};

// `move` that writes halves of theta, v and x beside the numbers, which saves a kernel: faster where there are not many of them.
struct Halves : Tops {
    static __device__ __forceinline__ u32 pieces(const Job<float> &job) { return Rows<1>::pieces(job); }
    // Some rows of theta and v, and of x where it has an entry for each of them.
    static __device__ __forceinline__ void turn(const Job<float> &job, u32 at, u32 i, u32 piece) {
        enum { THREADS = 128 };
        __shared__ float theta[THREADS * SOME], v[THREADS * SOME];
        const Rows<1> own(job, piece);
        const float *const given = steps(job, at), *const steps = steps_of(job, i, given);
        u32 *const known = job.tops + usize(i) * job.many;
        const u32 before = piece * own.each * own.classes, count = min(own.each * own.classes, job.p - before);
        u32 *const word = known + turn_top(job, at);
        const u32 earlier = __ldca(word);
        // Neighbouring lanes move neighbouring numbers.
        const usize first = usize(i) * job.p + before;
        Both<float> both[SOME];
        u32 top = 0;
#pragma unroll
        for (int e = 0; e < SOME; e++) {
            const u32 j = threadIdx.x + e * THREADS;
            if (j < count) both[e] = ::turn(job, steps, first + j);
        }
#pragma unroll
        for (int e = 0; e < SOME; e++) {
            const u32 j = threadIdx.x + e * THREADS;
            if (j >= count) continue;
            ::keep(job, first + j, both[e]);
            theta[j] = both[e].theta, v[j] = both[e].v;
            top = max(top, max(bits_of(both[e].theta), bits_of(both[e].v)));
        }
        note(word, earlier, top);
        // The scale is known before the numbers are: none exceeds the largest before the step and that of the step together.
        const float step = fmaxf(fabsf(steps[1]), fabsf(steps[2]));
        const float bound = fmaf(step, top_of(known, DIRECTION_TOP + at % 2), top_of(known, turn_top(job, at, 0))), by = scale(bound);
        if (piece == 0 && threadIdx.x == 0) known[HEAD_TOP] = __float_as_uint(bound), known[HEAD_BY] = __float_as_uint(by);
        __syncthreads();
        const Eight of_row = own.read(theta, v, 0, threadIdx.x / own.lanes * own.classes);
        own.split(job, i, 0, of_row, by);
        if (!with_s(job)) return;
        const float times = own.times(of_row);
        if (own.c == 0 && own.has(0)) mix<1>(job, at % 2, given, i, own.row(0), 0, [&](int, float x) { leave_s(job, i, own.row(0), x, times); });
    }
    // A warp's new entries of x: of each lane those from j on, 32 apart. Where two lanes have two columns of a row, one writes both high
    // halves, the other both low ones.
    static __device__ __forceinline__ void weights(const Job<float> &job, u32 i, u32 j, u32 at, const float (&x)[SOME]) {
        const u32 first = j - threadIdx.x % 32;
        for (u32 l = 0; l < job.hidden_layers; l++) {
            const Layer layer = job.layers[l];
            const u32 all = layer.rows * layer.units;
            if (first + 32 * SOME <= layer.offset || first >= layer.offset + all) continue;
            u32 *const word = layer.top + usize(i) * job.many + 1 - at % 2;
            const u32 earlier = __ldca(word), of_row = row_of(layer.units);
            const Divisor units(layer.units);
            const bool pairs = (layer.units | layer.offset) % 2 == 0, odd = threadIdx.x % 2;
            u8 *const to = layer.to + usize(i) * layer.rows * of_row;
            u32 top = 0;
#pragma unroll
            for (int e = 0; e < SOME; e++) {
                const u32 entry = j + e * 32 - layer.offset;
                const bool there = entry < all;
                const u32 row = units.of(entry), column = entry - row * units.by;
                u8 *const own = to + usize(row) * of_row + place_of(column);
                top = max(top, there ? bits_of(x[e]) : 0);
                if (!pairs) {
                    if (there) keep(own, x[e], WEIGHTS);
                    continue;
                }
                const __half high = __float2half_rn(x[e] * WEIGHTS), low = __float2half_rn(x[e] * WEIGHTS - __half2float(high));
                const u32 mine = u32(__half_as_ushort(low)) << 16 | __half_as_ushort(high), other = __shfl_xor_sync(~0u, mine, 1);
                if (!there) continue;
                if (!odd) *(u32 *)own = __byte_perm(mine, other, 0x5410);
                else if (both_halves()) *(u32 *)(own - 2 + BEHIND) = __byte_perm(other, mine, 0x7632);
            }
            note(word, earlier, top);
        }
    }
};

// What `draw` clears where no `move` comes before.
struct OfDraws {
    static __device__ __forceinline__ void clear(const Job<float> &job, u32 i, u32 at) {
        u32 *const known = job.tops + usize(i) * job.many;
        known[turn_top(job, at)] = known[SLOPE_TOP] = 0;
        for (u32 l = 0; l < job.hidden_layers; l++) {
            u32 *const own = known + LAYERS + l * OF_LAYER;
            own[HIDDEN_TOP] = own[ERROR_TOP] = own[WEIGHT_TOP] = 0;
        }
    }
};

extern "C" __global__ void __launch_bounds__(SPLITTERS) tops_f32(const __grid_constant__ Job<float> job, u32 at) {
    wait_for_last();
    const u32 each = SPLITTERS * SOME, pieces = (job.p + each - 1) / each, i = blockIdx.x / pieces;
    u32 top = 0;
#pragma unroll
    for (int e = 0; e < SOME; e++) {
        const u32 j = blockIdx.x % pieces * each + e * SPLITTERS + threadIdx.x;
        if (j < job.p) top = max(top, max(bits_of(job.theta[usize(i) * job.p + j]), bits_of(job.v[usize(i) * job.p + j])));
    }
    note(job.tops + usize(i) * job.many + turn_top(job, at), 0, top);
}

// The first blocks split theta and v, the rest x.
extern "C" __global__ void __launch_bounds__(SPLITTERS) halves_f32(const __grid_constant__ Job<float> job, u32 at) {
    wait_for_last();
    u32 block = blockIdx.x;
    if (block < job.m * job.pieces) {
        const u32 i = block / job.pieces;
        if (!asleep(job, i)) heads(job, i, block % job.pieces, at);
        return;
    }
    block -= job.m * job.pieces;
    u32 all = 0;
    for (u32 l = 0; l < job.hidden_layers; l++) all += job.layers[l].blocks;
    const u32 i = block / all;
    block %= all;
    if (asleep(job, i)) return;
    const Layer *layer = job.layers;
    while (block >= layer->blocks) block -= layer++->blocks;
    weights(job, i, *layer, block, at % 2);
}

// ---------------------------------------------------------------- the rest

// Names the count of halves: see instructions.cuh.
extern "C" { __device__ u32 halves_1413829197; }

#define ENTRY(name, call) \
    extern "C" __global__ void __launch_bounds__(128) name(const __grid_constant__ Job<float> job, u32 at) { call; }
ENTRY(move_f32, move<Tops>(job, at))
ENTRY(move_split_f32, move<Halves>(job, at))
ENTRY(draw_f32, draw<OfDraws>(job, at))
ENTRY(crossed_f32, wait_for_last(); crossed(job, at % 2))
// Minibatch xi3 is the last one here.
ENTRY(cleaned_f32, wait_for_last(); cleaned(job, 4, job.adds, 1))
ENTRY(tick_f32, if (threadIdx.x < 2) job.clock[threadIdx.x] += at)
extern "C" __global__ void __launch_bounds__(128) update_f32(const Sums<float> job, u32 at) { update(job, at); }
extern "C" __global__ void __launch_bounds__(128) carry_f32(const Spans<float> job, u32 in) { carry(job, in); }
extern "C" __global__ void __launch_bounds__(FINDERS) find_f32(const Finding<float> job, u32 at) { find_steps(job, at); }
extern "C" __global__ void __launch_bounds__(128) sizes_f32(const Sizes<float> job, u32) { sizes(job); }
