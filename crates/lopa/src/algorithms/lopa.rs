//! LoPA (Niu, Xu, Sun, Huang, Chai, *Journal of Machine Learning Research* 26(76), 2025).
//!
//! ```text
//! (4)  θ⁺ = θ − β d
//! (5)  v⁺ = v − λ h
//! (10) x⁺ = (1 − τ) x + τ (Σ_j w_ij x_j − α y)
//! (9)  z⁺ = s + (1 − γ)(z − s)
//! (11) y⁺ = z⁺                                 local gradients (LoPA-LG)
//! (12) y⁺ = Σ_j w_ij y_j + z⁺ − z              gradient tracking (LoPA-GT)
//! (6)  d⁺ = ∇_θ ĝ(x⁺, θ⁺; ξ₁)
//! (7)  h⁺ = ∇²_θθ ĝ(x⁺, θ⁺; ξ₂) v⁺ − ∇_θ f̂(x⁺, θ⁺; ς₁)
//! (8)  s⁺ = ∇_x f̂(x⁺, θ⁺; ς₂) − ∇²_xθ ĝ(x⁺, θ⁺; ξ₃) v⁺
//! ```
//!
//! The paper lists (9) after (8), but its s is that of the point just left, so (9) comes first
//! here. N_i is printed without i; W is doubly stochastic only with it, so sums include the node.
//! The start is left open: y⁰ = z⁰ keeps mean(y) = mean(z) in (12) for ever.
//!
//! In the global scope, which is ours and not the paper's \[D\], θ and v are mixed, too:
//!
//! ```text
//!        local gradients                      gradient tracking
//! (4')   θ⁺ = Σ_j w_ij θ_j − β d              θ⁺ = Σ_j w_ij θ_j − β yθ,  yθ⁺ = Σ_j w_ij yθ_j + d⁺ − d
//! (5')   v⁺ = Σ_j w_ij v_j − λ h              v⁺ = Σ_j w_ij v_j − λ yv,  yv⁺ likewise with h
//! ```
//!
//! With tracking, the means of yθ and yv are those of d and h, so that the mean v solves the system
//! of the mean Hessian, and the limit is exact. Local gradients have a bias of the order of their
//! steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::{Cost, Task};
use super::update_rule::{UpdateRule, XUpdate};
use super::parts::consensus::add_change;
use super::parts::directions::DirectionBuffers;
use super::{Algorithm, Facts, Method, Start};
use crate::config::Params;
use crate::error::{Fault, Result};
use crate::math::real::{Real, Vector, update};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::network::outbox::{Outbox, Round};
use crate::problem::At;
use crate::problem::oracle::{FIVE, Oracle, DirectionRequest};
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

/// How z starts.
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

