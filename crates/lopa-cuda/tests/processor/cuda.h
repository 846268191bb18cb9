// The part of CUDA that kernels/lopa.cu and kernels/layers.cu need, on the processor; threads.h runs the threads.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

using std::max;
using std::min;
inline unsigned min(unsigned a, int b) { return min(a, unsigned(b)); }

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct Place { unsigned x, y, z; };
extern Place blockIdx, blockDim;
const Place &own_place();
#define threadIdx own_place()
extern unsigned char room[]; // shared memory that a launch asks for
extern unsigned room_bytes;

void __syncthreads();
void __syncwarp();
unsigned own_lane();
// The values of all lanes of the warp, in order; at most 128 bytes each. All lanes have to come from the same place: on a card they
// wait for each other for ever if some of them do something else.
const void *of_all(const void *value, unsigned bytes);

template <class T> __forceinline__ T __shfl_xor_sync(unsigned, T value, int lane) { return ((const T *)of_all(&value, sizeof value))[own_lane() ^ lane]; }
template <class T> __forceinline__ T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    return ((const T *)of_all(&value, sizeof value))[own_lane() / width * width + lane % width];
}
__forceinline__ unsigned __reduce_max_sync(unsigned, unsigned value) {
    const unsigned *all = (const unsigned *)of_all(&value, sizeof value);
    return *std::max_element(all, all + 32);
}
inline unsigned atomicMax(unsigned *to, unsigned value) { return std::exchange(*to, max(*to, value)); }
template <class T> T __ldg(const T *from) { return *from; }
template <class T> T __ldca(const T *from) { return *from; }

template <class To, class From> To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
inline unsigned __float_as_uint(float a) { return same_bits<unsigned>(a); }
inline float __uint_as_float(unsigned a) { return same_bits<float>(a); }
inline float __int_as_float(int a) { return same_bits<float>(a); }
inline double __longlong_as_double(long long a) { return same_bits<double>(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    const uint64_t all = uint64_t(b) << 32 | a;
    unsigned to = 0;
    for (int i = 0; i < 4; i++) to |= unsigned(all >> 8 * (which >> 4 * i & 7) & 255) << 8 * i;
    return to;
}

struct __half { uint16_t bits; };
struct __half2 { __half x, y; };
inline __half __float2half_rn(float a) { return same_bits<__half>(_Float16(a)); }
inline unsigned short __half_as_ushort(__half a) { return same_bits<unsigned short>(a); }
inline float __half2float(__half a) { return float(same_bits<_Float16>(a)); }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline float2 __half22float2(__half2 a) { return {__half2float(a.x), __half2float(a.y)}; }

// What kernels/instructions.cuh writes as instructions of the card.
unsigned shared(const void *p);
void matrices(unsigned (&r)[2], unsigned from);
void matrices(unsigned (&r)[4], unsigned from);
void transposed(unsigned (&r)[2], unsigned from);
void transposed(unsigned (&r)[4], unsigned from);
void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);
// And warpgroups.cuh: d of a warp += a times a second factor in shared memory, as its descriptor says.
void multiply_together(float *d, unsigned columns, const unsigned (&a)[4], uint64_t factor, bool down);
void copy16(unsigned to, const void *from, unsigned bytes, bool wanted);
void commit();
void copied_but(unsigned last);
template <int N> void copied() { copied_but(N); }
inline float power(float a) { return exp2f(a); }
inline float inverse(float a) { return 1.0f / a; }
