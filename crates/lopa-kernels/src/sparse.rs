//! Products of sparse rows with a matrix of few columns, entry by entry.

use super::Rows;
use super::dense::{last_mask, load, panel, store};
use super::prefetch::prefetch;
use super::vector::{Number, Vector};

/// A sparse matrix in compressed rows: row r has the entries `starts[r]..starts[r + 1]`.
#[derive(Clone, Copy)]
pub struct Csr<'a, T> {
    /// Number of columns.
    pub cols: usize,
    /// The first entry of each row, then the number of entries.
    pub starts: &'a [usize],
    /// Column of each entry, increasing within a row.
    pub columns: &'a [u32],
    /// Value of each entry.
    pub values: &'a [T],
}

impl<'a, T> Csr<'a, T> {
    #[inline(always)]
    fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let entries = self.starts[row]..self.starts[row + 1];
        (&self.columns[entries.clone()], &self.values[entries])
    }

    /// Rows are far apart in memory: prefetching them hides the latency.
    #[inline(always)]
    fn prefetch(&self, row: Option<usize>) {
        if let Some(row) = row {
            let (columns, values) = self.row(row);
            prefetch(columns);
            prefetch(values);
        }
    }

    /// How many rows ahead to prefetch: more if rows are short.
    fn ahead(&self) -> usize {
        (512 * self.starts.len() / self.values.len().max(1)).clamp(1, 16)
    }
}

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` is cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    matrix: Csr<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    if width == 1 {
        // SAFETY: shapes as for this function.
        return unsafe { dots::<V>(matrix, rows, weights, out) };
    }
    for from in (0..width).step_by(panel::<V>(width) * V::LANES) {
        let left = width - from;
        let ahead = matrix.ahead();
        for (r, (row, out)) in rows.iter().zip(out.chunks_exact_mut(width)).enumerate() {
            matrix.prefetch(rows.at(r + ahead));
            let (w, out) = (&weights[from..], &mut out[from..]);
            // SAFETY: shapes as for this function; more than `C - 1` vectors of columns are left.
            unsafe {
                // The number of sums may depend on the width only, because the bits depend on it.
                match (panel::<V>(left), width <= V::LANES) {
                    (_, true) => product_row::<V, 1, 4>(matrix, row, w, width, left, out),
                    (4, _) if V::FUSED => product_row::<V, 4, 2>(matrix, row, w, width, left, out),
                    (3, _) if V::FUSED => product_row::<V, 3, 2>(matrix, row, w, width, left, out),
                    (2, _) if V::FUSED => product_row::<V, 2, 2>(matrix, row, w, width, left, out),
                    _ => product_row::<V, 1, 2>(matrix, row, w, width, left, out),
                }
            }
        }
    }
}

/// [`product`] with one column: numbers in place of vectors, with the bits of [`product_row`].
///
/// # Safety
/// As for [`product`]; `width` is 1.
#[inline(always)]
unsafe fn dots<V: Vector>(
    matrix: Csr<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    const SUMS: usize = 4;
    let ahead = matrix.ahead();
    for (r, (row, out)) in rows.iter().zip(out).enumerate() {
        matrix.prefetch(rows.at(r + ahead));
        let (columns, values) = matrix.row(row);
        let (heads, tail) = columns.as_chunks::<SUMS>();
        let (head_values, tail_values) = values.as_chunks::<SUMS>();
        let mut sums = [V::Scalar::ZERO; SUMS];
        // SAFETY: a column is checked before its weight is read.
        unsafe {
            for (columns, values) in heads.iter().zip(head_values) {
                for s in 0..SUMS {
                    assert!((columns[s] as usize) < matrix.cols, "column out of range");
                    V::add_part(
                        &mut sums[s],
                        values[s],
                        weights.as_ptr().add(columns[s] as usize),
                        1,
                    );
                }
            }
            for (&column, &value) in tail.iter().zip(tail_values) {
                assert!((column as usize) < matrix.cols, "column out of range");
                V::add_part(&mut sums[0], value, weights.as_ptr().add(column as usize), 1);
            }
        }
        *out = sums[0] + sums[1] + sums[2] + sums[3];
    }
}

/// Multiplies one row with `C` vectors of columns, in `S` sums side by side to hide latency.
///
/// # Safety
/// Shapes as in [`product`]; `weights` and `out` begin at the first of the `left` columns left,
/// which are more than `C - 1` vectors.
#[inline(always)]
unsafe fn product_row<V: Vector, const C: usize, const S: usize>(
    matrix: Csr<V::Scalar>,
    row: usize,
    weights: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    let (columns, values) = matrix.row(row);
    let (heads, tail) = columns.as_chunks::<S>();
    let (head_values, tail_values) = values.as_chunks::<S>();
    // SAFETY: a column is checked before its row of weights is read, and the mask keeps loads and
    // stores within `width`.
    unsafe {
        let last = last_mask::<V, C>(left);
        let mut sums = [[V::splat(V::Scalar::ZERO); C]; S];
        for (columns, values) in heads.iter().zip(head_values) {
            for s in 0..S {
                assert!((columns[s] as usize) < matrix.cols, "column out of range");
                let w = load::<V, C>(weights.as_ptr().add(columns[s] as usize * width), last);
                let a = V::splat(values[s]);
                for c in 0..C {
                    sums[s][c] = a.mul_add(w[c], sums[s][c]);
                }
            }
        }
        for (&column, &value) in tail.iter().zip(tail_values) {
            assert!((column as usize) < matrix.cols, "column out of range");
            let w = load::<V, C>(weights.as_ptr().add(column as usize * width), last);
            let a = V::splat(value);
            for c in 0..C {
                sums[0][c] = a.mul_add(w[c], sums[0][c]);
            }
        }
        let mut sum = sums[0];
        for other in &sums[1..] {
            for c in 0..C {
                sum[c] = sum[c].add(other[c]);
            }
        }
        store(out.as_mut_ptr(), sum, last);
    }
}

/// `out[q, :] += Σ_r a[row_r, q] delta[r, :]`.
///
/// # Safety
/// See [`Vector`]; `delta` is rows × width, `out` cols × width.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    matrix: Csr<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    if width <= V::LANES && matrix.cols <= FEW {
        // SAFETY: shapes as for this function.
        return unsafe { add_to_few::<V>(matrix, rows, delta, width, out) };
    }
    if width == 1 {
        // SAFETY: shapes as for this function.
        return unsafe { add_sums::<V>(matrix, rows, delta, out) };
    }
    for from in (0..width).step_by(panel::<V>(width) * V::LANES) {
        let left = width - from;
        let ahead = matrix.ahead();
        for (r, (row, delta)) in rows.iter().zip(delta.chunks_exact(width)).enumerate() {
            matrix.prefetch(rows.at(r + ahead));
            let (delta, out) = (&delta[from..], &mut out[from..]);
            // SAFETY: shapes as for this function; more than `C - 1` vectors of columns are left.
            unsafe {
                match panel::<V>(left) {
                    4 if V::FUSED => add_row::<V, 4>(matrix, row, delta, width, left, out),
                    3 if V::FUSED => add_row::<V, 3>(matrix, row, delta, width, left, out),
                    2 if V::FUSED => add_row::<V, 2>(matrix, row, delta, width, left, out),
                    _ => add_row::<V, 1>(matrix, row, delta, width, left, out),
                }
            }
        }
    }
}

/// [`add_transposed`] with one column: numbers in place of vectors, with the bits of [`add_row`].
///
/// # Safety
/// As for [`add_transposed`]; `width` is 1.
#[inline(always)]
unsafe fn add_sums<V: Vector>(
    matrix: Csr<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let ahead = matrix.ahead();
    for (r, (row, delta)) in rows.iter().zip(delta).enumerate() {
        matrix.prefetch(rows.at(r + ahead));
        let (columns, values) = matrix.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            assert!((column as usize) < matrix.cols, "column out of range");
            // SAFETY: the column was checked.
            unsafe { V::add_part(out.as_mut_ptr().add(column as usize), value, delta, 1) };
        }
    }
}

/// With at most this many columns, their sums are added to `out` only at the end.
const FEW: usize = 128;

/// [`add_transposed`] for few columns of at most one vector each.
///
/// # Safety
/// As for [`add_transposed`]; at most [`FEW`] columns, and `width` is at most `LANES`.
#[inline(always)]
unsafe fn add_to_few<V: Vector>(
    matrix: Csr<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: the mask keeps loads and stores within `width`; `sums[column]` is checked.
    unsafe {
        let mask = V::mask(width);
        let mut sums = [V::splat(V::Scalar::ZERO); FEW];
        let ahead = matrix.ahead();
        for (r, (row, delta)) in rows.iter().zip(delta.chunks_exact(width)).enumerate() {
            matrix.prefetch(rows.at(r + ahead));
            let (columns, values) = matrix.row(row);
            let d = V::load_part(delta.as_ptr(), mask);
            for (&column, &value) in columns.iter().zip(values) {
                let sum = &mut sums[column as usize];
                *sum = V::splat(value).mul_add(d, *sum);
            }
        }
        for (sum, out) in sums.iter().zip(out.chunks_exact_mut(width)) {
            sum.add(V::load_part(out.as_ptr(), mask)).store_part(out.as_mut_ptr(), mask);
        }
    }
}

/// Adds one row times `C` vectors of columns of delta.
///
/// # Safety
/// Shapes as in [`add_transposed`]; `delta` and `out` begin at the first of the `left` columns left.
#[inline(always)]
unsafe fn add_row<V: Vector, const C: usize>(
    matrix: Csr<V::Scalar>,
    row: usize,
    delta: &[V::Scalar],
    width: usize,
    left: usize,
    out: &mut [V::Scalar],
) {
    let (columns, values) = matrix.row(row);
    let whole = left.min(C * V::LANES) / V::LANES;
    let part = left.min(C * V::LANES) - whole * V::LANES;
    // SAFETY: a column is checked before its row of `out` is accessed; `whole` vectors and `part`
    // numbers are within `width`.
    unsafe {
        let delta = delta.as_ptr();
        for (&column, &value) in columns.iter().zip(values) {
            assert!((column as usize) < matrix.cols, "column out of range");
            let to = out.as_mut_ptr().add(column as usize * width);
            let a = V::splat(value);
            for c in 0..C {
                if c < whole {
                    let (to, d) = (to.add(c * V::LANES), V::load(delta.add(c * V::LANES)));
                    a.mul_add(d, V::load(to)).store(to);
                }
            }
            let done = whole * V::LANES;
            V::add_part(to.add(done), value, delta.add(done), part);
        }
    }
}
