//! The ranges of `params!`: each checks one value; its error states the valid range.

use std::fmt::Display;

use crate::error::Fault;
use crate::math::schedule::Schedule;

/// A number, or one that may be left out.
pub trait Given {
    /// The number.
    type Value: Copy + PartialOrd + Display;

    /// The number, if there is one.
    fn given(&self) -> Option<Self::Value>;
}

macro_rules! given {
    ($($number:ty),+) => {$(
        impl Given for $number {
            type Value = $number;

            fn given(&self) -> Option<$number> {
                Some(*self)
            }
        }

        impl Given for Option<$number> {
            type Value = $number;

            fn given(&self) -> Option<$number> {
                *self
            }
        }
    )+};
}

given!(f64, u32, u64, usize);

fn unless<V: Display>(
    key: &'static str,
    value: Option<V>,
    holds: impl Fn(&V) -> bool,
    must: &str,
) -> Result<(), Fault> {
    value.map_or(Ok(()), |value| Fault::unless(holds(&value), key, value, must))
}

/// A file must give it: see [`Params::required`](super::Params::required).
pub fn required<V>(_: &V, _: &'static str) -> Result<(), Fault> {
    Ok(())
}

/// A positive number.
pub fn positive(value: &impl Given<Value = f64>, key: &'static str) -> Result<(), Fault> {
    let holds = |value: &f64| *value > 0.0 && value.is_finite();
    unless(key, value.given(), holds, "a positive number")
}

/// A number that is not negative.
pub fn not_negative(value: &impl Given<Value = f64>, key: &'static str) -> Result<(), Fault> {
    let holds = |value: &f64| *value >= 0.0 && value.is_finite();
    unless(key, value.given(), holds, "0 or a positive number")
}

/// A share that is neither nothing nor all.
pub fn share(value: &impl Given<Value = f64>, key: &'static str) -> Result<(), Fault> {
    let holds = |value: &f64| *value > 0.0 && *value < 1.0;
    unless(key, value.given(), holds, "above 0 and below 1")
}

/// A share that is not all.
pub fn share_or_none(value: &impl Given<Value = f64>, key: &'static str) -> Result<(), Fault> {
    unless(key, value.given(), |value| (0.0..1.0).contains(value), "at least 0 and below 1")
}

/// At least a bound.
pub fn at_least<G: Given>(value: &G, key: &'static str, least: G::Value) -> Result<(), Fault> {
    unless(key, value.given(), |value| *value >= least, &format!("at least {least}"))
}

/// From one bound to another.
pub fn from_to<G: Given>(
    value: &G,
    key: &'static str,
    least: G::Value,
    most: G::Value,
) -> Result<(), Fault> {
    let must = format!("from {least} to {most}");
    unless(key, value.given(), |value| (least..=most).contains(value), &must)
}

/// The largest number of passes of an inner loop: each has draws of its own.
pub const MAX_PASSES: usize = 500;

/// Passes of an inner loop.
pub fn passes(value: &usize, key: &'static str) -> Result<(), Fault> {
    from_to(value, key, 1, MAX_PASSES)
}

/// A step size, constant or not.
pub fn step(value: &impl Step, key: &'static str) -> Result<(), Fault> {
    value.step().map_or(Ok(()), |step| step.check(key))
}

/// A step size, or one that may be left out.
pub trait Step {
    /// The step size, if there is one.
    fn step(&self) -> Option<Schedule>;
}

impl Step for Schedule {
    fn step(&self) -> Option<Schedule> {
        Some(*self)
    }
}

impl Step for Option<Schedule> {
    fn step(&self) -> Option<Schedule> {
        *self
    }
}

/// A weight of an average, constant or not; 1 switches averaging off.
pub fn weight(value: &impl Weight, key: &'static str) -> Result<(), Fault> {
    value.check_weight(key)
}

/// Types that can be a weight.
pub trait Weight {
    /// Checks that it is above 0 and at most 1.
    fn check_weight(&self, key: &'static str) -> Result<(), Fault>;
}

impl Weight for f64 {
    fn check_weight(&self, key: &'static str) -> Result<(), Fault> {
        Fault::unless(*self > 0.0 && *self <= 1.0, key, self, "above 0 and at most 1")
    }
}

impl Weight for Schedule {
    fn check_weight(&self, key: &'static str) -> Result<(), Fault> {
        Schedule::check_weight(self, key)
    }
}

impl<W: Weight> Weight for Option<W> {
    fn check_weight(&self, key: &'static str) -> Result<(), Fault> {
        self.as_ref().map_or(Ok(()), |weight| weight.check_weight(key))
    }
}

/// Types of a parameter's default: a value of its type, or a number for a schedule.
pub trait FromDefault<D> {
    /// The parameter.
    fn from_default(default: D) -> Self;
}

impl<V> FromDefault<V> for V {
    fn from_default(default: V) -> V {
        default
    }
}

impl FromDefault<f64> for Schedule {
    fn from_default(default: f64) -> Schedule {
        Schedule::Constant(default)
    }
}
