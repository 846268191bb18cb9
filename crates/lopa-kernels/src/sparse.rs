//! Products of sparse rows with a matrix of few columns: only what is not zero is touched.

use super::Rows;
use super::dense::{last, load, store};
use super::fetch::fetch;
use super::vector::{Number, Vector};

/// A sparse matrix: row r holds the entries `starts[r]..starts[r + 1]`.
#[derive(Clone, Copy)]
pub struct Csr<'a, T> {
    /// Number of columns.
    pub cols: usize,
    /// Where rows begin, and where the last one ends.
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

    /// Rows lie far apart: fetching one early hides how long that takes.
    #[inline(always)]
    fn prefetch(&self, row: Option<usize>) {
        if let Some(row) = row {
            let (columns, values) = self.row(row);
            fetch(columns);
            fetch(values);
        }
    }

    /// How many rows ahead are fetched: more of short ones.
    fn ahead(&self) -> usize {
        (512 * self.starts.len() / self.values.len().max(1)).clamp(1, 16)
    }
}

/// `out[r, :] = Σ_q a[row_r, q] weights[q, :]`.
///
/// # Safety
/// See [`Vector`]; `weights` are cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    matrix: Csr<V::Scalar>,
    rows: Rows,
    weights: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    for from in (0..width).step_by(4 * V::LANES) {
        let left = width - from;
        let ahead = matrix.ahead();
        for (r, (row, out)) in rows.iter().zip(out.chunks_exact_mut(width)).enumerate() {
            matrix.prefetch(rows.at(r + ahead));
            let (w, out) = (&weights[from..], &mut out[from..]);
            unsafe {
                // How many sums there are depends on the width alone, since bits depend on it.
                match (left.div_ceil(V::LANES), width <= V::LANES) {
                    (_, true) => product_row::<V, 1, 4>(matrix, row, w, width, left, out),
                    (1, _) => product_row::<V, 1, 2>(matrix, row, w, width, left, out),
                    (2, _) => product_row::<V, 2, 2>(matrix, row, w, width, left, out),
                    (3, _) => product_row::<V, 3, 2>(matrix, row, w, width, left, out),
                    _ => product_row::<V, 4, 2>(matrix, row, w, width, left, out),
                }
            }
        }
    }
}

/// One row against `C` vectors of columns, in `S` sums side by side to hide latency.
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
        let last = last::<V, C>(left);
        let mut sums = [[V::splat(V::Scalar::ZERO); C]; S];
        for (columns, values) in heads.iter().zip(head_values) {
            for s in 0..S {
                assert!((columns[s] as usize) < matrix.cols, "a column beyond the matrix");
                let w = load::<V, C>(weights.as_ptr().add(columns[s] as usize * width), last);
                let a = V::splat(values[s]);
                for c in 0..C {
                    sums[s][c] = a.mul_add(w[c], sums[s][c]);
                }
            }
        }
        for (&column, &value) in tail.iter().zip(tail_values) {
            assert!((column as usize) < matrix.cols, "a column beyond the matrix");
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
        return unsafe { add_to_few::<V>(matrix, rows, delta, width, out) };
    }
    for from in (0..width).step_by(4 * V::LANES) {
        let left = width - from;
        let ahead = matrix.ahead();
        for (r, (row, delta)) in rows.iter().zip(delta.chunks_exact(width)).enumerate() {
            matrix.prefetch(rows.at(r + ahead));
            let (delta, out) = (&delta[from..], &mut out[from..]);
            unsafe {
                match left.div_ceil(V::LANES) {
                    1 => add_row::<V, 1>(matrix, row, delta, width, left, out),
                    2 => add_row::<V, 2>(matrix, row, delta, width, left, out),
                    3 => add_row::<V, 3>(matrix, row, delta, width, left, out),
                    _ => add_row::<V, 4>(matrix, row, delta, width, left, out),
                }
            }
        }
    }
}

/// Sums of so many columns are kept apart until the end.
const FEW: usize = 128;

/// [`add_transposed`] for few columns of one register each.
#[inline(always)]
unsafe fn add_to_few<V: Vector>(
    matrix: Csr<V::Scalar>,
    rows: Rows,
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    // SAFETY: the mask keeps loads and stores within `width`.
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
    // SAFETY: a column is checked before its row of `out` is touched; `whole` vectors and a part
    // are within `width`.
    unsafe {
        let delta = delta.as_ptr();
        for (&column, &value) in columns.iter().zip(values) {
            assert!((column as usize) < matrix.cols, "a column beyond the matrix");
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
