// One iteration of every node of `representation` on the tensor cores of a Hopper card, almost in f32.
//
//   mix       x, y, z of LoPA (9) to (12), or x and r of D-SOBA, from all neighbours; draws the minibatches
//   oracle    theta and v, then d, h and s: a block for each node
//   prepare, cluster      the same for few nodes, whose state stays on the multiprocessors: see cluster.cuh
//   sizes     the largest entry of every variable
//   carry     what goes to other processes, and what comes from them
//
// Features stay bytes, which are exact in half precision; whatever they are multiplied with is split into two
// halves, high and low, that together have 22 bits. Sums are in f32 in an order that is fixed, so that a card gives the
// same bits every time; the order within a tensor core is the card's own, so that src/tensor/emulate.rs comes close
// to its bits only. Products are fused only where `fmaf` is written (-fmad=false).
//
// `make` compiles this file into tensor.ptx.lzma.

#include "tensor.cuh"
#include "cluster.cuh"

// ---------------------------------------------------------------- mix

#define EACH(out, expression) { \
    { const int c = 0; out.x = expression; } { const int c = 1; out.y = expression; } \
    { const int c = 2; out.z = expression; } { const int c = 3; out.w = expression; } }

__device__ __forceinline__ float at(const float4 &a, int c) { return c == 0 ? a.x : c == 1 ? a.y : c == 2 ? a.z : a.w; }
__device__ __forceinline__ float4 four(const float *p) { return __ldg((const float4 *)p); }
__device__ __forceinline__ float4 once(const float *p) { return __ldcs((const float4 *)p); }

// sum + w (message - own)
__device__ __forceinline__ void add(float4 &sum, float w, const float4 &message, const float4 &own) {
    EACH(sum, at(sum, c) + w * (at(message, c) - at(own, c)))
}

// Blocks of 64 numbers of NODES nodes; those after the last numbers draw minibatches, hidden under the traffic.
// MOVED: of LoPA-GT, where the oracle has moved z already and left the difference where s was.
template <int NODES, bool MOVED> __device__ __forceinline__ void mix(const Work &job, u32 now) {
    const u32 columns = job.n / 64;
    if (blockIdx.x >= columns) {
        const u32 node = blockIdx.y * NODES + (blockIdx.x - columns) * 8 + (threadIdx.x >> 5);
        if (node >= job.m) return;
        u32 *picks = job.picks + usize(node) * 256;
        draw(job, source(job, node, threadIdx.x & 31), node, job.clock[2 * node], [&](u32 place, u32 pick) { picks[place] = pick; });
        return;
    }
    const u32 column = (blockIdx.x * 16 + (threadIdx.x & 15)) * 4, first = blockIdx.y * NODES + (threadIdx.x >> 4);
    const float *steps = job.steps + usize(job.clock[2 * first < 2 * job.m ? 2 * first + 1 : 1]) * 5;
    const float alpha = steps[0], gamma = steps[3], tau = steps[4];
    const float *const x = job.x[now], *const y = job.y[now];
    const bool soba = !MOVED && job.scheme == SOBA, links_x = MOVED || job.scheme != ALONE, links_y = MOVED || job.scheme == TRACKING;
#pragma unroll 1
    for (int u = 0; u < NODES / 16; u++) {
        const u32 i = first + 16 * u;
        if (i >= job.m) break;
        const usize o = usize(i) * job.n + column;
        const u32 begin = job.links[i], end = links_x ? job.links[i + 1] : begin;
        const float4 own = four(x + o), own_y = four(y + o), s = once(job.s + o);
        float4 z = own, wx = own, wy = own_y, from = own;
        if (!soba && !MOVED) z = once(job.z + o);
        if (soba) { EACH(from, at(own, c) - alpha * at(own_y, c)) wx = from; }
        for (u32 l = begin; l < end; l += 2) {
            const bool two = l + 1 < end;
            const u32 j0 = job.linked[l], j1 = two ? job.linked[l + 1] : i;
            const float w0 = job.w[l], w1 = two ? job.w[l + 1] : 0.0f;
            const usize o0 = usize(j0) * job.n + column, o1 = usize(j1) * job.n + column;
            float4 x0 = four(x + o0), x1 = four(x + o1), y0, y1;
            if (soba || links_y) { y0 = four(y + o0); y1 = four(y + o1); }
            if (soba) {
                EACH(x0, at(x0, c) - alpha * at(y0, c))
                EACH(x1, at(x1, c) - alpha * at(y1, c))
            }
            add(wx, w0, x0, from);
            if (links_y) add(wy, w0, y0, own_y);
            if (two) {
                add(wx, w1, x1, from);
                if (links_y) add(wy, w1, y1, own_y);
            }
        }
        float4 new_x, new_y, average;
        if (soba) {
            new_x = wx;
            EACH(new_y, (1.0f - gamma) * at(own_y, c) + gamma * at(s, c))
        } else {
            if (!MOVED) EACH(average, moving_average(at(z, c), at(s, c), gamma))
            if (links_x) EACH(new_x, (1.0f - tau) * at(own, c) + tau * (at(wx, c) - alpha * at(own_y, c)))
            else EACH(new_x, at(own, c) - tau * alpha * at(own_y, c))
            if (MOVED) EACH(new_y, at(wy, c) + at(s, c))
            else if (links_y) EACH(new_y, at(wy, c) + (at(average, c) - at(z, c)))
            else new_y = average;
            if (!MOVED) __stcs((float4 *)(job.z + o), average);
        }
        *(float4 *)(job.x[1 - now] + o) = new_x;
        __stcs((float4 *)(job.y[1 - now] + o), new_y); // the oracle reads x only
    }
}

