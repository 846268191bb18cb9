//! Products of dense rows of bytes, `unit · (byte − shift)`, as pixels less their mean are.
//!
//! A row takes an eighth or a quarter of what it would as numbers, and rows come from far away.
//! Some columns of some rows at a time become numbers and are multiplied. Nothing is subtracted
//! from them: the shift is one row more.
//!
//! No lane is idle for want of classes: eight columns of the weights, of one row of theirs or of
//! two, fill a vector, and each column that is left over is multiplied with vectors of columns of
//! the tile.

use super::Rows;
use super::fetch::fetch;
use super::vector::{Number, Vector};

/// Columns and rows that become numbers at a time.
const COLS: usize = 128;
const ROWS: usize = 16;

/// Columns of the weights that are multiplied at a time.
const PANEL: usize = 32;

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

/// Some columns of some rows as numbers, and of the shift after the last row; or a single row.
#[repr(align(64))]
struct Tile<T, const N: usize = ROWS>([[T; COLS]; N]);

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
                let whole = from.len() / V::LANES * V::LANES;
                match whole {
                    COLS => convert::<V>(from.as_ptr(), tile.as_mut_ptr(), COLS),
                    _ => convert::<V>(from.as_ptr(), tile.as_mut_ptr(), whole),
                }
                if whole < from.len() {
                    let mut rest = [0; 16];
                    rest[..from.len() - whole].copy_from_slice(&from[whole..]);
                    V::bytes(rest.as_ptr()).store(tile.as_mut_ptr().add(whole));
                }
            }
        }
        let shift = &mut self.0[rows.len()];
        shift[..end - first].copy_from_slice(&pixels.shift[first..end]);
        shift[end - first..].fill(T::ZERO);
    }
}

/// Makes numbers of whole vectors of bytes; where it is known how many, the loop is unrolled.
#[inline(always)]
unsafe fn convert<V: Vector>(from: *const u8, to: *mut V::Scalar, count: usize) {
    for q in (0..count).step_by(V::LANES) {
        unsafe { V::bytes(from.add(q)).store(to.add(q)) };
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
        for from in (0..width).step_by(PANEL) {
            unsafe { forward::<V>(pixels, rows, weights, width, from, out) }
        }
    }
}

/// Against at most `PANEL` columns of the weights from `from` on.
#[inline(always)]
unsafe fn forward<V: Vector>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    from: usize,
    out: &mut [V::Scalar],
) {
    let (cols, zero) = (pixels.shift.len(), V::Scalar::ZERO);
    let columns = PANEL.min(width - from);
    // SAFETY: eights end before `columns` do, and `first` + q before `cols`.
    unsafe {
        let mut tile = Tile([[zero; COLS]; ROWS]);
        let mut sums = [[V::splat(zero); ROWS]; PANEL / 8 + 7];
        for first in (0..cols).step_by(COLS) {
            tile.fill::<V>(pixels, rows, first);
            let count = COLS.min(cols - first);
            let weights = weights.as_ptr().add(first * width + from);
            for eight in 0..columns / 8 {
                forward_eight(&tile, weights.add(8 * eight), width, count, &mut sums[eight]);
            }
            for c in columns / 8 * 8..columns {
                forward_single(&tile, weights.add(c), width, count, &mut sums[columns / 8 + c % 8]);
            }
        }
        let end = rows.len();
        for eight in 0..columns / 8 {
            let mut all = [[zero; 16]; ROWS];
            for r in 0..ROWS {
                let to = all[r].as_mut_ptr();
                sums[eight][r].store_eights([to, to.add(8)]);
                for c in 8..V::LANES {
                    all[r][c - 8] = all[r][c - 8] + all[r][c];
                }
            }
            for (r, c) in (0..end).flat_map(|r| (0..8).map(move |c| (r, c))) {
                out[r * width + from + 8 * eight + c] = pixels.unit * (all[r][c] - all[end][c]);
            }
        }
        for c in columns / 8 * 8..columns {
            let sums = &sums[columns / 8 + c % 8];
            let shift = sums[end].total();
            for r in 0..end {
                out[r * width + from + c] = pixels.unit * (sums[r].total() - shift);
            }
        }
    }
}

/// Adds the products of a tile with eight columns of the weights: one or two of its columns at a
/// time, so that they fill a vector.
#[inline(always)]
unsafe fn forward_eight<V: Vector>(
    tile: &Tile<V::Scalar>,
    weights: *const V::Scalar,
    width: usize,
    count: usize,
    all: &mut [V; ROWS],
) {
    // SAFETY: `count` columns are within the tile, and there are as many rows of weights.
    unsafe {
        let mut sums = *all;
        for q in (0..count).step_by(V::LANES / 8) {
            // Beyond the last column the tile is zero.
            let next = (q + V::LANES / 8 - 1).min(count - 1);
            let w = V::load_eights([weights.add(q * width), weights.add(next * width)]);
            for r in 0..ROWS {
                let a = V::splat_eights(tile.0.as_ptr().cast::<V::Scalar>().add(r * COLS + q));
                sums[r] = a.mul_add(w, sums[r]);
            }
        }
        *all = sums;
    }
}

