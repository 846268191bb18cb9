//! The scalar type, and the elementwise and inner-product helpers that updates are written with.

use std::any::Any;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{AddAssign, DivAssign, MulAssign, Neg, SubAssign};

use lopa_kernels::{Lanes, Level, Loop};

use super::portable::{self, single};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`, with functions that have the same bits on every platform.
pub trait Real:
    sealed::Sealed
    + Lanes<Self>
    + num_traits::Num
    + Neg<Output = Self>
    + Copy
    + PartialOrd
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + Debug
    + Display
    + Default
    + Send
    + Sync
    + Any
{
    /// Bytes per scalar, in memory and on the wire.
    const BYTES: usize;

    /// Rounds an `f64`: once, where a parameter enters the computation.
    fn of(value: f64) -> Self;

    /// Widens to `f64`, where a result leaves the computation.
    fn to_f64(self) -> f64;

    /// Appends the little-endian bytes of scalars: the form of digests, messages and checkpoints. NaN has one form
    /// there, because processors make different ones.
    fn extend_le(values: &[Self], bytes: &mut Vec<u8>);

    /// Fills `values` from their little-endian bytes.
    fn read_le(bytes: &[u8], values: &mut [Self]);

    /// The one of two values that has this precision: see [`Both`].
    fn pick<F: Family>(both: &Both<F>) -> &F::Of<Self>;

    /// [`largest`], compiled here and not with the caller.
    fn largest(values: &[Self]) -> f64;

    /// ∞.
    fn infinity() -> Self;
    /// −∞.
    fn neg_infinity() -> Self;
    /// Not a number.
    fn nan() -> Self;
    /// The distance from 1 to the next larger number.
    fn epsilon() -> Self;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Whether its sign is negative, as that of −0 is.
    fn is_sign_negative(self) -> bool;
    /// |x|.
    fn abs(self) -> Self;
    /// 1 with the sign of x; NaN stays NaN.
    fn signum(self) -> Self;
    /// 1 / x.
    fn recip(self) -> Self;
    /// √x.
    fn sqrt(self) -> Self;
    /// `self · a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// xⁿ, by products.
    fn powi(self, n: i32) -> Self;
    /// The largest integer that is not above x.
    fn floor(self) -> Self;
    /// The nearest integer, away from 0 if there are two.
    fn round(self) -> Self;
    /// eˣ.
    fn exp(self) -> Self;
    /// eˣ − 1, exact near 0.
    fn exp_m1(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// log(1 + x), exact near 0.
    fn ln_1p(self) -> Self;
    /// xʸ.
    fn powf(self, y: Self) -> Self;
    /// The sine of an angle in radians.
    fn sin(self) -> Self;
    /// The cosine of an angle in radians.
    fn cos(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;

    /// The larger of two numbers; `other` if they are equal, as 0 and −0 are. NaN counts only if both are.
    #[inline]
    fn max(self, other: Self) -> Self {
        if self > other || other.is_nan() { self } else { other }
    }

    /// The smaller of two numbers; `other` if they are equal, as 0 and −0 are. NaN counts only if both are.
    #[inline]
    fn min(self, other: Self) -> Self {
        if self < other || other.is_nan() { self } else { other }
    }
}

/// A type for each precision, such as `dyn Problem<T>`.
pub trait Family {
    /// The one in precision `T`.
    type Of<T: Real>;
}

/// A value in both precisions: the meaning of a name before the precision of a run is chosen.
pub struct Both<F: Family> {
    single: F::Of<f32>,
    double: F::Of<f64>,
}

impl<F: Family> Both<F> {
    /// From a value in each precision.
    pub fn new(single: F::Of<f32>, double: F::Of<f64>) -> Both<F> {
        Both { single, double }
    }

    /// The one in precision `T`.
    pub fn get<T: Real>(&self) -> &F::Of<T> {
        T::pick(self)
    }
}

/// Methods that are the standard library's, exact by IEEE 754, and methods that are `portable`'s.
macro_rules! methods {
    ($t:ty, exact { $($exact:ident($($a:ident: $of:ty),*) -> $r:ty,)* }
     $portable:ident { $($name:ident($($b:ident),*),)* }) => {
        $(#[inline]
        fn $exact(self, $($a: $of),*) -> $r {
            <$t>::$exact(self, $($a),*)
        })*
        $(#[inline]
        fn $name(self, $($b: Self),*) -> Self {
            $portable::$name(self, $($b),*)
        })*
    };
}

macro_rules! real {
    ($t:ty, $field:ident, $portable:ident) => {
        impl Real for $t {
            const BYTES: usize = size_of::<$t>();

            #[inline]
            fn of(value: f64) -> Self {
                value as $t
            }

            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }

            fn extend_le(values: &[Self], bytes: &mut Vec<u8>) {
                let start = bytes.len();
                bytes.resize(start + values.len() * Self::BYTES, 0);
                let (places, _) = bytes[start..].as_chunks_mut();
                for (place, value) in places.iter_mut().zip(values) {
                    let value = if value.is_nan() { &<$t>::NAN } else { value };
                    *place = value.to_le_bytes();
                }
            }

            fn read_le(bytes: &[u8], values: &mut [Self]) {
                assert_eq!(bytes.len(), values.len() * Self::BYTES, "read_le: lengths differ");
                let (places, _) = bytes.as_chunks();
                for (value, &place) in values.iter_mut().zip(places) {
                    *value = Self::from_le_bytes(place);
                }
            }

            fn pick<F: Family>(both: &Both<F>) -> &F::Of<Self> {
                &both.$field
            }

            fn infinity() -> Self {
                <$t>::INFINITY
            }

            fn neg_infinity() -> Self {
                <$t>::NEG_INFINITY
            }

            fn nan() -> Self {
                <$t>::NAN
            }

            fn epsilon() -> Self {
                <$t>::EPSILON
            }

            fn largest(values: &[Self]) -> f64 {
                let mut found = f64::NAN;
                Level::best().run(Largest { of: values, found: &mut found });
                found
            }

            methods! { $t,
                exact {
                    is_nan() -> bool, is_finite() -> bool, is_sign_negative() -> bool, abs() -> Self, signum() -> Self,
                    recip() -> Self, sqrt() -> Self, powi(n: i32) -> Self,
                    floor() -> Self, round() -> Self,
                }
                $portable {
                    exp(), exp_m1(), ln(), ln_1p(), powf(y), sin(), cos(), tanh(), mul_add(a, b),
                }
            }
        }
    };
}

