//! Products of dense rows, which may lie anywhere, with a matrix of few columns.

use super::vector::{Number, Vector};

/// `out[r, :] = Σ_q row_r[q] weights[q, :]`, added to what was there if `add`.
///
/// # Safety
/// See [`Vector`]; rows have `cols` numbers, `weights` cols × width, `out` rows × width.
#[inline(always)]
pub unsafe fn product<V: Vector>(
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

/// One or two vectors of columns.
struct Panel<'a, T> {
    weights: &'a [T],
    width: usize,
    from: usize,
    add: bool,
    out: &'a mut [T],
}

impl<T: Number> Panel<'_, T> {
    /// The next `R` rows against `C` vectors of columns, in registers; tells how many there were.
    #[inline(always)]
    unsafe fn rows<V: Vector<Scalar = T>, const R: usize, const C: usize>(
        &mut self,
        rows: &[&[T]],
        done: usize,
    ) -> usize {
        let count = rows.len().min(R);
        // Too few rows are made up for by repeating the last: its results are not stored.
        let row: [&[T]; R] = std::array::from_fn(|r| rows[r.min(count - 1)]);
        let cols = row[0].len();
        let Panel { width, from, .. } = *self;
        // SAFETY: a row has `cols` numbers, there are as many rows of weights, and the mask keeps
        // loads and stores within `width`.
        unsafe {
            let last = last::<V, C>(width - from);
            let mut sums = [[V::splat(V::Scalar::ZERO); C]; R];
            let mut weights = self.weights.as_ptr().add(from);
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

/// The part of the last of `C` vectors that lies within the columns that are left.
#[inline(always)]
pub unsafe fn last<V: Vector, const C: usize>(left: usize) -> V::Mask {
    unsafe { V::mask(left.min(C * V::LANES) - (C - 1) * V::LANES) }
}

/// C vectors side by side, the last in part.
#[inline(always)]
pub unsafe fn load<V: Vector, const C: usize>(from: *const V::Scalar, last: V::Mask) -> [V; C] {
    unsafe {
        let mut all = [V::load_part(from.add((C - 1) * V::LANES), last); C];
        for c in 0..C - 1 {
            all[c] = V::load(from.add(c * V::LANES));
        }
        all
    }
}

/// The reverse of [`load`].
#[inline(always)]
pub unsafe fn store<V: Vector, const C: usize>(to: *mut V::Scalar, all: [V; C], last: V::Mask) {
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
/// See [`Vector`]; rows have `cols` numbers, `delta` rows × width, `out` cols × width.
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
        // SAFETY: `from` is within `width`, `q` and what follows it within `cols`.
        unsafe {
            let (delta, out) = (delta.as_ptr().add(from), out.as_mut_ptr().add(from));
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

/// `Q` columns of the rows from `q` on, against `C` vectors of columns of delta; tells how many.
#[inline(always)]
unsafe fn columns<V: Vector, const Q: usize, const C: usize>(
    rows: &[&[V::Scalar]],
    q: usize,
    delta: *const V::Scalar,
    width: usize,
    left: usize,
    out: *mut V::Scalar,
) -> usize {
    // SAFETY: q + Q is within the rows, and the mask keeps loads and stores within `width`.
    unsafe {
        let last = last::<V, C>(left);
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
        // What was there is added last, so that nothing waits for the stores of the columns before.
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
/// See [`Vector`]; rows and `weights` have equally many numbers.
#[inline(always)]
pub unsafe fn dots<V: Vector>(rows: &[&[V::Scalar]], weights: &[V::Scalar], out: &mut [V::Scalar]) {
    let mut done = 0;
    while done < rows.len() {
        let (rows, out) = (&rows[done..], &mut out[done..]);
        unsafe {
            done += match rows.len() {
                8.. if V::WHOLE => dots_of::<V, 8>(rows, weights, out),
                4.. => dots_of::<V, 4>(rows, weights, out),
                _ => dots_of::<V, 1>(rows, weights, out),
            };
        }
    }
}

/// The first `R` rows; tells how many.
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
            out[r] = sums[r].total();
        }
    }
    R
}

/// `out[q] += Σ_r row_r[q] delta[r]`.
///
/// # Safety
/// See [`Vector`]; rows and `out` have equally many numbers, there is a delta for each row.
#[inline(always)]
pub unsafe fn add_sums<V: Vector>(
    rows: &[&[V::Scalar]],
    delta: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    let cols = out.len();
    // SAFETY: q + C · LANES ≤ cols, and the mask keeps the last loads and stores within `cols`.
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

/// `C` vectors of columns from `q` on; tells how many columns.
#[inline(always)]
unsafe fn sums_of<V: Vector, const C: usize>(
    rows: &[&[V::Scalar]],
    q: usize,
    delta: &[V::Scalar],
    last: V::Mask,
    out: &mut [V::Scalar],
) -> usize {
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
