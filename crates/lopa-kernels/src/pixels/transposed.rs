//! Transposed rows times delta: lanes are columns of the rows, which are rows of the result.

use super::super::Rows;
use super::super::prefetch::prefetch_line;
use super::super::vector::{Number, Vector};
use super::{AHEAD, Pixels, panels, wide};

/// Rows summed up before they are added to the result.
const ROWS: usize = 48;

/// From this many columns of delta on, lanes are these columns.
const WIDE: usize = 11;

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
    if width >= WIDE {
        // SAFETY: as for this function.
        return unsafe { wide::add_transposed::<V>(pixels, rows, delta, width, out) };
    }
    for (numbers, delta) in rows.numbers.chunks(ROWS).zip(delta.chunks(ROWS * width)) {
        let rows = Rows { numbers, ..rows };
        // SAFETY: shapes as for this function; a panel is never wider than what is left.
        unsafe {
            panels!(width, |from| add_panel::<V, _>(
                pixels,
                rows,
                &delta[from..],
                width,
                &mut out[from..],
            ));
        }
    }
}

/// Adds up to `ROWS` transposed rows times the first `C` columns of delta. Returns `C`.
///
/// # Safety
/// Shapes as in [`add_transposed`]; `delta` and `out` begin at the same column, from which on at
/// least `C` are left.
#[inline(always)]
unsafe fn add_panel<V: Vector, const C: usize>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) -> usize {
    let (mut addresses, cols) = (pixels.addresses::<ROWS>(rows), pixels.shift.len());
    let addresses = &mut addresses[..rows.len()];
    let scaled = Scaled::<_, C>::new(pixels.unit, delta, width);
    // SAFETY: a vector of columns from `first` on is within the rows and the shift, or within their
    // copies.
    unsafe {
        let (mut last_bytes, mut last_shift);
        let mut first = 0;
        while first < cols {
            let (left, out) = (cols - first, &mut out[first * width..]);
            let (mut at, mut shift) = (first, pixels.shift[first..].as_ptr());
            if left < V::LANES {
                (last_bytes, last_shift) = ([[0; 16]; ROWS], [V::Scalar::ZERO; 16]);
                last_shift[..left].copy_from_slice(&pixels.shift[first..]);
                for (address, bytes) in addresses.iter_mut().zip(&mut last_bytes) {
                    bytes.as_mut_ptr().copy_from_nonoverlapping(address.add(first), left);
                    *address = bytes.as_ptr();
                }
                (at, shift) = (0, last_shift.as_ptr());
            }
            first += match V::WHOLE && left >= 2 * V::LANES {
                true => add_vectors::<V, 2, C>(addresses, at, shift, &scaled, out, width),
                false => add_vectors::<V, 1, C>(addresses, at, shift, &scaled, out, width),
            };
        }
    }
    C
}

/// unit · delta for each row, and the factor of the shift.
struct Scaled<T, const C: usize> {
    rows: [[T; C]; ROWS],
    shift: [T; C],
}

impl<T: Number, const C: usize> Scaled<T, C> {
    #[inline(always)]
    fn new(unit: T, delta: &[T], width: usize) -> Scaled<T, C> {
        let mut all = Scaled { rows: [[T::ZERO; C]; ROWS], shift: [T::ZERO; C] };
        for (scaled, delta) in all.rows.iter_mut().zip(delta.chunks(width)) {
            for c in 0..C {
                scaled[c] = unit * delta[c];
                all.shift[c] = all.shift[c] - scaled[c];
            }
        }
        all
    }
}

/// Adds the contribution of `N` vectors of columns from `first` on. Returns the number of columns.
///
/// # Safety
/// See [`Vector`]; the rows have these columns, and `shift` points to as many numbers.
#[inline(always)]
unsafe fn add_vectors<V: Vector, const N: usize, const C: usize>(
    rows: &[*const u8],
    first: usize,
    shift: *const V::Scalar,
    scaled: &Scaled<V::Scalar, C>,
    out: &mut [V::Scalar],
    width: usize,
) -> usize {
    // SAFETY: each row has `N` vectors of bytes from `first` on, and the shift as many numbers.
    unsafe {
        let mut sums = [[V::splat(V::Scalar::ZERO); C]; N];
        for i in 0..N {
            let a = V::load(shift.add(i * V::LANES));
            for c in 0..C {
                sums[i][c] = a.mul(V::splat(scaled.shift[c]));
            }
        }
        for (row, scaled) in rows.iter().zip(&scaled.rows) {
            let row = row.add(first);
            prefetch_line(row.wrapping_add(AHEAD));
            let mut a = [V::splat(V::Scalar::ZERO); N];
            for i in 0..N {
                a[i] = V::load_bytes(row.add(i * V::LANES));
            }
            for c in 0..C {
                let d = V::splat(scaled[c]);
                for i in 0..N {
                    sums[i][c] = a[i].mul_add(d, sums[i][c]);
                }
            }
        }
        for i in 0..N {
            add_columns(&sums[i], &mut out[i * V::LANES * width..], width);
        }
    }
    N * V::LANES
}

/// Adds sums to the first `C` columns of `out`, as far as it has rows.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
unsafe fn add_columns<V: Vector, const C: usize>(
    sums: &[V; C],
    out: &mut [V::Scalar],
    width: usize,
) {
    let mut done = 0;
    if C >= 4 && out.len() >= (V::LANES - 1) * width + C {
        // SAFETY: `out` has `LANES` rows, the last of at least `C` columns, and c + 4 ≤ C.
        unsafe {
            // All is loaded before anything is stored, so that overlapping fours agree.
            let mut all = [[V::splat(V::Scalar::ZERO); 4]; 3];
            for (n, c) in (0..C).step_by(4).enumerate() {
                let c = c.min(C - 4);
                let before = V::load_rows(out[c..].as_ptr(), width);
                let rows = V::transpose([sums[c], sums[c + 1], sums[c + 2], sums[c + 3]]);
                for i in 0..4 {
                    all[n][i] = before[i].add(rows[i]);
                }
            }
            for (n, c) in (0..C).step_by(4).enumerate() {
                V::store_rows(all[n], out[c.min(C - 4)..].as_mut_ptr(), width);
            }
        }
        done = C;
    }
    for c in done..C {
        let mut column = [V::Scalar::ZERO; 16];
        // SAFETY: a vector has at most 16 lanes.
        unsafe { sums[c].store(column.as_mut_ptr()) };
        let to = out.iter_mut().skip(c).step_by(width);
        to.zip(&column[..V::LANES]).for_each(|(to, &sum)| *to = *to + sum);
    }
}