#define MIX(name, nodes, moved, blocks) \
    extern "C" __global__ void __launch_bounds__(256, blocks) name(const __grid_constant__ Work job, u32 now) { mix<nodes, moved>(job, now); }
MIX(mix_64, 64, false, 4)
MIX(mix_64_moved, 64, true, 5)
MIX(mix_128, 128, false, 4)
MIX(mix_128_moved, 128, true, 4)

// ---------------------------------------------------------------- oracle

// Shared memory of a block of NW warps. A chunk is PG groups of 16 features, RB bytes of a row.
template <int NW> struct Room {
    enum { PG = NW, RB = 16 * PG, U = 16 / NW, XST = PG * 1792, AST = ROWS * RB };
    enum { X = 0, A = 2 * XST, END = A + 2 * AST }; // forward: two stages of x, split, and of rows
    // afterwards, in the same memory: activations, slopes, a ring of rows, their last features, factors of the head
    enum { H = 0, Q = 160 * 144, R0 = 2 * 160 * 144, RST = 112 * RB, TAIL = R0 + 2 * RST, F = TAIL + 112 * 16 };
    enum { E = END, T = E + 7 * 2048, V = T + 32 * WIDE * 4, B = V + 32 * WIDE * 4, W = B + 128, M = W + 1024, L = M + 128, SIZE = L + 256 };
    static_assert(F + 8192 <= END && (NW == 16 ? 1 : 2) * RST <= R0 && E % 128 == 0 && A % RB == 0 && R0 % 128 == 0 &&
                  SIZE <= (NW == 8 ? 115712 : 232448), "it fits");
};
static_assert(Room<8>::SIZE == 111616 && Room<16>::SIZE == 204288, "as src/tensor/run.rs has it");

