// What cards from sm_80 on can do: multiply small matrices of halves, and copy into shared memory. Numbers as halves.

#pragma once

#include <cuda_fp16.h>

#include "common.cuh"

__device__ __forceinline__ u32 shared(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void matrices(u32 (&r)[4], u32 a) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a));
}
__device__ __forceinline__ void transposed(u32 (&r)[4], u32 a) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a));
}
// Two of them.
__device__ __forceinline__ void matrices(u32 (&r)[2], u32 a) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n" : "=r"(r[0]), "=r"(r[1]) : "r"(a));
}
__device__ __forceinline__ void transposed(u32 (&r)[2], u32 a) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n" : "=r"(r[0]), "=r"(r[1]) : "r"(a));
}
__device__ __forceinline__ void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void copy16(u32 to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N> __device__ __forceinline__ void copied() { asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory"); }
// Copies `size` bytes and fills sixteen up with zeros, but only if `wanted`.
__device__ __forceinline__ void copy16(u32 to, const void *from, u32 size, bool wanted) {
    asm volatile("{.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n@p cp.async.cg.shared.global [%0], [%1], 16, %2;}\n"
                 ::"r"(to), "l"(from), "r"(size), "r"(u32(wanted)) : "memory");
}

// Entry `at` of a list, or `at` itself if there is none.
__device__ __forceinline__ u32 found(const u32 *list, usize at) {
    u32 value;
    asm("{.reg .pred p;\nsetp.ne.u64 p, %1, 0;\nmov.u32 %0, %2;\n@p ld.global.nc.u32 %0, [%3];}\n"
        : "=r"(value) : "l"(list), "r"(u32(at)), "l"(list + at));
    return value;
}

// How many halves a number has in layers.cu. nvcc accepts only a number here; `make` turns it into the word TERMS, and src/kernels.rs
// turns that into the count before the driver translates the text. The driver leaves out the code of the other case.
__device__ __forceinline__ u32 halves() {
    u32 terms;
    asm("mov.u32 %0, 1413829197;" : "=r"(terms));
    return terms;
}

// 2^a and 1 / a without the cases of numbers below 2^-126, for which the compiler's own have branches: those become 0.
__device__ __forceinline__ float power(float a) {
    float b;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(b) : "f"(a));
    return b;
}
__device__ __forceinline__ float inverse(float a) {
    float b;
    asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(b) : "f"(a));
    return b;
}

// The activation of z, from z times `exponent`: a sigmoid or tanh.
__device__ __forceinline__ float exponent(u32 tanh) { return tanh ? 2.88539008f : -1.44269504f; }
__device__ __forceinline__ float activated(float a, u32 tanh) {
    return fmaf(inverse(1.0f + power(a)), tanh ? -2.0f : 1.0f, tanh ? 1.0f : 0.0f);
}

// The largest value, and the sum, of four neighbouring lanes.
__device__ __forceinline__ float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
__device__ __forceinline__ float quad_sum(float v) {
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

// a and b as two halves each, 22 bits together.
__device__ __forceinline__ void split(float a, float b, u32 &high, u32 &low) {
    __half2 h = __floats2half2_rn(a, b);
    float2 f = __half22float2(h);
    __half2 l = __floats2half2_rn(a - f.x, b - f.y);
    high = *reinterpret_cast<u32 *>(&h);
    low = *reinterpret_cast<u32 *>(&l);
}

// The largest power of two that times `bound` is below 2^e.
__device__ __forceinline__ float power_below(float bound, int e) {
    if (!(bound > 0.0f)) return 1.0f;
    int exponent = (int)((__float_as_uint(bound) >> 23) & 255) - 126;
    exponent = max(-100, min(100, e - exponent));
    return __uint_as_float((u32)(exponent + 127) << 23);
}
