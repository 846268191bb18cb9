// One iteration of every node of `representation` on the tensor cores of a Hopper card, for any number of features,
// units, classes and samples; almost in f32, or with one product in place of several (`terms` is 1: about tf32).
//
//   turn      theta and v, where the last iteration has not moved them
//   update, tops, given     the sums of a listed rule; what `turn` and `mix` do besides moving, where sums have moved
//   mix       x and y of LoPA (9) to (12), or x and r of D-SOBA, from all neighbours; the new x also as second factors of
//             `forward`; theta and v as second factors of `head`; draws the minibatches
//   forward   the rows of all minibatches times the weights: activations; also the head where all units are in a tile
//   head      from activations to slopes of the losses; shares of d and h; the errors of the two minibatches that s
//             depends on
//   outer     d and h from the shares; theta and v after the next step
//   backward  those rows, transposed, times the errors: s; z after the next step
//   find      the rule that finds step sizes (steps.cuh)
//   ready, sizes, tick    once at the start; the largest entry of every variable; the clock
//   carry     what goes to other processes, and what comes from them
//
// Bytes stay bytes, which are exact in half precision; numbers, and whatever features are multiplied with, are split
// into two halves, high and low, that together have 22 bits. Sums are in f32 in an order that is fixed, so that a card
// gives the same bits every time; the order within a tensor core is the card's own, so that src/general/emulate.rs comes
// close to its bits only. Products are fused only where `fmaf` is written (-fmad=false).
//
// The bias of a layer is one more input, which is constant: a feature of every row of the table, and a unit.
//
// First factors come from registers, so that the order of K inside of 16 is free if second factors have the same:
//   forward   place 2t + e (e < 2) is feature 4t + e, place 8 + 2t + e is feature 4t + 2 + e: a lane reads four at once
//   backward  place 8j + 2t + e is row 4j + t + 8e: what a lane of `head` has of the errors is one word
// Second factors in memory: [tile of units][16 of K][high, low][n / 8][k / 8][n % 8][k % 8], halves.
//
// `make` compiles this file into general.ptx.lzma.

#include "cores.cuh"
#include "steps.cuh"

// Everything that a kernel needs; src/general/task.rs has the same fields in the same order. Minibatches are in the order
// xi1, xi2, sigma1 (the front), sigma2, xi3 (the back). Of the shared fields: `linked` has the neighbours without the node;
// `table` has bytes, or halves, with two terms 32 high and 32 low alternately; `weights` has for each node those of its
// minibatches over the largest, then the largest; `stride` is in bytes.
struct Task : Common<float> {
    u8 *factors, *errors; // second factors of `forward` and of `backward`
    u32 *hidden;          // of each row: high, or {high, low}, of two units at a time, the last of them 1
    float *shares;        // of each node and `together` rows of the front: d and h, [deep][d | h | hess][8 groups]
    uint4 *heads;         // theta and v as second factors of the head
    float *tops;          // of each node and 32 units: the largest of |theta| and |v|
    float *scales;        // of each node: see `Scales`
    float ridge, unit, bias; // unit: what stored features are multiplied by; bias: what those of the bias are besides
    u32 across, deep, reach; // units in x; in rows of `hidden` and in scores, in errors: at least those, multiples of 16 and of 8
    u32 terms, width, tiles; // second factors: halves of each number, units of a tile, tiles
    u32 steps_in, steps_back; // of 16: in the features with the bias, in the rows of the back
    u32 groups;               // of 8 classes
    u32 together;             // rows of a block of the head
    u32 end[5];               // of each minibatch, among the rows of a node
    u32 live;                 // of xi2, which is padded to whole tiles of 16 rows where `hess` is wanted: where its samples end
};

// d and h, and where it is wanted the product with v in h.
__device__ __forceinline__ u32 sides(const Task &job) { return job.hess ? 3 : 2; }

// The number that every kernel gets: which buffers are current, whether theta, v and z were moved ahead (z only in
// LoPA-GT), whether they are to be moved ahead, and how many iterations after the clock this is.
struct Moment {
    u32 now;
    bool moved, moves;
    u32 later;
    __device__ __forceinline__ Moment(u32 at) : now(at & 1), moved(at >> 1 & 1), moves(at >> 2 & 1), later(at >> 3) {}
};

__device__ __forceinline__ const float *steps(const Task &job, u32 later) { return job.steps + usize(job.clock[1] + later) * 5; }

// ---------------------------------------------------------------- scales of the head

// Powers of two by which weights, slopes and errors are multiplied before they are split, and what sums are multiplied
// by: scores, errors, d and h, s.
struct Scales {
    float theta, slope, error, score, back, outer, s, none;
};

// Units that a block of `outer` has.
enum { SOME = 32 };
__device__ __forceinline__ u32 parts(const Task &job) { return job.units / SOME + 1; }

__device__ __forceinline__ Scales scales_of(const Task &job, u32 i) {
    const float *tops = job.tops + usize(i) * parts(job) * 2;
    float theta = 0.0f, v = 0.0f;
    for (u32 j = 0; j < parts(job); j++) theta = fmaxf(theta, tops[2 * j]), v = fmaxf(v, tops[2 * j + 1]);
    const float most = job.weights[6 * i + 5], all = 2.0f * float(job.units + 1); // activations are at most 1, slopes 2 in sum
    Scales s;
    s.theta = power_below(fmaxf(theta, v), 14);
    s.slope = power_below(fmaxf(1.0f, all * v), 14);
    s.error = power_below((2.0f * theta + 2.0f * v + all * theta * v) * (job.tanh ? 1.0f : 0.25f), 14);
    s.score = 1.0f / s.theta;
    s.back = s.error / (s.slope * s.theta);
    s.outer = most / s.slope;
    s.s = job.unit * most / s.error;
    s.none = 0.0f;
    return s;
}

