//! SLDBO (Dong, Ma, Yang, Yin, arXiv 2311.08945): single loop, gradient tracking on three levels.
//!
//! ```text
//! x⁺ = Σ_j w_ij x_j − α tx
//! θ⁺ = Σ_j w_ij θ_j − β tθ
//! v⁺ = P_r(Σ_j w_ij v_j − λ tv)            P_r: onto the ball |v| ≤ r
//! d⁺ = ∇_θ g,   h⁺ = ∇²_θθ g v − ∇_θ f,   s⁺ = ∇_x f − ∇²_xθ g v        at (x⁺, θ⁺, v⁺)
//! t⁺ = Σ_j w_ij t_j + d⁺ − d               likewise with h and s; t⁰ = d⁰
//! ```
//!
//! Only the abstract was available: single loop, two matrix-vector products, tracking and a projection,
//! no assumption on heterogeneity, deterministic. Where it mixes and projects is a guess \[K\].
//! Full batches are the published setting; minibatches also work. Without mixing θ and v, tθ = d
//! and tv = h: our personal form \[D\]. Steps that are not given are found (`parts/steps.rs`); in the global
//! scope θ, v and what tracks them are then mixed with (W + I)/2, as such steps need it.

use super::parts::consensus::{add_change, combine, project, relax};
use super::parts::steps::loopless_params;
use super::prelude::*;
use super::update_rule::{Evaluation, ListedRule, Stage, UpdateRule, mixed, own, sum};

loopless_params! {
    /// SLDBO's step sizes.
    pub struct SldboParams {
        /// r: v is projected onto |v| ≤ r, if given. Any r ≥ |∇_θ f| / μ is right.
        radius: Option<f64> = None, positive;
        /// How the terms of d, h and s are estimated from minibatches; by default `plain`.
        #[serde(skip_serializing_if = "Estimate::is_plain")]
        estimate: Estimate = Estimate::Plain;
    }
}

/// Metadata of SLDBO.
pub const FACTS: Facts = Facts {
    source: "Dong et al., arXiv 2311.08945 [K]; without mixing θ and v [D]",
    complexity: "ε⁻¹ (deterministic)",
    needs_lazy: true,
    steps: &[("beta", &["theta", "t_theta"]), ("lambda", &["v", "tv"]), ("alpha", &["x", "tx"])],
    finds_steps: true,
    ..Facts::LOOPLESS
};

struct Sldbo<T> {
    params: SldboParams,
    scope: Scope,
    steps: Steps<T>,
    x: Vector<T>,
    theta: Vector<T>,
    v: Vector<T>,
    now: DirectionBuffers<T>, // d, h, s at (x, θ, v)
    old: DirectionBuffers<T>, // at the previous point
    tx: Vec<T>,
    t_theta: Vec<T>,
    tv: Vec<T>,
}

impl Method for SldboParams {
    fn cost(&self, _: Task) -> Cost {
        Cost::loopless().probing(self.given().measures())
    }

    fn start<T: Real>(&self, mut start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let now = start.estimated(FIVE, self.estimate)?;
        let Start { x, theta, v, scope, oracle, .. } = start;
        let old = DirectionBuffers::new(x.len(), theta.len(), FIVE);
        let (tx, t_theta, tv) = (now.s.to_vec(), now.d.to_vec(), now.h.to_vec());
        let params = self.clone();
        let (at, directions) = (At { x: &x, theta: &theta }, [&now.d[..], &now.h]);
        let steps = Steps::start(params.given(), scope, at, (&v, XI2), directions, oracle);
        Ok(Box::new(Sldbo { params, scope, steps, x, theta, v, now, old, tx, t_theta, tv }))
    }
}

