//! D-SOBA (Kong, Zhu, Lu, Huang, Yuan, *Journal of Machine Learning Research* 26(240), 2025).
//!
//! ```text
//! d = ∇_θ ĝ,   h = ∇²_θθ ĝ v − ∇_θ f̂,   s = ∇_x f̂ − ∇²_xθ ĝ v       all at (x, θ; ξ, ς)
//! (9)   x⁺ = Σ_j w_ij (x_j − α r_j)                      the old r
//! (10)  θ⁺ = Σ_j w_ij (θ_j − β d_j)
//! (11)  v⁺ = Σ_j w_ij (v_j − λ h_j)
//! (12)  r⁺ = (1 − γ) r + γ s                             s at (x, θ, v)
//! ```
//!
//! All terms use one minibatch ξ of g and one ς of f; with `estimate = "saga"` (`problem/saga.rs`) and γ = 1 it is SABA on one
//! node. `order = "first"` (D-SOBA-FO) takes the
//! products from differences of gradients on ξ:
//!
//! ```text
//! ∇²_θθ ĝ v ≈ [∇_θ ĝ(x, θ + δv) − ∇_θ ĝ(x, θ − δv)] / 2δ,   ∇²_xθ ĝ v likewise with ∇_x ĝ
//! ```
//!
//! Read in the paper \[V\]: its τα is α here, its h is r, its averaging weight θ is γ. It leaves the
//! start open; here r⁰ = 0. Without mixing θ and v it is our personal form \[D\]. Steps that are not given are
//! found (`parts/steps.rs`), before the iteration that uses them.

use super::parts::estimator::average;
use super::parts::loopless::loopless_params;
use super::prelude::*;
use super::update_rule::{
    Evaluation, ListedRule, Stage, UpdateRule, UsualRule, XUpdate, mixed, own, sum,
};

loopless_params! {
    /// D-SOBA's step sizes.
    pub struct DSobaParams {
        /// Weight of the moving average.
        gamma: Schedule = 0.2, weight;
        /// Exact products with second derivatives, or differences of gradients.
        order: Order = Order::Second;
        /// δ of the differences, for `order = "first"`.
        delta: f64 = 1e-3, positive;
    }
}

choices! {
    /// Which derivatives are asked for.
    pub enum Order {
        /// D-SOBA-SO.
        Second,
        /// D-SOBA-FO.
        First,
    }
}

/// Metadata of D-SOBA.
pub const FACTS: Facts = Facts {
    source: "Kong et al., JMLR 26(240), 2025 [V]; without mixing θ and v [D]",
    complexity: "ε⁻²",
    assumes: "bounded dissimilarity of ∇g",
    steps: &[("beta", &["theta"]), ("lambda", &["v"]), ("alpha", &["x", "r", "s"])],
    finds_steps: true,
    ..Facts::LOOPLESS
};

struct DSoba<T> {
    params: DSobaParams,
    point: Loopless<T>,
    r: Vec<T>, // moving average of s
}

impl Method for DSobaParams {
    fn cost(&self, _: Task) -> Cost {
        let cost = match self.order {
            Order::Second => Cost::loopless(),
            Order::First => Cost {
                grad_theta_g: 3.0.into(),
                grad_x_g: 2.0.into(),
                hess_g: Count::default(),
                cross_g: Count::default(),
                ..Cost::loopless()
            },
        };
        cost.probing(self.given().measures())
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        if params.order == Order::First {
            start.oracle.take_differences(params.delta)?;
        }
        let point = Loopless::start(start, TWO, params.given(), params.estimate)?;
        let r = vec![T::zero(); point.x.len()];
        let mut node = DSoba { params, point, r };
        node.find_steps(0);
        Ok(Box::new(node))
    }
}

impl<T: Real> DSoba<T> {
    /// α, β and λ of iteration `k`, which comes next.
    fn find_steps(&mut self, k: u64) {
        let Loopless { steps, now, .. } = &mut self.point;
        steps.beta(k, &now.d);
        steps.lambda(k, &now.h);
        steps.outer(k, &self.r, T::one());
    }
}

impl<T: Real> Algorithm<T> for DSoba<T> {
    fn share(&self, round: Round, out: &mut Outbox<T>) {
        let Loopless { scope, x, theta, v, now, steps } = &self.point;
        let [alpha, beta, lambda] = steps.at(round.k);
        steps.share(out);
        out.formed("x", [x, &self.r], |[x, r]| x - alpha * r);
        if *scope == Scope::Global {
            out.formed("theta", [theta, &now.d], |[theta, d]| theta - beta * d);
            out.formed("v", [v, &now.h], |[v, h]| v - lambda * h);
        }
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let k = oracle.k();
        let Loopless { scope, x, theta, v, now, steps } = &mut self.point;
        steps.mix(&mut mixed);
        match scope {
            Scope::Personal => {
                let [_, beta, lambda] = steps.at(k);
                let [wx] = mixed.vectors();
                x.copy_from_slice(wx); // (9)
                axpy(-beta, &now.d, theta);
                axpy(-lambda, &now.h, v);
            }
            Scope::Global => {
                let [wx, w_theta, wv] = mixed.vectors();
                x.copy_from_slice(wx); // (9)
                theta.copy_from_slice(w_theta); // (10)
                v.copy_from_slice(wv); // (11)
            }
        }
        average(&mut self.r, &now.s, T::of(self.params.gamma.at(k))); // (12)
        steps.leave(now.inner());
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        Some(self.point.asks())
    }

    fn finish(&mut self, _: usize, oracle: &mut Oracle<T>) {
        self.point.look(oracle);
        self.find_steps(oracle.k() + 1);
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        self.point.at()
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let usual = self.point.rule(XUpdate::Combined, [self.params.gamma, 1.0.into()])?;
        if self.params.order == Order::First {
            return Err("devices take no differences: `order = \"second\"` only");
        }
        if self.point.scope == Scope::Personal {
            return Ok(UpdateRule::Usual(Box::new(usual)));
        }
        let UsualRule { alpha, beta, lambda, draws, .. } = usual;
        let [_, beta, lambda] = UpdateRule::given([alpha, beta, lambda])?;
        let formed = |to, w, q, step: Schedule| sum(to, [own(w), own(q).by(move |k| -step.at(k))]);
        let [sent, combined] = usual.of_x(); // (9), (12)
        let stages = vec![
            Stage::Update {
                theta: vec![
                    formed("sent_theta", "theta", "d", beta),
                    formed("sent_v", "v", "h", lambda),
                ],
                x: sent,
            },
            Stage::Update {
                theta: vec![
                    sum("theta", [mixed("sent_theta")]), // (10)
                    sum("v", [mixed("sent_v")]),         // (11)
                ],
                x: combined,
            },
            Stage::Evaluate(Evaluation::directions()),
        ];
        Ok(UpdateRule::Listed(ListedRule { stages, joined: vec![], draws }))
    }

    variables! { DSoba { point: Loopless { x, theta, v, now, steps, .. }, r, .. } =>
        "theta": theta, "d": now.d, "v": v, "h": now.h, "s": now.s, "r": r, "x": x,
        "rule": steps.rule, "mean_theta": steps.mean, "table": now.saga.values,
    }
}
