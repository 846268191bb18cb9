//! Products of dense rows of bytes, `unit · (byte − shift)`, as pixels less their mean are.
//!
//! A row takes an eighth or a quarter of what it would as numbers, and rows come from far away.
//! Some columns of some rows at a time become numbers and are multiplied. Nothing is subtracted
//! from them: the shift is one row more.

use super::Rows;
use super::dense::{last, load, store};
use super::fetch::fetch;
use super::vector::{Number, Vector};

/// Columns and rows that become numbers at a time.
const COLS: usize = 128;
const ROWS: usize = 16;

/// Rows of bytes.
#[derive(Debug, Clone)]
pub struct Pixels<'a, T> {
    /// Row after row.
    pub bytes: &'a [u8],
    /// What a byte counts.
    pub unit: T,
    /// What is subtracted from the bytes of every row.
    pub shift: &'a [T],
}

/// Some columns of some rows as numbers, and of the shift after the last row.
#[repr(align(64))]
struct Tile<T>([[T; COLS]; ROWS]);

impl<T: Number> Tile<T> {
    /// The columns from `first` on, as many as there are.
    #[inline(always)]
    unsafe fn fill<V: Vector<Scalar = T>>(&mut self, pixels: &Pixels<T>, rows: Rows, first: usize) {
        let cols = pixels.shift.len();
        let end = cols.min(first + COLS);
        for (tile, row) in self.0.iter_mut().zip(rows.iter()) {
            let row = &pixels.bytes[row * cols..(row + 1) * cols];
            fetch(&row[end..cols.min(end + COLS)]);
            let from = &row[first..end];
            // SAFETY: whole vectors lie within the row, and the tile is longer.
            unsafe {
                let mut q = 0;
                while q + V::LANES <= from.len() {
                    V::bytes(from.as_ptr().add(q)).store(tile.as_mut_ptr().add(q));
                    q += V::LANES;
                }
                if q < from.len() {
                    let mut rest = [0; 16];
                    rest[..from.len() - q].copy_from_slice(&from[q..]);
                    V::bytes(rest.as_ptr()).store(tile.as_mut_ptr().add(q));
                }
            }
        }
        self.0[rows.len()][..end - first].copy_from_slice(&pixels.shift[first..end]);
    }
}

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
    let batches = rows.numbers.chunks(ROWS - 1).zip(out.chunks_mut((ROWS - 1) * width));
    for (numbers, out) in batches {
        let rows = Rows { numbers, ..rows };
        for from in (0..width).step_by(2 * V::LANES) {
            unsafe {
                match width - from > V::LANES {
                    true => forward::<V, 8, 2>(pixels, rows, weights, width, from, out),
                    false => forward::<V, 16, 1>(pixels, rows, weights, width, from, out),
                }
            }
        }
    }
}

/// Against `C` vectors of columns from `from` on, `R` rows at a time.
#[inline(always)]
unsafe fn forward<V: Vector, const R: usize, const C: usize>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    from: usize,
    out: &mut [V::Scalar],
) {
    let cols = pixels.shift.len();
    // SAFETY: the mask keeps loads and stores within `width`.
    unsafe {
        let last = last::<V, C>(width - from);
        let mut tile = Tile([[V::Scalar::ZERO; COLS]; ROWS]);
        let mut all = [[V::splat(V::Scalar::ZERO); C]; ROWS];
        for first in (0..cols).step_by(COLS) {
            tile.fill::<V>(pixels, rows, first);
            for r in (0..=rows.len()).step_by(R) {
                let mut sums = [[V::splat(V::Scalar::ZERO); C]; R];
                sums.copy_from_slice(&all[r..r + R]);
                let rows = tile.0[r..r + R].as_ptr().cast::<V::Scalar>();
                for q in 0..COLS.min(cols - first) {
                    let w = load::<V, C>(weights.as_ptr().add((first + q) * width + from), last);
                    for i in 0..R {
                        let a = V::splat(*rows.add(i * COLS + q));
                        for c in 0..C {
                            sums[i][c] = a.mul_add(w[c], sums[i][c]);
                        }
                    }
                }
                all[r..r + R].copy_from_slice(&sums);
            }
        }
        let (shift, unit) = (all[rows.len()], V::splat(pixels.unit));
        for (r, out) in out.chunks_exact_mut(width).enumerate() {
            for c in 0..C {
                all[r][c] = unit.mul(all[r][c].sub(shift[c]));
            }
            store(out.as_mut_ptr().add(from), all[r], last);
        }
    }
}

/// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`.
///
/// # Safety
/// See [`Vector`]; `delta` is rows × width, `out` cols × width.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    let batches = rows.numbers.chunks(ROWS - 1).zip(delta.chunks((ROWS - 1) * width));
    for (numbers, delta) in batches {
        let rows = Rows { numbers, ..rows };
        for from in (0..width).step_by(2 * V::LANES) {
            unsafe {
                match width - from > V::LANES {
                    true => back::<V, 8, 2>(pixels, rows, delta, width, from, out),
                    false => back::<V, 16, 1>(pixels, rows, delta, width, from, out),
                }
            }
        }
    }
}

/// Against `C` vectors of columns from `from` on, `Q` columns of the rows at a time.
#[inline(always)]
unsafe fn back<V: Vector, const Q: usize, const C: usize>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    from: usize,
    out: &mut [V::Scalar],
) {
    let cols = pixels.shift.len();
    // SAFETY: the mask keeps loads and stores within `width`, and Q divides COLS.
    unsafe {
        let last = last::<V, C>(width - from);
        let (zero, unit) = (V::splat(V::Scalar::ZERO), V::splat(pixels.unit));
        let mut scaled = [[zero; C]; ROWS];
        for r in 0..rows.len() {
            scaled[r] = load::<V, C>(delta.as_ptr().add(r * width + from), last);
            for c in 0..C {
                scaled[r][c] = scaled[r][c].mul(unit);
                scaled[rows.len()][c] = scaled[rows.len()][c].sub(scaled[r][c]);
            }
        }
        let mut tile = Tile([[V::Scalar::ZERO; COLS]; ROWS]);
        for first in (0..cols).step_by(COLS) {
            tile.fill::<V>(pixels, rows, first);
            for q in (0..COLS.min(cols - first)).step_by(Q) {
                let count = Q.min(cols - first - q);
                let to = out.as_mut_ptr().add((first + q) * width + from);
                // All are loaded before one is stored: a load close to a masked store waits for it.
                let mut sums = [[zero; C]; Q];
                for i in 0..count {
                    sums[i] = load::<V, C>(to.add(i * width), last);
                }
                let columns = tile.0.as_ptr().cast::<V::Scalar>().add(q);
                for (r, d) in scaled[..=rows.len()].iter().enumerate() {
                    for i in 0..Q {
                        let a = V::splat(*columns.add(r * COLS + i));
                        for c in 0..C {
                            sums[i][c] = a.mul_add(d[c], sums[i][c]);
                        }
                    }
                }
                for i in 0..count {
                    store(to.add(i * width), sums[i], last);
                }
            }
        }
    }
}
