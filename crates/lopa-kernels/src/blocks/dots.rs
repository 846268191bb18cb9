//! Products with one column, for values that are multiples of a unit.

use std::mem::MaybeUninit;

use super::super::Rows;
use super::super::vector::{Number, Vector};
use super::windows::{EIGHT, QUAD, Quad, Sorted};
use super::{Blocks, FOUR, MAX_COLS};

/// `out[r] = Σ_q a[row_r, q] weights[q]`.
///
/// # Safety
/// See [`Vector`]; `weights` has `cols` numbers, `out` one per row, and the matrix has a unit.
#[inline(always)]
pub unsafe fn dots<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let (windows, mut scratch) = (blocks.layout.windows(), Column::uninit());
    let weights =
        scratch.copy(weights, windows.reach).map_or(weights.as_ptr(), <*mut _>::cast_const);
    let unit = blocks.unit.unwrap_or(V::Scalar::ZERO);
    for (rows, out) in rows.chunks(Sorted::MAX).zip(out.chunks_mut(Sorted::MAX)) {
        for (r, quads) in Sorted::new(windows, rows).visit() {
            // SAFETY: every window is within the reach, and at least that many weights are there.
            unsafe {
                // Two sums, which need not wait for each other.
                let mut sums = [V::splat(V::Scalar::ZERO); 2];
                for quad in quads {
                    for (i, from) in (0..QUAD).step_by(V::LANES / EIGHT).enumerate() {
                        let w = columns::<V>(quad, from).map(|at| weights.add(at));
                        let a = V::load_bytes(quad.codes[from..].as_ptr().cast());
                        sums[i % 2] = a.mul_add(V::load_windows(w), sums[i % 2]);
                    }
                }
                out[r] = sums[0].add(sums[1]).mul(V::splat(unit)).sum_lanes();
            }
        }
    }
}

/// `out[q] += Σ_r a[row_r, q] delta[r]`.
///
/// # Safety
/// See [`Vector`]; `out` has `cols` numbers, `delta` one per row, and the matrix has a unit.
#[inline(always)]
pub unsafe fn add_sums<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let (windows, mut scratch) = (blocks.layout.windows(), Column::uninit());
    let copy = scratch.copy(out, windows.reach);
    let sums = copy.unwrap_or(out.as_mut_ptr());
    let unit = blocks.unit.unwrap_or(V::Scalar::ZERO);
    for (rows, delta) in rows.chunks(Sorted::MAX).zip(delta.chunks(Sorted::MAX)) {
        for (r, quads) in Sorted::new(windows, rows).visit() {
            // SAFETY: as in `dots`, with the sums for the weights.
            unsafe {
                let d = V::splat(delta[r]).mul(V::splat(unit));
                for quad in quads {
                    for from in (0..QUAD).step_by(V::LANES / EIGHT) {
                        let to = columns::<V>(quad, from).map(|at| sums.add(at));
                        let a = V::load_bytes(quad.codes[from..].as_ptr().cast());
                        let before = V::load_windows(to.map(<*mut _>::cast_const));
                        a.mul_add(d, before).store_windows(to);
                    }
                }
            }
        }
    }
    if copy.is_some() {
        // SAFETY: `copy` initialised as many.
        out.copy_from_slice(unsafe { scratch.0[..out.len()].assume_init_ref() });
    }
}

/// The first columns of the windows that fit in a vector, from window `from` on.
#[inline(always)]
fn columns<V: Vector>(quad: &Quad, from: usize) -> [usize; 2] {
    let mut columns = [0; 2];
    for i in 0..V::LANES / EIGHT {
        columns[i] = FOUR * quad.blocks[from + i] as usize;
    }
    columns
}

/// Scratch space for one column of weights or of sums.
#[repr(align(64))]
struct Column<T>([MaybeUninit<T>; MAX_COLS + FOUR]);

impl<T: Number> Column<T> {
    #[inline(always)]
    fn uninit() -> Column<T> {
        Column([MaybeUninit::uninit(); MAX_COLS + FOUR])
    }

    /// A copy of `numbers`, padded with zeros to the reach of the windows; `None` if they reach it.
    #[inline(always)]
    fn copy(&mut self, numbers: &[T], reach: usize) -> Option<*mut T> {
        (numbers.len() < reach).then(|| {
            self.0[numbers.len()..reach].fill(MaybeUninit::new(T::ZERO));
            self.0[..numbers.len()].write_copy_of_slice(numbers);
            self.0.as_mut_ptr().cast()
        })
    }
}