real!(f32, single, single);
real!(f64, double, portable);

/// Whether all numbers are finite.
pub fn all_finite<T: Real>(values: &[T]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// A vector of a node, aligned to 64 bytes; the vectors of many nodes can share one allocation, so
/// that they can be passed on as one matrix without a copy.
pub type Vector<T> = lopa_kernels::AlignedRow<T>;

/// `x[i] ← f(x[i], [a[i], b[i], …])` for every `i`.
#[inline]
pub fn update<T: Real, const N: usize>(x: &mut [T], with: [&[T]; N], f: impl Fn(T, [T; N]) -> T) {
    Level::best().run(Update { x, with, f });
}

struct Update<'a, T, const N: usize, F> {
    x: &'a mut [T],
    with: [&'a [T]; N],
    f: F,
}

impl<T: Real, const N: usize, F: Fn(T, [T; N]) -> T> Loop for Update<'_, T, N, F> {
    #[inline(always)]
    fn run(self) {
        let Update { x, with, f } = self;
        let length = x.len();
        let (heads, tail) = x.as_chunks_mut::<CHUNK>();
        // `with.map(…)` does the same, but the compiler takes several times as long over it.
        let (mut heads_with, mut tails): ([&[[T; CHUNK]]; N], [&[T]; N]) = ([&[]; N], [&[]; N]);
        for n in 0..N {
            let (heads, rest) = with[n][..length].as_chunks();
            (heads_with[n], tails[n]) = (heads, &rest[..tail.len()]);
        }
        let zeros = [T::zero(); CHUNK];
        for (k, head) in heads.iter_mut().enumerate() {
            let mut chunks = [&zeros; N];
            for n in 0..N {
                chunks[n] = &heads_with[n][k];
            }
            update_chunk(head, chunks, &f);
        }
        for i in 0..tail.len() {
            tail[i] = f(tail[i], each(|n| tails[n][i]));
        }
    }
}

/// A function of its own tells the compiler that `head` and `with` are apart: it then vectorises the loop in place.
#[inline(always)]
fn update_chunk<T: Real, const N: usize>(
    head: &mut [T; CHUNK],
    with: [&[T; CHUNK]; N],
    f: &impl Fn(T, [T; N]) -> T,
) {
    for i in 0..CHUNK {
        head[i] = f(head[i], each(|n| with[n][i]));
    }
}

