// What the kernels on tensor cores share: numbers, draws, instructions.

#pragma once

#include "instructions.cuh"
#include "warpgroups.cuh"

// A byte with a zero byte above it is the half-precision number byte * 2^-24: no conversion is needed. x is
// multiplied by SCALE, so that the lower half of its bits is no smaller than that.
#define SCALE 64.0f
#define SUBNORMAL 16777216.0f

// ---------------------------------------------------------------- draws

__device__ __forceinline__ u32 turned(u32 a, int bits) { return __funnelshift_l(a, a, bits); }

#define QUARTER(a, b, c, d) \
    a += b; d = turned(d ^ a, 16); c += d; b = turned(b ^ c, 12); \
    a += b; d = turned(d ^ a, 8);  c += d; b = turned(b ^ c, 7);

// Sixteen words of ChaCha8, at the address that crates/lopa-base/src/math/random.rs defines.
__device__ __forceinline__ void words(u32 (&o)[16], const u32 *seed, u32 node, u32 address, u32 word) {
    const u32 from[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, seed[0], seed[1], 1, 0,
                          0, 0, 0, 0, word, address, node, 0};
#pragma unroll
    for (int i = 0; i < 16; i++) o[i] = from[i];
#pragma unroll
    for (int round = 0; round < 4; round++) {
        QUARTER(o[0], o[4], o[8], o[12]) QUARTER(o[1], o[5], o[9], o[13])
        QUARTER(o[2], o[6], o[10], o[14]) QUARTER(o[3], o[7], o[11], o[15])
        QUARTER(o[0], o[5], o[10], o[15]) QUARTER(o[1], o[6], o[11], o[12])
        QUARTER(o[2], o[7], o[8], o[13]) QUARTER(o[3], o[4], o[9], o[14])
    }
#pragma unroll
    for (int i = 0; i < 16; i++) o[i] += from[i];
}

// ---------------------------------------------------------------- instructions

__device__ __forceinline__ void store_transposed(u32 a, const u32 (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};\n"
                 ::"r"(a), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
__device__ __forceinline__ void barrier(int id, int n) { asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(n) : "memory"); }

__device__ __forceinline__ float exponential(float z) { return power(z * 1.44269504f); }

// The activation of z.
__device__ __forceinline__ float activation(float z, u32 tanh) { return activated(z * exponent(tanh), tanh); }

// Shared memory as a second factor: core matrices of 128 bytes follow each other, groups of 8 columns are 256 bytes apart.
__device__ __forceinline__ u64 descriptor(u32 address) {
    return factor(address, 0, 128, 256);
}

// ---------------------------------------------------------------- numbers

__device__ __forceinline__ float moving_average(float z, float s, float gamma) { return s + (1.0f - gamma) * (z - s); }

// ---------------------------------------------------------------- sizes

extern "C" __global__ void __launch_bounds__(128) carry(const Spans<float> job, u32 in) { carry<float>(job, in); }
extern "C" __global__ void __launch_bounds__(128) sizes(const Sizes<float> job, u32) { sizes(job); }
