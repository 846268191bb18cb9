//! MA-DSBO (Chen, Huang, Ma, Balasubramanian, *ICML* 2023).
//!
//! As published, Algorithms 1 to 3: one θ for all nodes, with loops that communicate \[V\].
//!
//! ```text
//! N exchanges of θ        θ ← Σ_j w_ij θ_j − β ∇_θ ĝ(x, θ; ξ_t)
//! Q exchanges of (v, d)   HIGP, from v = 0, d = h = −b_0
//!                         v ← Σ_j w_ij v_j − λ d
//!                         h⁺ = ∇²_θθ ĝ(x, θ; ξ_{t+1}) v − b_{t+1},   b_t = ∇_θ f̂(x, θ; ς_t)
//!                         d ← Σ_j w_ij d_j + h⁺ − h
//! 1 exchange of x         u  = ∇_x f̂(x, θ) − ∇²_xθ ĝ(x, θ) v
//!                         x⁺ = Σ_j w_ij x_j − α r                    the old r
//!                         r⁺ = (1 − γ) r + γ u
//! ```
//!
//! HIGP is gradient tracking on 1/m Σ_i (½ vᵀH_i v − b_iᵀv), whose minimum is the v of the mean
//! Hessian; the paper calls v z and h s.
//!
//! With personal θ and v, as LoPA's authors compare with it, HIGP becomes a plain loop \[D\]:
//!
//! ```text
//! N times  θ ← θ − β ∇_θ ĝ(x, θ; ξ_t)
//! v = 0, or the last v (warm)
//! Q times  v ← v − λ (∇²_θθ ĝ(x, θ; ξ_t) v − ∇_θ f̂(x, θ; ς_t))
//! 1 exchange of x, as above
//! ```

use super::parts::consensus::track;
use super::parts::estimator::average;
use super::prelude::*;

params! {
    /// MA-DSBO's step sizes and loops.
    pub struct MaDsboParams {
        /// Step size of x.
        alpha: Schedule = 0.02, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Step size of v.
        lambda: Schedule = 0.5, required, step;
        /// Weight of the moving average; left out, it is alpha, as the paper prints it.
        gamma: Option<Schedule> = None, weight;
        /// N: steps on θ in an iteration.
        inner_steps: usize = 5, passes;
        /// Q: steps on v in an iteration.
        hv_steps: usize = 5, passes;
        /// Whether v starts from its last value instead of zero.
        warm: bool = false;
    }
    check |params| {
        let weight = params.gamma.is_some() || params.alpha.check_weight("alpha").is_ok();
        let must = "at most 1 where it is also the weight of the average: give gamma its own value";
        Fault::unless(weight, "alpha", params.alpha.at(0), must)
    }
}

/// Metadata of MA-DSBO.
pub const FACTS: Facts = Facts {
    source: "Chen et al., ICML 2023 [V]; without mixing θ and v [D]",
    loops: "N on θ, Q on v",
    complexity: "ε⁻² log 1/ε",
    assumes: "Lipschitz f",
    steps: &[("beta", &["theta"]), ("lambda", &["v"]), ("alpha", &["x", "r", "u"])],
    ..Facts::LOOPLESS
};

impl Method for MaDsboParams {
    fn cost(&self, task: Task) -> Cost {
        let (n_steps, q) = (|| steps("N", self.inner_steps), || steps("Q", self.hv_steps));
        Cost {
            grad_theta_g: n_steps(),
            hess_g: q(),
            grad_theta_f: q() + task.if_global(1.0.into()),
            ..Cost::loopless()
        }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Start { x, theta, v, scope, .. } = start;
        if self.warm && scope == Scope::Global {
            let message = "ma-dsbo: `warm = true` has no meaning in the global scope";
            return Err(Error::config("config/no-meaning", message)
                .hint("leave it out: HIGP starts from zero in every iteration"));
        }
        let [u, r] = [(); 2].map(|()| vec![T::zero(); x.len()]);
        let [d, h] = [(); 2].map(|()| vec![T::zero(); theta.len()]);
        // HIGP's d is kept over exchanges, and its h is compared with the previous one.
        let (tracked, old_h) = match scope {
            Scope::Personal => (Vec::new(), Vec::new()),
            Scope::Global => (d.clone(), d.clone()),
        };
        let params = self.clone();
        Ok(Box::new(MaDsbo { params, scope, x, theta, v, d, h, tracked, old_h, u, r }))
    }
}

struct MaDsbo<T> {
    params: MaDsboParams,
    scope: Scope,
    x: Vector<T>,
    theta: Vector<T>,
    v: Vector<T>,    // [∇²_θθ g]⁻¹ ∇_θ f
    d: Vec<T>,       // direction of θ
    h: Vec<T>,       // direction of v
    tracked: Vec<T>, // HIGP's d, which tracks h; empty in the personal scope, as is the next
    old_h: Vec<T>,   // h before
    u: Vec<T>,       // estimate of ∇Φ_i
    r: Vec<T>,       // moving average of u
}

