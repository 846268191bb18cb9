//! The few loops that take the time, in the widest vectors that the processor has.
//!
//! Each is written once over `Vector` and compiled for AVX-512, for AVX2 with
//! FMA and for any processor; which one runs is decided when it is called. All form the same sums
//! in the same order, so that results have the same bits on each. Rows are read where they lie:
//! nothing is copied or allocated.
//!
//! Unsafe code is in this folder alone.
#![allow(unsafe_code)]

mod blocks;
mod cells;
pub mod counting;
mod dense;
mod fetch;
mod functions;
mod pages;
#[cfg(target_arch = "x86_64")]
mod pair;
mod pixels;
mod plain;
mod rows;
mod short;
mod sparse;
#[cfg(target_arch = "x86_64")]
mod transpose;
mod vector;
mod wide;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use blocks::Blocks;
pub use cells::Cells;
pub use pages::Pages;
pub use pixels::Pixels;
pub use rows::{BLOCK, Rows, each_block};
pub use sparse::Csr;
pub use wide::Loop;

#[cfg(target_arch = "x86_64")]
use pair::Pair;
use plain::Plain;

/// An instruction set that this processor has; the kernels are its methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Set {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best that this processor has.
    #[inline]
    pub fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if avx2 && avx512 {
                return Level(Set::Avx512);
            }
            if avx2 {
                return Level(Set::Avx2);
            }
        }
        Level(Set::Baseline)
    }

    /// Every one that this processor has.
    pub fn all() -> Vec<Level> {
        let sets = [
            Set::Baseline,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512,
        ];
        sets.into_iter().filter(|&set| set <= Level::best().0).map(Level).collect()
    }
}

/// Declares the kernels: for every scalar type their bodies compiled for every level, behind a
/// check of what they rely on.
macro_rules! kernels {
    ($($list:tt)*) => {
        declare! { $($list)* }
        implement! { f32, 16, __m256, __m512, $($list)* }
        implement! { f64, 8, __m256d, __m512d, $($list)* }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident = $($body:ident)::+, ($($arg:ident: $type:ty),*)
     $(, $check:block)?;)*) => {
        /// The kernels of one scalar type. They are not generic: that way they are compiled once,
        /// with this library, and not again with whatever uses it.
        pub trait Lanes<T> {
            $(#[doc(hidden)]
            fn $name(level: Level, $($arg: $type),*);)*
        }

        impl Level {
            $($(#[$doc])*
            #[inline]
            pub fn $name<T: Lanes<T>>(self, $($arg: $type),*) {
                T::$name(self, $($arg),*);
            })*
        }
    };
}

macro_rules! implement {
    ($scalar:ident, $lanes:literal, $avx2:ident, $avx512:ident,
     $($(#[$doc:meta])* $name:ident = $($body:ident)::+, ($($arg:ident: $type:ty),*)
     $(, $check:block)?;)*) => {
        const _: () = {
            type T = $scalar;
            impl Lanes<T> for T {
                $(fn $name(level: Level, $($arg: $type),*) {
                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx2,fma,popcnt")]
                    unsafe fn avx512($($arg: $type),*) {
                        unsafe { $($body)::+::<std::arch::x86_64::$avx512>($($arg),*) }
                    }
                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = "avx2,fma,popcnt")]
                    unsafe fn avx2($($arg: $type),*) {
                        unsafe { $($body)::+::<Pair<std::arch::x86_64::$avx2>>($($arg),*) }
                    }
                    $($check)?
                    // SAFETY: the check holds, and a level is one that the processor has.
                    match level.0 {
                        #[cfg(target_arch = "x86_64")]
                        Set::Avx512 => unsafe { avx512($($arg),*) },
                        #[cfg(target_arch = "x86_64")]
                        Set::Avx2 => unsafe { avx2($($arg),*) },
                        Set::Baseline => unsafe { $($body)::+::<Plain<T, $lanes>>($($arg),*) },
                    }
                })*
            }
        };
    };
}

