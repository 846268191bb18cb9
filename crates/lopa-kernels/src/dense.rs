//! Products of dense rows, wherever they are in memory, with a matrix of few columns.

use super::rows::BLOCK;
use super::vector::{Number, Vector};

/// Weights with more bytes than this do not stay in the second-level cache while all rows pass; parts of them do.
const LARGE: usize = 1 << 20;
const PART: usize = 1 << 18;

/// `out[r, :] = Σ_q row_r[q] weights[q, :]`, or `+=` if `add`.
///
/// # Safety
/// See [`Vector`]; rows have `cols` numbers each, `weights` is cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
    rows: &[&[V::Scalar]],
    weights: &[V::Scalar],
    width: usize,
    add: bool,
    out: &mut [V::Scalar],
) {
    let cols = rows.first().map_or(0, |row| row.len());
    let part = match size_of_val(weights) > LARGE {
        true => PART.div_ceil(width * size_of::<V::Scalar>()),
        false => cols.max(1),
    };
    for first in (0..cols.max(1)).step_by(part) {
        let columns = first..cols.min(first + part);
        let weights = &weights[first * width..columns.end * width];
        for (rows, out) in rows.chunks(BLOCK).zip(out.chunks_mut(BLOCK * width)) {
            let mut of_part: [&[V::Scalar]; BLOCK] = [&[]; BLOCK];
            for (of_part, row) in of_part.iter_mut().zip(rows) {
                *of_part = &row[columns.clone()];
            }
            let rows = &of_part[..rows.len()];
            // SAFETY: shapes as for this function, of some rows and columns.
            unsafe { product_of_part::<V>(rows, weights, width, add || first > 0, out) };
        }
    }
}

/// The same with weights of any size, all at once.
///
/// # Safety
/// As for [`product`].
#[inline(always)]
unsafe fn product_of_part<V: Vector>(
    rows: &[&[V::Scalar]],
    weights: &[V::Scalar],
    width: usize,
    add: bool,
    out: &mut [V::Scalar],
) {
    let mut from = 0;
    while from < width {
        let two = V::WHOLE && width - from > V::LANES;
        let mut panel = Panel { weights, width, from, add, out };
        let mut done = 0;
        while done < rows.len() {
            let rest = &rows[done..];
            // SAFETY: shapes as for this function; `from` < width, and two vectors of columns are
            // taken only if more than one is left.
            unsafe {
                done += match (two, V::WHOLE && rest.len() > 4) {
                    (false, false) => panel.rows::<V, 4, 1>(rest, done),
                    (false, true) => panel.rows::<V, 16, 1>(rest, done),
                    (true, false) => panel.rows::<V, 4, 2>(rest, done),
                    (true, true) => panel.rows::<V, 8, 2>(rest, done),
                };
            }
        }
        from += if two { 2 * V::LANES } else { V::LANES };
    }
}

/// The columns of the weights and of the result from `from` on.
struct Panel<'a, T> {
    weights: &'a [T],
    width: usize,
    from: usize,
    add: bool,
    out: &'a mut [T],
}

impl<T: Number> Panel<'_, T> {
    /// Multiplies up to `R` rows with `C` vectors of columns, in registers. Returns how many rows.
    ///
    /// # Safety
    /// Shapes as in [`product`]; `rows` is not empty and starts at row `done`; more than `C - 1`
    /// vectors of columns are left from `from` on.
    #[inline(always)]
    unsafe fn rows<V: Vector<Scalar = T>, const R: usize, const C: usize>(
        &mut self,
        rows: &[&[T]],
        done: usize,
    ) -> usize {
        let count = rows.len().min(R);
        // Missing rows are filled up with the last one; those results are not stored.
        let row: [&[T]; R] = std::array::from_fn(|r| rows[r.min(count - 1)]);
        let cols = row[0].len();
        let Panel { width, from, .. } = *self;
        // SAFETY: q < cols, the length of each row and the number of rows of weights; the mask keeps
        // loads and stores within `width`.
        unsafe {
            let last = last_mask::<V, C>(width - from);
            let mut sums = [[V::splat(V::Scalar::ZERO); C]; R];
            let mut weights = self.weights.as_ptr().wrapping_add(from);
            for q in 0..cols {
                let w = load::<V, C>(weights, last);
                for r in 0..R {
                    let a = V::splat(*row[r].as_ptr().add(q));
                    for c in 0..C {
                        sums[r][c] = a.mul_add(w[c], sums[r][c]);
                    }
                }
                weights = weights.wrapping_add(width);
            }
            for r in 0..count {
                let out = self.out.as_mut_ptr().add((done + r) * width + from);
                if self.add {
                    let before = load::<V, C>(out, last);
                    for c in 0..C {
                        sums[r][c] = sums[r][c].add(before[c]);
                    }
                }
                store(out, sums[r], last);
            }
        }
        count
    }
}

