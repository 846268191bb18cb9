//! Products with one column, of values that are multiples of a unit.

use std::mem::MaybeUninit;

use super::super::Rows;
use super::super::vector::{Number, Vector};
use super::{Blocks, FOUR, Four, MOST};

/// Rows lie far apart: fetching one so many turns early hides how long that takes.
const AHEAD: usize = 8;

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
    let (layout, mut room) = (&*blocks.layout, Column::room());
    let weights = room.copy(weights).map_or(weights.as_ptr(), <*mut _>::cast_const);
    let unit = blocks.unit.unwrap_or(V::Scalar::ZERO);
    rows.iter().take(AHEAD).for_each(|row| layout.fetch(row));
    for (r, (row, out)) in rows.iter().zip(out).enumerate() {
        rows.at(r + AHEAD).into_iter().for_each(|row| layout.fetch(row));
        // SAFETY: blocks lie within the whole blocks of the column, and values are filled up.
        unsafe {
            let mut sum = V::splat(V::Scalar::ZERO);
            let (values, numbers) = layout.blocks(row);
            for e in (0..4 * values.len()).step_by(V::LANES / FOUR) {
                let w = first_columns(numbers, e, V::LANES / FOUR).map(|at| weights.add(at));
                let a = V::bytes(values.as_ptr().cast::<u8>().add(FOUR * e));
                sum = a.mul_add(V::load_fours(w), sum);
            }
            *out = sum.mul(V::splat(unit)).total();
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
    let (layout, mut room) = (&*blocks.layout, Column::room());
    let copy = room.copy(out);
    let sums = copy.unwrap_or(out.as_mut_ptr());
    let unit = blocks.unit.unwrap_or(V::Scalar::ZERO);
    rows.iter().take(AHEAD).for_each(|row| layout.fetch(row));
    for (r, (row, &delta)) in rows.iter().zip(delta).enumerate() {
        rows.at(r + AHEAD).into_iter().for_each(|row| layout.fetch(row));
        // SAFETY: as in `dots`.
        unsafe {
            let d = V::splat(delta).mul(V::splat(unit));
            let (values, numbers) = layout.blocks(row);
            for e in (0..4 * values.len()).step_by(V::LANES / FOUR) {
                let to = first_columns(numbers, e, V::LANES / FOUR).map(|at| sums.add(at));
                let a = V::bytes(values.as_ptr().cast::<u8>().add(FOUR * e));
                let before = V::load_fours(to.map(<*mut _>::cast_const));
                a.mul_add(d, before).store_fours(to);
            }
        }
    }
    if copy.is_some() {
        // SAFETY: as many were written in the beginning.
        out.copy_from_slice(unsafe { room.0[..out.len()].assume_init_ref() });
    }
}

/// The first columns of `count` blocks of a row from the e-th on.
///
/// # Safety
/// There are so many.
#[inline(always)]
unsafe fn first_columns(numbers: &[Four], e: usize, count: usize) -> [usize; 4] {
    let numbers = numbers.as_ptr().cast::<u8>();
    let mut columns = [0; 4];
    for i in 0..count {
        columns[i] = FOUR * unsafe { *numbers.add(e + i) } as usize;
    }
    columns
}

/// Room for one column of weights or of sums.
#[repr(align(64))]
struct Column<T>([MaybeUninit<T>; MOST]);

impl<T: Number> Column<T> {
    #[inline(always)]
    fn room() -> Column<T> {
        Column([MaybeUninit::uninit(); MOST])
    }

    /// A copy with zeros to the end of its last block, if that is not whole.
    #[inline(always)]
    fn copy(&mut self, numbers: &[T]) -> Option<*mut T> {
        let last = numbers.len() / FOUR * FOUR;
        (last < numbers.len()).then(|| {
            self.0[last..last + FOUR].fill(MaybeUninit::new(T::ZERO));
            self.0[..numbers.len()].write_copy_of_slice(numbers);
            self.0.as_mut_ptr().cast()
        })
    }
}