/// Adds the products of a tile with one column of the weights.
#[inline(always)]
unsafe fn forward_single<V: Vector>(
    tile: &Tile<V::Scalar>,
    weights: *const V::Scalar,
    width: usize,
    count: usize,
    all: &mut [V; ROWS],
) {
    // SAFETY: as in `forward_eight`.
    unsafe {
        let mut column = Tile([[V::Scalar::ZERO; COLS]; 1]);
        for q in 0..count {
            column.0[0][q] = *weights.add(q * width);
        }
        let mut sums = *all;
        for q in (0..count).step_by(V::LANES) {
            let w = V::load(column.0[0].as_ptr().add(q));
            for r in 0..ROWS {
                sums[r] = V::load(tile.0[r].as_ptr().add(q)).mul_add(w, sums[r]);
            }
        }
        *all = sums;
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
    let cols = pixels.shift.len();
    let batches = rows.numbers.chunks(ROWS - 1).zip(delta.chunks((ROWS - 1) * width));
    for (numbers, delta) in batches {
        let rows = Rows { numbers, ..rows };
        for from in (0..width).step_by(PANEL) {
            let columns = PANEL.min(width - from);
            // SAFETY: eights end before `columns` do, and `first` + q before `cols`.
            unsafe {
                let scaled = scaled(pixels.unit, rows.len(), &delta[from..], width, columns);
                let mut tile = Tile([[V::Scalar::ZERO; COLS]; ROWS]);
                for first in (0..cols).step_by(COLS) {
                    tile.fill::<V>(pixels, rows, first);
                    let count = COLS.min(cols - first);
                    let out = out.as_mut_ptr().add(first * width + from);
                    for c in (0..columns / 8 * 8).step_by(8) {
                        back_eight::<V>(&tile, &scaled, c, width, count, out.add(c));
                    }
                    for c in columns / 8 * 8..columns {
                        back_single::<V>(&tile, &scaled, c, width, count, out.add(c));
                    }
                }
            }
        }
    }
}

/// unit · delta row by row, and what the shift is multiplied with after the last.
#[inline(always)]
fn scaled<T: Number>(
    unit: T,
    rows: usize,
    delta: &[T],
    width: usize,
    columns: usize,
) -> [[T; PANEL]; ROWS] {
    let mut scaled = [[T::ZERO; PANEL]; ROWS];
    for r in 0..rows {
        for c in 0..columns {
            scaled[r][c] = unit * delta[r * width + c];
            scaled[rows][c] = scaled[rows][c] - scaled[r][c];
        }
    }
    scaled
}

/// Eight columns of delta from `c` on.
#[inline(always)]
unsafe fn back_eight<V: Vector>(
    tile: &Tile<V::Scalar>,
    scaled: &[[V::Scalar; PANEL]; ROWS],
    c: usize,
    width: usize,
    count: usize,
    out: *mut V::Scalar,
) {
    // SAFETY: `count` columns are within the tile, and eight columns from `c` on within a panel.
    unsafe {
        let mut d = [V::splat(V::Scalar::ZERO); ROWS];
        for r in 0..ROWS {
            let from = scaled[r].as_ptr().add(c);
            d[r] = V::load_eights([from, from]);
        }
        let mut q = 0;
        while q < count {
            q += match q + V::LANES <= count {
                true => back_columns::<V, 8>(tile, &d, q, width, count, out),
                false => back_columns::<V, 1>(tile, &d, q, width, count, out),
            };
        }
    }
}

/// `Q` times one or two columns of the tile; tells how many.
#[inline(always)]
unsafe fn back_columns<V: Vector, const Q: usize>(
    tile: &Tile<V::Scalar>,
    d: &[V; ROWS],
    q: usize,
    width: usize,
    count: usize,
    out: *mut V::Scalar,
) -> usize {
    let step = V::LANES / 8;
    // SAFETY: a second column beyond the last is neither read from `out` nor written to it.
    unsafe {
        let mut sums = [V::splat(V::Scalar::ZERO); Q];
        for r in 0..ROWS {
            for i in 0..Q {
                let at = tile.0.as_ptr().cast::<V::Scalar>().add(r * COLS + q + i * step);
                sums[i] = V::splat_eights(at).mul_add(d[r], sums[i]);
            }
        }
        let mut beyond = [V::Scalar::ZERO; 8];
        for i in 0..Q {
            let (q, next) = (q + i * step, q + (i + 1) * step - 1);
            let first = out.add(q * width);
            let second = if next < count { out.add(next * width) } else { beyond.as_mut_ptr() };
            let before = V::load_eights([first, second]);
            before.add(sums[i]).store_eights([first, second]);
        }
    }
    Q * step
}

/// One column of delta.
#[inline(always)]
unsafe fn back_single<V: Vector>(
    tile: &Tile<V::Scalar>,
    scaled: &[[V::Scalar; PANEL]; ROWS],
    c: usize,
    width: usize,
    count: usize,
    out: *mut V::Scalar,
) {
    // SAFETY: `count` columns are within the tile, and so are whole pairs of vectors.
    unsafe {
        let mut sums = Tile([[V::Scalar::ZERO; COLS]; 1]);
        for q in (0..count).step_by(2 * V::LANES) {
            let at = tile.0.as_ptr().cast::<V::Scalar>().add(q);
            let mut sum = [V::splat(V::Scalar::ZERO); 2];
            for r in 0..ROWS {
                let d = V::splat(scaled[r][c]);
                for i in 0..2 {
                    sum[i] = V::load(at.add(r * COLS + i * V::LANES)).mul_add(d, sum[i]);
                }
            }
            for i in 0..2 {
                sum[i].store(sums.0[0].as_mut_ptr().add(q + i * V::LANES));
            }
        }
        for q in 0..count {
            *out.add(q * width) = *out.add(q * width) + sums.0[0][q];
        }
    }
}
