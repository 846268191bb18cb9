//! Products with one column, of values that are multiples of a unit.

use std::mem::MaybeUninit;

use super::super::Rows;
use super::super::fetch::fetch;
use super::super::vector::{Number, Vector};
use super::{Blocks, EIGHT, FOUR, Layout, MOST, Row};

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
    rows.iter().take(AHEAD).for_each(|row| ask(layout, row));
    for (r, (row, out)) in rows.iter().zip(out).enumerate() {
        rows.at(r + AHEAD).into_iter().for_each(|row| ask(layout, row));
        // SAFETY: blocks lie within the whole blocks of the column, and values are filled up.
        unsafe {
            // Two sums, so that one need not wait for the other.
            let mut sums = [V::splat(V::Scalar::ZERO); 2];
            let Row { numbers, values, .. } = layout.row(row);
            for (e, numbers) in numbers.iter().enumerate() {
                for (i, from) in (0..EIGHT).step_by(V::LANES / FOUR).enumerate() {
                    let w = columns::<V>(numbers, from).map(|at| weights.add(at));
                    let a = V::bytes(values[FOUR * e..].as_ptr().cast::<u8>().add(FOUR * from));
                    sums[i % 2] = a.mul_add(V::load_fours(w), sums[i % 2]);
                }
            }
            *out = sums[0].add(sums[1]).mul(V::splat(unit)).total();
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
    rows.iter().take(AHEAD).for_each(|row| ask(layout, row));
    for (r, (row, &delta)) in rows.iter().zip(delta).enumerate() {
        rows.at(r + AHEAD).into_iter().for_each(|row| ask(layout, row));
        // SAFETY: as in `dots`.
        unsafe {
            let d = V::splat(delta).mul(V::splat(unit));
            let Row { numbers, values, .. } = layout.row(row);
            for (e, numbers) in numbers.iter().enumerate() {
                for from in (0..EIGHT).step_by(V::LANES / FOUR) {
                    let to = columns::<V>(numbers, from).map(|at| sums.add(at));
                    let a = V::bytes(values[FOUR * e..].as_ptr().cast::<u8>().add(FOUR * from));
                    let before = V::load_fours(to.map(<*mut _>::cast_const));
                    a.mul_add(d, before).store_fours(to);
                }
            }
        }
    }
    if copy.is_some() {
        // SAFETY: as many were written in the beginning.
        out.copy_from_slice(unsafe { room.0[..out.len()].assume_init_ref() });
    }
}

/// The first columns of as many blocks as fit a vector.
#[inline(always)]
fn columns<V: Vector>(numbers: &[u8; EIGHT], from: usize) -> [usize; 4] {
    let mut columns = [0; 4];
    for i in 0..V::LANES / FOUR {
        columns[i] = FOUR * numbers[from + i] as usize;
    }
    columns
}

/// Asks for a row.
#[inline(always)]
fn ask(layout: &Layout, row: usize) {
    let Row { numbers, values, .. } = layout.row(row);
    fetch(numbers);
    fetch(values);
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