impl<T: Real> Algorithm<T> for Sldbo<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let global = self.scope == Scope::Global;
        self.steps.share(out);
        out.vector("x", &self.x);
        out.vector("tx", &self.tx);
        out.vector_if(global, "theta", &self.theta);
        out.vector_if(global, "t_theta", &self.t_theta);
        out.vector_if(global, "v", &self.v);
        out.vector_if(global, "tv", &self.tv);
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        self.steps.mix(&mut mixed);
        let [wx, w_tx, w_theta, w_t_theta, wv, w_tv] = mixed.vectors();
        let k = oracle.k();
        let (beta, lambda) = (self.steps.beta(k, &self.now.d), self.steps.lambda(k, &self.now.h));
        let alpha = self.steps.outer(k, &self.tx, T::one());
        let combine: fn(&mut [T], &[T]) = match self.steps.finds_inner() {
            true => |own, mixed| relax(own, mixed, T::of(0.5)),
            false => combine,
        };
        update(&mut self.x, [wx, &self.tx], |_, [wx, t]| wx - alpha * t);
        combine(&mut self.theta, w_theta);
        axpy(-beta, &self.t_theta, &mut self.theta);
        combine(&mut self.v, wv);
        axpy(-lambda, &self.tv, &mut self.v);
        project(&mut self.v, self.params.radius);

        self.steps.leave([&self.now.d, &self.now.h]);
        std::mem::swap(&mut self.now, &mut self.old);
        std::mem::swap(&mut self.now.saga, &mut self.old.saga);
        self.tx.copy_from_slice(w_tx);
        combine(&mut self.t_theta, w_t_theta);
        combine(&mut self.tv, w_tv);
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        let Sldbo { x, theta, v, now, steps, .. } = self;
        Some(now.at(At { x, theta }, v).noting(steps.hess()))
    }

    fn finish(&mut self, _: usize, oracle: &mut Oracle<T>) {
        let Sldbo { tx, t_theta, tv, now, old, scope, .. } = self;
        add_change(tx, &now.s, &old.s);
        match scope {
            Scope::Global => {
                add_change(t_theta, &now.d, &old.d);
                add_change(tv, &now.h, &old.h);
            }
            Scope::Personal => {
                t_theta.copy_from_slice(&now.d);
                tv.copy_from_slice(&now.h);
            }
        }
        let Sldbo { x, theta, v, now, steps, .. } = self;
        steps.look(At { x, theta }, (v, XI2), [&now.d, &now.h], oracle);
    }

    fn mean_theta(&self) -> Option<&[T]> {
        self.steps.mean()
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { Sldbo { x, theta, v, now, tx, t_theta, tv, steps, .. } =>
        "theta": theta, "d": now.d, "t_theta": t_theta, "v": v, "h": now.h, "tv": tv, "s": now.s,
        "tx": tx, "x": x, "rule": steps.rule, "mean_theta": steps.mean, "table": now.saga.values,
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let SldboParams { alpha, beta, lambda, radius, estimate, .. } = self.params;
        estimate.on_device()?;
        if radius.is_some() {
            return Err("devices do not project v: leave `radius` out");
        }
        let [alpha, beta, lambda] = UpdateRule::given([alpha, beta, lambda])?;
        let levels = [
            ("x", "tx", "s", "old_s", alpha),
            ("theta", "t_theta", "d", "old_d", beta),
            ("v", "tv", "h", "old_h", lambda),
        ];
        let [mut before, mut after] = [(); 2].map(|()| [vec![], vec![]]);
        for (level, (w, t, q, old, step)) in levels.into_iter().enumerate() {
            let shared = level == 0 || self.scope == Scope::Global;
            let (first, then) = (&mut before[level.min(1)], &mut after[level.min(1)]);
            let from = if shared { mixed(w) } else { own(w) };
            first.push(sum(w, [from, own(t).by(move |k| -step.at(k))]));
            if shared {
                first.extend([sum(t, [mixed(t)]), sum(old, [own(q)])]);
                then.push(sum(t, [own(t), own(q), own(old).times(-1.0)]));
            } else {
                then.push(sum(t, [own(q)]));
            }
        }
        let [[x_before, theta_before], [x_after, theta_after]] = [before, after];
        let stages = vec![
            Stage::Update { theta: theta_before, x: x_before },
            Stage::Evaluate(Evaluation::directions()),
            Stage::Update { theta: theta_after, x: x_after },
        ];
        Ok(UpdateRule::Listed(ListedRule { stages, joined: vec![], draws: FIVE }))
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        Some((&self.tx[..], &self.now.s[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("tx", Some("s")), ("t_theta", Some("d")), ("tv", Some("h"))])
    }
}