kernels! {
    /// `out[r, :] = Σ_q row_r[q] weights[q, :]`, added to what was there if `add`; `out` is
    /// rows × width, `weights` cols × width.
    dense_product = dense::product,
    (rows: &[&[T]], weights: &[T], width: usize, add: bool, out: &mut [T]),
    {
        check_rows(rows, weights.len(), width);
        assert_eq!(out.len(), rows.len() * width, "a result for each row");
    };

    /// `out[q, :] += Σ_r row_r[q] delta[r, :]`; `out` is cols × width, `delta` rows × width.
    add_dense_transposed = dense::add_transposed,
    (rows: &[&[T]], delta: &[T], width: usize, out: &mut [T]),
    {
        check_rows(rows, out.len(), width);
        assert_eq!(delta.len(), rows.len() * width, "a delta for each row");
    };

    /// `out[r] = Σ_q row_r[q] weights[q]`.
    dense_dots = dense::dots,
    (rows: &[&[T]], weights: &[T], out: &mut [T]),
    {
        check_rows(rows, weights.len(), 1);
        assert_eq!(out.len(), rows.len(), "a result for each row");
    };

    /// `out[q] += Σ_r row_r[q] delta[r]`.
    add_dense_sums = dense::add_sums,
    (rows: &[&[T]], delta: &[T], out: &mut [T]),
    {
        check_rows(rows, out.len(), 1);
        assert_eq!(delta.len(), rows.len(), "a delta for each row");
    };

    /// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`; `out` is rows × width, `weights` cols × width.
    sparse_product = sparse::product,
    (
        matrix: Csr<T>,
        rows: Rows,
        weights: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(weights.len(), matrix.cols * width, "weights for each column");
        assert_eq!(out.len(), rows.len() * width, "a result for each row");
    };

    /// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`; `out` is cols × width, `delta` rows × width.
    add_sparse_transposed = sparse::add_transposed,
    (
        matrix: Csr<T>,
        rows: Rows,
        delta: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(out.len(), matrix.cols * width, "room for each column");
        assert_eq!(delta.len(), rows.len() * width, "a delta for each row");
    };

    /// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`; `out` is rows × width, `weights` cols × width.
    cell_product = cells::product,
    (
        cells: &Cells<T>,
        rows: Rows,
        weights: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(weights.len(), cells.cols() * width, "weights for each column");
        assert_eq!(out.len(), rows.len() * width, "a result for each row");
    };

    /// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`; `out` is cols × width, `delta` rows × width.
    add_cell_transposed = cells::add_transposed,
    (
        cells: &Cells<T>,
        rows: Rows,
        delta: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(out.len(), cells.cols() * width, "room for each column");
        assert_eq!(delta.len(), rows.len() * width, "a delta for each row");
    };

    /// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`; `out` is rows × width, `weights` cols × width.
    block_product = blocks::product,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        weights: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(weights.len(), blocks.cols() * width, "weights for each column");
        assert_eq!(out.len(), rows.len() * width, "a result for each row");
    };

    /// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`; `out` is cols × width, `delta` rows × width.
    add_block_transposed = blocks::add_transposed,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        delta: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(out.len(), blocks.cols() * width, "room for each column");
        assert_eq!(delta.len(), rows.len() * width, "a delta for each row");
    };

    /// `out[r] = Σ_q a[row_r, q] weights[q]`.
    block_dots = blocks::dots,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        weights: &[T],
        out: &mut [T]
    ),
    {
        assert!(blocks.has_unit(), "values are multiples of one number");
        assert_eq!(weights.len(), blocks.cols(), "a weight for each column");
        assert_eq!(out.len(), rows.len(), "a result for each row");
    };

    /// `out[q] += Σ_r a[row_r, q] delta[r]`.
    add_block_sums = blocks::add_sums,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        delta: &[T],
        out: &mut [T]
    ),
    {
        assert!(blocks.has_unit(), "values are multiples of one number");
        assert_eq!(out.len(), blocks.cols(), "room for each column");
        assert_eq!(delta.len(), rows.len(), "a delta for each row");
    };

    /// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`; `out` is rows × width, `weights` cols × width.
    pixel_product = pixels::product,
    (
        pixels: &Pixels<T>,
        rows: Rows,
        weights: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(weights.len(), pixels.shift.len() * width, "weights for each column");
        assert_eq!(out.len(), rows.len() * width, "a result for each row");
    };

    /// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`; `out` is cols × width, `delta` rows × width.
    add_pixel_transposed = pixels::add_transposed,
    (
        pixels: &Pixels<T>,
        rows: Rows,
        delta: &[T],
        width: usize,
        out: &mut [T]
    ),
    {
        assert_eq!(out.len(), pixels.shift.len() * width, "room for each column");
        assert_eq!(delta.len(), rows.len() * width, "a delta for each row");
    };

    /// x ← eˣ, infinite where it is too large, the least positive number where too small.
    exp = functions::exp, (x: &mut [T]);

    /// x ← 1 / (1 + e⁻ˣ).
    sigmoid = functions::sigmoid, (x: &mut [T]);

    /// z_r ← e^{z_r} / Σ_c e^{z_rc} for every row r of `width` numbers.
    softmax = functions::softmax, (z: &mut [T], width: usize),
    {
        assert!(width > 0, "rows have numbers");
    };

    /// `out[q, :] = factors[q] rows[q, :]`; `rows` and `out` are factors × width.
    scale_rows = short::scale,
    (factors: &[T], rows: &[T], width: usize, out: &mut [T]),
    {
        assert_eq!(rows.len(), factors.len() * width, "a row for each factor");
        assert_eq!(out.len(), rows.len(), "a result for each number");
    };

    /// `rows[r, :] += row` for every r.
    add_to_each_row = short::add_to_each, (row: &[T], rows: &mut [T]),
    {
        assert!(!row.is_empty() && rows.len().is_multiple_of(row.len()), "whole rows");
    };

    /// `out += Σ_r rows[r, :]`.
    add_row_sum = short::add_sum, (rows: &[T], out: &mut [T]),
    {
        assert!(!out.is_empty() && rows.len().is_multiple_of(out.len()), "whole rows");
    };

    /// `out[q] = Σ_c a[q, c] b[q, c]`; `a` and `b` are out × width.
    row_dots = short::dots,
    (a: &[T], b: &[T], width: usize, out: &mut [T]),
    {
        assert_eq!(a.len(), out.len() * width, "a row for each result");
        assert_eq!(b.len(), a.len(), "rows of the same length");
    };
}

fn check_rows<T>(rows: &[&[T]], weights: usize, width: usize) {
    for row in rows {
        assert_eq!(row.len() * width, weights, "weights for each column");
    }
}
