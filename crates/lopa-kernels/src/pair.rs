//! A vector in two registers.

// SAFETY: every function below is unsafe for the reasons that `Vector` gives, and its caller
// guarantees what `Vector` demands. Unsafe blocks would only repeat that.
#![allow(unsafe_op_in_unsafe_fn)]

use super::vector::Vector;

/// The lower and the upper half of the lanes.
#[derive(Clone, Copy)]
pub struct Pair<V>(V, V);

#[inline(always)]
fn pairs<V>([a, b, c, d]: [V; 4], [e, f, g, h]: [V; 4]) -> [Pair<V>; 4] {
    [Pair(a, e), Pair(b, f), Pair(c, g), Pair(d, h)]
}

macro_rules! half_by_half {
    ($($method:ident),*) => {
        $(#[inline(always)]
        unsafe fn $method(self, other: Self) -> Self {
            Pair(self.0.$method(other.0), self.1.$method(other.1))
        })*
    };
}

// SAFETY: each half accesses only its lanes; where the upper half begins beyond the end, none of its
// lanes is in the mask.
unsafe impl<V: Vector> Vector for Pair<V> {
    type Scalar = V::Scalar;
    type Mask = (V::Mask, V::Mask);
    const LANES: usize = 2 * V::LANES;
    const WHOLE: bool = false;

    half_by_half!(add, sub, mul, div, max, min);

    #[inline(always)]
    unsafe fn mask(n: usize) -> Self::Mask {
        (V::mask(n.min(V::LANES)), V::mask(n.saturating_sub(V::LANES)))
    }
    #[inline(always)]
    unsafe fn splat(value: V::Scalar) -> Self {
        Pair(V::splat(value), V::splat(value))
    }
    #[inline(always)]
    unsafe fn load(from: *const V::Scalar) -> Self {
        Pair(V::load(from), V::load(from.add(V::LANES)))
    }
    #[inline(always)]
    unsafe fn load_part(from: *const V::Scalar, mask: Self::Mask) -> Self {
        let above = from.wrapping_add(V::LANES);
        Pair(V::load_part(from, mask.0), V::load_part(above, mask.1))
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        Pair(V::load_bytes(from), V::load_bytes(from.add(V::LANES)))
    }
    #[inline(always)]
    unsafe fn load_windows(from: [*const V::Scalar; 2]) -> Self {
        match V::LANES {
            8 => Pair(V::load(from[0]), V::load(from[1])),
            _ => Self::load(from[0]),
        }
    }
    #[inline(always)]
    unsafe fn store_windows(self, to: [*mut V::Scalar; 2]) {
        match V::LANES {
            8 => {
                self.1.store(to[1]);
                self.0.store(to[0]);
            }
            _ => self.store(to[0]),
        }
    }
    #[inline(always)]
    unsafe fn transpose_bytes(rows: &[*const u8; 16], to: *mut u8) {
        V::transpose_bytes(rows, to)
    }
    #[inline(always)]
    unsafe fn load_rows(from: *const V::Scalar, stride: usize) -> [Self; 4] {
        let above = from.add(V::LANES * stride);
        pairs(V::load_rows(from, stride), V::load_rows(above, stride))
    }
    #[inline(always)]
    unsafe fn store_rows(rows: [Self; 4], to: *mut V::Scalar, stride: usize) {
        V::store_rows(rows.map(|row| row.0), to, stride);
        V::store_rows(rows.map(|row| row.1), to.add(V::LANES * stride), stride);
    }
    #[inline(always)]
    unsafe fn transpose(rows: [Self; 4]) -> [Self; 4] {
        pairs(V::transpose(rows.map(|row| row.0)), V::transpose(rows.map(|row| row.1)))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut V::Scalar) {
        self.0.store(to);
        self.1.store(to.add(V::LANES));
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut V::Scalar, mask: Self::Mask) {
        self.0.store_part(to, mask.0);
        self.1.store_part(to.wrapping_add(V::LANES), mask.1);
    }
    #[inline(always)]
    unsafe fn add_part(to: *mut V::Scalar, a: V::Scalar, with: *const V::Scalar, n: usize) {
        if n < V::LANES {
            return V::add_part(to, a, with, n);
        }
        V::splat(a).mul_add(V::load(with), V::load(to)).store(to);
        V::add_part(to.add(V::LANES), a, with.add(V::LANES), n - V::LANES);
    }
    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        Pair(self.0.mul_add(a.0, b.0), self.1.mul_add(a.1, b.1))
    }
    #[inline(always)]
    unsafe fn blend(self, other: Self, mask: Self::Mask) -> Self {
        Pair(self.0.blend(other.0, mask.0), self.1.blend(other.1, mask.1))
    }
    #[inline(always)]
    unsafe fn sum_lanes(self) -> V::Scalar {
        self.0.add(self.1).sum_lanes()
    }
    #[inline(always)]
    unsafe fn max_lane(self) -> V::Scalar {
        self.0.max(self.1).max_lane()
    }
    #[inline(always)]
    unsafe fn half_power(self) -> Self {
        Pair(self.0.half_power(), self.1.half_power())
    }
}