// NW = 8: two blocks on a multiprocessor, for many nodes. NW = 16: one, for few, and for an even number of chunks up to 6.
// MOVES: it also moves z, as the next `mix` would do it, which then gets the difference instead of s; that traffic is
// hidden here.
template <int NW, bool MOVES> __device__ __forceinline__ void oracle(const Work &job, u32 now) {
    using O = Room<NW>;
    constexpr int PG = O::PG, RB = O::RB, U = O::U, PER = 32 / PG; // PER: rows of a copy of a warp
    const int chunks = job.chunks * 8 / PG; // a group of 16 features follows the last
    const u32 stride = 128 * (job.chunks + 1), tail = 128 * job.chunks, bias = (8 * job.chunks + 1) * GROUP;
    const int tid = threadIdx.x, w = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3, wi = w & 3;
    // The last node first: what `mix` wrote last is still in the cache, and what this leaves there `mix` reads first.
    const u32 node = gridDim.x - 1 - blockIdx.x;
    float *const theta = (float *)(sm + O::T), *const v = (float *)(sm + O::V), *const B1 = (float *)(sm + O::B);
    float *const most = (float *)(sm + O::M), *const weight = (float *)(sm + O::W);
    u8 *const label = sm + O::L;
    const u32 sb = shared(sm);
    const usize nx = usize(node) * job.n;
    const float *const x = job.x[now] + nx;
    // Everything that depends on nothing is asked for first.
    const int pc = lane % PG, rg = lane / PG;
    const u32 *const pick = job.picks + usize(node) * 256;
    auto row_of = [&](int s) { return U == 2 ? 64 * (w >> 2) + 16 * wi + (s & 15) + (s >> 4) * 128 : 16 * w + s; };
    u32 off[8];
#pragma unroll
    for (int i = 0; i < 8; i++) off[i] = pick[row_of(rg + PER * i)];
    const u32 loff = (pick[row_of(lane % (16 * U))] >> 4) * stride;
    const u8 own_label = pick[tid & 255] & 15;
    const int fo = g * 2 + t; // the last block of units has 16 lanes only
    float4 xa[4];
    auto load_x = [&](int c) {
        if (c < chunks || w == 0) {
            const float *p = x + usize(PG * c + w) * GROUP;
            xa[0] = four(p + lane * 4); xa[1] = four(p + 128 + lane * 4); xa[2] = four(p + 256 + lane * 4);
            if (t < 2) xa[3] = four(p + 384 + fo * 4);
        }
    };
    // Columns of the second factor: 28 high, then 28 low.
    const u32 xhi = (g & 1) * 128 + t * 32 + (g >> 1) * 4;
    const u32 xlo = (3 + (t >> 1)) * 256 + (g & 1) * 128 + ((2 * t + 4) & 7) * 16 + (g >> 1) * 4;
    auto put_x = [&](int c) {
        if (c < chunks || w == 0) {
            u8 *p = sm + O::X + (c & 1) * O::XST + w * 1792;
#pragma unroll
            for (int nc = 0; nc < 4; nc++)
                if (nc < 3 || t < 2) {
                    const float4 a = xa[nc];
                    u32 h0, l0, h1, l1;
                    split(a.x * SCALE, a.z * SCALE, h0, l0);
                    split(a.y * SCALE, a.w * SCALE, h1, l1);
                    *(u32 *)(p + xhi + nc * 256) = h0; *(u32 *)(p + xhi + nc * 256 + 16) = h1;
                    *(u32 *)(p + xlo + nc * 256) = l0; *(u32 *)(p + xlo + nc * 256 + 16) = l1;
                }
            async_fence();
        }
    };
    load_x(0);
    const u32 *const clock = job.clock + 2 * usize(node);
    const float *const steps = job.steps + usize(clock[1]) * 5;
    const float beta = steps[1], lambda = steps[2], gamma = MOVES ? steps[5 + 3] : 0.0f; // that of the next iteration
    float t0 = 0, t1 = 0, v0 = 0, v1 = 0;
    // theta - beta d and v - lambda h
    auto turn = [&](int o, float &a, float &b) {
        u32 at;
        if (o < (UNITS + 1) * WIDE && part(job, o / WIDE, o % WIDE, at)) {
            const usize p = usize(node) * job.p + at;
            a = job.theta[p] - beta * job.d[p];
            b = job.v[p] - lambda * job.h[p];
            job.theta[p] = a;
            job.v[p] = b;
        }
    };
    turn(tid, t0, v0);
    const int o1 = tid + 256;
    if (NW == 8) turn(o1, t1, v1);
    const float bb = tid < UNITS ? x[bias + tid] : 0.0f;
    float largest;
    const float own_weight = row_weight(job, node, tid & 255, largest);
#pragma unroll
    for (int i = 0; i < 8; i++) off[i] = (off[i] >> 4) * stride + pc * 16;
    const u32 dA = sb + O::A + (16 * U * w + rg) * RB;
    auto load_rows = [&](int c) {
        if (c < chunks) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (w < NW - 1 || rg + PER * i < 16 * U - 6)
                    copy16(dA + (c & 1) * O::AST + i * PER * RB + ((pc ^ ((rg + PER * i) & 7)) * 16), job.table + off[i] + c * RB);
        } else if (c == chunks) {
            if (lane < 16 * U && 16 * U * w + lane < ROWS)
                copy16(sb + O::A + (c & 1) * O::AST + (16 * U * w + lane) * RB + (lane & 7) * 16, job.table + loff + tail);
        }
        commit();
    };
    load_rows(0);
    load_rows(1);
    if (tid < 256) { label[tid] = own_label; weight[tid] = own_weight; }
    if (tid < 32 * WIDE) { theta[tid] = t0; v[tid] = v0; }
    if (NW == 8 && o1 < 32 * WIDE) { theta[o1] = t1; v[o1] = v1; }
    if (tid < 32) B1[tid] = bb;
    {
        float a = fmaxf(fabsf(t0), fabsf(t1)), b = fmaxf(fabsf(v0), fabsf(v1));
#pragma unroll
        for (int s = 16; s; s >>= 1) { a = fmaxf(a, __shfl_xor_sync(~0u, a, s)); b = fmaxf(b, __shfl_xor_sync(~0u, b, s)); }
        if (lane == 0) { most[w] = a; most[NW + w] = b; }
    }
    put_x(0);
    load_x(1);
    // Forward: all rows, a chunk of features after the other.
    float acc[U][28] = {};
    const int sl = min(16 * U * w + (U == 2 ? lane : lane & 15), ROWS - 1);
    const u32 arow = (sb + O::A + sl * RB) | (((U == 2 ? 0 : lane >> 4) ^ (sl & 7)) * 16);
    // Bytes to halves; 32 rows of a group if U is 2, 16 rows of two groups if it is 1.
    auto widen = [&](u32 (&a)[2][4], const u32 (&r)[4]) {
#pragma unroll
        for (int u = 0; u < 2; u++) {
            a[u][0] = __byte_perm(r[2 * u], 0, 0x4140); a[u][1] = __byte_perm(r[2 * u + 1], 0, 0x4140);
            a[u][2] = __byte_perm(r[2 * u], 0, 0x4342); a[u][3] = __byte_perm(r[2 * u + 1], 0, 0x4342);
        }
    };
