//! eˣ, sigmoid, tanh and softmax of many numbers.

use super::vector::{Number, Reduction, Vector};

/// eˣ to about one unit in the last place: x = n ln 2 + r with |r| ≤ ln 2 / 2, and a series for eʳ.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
unsafe fn exp_of<V: Vector>(x: V) -> V {
    let Reduction { log2_e, minus_high, minus_low, round } = V::Scalar::REDUCTION;
    let [low, high] = V::Scalar::EXP_RANGE;
    let (&first, others) = V::Scalar::INVERSE_FACTORIALS.split_last().expect("there are some");
    // SAFETY: the caller vouches for the instructions; memory is not accessed.
    unsafe {
        // The argument comes second, so that NaN stays NaN.
        let x = V::splat(high).min(V::splat(low).max(x));
        let shifted = x.mul_add(V::splat(log2_e), V::splat(round));
        let n = shifted.sub(V::splat(round));
        let r = n.mul_add(V::splat(minus_low), n.mul_add(V::splat(minus_high), x));
        let mut sum = V::splat(first);
        for &factor in others.iter().rev() {
            sum = sum.mul_add(r, V::splat(factor));
        }
        let half = sum.mul(shifted.half_power());
        half.add(half)
    }
}

/// tanh x = t / (t + 2) with t = e²ˣ − 1, to a few units in the last place: t is formed as
/// (eʳ − 1) 2ⁿ + (2ⁿ − 1), so that nothing cancels near 0.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
unsafe fn tanh_of<V: Vector>(x: V) -> V {
    let Reduction { log2_e, minus_high, minus_low, round } = V::Scalar::REDUCTION;
    let (&first, others) = V::Scalar::INVERSE_FACTORIALS.split_last().expect("there are some");
    // SAFETY: the caller vouches for the instructions; memory is not accessed.
    unsafe {
        let one = V::splat(V::Scalar::ONE);
        let end = V::splat(V::Scalar::TANH_END);
        // The argument comes second, so that NaN stays NaN.
        let x = end.min(V::splat(V::Scalar::ZERO).sub(end).max(x));
        let x = x.add(x);
        let shifted = x.mul_add(V::splat(log2_e), V::splat(round));
        let n = shifted.sub(V::splat(round));
        let r = n.mul_add(V::splat(minus_low), n.mul_add(V::splat(minus_high), x));
        let mut sum = V::splat(first);
        for &factor in others[2..].iter().rev() {
            sum = sum.mul_add(r, V::splat(factor));
        }
        let less_one = sum.mul(r).mul_add(r, r);
        let half = shifted.half_power();
        let power = half.add(half);
        let t = less_one.mul_add(power, power.sub(one));
        t.div(t.add(one.add(one)))
    }
}

/// Replaces every number x of a slice by `$f`. A macro, because a closure would be compiled for the
/// baseline. To be used in an unsafe block: i + LANES ≤ len, and the mask keeps the last access
/// within the slice.
macro_rules! each {
    ($v:ty, $all:ident, $x:ident => $f:expr) => {{
        let (mut i, len) = (0, $all.len());
        while i + <$v>::LANES <= len {
            let at = $all.as_mut_ptr().add(i);
            let $x = <$v>::load(at);
            $f.store(at);
            i += <$v>::LANES;
        }
        if i < len {
            let (at, mask) = ($all.as_mut_ptr().add(i), <$v>::mask(len - i));
            let $x = <$v>::load_part(at, mask);
            $f.store_part(at, mask);
        }
    }};
}

/// x ← eˣ.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
pub unsafe fn exp<V: Vector>(all: &mut [V::Scalar]) {
    // SAFETY: the caller vouches for the instructions, `each!` for the accesses.
    unsafe { each!(V, all, x => exp_of(x)) }
}

