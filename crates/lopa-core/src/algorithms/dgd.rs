//! Decentralised (stochastic) gradient descent (Lian et al., *NeurIPS* 2017), single level.
//!
//! ```text
//! θ⁺ = Σ_j w_ij θ_j − α ∇_θ ĝ(x, θ; ξ)            a common θ at a fixed x, or
//! (x, θ)⁺ = Σ_j w_ij (x, θ)_j − α ∇ĝ(x, θ; ξ)     a common (x, θ), where the problem says so
//! ```
//!
//! The training loss is g. With `mu`, x is set so that its regularisation is μ/2 |θ|².

use super::prelude::*;
use super::update_rule::{UpdateRule, XUpdate};
use crate::math::real::cast;
use crate::problem::Trains;

params! {
    /// DGD's parameters.
    pub struct DgdParams {
        /// Step size.
        alpha: Schedule = 0.1, required, step;
        /// Fixed regularisation μ/2 |θ|², in place of that of x⁰.
        mu: Option<f64> = None, positive;
    }
}

/// Metadata of DGD.
pub const FACTS: Facts = Facts {
    source: "Lian et al., NeurIPS 2017 [K]",
    complexity: "ε⁻²",
    assumes: "bounded dissimilarity",
    second_order: false,
    steps: &[("theta", "alpha"), ("x", "alpha")],
    ..Facts::LOOPLESS
};

struct Dgd<T> {
    params: DgdParams,
    both: bool,
    x: Vector<T>,
    theta: Vector<T>,
    grad_x: Vec<T>,
    grad_theta: Vec<T>,
}

impl Method for DgdParams {
    fn cost(&self, task: Task) -> Cost {
        single_level_cost(task)
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let Start { x, theta, oracle, .. } = start;
        let (x, both) = single(&params, x, oracle)?;
        let (grad_x, grad_theta) = (vec![T::zero(); x.len()], vec![T::zero(); theta.len()]);
        Ok(Box::new(Dgd { params, both, x, theta, grad_x, grad_theta }))
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
        out.vector("theta", &self.theta);
        out.vector_if(self.both, "x", &self.x);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let [w_theta, wx] = mixed.vectors();
        let alpha = T::of(self.params.alpha.at(oracle.k()));
        let at = At { x: &self.x, theta: &self.theta };
        oracle.grad_theta_g(at, XI1, &mut self.grad_theta);
        if self.both {
            oracle.grad_x_g(at, XI1, &mut self.grad_x);
            update(&mut self.x, [wx, &self.grad_x], |_, [wx, grad]| wx - alpha * grad);
        }
        update(&mut self.theta, [w_theta, &self.grad_theta], |_, [wt, grad]| wt - alpha * grad);
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let one: Schedule = 1.0.into(); // α is its only step
        Ok(UpdateRule {
            x: XUpdate::Descent { both: self.both },
            alpha: self.params.alpha,
            beta: one,
            lambda: one,
            gamma: one,
            tau: one,
            draws: TWO,
        })
    }

    variables! { Dgd { x, theta, .. } =>
        "theta": theta, "x": x,
    }
}