/// The entries `of(0)`, `of(1)`, …: `array::from_fn` does the same, but the compiler takes several times as long over it.
#[inline(always)]
fn each<T: Real, const N: usize>(of: impl Fn(usize) -> T) -> [T; N] {
    let mut all = [T::zero(); N];
    for n in 0..N {
        all[n] = of(n);
    }
    all
}

/// Elements updated at a time.
const CHUNK: usize = 64;

/// The inner product, in index order.
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    assert_eq!(a.len(), b.len(), "dot: lengths differ");
    // Eight running sums: a fixed order that fits one vector register.
    let mut lanes = [T::zero(); 8];
    let (a_head, a_tail) = a.as_chunks::<8>();
    let (b_head, b_tail) = b.as_chunks::<8>();
    for (a, b) in a_head.iter().zip(b_head) {
        for l in 0..8 {
            lanes[l] += a[l] * b[l];
        }
    }
    sum(lanes.into_iter()) + sum(a_tail.iter().zip(b_tail).map(|(&a, &b)| a * b))
}

/// The inner product in double precision, in the order of [`dot`].
pub fn wide_dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    assert_eq!(a.len(), b.len(), "wide_dot: lengths differ");
    let mut lanes = [0.0; 8];
    let (a_head, a_tail) = a.as_chunks::<8>();
    let (b_head, b_tail) = b.as_chunks::<8>();
    for (a, b) in a_head.iter().zip(b_head) {
        for l in 0..8 {
            lanes[l] += a[l].to_f64() * b[l].to_f64();
        }
    }
    let tail = a_tail.iter().zip(b_tail).map(|(&a, &b)| a.to_f64() * b.to_f64());
    sum(lanes.into_iter()) + sum(tail)
}

/// The sum in index order, as [`Iterator::sum`] forms it, but small enough to be inlined across units.
#[inline]
pub fn sum<T: Real>(values: impl Iterator<Item = T>) -> T {
    values.fold(-T::zero(), |sum, value| sum + value)
}

/// Whether two vectors are equal; eight entries at a time.
pub fn equal<T: Real>(a: &[T], b: &[T]) -> bool {
    let (a_head, a_tail) = a.as_chunks::<8>();
    let (b_head, b_tail) = b.as_chunks::<8>();
    let same = |(a, b): (&[T; 8], &[T; 8])| (0..8).fold(true, |same, l| same & (a[l] == b[l]));
    a.len() == b.len() && a_head.iter().zip(b_head).all(same) && a_tail == b_tail
}

/// The Euclidean norm in double precision.
pub fn norm<T: Real>(a: &[T]) -> f64 {
    wide_dot(a, a).sqrt()
}

/// The largest |entry|, in double precision; NaN if an entry is not finite.
pub fn largest<T: Real>(a: &[T]) -> f64 {
    T::largest(a)
}

struct Largest<'a, T> {
    of: &'a [T],
    found: &'a mut f64,
}

impl<T: Real> Loop for Largest<'_, T> {
    #[inline(always)]
    fn run(self) {
        // A comparison ignores NaN; 0 · value is NaN for every value that is not finite.
        let (mut most, mut sum) = ([T::zero(); 16], [T::zero(); 16]);
        let (heads, tail) = self.of.as_chunks::<16>();
        for head in heads {
            for l in 0..16 {
                let size = head[l].abs();
                most[l] = if size > most[l] { size } else { most[l] };
                sum[l] += head[l] * T::zero();
            }
        }
        for &value in tail {
            most[0] = if value.abs() > most[0] { value.abs() } else { most[0] };
            sum[0] += value * T::zero();
        }
        let most = most.into_iter().fold(T::zero(), T::max);
        let is_nan = sum.iter().any(|sum| sum.is_nan());
        *self.found = if is_nan { f64::NAN } else { most.to_f64() };
    }
}

/// `y ← y + a x`.
pub fn axpy<T: Real>(a: T, x: &[T], y: &mut [T]) {
    update(y, [x], |y, [x]| y + a * x);
}

/// Copies a slice into another precision.
pub fn cast<T: Real, U: Real>(from: &[T]) -> Vec<U> {
    from.iter().map(|&v| U::of(v.to_f64())).collect()
}