__device__ __forceinline__ Scales scales(const Task &job, u32 i) {
    const float4 *from = (const float4 *)job.scales + usize(i) * 2;
    const float4 a = __ldg(from), b = __ldg(from + 1);
    return {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
}

// Leaves the largest of a block's values in `tops`, for `part` of node i.
template <int THREADS> __device__ __forceinline__ void leave_tops(const Task &job, u32 i, u32 part, float theta, float v) {
    __shared__ float all[2][THREADS / 32];
#pragma unroll
    for (int s = 16; s; s >>= 1) theta = fmaxf(theta, __shfl_xor_sync(~0u, theta, s)), v = fmaxf(v, __shfl_xor_sync(~0u, v, s));
    if (threadIdx.x % 32 == 0) all[0][threadIdx.x / 32] = theta, all[1][threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 2) {
        float top = 0.0f;
        for (int j = 0; j < THREADS / 32; j++) top = fmaxf(top, all[threadIdx.x][j]);
        job.tops[(usize(i) * parts(job) + part) * 2 + threadIdx.x] = top;
    }
}

// A block for 32 units of a node. GIVEN: they stay as they are.
template <bool GIVEN> __device__ __forceinline__ void turn(const Task &job, u32 at) {
    const u32 i = blockIdx.x / parts(job), part = blockIdx.x % parts(job);
    if (asleep(job, i)) return;
    const float *step = steps_of(job, i, steps(job, Moment(at).later));
    const float beta = step[1], lambda = step[2];
    const u32 first = part * SOME * job.classes, count = min(SOME * job.classes, job.p - first);
    float theta = 0.0f, v = 0.0f;
    for (u32 j = threadIdx.x; j < count; j += 128) {
        const usize o = usize(i) * job.p + first + j;
        float a = job.theta[o], b = job.v[o];
        if (!GIVEN) {
            a -= beta * job.d[o], b -= lambda * job.h[o];
            job.theta[o] = a, job.v[o] = b;
        }
        theta = fmaxf(theta, fabsf(a)), v = fmaxf(v, fabsf(b));
    }
    leave_tops<128>(job, i, part, theta, v);
}

extern "C" __global__ void __launch_bounds__(128) turn(const __grid_constant__ Task job, u32 at) { turn<false>(job, at); }
extern "C" __global__ void __launch_bounds__(128) tops(const __grid_constant__ Task job, u32 at) { turn<true>(job, at); }
extern "C" __global__ void __launch_bounds__(128) update(const Sums<float> job, u32 at) { update<float>(job, at); }
extern "C" __global__ void __launch_bounds__(FINDERS) find(const Finding<float> job, u32 at) { find_steps(job, at); }

// ---------------------------------------------------------------- mix

// Sixteen samples of a minibatch of node i.
__device__ __forceinline__ void draw(const Task &job, u32 i, u32 b, u32 k) {
    u32 batch = 0;
    while (batch < 4 && b >= job.block[batch + 1]) batch++;
    b -= job.block[batch];
    const u32 side = job.side[batch], first = job.own[side][i], count = job.own[side][i + 1] - first;
    const u32 *owned = job.owned[side] + first;
    u32 o[16];
    words(o, job.seed, job.first + i, k + 1, (job.slot[batch] << 20) + b);
#pragma unroll
    for (u32 t = 0; t < 16; t++)
        o[t] = __ldg(owned + (job.full[batch] ? min(b * 16 + t, count - 1) : u32(u64(o[t]) * count >> 32)));
    u32 *to = job.picks + usize(i) * job.end[4] + job.end[batch] - job.size[batch];
#pragma unroll
    for (u32 t = 0; t < 16; t++)
        if (b * 16 + t < job.size[batch]) to[b * 16 + t] = o[t];
}

// Second factors of the head, of one node, 16 bytes {first high, second high, first low, second low} for each lane:
// theta for scores [deep / 16][groups], v the same; for errors theta [reach / 8][groups / 2], v the same.
__device__ __forceinline__ usize for_scores(const Task &job, u32 groups) { return usize(job.deep / 16) * groups * 32; }
__device__ __forceinline__ usize for_errors(const Task &job, u32 groups) { return usize(job.reach / 8) * (groups / 2) * 32; }
__device__ __forceinline__ usize for_head(const Task &job, u32 groups) { return 2 * (for_scores(job, groups) + for_errors(job, groups)); }

// Those of 32 units of node i, by a block.
__device__ __forceinline__ void make_heads(const Task &job, u32 i, u32 part) {
    const Scales s = scales_of(job, i);
    if (part == 0 && threadIdx.x == 0) {
        float4 *to = (float4 *)job.scales + usize(i) * 2;
        to[0] = make_float4(s.theta, s.slope, s.error, s.score), to[1] = make_float4(s.back, s.outer, s.s, s.none);
    }
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, unit0 = part * SOME;
    uint4 *const theta = job.heads + i * for_head(job, job.groups) + lane, *const v = theta + for_scores(job, job.groups);
    uint4 *const theta_back = v + for_scores(job, job.groups), *const v_back = theta_back + for_errors(job, job.groups);
    const float *const of_theta = job.theta + usize(i) * job.p, *const of_v = job.v + usize(i) * job.p;
    auto put = [&](uint4 *to, const float *of, u32 u0, u32 u1, u32 u2, u32 u3, u32 c0, u32 c1, u32 c2, u32 c3, u32 last) {
        auto entry = [&](u32 u, u32 c) { return u <= last && c < job.classes ? of[u * job.classes + c] * s.theta : 0.0f; };
        uint4 o;
        split(entry(u0, c0), entry(u1, c1), o.x, o.z);
        split(entry(u2, c2), entry(u3, c3), o.y, o.w);
        *to = o;
    };
    for (u32 j = warp; j < 2 * job.groups; j += 4) { // scores: K units, N classes
        const u32 k = unit0 / 16 + j / job.groups, n = j % job.groups, u = 16 * k + 2 * t, c = 8 * n + g;
        if (k >= job.deep / 16) continue;
        const u32 at = (k * job.groups + n) * 32;
        put(theta + at, of_theta, u, u + 1, u + 8, u + 9, c, c, c, c, job.units);
        put(v + at, of_v, u, u + 1, u + 8, u + 9, c, c, c, c, job.units);
    }
    for (u32 j = warp; j < 2 * job.groups; j += 4) { // errors: K classes, N units; the bias has none
        const u32 n = unit0 / 8 + j / (job.groups / 2), k = j % (job.groups / 2), u = 8 * n + g, c = 16 * k + 2 * t;
        if (n >= job.across / 8) continue;
        const u32 at = (n * (job.groups / 2) + k) * 32;
        put(theta_back + at, of_theta, u, u, u, u, c, c + 1, c + 8, c + 9, job.units - 1);
        put(v_back + at, of_v, u, u, u, u, c, c + 1, c + 8, c + 9, job.units - 1);
    }
}

__device__ __forceinline__ float2 two(const float *p) { return *(const float2 *)p; }
// As one instruction, which the compiler would split.
__device__ __forceinline__ void put(float *p, float2 v) { asm volatile("st.global.v2.f32 [%0], {%1, %2};\n" ::"l"(p), "f"(v.x), "f"(v.y) : "memory"); }

// The first blocks draw, some make second factors of the head, the rest mix. A thread has 8 of 16 features, in the order
// above, of two units: all accesses are of neighbouring units, and its words of second factors are whole.
// MOVED: of LoPA-GT, where `backward` has moved z already and left the difference where s was. GIVEN: x stays as it is.
enum { TEAM = 4 };
template <bool MOVED, bool GIVEN> __device__ __forceinline__ void mix(const Task &job, u32 at) {
    __shared__ float2 near[2][8][TEAM][32]; // x and y
    const Moment moment(at);
    const u32 now = moment.now, drawers = (job.m * job.blocks + 127) / 128;
    u32 block = blockIdx.x;
    if (block < drawers) {
        const u32 entry = block * 128 + threadIdx.x;
        if (entry < job.m * job.blocks && !asleep(job, entry / job.blocks)) draw(job, entry / job.blocks, entry % job.blocks, job.clock[0] + moment.later);
        return;
    }
    block -= drawers;
    if (block < job.m * parts(job)) {
        if (!asleep(job, block / parts(job))) make_heads(job, block / parts(job), block % parts(job));
        return;
    }
    block -= job.m * parts(job);
    const float *step = steps(job, moment.later);
    const float gamma = step[3], tau = step[4];
    // A warp has 32 items of a node; those of four nodes are side by side, and read what they need of each other near by.
    const u32 items = job.steps_in * job.across, chunks = (items + 31) / 32, pairs = job.across / 2;
    const u32 teams = (job.m + TEAM - 1) / TEAM, before = block / (2 * chunks) * 2, beside = min(2u, teams - before), place = block - before * chunks;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, node0 = (before + place % beside) * TEAM;
    const bool live = node0 + warp < job.m && place / beside * 32 + lane < items;
    const u32 i = min(node0 + warp, job.m - 1), item = min(place / beside * 32 + lane, items - 1);
    const float alpha = *steps_of(job, i, step);
    const u32 n = item % pairs * 2, group = item / pairs / 2, half = item / pairs % 2, first = group * 16 + 2 * half;
    const usize o = usize(i) * job.n + usize(min(first, job.features)) * job.across + n;
    const float *const x = job.x[now] + o, *const y = job.y[now] + o;
    const bool soba = !MOVED && job.scheme == SOBA, links_x = MOVED || job.scheme != ALONE, links_y = MOVED || job.scheme == TRACKING;
    u32 off[8];
    bool in[8];
    float2 own[8], own_y[8], wx[8], wy[8], difference[8], new_x[8];
#pragma unroll
    for (int q = 0; q < 8; q++) {
        const u32 f = q / 2 * 4 + q % 2;
        in[q] = first + f <= job.features, off[q] = in[q] ? f * job.across : 0;
        own[q] = two(x + off[q]);
        if (GIVEN) new_x[q] = in[q] ? own[q] : make_float2(0.0f, 0.0f);
        else own_y[q] = two(y + off[q]);
        if (MOVED) difference[q] = __ldcs((const float2 *)(job.s + o + off[q]));
    }
    if constexpr (!GIVEN) {
#pragma unroll
    for (int q = 0; q < 8; q++) {
        wx[q] = own[q], wy[q] = own_y[q];
        if (soba) wx[q] = make_float2(own[q].x - alpha * own_y[q].x, own[q].y - alpha * own_y[q].y);
        near[0][q][warp][lane] = own[q], near[1][q][warp][lane] = own_y[q];
    }
    __syncthreads();
    // Read again where it is needed, not kept in registers.
    auto mine = [&](u32 of, int q, u32 warp) {
        float2 v;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(v.x), "=f"(v.y) : "r"(shared(&near[of][q][warp][lane])));
        return v;
    };
    const u32 begin = __ldg(job.links + i), end = links_x ? __ldg(job.links + i + 1) : begin;
    for (u32 l = begin; l < end; l++) {
        const float w = __ldg(job.w + l);
        const u32 other = __ldg(job.linked + l), place = other - node0;
        const float theirs = soba && job.found ? *steps_of(job, other, step) : alpha;
        auto add = [&](int q, float2 a, float2 b) {
            const float2 x = mine(0, q, warp), y = mine(1, q, warp);
            if (soba) {
                const float2 from = make_float2(x.x - alpha * y.x, x.y - alpha * y.y);
                wx[q].x += w * (a.x - theirs * b.x - from.x), wx[q].y += w * (a.y - theirs * b.y - from.y);
            } else {
                wx[q].x += w * (a.x - x.x), wx[q].y += w * (a.y - x.y);
                if (links_y) wy[q].x += w * (b.x - y.x), wy[q].y += w * (b.y - y.y);
            }
        };
        if (place < TEAM)
#pragma unroll
            for (int q = 0; q < 8; q++) add(q, mine(0, q, place), mine(1, q, place));
        else {
            const long long to = ((long long)other - (long long)i) * (long long)job.n;
            float2 a[8], b[8];
#pragma unroll
            for (int q = 0; q < 8; q++) {
                a[q] = two(x + to + off[q]);
                if (links_y || soba) b[q] = two(y + to + off[q]);
            }
#pragma unroll
            for (int q = 0; q < 8; q++) add(q, a[q], b[q]);
        }
    }
    if (!live) return;
    float *const to_x = job.x[1 - now] + o, *const to_y = job.y[1 - now] + o;
    auto relaxed = [&](float own, float wx, float y) { return links_x ? (1.0f - tau) * own + tau * (wx - alpha * y) : own - tau * alpha * y; };
#pragma unroll
    for (int q = 0; q < 8; q++) {
        new_x[q] = make_float2(0.0f, 0.0f);
        if (!in[q]) continue;
        const float2 own = mine(0, q, warp), own_y = mine(1, q, warp);
        float2 new_y;
        if (soba) {
            const float2 s = two(job.s + o + off[q]);
            new_x[q] = wx[q];
            new_y = make_float2((1.0f - gamma) * own_y.x + gamma * s.x, (1.0f - gamma) * own_y.y + gamma * s.y);
        } else {
            new_x[q] = make_float2(relaxed(own.x, wx[q].x, own_y.x), relaxed(own.y, wx[q].y, own_y.y));
            if (!MOVED) {
                const float2 s = two(job.s + o + off[q]), z = two(job.z + o + off[q]);
                const float2 average = make_float2(moving_average(z.x, s.x, gamma), moving_average(z.y, s.y, gamma));
                *(float2 *)(job.z + o + off[q]) = average;
                difference[q] = make_float2(average.x - z.x, average.y - z.y);
                if (!links_y) new_y = average;
            }
            if (links_y) new_y = make_float2(wy[q].x + difference[q].x, wy[q].y + difference[q].y);
        }
        put(to_x + off[q], new_x[q]), put(to_y + off[q], new_y);
    }
    }
    if (!live) return;
    u32 high[2][4], low[2][4];
#pragma unroll
    for (int q = 0; q < 8; q += 2) {
        const u32 f = first + q / 2 * 4;
        const float a = SCALE * (f == job.features ? job.bias : 1.0f), b = SCALE * (f + 1 == job.features ? job.bias : 1.0f);
        split(new_x[q].x * a, new_x[q + 1].x * b, high[0][q / 2], low[0][q / 2]);
        split(new_x[q].y * a, new_x[q + 1].y * b, high[1][q / 2], low[1][q / 2]);
    }
    const u32 within = n % job.width;
    uint4 *to = (uint4 *)(job.factors + ((usize(i) * job.tiles + n / job.width) * job.steps_in + group) * job.terms * job.width * 32 +
                          within / 8 * 256 + half * 128 + within % 8 * 16);
#pragma unroll
    for (int e = 0; e < 2; e++) to[e] = make_uint4(high[e][0], high[e][1], high[e][2], high[e][3]);
    if (job.terms == 2)
#pragma unroll
        for (int e = 0; e < 2; e++) to[job.width * 2 + e] = make_uint4(low[e][0], low[e][1], low[e][2], low[e][3]);
}