impl Default for LopaParams {
    fn default() -> LopaParams {
        LopaParams {
            alpha: 0.02.into(),
            beta: 0.5.into(),
            lambda: 0.5.into(),
            gamma: two_fifths(),
            tau: two_fifths(),
            start: StartZ::Estimate,
        }
    }
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

/// Metadata of LoPA.
pub fn facts(scheme: Scheme) -> Facts {
    let (published, both) =
        ("Niu et al., JMLR 26(76), 2025 [V]; global scope ours [D]", Scope::BOTH);
    let (source, scopes, complexity, assumes) = match scheme {
        Scheme::LocalGradient => (published, both, "ε⁻²", "bounded dissimilarity"),
        Scheme::GradientTracking => (published, both, "ε⁻²", "none"),
        Scheme::Alone => ("ours, a baseline", &[Scope::Personal][..], "–", "none"),
    };
    Facts {
        source,
        scopes,
        complexity,
        assumes,
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

/// LoPA with its parameters.
pub struct Lopa {
    /// Where the direction of x comes from.
    pub scheme: Scheme,
    /// The step sizes.
    pub params: LopaParams,
}

impl Method for Lopa {
    fn cost(&self, _: Task) -> Cost {
        Cost::loopless()
    }

    fn start<T: Real>(&self, mut start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Lopa { scheme, params } = self;
        let now = start.directions(FIVE); // (6) – (8)
        let Start { x, theta, v, scope, .. } = start;
        let z = match params.start {
            StartZ::Estimate => now.s.to_vec(),
            StartZ::Zero => vec![T::zero(); x.len()],
        };
        let global = |vector: &[T]| match scope {
            Scope::Personal => Vec::new(),
            Scope::Global => vector.to_vec(),
        };
        let (y_theta, y_v) = (global(&now.d), global(&now.h));
        let (old_d, old_h) = (y_theta.clone(), y_v.clone());
        let (y, scheme, params) = (z.clone(), *scheme, params.clone());
        let node =
            LopaNode { scheme, params, scope, x, theta, v, now, z, y, y_theta, y_v, old_d, old_h };
        Ok(Box::new(node))
    }
}

struct LopaNode<T> {
    scheme: Scheme,
    params: LopaParams,
    scope: Scope,
    x: Vector<T>,
    theta: Vector<T>,
    v: Vector<T>,       // tracks [∇²_θθ g]⁻¹ ∇_θ f
    now: DirectionBuffers<T>, // d of θ, h of v, and s, the estimate of ∇Φ_i
    z: Vec<T>,          // moving average of s
    y: Vec<T>,          // direction of x
    y_theta: Vec<T>,    // direction of θ; empty in the personal scope, as are the next three
    y_v: Vec<T>,        // direction of v
    old_d: Vec<T>,      // d of the point just left
    old_h: Vec<T>,      // h of the point just left
}

impl<T: Real> Algorithm<T> for LopaNode<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let tracks = self.scheme == Scheme::GradientTracking;
        let global = self.scope == Scope::Global;
        out.vector_if(self.scheme != Scheme::Alone, "x", &self.x);
        out.vector_if(tracks, "y", &self.y);
        out.vector_if(global, "theta", &self.theta);
        out.vector_if(global && tracks, "y_theta", &self.y_theta);
        out.vector_if(global, "v", &self.v);
        out.vector_if(global && tracks, "y_v", &self.y_v);
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let k = oracle.k();
        let LopaParams { alpha, beta, lambda, gamma, tau, .. } = &self.params;
        let [alpha, beta, lambda] = [alpha, beta, lambda].map(|step| T::of(step.at(k)));
        let [gamma, tau] = [gamma, tau].map(|weight| T::of(weight.at(k)));
        let relaxed = |x, wx, y| (T::one() - tau) * x + tau * (wx - alpha * y);
        let average = |s, z| s + (T::one() - gamma) * (z - s);

        let LopaNode { x, theta, v, now: DirectionBuffers { d, h, s, .. }, z, y, .. } = self;
        match self.scheme {
            Scheme::GradientTracking => {
                mixed.each_piece([x, y], [z], [s], |[wx, wy], [x, y], [z], [s]| {
                    update(x, [wx, y], |x, [wx, y]| relaxed(x, wx, y)); // (10)
                    update(y, [wy, s, z], |_, [wy, s, z]| wy + average(s, z) - z); // (12)
                    update(z, [s], |z, [s]| average(s, z)); // (9)
                });
            }
            Scheme::LocalGradient => {
                mixed.each_piece([x], [z, y], [s], |[wx], [x], [z, y], [s]| {
                    update(x, [wx, y], |x, [wx, y]| relaxed(x, wx, y)); // (10)
                    update(z, [s], |z, [s]| average(s, z)); // (9)
                    y.copy_from_slice(z); // (11)
                });
            }
            Scheme::Alone => {
                mixed.each_piece([], [x, z, y], [s], |[], [], [x, z, y], [s]| {
                    update(x, [y], |x, [y]| x - tau * alpha * y); // (10) with W = I
                    update(z, [s], |z, [s]| average(s, z)); // (9)
                    y.copy_from_slice(z); // (11)
                });
            }
        }
        if self.scope == Scope::Personal {
            update(theta, [d], |theta, [d]| theta - beta * d); // (4)
            update(v, [h], |v, [h]| v - lambda * h); // (5)
            return;
        }
        let tracks = self.scheme == Scheme::GradientTracking;
        let inner = [
            (theta, &mut self.y_theta, &mut self.old_d, &*d, beta), // (4')
            (v, &mut self.y_v, &mut self.old_h, &*h, lambda),       // (5')
        ];
        for (theta, y, old, d, beta) in inner {
            old.copy_from_slice(d);
            if tracks {
                mixed.each_piece([theta, y], [], [], |[wt, wy], [theta, y], [], []| {
                    update(theta, [wt, y], |_, [wt, y]| wt - beta * y);
                    y.copy_from_slice(wy);
                });
            } else {
                mixed.each_piece([theta], [], [y], |[wt], [theta], [], [y]| {
                    update(theta, [wt, y], |_, [wt, y]| wt - beta * y);
                });
            }
        }
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        Some(self.now.at(At { x: &self.x, theta: &self.theta }, &self.v)) // (6) – (8)
    }

    fn finish(&mut self, _: usize) {
        let DirectionBuffers { d, h, .. } = &self.now;
        for (y, new, old) in [(&mut self.y_theta, d, &self.old_d), (&mut self.y_v, h, &self.old_h)]
        {
            match (self.scope, self.scheme) {
                (Scope::Personal, _) => {}
                (Scope::Global, Scheme::GradientTracking) => {
                    add_change(y, new, old);
                }
                (Scope::Global, _) => y.copy_from_slice(new),
            }
        }
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { LopaNode { x, theta, v, now, z, y, y_theta, y_v, .. } =>
        "theta": theta, "d": now.d, "y_theta": y_theta, "v": v, "h": now.h, "y_v": y_v, "s": now.s,
        "z": z, "y": y, "x": x,
    }

    fn update_rule(&self) -> std::result::Result<UpdateRule, &'static str> {
        if self.scope == Scope::Global {
            return Err("devices serve the personal scope only");
        }
        let x = match self.scheme {
            Scheme::GradientTracking => XUpdate::Tracking,
            Scheme::LocalGradient => XUpdate::Local,
            Scheme::Alone => XUpdate::Alone,
        };
        let LopaParams { alpha, beta, lambda, gamma, tau, .. } = self.params;
        Ok(UpdateRule { x, alpha, beta, lambda, gamma, tau, draws: FIVE })
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        (self.scheme == Scheme::GradientTracking).then_some((&self.y[..], &self.z[..]))
    }
}
