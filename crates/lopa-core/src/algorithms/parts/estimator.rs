//! How the estimate E of a direction is carried from iteration to iteration.
//!
//! ```text
//! sgd       E ← D⁺
//! average   E ← (1 − a) E + a D⁺
//! storm     E ← (1 − a)(E − D) + D⁺        D at the old point, D⁺ at the new one, one minibatch
//! spider    E ← E − D + D⁺                 storm with a = 0, sometimes renewed on all samples
//! ```

use crate::math::real::{Real, update};

/// E ← (1 − a) E + a D⁺
pub fn average<T: Real>(e: &mut [T], new: &[T], a: T) {
    update(e, [new], |e, [new]| (T::one() - a) * e + a * new);
}

/// E ← (1 − a)(E − D) + D⁺
pub fn storm<T: Real>(e: &mut [T], new: &[T], old: &[T], a: T) {
    update(e, [new, old], |e, [new, old]| (T::one() - a) * (e - old) + new);
}