extern "C" __global__ void __launch_bounds__(128, 4) mix(const __grid_constant__ Task job, u32 at) { mix<false, false>(job, at); }
extern "C" __global__ void __launch_bounds__(128, 4) mix_moved(const __grid_constant__ Task job, u32 at) { mix<true, false>(job, at); }
extern "C" __global__ void __launch_bounds__(128, 4) given(const __grid_constant__ Task job, u32 at) { mix<false, true>(job, at); }

// ---------------------------------------------------------------- head

extern __shared__ __align__(128) u8 room[];

__device__ __forceinline__ u32 turned_over(u32 a) { // rows and columns of 8 x 8 halves
    u32 b;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(b) : "r"(a));
    return b;
}

// What 16 rows of the front add to d and to h.
__device__ __forceinline__ bool adds_d(const Task &job, u32 tile) { return tile * 16 < job.end[0]; }
__device__ __forceinline__ bool adds_h(const Task &job, u32 tile) { return tile * 16 + 15 >= job.end[0] && tile * 16 < job.end[2]; }

// 16 rows of a node by each of WARPS warps: rows 16 tile ... of the front, or after them of the back. GROUPS of 8 classes.
// STEPS: of 16 units, where all are in one tile; else 0. theta: second factors of the head, those of v and for errors after
// them. slopes: shared memory for the slopes of all warps, as second factors. get(k, high, low): activations of units 16k ...
// as a first factor; pair(n, a, b): {high, low} of units 8n + 2t, + 1 in rows g and g + 8; turned(w, k, high, low): those of
// the rows of warp w, transposed, as a first factor.
template <int GROUPS, int STEPS, int WARPS, int TERMS, class Get, class Pair, class Turned>
__device__ __forceinline__ void head_rows(const Task &job, u32 i, u32 tile0, const uint4 *theta, uint4 *slopes, Get get, Pair pair, Turned turned) {
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, tile = tile0 + warp;
    const u32 rows = job.end[4], front = job.end[2], before = (front + 15) / 16;
    const bool live = tile < before + job.steps_back, back = tile >= before;
    if (!live && tile0 >= before) return;
    const u32 first = back ? front + (tile - before) * 16 : tile * 16, last = back ? rows : front;
    // Where the curvature along v is needed: xi2 and xi3.
    const bool curved = back ? live && first + 15 >= job.end[3] : first + 15 >= job.end[0] && first < job.end[1];
    // Steps of 16 units with the one that is 1, groups of 8 without it.
    const u32 count = STEPS ? STEPS + 1 : job.deep / 16, blocks = STEPS ? STEPS * 2 : job.across / 8;
    const u32 scores = STEPS ? (STEPS + 1) * GROUPS * 32 : for_scores(job, GROUPS), errors = STEPS ? STEPS * GROUPS * 32 : for_errors(job, GROUPS);
    theta += lane;
    const uint4 *const v = theta + scores, *const theta_back = v + scores, *const v_back = theta_back + errors;
    u32 slot[2], label[2]; // asked for early: two dependent loads
    float weight[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const u32 row = first + g + 8 * r;
        slot[r] = row < last ? (row >= job.end[0]) + (row >= job.end[1]) + (row >= job.end[2]) + (row >= job.end[3]) : 5;
        label[r] = row < last ? __ldg(job.labels + job.picks[usize(i) * rows + row]) : ~0u;
        weight[r] = slot[r] < 5 && (slot[r] != 1 || row < job.live) ? __ldg(job.weights + usize(i) * 6 + slot[r]) : 0.0f;
    }
    const Scales s = scales(job, i);
    // Small terms have sums of their own: tensor cores cut sums off, they do not round.
    float L[GROUPS][4] = {}, U[GROUPS][4] = {}, Ll[GROUPS][4] = {}, Ul[GROUPS][4] = {};
#pragma unroll (STEPS ? STEPS + 1 : GROUPS == 2 ? 4 : 2)
    for (u32 k = 0; k < count; k++) {
        u32 high[4], low[4];
        if (STEPS == 0 || k < STEPS) get(k, high, low);
        else { // the unit that is 1, where it is outside of the tile
            high[0] = high[1] = t == 0 && STEPS * 16 == job.units ? 0x3c00u : 0u;
            high[2] = high[3] = low[0] = low[1] = low[2] = low[3] = 0u;
        }
#pragma unroll
        for (int n = 0; n < GROUPS; n++) {
            const uint4 b = theta[(k * GROUPS + n) * 32];
            mma(L[n], high, b.x, b.y);
            if (TERMS == 2) mma(Ll[n], low, b.x, b.y), mma(Ll[n], high, b.z, b.w);
        }
        if (curved)
#pragma unroll
            for (int n = 0; n < GROUPS; n++) {
                const uint4 b = v[(k * GROUPS + n) * 32];
                mma(U[n], high, b.x, b.y);
                if (TERMS == 2) mma(Ul[n], low, b.x, b.y), mma(Ul[n], high, b.z, b.w);
            }
    }
    u32 th[GROUPS / 2][4], tl[GROUPS / 2][4], vh[GROUPS / 2][4], vl[GROUPS / 2][4]; // slopes as first factors
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float top = __int_as_float(0xff800000), total = 0.0f, mean = 0.0f, p[GROUPS][2], u[GROUPS][2];
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                p[n][e] = 8 * n + 2 * t + e < job.classes ? (L[n][2 * r + e] + Ll[n][2 * r + e]) * s.score : __int_as_float(0xff800000);
                u[n][e] = U[n][2 * r + e] + Ul[n][2 * r + e];
                top = fmaxf(top, p[n][e]);
            }
        top = quad_max(top);
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) p[n][e] = exponential(p[n][e] - top), total += p[n][e];
        const float over = inverse(quad_sum(total));
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) p[n][e] *= over, mean = fmaf(p[n][e], u[n][e], mean);
        mean = quad_sum(mean);
        // Slopes of the losses, and of their curvature: of theta | v, which are d | h of the front, and what theta | v are
        // multiplied by of the back.
        const float by = s.slope * weight[r], by_u = s.score * by;
        const float q_theta = slot[r] == 0 || slot[r] == 3 ? by : 0.0f, u_theta = slot[r] == 4 ? -by_u : 0.0f;
        const float q_v = slot[r] == 2 || slot[r] == 4 ? -by : 0.0f, u_v = slot[r] == 1 ? by_u : 0.0f;
