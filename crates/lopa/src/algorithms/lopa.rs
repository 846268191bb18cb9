//! LoPA (Niu, Xu, Sun, Huang, Chai, *Journal of Machine Learning Research* 26(76), 2025).
//!
//! ```text
//! (4)  θ⁺ = θ − β d
//! (5)  v⁺ = v − λ h
//! (10) x⁺ = (1 − τ) x + τ (Σ_j w_ij x_j − α y)
//! (9)  z⁺ = s + (1 − γ)(z − s)
//! (11) y⁺ = z⁺                                 local gradient (LoPA-LG)
//! (12) y⁺ = Σ_j w_ij y_j + z⁺ − z              gradient tracking (LoPA-GT)
//! (6)  d⁺ = ∇_θ ĝ(x⁺, θ⁺; ξ₁)
//! (7)  h⁺ = ∇²_θθ ĝ(x⁺, θ⁺; ξ₂) v⁺ − ∇_θ f̂(x⁺, θ⁺; ς₁)
//! (8)  s⁺ = ∇_x f̂(x⁺, θ⁺; ς₂) − ∇²_xθ ĝ(x⁺, θ⁺; ξ₃) v⁺
//! ```
//!
//! The paper lists (9) after (8), but its s is the one of the point just left: so (9) comes first
//! here. N_i is printed without i; W is doubly stochastic only with it, so sums include the node.
//! The start is left open: y⁰ = z⁰ keeps mean(y) = mean(z) in (12) for ever.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parts::directions::Directions;
use super::{Algorithm, Facts, Start};
use crate::config::registry::{Fault, Params};
use crate::error::Result;
use crate::math::real::{Real, update};
use crate::math::schedule::Schedule;
use crate::network::mixed::{Mixed, cut};
use crate::problem::At;
use crate::problem::oracle::{FIVE, Oracle};
use crate::problem::scope::Scope;

/// LoPA's step sizes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LopaParams {
    /// Step size of x.
    pub alpha: Schedule,
    /// Step size of θ.
    pub beta: Schedule,
    /// Step size of v.
    pub lambda: Schedule,
    /// Momentum weight of z; 1 switches the momentum off.
    #[serde(default = "two_fifths")]
    pub gamma: Schedule,
    /// Relaxation of x; 1 switches the relaxation off.
    #[serde(default = "two_fifths")]
    pub tau: Schedule,
    /// z⁰: the first estimate s⁰, or zero.
    #[serde(default)]
    pub start: StartZ,
}

/// How z begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartZ {
    /// z⁰ = s⁰
    #[default]
    Estimate,
    /// z⁰ = 0
    Zero,
}

fn two_fifths() -> Schedule {
    Schedule::Constant(0.4)
}

impl Params for LopaParams {
    fn check(&self) -> std::result::Result<(), Fault> {
        self.alpha.check("alpha")?;
        self.beta.check("beta")?;
        self.lambda.check("lambda")?;
        self.gamma.check_weight("gamma")?;
        self.tau.check_weight("tau")
    }
}

/// Where the direction of x comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// (11)
    LocalGradient,
    /// (12)
    GradientTracking,
    /// (11) with W = I: nothing is shared.
    Alone,
}

/// What is worth knowing of LoPA.
pub fn facts(scheme: Scheme) -> Facts {
    Facts {
        source: match scheme {
            Scheme::Alone => "ours, a baseline",
            _ => "Niu et al., JMLR 26(76), 2025 [V]; global scope ours [D]",
        },
        scopes: match scheme {
            Scheme::Alone => &[Scope::Personal],
            _ => Scope::BOTH,
        },
        sends: match scheme {
            Scheme::LocalGradient => "x (+ θ, v)",
            Scheme::GradientTracking => "x, y (+ θ, yθ, v, yv)",
            Scheme::Alone => "nothing",
        },
        floats: match scheme {
            Scheme::LocalGradient => ["n", "n + 2p"],
            Scheme::GradientTracking => ["2n", "2n + 4p"],
            Scheme::Alone => ["0", "–"],
        },
        complexity: if scheme == Scheme::Alone { "–" } else { "ε⁻²" },
        assumes: match scheme {
            Scheme::LocalGradient => "bounded dissimilarity",
            _ => "none",
        },
        needs_lazy: scheme == Scheme::GradientTracking,
        steps: &[
            ("theta", "beta"),
            ("d", "beta"),
            ("v", "lambda"),
            ("h", "lambda"),
            ("x", "alpha"),
            ("y", "alpha"),
            ("z", "alpha"),
            ("s", "alpha"),
        ],
        ..Facts::LOOPLESS
    }
}

