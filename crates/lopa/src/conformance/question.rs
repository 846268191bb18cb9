//! A call of a part: the function, the point and the samples.

use crate::error::Result;
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, cast};
use crate::problem::{At, Bilevel, Dims};

/// A function of a part, or one of its derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    F,
    G,
    GradXF,
    GradThetaF,
    GradThetaG,
    HessG,
    CrossG,
    GradXG,
}

use Question::*;

impl Question {
    /// The functions of a part: ∇_x g only if the problem has it.
    pub fn of<T: Real>(part: &mut dyn Bilevel<T>) -> &'static [Question] {
        let all = &[F, G, GradXF, GradThetaF, GradThetaG, HessG, CrossG, GradXG];
        if part.single_level().is_some() { all } else { &all[..7] }
    }

    /// Its name in [`Bilevel`], and the id of its comparison with differences.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            F => ("f", "conformance/f"),
            G => ("g", "conformance/g"),
            GradXF => ("grad_x_f", "conformance/grad-x-f"),
            GradThetaF => ("grad_theta_f", "conformance/grad-theta-f"),
            GradThetaG => ("grad_theta_g", "conformance/grad-theta-g"),
            HessG => ("hess_g", "conformance/hess-g"),
            CrossG => ("cross_g", "conformance/cross-g"),
            GradXG => ("grad_x_g", "conformance/grad-x-g"),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// The id of its comparison with differences.
    pub fn id(self) -> &'static str {
        self.names().1
    }

    /// Whether it is a number, not a vector.
    pub fn is_function(self) -> bool {
        matches!(self, F | G)
    }

    /// The samples of the call.
    pub fn samples(self, batch: &Batch) -> &[u32] {
        match self {
            F | GradXF | GradThetaF => &batch.f,
            G | GradThetaG | HessG | CrossG | GradXG => &batch.g,
        }
    }

    /// The length of its result.
    pub fn length(self, Dims { n, p }: Dims) -> usize {
        match self {
            F | G => 1,
            GradXF | CrossG | GradXG => n,
            GradThetaF | GradThetaG | HessG => p,
        }
    }

    /// Makes the call: vectors are written to `out`, the value of a function is returned.
    pub fn ask<T: Real>(
        self,
        part: &mut dyn Bilevel<T>,
        point: &Point<T>,
        batch: &Batch,
        out: &mut [T],
    ) -> f64 {
        let (at, v, on) = (point.at(), &point.v, self.samples(batch));
        match self {
            F => return part.f(at, on),
            G => return part.g(at, on),
            GradXF => part.grad_x_f(at, on, out),
            GradThetaF => part.grad_theta_f(at, on, out),
            GradThetaG => part.grad_theta_g(at, on, out),
            HessG => part.hess_g(at, on, v, out),
            CrossG => part.cross_g(at, on, v, out),
            GradXG => part.single_level().into_iter().for_each(|part| part.grad_x_g(at, on, out)),
        }
        0.0
    }

    /// The result, in a vector initialised with `fill`.
    pub fn answer<T: Real>(
        self,
        part: &mut dyn Bilevel<T>,
        point: &Point<T>,
        batch: &Batch,
        fill: f64,
    ) -> Result<Vec<f64>> {
        let mut out = vec![T::of(fill); self.length(part.dims())];
        let value = self.ask(part, point, batch, &mut out);
        match part.error() {
            Some(error) => Err(error),
            None if self.is_function() => Ok(vec![value]),
            None => Ok(cast(&out)),
        }
    }
}

/// All results at a point, in the order of [`Question::of`].
pub(super) fn answers<T: Real>(
    part: &mut dyn Bilevel<T>,
    point: &Point<T>,
    batch: &Batch,
) -> Result<Vec<Vec<f64>>> {
    let questions = Question::of(part).iter();
    questions.map(|question| question.answer(part, point, batch, f64::NAN)).collect()
}

/// A point (x, θ) and two directions.
#[derive(Clone)]
pub(super) struct Point<T> {
    pub x: Vec<T>,
    pub theta: Vec<T>,
    pub u: Vec<T>,
    pub v: Vec<T>,
}

impl<T: Real> Point<T> {
    /// At random near a part's start, exact in both precisions.
    pub fn near(part: &dyn Bilevel<T>, number: usize) -> Point<T> {
        let start = &mut Stream::new(1, Purpose::Start, 0);
        let mut stream = Stream::new(1, Purpose::Tuning, number);
        let mut draw = |from: &[f64], width: f64| -> Vec<T> {
            let near = from.iter().map(|from| from + stream.between(-width, width));
            near.map(|value| T::of(f64::from(value as f32))).collect()
        };
        let zero = vec![0.0; part.dims().p];
        let x = draw(&part.start_x(start), 1.0);
        let theta = draw(&part.start_theta(start), 1.0);
        Point { x, theta, u: draw(&zero, 1.0), v: draw(&zero, 1.0) }
    }

    /// In another precision.
    pub fn cast<U: Real>(&self) -> Point<U> {
        let Point { x, theta, u, v } = self;
        Point { x: cast(x), theta: cast(theta), u: cast(u), v: cast(v) }
    }

    /// x and θ.
    pub fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }
}

/// Samples of f and of g.
#[derive(Clone)]
pub(super) struct Batch {
    pub name: &'static str,
    pub f: Vec<u32>,
    pub g: Vec<u32>,
}

impl Batch {
    /// All samples, and a few samples with one duplicate.
    pub fn both<T: Real>(part: &dyn Bilevel<T>) -> [Batch; 2] {
        let (f, g) = (part.samples_f() as u32, part.samples_g() as u32);
        let some = |of: u32, samples: &[u32]| samples.iter().map(|j| j % of).collect();
        [
            Batch { name: "all samples", f: (0..f).collect(), g: (0..g).collect() },
            Batch { name: "a small batch", f: some(f, &[1, 0, 1]), g: some(g, &[2, 0, 2, 3]) },
        ]
    }

    /// Sample `k` of each, or the last.
    pub fn single<T: Real>(part: &dyn Bilevel<T>, k: usize) -> Batch {
        let [f, g] = [part.samples_f(), part.samples_g()].map(|of| vec![k.min(of - 1) as u32]);
        Batch { name: "one sample", f, g }
    }
}