#pragma unroll
        for (int n = 0; n < GROUPS; n++) {
            float of_theta[2], of_v[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float q = p[n][e] - (8 * n + 2 * t + e == label[r] ? 1.0f : 0.0f), curve = p[n][e] * (u[n][e] - mean);
                of_theta[e] = fmaf(q, q_theta, curve * u_theta), of_v[e] = fmaf(q, q_v, curve * u_v);
            }
            split(of_theta[0], of_theta[1], th[n / 2][n % 2 * 2 + r], tl[n / 2][n % 2 * 2 + r]);
            split(of_v[0], of_v[1], vh[n / 2][n % 2 * 2 + r], vl[n / 2][n % 2 * 2 + r]);
        }
    }
    if (tile0 < before) { // shares of d and h: activations, transposed, times slopes
        constexpr int ALL = GROUPS * 8, EACH = STEPS ? 1 : GROUPS;
        auto leave = [&](u32 side, const u32 (&high)[GROUPS / 2][4], const u32 (&low)[GROUPS / 2][4]) {
#pragma unroll
            for (int n = 0; n < GROUPS; n++) {
                const u32 *const h = high[n / 2] + n % 2 * 2, *const l = low[n / 2] + n % 2 * 2;
                slopes[((warp * 2 + side) * GROUPS + n) * 32 + lane] =
                    make_uint4(turned_over(h[0]), turned_over(h[1]), TERMS == 2 ? turned_over(l[0]) : 0u, TERMS == 2 ? turned_over(l[1]) : 0u);
            }
        };
        if (!back && adds_d(job, tile)) leave(0, th, tl);
        if (!back && adds_h(job, tile)) leave(1, vh, vl);
        __syncthreads();
        float *const to = job.shares + (usize(i) * ((before * 16 + job.together - 1) / job.together) + tile0 * 16 / job.together) * job.deep * sides(job) * ALL;
        // A warp has 16 units, and one or all groups of classes, of all rows.
        const u32 until = STEPS ? (STEPS * 16 == job.units ? STEPS + 1 : STEPS) : count;
        const u32 until_d = min(u32(WARPS), (job.end[0] + 15) / 16 - min(tile0, (job.end[0] + 15) / 16));
        const u32 from_h = min(u32(WARPS), max(job.end[0] / 16, tile0) - tile0), until_h = min(u32(WARPS), before - tile0);
        // The product with v is what those of h have in sum that are before sigma1.
        const u32 until_hess = job.hess && job.end[1] / 16 > tile0 ? min(u32(WARPS), job.end[1] / 16 - tile0) : 0;
        for (u32 item = warp; item < until * (GROUPS / EACH); item += WARPS) {
            const u32 k = item / (GROUPS / EACH), n0 = item % (GROUPS / EACH) * EACH;
#pragma unroll
            for (int side = 0; side < 2; side++) {
                const u32 from = side ? from_h : 0, to_w = side ? until_h : until_d;
                if (from >= to_w) continue;
                float total[EACH][4] = {};
                auto leave = [&](u32 side) {
#pragma unroll
                    for (int n = 0; n < EACH; n++) {
                        float *const p = to + (16 * k + g) * sides(job) * ALL + side * ALL + 8 * (n0 + n) + 2 * t;
                        *(float2 *)p = make_float2(total[n][0], total[n][1]), *(float2 *)(p + 8 * sides(job) * ALL) = make_float2(total[n][2], total[n][3]);
                    }
                };
#pragma unroll 2
                for (u32 w = from; w < to_w; w++) {
                    u32 high[4], low[4];
                    turned(w, k, high, low);
#pragma unroll
                    for (int n = 0; n < EACH; n++) {
                        const uint4 q = slopes[((w * 2 + side) * GROUPS + n0 + n) * 32 + lane];
                        float sum[4] = {};
                        mma(sum, high, q.x, q.y);
                        if (TERMS == 2) mma(sum, low, q.x, q.y), mma(sum, high, q.z, q.w);
#pragma unroll
                        for (int e = 0; e < 4; e++) total[n][e] += sum[e];
                    }
                    if (side && w + 1 == until_hess) leave(2);
                }
                leave(side);
            }
        }
    }
    if (!back || !live) return;
    const usize step = usize(TERMS) * job.width * 32;
    u8 *to = job.errors + (usize(i) * job.tiles * job.steps_back + (tile - before)) * step + g / 4 * 128 + 2 * t * 16 + g % 4 * 4;
    u32 within = 0; // unit inside of its tile
