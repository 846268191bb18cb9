//! Products with one column, of values that are multiples of a unit.

use std::mem::MaybeUninit;

use super::super::Rows;
use super::super::vector::{Number, Vector};
use super::windows::{EIGHT, QUAD, Quad, Sorted};
use super::{Blocks, FOUR, MOST};

/// `out[r] = Σ_q a[row_r, q] weights[q]`.
///
/// # Safety
/// See [`Vector`]; there are `cols` weights, and values have a unit.
#[inline(always)]
pub unsafe fn dots<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let (windows, mut room) = (blocks.layout.windows(), Column::room());
    let weights = room.copy(weights, windows.reach).map_or(weights.as_ptr(), <*mut _>::cast_const);
    let unit = blocks.unit.unwrap_or(V::Scalar::ZERO);
    for (rows, out) in rows.chunks(Sorted::MOST).zip(out.chunks_mut(Sorted::MOST)) {
        for (r, quads) in Sorted::new(windows, rows).visit() {
            // SAFETY: windows lie within their reach.
            unsafe {
                // Two sums, so that one need not wait for the other.
                let mut sums = [V::splat(V::Scalar::ZERO); 2];
                for quad in quads {
                    for (i, from) in (0..QUAD).step_by(V::LANES / EIGHT).enumerate() {
                        let w = columns::<V>(quad, from).map(|at| weights.add(at));
                        let a = V::bytes(quad.values[from..].as_ptr().cast());
                        sums[i % 2] = a.mul_add(V::load_windows(w), sums[i % 2]);
                    }
                }
                out[r] = sums[0].add(sums[1]).mul(V::splat(unit)).total();
            }
        }
    }
}

/// `out[q] += Σ_r a[row_r, q] delta[r]`.
///
/// # Safety
/// See [`Vector`]; `out` has `cols` numbers, and values have a unit.
#[inline(always)]
pub unsafe fn add_sums<V: Vector>(
    blocks: &Blocks<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let (windows, mut room) = (blocks.layout.windows(), Column::room());
    let copy = room.copy(out, windows.reach);
    let sums = copy.unwrap_or(out.as_mut_ptr());
    let unit = blocks.unit.unwrap_or(V::Scalar::ZERO);
    for (rows, delta) in rows.chunks(Sorted::MOST).zip(delta.chunks(Sorted::MOST)) {
        for (r, quads) in Sorted::new(windows, rows).visit() {
            // SAFETY: as in `dots`.
            unsafe {
                let d = V::splat(delta[r]).mul(V::splat(unit));
                for quad in quads {
                    for from in (0..QUAD).step_by(V::LANES / EIGHT) {
                        let to = columns::<V>(quad, from).map(|at| sums.add(at));
                        let a = V::bytes(quad.values[from..].as_ptr().cast());
                        let before = V::load_windows(to.map(<*mut _>::cast_const));
                        a.mul_add(d, before).store_windows(to);
                    }
                }
            }
        }
    }
    if copy.is_some() {
        // SAFETY: as many were written in the beginning.
        out.copy_from_slice(unsafe { room.0[..out.len()].assume_init_ref() });
    }
}

/// The first columns of as many windows as fit a vector.
#[inline(always)]
fn columns<V: Vector>(quad: &Quad, from: usize) -> [usize; 2] {
    let mut columns = [0; 2];
    for i in 0..V::LANES / EIGHT {
        columns[i] = FOUR * quad.numbers[from + i] as usize;
    }
    columns
}

/// Room for one column of weights or of sums.
#[repr(align(64))]
struct Column<T>([MaybeUninit<T>; MOST + FOUR]);

impl<T: Number> Column<T> {
    #[inline(always)]
    fn room() -> Column<T> {
        Column([MaybeUninit::uninit(); MOST + FOUR])
    }

    /// A copy with zeros to the reach of the windows, if that is further.
    #[inline(always)]
    fn copy(&mut self, numbers: &[T], reach: usize) -> Option<*mut T> {
        (numbers.len() < reach).then(|| {
            self.0[numbers.len()..reach].fill(MaybeUninit::new(T::ZERO));
            self.0[..numbers.len()].write_copy_of_slice(numbers);
            self.0.as_mut_ptr().cast()
        })
    }
}
