//! Functions of many numbers, short rows, and loops.

use lopa_kernels::{Level, Loop};
use proptest::prelude::*;

use crate::draw::{Scalar, Stream, bits, check, most, wide};

/// Kernels on a few short rows.
fn check_rows<T: Scalar>(count: usize, width: usize, seed: u64) {
    let stream = &mut Stream::new(seed);
    let (a, b) = (stream.numbers::<T>(count * width), stream.numbers::<T>(count * width));
    let factors = stream.numbers::<T>(count);
    let scaled: Vec<f64> =
        (0..count * width).map(|i| factors[i / width].to_f64() * a[i].to_f64()).collect();
    let pairs = a.chunks_exact(width).zip(b.chunks_exact(width));
    let dot = |(a, b): (&[T], &[T])| a.iter().zip(b).map(|(&a, &b)| a.to_f64() * b.to_f64()).sum();
    let dots: Vec<f64> = pairs.map(dot).collect();
    let z: Vec<T> = a.iter().map(|&a| T::of(20.0 * a.to_f64())).collect();
    let exps: Vec<f64> = z.iter().map(|&z| z.to_f64().exp()).collect();
    let softmax: Vec<f64> = exps
        .chunks_exact(width)
        .flat_map(|row| row.iter().map(|e| e / row.iter().sum::<f64>()))
        .collect();
    let sigmoid: Vec<f64> = exps.iter().map(|e| e / (1.0 + e)).collect();
    check("scaled rows", &scaled, |level| {
        let mut out = b.clone();
        level.scale_rows(&factors, &a, width, &mut out);
        out
    });
    check("row dots", &dots, |level| {
        let mut out = factors.clone();
        level.row_dots(&a, &b, width, &mut out);
        out
    });
    let first: Vec<f64> = wide(&b[..width]);
    let added: Vec<f64> = (0..a.len()).map(|i| a[i].to_f64() + first[i % width]).collect();
    check("a row added to each", &added, |level| {
        let mut out = a.clone();
        level.add_to_each_row(&b[..width], &mut out);
        out
    });
    let column = |c: usize| a.iter().skip(c).step_by(width).map(|&a| a.to_f64()).sum::<f64>();
    let summed: Vec<f64> = (0..width).map(|c| first[c] + column(c)).collect();
    check("sum of rows", &summed, |level| {
        let mut out = b[..width].to_vec();
        level.add_row_sum(&a, &mut out);
        out
    });
    check("softmax", &softmax, |level| {
        let mut out = z.clone();
        level.softmax(&mut out, width);
        out
    });
    check("sigmoid", &sigmoid, |level| {
        let mut out = z.clone();
        level.sigmoid(&mut out);
        out
    });
}

proptest! {
    #[test]
    fn rows(count in 1..most(40, 10), width in 1..most(40, 20), seed: u64) {
        check_rows::<f32>(count, width, seed);
        check_rows::<f64>(count, width, seed);
    }
}

/// The largest relative error of a kernel over a range, in units of the machine epsilon.
fn worst<T: Scalar>(
    level: Level,
    (low, high): (f64, f64),
    kernel: fn(Level, &mut [T]),
    exact: fn(f64) -> f64,
) -> f64 {
    let stream = &mut Stream::new(3);
    let x: Vec<T> = (0..most(50_000, 200)).map(|_| T::of(stream.between(low, high))).collect();
    let run = |level: Level| {
        let mut e = x.clone();
        kernel(level, &mut e);
        e
    };
    let e = run(level);
    assert_eq!(bits(&e), bits(&run(Level::best())), "{level:?} gives other bits");
    let error = |(&x, &e): (&T, &T)| {
        let want = exact(x.to_f64());
        (e.to_f64() / want - 1.0).abs() / T::EPSILON
    };
    x.iter().zip(&e).map(error).fold(0.0, f64::max)
}

#[test]
fn exp_is_right_to_two_units_in_the_last_place() {
    for level in Level::all() {
        let single = worst::<f32>(level, (-86.0, 88.7), Level::exp, f64::exp);
        let double = worst::<f64>(level, (-707.0, 709.7), Level::exp, f64::exp);
        assert!(single <= 1.0 && double <= 2.0, "{level:?}: {single}, {double}");
    }
}

#[test]
fn tanh_is_right_to_four_units_in_the_last_place() {
    for level in Level::all() {
        for end in [1e-3, 0.3, 1.0, 4.0, 25.0] {
            let single = worst::<f32>(level, (-end, end), Level::tanh, f64::tanh);
            let double = worst::<f64>(level, (-end, end), Level::tanh, f64::tanh);
            assert!(single <= 2.0 && double <= 2.0, "{level:?} to {end}: {single}, {double}");
        }
        let mut ends = [f64::NAN, 0.0, 30.0, f64::INFINITY, -30.0, f64::NEG_INFINITY];
        level.tanh(&mut ends);
        assert!(ends[0].is_nan());
        assert_eq!(ends[1..], [0.0, 1.0, 1.0, -1.0, -1.0]);
        let mut ends = [f32::NAN, 0.0, 11.0, f32::INFINITY, -11.0, f32::NEG_INFINITY];
        level.tanh(&mut ends);
        assert!(ends[0].is_nan());
        assert_eq!(ends[1..], [0.0, 1.0, 1.0, -1.0, -1.0]);
    }
}

#[test]
fn exp_at_the_ends() {
    for level in Level::all() {
        let mut single = [f32::NAN, 0.0, 89.5, f32::INFINITY, -200.0, f32::NEG_INFINITY];
        level.exp(&mut single);
        assert!(single[0].is_nan() && single[1] == 1.0 && single[2] == f32::INFINITY);
        assert!(single[3] == f32::INFINITY && single[4] < 1e-37 && single[5] < 1e-37);
        let mut double = [f64::NAN, 0.0, 710.0, f64::INFINITY, -800.0];
        level.exp(&mut double);
        assert!(double[0].is_nan() && double[1] == 1.0 && double[2] == f64::INFINITY);
        assert!(double[3] == f64::INFINITY && double[4] < 1e-307);
    }
}

#[test]
fn softmax_of_large_scores_is_finite() {
    for level in Level::all() {
        let mut z = [1e30f32, -1e30, 0.0, 5.0, 5.0, -1000.0];
        level.softmax(&mut z, 3);
        assert_eq!(z[0], 1.0);
        assert!(z[1] < 1e-30 && (z[3] - 0.5).abs() < 1e-6 && (z[4] - 0.5).abs() < 1e-6);
    }
}

/// `x ← x · a + 0.1`, which must not be fused.
struct Step<'a>(&'a mut [f32], &'a [f32]);

impl Loop for Step<'_> {
    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().zip(self.1).for_each(|(x, a)| *x = *x * a + 0.1);
    }
}

#[test]
fn loops_have_the_same_bits_at_every_level() {
    let stream = &mut Stream::new(5);
    let (x, a) = (stream.numbers::<f32>(1003), stream.numbers::<f32>(1003));
    let run = |level: Level| {
        let mut x = x.clone();
        level.run(Step(&mut x, &a));
        x
    };
    let plain: Vec<f32> = x.iter().zip(&a).map(|(x, a)| x * a + 0.1).collect();
    Level::all()
        .into_iter()
        .for_each(|level| assert_eq!(bits(&run(level)), bits(&plain), "{level:?}"));
}
