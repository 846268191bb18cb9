//! Losses of a linear model's outputs z: their values, first and second derivatives.
//!
//! ```text
//! logistic   one column    ℓ = log(1 + e^{−y z}),   y = +1 for class 0, −1 for class 1
//! softmax    C columns     ℓ = log Σ_c e^{z_c} − z_y
//! squared    K columns     ℓ = ½ Σ_o (z_o − t_o)²
//! huber      K columns     ℓ = Σ_o H(z_o − t_o),    H(r) = r²/2 where |r| ≤ δ, else δ (|r| − δ/2)
//! cox        one column    Cox's partial likelihood, of all rows together: see `cox`
//! ```
//!
//! Sums over a batch carry a weight for every example: `each(r)` is the goal and the weight of the r-th.

use lopa_kernels::Level;

use super::cox::RiskSets;
use super::goal::Goal;
use crate::choices;
use crate::data::Target;
use crate::error::{Error, Fault, Result};
use crate::math::real::{Real, sum, update};
use crate::problem::predictor::Then;

choices! {
    /// The loss of a model's outputs.
    pub enum LossName {
        /// ½ |z − t|², for targets that are numbers.
        Squared,
        /// Squared near the target and linear far from it, for targets with outliers.
        Huber,
        /// log(1 + e^{−y z}), for two classes.
        Logistic,
        /// The cross-entropy of a softmax, for classes.
        Softmax,
        /// Cox's partial likelihood, for a time and whether an event was seen then.
        Cox,
    }
}

/// Where the Huber loss becomes linear, in deviations of the target.
const DELTA: f64 = 1.0;

/// The keys of a problem that choose its loss.
#[derive(Debug, Clone, Copy)]
pub struct LossKeys {
    /// `loss`, if it is given.
    pub loss: Option<LossName>,
    /// `delta`, if it is given.
    pub delta: Option<f64>,
    /// The usual loss of two classes.
    pub of_two: LossName,
}

impl LossKeys {
    /// `delta` goes with `loss = "huber"`.
    pub fn check(self) -> Result<(), Fault> {
        let Some(delta) = self.delta else { return Ok(()) };
        Fault::unless(
            self.loss == Some(LossName::Huber),
            "delta",
            delta,
            "left out, or go with `loss = \"huber\"`",
        )
    }

    /// The loss for a target, and the number of a model's outputs: that given, or the usual one.
    pub fn fit(self, target: Target) -> Result<(Loss, usize)> {
        let usual = match target {
            Target::Classes(2) => self.of_two,
            Target::Classes(_) => LossName::Softmax,
            Target::Numbers(_) => LossName::Squared,
            Target::Survival => LossName::Cox,
        };
        let name = self.loss.unwrap_or(usual);
        let delta = self.delta.unwrap_or(DELTA);
        match (name, target) {
            (LossName::Squared, Target::Numbers(outputs)) => Ok((Loss::Squared, outputs)),
            (LossName::Huber, Target::Numbers(outputs)) => Ok((Loss::Huber(delta), outputs)),
            (LossName::Softmax, Target::Classes(classes)) => Ok((Loss::Softmax, classes)),
            (LossName::Logistic, Target::Classes(2)) => Ok((Loss::Logistic, 1)),
            (LossName::Cox, Target::Survival) => Ok((Loss::Cox, 1)),
            (LossName::Cox, _) => Err(unfit(
                "`loss = \"cox\"` is for a time and whether an event was seen then".into(),
                "write `target = \"survival\"` and `label = [\"time\", \"event\"]` in [data], or leave \
                 `loss` out",
            )),
            (_, Target::Survival) => Err(unfit(
                "this `loss` is not for a time and whether an event was seen then".into(),
                "write `loss = \"cox\"`, or leave `loss` out",
            )),
            (LossName::Logistic, Target::Classes(classes)) => Err(unfit(
                format!("`loss = \"logistic\"` is for two classes, and the data has {classes}"),
                "write `loss = \"softmax\"`, or leave `loss` out",
            )),
            (LossName::Squared | LossName::Huber, Target::Classes(_)) => Err(unfit(
                "this `loss` is for numbers, and the labels of the data are classes".into(),
                "write `target = \"number\"` in [data] if the labels are numbers to predict; else \
                 leave `loss` out",
            )),
            (LossName::Softmax | LossName::Logistic, Target::Numbers(_)) => Err(unfit(
                "this `loss` is for classes, and the labels of the data are numbers to predict"
                    .into(),
                "write `loss = \"squared\"` or `\"huber\"`, or leave `loss` out",
            )),
        }
    }
}

/// The error for a loss that does not fit the target or the problem.
pub(super) fn unfit(message: String, hint: &str) -> Error {
    Error::config("config/unfit-loss", message).hint(hint)
}