#pragma unroll (STEPS ? STEPS * 2 : GROUPS == 2 ? 4 : 2)
    for (u32 n = 0; n < blocks; n++) {
        uint2 a0, a1;
        pair(n, a0, a1);
        float sum[4] = {}, small[4] = {};
#pragma unroll
        for (int k = 0; k < GROUPS / 2; k++) {
            const uint4 b = theta_back[(n * (GROUPS / 2) + k) * 32];
            mma(sum, th[k], b.x, b.y);
            if (TERMS == 2) mma(small, tl[k], b.x, b.y), mma(small, th[k], b.z, b.w);
        }
        if (curved)
#pragma unroll
            for (int k = 0; k < GROUPS / 2; k++) {
                const uint4 b = v_back[(n * (GROUPS / 2) + k) * 32];
                mma(sum, vh[k], b.x, b.y);
                if (TERMS == 2) mma(small, vl[k], b.x, b.y), mma(small, vh[k], b.z, b.w);
            }
        auto number = [](u32 high, u32 low) {
            const float2 a = __half22float2(*reinterpret_cast<__half2 *>(&high)), b = __half22float2(*reinterpret_cast<__half2 *>(&low));
            return TERMS == 2 ? make_float2(a.x + b.x, a.y + b.y) : a;
        };
        const float2 p0 = number(a0.x, a0.y), p1 = number(a1.x, a1.y);
        const float a[4] = {p0.x, p0.y, p1.x, p1.y};
#pragma unroll
        for (int e = 0; e < 4; e++) sum[e] = (sum[e] + small[e]) * (s.back * ((job.tanh ? 1.0f : a[e]) - a[e] * a[e]));
        u8 *const own = to + within * 32;
        within += 8;
        if (!STEPS && within == job.width) within = 0, to += job.steps_back * step;
#pragma unroll
        for (int e = 0; e < 2; e++) {
            u32 high, low;
            split(sum[e], sum[e + 2], high, low);
            *(u32 *)(own + e * 16) = high;
            if (TERMS == 2) *(u32 *)(own + job.width * 32 + e * 16) = low;
        }
    }
}

// Two units as they are kept: high, or {high, low}.
template <int TERMS> struct Kept {
    typedef uint2 Two;
};
template <> struct Kept<1> {
    typedef u32 Two;
};
__device__ __forceinline__ uint2 both(uint2 a) { return a; }
__device__ __forceinline__ uint2 both(u32 a) { return make_uint2(a, 0u); }
__device__ __forceinline__ void keep(uint2 &to, uint2 a) { to = a; }
__device__ __forceinline__ void keep(u32 &to, uint2 a) { to = a.x; }

// Activations as a first factor, transposed.
__device__ __forceinline__ void turned_over(const u32 (&a)[4], u32 (&b)[4]) {
    b[0] = turned_over(a[0]), b[1] = turned_over(a[2]), b[2] = turned_over(a[1]), b[3] = turned_over(a[3]);
}

// Where activations come from memory: WARPS warps, 16 rows each.
template <int GROUPS, int WARPS, int TERMS> __device__ __forceinline__ void head(const Task &job) {
    typedef typename Kept<TERMS>::Two Two;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, rows = job.end[4], front = job.end[2], before = (front + 15) / 16;
    const u32 down = (before + job.steps_back + WARPS - 1) / WARPS, i = blockIdx.x / down, tile0 = blockIdx.x % down * WARPS, tile = tile0 + warp;
    if (asleep(job, i)) return;
    const u32 first = tile >= before ? front + (tile - before) * 16 : tile * 16;
    auto from = [&](u32 row) { return (const Two *)job.hidden + (usize(i) * rows + min(row, rows - 1)) * (job.deep / 2) + t; };
    auto four = [&](const Two *h0, const Two *h1, u32 k, u32 (&high)[4], u32 (&low)[4]) {
        const uint2 a0 = both(h0[8 * k]), a1 = both(h1[8 * k]), a2 = both(h0[8 * k + 4]), a3 = both(h1[8 * k + 4]);
        high[0] = a0.x, high[1] = a1.x, high[2] = a2.x, high[3] = a3.x, low[0] = a0.y, low[1] = a1.y, low[2] = a2.y, low[3] = a3.y;
    };
    const Two *const h0 = from(first + g), *const h1 = from(first + g + 8);
    head_rows<GROUPS, 0, WARPS, TERMS>(job, i, tile0, job.heads + i * for_head(job, GROUPS), (uint4 *)room,
        [&](u32 k, u32 (&high)[4], u32 (&low)[4]) { four(h0, h1, k, high, low); },
        [&](u32 n, uint2 &a, uint2 &b) { a = both(h0[4 * n]), b = both(h1[4 * n]); },
        [&](u32 w, u32 k, u32 (&high)[4], u32 (&low)[4]) {
            u32 a[4], b[4];
            const u32 row = (tile0 + w) * 16 + g;
            four(from(row), from(row + 8), k, a, b);
            turned_over(a, high);
            if (TERMS == 2) turned_over(b, low);
        });
}

#define HEAD(groups, terms, warps, blocks) \
    extern "C" __global__ void __launch_bounds__(warps * 32, blocks) head_##groups##_##terms(const __grid_constant__ Task job, u32) { head<groups, warps, terms>(job); }
#define HEADS(groups, warps, blocks) HEAD(groups, 2, warps, blocks) HEAD(groups, 1, warps, blocks)
HEADS(2, 4, 4)
HEADS(4, 4, 3)
HEADS(8, 4, 2)

// ---------------------------------------------------------------- products

__device__ __forceinline__ u32 word(u32 a) {
    u32 v;
    asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(v) : "r"(a));
    return v;
}
__device__ __forceinline__ uint2 words_at(u32 a) {
    uint2 v;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];\n" : "=r"(v.x), "=r"(v.y) : "r"(a));
    return v;
}

constexpr int most(int a, int b) { return a < b ? b : a; }

// How many blocks a multiprocessor should have.
constexpr int blocks_of(int threads, int registers, int room) {
    const int a = 65536 / (threads * ((registers + 7) / 8 * 8)), b = 232448 / (room + 1024);
    return a < b ? (a < 1 ? 1 : a) : (b < 1 ? 1 : b);
}

// ---------------------------------------------------------------- forward

// WG warpgroups of 64 rows, WIDTH units. NUMBERS: halves instead of bytes. GROUPS > 0: all units are in the one tile, and
// the head follows in registers. DEEP: the products of a stage run while the next one is fetched.
template <bool NUMBERS_, int TERMS_, int WG_, int WIDTH_, int STAGES_, int GROUPS_, bool DEEP_> struct Forward {
    static constexpr bool NUMBERS = NUMBERS_, DEEP = DEEP_, BOTH = NUMBERS && TERMS_ == 2;
    static constexpr int TERMS = TERMS_, WG = WG_, WIDTH = WIDTH_, STAGES = STAGES_, GROUPS = GROUPS_, THREADS = WG * 128, ROWS = WG * 64;
    // Of a stage: steps of 16 features, bytes of a row, and the distance of rows (no bank conflicts).
    static constexpr int K16 = BOTH ? 2 : 4, SEGMENT = NUMBERS ? 128 : 64, PITCH = NUMBERS ? 160 : 80;
    static constexpr int A = ROWS * PITCH, STEP = TERMS * WIDTH * 32, B = K16 * STEP;
    // Of the head: second factors, in a stage of their own; activations and slopes of all warps, in two neighbouring stages.
    static constexpr int STEPS = WIDTH / 16, HEADS = ((STEPS + 1) * 2 + STEPS * 2) * GROUPS * 512;
    static constexpr int TURNED = WG * 4 * STEPS * 1024, SLOPES = WG * 4 * 2 * GROUPS * 512;
    static constexpr int STAGE = GROUPS ? most(A + B, most(HEADS, (TURNED + SLOPES) / 2)) : A + B, ROOM = STAGE * STAGES;
    static constexpr int BLOCKS = blocks_of(THREADS, WIDTH / 2 + 16 * (DEEP ? 2 : 1) + 32, ROOM);
};

