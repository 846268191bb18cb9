//! Decentralised (stochastic) gradient descent (Lian et al., *NeurIPS* 2017), single level.
//!
//! ```text
//! θ⁺ = Σ_j w_ij θ_j − α ∇_θ ĝ(x, θ; ξ)            a common θ at a fixed x, or
//! (x, θ)⁺ = Σ_j w_ij (x, θ)_j − α ∇ĝ(x, θ; ξ)     a common (x, θ), where the problem says so
//! ```
//!
//! The training loss is g. With `mu`, x is set so that its regularisation is μ/2 |θ|². A step that is not given
//! is found as that of a mixed θ (`parts/steps.rs`): α = 0.6/L, with the curvature L of g in all trained
//! variables, from differences of gradients.

use super::prelude::*;
use super::update_rule::{Evaluation, ListedRule, Stage, UpdateRule, mixed, own, sum};
use crate::math::portable::hypot;
use crate::math::real::{cast, norm};
use crate::problem::Trains;
use crate::problem::oracle::Draw;

params! {
    /// DGD's parameters.
    pub struct DgdParams {
        /// Step size; by default `steps` finds it.
        alpha: Option<Schedule> = None, step;
        /// How the step size is found if it is not given; by default `auto`.
        steps: Option<Rule> = None;
        /// Fixed regularisation μ/2 |θ|², in place of that of x⁰.
        mu: Option<f64> = None, positive;
    }
}

impl DgdParams {
    /// Its only step size is that of θ.
    pub(super) fn given(&self) -> Given {
        let one = Some(1.0.into());
        Given { alpha: one, beta: self.alpha, lambda: one, rule: self.steps.unwrap_or_default() }
    }
}

/// Metadata of DGD.
pub const FACTS: Facts = Facts {
    source: "Lian et al., NeurIPS 2017 [K]",
    complexity: "ε⁻²",
    assumes: "bounded dissimilarity",
    second_order: false,
    steps: &[("alpha", &["theta", "x"])],
    finds_steps: true,
    ..Facts::LOOPLESS
};

struct Dgd<T> {
    params: DgdParams,
    both: bool,
    x: Vector<T>,
    theta: Vector<T>,
    grad: Vec<T>, // with respect to θ, then x where it is trained
    steps: Steps<T>,
    curve: Curve<T>,
}

impl Method for DgdParams {
    fn cost(&self, task: Task) -> Cost {
        single_level_cost(task).probing(self.given().measures())
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let Start { x, theta, oracle, .. } = start;
        let (x, both) = single(&params, x, oracle)?;
        let grad = vec![T::zero(); theta.len() + if both { x.len() } else { 0 }];
        let (steps, curve) = single_steps(&params, At { x: &x, theta: &theta }, grad.len(), oracle);
        Ok(Box::new(Dgd { params, both, x, theta, grad, steps, curve }))
    }
}

/// The step size of a single-level method at its start, with a gradient of length `trained`.
pub(super) fn single_steps<T: Real>(
    params: &DgdParams,
    at: At<T>,
    trained: usize,
    oracle: &mut Oracle<T>,
) -> (Steps<T>, Curve<T>) {
    let mut steps = Steps::new(params.given(), Scope::Global, at, [trained, 0], oracle);
    let mut curve =
        Curve::new(if steps.given().finds_inner() { at } else { At { x: &[], theta: &[] } });
    if steps.given().finds_inner() {
        let mut first = vec![T::zero(); trained];
        gradient(at, XI1, &mut first, oracle);
        let product = &mut |draw, w: &[T], out: &mut [T]| curve.product(at, draw, w, out, oracle);
        steps.begin([&first, &[]], product);
    }
    (steps, curve)
}

/// ∇ĝ with respect to θ, and to x if there is room for it.
pub(super) fn gradient<T: Real>(at: At<T>, xi: Draw, out: &mut [T], oracle: &mut Oracle<T>) {
    let (of_theta, of_x) = out.split_at_mut(at.theta.len());
    oracle.grad_theta_g(at, xi, of_theta);
    if !of_x.is_empty() {
        oracle.grad_x_g(at, xi, of_x);
    }
}

/// Products with the Hessian of g in all trained variables, from differences of gradients: first-order
/// methods stay first-order.
pub(super) struct Curve<T> {
    theta: Vec<T>,
    x: Vec<T>,
    there: Vec<T>,
}

