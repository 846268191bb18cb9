//! Rows times weights: lanes are rows, and a weight is spread over them as it is loaded.

use super::super::Rows;
use super::super::fetch::fetch_line;
use super::super::vector::{Number, Vector};
use super::{AHEAD, Pixels, panels};

/// Rows, with the shift, and columns whose bytes are transposed at a time.
const ROWS: usize = 16;
const COLS: usize = 64;

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` are cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    for (numbers, out) in rows.numbers.chunks(ROWS - 1).zip(out.chunks_mut((ROWS - 1) * width)) {
        let rows = Rows { numbers, ..rows };
        // SAFETY: so many columns of the weights are there.
        unsafe {
            panels!(width, |from| panel_product::<V, _>(
                pixels,
                rows,
                &weights[from..],
                width,
                &mut out[from..],
            ));
        }
    }
}

/// With the first `C` columns of the weights; tells how many.
#[inline(always)]
unsafe fn panel_product<V: Vector, const C: usize>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) -> usize {
    let (places, end) = (pixels.places(rows), rows.len());
    let mut strip = Strip([[0; ROWS]; COLS]);
    // SAFETY: `shift` has as many numbers as there are rows of weights from `first` on.
    unsafe {
        let mut sums = [[V::splat(V::Scalar::ZERO); C]; ROWS / 8];
        for (b, shift) in pixels.shift.chunks(COLS).enumerate() {
            let first = b * COLS;
            strip.fill::<V>(&places, first, shift.len());
            for (sums, v) in sums.iter_mut().zip((0..=end).step_by(V::LANES)) {
                let bytes = strip.0.as_flattened()[v..].as_ptr();
                let weights = weights[first * width..].as_ptr();
                match end - v {
                    n if n < V::LANES => {
                        multiply::<V, true, C>(bytes, n, shift, weights, width, sums)
                    }
                    n => multiply::<V, false, C>(bytes, n, shift, weights, width, sums),
                }
            }
        }
        for c in 0..C {
            let mut column = [V::Scalar::ZERO; ROWS];
            for (sums, to) in sums.iter().zip(column.chunks_exact_mut(V::LANES)) {
                sums[c].store(to.as_mut_ptr());
            }
            for r in 0..end {
                out[r * width + c] = pixels.unit * (column[r] - column[end]);
            }
        }
    }
    C
}

/// The bytes of some columns, those of a column side by side. Column q of a quarter is followed by
/// column q of the next quarter.
#[repr(align(64))]
struct Strip([[u8; ROWS]; COLS]);

impl Strip {
    /// The columns from `first` on, as many as there are.
    #[inline(always)]
    unsafe fn fill<V: Vector>(&mut self, places: &[*const u8; ROWS], first: usize, count: usize) {
        let mut rows = *places;
        for row in &mut rows {
            *row = row.wrapping_add(first);
            fetch_line(row.wrapping_add(AHEAD));
        }
        let to = self.0.as_mut_ptr().cast();
        // SAFETY: rows have `count` columns from `first` on, and the copies `COLS`.
        unsafe {
            if count == COLS {
                return V::transpose_bytes(&rows, to);
            }
            let mut last = [[0; COLS]; ROWS];
            for (row, last) in rows.iter_mut().zip(&mut last) {
                last.as_mut_ptr().copy_from_nonoverlapping(*row, count);
                *row = last.as_ptr();
            }
            V::transpose_bytes(&rows, to);
        }
    }
}

/// Adds the products of a vector of rows with the columns of the weights. If the shift is among
/// them, it is in the lanes from `n` on.
#[inline(always)]
unsafe fn multiply<V: Vector, const SHIFT: bool, const C: usize>(
    bytes: *const u8,
    n: usize,
    shift: &[V::Scalar],
    weights: *const V::Scalar,
    width: usize,
    all: &mut [V; C],
) {
    // SAFETY: there are as many columns of bytes and rows of weights as numbers of the shift.
    unsafe {
        let mask = V::mask(n.min(V::LANES));
        let mut sums = [V::splat(V::Scalar::ZERO); C];
        for (quarter, shift) in shift.chunks(COLS / 4).enumerate() {
            for (q, &shift) in shift.iter().enumerate() {
                let mut a = V::bytes(bytes.add((4 * q + quarter) * ROWS));
                if SHIFT {
                    a = a.or_else(V::splat(shift), mask);
                }
                let weights = weights.add((quarter * COLS / 4 + q) * width);
                for c in 0..C {
                    sums[c] = a.mul_add(V::splat(*weights.add(c)), sums[c]);
                }
            }
        }
        // A sum for each strip, so that few numbers are added to a large one.
        for c in 0..C {
            all[c] = all[c].add(sums[c]);
        }
    }
}
