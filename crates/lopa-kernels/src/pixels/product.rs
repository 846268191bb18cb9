//! Rows times weights: lanes are rows, and each weight is broadcast to all lanes.

use super::super::Rows;
use super::super::prefetch::prefetch_line;
use super::super::vector::{Number, Vector};
use super::{AHEAD, Pixels, panels, wide};

/// Rows (including the shift) and columns whose bytes are transposed at a time.
const ROWS: usize = 16;
const COLS: usize = 64;

/// From this many columns of weights on, lanes are these columns.
const WIDE: usize = 22;

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` is cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    if width >= WIDE {
        // SAFETY: as for this function.
        return unsafe { wide::product::<V>(pixels, rows, weights, width, out) };
    }
    for (numbers, out) in rows.numbers.chunks(ROWS - 1).zip(out.chunks_mut((ROWS - 1) * width)) {
        let rows = Rows { numbers, ..rows };
        // SAFETY: shapes as for this function; a panel is never wider than what is left.
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

/// Multiplies fewer than `ROWS` rows with the first `C` columns of the weights. Returns `C`.
///
/// # Safety
/// Shapes as in [`product`]; `weights` and `out` begin at the same column, from which on at least
/// `C` are left.
#[inline(always)]
unsafe fn panel_product<V: Vector, const C: usize>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) -> usize {
    let (addresses, end) = (pixels.addresses(rows), rows.len());
    let mut strip = Strip([[0; ROWS]; COLS]);
    // SAFETY: `shift` has as many numbers as columns of bytes and rows of weights from `first` on;
    // `v` and the lanes after it are within the `ROWS` of the strip.
    unsafe {
        let mut sums = [[V::splat(V::Scalar::ZERO); C]; ROWS / 8];
        for (b, shift) in pixels.shift.chunks(COLS).enumerate() {
            let first = b * COLS;
            strip.fill::<V>(&addresses, first, shift.len());
            for (sums, v) in sums.iter_mut().zip((0..=end).step_by(V::LANES)) {
                let bytes = strip.0.as_flattened()[v..].as_ptr();
                let weights = weights[first * width..].as_ptr();
                // Where all rows are lanes of one vector, the shift is always among them.
                match V::LANES == ROWS || end - v < V::LANES {
                    true => multiply::<V, true, C>(bytes, end - v, shift, weights, width, sums),
                    false => multiply::<V, false, C>(bytes, end - v, shift, weights, width, sums),
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

/// The bytes of up to `COLS` columns, one column after the other. Column q of a quarter is followed
/// by column q of the next quarter.
#[repr(align(64))]
struct Strip([[u8; ROWS]; COLS]);

impl Strip {
    /// Transposes the `count` columns of the rows from `first` on.
    ///
    /// # Safety
    /// See [`Vector`]; the rows have these columns, and `count` is at most `COLS`.
    #[inline(always)]
    unsafe fn fill<V: Vector>(&mut self, rows: &[*const u8; ROWS], first: usize, count: usize) {
        let mut rows = *rows;
        for row in &mut rows {
            *row = row.wrapping_add(first);
            prefetch_line(row.wrapping_add(AHEAD));
        }
        let to = self.0.as_mut_ptr().cast();
        // SAFETY: the rows have `count` columns from `first` on, and the copies `COLS`.
        unsafe {
            let mut copies;
            if count < COLS {
                copies = [[0; COLS]; ROWS];
                for (row, copy) in rows.iter_mut().zip(&mut copies) {
                    copy.as_mut_ptr().copy_from_nonoverlapping(*row, count);
                    *row = copy.as_ptr();
                }
            }
            V::transpose_bytes(&rows, to);
        }
    }
}

/// Adds the products of a vector of rows with `C` columns of the weights to `all`. With `SHIFT`, the
/// lanes from `n` on are the shift.
///
/// # Safety
/// See [`Vector`]; `bytes` points to a lane of a strip, and `weights` to as many rows as `shift` has
/// numbers, `width` apart, of at least `C` columns.
#[inline(always)]
unsafe fn multiply<V: Vector, const SHIFT: bool, const C: usize>(
    bytes: *const u8,
    n: usize,
    shift: &[V::Scalar],
    weights: *const V::Scalar,
    width: usize,
    all: &mut [V; C],
) {
    // SAFETY: q and `quarter` are those of a number of the shift, and so of a column of the strip
    // and a row of the weights.
    unsafe {
        let mask = V::mask(n.min(V::LANES));
        let mut sums = [V::splat(V::Scalar::ZERO); C];
        for (quarter, shift) in shift.chunks(COLS / 4).enumerate() {
            for (q, &shift) in shift.iter().enumerate() {
                let mut a = V::load_bytes(bytes.add((4 * q + quarter) * ROWS));
                if SHIFT {
                    a = a.blend(V::splat(shift), mask);
                }
                let weights = weights.add((quarter * COLS / 4 + q) * width);
                for c in 0..C {
                    sums[c] = a.mul_add(V::splat(*weights.add(c)), sums[c]);
                }
            }
        }
        // One sum per strip, for the sake of accuracy.
        for c in 0..C {
            all[c] = all[c].add(sums[c]);
        }
    }
}