impl<T: Real> Curve<T> {
    fn new(At { x, theta }: At<T>) -> Curve<T> {
        let zeros = |length| vec![T::zero(); length];
        Curve { theta: zeros(theta.len()), x: zeros(x.len()), there: zeros(x.len() + theta.len()) }
    }

    /// `out` ← [∇ĝ(w⁰ + δw) − ∇ĝ(w⁰)] / δ for |w| = 1, with δ = 10⁻³ (1 + |w⁰|).
    pub fn product(
        &mut self,
        at: At<T>,
        draw: Draw,
        w: &[T],
        out: &mut [T],
        oracle: &mut Oracle<T>,
    ) {
        let size = hypot(norm(at.theta), if w.len() > at.theta.len() { norm(at.x) } else { 0.0 });
        let delta = T::of(1e-3 * (1.0 + size));
        let (w_theta, w_x) = w.split_at(at.theta.len());
        self.x.copy_from_slice(at.x);
        update(&mut self.theta, [at.theta, w_theta], |_, [theta, w]| theta + delta * w);
        update(&mut self.x[..w_x.len()], [w_x], |x, [w]| x + delta * w);
        let there = &mut self.there[..w.len()];
        gradient(At { x: &self.x, theta: &self.theta }, draw, there, oracle);
        gradient(at, draw, out, oracle);
        update(out, [there], |here, [there]| (there - here) / delta);
    }
}

/// The cost of a single-level method: one gradient of the trained variables.
pub(super) fn single_level_cost(task: Task) -> Cost {
    let grad_x_g = match task.trains {
        Trains::Theta => Count::default(),
        Trains::Both => 1.0.into(),
    };
    Cost { grad_theta_g: 1.0.into(), grad_x_g, ..Cost::default() }
}

/// The x that a single-level method starts from, and whether it also trains x.
pub(super) fn single<T: Real>(
    params: &DgdParams,
    x: Vector<T>,
    oracle: &mut Oracle<T>,
) -> Result<(Vector<T>, bool)> {
    let part = oracle.single_level()?;
    let both = part.trains() == Trains::Both;
    let Some(mu) = params.mu else {
        return Ok((x, both));
    };
    let ridge = part.ridge_x(mu).ok_or_else(|| {
        Error::config("config/no-meaning", "`mu` has no meaning for this problem")
            .hint("leave `mu` out: the problem's own regularisation is used")
    })?;
    Ok((cast(&ridge).into(), both))
}

impl<T: Real> Algorithm<T> for Dgd<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        self.steps.share(out);
        out.vector("theta", &self.theta);
        out.vector_if(self.both, "x", &self.x);
    }

    fn step(&mut self, _: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let Dgd { both, x, theta, grad, steps, curve, .. } = self;
        steps.mix(&mut mixed);
        let [w_theta, wx] = mixed.vectors();
        let k = oracle.k();
        let at = At { x, theta };
        gradient(at, XI1, grad, oracle);
        let product = &mut |draw, w: &[T], out: &mut [T]| curve.product(at, draw, w, out, oracle);
        steps.measure(k, theta, [grad, &[]], product);
        steps.leave([grad, &[]]);
        let alpha = steps.only(k, grad);
        let (grad_theta, grad_x) = grad.split_at(theta.len());
        if *both {
            update(x, [wx, grad_x], |_, [wx, grad]| wx - alpha * grad);
        }
        update(theta, [w_theta, grad_theta], |_, [wt, grad]| wt - alpha * grad);
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let [alpha] = UpdateRule::given([self.params.alpha])?;
        let moved = |w, q| vec![sum(w, [mixed(w), own(q).by(move |k| -alpha.at(k))])];
        let stages = vec![
            Stage::Evaluate(Evaluation::gradient("d", self.both.then_some("s"))),
            Stage::Update {
                theta: moved("theta", "d"),
                x: if self.both { moved("x", "s") } else { vec![] },
            },
        ];
        Ok(UpdateRule::Listed(ListedRule { stages, joined: vec![], draws: TWO }))
    }

    variables! { Dgd { x, theta, steps: Steps { rule, old: [grad, _], mean, .. }, .. } =>
        "theta": theta, "x": x, "rule": rule, "rule_d": grad, "mean_theta": mean,
    }
}