#pragma unroll 1
    for (int c = 0; c < chunks; c++) {
        copied<1>();
        __syncthreads();
        const u64 dx = descriptor(sb + O::X + (c & 1) * O::XST);
        const u32 ar = arow + (c & 1) * O::AST;
        u32 a[2][2][4], r[4];
        matrices(r, ar);
#pragma unroll
        for (int p = 0; p < 8; p++) {
            constexpr int ST = U == 2 ? 1 : 2;
            widen(a[p & 1], r);
            if (p < 7) matrices(r, ar ^ ((p + 1) * ST * 16));
            begin_products();
            product<false>(acc[0], a[p & 1][0], dx + p * ST * 112);
            product<false>(acc[U - 1], a[p & 1][1], dx + (p * ST + (U == 1)) * 112);
            end_products();
            multiplied<1>();
        }
        multiplied<0>();
        __syncwarp();
        load_rows(c + 2);
        put_x(c + 1);
        if (c < chunks - 1) load_x(c + 2);
    }
    copied<1>();
    __syncthreads();
    {
        u32 a[2][4], r[4];
        matrices(r, arow + (chunks & 1) * O::AST);
        widen(a, r);
        const u64 dx = descriptor(sb + O::X + (chunks & 1) * O::XST);
        begin_products();
        product<false>(acc[0], a[0], dx);
        if (U == 2) product<false>(acc[U - 1], a[1], dx);
        end_products();
        multiplied<0>();
    }
    __syncthreads();
    // The rows of sigma2 and xi3 once more; they come while the head is computed.
    u32 boff[4];
    const int bp = tid % PG, br = tid / PG;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = br + 32 * i;
        boff[i] = r < ROWS - BACK ? (pick[BACK + r] >> 4) * stride + bp * 16 : ~0u;
    }
    auto stage = [&](int c) { const int s = c & 3; return (u32)(s < 2 ? O::R0 + s * O::RST : (s - 2) * O::RST); };
    const u32 dB = sb + (6 + br) * RB + ((bp ^ ((6 + br) & 7)) * 16);
    auto load_back = [&](int c) {
        if (c < chunks)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (boff[i] != ~0u) copy16(dB + stage(c) + i * 32 * RB, job.table + boff[i] + c * RB);
        commit();
    };
    if (tid < ROWS - BACK) copy16(sb + O::TAIL + (6 + tid) * 16, job.table + (pick[BACK + tid] >> 4) * stride + tail);
    load_back(0);
    load_back(1);
    float top = 0, top_v = 0;
#pragma unroll
    for (int i = 0; i < NW; i++) { top = fmaxf(top, most[i]); top_v = fmaxf(top_v, most[NW + i]); }
    const Scales sc = scales(top, top_v, job.tanh);
#pragma unroll
    for (int i = 0; i < U; i++) *(uint4 *)(sm + O::F + (U * w + i) * 512 + lane * 16) = factor(theta, v, U * w + i, sc.theta, g, t);
    float hidden[U][16];
    const float unit = SUBNORMAL / SCALE * job.unit;