/// The purpose of an exchange.
enum Phase {
    Inner(usize),
    Higp(usize),
    Outer,
}

impl<T: Real> MaDsbo<T> {
    fn phase(&self, e: usize) -> Phase {
        let (n_steps, q) = (self.params.inner_steps, self.params.hv_steps);
        match (self.scope, e) {
            (Scope::Global, e) if e < n_steps => Phase::Inner(e),
            (Scope::Global, e) if e < n_steps + q => Phase::Higp(e - n_steps),
            _ => Phase::Outer,
        }
    }

    /// d = ∇_θ ĝ in pass `t`.
    fn inner_direction(&mut self, t: usize, oracle: &mut Oracle<T>) -> T {
        let at = At { x: &self.x, theta: &self.theta };
        oracle.grad_theta_g(at, XI1.pass(t), &mut self.d);
        T::of(self.params.beta.at(oracle.k()))
    }

    /// h = ∇²_θθ ĝ v − ∇_θ f̂ in pass `t`.
    fn hv_direction(&mut self, t: usize, oracle: &mut Oracle<T>) {
        let at = At { x: &self.x, theta: &self.theta };
        oracle.residual(at, &self.v, (XI2.pass(t), SIGMA1.pass(t)), &mut self.h, None);
    }

    /// The loops of the personal scope, which do not communicate.
    fn personal_loops(&mut self, oracle: &mut Oracle<T>) {
        for t in 0..self.params.inner_steps {
            let beta = self.inner_direction(t, oracle);
            update(&mut self.theta, [&self.d], |theta, [d]| theta - beta * d);
        }
        if !self.params.warm {
            self.v.fill(T::zero());
        }
        let lambda = T::of(self.params.lambda.at(oracle.k()));
        for t in 0..self.params.hv_steps {
            self.hv_direction(t, oracle);
            update(&mut self.v, [&self.h], |v, [h]| v - lambda * h);
        }
    }

    fn begin_higp(&mut self, oracle: &mut Oracle<T>) {
        oracle.grad_theta_f(At { x: &self.x, theta: &self.theta }, SIGMA1, &mut self.h);
        update(&mut self.h, [], |b, []| -b);
        self.tracked.copy_from_slice(&self.h);
        self.v.fill(T::zero());
    }

    fn higp(&mut self, t: usize, [wv, wd]: [&[T]; 2], oracle: &mut Oracle<T>) {
        let lambda = T::of(self.params.lambda.at(oracle.k()));
        update(&mut self.v, [wv, &self.tracked], |_, [wv, d]| wv - lambda * d);
        std::mem::swap(&mut self.h, &mut self.old_h);
        self.hv_direction(t + 1, oracle);
        track(&mut self.tracked, wd, &self.h, &self.old_h);
    }

    fn outer(&mut self, wx: &[T], oracle: &mut Oracle<T>) {
        let MaDsboParams { alpha, gamma, .. } = &self.params;
        let gamma = T::of(gamma.as_ref().unwrap_or(alpha).at(oracle.k()));
        let alpha = T::of(alpha.at(oracle.k()));
        let at = At { x: &self.x, theta: &self.theta };
        oracle.hypergradient(at, &self.v, (XI3, SIGMA2), &mut self.u);
        update(&mut self.x, [wx, &self.r], |_, [wx, r]| wx - alpha * r);
        average(&mut self.r, &self.u, gamma);
    }
}

impl<T: Real> Algorithm<T> for MaDsbo<T> {
    fn exchanges(&self) -> usize {
        match self.scope {
            Scope::Personal => 1,
            Scope::Global => self.params.inner_steps + self.params.hv_steps + 1,
        }
    }

    fn share(&self, round: Round, out: &mut Outbox<T>) {
        match self.phase(round.e) {
            Phase::Inner(_) => out.vector("theta", &self.theta),
            Phase::Higp(_) => {
                out.vector("v", &self.v);
                out.vector("d", &self.tracked);
            }
            Phase::Outer => out.vector("x", &self.x),
        }
    }

    fn step(&mut self, e: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        match self.phase(e) {
            Phase::Inner(t) => {
                let [w_theta] = mixed.vectors();
                let beta = self.inner_direction(t, oracle);
                update(&mut self.theta, [w_theta, &self.d], |_, [wt, d]| wt - beta * d);
                if t + 1 == self.params.inner_steps {
                    self.begin_higp(oracle);
                }
            }
            Phase::Higp(t) => self.higp(t, mixed.vectors(), oracle),
            Phase::Outer => {
                let [wx] = mixed.vectors();
                if self.scope == Scope::Personal {
                    self.personal_loops(oracle);
                }
                self.outer(wx, oracle);
            }
        }
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { MaDsbo { x, theta, v, tracked, u, r, .. } =>
        "theta": theta, "v": v, "d": tracked, "u": u, "r": r, "x": x,
    }
}
