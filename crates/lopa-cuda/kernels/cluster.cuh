// Few nodes with at most two neighbours each: a cluster of eight blocks for a node, which shares the features among
// them and keeps x, y and z in registers over many iterations. All clusters are on the card at once and wait for each
// other: the host asks first whether they fit.

enum { SPREAD = 8, GROUPS = 49, NEAR = 2, MOST_GROUPS = 7, PER_BLOCK = 256 / SPREAD, SHARE = (2 * PARTS + SPREAD - 1) / SPREAD };

__device__ __forceinline__ u32 remote(u32 a, u32 rank) {
    u32 o;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(o) : "r"(a), "r"(rank));
    return o;
}
__device__ __forceinline__ void send(u32 a, float x, float y) { asm volatile("st.shared::cluster.v2.f32 [%0], {%1,%2};" ::"r"(a), "f"(x), "f"(y) : "memory"); }
__device__ __forceinline__ void send(u32 a, float x) { asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(a), "f"(x) : "memory"); }
__device__ __forceinline__ void send(u32 a, uint4 v) { asm volatile("st.shared::cluster.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(a), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory"); }
__device__ __forceinline__ void arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ __forceinline__ u32 load_acquire(const u32 *p) { u32 v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ __forceinline__ void store_release(u32 *p, u32 v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ void fence_copies() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ __forceinline__ void begin_count(u32 a) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(a) : "memory"); }
__device__ __forceinline__ void expect(u32 a, u32 n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(a), "r"(n) : "memory"); }
__device__ __forceinline__ void counted(u32 a, u32 phase) {
    asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra E;\nbra W;\nE:\n}" ::"r"(a), "r"(phase) : "memory");
}
__device__ __forceinline__ void bulk(u32 to, const void *from, u32 n, u32 count) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(n), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(n) : "memory"); }
__device__ __forceinline__ void axpy(float4 &a, float c, const float4 &b) { a.x = fmaf(c, b.x, a.x); a.y = fmaf(c, b.y, a.y); a.z = fmaf(c, b.z, a.z); a.w = fmaf(c, b.w, a.w); }

// The weights of node i itself and of its neighbours.
__device__ __forceinline__ void own_weights(const Work &job, u32 i, float (&w)[NEAR + 1]) {
    const u32 begin = job.links[i], end = job.links[i + 1];
    w[1] = begin < end ? job.w[begin] : 0.0f;
    w[2] = begin + 1 < end ? job.w[begin + 1] : 0.0f;
    w[0] = 1.0f - (w[1] + w[2]);
}

// The parts of an iteration that `cluster` expects to be over: z and y, theta and v of the next one; no flags.
extern "C" __global__ void __launch_bounds__(256) prepare(const __grid_constant__ Work job, u32) {
    const u32 at = blockIdx.x * 256 + threadIdx.x, i = blockIdx.y;
    const float *steps = job.steps + usize(job.clock[2 * i + 1]) * 5;
    if (i == 0 && at < 2 * SPREAD * job.m) job.flags[at] = 0;
    if (at < job.p) {
        const usize p = usize(i) * job.p + at;
        job.theta[p] = job.theta[p] - steps[1] * job.d[p];
        job.v[p] = job.v[p] - steps[2] * job.h[p];
    }
    if (at >= job.n) return;
    const usize o = usize(i) * job.n + at;
    const float s = job.s[o], z = job.z[o];
    float cw[NEAR + 1];
    own_weights(job, i, cw);
    // As `cluster` does it, operation by operation: bits do not depend on when somebody looks.
    float sum = cw[0] * job.y[0][o];
    const u32 begin = job.links[i], end = job.links[i + 1];
#pragma unroll
    for (int q = 0; q < NEAR; q++)
        sum = fmaf(cw[q + 1], job.y[0][usize(begin + q < end ? job.linked[begin + q] : i) * job.n + at], sum);
    const float average = fmaf(1.0f - steps[3], z - s, s);
    job.y[1][o] = sum + (average - z);
    job.z[o] = average;
}

