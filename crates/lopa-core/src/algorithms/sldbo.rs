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
use super::parts::loopless::loopless_params;
use super::prelude::*;
use super::update_rule::{Evaluation, ListedRule, Stage, UpdateRule, mixed, own, sum};

loopless_params! {
    /// SLDBO's step sizes.
    pub struct SldboParams {
        /// r: v is projected onto |v| ≤ r, if given. Any r ≥ |∇_θ f| / μ is right.
        radius: Option<f64> = None, positive;
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
    point: Loopless<T>,
    old: DirectionBuffers<T>, // at the previous point
    tx: Vec<T>,
    t_theta: Vec<T>,
    tv: Vec<T>,
}

impl Method for SldboParams {
    fn cost(&self, _: Task) -> Cost {
        Cost::loopless().probing(self.given().measures())
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let point = Loopless::start(start, FIVE, params.given(), params.estimate)?;
        let old = DirectionBuffers::new(point.x.len(), point.theta.len(), FIVE);
        let [tx, t_theta, tv] = [&point.now.s, &point.now.d, &point.now.h].map(|q| q.to_vec());
        Ok(Box::new(Sldbo { params, point, old, tx, t_theta, tv }))
    }
}

impl<T: Real> Algorithm<T> for Sldbo<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let Loopless { scope, x, theta, v, steps, .. } = &self.point;
        let global = *scope == Scope::Global;
        steps.share(out);
        out.vector("x", x);
        out.vector("tx", &self.tx);
        out.vector_if(global, "theta", theta);
        out.vector_if(global, "t_theta", &self.t_theta);
        out.vector_if(global, "v", v);
        out.vector_if(global, "tv", &self.tv);
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let Sldbo { params, point, old, tx, t_theta, tv } = self;
        let Loopless { x, theta, v, now, steps, .. } = point;
        steps.mix(&mut mixed);
        let [wx, w_tx, w_theta, w_t_theta, wv, w_tv] = mixed.vectors();
        let k = oracle.k();
        let (beta, lambda) = (steps.beta(k, &now.d), steps.lambda(k, &now.h));
        let alpha = steps.outer(k, tx, T::one());
        let combine: fn(&mut [T], &[T]) = match steps.given().finds_inner() {
            true => |own, mixed| relax(own, mixed, T::of(0.5)),
            false => combine,
        };
        update(x, [wx, tx], |_, [wx, t]| wx - alpha * t);
        combine(theta, w_theta);
        axpy(-beta, t_theta, theta);
        combine(v, wv);
        axpy(-lambda, tv, v);
        project(v, params.radius);

        steps.leave(now.inner());
        std::mem::swap(now, old);
        std::mem::swap(&mut now.saga, &mut old.saga);
        tx.copy_from_slice(w_tx);
        combine(t_theta, w_t_theta);
        combine(tv, w_tv);
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        Some(self.point.asks())
    }

    fn finish(&mut self, _: usize, oracle: &mut Oracle<T>) {
        let Sldbo { point, old, tx, t_theta, tv, .. } = self;
        let Loopless { scope, now, .. } = point;
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
        point.look(oracle);
    }

    fn at(&self) -> At<'_, T> {
        self.point.at()
    }

    variables! { Sldbo { point: Loopless { x, theta, v, now, steps, .. }, tx, t_theta, tv, .. } =>
        "theta": theta, "d": now.d, "t_theta": t_theta, "v": v, "h": now.h, "tv": tv, "s": now.s,
        "tx": tx, "x": x, "rule": steps.rule, "mean_theta": steps.mean, "table": now.saga.values,
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let SldboParams { alpha, beta, lambda, radius, .. } = self.params;
        let draws = self.point.now.on_device()?;
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
            let shared = level == 0 || self.point.scope == Scope::Global;
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
        Ok(UpdateRule::Listed(ListedRule { stages, joined: vec![], draws }))
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        Some((&self.tx[..], &self.point.now.s[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("tx", Some("s")), ("t_theta", Some("d")), ("tv", Some("h"))])
    }
}
