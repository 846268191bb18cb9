// One iteration of every node, in plain f32 or f64.
//
// Every sum has one order, which src/emulate.rs repeats on the processor: products are fused only where
// `fma` is written (compile with -fmad=false), nothing is added atomically. Hence a card gives the same
// bits every time, and those of the emulation.
//
//   move      x, y, z of LoPA (9) to (12), or x and r of D-SOBA, from all neighbours; theta and v; the minibatches
//   update    sums of a listed rule
//   draw      the minibatches alone, of a listed rule
//   forward   activations of a hidden layer                                    \
//   heads     scores, slopes, curvatures; errors back to the last layer        |
//   rows      d and h                                                          | representation
//   pull      errors back to the layer below                                   |
//   backward  s of a layer                                                     /
//   scores, linear          d, h and s of hyperparameter, d and h of hyper-cleaning
//   crossed, cleaned        s where x has entries for groups or columns, and for samples
//   whole     move, scores and linear, one block per node
//   residual, quadratic     d, h and s of quadratic
//   find      the rule that finds step sizes (steps.cuh)
//   tick      some iterations are over
//   carry     what goes to other processes, and what comes from them
//   sizes     the largest entry of every variable
//
// Iterations are recorded in some number and launched together. `at` tells a kernel which of them it belongs to, and
// which of the two buffers of x and y it reads: twice the number, and the buffer.
//
// `make` compiles this file into lopa.ptx.lzma; the oracles and what comes before them are in files of their own.

#include "layer.cuh"
#include "linear.cuh"
#include "quadratic.cuh"
#include "steps.cuh"

template <class T> __device__ void tick(const Job<T> &job, u32 count) {
    if (threadIdx.x < 2) job.clock[threadIdx.x] += count;
}

#define WIDE_ENTRY(threads, name, T, call) \
    extern "C" __global__ void __launch_bounds__(threads) name(const Job<T> job, u32 at) { call; }
#define ENTRY(name, T, call) WIDE_ENTRY(128, name, T, call)
// For up to this many classes, on bytes or numbers.
#define LINEAR(most, end, T) \
    WIDE_ENTRY(256, scores_bytes_##most##_##end, T, (scores<most, T, u8>(job, at % 2))) \
    WIDE_ENTRY(256, scores_##most##_##end, T, (scores<most, T, T>(job, at % 2))) \
    ENTRY(linear_bytes_##most##_##end, T, (linear<most, T, u8>(job, at % 2))) \
    ENTRY(linear_##most##_##end, T, (linear<most, T, T>(job, at % 2)))
#define ENTRIES(end, T) \
    ENTRY(move_##end, T, move<Numbers>(job, at)) \
    ENTRY(draw_##end, T, draw<Numbers>(job, at)) \
    ENTRY(forward_bytes_##end, T, (forward<T, u8>(job, at % 2))) \
    ENTRY(forward_##end, T, (forward<T, T>(job, at % 2))) \
    ENTRY(forward_below_##end, T, (forward<T, Below>(job, at % 2))) \
    ENTRY(heads_##end, T, (heads<64, 0>(job))) \
    ENTRY(rows_##end, T, rows(job)) \
    ENTRY(backward_bytes_##end, T, (backward<T, u8>(job))) \
    ENTRY(backward_##end, T, (backward<T, T>(job))) \
    ENTRY(backward_below_##end, T, (backward<T, Below>(job))) \
    ENTRY(pull_##end, T, pull(job, at % 2)) \
    ENTRY(crossed_##end, T, crossed(job, at % 2)) \
    ENTRY(cleaned_##end, T, cleaned(job, XI3, job.slopes, across(job.classes))) \
    LINEAR(1, end, T) LINEAR(16, end, T) LINEAR(64, end, T) \
    WIDE_ENTRY(1024, whole_bytes_1_##end, T, (whole<1, T, u8>(job, at))) \
    WIDE_ENTRY(1024, whole_1_##end, T, (whole<1, T, T>(job, at))) \
    ENTRY(residual_##end, T, residual(job)) \
    ENTRY(quadratic_##end, T, quadratic(job, at % 2)) \
    ENTRY(tick_##end, T, tick(job, at)) \
    extern "C" __global__ void __launch_bounds__(128) update_##end(const Sums<T> job, u32 at) { update(job, at); } \
    extern "C" __global__ void __launch_bounds__(128) carry_##end(const Spans<T> job, u32 in) { carry(job, in); } \
    extern "C" __global__ void __launch_bounds__(FINDERS) find_##end(const Finding<T> job, u32 at) { find_steps(job, at); } \
    extern "C" __global__ void __launch_bounds__(128) sizes_##end(const Sizes<T> job, u32) { sizes(job); }

// With more classes, the sums fill the registers.
WIDE_ENTRY(512, whole_bytes_16_f32, float, (whole<16, float, u8>(job, at)))
WIDE_ENTRY(512, whole_16_f32, float, (whole<16, float, float>(job, at)))
ENTRY(heads_16_f32, float, (heads<16, 256>(job)))
ENTRIES(f32, float)
ENTRIES(f64, double)