/// How many vectors of columns to take at a time when `left` columns are left.
#[inline(always)]
pub fn panel<V: Vector>(left: usize) -> usize {
    left.div_ceil(V::LANES).clamp(1, if V::FUSED { 4 } else { 1 })
}

/// The lanes of the last of `C` vectors that are within the `left` columns left.
///
/// # Safety
/// See [`Vector`]; `left` is more than `C - 1` vectors.
#[inline(always)]
pub unsafe fn last_mask<V: Vector, const C: usize>(left: usize) -> V::Mask {
    // SAFETY: the caller vouches for the instructions; at most `LANES` lanes.
    unsafe { V::mask(left.min(C * V::LANES) - (C - 1) * V::LANES) }
}

/// `C` consecutive vectors, of the last one the lanes in the mask.
///
/// # Safety
/// See [`Vector`]; `from` is valid for `C - 1` vectors and the lanes in the mask.
#[inline(always)]
pub unsafe fn load<V: Vector, const C: usize>(from: *const V::Scalar, last: V::Mask) -> [V; C] {
    // SAFETY: as for this function.
    unsafe {
        let mut all = [V::load_part(from.add((C - 1) * V::LANES), last); C];
        for c in 0..C - 1 {
            all[c] = V::load(from.add(c * V::LANES));
        }
        all
    }
}

/// The reverse of [`load`].
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn store<V: Vector, const C: usize>(to: *mut V::Scalar, all: [V; C], last: V::Mask) {
    // SAFETY: as for this function.
    unsafe {
        for c in 0..C - 1 {
            all[c].store(to.add(c * V::LANES));
        }
        all[C - 1].store_part(to.add((C - 1) * V::LANES), last);
    }
}

/// `out[q, :] += Σ_r row_r[q] delta[r, :]`.
///
/// # Safety
/// See [`Vector`]; rows have `cols` numbers each, `delta` is rows × width, `out` cols × width.
#[inline(always)]
pub unsafe fn add_transposed<V: Vector>(
    rows: &[&[V::Scalar]],
    delta: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    let cols = out.len() / width;
    let mut from = 0;
    while from < width {
        let left = width - from;
        let two = V::WHOLE && left > V::LANES;
        let (delta, out) = (delta.as_ptr().wrapping_add(from), out.as_mut_ptr().wrapping_add(from));
        // SAFETY: `left` columns are left from `from` on, more than one vector of them if two are
        // taken; the columns of the rows from `q` on are within `cols`.
        unsafe {
            let mut q = 0;
            while q < cols {
                q += match (two, V::WHOLE && q + 8 <= cols, q + 4 <= cols) {
                    (true, true, _) => columns::<V, 8, 2>(rows, q, delta, width, left, out),
                    (true, false, _) => columns::<V, 1, 2>(rows, q, delta, width, left, out),
                    (false, true, _) => columns::<V, 8, 1>(rows, q, delta, width, left, out),
                    (false, _, true) => columns::<V, 4, 1>(rows, q, delta, width, left, out),
                    (false, ..) => columns::<V, 1, 1>(rows, q, delta, width, left, out),
                };
            }
        }
        from += if two { 2 * V::LANES } else { V::LANES };
    }
}

/// Multiplies `Q` columns of the rows from `q` on with `C` vectors of columns of delta. Returns `Q`.
///
/// # Safety
/// Shapes as in [`add_transposed`]; `delta` and `out` point to the first of the `left` columns left,
/// which are more than `C - 1` vectors; q + Q ≤ cols.
#[inline(always)]
unsafe fn columns<V: Vector, const Q: usize, const C: usize>(
    rows: &[&[V::Scalar]],
    q: usize,
    delta: *const V::Scalar,
    width: usize,
    left: usize,
    out: *mut V::Scalar,
) -> usize {
    // SAFETY: q + i < cols, and the mask keeps loads and stores within `width`.
    unsafe {
        let last = last_mask::<V, C>(left);
        let mut sums = [[V::splat(V::Scalar::ZERO); C]; Q];
        for (r, row) in rows.iter().enumerate() {
            let d = load::<V, C>(delta.add(r * width), last);
            for i in 0..Q {
                let a = V::splat(*row.as_ptr().add(q + i));
                for c in 0..C {
                    sums[i][c] = a.mul_add(d[c], sums[i][c]);
                }
            }
        }
        // Adding the old values last avoids waiting for the stores of the columns before.
        for i in 0..Q {
            let before = load::<V, C>(out.add((q + i) * width), last);
            for c in 0..C {
                sums[i][c] = sums[i][c].add(before[c]);
            }
        }
        for i in 0..Q {
            store(out.add((q + i) * width), sums[i], last);
        }
    }
    Q
}

