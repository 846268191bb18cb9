//! Consensus steps, shared by the algorithms.
//!
//! ```text
//! combine          x ← Σ_j w_ij x_j
//! relax            x ← x − η (x − Σ_j w_ij x_j)
//! track            y ← Σ_j w_ij y_j + d⁺ − d           gradient tracking: mean y = mean d
//! dual             M ← M + x − Σ_j w_ij x_j            augmented Lagrangian: the M_i sum to 0
//! ```
//!
//! In the personal scope θ and v are not shared; their sums are then empty slices, and these steps
//! act as with W = I.

use crate::math::real::{Real, update};

/// x ← Σ_j w_ij x_j
pub fn combine<T: Real>(x: &mut [T], mixed: &[T]) {
    if !mixed.is_empty() {
        x.copy_from_slice(mixed);
    }
}

/// x ← x − η (x − Σ_j w_ij x_j)
pub fn relax<T: Real>(x: &mut [T], mixed: &[T], eta: T) {
    if !mixed.is_empty() {
        update(x, [mixed], |x, [mixed]| x - eta * (x - mixed));
    }
}

/// y ← Σ_j w_ij y_j + d⁺ − d, which is d⁺ if y is not shared.
pub fn track<T: Real>(y: &mut [T], mixed: &[T], new: &[T], old: &[T]) {
    match mixed {
        [] => y.copy_from_slice(new),
        _ => update(y, [mixed, new, old], |_, [mixed, new, old]| mixed + new - old),
    }
}

/// y ← y + d⁺ − d, where y is Σ_j w_ij y_j already.
pub fn add_change<T: Real>(y: &mut [T], new: &[T], old: &[T]) {
    update(y, [new, old], |mixed, [new, old]| mixed + new - old);
}

/// M ← M + x − Σ_j w_ij x_j
pub fn dual<T: Real>(m: &mut [T], x: &[T], mixed: &[T]) {
    update(m, [x, mixed], |m, [x, mixed]| m + (x - mixed));
}

/// x ← x (r / |x|) where |x| > r: the nearest point of the ball.
pub fn project<T: Real>(x: &mut [T], radius: Option<f64>) {
    let Some(radius) = radius.map(T::of) else { return };
    let norm = crate::math::real::dot(x, x).sqrt();
    if norm > radius {
        update(x, [], |x, []| x * (radius / norm));
    }
}