template <class C> __device__ __forceinline__ void forward(const Task &job) {
    constexpr int PARTS = C::SEGMENT / 16, EACH = C::ROWS * PARTS / C::THREADS;
    const u32 tid = threadIdx.x, wg = tid / 128, warp = tid / 32 % 4, lane = tid % 32, g = lane / 4, t = lane % 4;
    // The front, then the back, each padded to 16.
    const u32 front = (job.end[2] + 15) / 16 * 16, rows = front + job.steps_back * 16, back = job.end[4] - job.end[2];
    const u32 down = (rows + C::ROWS - 1) / C::ROWS, tile = blockIdx.x % job.tiles, rest = blockIdx.x / job.tiles;
    const u32 i = rest / down, row0 = rest % down * C::ROWS, base = shared(room);
    if (asleep(job, i)) return;
    u32 from[EACH]; // in 16 bytes
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const u32 at = tid + j * C::THREADS, row = row0 + at / PARTS;
        const u32 place = row < front ? min(row, job.end[2] - 1) : job.end[2] + min(row - front, back - 1);
        from[j] = __ldg(job.picks + usize(i) * job.end[4] + min(place, job.end[4] - 1)) * (job.stride / 16) + at % PARTS;
    }
    const u8 *const factors = job.factors + (usize(i) * job.tiles + tile) * job.steps_in * C::STEP;
    const int count = (job.steps_in + C::K16 - 1) / C::K16;
    auto load = [&](int k) {
        if (k < count) {
            const u32 to = base + k % C::STAGES * C::STAGE;
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                const u32 at = tid + j * C::THREADS;
                copy16(to + at / PARTS * C::PITCH + at % PARTS * 16, job.table + usize(from[j] + k * PARTS) * 16);
            }
            const u32 bytes = min(C::K16, int(job.steps_in) - k * C::K16) * C::STEP;
#pragma unroll
            for (int j = 0; j < (C::B / 16 + C::THREADS - 1) / C::THREADS; j++) {
                const u32 at = (tid + j * C::THREADS) * 16;
                if (at < bytes) copy16(to + C::A + at, factors + usize(k) * C::B + at);
            }
        } else if constexpr (C::GROUPS > 0) {
            const u32 to = base + k % C::STAGES * C::STAGE;
            const u8 *const heads = (const u8 *)(job.heads + i * for_head(job, C::GROUPS));
            if (k == count) // written out: of a loop that it unrolls itself, ptxas (12.4 and 12.9) got the places wrong
#pragma unroll
                for (int j = 0; j < (C::HEADS / 16 + C::THREADS - 1) / C::THREADS; j++) {
                    const u32 at = (tid + j * C::THREADS) * 16;
                    if (at < C::HEADS) copy16(to + at, heads + at);
                }
        }
        commit();
    };
    float sum[C::WIDTH / 2] = {};
#pragma unroll
    for (int k = 0; k < C::STAGES - (C::DEEP ? 2 : 1); k++) load(k);
    auto fetch = [&](u32 a, int s, u32 (&high)[4], u32 (&low)[4]) {
        if constexpr (C::NUMBERS) {
            uint2 u = words_at(a + s * 32 + t * 8), v = words_at(a + 8 * C::PITCH + s * 32 + t * 8);
            high[0] = u.x, high[2] = u.y, high[1] = v.x, high[3] = v.y;
            if constexpr (C::BOTH) {
                u = words_at(a + 64 + s * 32 + t * 8), v = words_at(a + 64 + 8 * C::PITCH + s * 32 + t * 8);
                low[0] = u.x, low[2] = u.y, low[1] = v.x, low[3] = v.y;
            }
        } else {
            const u32 u = word(a + s * 16 + t * 4), v = word(a + 8 * C::PITCH + s * 16 + t * 4);
            high[0] = __byte_perm(u, 0, 0x4140), high[2] = __byte_perm(u, 0, 0x4342);
            high[1] = __byte_perm(v, 0, 0x4140), high[3] = __byte_perm(v, 0, 0x4342);
        }
    };
    auto issue = [&](u32 b, u32 (&high)[4], u32 (&low)[4]) {
        product<false>(sum, high, descriptor(b));
        if (C::TERMS == 2) product<false>(sum, high, descriptor(b + C::WIDTH * 32));
        if (C::BOTH) product<false>(sum, low, descriptor(b));
    };
    const u32 own = (wg * 64 + warp * 16 + g) * C::PITCH;
    const int full = job.steps_in / C::K16;
    u32 high[C::DEEP ? 2 : 1][C::K16][4], low[C::DEEP ? 2 : 1][C::K16][4];
    auto stage = [&](int k, u32 (&high)[C::K16][4], u32 (&low)[C::K16][4]) {
        copied<C::STAGES - (C::DEEP ? 3 : 2)>();
        async_fence();
        __syncthreads();
        load(k + C::STAGES - (C::DEEP ? 2 : 1));
        const u32 at = base + k % C::STAGES * C::STAGE;
#pragma unroll
        for (int s = 0; s < C::K16; s++) fetch(at + own, s, high[s], low[s]);
        begin_products();
#pragma unroll
        for (int s = 0; s < C::K16; s++) issue(at + C::A + s * C::STEP, high[s], low[s]);
        end_products();
        multiplied<C::DEEP ? 1 : 0>();
    };
    int k = 0;
    if constexpr (C::DEEP) {
        for (; k + 1 < full; k += 2) stage(k, high[0], low[0]), stage(k + 1, high[1], low[1]);
        if (k < full) stage(k, high[0], low[0]);
        multiplied<0>();
    } else
        for (; k < full; k++) stage(k, high[0], low[0]);
    if (full < count) { // the last steps, fewer than a stage has
        copied<0>();
        async_fence();
        __syncthreads();
        const u32 at = base + full % C::STAGES * C::STAGE;
        for (int s = 0; s < int(job.steps_in) - full * C::K16; s++) {
            u32 high[4], low[4];
            fetch(at + own, s, high, low);
            begin_products();
            issue(at + C::A + s * C::STEP, high, low);
            end_products();
            multiplied<0>();
        }
    }
    copied<0>();
    const u32 first = row0 + wg * 64 + warp * 16;
    if (!C::GROUPS && first >= rows) return;
    const float unit = job.unit / SCALE * exponent(job.tanh);
    uint2 a[2][C::WIDTH / 8]; // {high, low} of units 8j + 2t, + 1 in rows g and g + 8
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int j = 0; j < C::WIDTH / 8; j++)
            split(activated(sum[4 * j + 2 * r] * unit, job.tanh), activated(sum[4 * j + 2 * r + 1] * unit, job.tanh), a[r][j].x, a[r][j].y);
    const u32 left = job.units - tile * C::WIDTH;
    if (left < C::WIDTH) // after the last unit the one that is 1, then zeros
#pragma unroll
        for (int j = 0; j < C::WIDTH / 8; j++) {
            const u32 n = 8 * j + 2 * t;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                if (n >= left) a[r][j] = make_uint2(n == left ? 0x3c00u : 0u, 0u);
                else if (n + 1 == left) a[r][j] = make_uint2((a[r][j].x & 0xffffu) | 0x3c000000u, a[r][j].y & 0xffffu);
            }
        }
    if constexpr (C::GROUPS == 0)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const u32 row = first + g + 8 * r, place = first < front ? row : job.end[2] + row - front;
            auto to = (typename Kept<C::TERMS>::Two *)job.hidden + (usize(i) * job.end[4] + place) * (job.deep / 2) + tile * (C::WIDTH / 2) + t;
            if (place < (first < front ? job.end[2] : job.end[4]))
#pragma unroll
                for (int j = 0; j < C::WIDTH / 8; j++)
                    if (tile * C::WIDTH + 8 * j + 2 * t < job.units) keep(to[4 * j], a[r][j]);
        }
    if constexpr (C::GROUPS > 0) {
        __syncthreads(); // products are done, second factors of the head are there
        const u32 slot = count % C::STAGES;
        uint4 *const turned = (uint4 *)(room + (slot < 2 ? 2 : 0) * C::STAGE), *const slopes = turned + C::TURNED / 16;
        auto four = [&](u32 k, u32 (&high)[4], u32 (&low)[4]) {
            high[0] = a[0][2 * k].x, high[1] = a[1][2 * k].x, high[2] = a[0][2 * k + 1].x, high[3] = a[1][2 * k + 1].x;
            low[0] = a[0][2 * k].y, low[1] = a[1][2 * k].y, low[2] = a[0][2 * k + 1].y, low[3] = a[1][2 * k + 1].y;
        };
        if (first < front)
#pragma unroll
            for (int k = 0; k < C::STEPS; k++) {
                u32 high[4], low[4], h[4], l[4];
                four(k, high, low);
                turned_over(high, h);
                uint4 *const to = turned + ((tid / 32 * C::STEPS + k) * 2) * 32 + lane;
                to[0] = make_uint4(h[0], h[1], h[2], h[3]);
                if (C::TERMS == 2) turned_over(low, l), to[32] = make_uint4(l[0], l[1], l[2], l[3]);
            }
        head_rows<C::GROUPS, C::STEPS, C::WG * 4, C::TERMS>(job, i, row0 / 16, (const uint4 *)(room + slot * C::STAGE), slopes, four,
            [&](u32 n, uint2 &a0, uint2 &a1) { a0 = a[0][n], a1 = a[1][n]; },
            [&](u32 w, u32 k, u32 (&high)[4], u32 (&low)[4]) {
                const uint4 *const from = turned + ((w * C::STEPS + k) * 2) * 32 + lane;
                uint4 h = make_uint4(g == 0 ? 0x3c003c00u : 0u, 0u, g == 0 ? 0x3c003c00u : 0u, 0u), l = make_uint4(0u, 0u, 0u, 0u);
                if (k < C::STEPS) { // else the unit that is 1
                    h = from[0];
                    if (C::TERMS == 2) l = from[32];
                }
                high[0] = h.x, high[1] = h.y, high[2] = h.z, high[3] = h.w, low[0] = l.x, low[1] = l.y, low[2] = l.z, low[3] = l.w;
            });
    }
}