struct Lopa<T> {
    scheme: Scheme,
    params: LopaParams,
    x: Vec<T>,
    theta: Vec<T>,
    v: Vec<T>,          // tracks [∇²_θθ g]⁻¹ ∇_θ f
    now: Directions<T>, // d of θ, h of v, and s, the estimate of ∇Φ_i
    z: Vec<T>,          // moving average of s
    y: Vec<T>,          // direction of x
}

/// A node that runs LoPA.
pub fn start<T: Real>(
    scheme: Scheme,
    params: LopaParams,
    Start { x, theta, v, oracle, .. }: Start<T>,
) -> Result<Box<dyn Algorithm<T>>> {
    let mut now = Directions::new(x.len(), theta.len(), FIVE);
    now.evaluate(At { x: &x, theta: &theta }, &v, oracle); // (6)–(8)
    let z = match params.start {
        StartZ::Estimate => now.s.clone(),
        StartZ::Zero => vec![T::zero(); x.len()],
    };
    let y = z.clone();
    Ok(Box::new(Lopa { scheme, params, x, theta, v, now, z, y }))
}

impl<T: Real> Algorithm<T> for Lopa<T> {
    fn share(&self, _: usize, message: &mut Vec<T>) {
        if self.scheme != Scheme::Alone {
            message.extend_from_slice(&self.x);
        }
        if self.scheme == Scheme::GradientTracking {
            message.extend_from_slice(&self.y);
        }
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let k = oracle.k();
        let now = |schedule: &Schedule| T::of(schedule.at(k));
        let LopaParams { alpha, beta, lambda, gamma, tau, .. } = &self.params;
        let (alpha, beta, lambda) = (now(alpha), now(beta), now(lambda));
        let (gamma, tau, one) = (now(gamma), now(tau), T::one());
        let relaxed = |x, wx, y| (one - tau) * x + tau * (wx - alpha * y);
        let average = |s, z| s + (one - gamma) * (z - s);

        let Lopa { scheme, x, theta, v, now: Directions { d, h, s, .. }, z, y, .. } = self;
        update(theta, [d], |theta, [d]| theta - beta * d); // (4)
        update(v, [h], |v, [h]| v - lambda * h); // (5)
        for at in cut(x.len()) {
            let (start, s) = (at.start, &s[at.clone()]);
            let (x, y, z) = (&mut x[at.clone()], &mut y[at.clone()], &mut z[at]);
            match scheme {
                Scheme::Alone => update(x, [y], |x, [y]| x - tau * alpha * y),
                Scheme::LocalGradient => {
                    let [wx] = mixed.piece(start, [x]);
                    update(x, [wx, y], |x, [wx, y]| relaxed(x, wx, y)); // (10)
                }
                Scheme::GradientTracking => {
                    let [wx, wy] = mixed.piece(start, [x, y]);
                    update(x, [wx, y], |x, [wx, y]| relaxed(x, wx, y)); // (10)
                    update(y, [wy, s, z], |_, [wy, s, z]| wy + average(s, z) - z); // (12)
                }
            }
            update(z, [s], |z, [s]| average(s, z)); // (9)
            if *scheme != Scheme::GradientTracking {
                y.copy_from_slice(z); // (11)
            }
        }
        self.now.evaluate(At { x: &self.x, theta: &self.theta }, &self.v, oracle); // (6)–(8)
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { Lopa { x, theta, v, now, z, y, .. } =>
        "theta": theta, "d": now.d, "v": v, "h": now.h, "s": now.s, "z": z, "y": y, "x": x,
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        (self.scheme == Scheme::GradientTracking).then_some((&self.y[..], &self.z[..]))
    }
}