#pragma unroll
    for (int nc = 0; nc < 4; nc++) {
        const float2 b = *(const float2 *)(B1 + 8 * nc + 2 * t);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                float a = acc[u][4 * nc + c];
                // The low columns are with the lane two further.
                const float send = t >= 2 ? acc[u][(4 * (nc + 3) + c) % 28] : (nc < 3 ? acc[u][(4 * (nc + 4) + c) % 28] : 0.0f);
                a += __shfl_xor_sync(~0u, send, 2);
                a = activation(fmaf(a, unit, (c & 1) ? b.y : b.x), job.tanh);
                if (nc == 3 && t >= 2) a = (t == 2 && !(c & 1)) ? 1.0f : 0.0f;
                hidden[u][4 * nc + c] = a;
            }
    }
    __syncthreads();
    // The head, in registers.
    const uint4 *const factors = (const uint4 *)(sm + O::F) + lane;
    u32 eh[2][4], el[2][4];
    auto pair = [&](int tile) {
        Pair rows;
#pragma unroll
        for (int r = 0; r < 2; r++) { rows.row[r] = 16 * tile + g + 8 * r; rows.label[r] = label[rows.row[r]]; rows.weight[r] = weight[rows.row[r]]; }
        return rows;
    };
    if (U == 2) {
        const int o = (16 * w + g) * 144;
        head(hidden[0], factors, w >= 3 && w <= 6, true, false, 0, 4, pair(w), sc, job.classes, job.tanh, sm + O::H + o, sm + O::Q + o, t, eh, el);
    }
    {
        const int tile = U == 2 ? 8 + w : w, o = (16 * tile + g) * 144;
        head(hidden[U - 1], factors, tile >= 12 || (tile >= 3 && tile <= 6), tile <= 9, tile >= 9, 0, 4, pair(tile), sc, job.classes, job.tanh,
             sm + O::H + o, sm + O::Q + o, t, eh, el);
        if (tile >= 9) {
            const u32 d = sb + O::E + (tile - 9) * 2048 + (lane >> 3) * 256 + (lane & 7) * 16;
            store_transposed(d, eh[0]); store_transposed(d + 128, eh[1]);
            store_transposed(d + 1024, el[0]); store_transposed(d + 1152, el[1]);
            async_fence();
        }
    }
    const float back = SUBNORMAL * job.unit * largest / sc.error;
    float4 ahead[4]; // z of the next chunk
    auto load_z = [&](int c) {
        const float *p = job.z + nx + usize(PG * c + w) * GROUP;
        ahead[0] = once(p + lane * 4); ahead[1] = once(p + 128 + lane * 4); ahead[2] = once(p + 256 + lane * 4);
        if (t < 2) ahead[3] = once(p + 384 + fo * 4);
    };
    auto finish = [&](usize o, float4 s, const float4 &z) {
        if (MOVES) {
            float4 next;
            EACH(next, moving_average(at(z, c), at(s, c), gamma))
            __stcs((float4 *)(job.z + nx + o), next);
            EACH(s, at(next, c) - at(z, c))
        }
        *(float4 *)(job.s + nx + o) = s;
    };
    if (MOVES) load_z(0);
    copied<1>();
    __syncthreads();
    // d and h: a tile of 16 units by 8 columns for each warp.
    if (w < 8) {
        const int mt = w & 1, nt = w >> 1;
        float c[4] = {};
        outer(c, sb + O::H, sb + O::Q, mt, nt, nt < 2 ? 0 : 3, nt < 2 ? 4 : 10, lane);
        const float *of = nt < 2 ? theta : v;
        float *to = (nt < 2 ? job.d : job.h) + usize(node) * job.p;
        const float by = largest / sc.slope;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 u = 16 * mt + g + 8 * (i >> 1), k = 8 * (nt & 1) + 2 * t + (i & 1);
            u32 at;
            if (part(job, u, k, at)) to[at] = fmaf(job.ridge, of[u * WIDE + k], c[i] * by);
        }
    }
    // s of the last features and of the bias: four warps.
    if ((w >> 2) == (NW == 8 ? 0 : 2)) {
        float c[4] = {}, cb[4] = {};
        const usize o = usize(8 * job.chunks) * GROUP + wi * 128 + (wi < 3 ? lane * 4 : fo * 4);
        const bool on = wi < 3 || t < 2;
        float4 z = make_float4(0, 0, 0, 0);
        if (MOVES && on) z = *(const float4 *)(job.z + nx + o);
        const u32 bd = sb + O::E + (lane >> 4) * 1024 + (wi * 2 + ((lane >> 3) & 1)) * 128 + (lane & 7) * 16;
        const u32 one[4] = {0x3C003C00u, 0x3C003C00u, 0x3C003C00u, 0x3C003C00u};
#pragma unroll
        for (int kp = 0; kp < 4; kp++) {
            u32 r[4];
            transposed(r, sb + O::TAIL + (kp < 3 ? kp * 32 + lane : 96 + (lane & 15)) * 16);
#pragma unroll
            for (int s = 0; s < 2; s++) {
                const int ks = 2 * kp + s;
                if (ks < 7) {
                    u32 b[4];
                    matrices(b, bd + ks * 2048);
                    const u32 a[4] = {__byte_perm(r[2 * s], 0, 0x4240), __byte_perm(r[2 * s], 0, 0x4341),
                                      __byte_perm(r[2 * s + 1], 0, 0x4240), __byte_perm(r[2 * s + 1], 0, 0x4341)};
                    mma(c, a, b[0], b[1]); mma(cb, one, b[0], b[1]); mma(c, a, b[2], b[3]); mma(cb, one, b[2], b[3]);
                }
            }
        }
        if (on) finish(o, make_float4(c[0] * back, c[1] * back, c[2] * back, c[3] * back), z);
        const int hb = 8 * wi + 2 * t;
        if (g == 0 && hb < UNITS)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const usize at = nx + bias + hb + i;
                float s = cb[i] * (largest / sc.error);
                if (MOVES) {
                    const float z = job.z[at], next = moving_average(z, s, gamma);
                    job.z[at] = next;
                    s = next - z;
                }
                job.s[at] = s;
            }
    }
    __syncthreads();
    load_back(2);
    load_back(3);
    // Backward: each warp a group of features, 112 rows, units high and low.
    const u32 rw = sb + lane * RB + ((w ^ (lane & 7)) * 16);
