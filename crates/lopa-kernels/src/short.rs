//! Rows of a few numbers: scaled, multiplied, summed.

use super::vector::{Number, Vector};

/// `out[q, :] = factors[q] rows[q, :]`.
///
/// # Safety
/// See [`Vector`]; `rows` and `out` are factors × width.
#[inline(always)]
pub unsafe fn scale<V: Vector>(
    factors: &[V::Scalar],
    rows: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    if width == 1 {
        for ((out, &factor), &row) in out.iter_mut().zip(factors).zip(rows) {
            *out = factor * row;
        }
        return;
    }
    // SAFETY: row q starts at q · width, and the mask keeps loads and stores within it.
    unsafe {
        for from in (0..width).step_by(V::LANES) {
            let mask = V::mask((width - from).min(V::LANES));
            for (q, &factor) in factors.iter().enumerate() {
                let row = V::load_part(rows.as_ptr().add(q * width + from), mask);
                let out = out.as_mut_ptr().add(q * width + from);
                V::splat(factor).mul(row).store_part(out, mask);
            }
        }
    }
}

/// `out[q] = Σ_c a[q, c] b[q, c]`.
///
/// # Safety
/// See [`Vector`]; `a` and `b` are out × width.
#[inline(always)]
pub unsafe fn dots<V: Vector>(
    a: &[V::Scalar],
    b: &[V::Scalar],
    width: usize,
    out: &mut [V::Scalar],
) {
    if width == 1 {
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = a * b;
        }
        return;
    }
    // SAFETY: row q starts at q · width, and the mask keeps loads within it.
    unsafe {
        for (q, out) in out.iter_mut().enumerate() {
            let mut sum = V::splat(V::Scalar::ZERO);
            for from in (0..width).step_by(V::LANES) {
                let (at, mask) = (q * width + from, V::mask((width - from).min(V::LANES)));
                let a = V::load_part(a.as_ptr().add(at), mask);
                sum = a.mul_add(V::load_part(b.as_ptr().add(at), mask), sum);
            }
            *out = sum.sum_lanes();
        }
    }
}

/// `rows[r, :] += row` for each r.
///
/// # Safety
/// See [`Vector`]; `rows` consists of whole rows.
#[inline(always)]
pub unsafe fn add_to_each<V: Vector>(row: &[V::Scalar], rows: &mut [V::Scalar]) {
    let width = row.len();
    // SAFETY: rows have `width` numbers, and the mask keeps loads and stores within them.
    unsafe {
        for from in (0..width).step_by(V::LANES) {
            let mask = V::mask((width - from).min(V::LANES));
            let more = V::load_part(row.as_ptr().add(from), mask);
            // All are loaded before any is stored: a load soon after a masked store would wait.
            for some in rows.chunks_mut(8 * width) {
                let (count, at) = (some.len() / width, some.as_mut_ptr().add(from));
                let mut sums = [more; 8];
                for r in 0..count {
                    sums[r] = V::load_part(at.add(r * width), mask).add(more);
                }
                for r in 0..count {
                    sums[r].store_part(at.add(r * width), mask);
                }
            }
        }
    }
}

/// `out += Σ_r rows[r, :]`.
///
/// # Safety
/// See [`Vector`]; `rows` consists of whole rows as long as `out`.
#[inline(always)]
pub unsafe fn add_sum<V: Vector>(rows: &[V::Scalar], out: &mut [V::Scalar]) {
    let width = out.len();
    // SAFETY: rows have `width` numbers, and the mask keeps loads and stores within them.
    unsafe {
        for from in (0..width).step_by(V::LANES) {
            let mask = V::mask((width - from).min(V::LANES));
            let mut sum = V::load_part(out.as_ptr().add(from), mask);
            for row in rows.chunks_exact(width) {
                sum = sum.add(V::load_part(row.as_ptr().add(from), mask));
            }
            sum.store_part(out.as_mut_ptr().add(from), mask);
        }
    }
}
