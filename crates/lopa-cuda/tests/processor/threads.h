// The threads of a block take turns on one thread of the processor, each with a stack of its own; blocks run one after the other.
// Shared memory begins as NaN, and a copy into it happens only when the kernel waits for it: a kernel that reads too early gets
// NaN.

#pragma once

#include <cstdio>
#include <vector>

#include "cuda.h"

#if defined(__x86_64__)
asm(R"(
.text
.type change, @function
change:
    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
    ret
)");
#else
#error "threads are only switched on x86-64"
#endif
// Saves the current stack in `from`, and continues on the other.
extern "C" void change(void **from, void *to);

Place blockIdx, blockDim;
alignas(128) unsigned char room[256 << 10];
unsigned room_bytes;

namespace {

struct Copy { unsigned to; const void *from; unsigned bytes; };
struct Thread {
    Place place;
    void *stack;
    bool live;
    unsigned turn; // which of its warp's buffers it used last
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;
};
struct Warp {
    unsigned live, here, round;
    const void *place; // where its lanes meet
    alignas(16) unsigned char buffers[2][32 * 128];
};

enum { THREADS = 1024, STACK = 128 << 10 };
Thread threads[THREADS];
Warp warps[THREADS / 32];
unsigned char *stacks;
unsigned current, count, live, here, rounds;
void *outside;
void (*kernel)(const void *, unsigned);
const void *parameters;
unsigned number;

unsigned next() {
    unsigned to = current;
    do to = (to + 1) % count;
    while (!threads[to].live);
    return to;
}

void wait() {
    const unsigned from = current;
    current = next();
    if (current != from) change(&threads[from].stack, threads[current].stack);
}

void begin() {
    kernel(parameters, number);
    Thread &own = threads[current];
    own.live = false;
    Warp &warp = warps[current / 32];
    if (--warp.live && warp.here == warp.live) warp.here = 0, warp.round++;
    if (--live && here == live) here = 0, rounds++;
    void *unused;
    if (!live) change(&unused, outside);
    current = next();
    change(&unused, threads[current].stack);
}

[[noreturn]] void fail(const char *what) {
    fprintf(stderr, "a kernel has %s: block %u, thread %u\n", what, blockIdx.x, current);
    abort();
}

// Waits for all lanes of the warp at a place of the kernel; the last one does `work`.
template <class Work> void meet(const void *place, Work work) {
    Warp &warp = warps[current / 32];
    const unsigned round = warp.round;
    if (warp.here == 0) warp.place = place;
    if (warp.place != place) fail("lanes of a warp that wait for each other at different places");
    if (++warp.here == warp.live) {
        work();
        warp.here = 0, warp.round++;
    } else
        while (warp.round == round) wait();
}

// Two buffers in turn: no lane writes one again before all lanes have met once more.
unsigned char *buffer() { return warps[current / 32].buffers[threads[current].turn ^= 1]; }

const void *of_all(const void *place, const void *value, unsigned bytes) {
    unsigned char *all = buffer();
    memcpy(all + bytes * own_lane(), value, bytes);
    meet(place, [] {});
    return all;
}

template <unsigned N> void load(const void *place, unsigned (&r)[N], unsigned from, bool turned) {
    const unsigned *rows = (const unsigned *)of_all(place, &from, sizeof from), g = own_lane() / 4, t = own_lane() % 4;
    auto half = [&](unsigned matrix, unsigned row, unsigned column) {
        const unsigned at = rows[8 * matrix + row];
        if (at % 16 || at + 16 > room_bytes) fail("a matrix at a wrong place");
        uint16_t bits;
        memcpy(&bits, room + at + 2 * column, 2);
        return unsigned(bits);
    };
    for (unsigned m = 0; m < N; m++)
        r[m] = turned ? half(m, 2 * t, g) | half(m, 2 * t + 1, g) << 16 : half(m, g, 2 * t) | half(m, g, 2 * t + 1) << 16;
}

// 16 by 16 halves times 16 by 8, as the lanes of a warp have them.
struct Share { unsigned a[4], b[2]; float c[4]; };
void multiply(Share *all) {
    auto half = [](unsigned word, unsigned e) { return double(__half2float({uint16_t(word >> 16 * e)})); };
    double a[16][16], b[16][8];
    for (unsigned lane = 0; lane < 32; lane++) {
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned e = 0; e < 2; e++) {
            for (unsigned r = 0; r < 4; r++) a[g + r % 2 * 8][2 * t + r / 2 * 8 + e] = half(all[lane].a[r], e);
            for (unsigned r = 0; r < 2; r++) b[2 * t + 8 * r + e][g] = half(all[lane].b[r], e);
        }
    }
    for (unsigned row = 0; row < 16; row++) {
        auto at = [&](unsigned n) -> float & { return all[row % 8 * 4 + n / 2].c[row / 8 * 2 + n % 2]; };
        double sum[8];
        for (unsigned n = 0; n < 8; n++) sum[n] = at(n);
        for (unsigned k = 0; k < 16; k++)
            for (unsigned n = 0; n < 8; n++) sum[n] += a[row][k] * b[k][n];
        for (unsigned n = 0; n < 8; n++) at(n) = float(sum[n]);
    }
}

} // namespace

const Place &own_place() { return threads[current].place; }
unsigned own_lane() { return current % 32; }

void __syncthreads() {
    const unsigned round = rounds;
    if (++here == live) here = 0, rounds++;
    else
        while (rounds == round) wait();
}

