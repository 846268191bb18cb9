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
//! The start is left open: y⁰ = z⁰ keeps mean(y) = mean(z) in (12) at all times. `global.rs` has
//! the global scope. Steps that are not given are found: `parts/steps.rs`.

mod global;
use super::parts::loopless::loopless_params;
use super::prelude::*;
use super::update_rule::{UpdateRule, XUpdate};
use global::Agreed;

loopless_params! {
    /// LoPA's step sizes.
    pub struct LopaParams {
        /// Momentum weight of z; 1 switches the momentum off.
        gamma: Schedule = 0.4, weight;
        /// Relaxation of x; 1 switches the relaxation off.
        tau: Schedule = 0.4, weight;
        /// z⁰: the first estimate s⁰, or zero.
        start: StartZ = StartZ::Estimate;
        /// Global scope: whether θ and v are mixed with (W + I)/2; by default where `steps` finds the
        /// step sizes of tracked θ and v, which need it.
        lazy: Option<bool> = None;
    }
}

choices! {
    /// How z starts.
    pub enum StartZ {
        /// z⁰ = s⁰
        Estimate,
        /// z⁰ = 0
        Zero,
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

/// Metadata of LoPA-GT.
pub const TRACKING: Facts = Facts {
    source: "Niu et al., JMLR 26(76), 2025 [V]; global scope ours [D]",
    complexity: "ε⁻²",
    needs_lazy: true,
    steps: &[
        ("beta", &["theta", "d", "y_theta"]),
        ("lambda", &["v", "h", "y_v"]),
        ("alpha", &["x", "y", "z", "s"]),
    ],
    finds_steps: true,
    ..Facts::LOOPLESS
};

/// Metadata of LoPA-LG.
pub const LOCAL: Facts = Facts { assumes: "bounded dissimilarity", needs_lazy: false, ..TRACKING };

/// Metadata of LoPA's updates alone.
pub const ALONE: Facts = Facts {
    source: "ours, a baseline",
    scopes: &[Scope::Personal],
    steps: &[("beta", &["theta", "d"]), ("lambda", &["v", "h"]), ("alpha", &["x", "y", "z", "s"])],
    finds_steps: true,
    ..Facts::LOOPLESS
};

/// LoPA with its parameters.
pub struct Lopa {
    /// Where the direction of x comes from.
    pub scheme: Scheme,
    /// The step sizes.
    pub params: LopaParams,
}

impl Method for Lopa {
    fn cost(&self, _: Task) -> Cost {
        Cost::loopless().probing(self.params.given().measures())
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let (scheme, params) = (self.scheme, self.params.clone());
        let point = Loopless::start(start, FIVE, params.given(), params.estimate)?; // (6) – (8)
        let z = match params.start {
            StartZ::Estimate => point.now.s.to_vec(),
            StartZ::Zero => vec![T::zero(); point.x.len()],
        };
        let agreed = Agreed::both(&point, scheme, &params);
        Ok(Box::new(LopaNode { scheme, params, point, y: z.clone(), z, agreed }))
    }
}

struct LopaNode<T> {
    scheme: Scheme,
    params: LopaParams,
    point: Loopless<T>, // x, θ, v, with d of θ, h of v, and s, the estimate of ∇Φ_i
    z: Vec<T>,          // moving average of s
    y: Vec<T>,          // direction of x
    agreed: [Agreed<T>; 2], // global scope: of θ and of v
}

impl<T: Real> Algorithm<T> for LopaNode<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let LopaNode { scheme, point, y, agreed: [of_theta, of_v], .. } = self;
        if *scheme != Scheme::Alone {
            point.steps.share(out);
        }
        out.vector_if(*scheme != Scheme::Alone, "x", &point.x);
        out.vector_if(*scheme == Scheme::GradientTracking, "y", y);
        of_theta.share(["theta", "y_theta"], &point.theta, out);
        of_v.share(["v", "y_v"], &point.v, out);
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let LopaNode { scheme, params, point, z, y, agreed: [of_theta, of_v] } = self;
        let Loopless { scope, x, theta, v, now: DirectionBuffers { d, h, s, .. }, steps } = point;
        if *scheme != Scheme::Alone {
            steps.mix(&mut mixed);
        }
        let k = oracle.k();
        let [gamma, tau] = [params.gamma, params.tau].map(|weight| T::of(weight.at(k)));
        let [beta, lambda, alpha] = [steps.beta(k, d), steps.lambda(k, h), steps.outer(k, y, tau)];
        let average = |z: T, [s]: [T; 1]| s + (T::one() - gamma) * (z - s);
        let relaxed = |x: T, [wx, y]: [T; 2]| (T::one() - tau) * x + tau * (wx - alpha * y);
        match scheme {
            Scheme::GradientTracking => {
                mixed.each_piece([x, y], [z], [s], |[wx, wy], [x, y], [z], [s]| {
                    update(x, [wx, y], relaxed); // (10)
                    update(y, [wy, s, z], |_, [wy, s, z]| wy + average(z, [s]) - z); // (12)
                    update(z, [s], average); // (9)
                });
            }
            Scheme::LocalGradient => {
                mixed.each_piece([x], [z, y], [s], |[wx], [x], [z, y], [s]| {
                    update(x, [wx, y], relaxed); // (10)
                    update(z, [s], average); // (9)
                    y.copy_from_slice(z); // (11)
                });
            }
            Scheme::Alone => mixed.each_piece([], [x, z, y], [s], |[], [], [x, z, y], [s]| {
                update(x, [y], |x, [y]| x - tau * alpha * y); // (10) with W = I
                update(z, [s], average); // (9)
                y.copy_from_slice(z); // (11)
            }),
        }
        match scope {
            Scope::Personal => {
                update(theta, [d], |theta, [d]| theta - beta * d); // (4)
                update(v, [h], |v, [h]| v - lambda * h); // (5)
            }
            Scope::Global => {
                of_theta.step(&mut mixed, theta, d, beta); // (4')
                of_v.step(&mut mixed, v, h, lambda); // (5')
            }
        }
        steps.leave([d, h]);
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        Some(self.point.asks()) // (6) – (8)
    }

    fn finish(&mut self, _: usize, oracle: &mut Oracle<T>) {
        let LopaNode { point, agreed: [of_theta, of_v], .. } = self;
        of_theta.finish(&point.now.d);
        of_v.finish(&point.now.h);
        point.look(oracle);
    }

    fn at(&self) -> At<'_, T> {
        self.point.at()
    }

    variables! { LopaNode { point, z, y, agreed: [of_theta, of_v], .. } =>
        "theta": point.theta, "d": point.now.d, "y_theta": of_theta.y, "v": point.v, "h": point.now.h,
        "y_v": of_v.y, "s": point.now.s, "z": z, "y": y, "x": point.x, "rule": point.steps.rule,
        "mean_theta": point.steps.mean, "table": point.now.saga.values,
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let x = match self.scheme {
            Scheme::GradientTracking => XUpdate::Tracking,
            Scheme::LocalGradient => XUpdate::Local,
            Scheme::Alone => XUpdate::Alone,
        };
        let usual = self.point.rule(x, [self.params.gamma, self.params.tau])?;
        Ok(match self.point.scope {
            Scope::Personal => UpdateRule::Usual(Box::new(usual)),
            Scope::Global => UpdateRule::Listed(global::rule(usual, self.agreed[0].lazy)?),
        })
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        (self.scheme == Scheme::GradientTracking).then_some((&self.y[..], &self.z[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("y", Some("z")), ("y_theta", Some("d")), ("y_v", Some("h"))])
    }
}