/// x ← 1 / (1 + e⁻ˣ).
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
pub unsafe fn sigmoid<V: Vector>(all: &mut [V::Scalar]) {
    // SAFETY: the caller vouches for the instructions, `each!` for the accesses.
    unsafe {
        let (zero, one) = (V::splat(V::Scalar::ZERO), V::splat(V::Scalar::ONE));
        each!(V, all, x => one.div(one.add(exp_of(zero.sub(x)))))
    }
}

/// x ← tanh x.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
pub unsafe fn tanh<V: Vector>(all: &mut [V::Scalar]) {
    // SAFETY: the caller vouches for the instructions, `each!` for the accesses.
    unsafe { each!(V, all, x => tanh_of(x)) }
}

/// z_r ← e^{z_r} / Σ_c e^{z_rc} for each row r of `width` numbers.
///
/// # Safety
/// See [`Vector`]; `width` is positive.
#[inline(always)]
pub unsafe fn softmax<V: Vector>(all: &mut [V::Scalar], width: usize) {
    // SAFETY: rows have `width` numbers, which are at most `LANES` in `softmax_short`.
    unsafe {
        if width > V::LANES {
            for row in all.chunks_exact_mut(width) {
                softmax_long::<V>(row);
            }
            return;
        }
        let mut rest = all;
        if V::FUSED {
            let mut groups = rest.chunks_exact_mut(8 * width);
            for group in groups.by_ref() {
                softmax_short::<V, 8>(group, width);
            }
            rest = groups.into_remainder();
        }
        for row in rest.chunks_exact_mut(width) {
            softmax_short::<V, 1>(row, width);
        }
    }
}

/// `R` rows of at most one vector each. All are loaded before any is stored, because a load soon
/// after a masked store would wait for it.
///
/// # Safety
/// See [`Vector`]; `rows` has R × width numbers, and `width` is at most `LANES`.
#[inline(always)]
unsafe fn softmax_short<V: Vector, const R: usize>(rows: &mut [V::Scalar], width: usize) {
    let at = rows.as_mut_ptr();
    // SAFETY: row r starts at r · width, and the mask keeps every access within it.
    unsafe {
        let mask = V::mask(width);
        let (zero, lowest) = (V::splat(V::Scalar::ZERO), V::splat(V::Scalar::LOWEST));
        let mut z = [zero; R];
        for r in 0..R {
            z[r] = V::load_part(at.add(r * width), mask);
        }
        for r in 0..R {
            let top = V::splat(z[r].blend(lowest, mask).max_lane());
            let e = exp_of(z[r].sub(top)).blend(zero, mask);
            z[r] = e.div(V::splat(e.sum_lanes()));
        }
        for r in 0..R {
            z[r].store_part(at.add(r * width), mask);
        }
    }
}

/// One row of any length.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
unsafe fn softmax_long<V: Vector>(row: &mut [V::Scalar]) {
    let (at, len) = (row.as_mut_ptr(), row.len());
    // SAFETY: the masks keep every access within the row.
    unsafe {
        let lowest = V::splat(V::Scalar::LOWEST);
        let (mut top, mut sum) = (lowest, V::splat(V::Scalar::ZERO));
        for i in (0..len).step_by(V::LANES) {
            let mask = V::mask((len - i).min(V::LANES));
            top = top.max(V::load_part(at.add(i), mask).blend(lowest, mask));
        }
        let top = V::splat(top.max_lane());
        for i in (0..len).step_by(V::LANES) {
            let mask = V::mask((len - i).min(V::LANES));
            let e = exp_of(V::load_part(at.add(i), mask).sub(top));
            sum = sum.add(e.blend(V::splat(V::Scalar::ZERO), mask));
            e.store_part(at.add(i), mask);
        }
        let sum = V::splat(sum.sum_lanes());
        for i in (0..len).step_by(V::LANES) {
            let mask = V::mask((len - i).min(V::LANES));
            V::load_part(at.add(i), mask).div(sum).store_part(at.add(i), mask);
        }
    }
}
