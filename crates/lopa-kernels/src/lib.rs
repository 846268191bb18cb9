//! The inner loops of lopa: products of matrix rows with narrow matrices, and a few functions of
//! many numbers, in the widest vectors that the processor has.
//!
//! Every kernel is written once, over a vector of 64 bytes, and compiled for each instruction set: AVX-512
//! and AVX2 with FMA on x86-64, NEON on ARM, and plain Rust for any processor. [`Level::best`] selects the best level of the
//! processor at run time; the kernels are methods of [`Level`].
//!
//! Rows are stored in one of five forms, each with a product and a transposed product:
//!
//! | rows | form | kernels |
//! |---|---|---|
//! | dense | slices `&[T]` | [`dense_product`](Level::dense_product), [`add_dense_transposed`](Level::add_dense_transposed) |
//! | dense bytes less a mean | [`Pixels`] | [`pixel_product`](Level::pixel_product), [`add_pixel_transposed`](Level::add_pixel_transposed) |
//! | sparse, few distinct values | [`Blocks`] | [`block_product`](Level::block_product), [`add_block_transposed`](Level::add_block_transposed) |
//! | sparse, nearly equal lengths | [`Cells`] | [`cell_product`](Level::cell_product), [`add_cell_transposed`](Level::add_cell_transposed) |
//! | any other sparse rows | [`Csr`] | [`sparse_product`](Level::sparse_product), [`add_sparse_transposed`](Level::add_sparse_transposed) |
//!
//! [`aligned_rows`] stores the vectors of many nodes in one allocation, and [`Pages`] requests large
//! pages for it.
//!
//! # Promises
//!
//! - **The same bits on every processor**, the payload of a NaN aside. A vector has 64 bytes at
//!   every level, in one register or in several, and every product is fused, so sums are always
//!   formed in the same order. A test compares all levels with each other, bit for bit.
//! - **Lengths are checked before any unsafe block**: a slice of the wrong length, a row or a
//!   column out of range panics. All unsafe code of the processor's side is in this crate.
//! - **Kernels allocate nothing**; rows are read in place. One exception: the first product of a
//!   [`Blocks`] with a single column ([`block_dots`](Level::block_dots),
//!   [`add_block_sums`](Level::add_block_sums)) builds an index that later ones share.
//!
//! # Example
//!
//! ```
//! use lopa_kernels::Level;
//!
//! let rows: [&[f32]; 2] = [&[1.0, 2.0, 3.0], &[0.0, 1.0, 0.0]];
//! let weights = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0]; // 3 × 2
//! let mut out = [0.0; 4]; // 2 × 2
//! Level::best().dense_product(&rows, &weights, 2, false, &mut out);
//! assert_eq!(out, [14.0, 140.0, 2.0, 20.0]);
//!
//! // The same bits at every level.
//! for level in Level::all() {
//!     let mut other = [0.0; 4];
//!     level.dense_product(&rows, &weights, 2, false, &mut other);
//!     assert_eq!(out, other);
//! }
//! ```
#![allow(unsafe_code)]

mod aligned;
mod blocks;
mod cells;
pub mod counting;
mod dense;
mod functions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod interleave;
mod loops;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pages;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod pair;
mod pixels;
mod plain;
mod prefetch;
mod rows;
mod short;
mod sparse;
#[cfg(target_arch = "x86_64")]
mod transpose;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use aligned::{AlignedRow, aligned_rows};
pub use blocks::{Blocks, Columns};
pub use cells::Cells;
pub use loops::Loop;
pub use pages::Pages;
pub use pixels::Pixels;
pub use rows::{BLOCK, Rows, each_block};
pub use sparse::Csr;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use pair::Pair;
use plain::Plain;

/// An instruction set that this processor has; the kernels are its methods.
///
/// # Panics
///
/// Every kernel panics if its slices do not have the shapes given, or if a row or a column is out
/// of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Set {
    Baseline,
    #[cfg(target_arch = "aarch64")]
    Neon,
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
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            return Level(Set::Neon);
        }
        Level(Set::Baseline)
    }

    /// All that this processor has, the baseline first.
    pub fn all() -> Vec<Level> {
        let sets = [
            Set::Baseline,
            #[cfg(target_arch = "aarch64")]
            Set::Neon,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512,
        ];
        sets.into_iter().filter(|&set| set <= Level::best().0).map(Level).collect()
    }
}