/// A loss with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Of two classes, on one column.
    Logistic,
    /// Of classes, on a column each.
    Softmax,
    /// Of numbers, on a column each.
    Squared,
    /// The same, linear beyond this distance.
    Huber(f64),
    /// Of times and events, on one column; all rows together.
    Cox,
}

impl Loss {
    /// What follows the scores of a trained model.
    pub fn then(self) -> Then {
        match self {
            Loss::Logistic | Loss::Softmax => Then::Softmax,
            Loss::Squared | Loss::Huber(_) | Loss::Cox => Then::Nothing,
        }
    }

    /// Whether the loss of rows is the sum of their own losses.
    pub fn adds_up(self) -> bool {
        self != Loss::Cox
    }

    /// Refuses a loss of all rows together, where rows must have terms of their own.
    pub fn alone(self) -> Result<(), &'static str> {
        match self.adds_up() {
            true => Ok(()),
            false => Err(
                "Cox's likelihood is of all rows together: the part of a row depends on the others at risk",
            ),
        }
    }

    /// Calls `f(r, w_r ℓ(z_r))` for every row, `width` columns each.
    pub fn values<'a, T: Real>(
        self,
        scores: &[T],
        width: usize,
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        risk: &mut RiskSets<T>,
        mut f: impl FnMut(usize, T),
    ) {
        if self == Loss::Cox {
            return risk.losses(scores, each, f);
        }
        for (r, z) in scores.chunks_exact(width).enumerate() {
            let (goal, weight) = each(r);
            f(r, weight * self.value(z, goal));
        }
    }

    /// ℓ(z) of a row alone, finite for every finite z.
    pub fn value<T: Real>(self, z: &[T], goal: Goal<T>) -> T {
        match self {
            Loss::Logistic => softplus(if goal.class() == 0 { -z[0] } else { z[0] }),
            Loss::Softmax => {
                let top = highest(z);
                sum(z.iter().map(|&z| (z - top).exp())).ln() - (z[goal.class() as usize] - top)
            }
            Loss::Squared => {
                let one = |(&z, &t): (&T, &T)| half::<T>() * (z - t) * (z - t);
                sum(z.iter().zip(goal.numbers()).map(one))
            }
            Loss::Huber(delta) => {
                let delta = T::of(delta);
                let one = |(&z, &t): (&T, &T)| match (z - t).abs() {
                    far if far > delta => delta * (far - half::<T>() * delta),
                    near => half::<T>() * near * near,
                };
                sum(z.iter().zip(goal.numbers()).map(one))
            }
            // It is the only row at risk.
            Loss::Cox => T::zero(),
        }
    }

    /// What slopes and curves follow from, in place of the scores of all rows, `width` columns each: for `Softmax` the
    /// probabilities.
    pub fn prepare<T: Real>(self, scores: &mut [T], width: usize) {
        if self == Loss::Softmax {
            Level::best().softmax(scores, width);
        }
    }

    /// scores ← w_r ∇ℓ(z_r), from the [prepared](Loss::prepare) scores z of all rows, `width` columns each.
    pub fn slopes<'a, T: Real>(
        self,
        scores: &mut [T],
        width: usize,
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        risk: &mut RiskSets<T>,
    ) {
        match self {
            Loss::Cox => risk.slopes(scores, each),
            Loss::Logistic => {
                // −y w σ(−y z). Without a branch: the processor would mispredict half of the labels.
                let minus_y = |r| T::of(2.0 * f64::from(each(r).0.class()) - 1.0);
                scores.iter_mut().enumerate().for_each(|(r, z)| *z *= minus_y(r));
                Level::best().sigmoid(scores);
                scores.iter_mut().enumerate().for_each(|(r, s)| *s *= minus_y(r) * each(r).1);
            }
            Loss::Softmax => {
                for (r, p) in scores.chunks_exact_mut(width).enumerate() {
                    p[each(r).0.class() as usize] -= T::one();
                }
                // In a separate loop: loading a partly stored vector at once would stall.
                for (r, p) in scores.chunks_exact_mut(width).enumerate() {
                    let weight = each(r).1;
                    p.iter_mut().for_each(|p| *p *= weight);
                }
            }
            Loss::Squared => {
                for (r, z) in scores.chunks_exact_mut(width).enumerate() {
                    let (goal, weight) = each(r);
                    z.iter_mut().zip(goal.numbers()).for_each(|(z, &t)| *z = weight * (*z - t));
                }
            }
            Loss::Huber(delta) => {
                let delta = T::of(delta);
                for (r, z) in scores.chunks_exact_mut(width).enumerate() {
                    let (goal, weight) = each(r);
                    let slope = |off: T| weight * off.max(-delta).min(delta);
                    z.iter_mut().zip(goal.numbers()).for_each(|(z, &t)| *z = slope(*z - t));
                }
            }
        }
    }

    /// tangents ← w_r ∇²ℓ(z_r) a_r, from the tangents a and the [prepared](Loss::prepare) scores z, which are
    /// overwritten.
    pub fn curves<'a, T: Real>(
        self,
        scores: &mut [T],
        tangents: &mut [T],
        width: usize,
        each: impl Fn(usize) -> (Goal<'a, T>, T),
        risk: &mut RiskSets<T>,
    ) {
        match self {
            Loss::Cox => risk.curves(scores, tangents, each),
            Loss::Logistic => {
                // w σ(z) σ(−z) a, by the smaller of σ(z) and σ(−z): computed as 1 minus the larger, it
                // would lose digits.
                update(scores, [], |z, []| -z.abs());
                Level::best().sigmoid(scores);
                for (r, (&s, a)) in scores.iter().zip(tangents).enumerate() {
                    *a *= each(r).1 * s * (T::one() - s);
                }
            }
            Loss::Softmax => {
                let scores = scores.chunks_exact(width);
                for (r, (p, a)) in scores.zip(tangents.chunks_exact_mut(width)).enumerate() {
                    let (_, weight) = each(r);
                    let mean = sum(p.iter().zip(&*a).map(|(&p, &a)| p * a));
                    a.iter_mut().zip(p).for_each(|(a, &p)| *a = weight * p * (*a - mean));
                }
            }
            Loss::Squared => {
                for (r, a) in tangents.chunks_exact_mut(width).enumerate() {
                    let weight = each(r).1;
                    a.iter_mut().for_each(|a| *a *= weight);
                }
            }
            Loss::Huber(delta) => {
                let delta = T::of(delta);
                let scores = scores.chunks_exact(width);
                for (r, (z, a)) in scores.zip(tangents.chunks_exact_mut(width)).enumerate() {
                    let (goal, weight) = each(r);
                    let near = |z: T, t: T| if (z - t).abs() <= delta { weight } else { T::zero() };
                    let pairs = z.iter().zip(goal.numbers());
                    a.iter_mut().zip(pairs).for_each(|(a, (&z, &t))| *a *= near(z, t));
                }
            }
        }
    }

    /// The mean over rows of ∂²ℓ/∂z_c², for every column c, or a bound of it; the scores z are overwritten.
    pub fn mean_curvatures<'a, T: Real>(
        self,
        scores: &mut [T],
        width: usize,
        each: impl Fn(usize) -> (Goal<'a, T>, T),
    ) -> Vec<T> {
        match self {
            Loss::Logistic => Level::best().sigmoid(scores),
            Loss::Softmax => Level::best().softmax(scores, width),
            Loss::Squared | Loss::Huber(_) | Loss::Cox => {}
        }
        let mut mean = vec![T::zero(); width];
        for (r, z) in scores.chunks_exact(width).enumerate() {
            match self {
                Loss::Logistic | Loss::Softmax => {
                    update(&mut mean, [z], |sum, [p]| sum + p * (T::one() - p));
                }
                Loss::Squared => update(&mut mean, [], |sum, []| sum + T::one()),
                Loss::Cox => {
                    // Σ_k e^{z_k} Σ_{i: k ∈ R_i} 1/S_i is 1 for each event.
                    let event = T::of(f64::from(each(r).0.event()));
                    update(&mut mean, [], |sum, []| sum + event);
                }
                Loss::Huber(delta) => {
                    let near = |z: T, t: T| T::of(f64::from((z - t).abs() <= T::of(delta)));
                    let pairs = z.iter().zip(each(r).0.numbers());
                    mean.iter_mut().zip(pairs).for_each(|(sum, (&z, &t))| *sum += near(z, t));
                }
            }
        }
        let rows = T::of((scores.len() / width.max(1)) as f64);
        update(&mut mean, [], |sum, []| sum / rows);
        mean
    }
}

/// The class with the highest score, the first of several; one column stands for two classes.
pub fn decide<T: Real>(z: &[T]) -> u32 {
    match z {
        [z] => u32::from(*z < T::zero()),
        _ => (1..z.len()).fold(0, |best, c| if z[c] > z[best] { c } else { best }) as u32,
    }
}

/// 1 / (1 + e^{−z}).
pub fn sigmoid<T: Real>(z: T) -> T {
    let mut z = [z];
    Level::best().sigmoid(&mut z);
    z[0]
}

/// log(1 + e^z), without overflow for large z.
fn softplus<T: Real>(z: T) -> T {
    z.max(T::zero()) + (-z.abs()).exp().ln_1p()
}

fn highest<T: Real>(z: &[T]) -> T {
    z.iter().copied().fold(T::neg_infinity(), T::max)
}

fn half<T: Real>() -> T {
    T::of(0.5)
}
