//! Functions with the same bits on every platform: right, and exactly these bits. `packaging/platforms/run` runs these tests on each.

use lopa::math::portable::{
    cbrt, cos, exp, exp_m1, hypot, ln, ln_1p, log2, log10, mul_add, powf, powi, sin, single, tanh,
};
use lopa::prelude::*;

/// A function, the system's, and the range of arguments.
type Case = (fn(f64) -> f64, fn(f64) -> f64, (f64, f64));

const CASES: [Case; 10] = [
    (exp, f64::exp, (-700.0, 700.0)),
    (exp_m1, f64::exp_m1, (-2.0, 2.0)),
    (ln, f64::ln, (1e-9, 1e3)),
    (ln_1p, f64::ln_1p, (-0.9, 3.0)),
    (log2, f64::log2, (1e-9, 1e3)),
    (log10, f64::log10, (1e-9, 1e3)),
    (cbrt, f64::cbrt, (-1e3, 1e3)),
    (sin, f64::sin, (-20.0, 20.0)),
    (cos, f64::cos, (-20.0, 20.0)),
    (tanh, f64::tanh, (-3.0, 3.0)),
];

/// The system's functions on Windows are less exact than ours: its powers are a dozen units off.
const UNITS: f64 = if cfg!(windows) { 32.0 } else { 4.0 };

fn near(ours: f64, theirs: f64, of: &str) {
    let apart = (ours - theirs).abs() / (theirs.abs() + f64::MIN_POSITIVE);
    assert!(apart <= UNITS * f64::EPSILON, "{of}: {ours:e} and {theirs:e}");
}

#[test]
fn every_function_is_right() {
    let mut stream = Stream::new(1, Purpose::Problem, 0);
    for _ in 0..2000 {
        for (case, (ours, theirs, (low, high))) in CASES.into_iter().enumerate() {
            let x = stream.between(low, high);
            near(ours(x), theirs(x), &format!("function {case} at {x}"));
        }
        let (x, y) = (stream.between(0.1, 10.0), stream.between(-20.0, 20.0));
        near(powf(x, y), x.powf(y), &format!("{x} to the power {y}"));
        near(hypot(x, y), x.hypot(y), &format!("hypot of {x} and {y}"));
    }
}

#[test]
fn single_precision_rounds_double() {
    type Both = (fn(f32) -> f32, fn(f64) -> f64);
    let functions: [Both; 7] = [
        (single::exp, exp),
        (single::exp_m1, exp_m1),
        (single::ln, ln),
        (single::ln_1p, ln_1p),
        (single::sin, sin),
        (single::cos, cos),
        (single::tanh, tanh),
    ];
    let mut stream = Stream::new(2, Purpose::Problem, 0);
    for _ in 0..2000 {
        let x = stream.between(0.01, 5.0) as f32;
        for (case, (ours, double)) in functions.into_iter().enumerate() {
            let apart = f64::from(ours(x)) / double(f64::from(x)) - 1.0;
            assert!(apart.abs() <= 2.0 * f64::from(f32::EPSILON), "function {case} at {x}");
        }
        let apart = f64::from(single::powf(x, 1.5)) / powf(f64::from(x), 1.5) - 1.0;
        assert!(apart.abs() <= 2.0 * f64::from(f32::EPSILON), "{x} to the power 1.5");
    }
}

/// The bits of a few thousand values, as they are on every platform: another version of `libm` or another compiler
/// must not change them unseen, since digests would change with them.
#[test]
fn the_bits_are_these() {
    let mut stream = Stream::new(3, Purpose::Problem, 0);
    let mut sum = 0u64;
    let mut add = |value: f64| sum = sum.rotate_left(7) ^ value.to_bits();
    for _ in 0..4000 {
        for (ours, _, (low, high)) in CASES {
            add(ours(stream.between(low, high)));
        }
        let (x, y) = (stream.between(0.1, 10.0), stream.between(-20.0, 20.0));
        for value in [powf(x, y), hypot(x, y), stream.normal(), x.sqrt(), mul_add(x, y, 0.1)] {
            add(value);
        }
        for power in [2, 3, 4, 7] {
            // Positive powers are not the system's: the compiler multiplies in one fixed order.
            assert_eq!(powi(x, power).to_bits(), x.powi(power).to_bits());
            add(x.powi(power));
        }
        [-1, -3].into_iter().for_each(|power| add(powi(x, power)));
        let x = x as f32;
        let singles: [fn(f32) -> f32; 7] = [
            single::exp,
            single::exp_m1,
            single::ln,
            single::ln_1p,
            single::sin,
            single::cos,
            single::tanh,
        ];
        add(f64::from(single::mul_add(x, y as f32, 0.1)));
        for function in singles {
            add(f64::from(function(x)));
        }
        add(f64::from(single::powf(x, 1.5)));
    }
    assert_eq!(format!("{sum:016x}"), "59b39918c27b617d");
}

#[test]
fn zeros_and_nan_are_chosen_by_a_rule() {
    fn check<T: Real>() {
        let (plus, minus) = (T::zero(), -T::zero());
        for (a, b) in [(plus, minus), (minus, plus)] {
            let negative = b.is_sign_negative();
            assert_eq!(Real::max(a, b).is_sign_negative(), negative);
            assert_eq!(Real::min(a, b).is_sign_negative(), negative);
        }
        let (one, nan) = (T::one(), T::nan());
        assert!(Real::max(one, nan) == one && Real::max(nan, one) == one);
        assert!(Real::min(one, nan) == one && Real::min(nan, one) == one);
        assert!(Real::max(nan, nan).is_nan() && Real::min(nan, nan).is_nan());
        assert!(Real::max(one, -one) == one && Real::min(one, -one) == -one);
        // A NaN of another sign has the same bytes.
        let (mut one_form, mut other) = (Vec::new(), Vec::new());
        T::extend_le(&[nan, one], &mut one_form);
        T::extend_le(&[-nan, one], &mut other);
        assert_eq!(one_form, other);
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn a_copy_of_a_stream_goes_on_alike() {
    for (at, words) in [(0, 0), (3, 1), (1 << 31, 63), (7, 64), (9, 1000)] {
        let mut stream = Stream::new(5, Purpose::Tuning, 2);
        stream.seek(at, 11);
        (0..words).for_each(|_| _ = stream.word());
        let mut copy = stream.clone();
        let next = |stream: &mut Stream| [(); 200].map(|()| stream.bits());
        assert_eq!(next(&mut copy), next(&mut stream), "after {words} words from {at}");
    }
}
