//! What examples are trained on.

use crate::data::Samples;
use crate::math::real::Real;

/// What an example is trained on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal<'a, T> {
    /// The number of its class.
    Class(u32),
    /// A number for each output.
    Numbers(&'a [T]),
}

impl<'a, T> Goal<'a, T> {
    /// The class; 0 if the goal has none.
    pub fn class(self) -> u32 {
        match self {
            Goal::Class(class) => class,
            Goal::Numbers(_) => 0,
        }
    }

    /// The time, where the goal is a time and an event.
    pub fn time(self) -> Option<&'a T> {
        self.numbers().first()
    }

    /// The numbers; none if the goal is a class.
    pub fn numbers(self) -> &'a [T] {
        match self {
            Goal::Class(_) => &[],
            Goal::Numbers(numbers) => numbers,
        }
    }
}

impl<T: Real> Goal<'_, T> {
    /// Whether an event was seen, where the goal is a time and an event.
    pub fn event(self) -> bool {
        self.numbers().get(1).is_some_and(|&event| event > T::of(0.5))
    }
}

/// What each of some samples is trained on.
#[derive(Debug, Clone, PartialEq)]
pub enum Goals<T> {
    /// The number of its class.
    Classes(Vec<u32>),
    /// A number for each output, sample by sample.
    Numbers {
        /// Numbers of a sample.
        outputs: usize,
        /// samples × outputs entries.
        values: Vec<T>,
    },
}

impl<T: Real> Goals<T> {
    /// The true ones.
    pub fn of(samples: &Samples<T>) -> Goals<T> {
        let all = 0..samples.len() as u32;
        match samples.outputs() {
            0 => Goals::Classes(all.map(|j| samples.label(j)).collect()),
            outputs => {
                let values = all.flat_map(|j| samples.target(j)).map(|&value| T::of(value));
                Goals::Numbers { outputs, values: values.collect() }
            }
        }
    }

    /// What sample e is trained on.
    #[inline]
    pub fn at(&self, e: usize) -> Goal<'_, T> {
        match self {
            Goals::Classes(classes) => Goal::Class(classes[e]),
            Goals::Numbers { outputs, values } => {
                Goal::Numbers(&values[e * outputs..(e + 1) * outputs])
            }
        }
    }
}