#pragma unroll 1
    for (int c = 0; c < chunks; c++) {
        copied<2>();
        __syncthreads();
        if (c >= 1) load_back(c + 3);
        const u32 rs = rw + stage(c);
        const u64 de = descriptor(sb + O::E);
        float ac[32] = {};
        u32 a[2][4], r[2][4];
        transposed(r[0], rs);
#pragma unroll
        for (int kp = 0; kp < 4; kp++) {
            if (kp < 3) transposed(r[(kp + 1) & 1], kp < 2 ? rs + (kp + 1) * 32 * RB : rs + 3 * 32 * RB - (lane & 16) * RB);
#pragma unroll
            for (int s = 0; s < 2; s++) {
                const int ks = 2 * kp + s;
                if (ks < 7) {
                    const u32 *rr = r[kp & 1];
                    a[s][0] = __byte_perm(rr[2 * s], 0, 0x4240); a[s][1] = __byte_perm(rr[2 * s], 0, 0x4341);
                    a[s][2] = __byte_perm(rr[2 * s + 1], 0, 0x4240); a[s][3] = __byte_perm(rr[2 * s + 1], 0, 0x4341);
                    begin_products();
                    product<false>(ac, a[s], de + ks * 128);
                    end_products();
                    multiplied<1>();
                }
            }
        }
        float4 z[4];
        if (MOVES) {
#pragma unroll
            for (int j = 0; j < 4; j++) z[j] = ahead[j];
            if (c < chunks - 1) load_z(c + 1);
        }
        multiplied<0>();
        const usize o = usize(PG * c + w) * GROUP;
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (j < 3 || t < 2)
                finish(o + j * 128 + (j < 3 ? lane * 4 : fo * 4),
                       make_float4((ac[4 * j] + ac[4 * j + 16]) * back, (ac[4 * j + 1] + ac[4 * j + 17]) * back,
                                   (ac[4 * j + 2] + ac[4 * j + 18]) * back, (ac[4 * j + 3] + ac[4 * j + 19]) * back), z[j]);
    }
    if (tid < 2) job.clock[2 * usize(node) + tid]++;
}

#define ORACLE(name, warps, blocks, moves) \
    extern "C" __global__ void __launch_bounds__(32 * warps, blocks) name(const __grid_constant__ Work job, u32 now) { oracle<warps, moves>(job, now); }
ORACLE(oracle_8, 8, 2, false)
ORACLE(oracle_8_moves, 8, 2, true)
ORACLE(oracle_16, 16, 1, false)
ORACLE(oracle_16_moves, 16, 1, true)