/// Declares the kernels: for each scalar type, their bodies compiled for each level, behind a check
/// of the lengths they rely on.
macro_rules! kernels {
    ($($list:tt)*) => {
        declare! { $($list)* }
        implement! { single, f32, 16, __m256, __m512, Single, $($list)* }
        implement! { double, f64, 8, __m256d, __m512d, Double, $($list)* }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident = $($body:ident)::+, ($($arg:ident: $type:ty),*)
     $(, $check:block)?;)*) => {
        /// The kernels of one scalar type, f32 or f64. They are not generic, so that they are
        /// compiled once, with this crate, and not again in every crate that calls them.
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
    ($module:ident, $scalar:ident, $lanes:literal, $avx2:ident, $avx512:ident, $neon:ident,
     $($(#[$doc:meta])* $name:ident = $($body:ident)::+, ($($arg:ident: $type:ty),*)
     $(, $check:block)?;)*) => {
        // The compiler works on modules in parallel.
        mod $module {
            use super::*;

            type T = $scalar;
            impl Lanes<T> for T {
                $(fn $name(level: Level, $($arg: $type),*) {
                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx2,fma,popcnt")]
                    unsafe fn avx512($($arg: $type),*) {
                        // SAFETY: compiled for these instructions; lengths as for the caller.
                        unsafe { $($body)::+::<std::arch::x86_64::$avx512>($($arg),*) }
                    }
                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = "avx2,fma,popcnt")]
                    unsafe fn avx2($($arg: $type),*) {
                        // SAFETY: compiled for these instructions; lengths as for the caller.
                        unsafe { $($body)::+::<Pair<std::arch::x86_64::$avx2>>($($arg),*) }
                    }
                    #[cfg(target_arch = "aarch64")]
                    #[target_feature(enable = "neon")]
                    unsafe fn neon($($arg: $type),*) {
                        // SAFETY: compiled for these instructions; lengths as for the caller.
                        unsafe { $($body)::+::<Pair<crate::neon::$neon>>($($arg),*) }
                    }
                    $($check)?
                    match level.0 {
                        // SAFETY: `$check` verified the lengths; the processor has these
                        // instructions, because `Level::best` detected them.
                        #[cfg(target_arch = "x86_64")]
                        Set::Avx512 => unsafe { avx512($($arg),*) },
                        // SAFETY: as above.
                        #[cfg(target_arch = "x86_64")]
                        Set::Avx2 => unsafe { avx2($($arg),*) },
                        // SAFETY: as above.
                        #[cfg(target_arch = "aarch64")]
                        Set::Neon => unsafe { neon($($arg),*) },
                        // SAFETY: `$check` verified the lengths; every processor has these.
                        Set::Baseline => unsafe { $($body)::+::<Plain<T, $lanes>>($($arg),*) },
                    }
                })*
            }
        }
    };
}

