//! A number for each short row, and back.

use super::vector::{Number, Vector};

/// `out[q, :] = factors[q] rows[q, :]`.
///
/// # Safety
/// See [`Vector`]; `rows` and `out` have as many rows of `width` numbers as there are factors.
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
    // SAFETY: the mask keeps loads and stores within the row.
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
/// See [`Vector`]; `a` and `b` have as many rows of `width` numbers as `out` has numbers.
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
    // SAFETY: the mask keeps loads within the row.
    unsafe {
        for (q, out) in out.iter_mut().enumerate() {
            let mut sum = V::splat(V::Scalar::ZERO);
            for from in (0..width).step_by(V::LANES) {
                let (at, mask) = (q * width + from, V::mask((width - from).min(V::LANES)));
                let a = V::load_part(a.as_ptr().add(at), mask);
                sum = a.mul_add(V::load_part(b.as_ptr().add(at), mask), sum);
            }
            *out = sum.total();
        }
    }
}

/// `rows[r, :] += row` for every r.
///
/// # Safety
/// See [`Vector`]; `rows` are whole rows.
#[inline(always)]
pub unsafe fn add_to_each<V: Vector>(row: &[V::Scalar], rows: &mut [V::Scalar]) {
    let width = row.len();
    // SAFETY: the mask keeps loads and stores within the row.
    unsafe {
        for from in (0..width).step_by(V::LANES) {
            let mask = V::mask((width - from).min(V::LANES));
            let more = V::load_part(row.as_ptr().add(from), mask);
            // All are loaded before one is stored: a load close to a masked store would wait.
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
/// See [`Vector`]; `rows` are whole rows as long as `out`.
#[inline(always)]
pub unsafe fn add_sum<V: Vector>(rows: &[V::Scalar], out: &mut [V::Scalar]) {
    let width = out.len();
    // SAFETY: the mask keeps loads and stores within the row.
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
