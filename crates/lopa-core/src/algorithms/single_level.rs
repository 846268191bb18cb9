//! Single-level companions of DGD that are exact where nodes differ [K: standard forms].
//!
//! ```text
//! w = θ, or (θ, x) where the problem says so;   q = ∇ĝ(w; ξ)
//!
//! gradient tracking   w⁺ = Σ_j w_ij w_j − α y,    y⁺ = Σ_j w_ij y_j + q⁺ − q,    y⁰ = q⁰
//! EXTRA               w¹ = W w⁰ − α⁰ q⁰,   wᵏ⁺¹ = 2 V wᵏ − V wᵏ⁻¹ − (αᵏ qᵏ − αᵏ⁻¹ qᵏ⁻¹)
//! exact diffusion     ψ⁺ = w − α q,   φ⁺ = ψ⁺ + w − ψ,   w⁺ = V φ⁺,   ψ⁰ = w⁰
//! both with           V = (I + W) / 2
//! ```
//!
//! EXTRA's old gradient keeps its old step: the sum over all iterations is then that of αᵏ qᵏ,
//! which vanishes only at the solution. With the current step instead, a schedule would converge to
//! another point. A step that is not given is found as DGD's, and gradient tracking then mixes with V.
//!
//! Gradient tracking: Di Lorenzo and Scutari 2016, Nedić et al. 2017, with stochastic gradients
//! Pu and Nedić 2021. EXTRA: Shi, Ling, Wu, Yin 2015. Exact diffusion: Yuan, Ying, Zhao, Sayed
//! 2019.

use super::dgd::{Curve, DgdParams, gradient, single, single_level_cost, single_steps};
use super::prelude::*;
use super::update_rule::{Evaluation, ListedRule, Stage, Sum, UpdateRule, mixed, own, sum};

/// Which companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Gradient tracking.
    GradientTracking,
    /// EXTRA.
    Extra,
    /// Exact diffusion.
    ExactDiffusion,
}

/// Metadata of the companions.
pub fn facts(scheme: Scheme) -> Facts {
    Facts {
        source: match scheme {
            Scheme::GradientTracking => "Pu and Nedić, Math. Programming 187, 2021 [K]",
            Scheme::Extra => "Shi et al., SIAM J. Optimization 25(2), 2015 [K]",
            Scheme::ExactDiffusion => "Yuan et al., IEEE Trans. Signal Processing 67(3), 2019 [K]",
        },
        complexity: match scheme {
            Scheme::GradientTracking => "ε⁻²",
            _ => "ε⁻¹ (deterministic)",
        },
        assumes: "none",
        messages: match scheme {
            Scheme::GradientTracking => None,
            _ => Some(
                "it is derived for one W that stays: where links fail or messages are compressed, \
                 nothing is known of it",
            ),
        },
        needs_lazy: scheme == Scheme::GradientTracking,
        fixed_graph: scheme != Scheme::GradientTracking,
        steps: &[("alpha", &["theta", "x", "y"])],
        ..super::dgd::FACTS
    }
}

struct SingleLevelNode<T> {
    scheme: Scheme,
    alpha: Option<Schedule>,
    w: Vec<T>,     // θ, then x
    p: usize,      // length of θ
    moving: usize, // length of the trained part of w: p, or all
    q: Vec<T>,     // ∇ĝ
    q_old: Vec<T>, // of the previous iteration
    y: Vec<T>,     // y, V wᵏ, or φ
    psi: Vec<T>,   // exact diffusion's ψ
    steps: Steps<T>,
    curve: Curve<T>,
}

/// One of them with its parameters.
pub struct SingleLevel {
    /// Which.
    pub scheme: Scheme,
    /// The step size.
    pub params: DgdParams,
}

impl Method for SingleLevel {
    fn cost(&self, task: Task) -> Cost {
        single_level_cost(task).probing(self.params.given().measures())
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let SingleLevel { scheme, params } = self;
        let (scheme, params) = (*scheme, params.clone());
        let Start { theta, oracle, .. } = start;
        let (x, both) = single(&params, start.x, oracle)?;
        let (n, p) = (x.len(), theta.len());
        let moving = if both { p + n } else { p };
        let w = [&theta[..], &x].concat();
        let [q, q_old, y] = [(); 3].map(|()| vec![T::zero(); moving]);
        let psi = w[..moving].to_vec();
        let (steps, curve) = single_steps(&params, At { x: &x, theta: &theta }, moving, oracle);
        let mut node = SingleLevelNode {
            scheme,
            alpha: params.alpha,
            w,
            p,
            moving,
            q,
            q_old,
            y,
            psi,
            steps,
            curve,
        };
        match scheme {
            Scheme::GradientTracking => {
                node.evaluate(oracle);
                node.y.copy_from_slice(&node.q);
            }
            Scheme::Extra => {}
            Scheme::ExactDiffusion => node.adapt(0, oracle),
        }
        Ok(Box::new(node))
    }
}