// Forward: 32 rows by 28 units (the last tile has four high and four low columns), one group of features.
__device__ __forceinline__ void forward_group(float (&acc)[2][4][4], u32 rows, const u8 *xq, int lane) {
    u32 r[4], a[2][4];
    matrices(r, rows);
#pragma unroll
    for (int m = 0; m < 2; m++) {
        a[m][0] = __byte_perm(r[2 * m], 0, 0x4140); a[m][1] = __byte_perm(r[2 * m + 1], 0, 0x4140);
        a[m][2] = __byte_perm(r[2 * m], 0, 0x4342); a[m][3] = __byte_perm(r[2 * m + 1], 0, 0x4342);
    }
    uint4 b[3];
#pragma unroll
    for (int j = 0; j < 3; j++) b[j] = *(const uint4 *)(xq + j * 512 + lane * 16);
    const uint2 b3 = *(const uint2 *)(xq + 1536 + lane * 8);
#pragma unroll
    for (int j = 0; j < 3; j++) { mma(acc[0][j], a[0], b[j].x, b[j].y); mma(acc[1][j], a[1], b[j].x, b[j].y); }
    mma(acc[0][3], a[0], b3.x, b3.y); mma(acc[1][3], a[1], b3.x, b3.y);
#pragma unroll
    for (int j = 0; j < 3; j++) { mma(acc[0][j], a[0], b[j].z, b[j].w); mma(acc[1][j], a[1], b[j].z, b[j].w); }
}
// The 2 features by 2 units of a lane as second factors of `forward_group`.
__device__ __forceinline__ void put_factors(u8 *xq, int nc, int g, int t, float4 v) {
    u32 h0, l0, h1, l1;
    split(v.x * SCALE, v.z * SCALE, h0, l0);
    split(v.y * SCALE, v.w * SCALE, h1, l1);
    if (nc < 3) {
        u8 *p = xq + nc * 512 + t * 128 + (g >> 1) * 16 + (g & 1) * 4;
        *(u32 *)p = h0; *(u32 *)(p + 8) = l0; *(u32 *)(p + 64) = h1; *(u32 *)(p + 72) = l1;
    } else {
        u8 *p = xq + 1536 + t * 64 + (g >> 1) * 8 + (g & 1) * 4;
        *(u32 *)p = h0; *(u32 *)(p + 128) = l0; *(u32 *)(p + 32) = h1; *(u32 *)(p + 160) = l1;
    }
}

// Shared memory of a block.
struct Share {
    enum { RS = 16 * (MOST_GROUPS | 1), PS = 40, SLAB = (MOST_GROUPS * 1792 + 112 + 127) / 128 * 128, RST = ROWS * RS };
    enum { R = 0, X = (2 * RST + 127) / 128 * 128, NX = X + MOST_GROUPS * 1792, NY = NX + NEAR * SLAB, F = NY + NEAR * SLAB,
           P = F + 8192, E = P + 256 * PS * 4, PB = E + 112 * 144, T = (PB + SPREAD * SHARE * 4 + 15) / 16 * 16, V = T + 32 * WIDE * 4,
           D = V + 32 * WIDE * 4, H = D + PER_BLOCK * 144, Q = H + PER_BLOCK * 144, C = Q + PER_BLOCK * 144, B = C + PER_BLOCK * 128,
           BS = B + 128, I = BS + 128, L = I + 1024, W = L + 512, MB = W + 1024, SIZE = MB + 64 };
    static_assert(SIZE == 210784, "as src/tensor/run.rs has it");
};

