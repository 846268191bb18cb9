//! Random matrices, plain products of them, and the comparison of all levels.

use std::fmt::{Debug, Display};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};
use lopa_kernels::{Csr, Lanes, Level};

/// f32 or f64.
pub trait Scalar: Lanes<Self> + Copy + Debug + Display {
    const EPSILON: f64;
    fn of(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn bits(self) -> u64;
}

macro_rules! scalar {
    ($t:ty) => {
        impl Scalar for $t {
            const EPSILON: f64 = <$t>::EPSILON as f64;
            fn of(value: f64) -> Self {
                value as $t
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    };
}

scalar!(f32);
scalar!(f64);

/// A limit of shapes, and the one under Miri, which interprets and is some thousand times slower.
pub const fn most(usual: usize, interpreted: usize) -> usize {
    if cfg!(miri) { interpreted } else { usual }
}

/// The bits of numbers.
pub fn bits<T: Scalar>(of: &[T]) -> Vec<u64> {
    of.iter().map(|value| value.bits()).collect()
}

/// Copies numbers to f64.
pub fn wide<T: Scalar>(from: &[T]) -> Vec<f64> {
    from.iter().map(|value| value.to_f64()).collect()
}

/// Random numbers.
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Keep the key: it makes saved failures (`tests/proptest-regressions`) the same data again.
    pub fn new(seed: u64) -> Stream {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8] = 5;
        Stream(ChaCha8Rng::from_seed(key))
    }

    /// Uniform in `0..below`.
    pub fn below(&mut self, below: usize) -> usize {
        ((u128::from(self.0.next_u64()) * below as u128) >> 64) as usize
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (-53f64).exp2()
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Numbers in [-1, 1).
    pub fn numbers<T: Scalar>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| T::of(self.between(-1.0, 1.0))).collect()
    }
}

/// A matrix, dense and in compressed rows.
#[derive(Debug)]
pub struct Matrix<T> {
    pub cols: usize,
    pub dense: Vec<T>,
    pub starts: Vec<usize>,
    pub columns: Vec<u32>,
    pub values: Vec<T>,
}

impl<T: Scalar> Matrix<T> {
    pub fn draw(rows: usize, cols: usize, density: f64, stream: &mut Stream) -> Matrix<T> {
        let entry = |stream: &mut Stream| match stream.unit() < density {
            true => T::of(stream.between(0.1, 1.0)),
            false => T::of(0.0),
        };
        Matrix::of((0..rows * cols).map(|_| entry(stream)).collect(), cols)
    }

    pub fn of(dense: Vec<T>, cols: usize) -> Matrix<T> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in dense.chunks_exact(cols) {
            for (q, &value) in row.iter().enumerate().filter(|(_, value)| value.to_f64() != 0.0) {
                columns.push(q as u32);
                values.push(value);
            }
            starts.push(columns.len());
        }
        Matrix { cols, dense, starts, columns, values }
    }

    /// Replaces the values that are not zero.
    pub fn change(&mut self, f: impl Fn(T) -> T) {
        let nonzero = self.dense.iter_mut().filter(|value| value.to_f64() != 0.0);
        nonzero.for_each(|value| *value = f(*value));
        self.values.iter_mut().for_each(|value| *value = f(*value));
    }

    pub fn csr(&self) -> Csr<'_, T> {
        let Matrix { cols, starts, columns, values, .. } = self;
        Csr { cols: *cols, starts, columns, values }
    }

    pub fn row(&self, row: usize) -> &[T] {
        &self.dense[row * self.cols..(row + 1) * self.cols]
    }

    /// `before + Σ_q a[r, q] weights[q, :]` for chosen rows.
    pub fn product(&self, rows: &[usize], weights: &[f64], before: &[f64]) -> Vec<f64> {
        let width = weights.len() / self.cols;
        let of = |r: usize, c: usize| {
            let row = self.row(rows[r]).iter().zip(weights.chunks_exact(width));
            before[r * width + c] + row.map(|(&a, w)| a.to_f64() * w[c]).sum::<f64>()
        };
        let places = (0..rows.len()).flat_map(|r| (0..width).map(move |c| (r, c)));
        places.map(|(r, c)| of(r, c)).collect()
    }

    /// `before + Σ_r a[r, q] delta[r, :]` for chosen rows.
    pub fn transposed(&self, rows: &[usize], delta: &[f64], before: &[f64]) -> Vec<f64> {
        let width = delta.len() / rows.len();
        let mut out = before.to_vec();
        for (r, &row) in rows.iter().enumerate() {
            for (q, &a) in self.row(row).iter().enumerate() {
                for c in 0..width {
                    out[q * width + c] += a.to_f64() * delta[r * width + c];
                }
            }
        }
        out
    }
}

/// Runs a kernel at every level: the numbers are close to the expected ones, and have the same bits
/// at every level.
pub fn check<T: Scalar>(what: &str, want: &[f64], kernel: impl Fn(Level) -> Vec<T>) {
    // Sums of a few hundred numbers below 1, in another order: rounding errors grow with the
    // partial sums, which are about as large as the largest expected one.
    let largest = want.iter().fold(1.0, |most: f64, want| most.max(want.abs()));
    let tolerance = 300.0 * T::EPSILON * largest;
    let first = kernel(Level::all()[0]);
    assert_eq!(first.len(), want.len());
    for (i, (&got, want)) in first.iter().zip(want).enumerate() {
        let error = (got.to_f64() - want).abs();
        assert!(error <= tolerance, "{what}, at {i}: {got} is not {want}");
    }
    for level in Level::all() {
        assert_eq!(bits(&kernel(level)), bits(&first), "{what}: {level:?} gives other bits");
    }
}