impl<T: Real> SingleLevelNode<T> {
    /// Evaluates q at w, and keeps the previous one.
    fn evaluate(&mut self, oracle: &mut Oracle<T>) {
        std::mem::swap(&mut self.q, &mut self.q_old);
        let (theta, x) = self.w.split_at(self.p);
        gradient(At { x, theta }, XI1, &mut self.q, oracle);
    }

    /// Measures the curvature by q, in iteration `k`.
    fn measure(&mut self, k: u64, oracle: &mut Oracle<T>) {
        let SingleLevelNode { w, p, q, steps, curve, .. } = self;
        let (theta, x) = w.split_at(*p);
        let at = At { x, theta };
        let product = &mut |draw, w: &[T], out: &mut [T]| curve.product(at, draw, w, out, oracle);
        steps.measure(k, theta, [q, &[]], product);
        steps.leave([q, &[]]);
    }

    /// Exact diffusion's ψ⁺ and φ⁺ of iteration `k`.
    fn adapt(&mut self, k: u64, oracle: &mut Oracle<T>) {
        self.evaluate(oracle);
        self.measure(k, oracle);
        let alpha = self.steps.only(k, &self.q);
        let w = &self.w[..self.moving];
        update(&mut self.y, [w, &self.q, &self.psi], |_, [w, q, psi]| (w - alpha * q) + w - psi);
        update(&mut self.psi, [w, &self.q], |_, [w, q]| w - alpha * q);
    }
}