/// `out[r] = Σ_q row_r[q] weights[q]`.
///
/// # Safety
/// See [`Vector`]; each row has as many numbers as `weights`, and `out` one per row.
#[inline(always)]
pub unsafe fn dots<V: Vector>(rows: &[&[V::Scalar]], weights: &[V::Scalar], out: &mut [V::Scalar]) {
    let mut done = 0;
    while done < rows.len() {
        let (rows, out) = (&rows[done..], &mut out[done..]);
        // SAFETY: lengths as for this function.
        unsafe {
            done += match rows.len() {
                8.. if V::WHOLE => dots_of::<V, 8>(rows, weights, out),
                4.. => dots_of::<V, 4>(rows, weights, out),
                _ => dots_of::<V, 1>(rows, weights, out),
            };
        }
    }
}

/// The dot products of the first `R` rows. Returns `R`.
///
/// # Safety
/// Lengths as in [`dots`].
#[inline(always)]
unsafe fn dots_of<V: Vector, const R: usize>(
    rows: &[&[V::Scalar]],
    weights: &[V::Scalar],
    out: &mut [V::Scalar],
) -> usize {
    let rows = &rows[..R];
    let cols = weights.len();
    // SAFETY: q + LANES ≤ cols, and the mask keeps the last loads within `cols`.
    unsafe {
        let mut sums = [V::splat(V::Scalar::ZERO); R];
        let mut q = 0;
        while q + V::LANES <= cols {
            let w = V::load(weights.as_ptr().add(q));
            for r in 0..R {
                sums[r] = V::load(rows[r].as_ptr().add(q)).mul_add(w, sums[r]);
            }
            q += V::LANES;
        }
        if q < cols {
            let mask = V::mask(cols - q);
            let w = V::load_part(weights.as_ptr().add(q), mask);
            for r in 0..R {
                let a = V::load_part(rows[r].as_ptr().add(q), mask);
                sums[r] = a.mul_add(w, sums[r]);
            }
        }
        for r in 0..R {
            out[r] = sums[r].sum_lanes();
        }
    }
    R
}

/// `out[q] += Σ_r row_r[q] delta[r]`.
///
/// # Safety
/// See [`Vector`]; each row has as many numbers as `out`, and `delta` one per row.
#[inline(always)]
pub unsafe fn add_sums<V: Vector>(
    rows: &[&[V::Scalar]],
    delta: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let cols = out.len();
    // SAFETY: from `q` on, `C` whole vectors of columns are left, or the mask limits a single one.
    unsafe {
        let mut q = 0;
        while q < cols {
            let (left, all) = (cols - q, V::mask(V::LANES));
            q += match left / V::LANES {
                8.. if V::WHOLE => sums_of::<V, 8>(rows, q, delta, all, out),
                4.. => sums_of::<V, 4>(rows, q, delta, all, out),
                _ => sums_of::<V, 1>(rows, q, delta, V::mask(left.min(V::LANES)), out),
            };
        }
    }
}

/// The sums of `C` vectors of columns from `q` on, of the last one in the lanes of the mask. Returns
/// how many columns.
///
/// # Safety
/// Lengths as in [`add_sums`]; these columns exist.
#[inline(always)]
unsafe fn sums_of<V: Vector, const C: usize>(
    rows: &[&[V::Scalar]],
    q: usize,
    delta: &[V::Scalar],
    last: V::Mask,
    out: &mut [V::Scalar],
) -> usize {
    // SAFETY: the columns exist in each row and in `out`.
    unsafe {
        let mut sums = load::<V, C>(out.as_ptr().add(q), last);
        for (row, &delta) in rows.iter().zip(delta) {
            let (delta, a) = (V::splat(delta), load::<V, C>(row.as_ptr().add(q), last));
            for c in 0..C {
                sums[c] = a[c].mul_add(delta, sums[c]);
            }
        }
        store(out.as_mut_ptr().add(q), sums, last);
    }
    C * V::LANES
}
