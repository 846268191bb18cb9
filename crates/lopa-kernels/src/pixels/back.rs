//! Transposed rows times what goes back: lanes are columns of the rows, which are rows of the
//! result.

use super::super::Rows;
use super::super::fetch::fetch_line;
use super::super::vector::{Number, Vector};
use super::{AHEAD, Pixels, panels};

/// Rows that are summed over before something is added to the result.
const ROWS: usize = 48;

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
    for (numbers, delta) in rows.numbers.chunks(ROWS).zip(delta.chunks(ROWS * width)) {
        let rows = Rows { numbers, ..rows };
        // SAFETY: so many columns of delta are there.
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

/// With the first `C` columns of delta; tells how many.
#[inline(always)]
unsafe fn add_panel<V: Vector, const C: usize>(
    pixels: &Pixels<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) -> usize {
    let (mut places, cols) = (pixels.places::<ROWS>(rows), pixels.shift.len());
    let places = &mut places[..rows.len()];
    let scaled = Scaled::<_, C>::new(pixels.unit, delta, width);
    // SAFETY: vectors end before the rows do, or are copied.
    unsafe {
        let mut first = 0;
        while first + V::LANES <= cols {
            let (shift, out) = (pixels.shift[first..].as_ptr(), &mut out[first * width..]);
            first += match V::WHOLE && first + 2 * V::LANES <= cols {
                true => add_vectors::<V, 2, C>(places, first, shift, &scaled, out, width),
                false => add_vectors::<V, 1, C>(places, first, shift, &scaled, out, width),
            };
        }
        if first < cols {
            let (mut bytes, mut shift) = ([[0; 16]; ROWS], [V::Scalar::ZERO; 16]);
            shift[..cols - first].copy_from_slice(&pixels.shift[first..]);
            for (place, bytes) in places.iter_mut().zip(&mut bytes) {
                bytes.as_mut_ptr().copy_from_nonoverlapping(place.add(first), cols - first);
                *place = bytes.as_ptr();
            }
            let out = &mut out[first * width..];
            add_vectors::<V, 1, C>(places, 0, shift.as_ptr(), &scaled, out, width);
        }
    }
    C
}

/// unit · delta row by row, and what the shift is multiplied with.
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

/// Adds what `N` vectors of columns from `first` on contribute; tells how many columns these are.
#[inline(always)]
unsafe fn add_vectors<V: Vector, const N: usize, const C: usize>(
    places: &[*const u8],
    first: usize,
    shift: *const V::Scalar,
    scaled: &Scaled<V::Scalar, C>,
    out: &mut [V::Scalar],
    width: usize,
) -> usize {
    // SAFETY: `N` vectors lie in each row, and in the shift.
    unsafe {
        let mut sums = [[V::splat(V::Scalar::ZERO); C]; N];
        for i in 0..N {
            let a = V::load(shift.add(i * V::LANES));
            for c in 0..C {
                sums[i][c] = a.mul(V::splat(scaled.shift[c]));
            }
        }
        for (place, scaled) in places.iter().zip(&scaled.rows) {
            let row = place.add(first);
            fetch_line(row.wrapping_add(AHEAD));
            let mut a = [V::splat(V::Scalar::ZERO); N];
            for i in 0..N {
                a[i] = V::bytes(row.add(i * V::LANES));
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

/// Adds to the first columns of `out`, as far as it has rows.
#[inline(always)]
unsafe fn add_columns<V: Vector, const C: usize>(
    sums: &[V; C],
    out: &mut [V::Scalar],
    width: usize,
) {
    let mut done = 0;
    if C >= 4 && out.len() >= (V::LANES - 1) * width + C {
        // SAFETY: as many rows are there as a vector has lanes, and four columns of each.
        unsafe {
            // All is loaded before anything is stored, so that where fours overlap they agree.
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
        unsafe { sums[c].store(column.as_mut_ptr()) };
        let to = out.iter_mut().skip(c).step_by(width);
        to.zip(&column[..V::LANES]).for_each(|(to, &sum)| *to = *to + sum);
    }
}