impl<T: Real> Algorithm<T> for SingleLevelNode<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        self.steps.share(out);
        let (theta, x) = self.w[..self.moving].split_at(self.p);
        let (y_theta, y_x) = self.y.split_at(self.p);
        match self.scheme {
            Scheme::ExactDiffusion => {
                out.vector("theta", y_theta); // φ
                out.vector("x", y_x);
            }
            _ => {
                out.vector("theta", theta);
                out.vector("x", x);
            }
        }
        if self.scheme == Scheme::GradientTracking {
            out.vector("y_theta", y_theta);
            out.vector("y_x", y_x);
        }
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        self.steps.mix(&mut mixed);
        let mut sums = mixed.sums();
        let (k, moving, half) = (oracle.k(), self.moving, T::of(0.5));
        let first = sums.together(2);
        match self.scheme {
            Scheme::GradientTracking => {
                let wy = sums.together(2);
                let alpha = self.steps.only(k, &self.y);
                let lazy = self.steps.given().finds_inner();
                let mix = |own: T, sum: T| if lazy { half * (own + sum) } else { sum };
                let w = &mut self.w[..moving];
                update(w, [first, &self.y], |w, [ww, y]| mix(w, ww) - alpha * y);
                self.evaluate(oracle);
                self.measure(k, oracle);
                let with = [wy, &self.q, &self.q_old];
                update(&mut self.y, with, |y, [wy, q, old]| mix(y, wy) + q - old);
            }
            Scheme::Extra => {
                let [_, last, _] = self.steps.at(k);
                self.evaluate(oracle);
                self.measure(k, oracle);
                let alpha = self.steps.only(k, &self.q);
                let w = &mut self.w[..moving];
                if k > 0 {
                    let before = [first, &self.y, &self.q, &self.q_old];
                    // With a constant step this factor is 1, and does not change the bits.
                    let times = match self.alpha {
                        Some(alpha) => T::of(alpha.at(k - 1) / alpha.at(k)),
                        None => last / alpha,
                    };
                    update(&mut self.psi, [w], |_, [w]| w);
                    update(w, before, |w, [ww, vw, q, old]| {
                        w + ww - vw - alpha * (q - times * old)
                    });
                } else {
                    update(w, [first, &self.q], |_, [ww, q]| ww - alpha * q);
                }
                update(&mut self.y, [&self.psi, first], |_, [w, ww]| half * (w + ww));
            }
            Scheme::ExactDiffusion => {
                update(&mut self.w[..moving], [&self.y, first], |_, [phi, w]| half * (phi + w));
                self.adapt(k + 1, oracle);
            }
        }
    }

    fn at(&self) -> At<'_, T> {
        let (theta, x) = self.w.split_at(self.p);
        At { x, theta }
    }

    fn variables(&self) -> Vec<(&'static str, &[T])> {
        let (theta, x) = self.w.split_at(self.p);
        let SingleLevelNode { y, q, psi, steps: Steps { rule, old: [last, _], mean, .. }, .. } =
            self;
        let own = [("theta", theta), ("x", x), ("y", y), ("q", q), ("psi", psi)];
        let found = [("rule", &rule[..]), ("rule_d", last), ("mean_theta", mean)];
        own.into_iter().chain(found.into_iter().filter(|(_, of)| !of.is_empty())).collect()
    }

    fn variables_mut(&mut self) -> Vec<(&'static str, &mut [T])> {
        let (theta, x) = self.w.split_at_mut(self.p);
        let SingleLevelNode { y, q, psi, steps: Steps { rule, old: [last, _], mean, .. }, .. } =
            self;
        let own = [("theta", theta), ("x", x), ("y", &mut y[..]), ("q", q), ("psi", psi)];
        let found = [("rule", &mut rule[..]), ("rule_d", last), ("mean_theta", mean)];
        own.into_iter().chain(found.into_iter().filter(|(_, of)| !of.is_empty())).collect()
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let [alpha] = UpdateRule::given([self.alpha])?;
        let both = self.moving > self.p;
        let listed = |of: fn(Scheme, Schedule, [&'static str; 5]) -> Vec<Sum>| Stage::Update {
            theta: of(
                self.scheme,
                alpha,
                ["theta", "y_theta", "q_theta", "old_theta", "psi_theta"],
            ),
            x: match both {
                true => of(self.scheme, alpha, ["x", "y_x", "q_x", "old_x", "psi_x"]),
                false => vec![],
            },
        };
        let evaluate = Evaluation::gradient("q_theta", both.then_some("q_x"));
        let stages = vec![listed(before), Stage::Evaluate(evaluate), listed(after)];
        let joined =
            [("y", ["y_theta", "y_x"]), ("q", ["q_theta", "q_x"]), ("psi", ["psi_theta", "psi_x"])];
        let parts = if both { 2 } else { 1 };
        let joined = joined.map(|(name, arrays)| (name, arrays[..parts].to_vec())).to_vec();
        Ok(UpdateRule::Listed(ListedRule { stages, joined, draws: TWO }))
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        (self.scheme == Scheme::GradientTracking).then_some((&self.y[..], &self.q[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        match self.scheme {
            Scheme::GradientTracking => Ok(vec![("y", Some("q"))]),
            Scheme::ExactDiffusion => Ok(vec![("y", Some("psi"))]), // φ = ψ, as at the start
            Scheme::Extra => Err("it is derived for one W that stays"),
        }
    }
}

/// What comes before q⁺ in an iteration, as a list for devices.
fn before(scheme: Scheme, alpha: Schedule, [w, y, q, old, _]: [&'static str; 5]) -> Vec<Sum> {
    let keep = sum(old, [own(q)]);
    let moved = match scheme {
        Scheme::GradientTracking => sum(w, [mixed(w), own(y).by(move |k| -alpha.at(k))]),
        Scheme::Extra => return vec![keep],
        Scheme::ExactDiffusion => sum(w, [own(y).times(0.5), mixed(y).times(0.5)]),
    };
    vec![moved, keep]
}

/// What comes after it.
fn after(scheme: Scheme, alpha: Schedule, [w, y, q, old, psi]: [&'static str; 5]) -> Vec<Sum> {
    let later = |k: u64| f64::from(u8::from(k > 0));
    match scheme {
        Scheme::GradientTracking => vec![sum(y, [mixed(y), own(q), own(old).times(-1.0)])],
        Scheme::Extra => {
            let moved = [
                own(w).by(later),
                mixed(w),
                own(y).by(move |k| -later(k)),
                own(q).by(move |k| -alpha.at(k)),
                own(old).by(move |k| if k > 0 { alpha.at(k - 1) } else { 0.0 }),
            ];
            let half = [own(psi).times(0.5), mixed(w).times(0.5)];
            vec![sum(psi, [own(w)]), sum(w, moved), sum(y, half)]
        }
        Scheme::ExactDiffusion => {
            let down = own(q).by(move |k| -alpha.at(k + 1));
            let ahead = [own(w).times(2.0), down.clone(), own(psi).times(-1.0)];
            vec![sum(y, ahead), sum(psi, [own(w), down])]
        }
    }
}
