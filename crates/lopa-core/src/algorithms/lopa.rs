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
use super::parts::steps::loopless_params;
use super::prelude::*;
use super::update_rule::{UpdateRule, UsualRule, XUpdate};
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
        /// How the terms of d, h and s are estimated from minibatches; by default `plain`.
        #[serde(skip_serializing_if = "Estimate::is_plain")]
        estimate: Estimate = Estimate::Plain;
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

/// What alpha drives.
const OF_X: &[&str] = &["x", "y", "z", "s"];

/// Metadata of LoPA.
pub fn facts(scheme: Scheme) -> Facts {
    let alone = scheme == Scheme::Alone;
    let published = "Niu et al., JMLR 26(76), 2025 [V]; global scope ours [D]";
    Facts {
        source: if alone { "ours, a baseline" } else { published },
        scopes: if alone { &[Scope::Personal] } else { Scope::BOTH },
        complexity: if alone { "–" } else { "ε⁻²" },
        assumes: if scheme == Scheme::LocalGradient { "bounded dissimilarity" } else { "none" },
        needs_lazy: scheme == Scheme::GradientTracking,
        steps: match alone {
            true => &[("beta", &["theta", "d"]), ("lambda", &["v", "h"]), ("alpha", OF_X)],
            false => &[
                ("beta", &["theta", "d", "y_theta"]),
                ("lambda", &["v", "h", "y_v"]),
                ("alpha", OF_X),
            ],
        },
        finds_steps: true,
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
        Cost::loopless().probing(self.params.given().measures())
    }

    fn start<T: Real>(&self, mut start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let now = start.estimated(FIVE, self.params.estimate)?; // (6) – (8)
        let Start { x, theta, v, scope, oracle, .. } = start;
        let z = match self.params.start {
            StartZ::Estimate => now.s.to_vec(),
            StartZ::Zero => vec![T::zero(); x.len()],
        };
        let (y, scheme, params) = (z.clone(), self.scheme, self.params.clone());
        let (at, directions) = (At { x: &x, theta: &theta }, [&now.d[..], &now.h]);
        let steps = Steps::start(params.given(), scope, at, (&v, XI2), directions, oracle);
        let tracks = scheme == Scheme::GradientTracking;
        let lazy = params.lazy.unwrap_or(tracks && steps.finds_inner());
        let [of_theta, of_v] = [&now.d, &now.h].map(|q| Agreed::new(scope, lazy, q));
        Ok(Box::new(LopaNode {
            scheme,
            params,
            scope,
            steps,
            x,
            theta,
            v,
            now,
            z,
            y,
            of_theta,
            of_v,
        }))
    }
}

struct LopaNode<T> {
    scheme: Scheme,
    params: LopaParams,
    scope: Scope,
    steps: Steps<T>,
    x: Vector<T>,
    theta: Vector<T>,
    v: Vector<T>,             // tracks [∇²_θθ g]⁻¹ ∇_θ f
    now: DirectionBuffers<T>, // d of θ, h of v, and s, the estimate of ∇Φ_i
    z: Vec<T>,                // moving average of s
    y: Vec<T>,                // direction of x
    of_theta: Agreed<T>,      // global scope
    of_v: Agreed<T>,          // global scope
}

impl<T: Real> LopaNode<T> {
    /// (9) to (12)
    fn step_x(&mut self, k: u64, mixed: &mut Mixed<T>) {
        let LopaNode { scheme, params, steps, x, z, y, now: DirectionBuffers { s, .. }, .. } = self;
        let [gamma, tau] = [params.gamma, params.tau].map(|weight| T::of(weight.at(k)));
        let alpha = steps.outer(k, y, tau);
        let average = |s, z| s + (T::one() - gamma) * (z - s);
        let relaxed = |x, wx, y| (T::one() - tau) * x + tau * (wx - alpha * y);
        match scheme {
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
    }
}

impl<T: Real> Algorithm<T> for LopaNode<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let tracks = self.scheme == Scheme::GradientTracking;
        let global = self.scope == Scope::Global;
        if self.scheme != Scheme::Alone {
            self.steps.share(out);
        }
        out.vector_if(self.scheme != Scheme::Alone, "x", &self.x);
        out.vector_if(tracks, "y", &self.y);
        out.vector_if(global, "theta", &self.theta);
        out.vector_if(tracks, "y_theta", &self.of_theta.y);
        out.vector_if(global, "v", &self.v);
        out.vector_if(tracks, "y_v", &self.of_v.y);
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let (k, tracks) = (oracle.k(), self.scheme == Scheme::GradientTracking);
        if self.scheme != Scheme::Alone {
            self.steps.mix(&mut mixed);
        }
        let (beta, lambda) = (self.steps.beta(k, &self.now.d), self.steps.lambda(k, &self.now.h));
        self.step_x(k, &mut mixed);
        let LopaNode { theta, v, now: DirectionBuffers { d, h, .. }, of_theta, of_v, .. } = self;
        match self.scope {
            Scope::Personal => {
                update(theta, [d], |theta, [d]| theta - beta * d); // (4)
                update(v, [h], |v, [h]| v - lambda * h); // (5)
            }
            Scope::Global => {
                of_theta.step(tracks, &mut mixed, theta, d, beta); // (4')
                of_v.step(tracks, &mut mixed, v, h, lambda); // (5')
            }
        }
        self.steps.leave([&self.now.d, &self.now.h]);
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        let LopaNode { x, theta, v, now, steps, .. } = self;
        Some(now.at(At { x, theta }, v).noting(steps.hess())) // (6) – (8)
    }

    fn finish(&mut self, _: usize, oracle: &mut Oracle<T>) {
        let LopaNode { x, theta, v, now: DirectionBuffers { d, h, .. }, steps, .. } = self;
        let tracks = self.scheme == Scheme::GradientTracking;
        self.of_theta.finish(tracks, d);
        self.of_v.finish(tracks, h);
        steps.look(At { x, theta }, (v, XI2), [d, h], oracle);
    }

    fn mean_theta(&self) -> Option<&[T]> {
        self.steps.mean()
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { LopaNode { x, theta, v, now, z, y, of_theta, of_v, steps, .. } =>
        "theta": theta, "d": now.d, "y_theta": of_theta.y, "v": v, "h": now.h, "y_v": of_v.y,
        "s": now.s, "z": z, "y": y, "x": x, "rule": steps.rule, "mean_theta": steps.mean,
        "table": now.saga.values,
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let x = match self.scheme {
            Scheme::GradientTracking => XUpdate::Tracking,
            Scheme::LocalGradient => XUpdate::Local,
            Scheme::Alone => XUpdate::Alone,
        };
        let LopaParams { alpha, beta, lambda, gamma, tau, estimate, .. } = self.params;
        estimate.on_device()?;
        let finder = self.steps.finder();
        let usual = UsualRule { x, alpha, beta, lambda, finder, gamma, tau, draws: FIVE };
        Ok(match self.scope {
            Scope::Personal => UpdateRule::Usual(Box::new(usual)),
            Scope::Global => UpdateRule::Listed(global::rule(usual, self.of_theta.lazy)?),
        })
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        (self.scheme == Scheme::GradientTracking).then_some((&self.y[..], &self.z[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("y", Some("z")), ("y_theta", Some("d")), ("y_v", Some("h"))])
    }
}