// Where the kernel calls one of the functions below, which are not inlined.
#define PLACE __builtin_return_address(0)
#define CALLED __attribute__((noinline))
CALLED void __syncwarp() { meet(PLACE, [] {}); }
CALLED const void *of_all(const void *value, unsigned bytes) { return of_all(PLACE, value, bytes); }

unsigned shared(const void *p) { return unsigned((const unsigned char *)p - room); }
CALLED void matrices(unsigned (&r)[2], unsigned from) { load(PLACE, r, from, false); }
CALLED void matrices(unsigned (&r)[4], unsigned from) { load(PLACE, r, from, false); }
CALLED void transposed(unsigned (&r)[2], unsigned from) { load(PLACE, r, from, true); }
CALLED void transposed(unsigned (&r)[4], unsigned from) { load(PLACE, r, from, true); }

CALLED void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    Share *all = (Share *)buffer(), &own = all[own_lane()];
    own = {{a[0], a[1], a[2], a[3]}, {b0, b1}, {c[0], c[1], c[2], c[3]}};
    meet(PLACE, [&] { multiply(all); });
    memcpy(c, own.c, sizeof own.c);
}

// Each lane computes its own entries of two rows. Bits of the descriptor: where the factor begins; from 32 columns to the next (or none);
// from eight terms, or columns, to the next; 128 or 64 bytes as the length of a line whose pieces change their order.
CALLED void multiply_together(float *d, unsigned columns, const unsigned (&a)[4], uint64_t factor, bool down) {
    auto half = [](unsigned word, unsigned e) { return double(__half2float({uint16_t(word >> 16 * e)})); };
    const unsigned(*all)[4] = (const unsigned(*)[4])of_all(PLACE, a, sizeof a), g = own_lane() / 4, t = own_lane() % 4;
    const unsigned from = (factor & 0x3fff) << 4, near = (factor >> 16 & 0x3fff) << 4, far = (factor >> 32 & 0x3fff) << 4;
    const bool lines = factor >> 62 == 1;
    if (lines == down) fail("a factor in another layout");
    double rows[2][16];
    for (unsigned lane = 0; lane < 4; lane++)
        for (unsigned r = 0; r < 4; r++)
            for (unsigned e = 0; e < 2; e++) rows[r % 2][2 * lane + r / 2 * 8 + e] = half(all[4 * g + lane][r], e);
    for (unsigned n = 0; n < columns / 8; n++)
        for (unsigned e = 0; e < 2; e++) {
            const unsigned column = 8 * n + 2 * t + e;
            double sum[2] = {d[4 * n + e], d[4 * n + 2 + e]};
            for (unsigned k = 0; k < 16; k++) {
                unsigned at = from + (lines ? column / 8 * far + column % 8 * 128 + 2 * k : column / 32 * near + k / 8 * far + k % 8 * 64 + column % 32 * 2);
                at ^= (at >> 7 & (lines ? 7 : 3)) << 4;
                if (at + 2 > room_bytes) fail("a factor at a wrong place");
                uint16_t bits;
                memcpy(&bits, room + at, 2);
                const double b = half(bits, 0);
                for (unsigned r = 0; r < 2; r++) sum[r] += rows[r][k] * b;
            }
            for (unsigned r = 0; r < 2; r++) d[4 * n + 2 * r + e] = float(sum[r]);
        }
}

void copy16(unsigned to, const void *from, unsigned bytes, bool wanted) {
    if (!wanted) return;
    if (to % 16 || to + 16 > room_bytes || (bytes && uintptr_t(from) % 16)) fail("a copy at a wrong place");
    threads[current].open.push_back({to, from, bytes});
}
void commit() {
    Thread &own = threads[current];
    own.groups.push_back(std::move(own.open));
    own.open.clear();
}
void copied_but(unsigned last) {
    auto &groups = threads[current].groups;
    while (groups.size() > last) {
        for (const Copy &copy : groups.front()) {
            memset(room + copy.to, 0, 16);
            memcpy(room + copy.to, copy.from, copy.bytes);
        }
        groups.erase(groups.begin());
    }
}

extern "C" void run(void (*of)(const void *, unsigned), const void *job, unsigned at, unsigned blocks, unsigned width, unsigned bytes) {
    if (!stacks) stacks = (unsigned char *)aligned_alloc(4096, size_t(THREADS) * STACK);
    if (width > THREADS || bytes > sizeof room) fail("too large a block");
    kernel = of, parameters = job, number = at, blockDim = {width, 1, 1}, room_bytes = bytes;
    for (unsigned block = 0; block < blocks; block++) {
        blockIdx = {block, 0, 0};
        memset(room, 0xff, bytes);
        count = live = width, here = rounds = current = 0;
        for (unsigned w = 0; w < (width + 31) / 32; w++) warps[w].live = min(32u, width - 32 * w), warps[w].here = warps[w].round = 0;
        for (unsigned i = 0; i < width; i++) {
            Thread &thread = threads[i];
            thread.place = {i, 0, 0}, thread.live = true, thread.turn = 0;
            thread.open.clear(), thread.groups.clear();
            // What `change` pops: six registers and the address of `begin`; the last word is where `begin` would return to.
            void **top = (void **)(stacks + size_t(i + 1) * STACK) - 8;
            memset(top, 0, 8 * sizeof *top);
            top[6] = (void *)begin;
            thread.stack = top;
        }
        change(&outside, threads[0].stack);
    }
}