// forward_KIND_TERMS_WIDTH_ROWS and _head: src/general/shape.rs chooses.
#define FORWARD(kind, terms, width, wg, stages, head, deep) \
    extern "C" __global__ void __launch_bounds__(wg * 128, Forward<kind, terms, wg, width, stages, 0, deep>::BLOCKS) \
    FORWARD_NAME(kind, terms, width, wg, head)(const __grid_constant__ Task job, u32) { \
        forward<Forward<kind, terms, wg, width, stages, head ? 2 : 0, deep>>(job); \
    }
#define FORWARD_NAME(kind, terms, width, wg, head) FORWARD_NAME_(kind, terms, width, wg, head)
#define FORWARD_NAME_(kind, terms, width, wg, head) forward_##kind##_##terms##_##width##_##wg##_##head
enum { bytes = 0, numbers = 1 };
#define FORWARDS(kind, terms) \
    FORWARD(kind, terms, 32, 1, 4, 0, false) FORWARD(kind, terms, 32, 1, 4, 1, false) \
    FORWARD(kind, terms, 48, 1, 4, 0, false) FORWARD(kind, terms, 48, 1, 4, 1, false) \
    FORWARD(kind, terms, 48, 2, 4, 0, true) FORWARD(kind, terms, 48, 2, 4, 1, true) \
    FORWARD(kind, terms, 64, 1, 4, 0, false) FORWARD(kind, terms, 64, 1, 4, 1, false) \
    FORWARD(kind, terms, 64, 2, 4, 0, true) FORWARD(kind, terms, 64, 2, 4, 1, true) \
    FORWARD(kind, terms, 80, 1, 4, 0, false) FORWARD(kind, terms, 80, 2, 3, 0, true) \
    FORWARD(kind, terms, 104, 1, 4, 0, false) FORWARD(kind, terms, 104, 2, 3, 0, true)
FORWARDS(bytes, 2)
FORWARDS(numbers, 2)
FORWARDS(bytes, 1)
FORWARDS(numbers, 1)

// ---------------------------------------------------------------- outer

// d and h of 32 units of a node (unit `units` is the bias), by a block.
extern "C" __global__ void __launch_bounds__(256) outer(const __grid_constant__ Task job, u32 at) {
    const Moment moment(at);
    const u32 i = blockIdx.x / parts(job), part = blockIdx.x % parts(job), first = part * SOME * job.classes;
    const u32 count = min(SOME * job.classes, job.p - first), all = 8 * job.groups;
    const u32 front = (job.end[2] + 15) / 16 * 16, blocks = (front + job.together - 1) / job.together;
    const u32 until_d = (job.end[0] + job.together - 1) / job.together, from_h = job.end[0] / job.together;
    if (asleep(job, i)) return;
    const u32 until_hess = (job.end[1] + job.together - 1) / job.together;
    const float *const shares = job.shares + usize(i) * blocks * job.deep * sides(job) * all;
    const Scales s = scales(job, i);
    const float *step = steps(job, moment.later + 1);
    const float beta = step[1], lambda = step[2];
    float top = 0.0f, top_v = 0.0f;
    for (u32 j = threadIdx.x; j < count; j += 256) {
        const u32 u = (first + j) / job.classes, k = (first + j) % job.classes;
        const float *share = shares + usize(u) * sides(job) * all + k;
        const usize each = usize(job.deep) * sides(job) * all, o = usize(i) * job.p + first + j;
        float d = 0.0f, h = 0.0f;
        for (u32 b = 0; b < until_d; b++) d += share[b * each];
        for (u32 b = from_h; b < blocks; b++) h += share[b * each + all];
        const float theta = job.theta[o], v = job.v[o];
        if (job.hess) {
            float hess = 0.0f;
            for (u32 b = from_h; b < until_hess; b++) hess += share[b * each + 2 * all];
            job.hess[o] = fmaf(job.ridge, v, hess * s.outer);
        }
        d = fmaf(job.ridge, theta, d * s.outer), h = fmaf(job.ridge, v, h * s.outer);
        if (moment.moves) {
            const float a = theta - beta * d, b = v - lambda * h;
            job.theta[o] = a, job.v[o] = b;
            top = fmaxf(top, fabsf(a)), top_v = fmaxf(top_v, fabsf(b));
        } else
            job.d[o] = d, job.h[o] = h;
    }
    if (moment.moves) leave_tops<256>(job, i, part, top, top_v);
}

// ---------------------------------------------------------------- backward

// A warpgroup for 128 features (bytes) or 64 (numbers) and WIDTH units; K: the rows of the back, 32 in a stage.
template <bool NUMBERS_, int TERMS_, int WIDTH_, int STAGES_> struct Backward {
    static constexpr bool NUMBERS = NUMBERS_, BOTH = NUMBERS && TERMS_ == 2;
    static constexpr int TERMS = TERMS_, WIDTH = WIDTH_, STAGES = STAGES_, MT = NUMBERS ? 1 : 2, SEGMENT = BOTH ? 256 : 128;
    static constexpr int FEATURES = MT * 64, KR = 32, PITCH = SEGMENT + 32, A = KR * PITCH, STEP = TERMS * WIDTH * 32, B = 2 * STEP;
    static constexpr int STAGE = A + B, ROOM = STAGE * STAGES; // and 4 bytes for each row
    static constexpr int BLOCKS = blocks_of(128, MT * WIDTH / 2 + 16 + 60, ROOM + 4096);
};

// Of four lanes t: two sums of units 2t, 2t + 1 and two of 8 + 2t, 9 + 2t become four neighbouring ones, of units 4t for t < 2
// and of 8 + 4 (t - 2) otherwise.
__device__ __forceinline__ float4 four(float a, float b, float c, float d, u32 t) {
    const bool upper = t >= 2, odd = t % 2;
    // The other half's group for this half's.
    const float e = __shfl_xor_sync(~0u, upper ? a : c, 2), f = __shfl_xor_sync(~0u, upper ? b : d, 2);
    // Units 2 (t % 2) and 4 + 2 (t % 2) of the group.
    const float p = upper ? e : a, q = upper ? f : b, u = upper ? c : e, v = upper ? d : f;
    const float g = __shfl_xor_sync(~0u, odd ? p : u, 1), h = __shfl_xor_sync(~0u, odd ? q : v, 1);
    return odd ? make_float4(g, h, u, v) : make_float4(p, q, g, h);
}