kernels! {
    /// `out[r, :] = Σ_q row_r[q] weights[q, :]`, or `+=` if `add`; `out` is rows × width, `weights`
    /// cols × width.
    dense_product = dense::product,
    (rows: &[&[T]], weights: &[T], width: usize, add: bool, out: &mut [T]),
    {
        check_rows("weights", weights.len(), rows, width);
        check("out", out.len(), rows.len(), width);
    };

    /// `out[q, :] += Σ_r row_r[q] delta[r, :]`; `out` is cols × width, `delta` rows × width.
    add_dense_transposed = dense::add_transposed,
    (rows: &[&[T]], delta: &[T], width: usize, out: &mut [T]),
    {
        check_rows("out", out.len(), rows, width);
        check("delta", delta.len(), rows.len(), width);
    };

    /// `out[r] = Σ_q row_r[q] weights[q]`.
    dense_dots = dense::dots,
    (rows: &[&[T]], weights: &[T], out: &mut [T]),
    {
        check_rows("weights", weights.len(), rows, 1);
        check("out", out.len(), rows.len(), 1);
    };

    /// `out[q] += Σ_r row_r[q] delta[r]`.
    add_dense_sums = dense::add_sums,
    (rows: &[&[T]], delta: &[T], out: &mut [T]),
    {
        check_rows("out", out.len(), rows, 1);
        check("delta", delta.len(), rows.len(), 1);
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
        check("weights", weights.len(), matrix.cols, width);
        check("out", out.len(), rows.len(), width);
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
        check("out", out.len(), matrix.cols, width);
        check("delta", delta.len(), rows.len(), width);
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
        check("weights", weights.len(), cells.cols(), width);
        check("out", out.len(), rows.len(), width);
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
        check("out", out.len(), cells.cols(), width);
        check("delta", delta.len(), rows.len(), width);
    };

    /// `outs[m][r, :] = Σ_q a[row_r, q] weights[m][q, :]` for each m, in one pass over the rows; each of `outs` is rows ×
    /// width, each of `weights` cols × width. With `columns`, a is what they stand for.
    block_product = blocks::product,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        columns: Option<Columns<T>>,
        weights: &[&[T]],
        width: usize,
        outs: &mut [&mut [T]]
    ),
    {
        check_columns(columns, blocks.cols());
        check_all("weights", weights.iter().map(|weights| weights.len()), blocks.cols(), width);
        check_all("out", outs.iter().map(|out| out.len()), rows.len(), width);
        assert!(weights.len() == outs.len(), "`weights` and `outs` differ in number");
    };

    /// `outs[m][q, :] += Σ_r a[row_r, q] deltas[m][r, :]` for each m, in one pass over the rows; each of `outs` is cols ×
    /// width, each of `deltas` rows × width. With `columns`, a is what they stand for.
    add_block_transposed = blocks::add_transposed,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        columns: Option<Columns<T>>,
        deltas: &[&[T]],
        width: usize,
        outs: &mut [&mut [T]]
    ),
    {
        check_columns(columns, blocks.cols());
        check_all("out", outs.iter().map(|out| out.len()), blocks.cols(), width);
        check_all("delta", deltas.iter().map(|delta| delta.len()), rows.len(), width);
        assert!(deltas.len() == outs.len(), "`deltas` and `outs` differ in number");
    };

    /// `out[r] = Σ_q a[row_r, q] weights[q]`; the matrix must [have a unit](Blocks::has_unit).
    block_dots = blocks::dots,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        weights: &[T],
        out: &mut [T]
    ),
    {
        assert!(blocks.has_unit(), "values are not multiples of one number");
        check("weights", weights.len(), blocks.cols(), 1);
        check("out", out.len(), rows.len(), 1);
    };

    /// `out[q] += Σ_r a[row_r, q] delta[r]`; the matrix must [have a unit](Blocks::has_unit).
    add_block_sums = blocks::add_sums,
    (
        blocks: &Blocks<T>,
        rows: Rows,
        delta: &[T],
        out: &mut [T]
    ),
    {
        assert!(blocks.has_unit(), "values are not multiples of one number");
        check("out", out.len(), blocks.cols(), 1);
        check("delta", delta.len(), rows.len(), 1);
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
        check("weights", weights.len(), pixels.shift.len(), width);
        check("out", out.len(), rows.len(), width);
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
        check("out", out.len(), pixels.shift.len(), width);
        check("delta", delta.len(), rows.len(), width);
    };

    /// x ← eˣ; infinite where x is too large, the smallest positive result where it is too small.
    exp = functions::exp, (x: &mut [T]);

    /// x ← 1 / (1 + e⁻ˣ).
    sigmoid = functions::sigmoid, (x: &mut [T]);

    /// x ← tanh x.
    tanh = functions::tanh, (x: &mut [T]);

    /// z_r ← e^{z_r} / Σ_c e^{z_rc} for each row r of `width` numbers.
    softmax = functions::softmax, (z: &mut [T], width: usize),
    {
        assert!(width > 0, "rows are empty");
    };

    /// `out[q, :] = factors[q] rows[q, :]`; `rows` and `out` are factors × width.
    scale_rows = short::scale,
    (factors: &[T], rows: &[T], width: usize, out: &mut [T]),
    {
        check("rows", rows.len(), factors.len(), width);
        check("out", out.len(), factors.len(), width);
    };

    /// `rows[r, :] += row` for each r.
    add_to_each_row = short::add_to_each, (row: &[T], rows: &mut [T]),
    {
        assert!(!row.is_empty() && rows.len().is_multiple_of(row.len()), "rows are not whole");
    };

    /// `out += Σ_r rows[r, :]`.
    add_row_sum = short::add_sum, (rows: &[T], out: &mut [T]),
    {
        assert!(!out.is_empty() && rows.len().is_multiple_of(out.len()), "rows are not whole");
    };

    /// `out[q] = Σ_c a[q, c] b[q, c]`; `a` and `b` are out × width.
    row_dots = short::dots,
    (a: &[T], b: &[T], width: usize, out: &mut [T]),
    {
        check("a", a.len(), out.len(), width);
        check("b", b.len(), out.len(), width);
    };
}

/// Panics unless `length` is `rows` × `width`, without overflow.
#[inline]
fn check(what: &str, length: usize, rows: usize, width: usize) {
    assert!(
        rows.checked_mul(width) == Some(length),
        "`{what}` has {length} numbers and not {rows} × {width}"
    );
}

/// [`check`] for each of some lengths.
#[inline]
fn check_all(what: &str, lengths: impl Iterator<Item = usize>, rows: usize, width: usize) {
    lengths.for_each(|length| check(what, length, rows, width));
}

/// Panics unless there are as many factors and shifts as columns.
#[inline]
fn check_columns<T>(columns: Option<Columns<T>>, cols: usize) {
    let Some(Columns { factors, shifts }) = columns else { return };
    check("factors", factors.len(), cols, 1);
    check("shifts", shifts.len(), cols, 1);
}

/// Panics unless `length` is cols × `width` for rows of `cols` numbers each.
#[inline]
fn check_rows<T>(what: &str, length: usize, rows: &[&[T]], width: usize) {
    let Some(first) = rows.first() else { return };
    assert!(rows.iter().all(|row| row.len() == first.len()), "rows differ in length");
    check(what, length, first.len(), width);
}