// Warps 0 to 7 compute, warp 8 draws and gathers the next rows, warp 9 exchanges x and y with the neighbours.
extern "C" __global__ void __cluster_dims__(SPREAD, 1, 1) __launch_bounds__(320, 1) cluster(const __grid_constant__ Work job, const u32 count) {
    using S = Share;
    constexpr int RS = S::RS, PS = S::PS;
    const int tid = threadIdx.x, w = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
    const u32 node = blockIdx.x / SPREAD, stride = 128 * (job.chunks + 1), bias_at = GROUPS * GROUP;
    const int rank = cluster_rank(), iterations = count;
    const int p0 = GROUPS * rank / SPREAD, groups = GROUPS * (rank + 1) / SPREAD - p0;
    float *const theta = (float *)(sm + S::T), *const v = (float *)(sm + S::V), *const B1 = (float *)(sm + S::B), *const BS = (float *)(sm + S::BS);
    float *const PA = (float *)(sm + S::P), *const PB = (float *)(sm + S::PB), *const weight = (float *)(sm + S::W);
    u32 *const rows = (u32 *)(sm + S::I), *const flag_x = job.flags, *const flag_y = job.flags + job.m * SPREAD;
    u8 *const label = sm + S::L;
    const u32 sb = shared(sm), got_x = sb + S::MB, got_y = got_x + 8;
    const usize nx = usize(node) * job.n;
    const u32 k0 = job.clock[2 * node];
    const float *const steps = job.steps + usize(job.clock[2 * node + 1]) * 5;
    for (int o = tid; o < 32 * WIDE; o += 320) {
        u32 at;
        const bool there = o / WIDE <= UNITS && part(job, o / WIDE, o % WIDE, at);
        theta[o] = there ? job.theta[usize(node) * job.p + at] : 0.0f;
        v[o] = there ? job.v[usize(node) * job.p + at] : 0.0f;
    }
    float largest;
    { const float own = row_weight(job, node, tid & 255, largest); if (tid < 256) { weight[tid] = own; rows[tid] = 0; } }
    if (tid < 128) ((u32 *)label)[tid] = 0;
    if (tid < 108) *(uint4 *)(sm + S::E + 100 * 144 + tid * 16) = make_uint4(0, 0, 0, 0);
    // A block with one group less multiplies by zeros.
    if (tid < 112) *(uint4 *)(sm + S::X + (MOST_GROUPS - 1) * 1792 + tid * 16) = make_uint4(0, 0, 0, 0);
    if (tid < 32) B1[tid] = 0.0f;
    if (tid == 0) { begin_count(got_x); begin_count(got_y); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
    __syncthreads();
    auto x_of = [&](u32 k) { return k & 1 ? job.x[1] : job.x[0]; };
    auto y_of = [&](u32 k) { const u32 r = k % 3; return r == 0 ? job.y[0] : r == 1 ? job.y[1] : job.y[2]; };
    auto scale = [&]() {
        float a = 0, b = 0;
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const float4 c = ((const float4 *)theta)[lane + 32 * i], d = ((const float4 *)v)[lane + 32 * i];
            a = fmaxf(a, fmaxf(fmaxf(fabsf(c.x), fabsf(c.y)), fmaxf(fabsf(c.z), fabsf(c.w))));
            b = fmaxf(b, fmaxf(fmaxf(fabsf(d.x), fabsf(d.y)), fmaxf(fabsf(d.z), fabsf(d.w))));
        }
#pragma unroll
        for (int s = 16; s; s >>= 1) { a = fmaxf(a, __shfl_xor_sync(~0u, a, s)); b = fmaxf(b, __shfl_xor_sync(~0u, b, s)); }
        return scales(a, b, job.tanh);
    };
    auto factors = [&](int Q0, const Scales &sc) {
#pragma unroll
        for (int i = 0; i < 8; i++) *(uint4 *)(sm + S::F + (Q0 + i) * 512 + lane * 16) = factor(theta, v, Q0 + i, sc.theta, g, t);
    };
    float *const told = (float *)(sm + S::MB + 16); // the scales, for the warps that compute
    if (w == 8) {
        const Source of = source(job, node, lane);
        auto sample = [&](u32 k, int buf) {
            draw(job, of, node, k, [&](u32 place, u32 pick) { rows[place] = pick >> 4; label[buf * 256 + place] = pick & 15; });
            __syncwarp();
        };
        auto gather = [&](int buf) {
#pragma unroll 4
            for (int p = lane; p < ROWS * groups; p += 32) {
                const int r = p / groups, c = p - r * groups;
                copy16(sb + S::R + buf * S::RST + r * RS + c * 16, job.table + usize(rows[r]) * stride + (p0 + c) * 16);
            }
            commit();
        };
        sample(k0, 0); gather(0); copied<0>();
        __syncthreads(); arrive(); wait();
        for (int it = 0; it < iterations; it++) {
            const bool last = it + 1 == iterations;
            float beta = 0, lambda = 0;
            if (!last) { beta = __ldg(steps + 5 * (it + 1) + 1); lambda = __ldg(steps + 5 * (it + 1) + 2); }
            arrive();
            if (!last) sample(k0 + it + 1, (it + 1) & 1);
            wait();
            const Scales sc = scale();
            factors(0, sc);
            if (lane == 0) { told[0] = sc.theta; told[1] = sc.slope; told[2] = sc.error; told[3] = sc.score; told[4] = sc.back; }
            barrier(4, 320);
            if (!last) gather((it + 1) & 1);
            arrive(); wait();
            // theta and v: each entry has a block that adds the parts in order and tells the cluster.
            for (int l = lane; l < SHARE; l += 32) {
                const int o = rank + SPREAD * l;
                if (o < 2 * PARTS) {
                    float s = 0;
#pragma unroll
                    for (int c = 0; c < SPREAD; c++) s += PB[c * SHARE + l];
                    const int second = o >= PARTS, oo = o - second * PARTS, u = oo / CLASSES, k = oo % CLASSES, ad = u * WIDE + k;
                    u32 at;
                    const float now = (second ? v : theta)[ad], d = fmaf(job.ridge, now, s * (largest / sc.slope));
                    if (!part(job, u, k, at)) continue;
                    if (last) {
                        (second ? job.h : job.d)[usize(node) * job.p + at] = d;
                    } else {
                        const float next = now - (second ? lambda : beta) * d;
                        const u32 a = sb + (second ? S::V : S::T) + ad * 4;
#pragma unroll
                        for (int c = 0; c < SPREAD; c++) send(remote(a, c), next);
                    }
                }
            }
            copied<0>();
            __syncthreads();
        }
        arrive(); wait();
        return;
    }
    if (w == 9) {
        const u32 begin = job.links[node], end = job.links[node + 1];
        const u32 near = begin + lane < end && lane < NEAR ? job.linked[begin + lane] : node;
        const u32 *const fx = flag_x + near * SPREAD + rank, *const fy = flag_y + near * SPREAD + rank, bytes = groups * 1792;
        auto poll = [&](const u32 *f, u32 k) {
            if (lane < NEAR) { u32 spins = 0; while ((int)(load_acquire(f) - k) < 0) if (++spins > (1u << 24)) __trap(); fence_copies(); }
            __syncwarp();
        };
        auto fetch = [&](const float *from, int o, u32 got) {
            if (lane == 0) expect(got, NEAR * (bytes + (rank == 0 ? 112 : 0)));
            __syncwarp();
            if (lane < NEAR) {
                const float *p = from + usize(near) * job.n;
                bulk(sb + o + lane * S::SLAB, p + usize(p0) * GROUP, bytes, got);
                if (rank == 0) bulk(sb + o + lane * S::SLAB + MOST_GROUPS * 1792, p + bias_at, 112, got);
            }
        };
        __syncthreads(); arrive(); wait();
        if (lane < NEAR) fence_copies();
        fetch(x_of(0), S::NX, got_x);
        for (int it = 0; it < iterations; it++) {
            barrier(2, 288); // x of this iteration is stored
            if (lane == 0) { __threadfence(); store_release(flag_x + node * SPREAD + rank, it + 1); }
            poll(fy, it); fetch(y_of(it + 1), S::NY, got_y);
            arrive(); wait();
            const Scales sc = scale();
            factors(8, sc);
            barrier(4, 320);
            poll(fx, it + 1); fetch(x_of(it + 1), S::NX, got_x);
            arrive(); wait();
            barrier(3, 288); // y is stored
            __syncthreads();
            if (lane == 0) { __threadfence(); store_release(flag_y + node * SPREAD + rank, it + 1); }
        }
        counted(got_x, iterations & 1); // the last is not used
        arrive(); wait();
        return;
    }
    const bool mine = w < groups, bias = rank == 0 && w == 7;
    const int fo = (g * 2 + t) * 4;
    const usize so = usize(p0 + w) * GROUP;
    auto on = [&](int j) { return mine && (j < 3 || t < 2); };
    auto place = [&](int j) { return nx + so + j * 128 + (j < 3 ? lane * 4 : fo); };
    auto slab = [&](int o, int q, int j) { return (const float4 *)(sm + o + q * S::SLAB + (w * GROUP + j * 128 + (j < 3 ? lane * 4 : fo)) * 4); };
    float cw[NEAR + 1];
    own_weights(job, node, cw);
    float4 xo[4], yc[4], zo[4];
    float bx = 0, byc = 0, bz = 0;
    float alpha = steps[0], tau = steps[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (on(j)) { xo[j] = __ldcg((const float4 *)(job.x[0] + place(j))); yc[j] = __ldcg((const float4 *)(job.y[0] + place(j))); zo[j] = __ldcg((const float4 *)(job.z + place(j))); }
    if (bias && lane < UNITS) { const usize o = nx + bias_at + lane; bx = __ldcg(job.x[0] + o); byc = __ldcg(job.y[0] + o); bz = __ldcg(job.z + o); }
    // A node's own part of its next x.
    auto own_x = [&]() {
        const float cs = (1.0f - tau) + tau * cw[0], cy = -tau * alpha;
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (on(j)) { xo[j] = make_float4(cs * xo[j].x, cs * xo[j].y, cs * xo[j].z, cs * xo[j].w); axpy(xo[j], cy, yc[j]); }
        bx = fmaf(cs, bx, cy * byc);
    };
    own_x();
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (on(j)) yc[j] = __ldcg((const float4 *)(job.y[1] + place(j)));
    if (bias && lane < UNITS) byc = __ldcg(job.y[1] + nx + bias_at + lane);
    __syncthreads(); arrive(); wait();
    const float unit = SUBNORMAL / SCALE * job.unit;
    u32 ra[2];
#pragma unroll
    for (int u = 0; u < 2; u++) ra[u] = remote(sb + S::P + (rank * PER_BLOCK) * PS * 4, (g + 8 * u) & (SPREAD - 1));
    for (int it = 0; it < iterations; it++) {
        const int buf = it & 1;
        const bool last = it + 1 == iterations;
        float *const xw = x_of(it + 1), *const yw = y_of(it + 2);
        float keep = 0, next_alpha = 0, next_tau = 0;
        if (!last) { const float *next = steps + 5 * (it + 1); next_alpha = __ldg(next); keep = 1.0f - __ldg(next + 3); next_tau = __ldg(next + 4); }
        // x of this iteration.
        counted(got_x, it & 1);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (on(j)) {
#pragma unroll
                for (int q = 0; q < NEAR; q++) axpy(xo[j], tau * cw[q + 1], *slab(S::NX, q, j));
                put_factors(sm + S::X + w * 1792, j, g, t, xo[j]);
                __stcg((float4 *)(xw + place(j)), xo[j]);
            }
        if (bias && lane < UNITS) {
#pragma unroll
            for (int q = 0; q < NEAR; q++) bx = fmaf(tau * cw[q + 1], *(const float *)(sm + S::NX + q * S::SLAB + MOST_GROUPS * 1792 + lane * 4), bx);
            B1[lane] = bx;
            __stcg(xw + nx + bias_at + lane, bx);
        }
        barrier_arrive(2, 288); barrier(1, 256);
        // Forward on the features of this block; partial sums go to the blocks of the rows.
        {
            float acc[2][4][4] = {};
            const u32 ar = sb + S::R + buf * S::RST + min(32 * w + lane, ROWS - 1) * RS;
#pragma unroll
            for (int q = 0; q < MOST_GROUPS; q++) forward_group(acc, ar + q * 16, sm + S::X + q * 1792, lane);
#pragma unroll
            for (int mt = 0; mt < 2; mt++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    float a[4];
#pragma unroll
                    for (int c = 0; c < 4; c++) { a[c] = acc[mt][j][c]; if (j == 3) a[c] += __shfl_down_sync(~0u, a[c], 2); }
                    if (j < 3 || t < 2) {
                        const float b0 = B1[8 * j + 2 * t], b1 = B1[8 * j + 2 * t + 1];
#pragma unroll
                        for (int u = 0; u < 2; u++) {
                            const int row = 32 * w + 16 * mt + g + 8 * u;
                            send(ra[u] + ((row / SPREAD) * PS + 8 * j + 2 * t) * 4, fmaf(a[2 * u], unit, b0), fmaf(a[2 * u + 1], unit, b1));
                        }
                    }
                }
        }
        __syncwarp(); arrive();
        wait();
        // Sums in order, activations: a warp for a tile of rows and a block of units.
        {
            const int u = w >> 2, nc = w & 3;
            float4 s = make_float4(0, 0, 0, 0);
#pragma unroll
            for (int c = 0; c < SPREAD; c++) {
                const float *p = PA + (c * PER_BLOCK + 16 * u + g) * PS + 8 * nc + 2 * t;
                const float2 a = *(const float2 *)p, b = *(const float2 *)(p + 8 * PS);
                s.x += a.x; s.y += a.y; s.z += b.x; s.w += b.y;
            }
            s = make_float4(activation(s.x, job.tanh), activation(s.y, job.tanh), activation(s.z, job.tanh), activation(s.w, job.tanh));
            if (nc == 3 && t >= 2) { s.x = s.z = t == 2 ? 1.0f : 0.0f; s.y = s.w = 0.0f; }
            *(float4 *)(sm + S::C + (w * 32 + lane) * 16) = s;
        }
        barrier(4, 320);
        Scales sc;
        sc.theta = told[0]; sc.slope = told[1]; sc.error = told[2]; sc.score = told[3]; sc.back = told[4];
        // The head: four warps, each a tile of rows and half of the units of errors.
        if (w < 4) {
            const int u = w & 1, hf = w >> 1;
            float hidden[16];
#pragma unroll
            for (int nc = 0; nc < 4; nc++) {
                const float4 a = *(const float4 *)(sm + S::C + ((u * 4 + nc) * 32 + lane) * 16);
                hidden[4 * nc] = a.x; hidden[4 * nc + 1] = a.y; hidden[4 * nc + 2] = a.z; hidden[4 * nc + 3] = a.w;
            }
            u32 eh[2][4], el[2][4];
            const int lr = 16 * u + g;
            Pair two;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                two.row[r] = (lr + 8 * r) * SPREAD + rank;
                two.label[r] = label[buf * 256 + two.row[r]];
                two.weight[r] = weight[two.row[r]];
            }
            head(hidden, (const uint4 *)(sm + S::F) + lane, true, hf == 0, true, 2 * hf, 2 * hf + 2, two, sc, job.classes, job.tanh,
                 sm + S::H + lr * 144, sm + S::Q + lr * 144, t, eh, el);
            u8 *to = sm + S::D + lr * 144;
#pragma unroll
            for (int nc = 0; nc < 4; nc++)
                if ((nc >> 1) == hf)
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        *(u32 *)(to + r * 8 * 144 + 16 * nc + 4 * t) = eh[r][nc];
                        *(u32 *)(to + r * 8 * 144 + 64 + 16 * nc + 4 * t) = el[r][nc];
                    }
        }
        barrier(1, 256);
        // Errors to every block of the cluster; parts of d and h to the block of each entry.
        {
            const int l0 = (BACK - rank + SPREAD - 1) / SPREAD, l1 = (ROWS - rank + SPREAD - 1) / SPREAD;
            for (int i = tid; i < (l1 - l0) * 64; i += 256) {
                const int lr = l0 + (i >> 6), pc = i & 7, to = (i >> 3) & 7;
                send(remote(sb + S::E + (lr * SPREAD + rank - BACK) * 144 + pc * 16, to), *(const uint4 *)(sm + S::D + lr * 144 + pc * 16));
            }
            float c[4] = {};
            const int mt = w & 1, nt = w >> 1;
            outer(c, sb + S::H, sb + S::Q, mt, nt, 0, 2, lane);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int u = 16 * mt + g + 8 * (i >> 1), k = 8 * (nt & 1) + 2 * t + (i & 1);
                if (u <= UNITS && k < CLASSES) {
                    const int o = (nt >> 1) * PARTS + u * CLASSES + k;
                    send(remote(sb + S::PB + (rank * SHARE + o / SPREAD) * 4, o % SPREAD), c[i]);
                }
            }
        }
        __syncwarp(); arrive();
        // With the y that enters the next x, before it changes.
        tau = next_tau; alpha = next_alpha;
        if (!last) own_x();
        wait();
        // Backward on the features of this block; z and y, or s after the last iteration.
        if (mine) {
            float ac[2][4][4] = {};
            const u32 rw = sb + S::R + buf * S::RST + BACK * RS + w * 16, bd = sb + S::E + ((lane & 7) + ((lane >> 3) & 1) * 8) * 144 + (lane >> 4) * 16;
#pragma unroll
            for (int kp = 0; kp < 4; kp++) {
                u32 r[4];
                transposed(r, rw + min(kp * 32 + lane, ROWS - BACK - 1) * RS);
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    const int ks = 2 * kp + s;
                    if (ks < 7) {
                        const u32 a[4] = {__byte_perm(r[2 * s], 0, 0x4240), __byte_perm(r[2 * s], 0, 0x4341),
                                          __byte_perm(r[2 * s + 1], 0, 0x4240), __byte_perm(r[2 * s + 1], 0, 0x4341)};
#pragma unroll
                        for (int half = 0; half < 2; half++)
#pragma unroll
                            for (int np = 0; np < 2; np++) {
                                u32 b[4];
                                transposed(b, bd + ks * 2304 + half * 64 + np * 32);
                                mma(ac[half][2 * np], a, b[0], b[1]); mma(ac[half][2 * np + 1], a, b[2], b[3]);
                            }
                    }
                }
            }
            const float by = SUBNORMAL * job.unit * largest / sc.error;
            counted(got_y, it & 1);
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (on(j)) {
                    const float4 s = make_float4((ac[0][j][0] + ac[1][j][0]) * by, (ac[0][j][1] + ac[1][j][1]) * by,
                                                 (ac[0][j][2] + ac[1][j][2]) * by, (ac[0][j][3] + ac[1][j][3]) * by);
                    if (last) { *(float4 *)(job.s + place(j)) = s; continue; }
                    float4 z, y = make_float4(cw[0] * yc[j].x, cw[0] * yc[j].y, cw[0] * yc[j].z, cw[0] * yc[j].w);
                    z.x = fmaf(keep, zo[j].x - s.x, s.x); z.y = fmaf(keep, zo[j].y - s.y, s.y);
                    z.z = fmaf(keep, zo[j].z - s.z, s.z); z.w = fmaf(keep, zo[j].w - s.w, s.w);
#pragma unroll
                    for (int q = 0; q < NEAR; q++) axpy(y, cw[q + 1], *slab(S::NY, q, j));
                    yc[j] = make_float4(y.x + (z.x - zo[j].x), y.y + (z.y - zo[j].y), y.z + (z.z - zo[j].z), y.w + (z.w - zo[j].w));
                    zo[j] = z;
                    __stcg((float4 *)(yw + place(j)), yc[j]);
                }
        }
        if (bias) {
            float cb[4][4] = {};
            const u32 bd = sb + S::E + ((lane & 7) + ((lane >> 3) & 1) * 8) * 144 + (lane >> 4) * 16, one[4] = {0x3C003C00u, 0x3C003C00u, 0x3C003C00u, 0x3C003C00u};
#pragma unroll
            for (int ks = 0; ks < 7; ks++)
#pragma unroll
                for (int half = 0; half < 2; half++)
#pragma unroll
                    for (int np = 0; np < 2; np++) {
                        u32 b[4];
                        transposed(b, bd + ks * 2304 + half * 64 + np * 32);
                        mma(cb[2 * np], one, b[0], b[1]); mma(cb[2 * np + 1], one, b[2], b[3]);
                    }
            if (g == 0)
#pragma unroll
                for (int nc = 0; nc < 4; nc++) { BS[8 * nc + 2 * t] = cb[nc][0]; BS[8 * nc + 2 * t + 1] = cb[nc][1]; }
            __syncwarp();
            counted(got_y, it & 1);
            if (lane < UNITS) {
                const float s = BS[lane] * (largest / sc.error);
                if (last) {
                    job.s[nx + bias_at + lane] = s;
                } else {
                    const float z = fmaf(keep, bz - s, s);
                    float y = cw[0] * byc;
#pragma unroll
                    for (int q = 0; q < NEAR; q++) y = fmaf(cw[q + 1], *(const float *)(sm + S::NY + q * S::SLAB + MOST_GROUPS * 1792 + lane * 4), y);
                    byc = y + (z - bz);
                    bz = z;
                    __stcg(yw + nx + bias_at + lane, byc);
                }
            }
        }
        barrier_arrive(3, 288);
        __syncthreads();
    }
    arrive(); wait();
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (on(j)) *(float4 *)(job.z + place(j)) = zo[j];
    if (bias && lane < UNITS) job.z[nx + bias_at + lane] = bz;
    if (rank != 0) return;
    for (int o = tid; o < (UNITS + 1) * WIDE; o += 256) {
        u32 at;
        if (part(job, o / WIDE, o % WIDE, at)) { job.theta[usize(node) * job.p + at] = theta[o]; job.v[usize(node) * job.p + at] = v[o]; }
    }
    if (tid < 2) job.clock[2 * node + tid] += iterations;
}