template <class C> __device__ __forceinline__ void backward(const Task &job, u32 at_) {
    constexpr int PARTS = C::SEGMENT / 16, EACH = C::KR * PARTS / 128;
    const Moment moment(at_);
    const u32 tid = threadIdx.x, warp = tid / 32, lane = tid % 32, g = lane / 4, t = lane % 4;
    const u32 inputs = job.features + 1, down = (inputs + C::FEATURES - 1) / C::FEATURES;
    const u32 tile = blockIdx.x % job.tiles, rest = blockIdx.x / job.tiles, i = rest / down, block = rest % down;
    const u32 back = job.end[4] - job.end[2];
    u32 *const row = (u32 *)(room + C::ROOM);
    for (u32 r = tid; r < job.steps_back * 16 + 16; r += 128)
        row[r] = __ldg(job.picks + usize(i) * job.end[4] + job.end[2] + min(r, back - 1)) * (job.stride / 16);
    __syncthreads();
    const u8 *const errors = job.errors + (usize(i) * job.tiles + tile) * job.steps_back * C::STEP;
    const u32 base = shared(room), segment = block * PARTS, most = job.stride / 16;
    const int count = (job.steps_back + 1) / 2;
    auto load = [&](int k) {
        if (k < count) {
            const u32 to = base + k % C::STAGES * C::STAGE;
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                const u32 at = tid + j * 128, r = at / PARTS, part = segment + at % PARTS;
                if (part < most) copy16(to + r * C::PITCH + at % PARTS * 16, job.table + usize(row[k * C::KR + r] + part) * 16);
            }
            const u32 bytes = min(2, int(job.steps_back) - 2 * k) * C::STEP;
#pragma unroll
            for (int j = 0; j < (C::B / 16 + 127) / 128; j++) {
                const u32 at = (tid + j * 128) * 16;
                if (at < bytes) copy16(to + C::A + at, errors + usize(k) * C::B + at);
            }
        }
        commit();
    };
    float sum[C::MT][C::WIDTH / 2] = {};
#pragma unroll
    for (int k = 0; k < C::STAGES - 1; k++) load(k);
    auto step = [&](u32 a, u32 b) {
        u32 high[C::MT][4], low[C::MT][4];
#pragma unroll
        for (int j = 0; j < 2; j++) { // rows t and t + 8, or 4 more
            if constexpr (C::NUMBERS) { // two features each
                const u32 p = a + (t + 4 * j) * C::PITCH + (C::BOTH ? warp / 2 * 128 + (warp % 2 * 8 + g) * 4 : (warp * 8 + g) * 4);
                const u32 u = word(p), v = word(p + 8 * C::PITCH);
                high[0][2 * j] = __byte_perm(u, v, 0x5410), high[0][2 * j + 1] = __byte_perm(u, v, 0x7632);
                if constexpr (C::BOTH) {
                    const u32 ul = word(p + 64), vl = word(p + 64 + 8 * C::PITCH);
                    low[0][2 * j] = __byte_perm(ul, vl, 0x5410), low[0][2 * j + 1] = __byte_perm(ul, vl, 0x7632);
                }
            } else { // four features each
                const u32 p = a + (t + 4 * j) * C::PITCH + (warp * 8 + g) * 4;
                const u32 u = word(p), v = word(p + 8 * C::PITCH), p01 = __byte_perm(u, v, 0x5410), p23 = __byte_perm(u, v, 0x7632);
                high[0][2 * j] = p01 & 0x00ff00ff, high[0][2 * j + 1] = p01 >> 8 & 0x00ff00ff;
                high[C::MT - 1][2 * j] = p23 & 0x00ff00ff, high[C::MT - 1][2 * j + 1] = p23 >> 8 & 0x00ff00ff;
            }
        }
        begin_products();
#pragma unroll
        for (int w = 0; w < C::MT; w++) {
            product<false>(sum[w], high[w], descriptor(b));
            if (C::TERMS == 2) product<false>(sum[w], high[w], descriptor(b + C::WIDTH * 32));
            if (C::BOTH) product<false>(sum[w], low[w], descriptor(b));
        }
        end_products();
    };
    for (int k = 0; k < count; k++) {
        copied<C::STAGES - 2>();
        async_fence();
        __syncthreads();
        load(k + C::STAGES - 1);
        const u32 a = base + k % C::STAGES * C::STAGE, b = a + C::A;
        step(a, b);
        if (2 * k + 1 < job.steps_back) step(a + 16 * C::PITCH, b + C::STEP);
        multiplied<0>();
    }
    copied<0>();
    const bool moves = moment.moves && job.scheme == TRACKING;
    const float gamma = steps(job, moment.later + 1)[3], unit = scales(job, i).s;
#pragma unroll
    for (int w = 0; w < C::MT; w++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const u32 f = block * C::FEATURES + (C::NUMBERS ? 2 * (warp * 8 + g) + r : 4 * (warp * 8 + g) + 2 * w + r);
            const bool inside = f < inputs; // all lanes exchange
            const float by = f == job.features ? unit * job.bias : unit;
            const usize at = usize(i) * job.n + usize(f) * job.across + tile * C::WIDTH;
            // Two groups of 8 units at a time: lanes 0 and 1 of four get those of the first, 2 and 3 those of the second.
            float4 s[C::WIDTH / 16], old[C::WIDTH / 16];
            const usize own = at + 4 * (t % 2) + t / 2 * 8;
            auto there = [&](int j) { return inside && tile * C::WIDTH + 16 * j + t / 2 * 8 < job.across; };
            if (moves)
#pragma unroll
                for (int j = 0; j < C::WIDTH / 16; j++)
                    if (there(j)) old[j] = *(const float4 *)(job.z + own + 16 * j);
#pragma unroll
            for (int j = 0; j < C::WIDTH / 16; j++) s[j] = four(sum[w][8 * j + 2 * r] * by, sum[w][8 * j + 2 * r + 1] * by, sum[w][8 * j + 4 + 2 * r] * by, sum[w][8 * j + 5 + 2 * r] * by, t);
#pragma unroll
            for (int j = 0; j < C::WIDTH / 16; j++)
                if (there(j)) {
                    if (moves) {
                        const float4 z = old[j];
                        const float4 next = make_float4(moving_average(z.x, s[j].x, gamma), moving_average(z.y, s[j].y, gamma), moving_average(z.z, s[j].z, gamma), moving_average(z.w, s[j].w, gamma));
                        *(float4 *)(job.z + own + 16 * j) = next;
                        s[j] = make_float4(next.x - z.x, next.y - z.y, next.z - z.z, next.w - z.w);
                    }
                    __stcs((float4 *)(job.s + own + 16 * j), s[j]);
                }
            if constexpr (C::WIDTH % 16) {
                constexpr int j = C::WIDTH / 8 - 1;
                const usize last = at + 8 * j + 2 * t;
                if (inside && tile * C::WIDTH + 8 * j < job.across) {
                    float2 s = make_float2(sum[w][4 * j + 2 * r] * by, sum[w][4 * j + 2 * r + 1] * by);
                    if (moves) {
                        const float2 z = two(job.z + last), next = make_float2(moving_average(z.x, s.x, gamma), moving_average(z.y, s.y, gamma));
                        *(float2 *)(job.z + last) = next;
                        s = make_float2(next.x - z.x, next.y - z.y);
                    }
                    __stcs((float2 *)(job.s + last), s);
                }
            }
        }
}

#define BACKWARD(kind, terms, width) \
    extern "C" __global__ void __launch_bounds__(128, Backward<kind, terms, width, 4>::BLOCKS) \
    backward_##kind##_##terms##_##width(const __grid_constant__ Task job, u32 at) { backward<Backward<kind, terms, width, 4>>(job, at); }
#define BACKWARDS(kind, terms) \
    BACKWARD(kind, terms, 32) BACKWARD(kind, terms, 48) BACKWARD(kind, terms, 64) BACKWARD(kind, terms, 80) BACKWARD(kind, terms, 104)
BACKWARDS(bytes, 2)
BACKWARDS(numbers, 2)
BACKWARDS(bytes, 1)
BACKWARDS(numbers, 1)

// ---------------------------------------------------------------- the rest

// The unit after the last is 1 in every row, those after it 0, where activations are kept.
extern "C" __global__ void __launch_bounds__(128) ready(const __grid_constant__ Task job, u32) {
    const usize row = usize(blockIdx.x) * 128 + threadIdx.x;
    if (row >= usize(job.m) * job.end[4]) return;
    for (u32 n = job.units / 2 * 2; n < job.deep; n += 2) // all low halves are 0
        job.hidden[(row * (job.deep / 2) + n / 2) * job.terms] = n == job.units ? 0x3c00u : n + 1 == job.units ? 0x3c000000u : 0u;
}

extern "C" __global__ void __launch_bounds__(128) tick(const __grid_constant__ Task job, u32 by) {
    if (threadIdx.x < 2) job.clock[threadIdx.x] += by;
}
