//! The scalar type, and the two helpers that write every update of the library.

use std::any::Any;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`.
pub trait Real:
    sealed::Sealed
    + num_traits::Float
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
    /// Bytes of one scalar, in memory and on the wire.
    const BYTES: usize;

    /// Rounds an `f64`, once, where a parameter enters the computation.
    fn of(value: f64) -> Self;

    /// Widens to `f64`, where a result leaves it.
    fn to_f64(self) -> f64;

    /// Appends the little-endian bytes of scalars: the form of digests, messages and checkpoints.
    fn extend_le(values: &[Self], bytes: &mut Vec<u8>);

    /// Fills `values` from as many little-endian bytes as they have.
    fn read_le(bytes: &[u8], values: &mut [Self]);

    /// `c ← alpha a b + beta c`, row-major with the given row and column strides.
    ///
    /// `a` is m × k, `b` is k × n, `c` is m × n.
    fn gemm(
        size: [usize; 3],
        alpha: Self,
        a: Strided<Self>,
        b: Strided<Self>,
        beta: Self,
        c: &mut [Self],
    );
}

/// A matrix seen in a slice: data, row stride, column stride.
#[derive(Clone, Copy)]
pub struct Strided<'a, T>(pub &'a [T], pub usize, pub usize);

macro_rules! real {
    ($t:ty, $gemm:path) => {
        impl Real for $t {
            const BYTES: usize = size_of::<$t>();

            fn of(value: f64) -> Self {
                value as $t
            }

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn extend_le(values: &[Self], bytes: &mut Vec<u8>) {
                let start = bytes.len();
                bytes.resize(start + values.len() * Self::BYTES, 0);
                let (places, _) = bytes[start..].as_chunks_mut();
                for (place, value) in places.iter_mut().zip(values) {
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

            #[allow(unsafe_code)]
            fn gemm(
                [m, k, n]: [usize; 3],
                alpha: Self,
                Strided(a, a_row, a_col): Strided<Self>,
                Strided(b, b_row, b_col): Strided<Self>,
                beta: Self,
                c: &mut [Self],
            ) {
                let reach = |rows: usize, cols: usize, row: usize, col: usize| {
                    if rows * cols == 0 { 0 } else { (rows - 1) * row + (cols - 1) * col + 1 }
                };
                assert!(a.len() >= reach(m, k, a_row, a_col), "gemm: a is too short");
                assert!(b.len() >= reach(k, n, b_row, b_col), "gemm: b is too short");
                assert!(c.len() >= m * n, "gemm: c is too short");
                // SAFETY: the three assertions above bound every access the product makes, and
                // `c` is an exclusive borrow, so it overlaps neither `a` nor `b`.
                unsafe {
                    $gemm(
                        m,
                        k,
                        n,
                        alpha,
                        a.as_ptr(),
                        a_row as isize,
                        a_col as isize,
                        b.as_ptr(),
                        b_row as isize,
                        b_col as isize,
                        beta,
                        c.as_mut_ptr(),
                        n as isize,
                        1,
                    );
                }
            }
        }
    };
}

real!(f32, matrixmultiply::sgemm);
real!(f64, matrixmultiply::dgemm);

/// `x[i] ← f(x[i], [a[i], b[i], …])` for every `i`.
pub fn update<T: Real, const N: usize>(x: &mut [T], with: [&[T]; N], f: impl Fn(T, [T; N]) -> T) {
    let len = x.len();
    let with = with.map(|a| &a[..len]);
    for i in 0..len {
        x[i] = f(x[i], std::array::from_fn(|j| with[j][i]));
    }
}

/// The inner product, in index order.
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    assert_eq!(a.len(), b.len(), "dot: lengths differ");
    // Eight running sums: a fixed order that the compiler can put in one vector register.
    let mut lanes = [T::zero(); 8];
    let (a_head, a_tail) = a.as_chunks::<8>();
    let (b_head, b_tail) = b.as_chunks::<8>();
    for (a, b) in a_head.iter().zip(b_head) {
        for l in 0..8 {
            lanes[l] += a[l] * b[l];
        }
    }
    let tail: T = a_tail.iter().zip(b_tail).map(|(&a, &b)| a * b).sum();
    lanes.into_iter().sum::<T>() + tail
}

/// `y ← y + a x`.
pub fn axpy<T: Real>(a: T, x: &[T], y: &mut [T]) {
    update(y, [x], |y, [x]| y + a * x);
}

/// Copies a slice into another precision.
pub fn cast<T: Real, U: Real>(from: &[T]) -> Vec<U> {
    from.iter().map(|&v| U::of(v.to_f64())).collect()
}
