// Products of four warps at once, which only Hopper cards have: wgmma.

#pragma once

#include "common.cuh"

__device__ __forceinline__ void async_fence() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int N> __device__ __forceinline__ void multiplied() { asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory"); }

__device__ __forceinline__ void written(u32 (&a)[4]) { asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])); }

// A second factor in shared memory. In the last two layouts the order of pieces of sixteen bytes changes from row to row (number of a
// piece xor that of the row), so that neighbours are in different banks.
//   lines     128 bytes hold 64 terms of a column
//   chunks    64 bytes hold 32 columns of a term; 32 such terms are followed by those of the next 32 columns
__device__ __forceinline__ u64 factor(u32 address, u64 kind, u32 near, u32 far) {
    return (u64)((address & 0x3ffff) >> 4) | ((u64)(near >> 4) << 16) | ((u64)(far >> 4) << 32) | kind << 62;
}
__device__ __forceinline__ u64 lines(u32 address) { return factor(address, 1, 16, 1024); }
__device__ __forceinline__ u64 chunks(u32 address) { return factor(address, 2, 2048, 512); }

// d[64 x n] += a[64 x 16] of registers times b[16 x n] of shared memory. DOWN: neighbours in memory are columns of b; else terms.
#define D8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define D16 D8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define D24 D16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define D28 D24 ",%24,%25,%26,%27"
#define D32 D28 ",%28,%29,%30,%31"
#define D40 D32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define D52 D40 ",%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51"
#define D64 D52 ",%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define D104 D64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103"
#define D128 D104 ",%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define F4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F8(d, i) F4(d, i), F4(d, i + 4)
#define F16(d) F8(d, 0), F8(d, 8)
#define F24(d) F16(d), F8(d, 16)
#define F28(d) F24(d), F4(d, 24)
#define F32(d) F28(d), F4(d, 28)
#define F40(d) F32(d), F8(d, 32)
#define F52(d) F40(d), F8(d, 40), F4(d, 48)
#define F64(d) F52(d), F4(d, 52), F8(d, 56)
#define F104(d) F64(d), F8(d, 64), F8(d, 72), F8(d, 80), F8(d, 88), F8(d, 96)
#define F128(d) F104(d), F8(d, 104), F8(d, 112), F8(d, 120)
#define TOGETHER(n, half, f, a0, a1, a2, a3, at, turn) \
    template <bool DOWN> __device__ __forceinline__ void product(float (&d)[half], const u32 (&a)[4], u64 b) { \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n" \
            "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16 {" D##half "}, {%" #a0 ",%" #a1 ",%" #a2 ",%" #a3 "}, %" #at ", p, 1, 1, %" #turn ";\n}\n" \
            : f : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(DOWN))); \
    }
TOGETHER(16, 8, F8(d, 0), 8, 9, 10, 11, 12, 13)
TOGETHER(32, 16, F16(d), 16, 17, 18, 19, 20, 21)
TOGETHER(48, 24, F24(d), 24, 25, 26, 27, 28, 29)
TOGETHER(56, 28, F28(d), 28, 29, 30, 31, 32, 33)
TOGETHER(64, 32, F32(d), 32, 33, 34, 35, 36, 37)
TOGETHER(80, 40, F40(d), 40, 41, 42, 43, 44, 45)
TOGETHER(104, 52, F52(d), 52, 53, 54, 55, 56, 57)
TOGETHER(128, 64, F64(d), 64, 65, 66, 67, 68, 69)
TOGETHER(208, 104, F104(d), 104, 105, 106, 107, 108, 109)
TOGETHER(256, 128, F128(d), 128, 129, 130, 131, 132, 133)
