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

/// `out[q, :] = factors[q] rows[q, :]` and `total += Σ_q shifts[q] out[q, :]`; the rows of `out` are `stride` apart.
///
/// # Safety
/// See [`Vector`]; `rows` is factors × width, `out` reaches to the last of its rows, `total` has `width` numbers and
/// `shifts` as many as `factors`.
#[inline(always)]
pub unsafe fn scale_shifted<V: Vector>(
    factors: &[V::Scalar],
    shifts: &[V::Scalar],
    rows: &[V::Scalar],
    stride: usize,
    out: &mut [V::Scalar],
    total: &mut [V::Scalar],
) {
    const SUMS: usize = 4;
    let width = total.len();
    // SAFETY: row q starts at q · width or q · stride, and the mask keeps loads and stores within it.
    unsafe {
        for from in (0..width).step_by(V::LANES) {
            let mask = V::mask((width - from).min(V::LANES));
            // Four sums at a time: one alone would wait for each addition.
            let mut sums = [V::splat(V::Scalar::ZERO); SUMS];
            for (b, (factors, shifts)) in factors.chunks(SUMS).zip(shifts.chunks(SUMS)).enumerate()
            {
                for (i, (&factor, &shift)) in factors.iter().zip(shifts).enumerate() {
                    let q = b * SUMS + i;
                    let row = V::load_part(rows.as_ptr().add(q * width + from), mask);
                    let scaled = V::splat(factor).mul(row);
                    sums[i] = V::splat(shift).mul_add(scaled, sums[i]);
                    scaled.store_part(out.as_mut_ptr().add(q * stride + from), mask);
                }
            }
            let sum = V::load_part(total.as_ptr().add(from), mask);
            let sum = sum.add(sums[0].add(sums[1]).add(sums[2].add(sums[3])));
            sum.store_part(total.as_mut_ptr().add(from), mask);
        }
    }
}

/// `out[q, :] += factors[q] (rows[q, :] + shifts[q] total)`; the rows of `rows` are `stride` apart.
///
/// # Safety
/// See [`Vector`]; `out` is factors × width, `rows` reaches to the last of its rows, `total` has `width` numbers and
/// `shifts` as many as `factors`.
#[inline(always)]
pub unsafe fn add_scaled<V: Vector>(
    factors: &[V::Scalar],
    shifts: &[V::Scalar],
    rows: &[V::Scalar],
    stride: usize,
    total: &[V::Scalar],
    out: &mut [V::Scalar],
) {
    const ROWS: usize = 8;
    let width = total.len();
    // SAFETY: row q starts at q · width or q · stride, and the mask keeps loads and stores within it.
    unsafe {
        for from in (0..width).step_by(V::LANES) {
            let mask = V::mask((width - from).min(V::LANES));
            let total = V::load_part(total.as_ptr().add(from), mask);
            for (b, factors) in factors.chunks(ROWS).enumerate() {
                // All are loaded before any is stored: a load soon after a masked store would wait.
                let mut sums = [total; ROWS];
                for (i, &factor) in factors.iter().enumerate() {
                    let q = b * ROWS + i;
                    let row = V::load_part(rows.as_ptr().add(q * stride + from), mask);
                    let shifted = V::splat(shifts[q]).mul_add(total, row);
                    let before = V::load_part(out.as_ptr().add(q * width + from), mask);
                    sums[i] = V::splat(factor).mul_add(shifted, before);
                }
                for i in 0..factors.len() {
                    sums[i].store_part(out.as_mut_ptr().add((b * ROWS + i) * width + from), mask);
                }
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
