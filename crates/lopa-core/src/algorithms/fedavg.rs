//! FedAvg (McMahan, Moore, Ramage, Hampson and Agüera y Arcas, *AISTATS* 2017), between neighbours.
//!
//! ```text
//! (x, θ)⁺ = Σ_j w_ij (y, φ)_j                         one model for all
//! (y, φ) = (x, θ)⁺, then T times
//! (y, φ) ← (y, φ) − α ∇ĝ(y, φ; ξ_t)
//! ```
//!
//! With T = 1 it is DGD, combined after the step. Where every w_ij is 1/m, (x, θ) is the model of the
//! published method's server after each of its rounds, with the same weight for each node.

use super::prelude::*;

params! {
    /// FedAvg's parameters.
    pub struct FedAvgParams {
        /// Step size.
        alpha: Schedule = 0.01, step;
        /// T, steps on a node's own samples between two exchanges.
        local_steps: usize = 5, from_to(1, 10_000);
    }
}

/// Metadata of FedAvg.
pub const FACTS: Facts = Facts {
    source: "McMahan et al., AISTATS 2017 [K]",
    loops: "T steps on (x, θ)",
    assumes: "–",
    second_order: false,
    steps: &[("alpha", &["local_theta", "local_x", "theta", "x"])],
    ..Facts::LOOPLESS
};

struct FedAvg<T> {
    params: FedAvgParams,
    x: Vector<T>,
    theta: Vector<T>,
    local: Local<T>,
}

/// A model that takes steps on a node's own samples.
pub(super) struct Local<T> {
    /// y
    pub x: Vec<T>,
    /// φ
    pub theta: Vec<T>,
    grad_x: Vec<T>,
    grad_theta: Vec<T>,
}

impl<T: Real> Local<T> {
    /// At (x, θ).
    pub fn new(x: &[T], theta: &[T]) -> Local<T> {
        let (x, theta) = (x.to_vec(), theta.to_vec());
        Local { grad_x: x.clone(), grad_theta: theta.clone(), x, theta }
    }

    /// (y, φ) ← (y, φ) − α (∇ĝ(y, φ; ξ_t) + λ ((y, φ) − (x, θ))).
    pub fn step(&mut self, alpha: T, t: usize, pull: Option<(T, At<T>)>, oracle: &mut Oracle<T>) {
        let Local { x, theta, grad_x, grad_theta } = self;
        let at = At { x, theta };
        oracle.grad_x_g(at, XI1.pass(t), grad_x);
        oracle.grad_theta_g(at, XI1.pass(t), grad_theta);
        if let Some((lambda, to)) = pull {
            update(grad_x, [x, to.x], |grad, [x, to]| grad + lambda * (x - to));
            update(grad_theta, [theta, to.theta], |grad, [theta, to]| grad + lambda * (theta - to));
        }
        axpy(-alpha, grad_x, x);
        axpy(-alpha, grad_theta, theta);
    }
}

impl Method for FedAvgParams {
    fn cost(&self, _: Task) -> Cost {
        let each = || steps("T", self.local_steps);
        Cost { grad_theta_g: each(), grad_x_g: each(), ..Cost::default() }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Start { x, theta, oracle, .. } = start;
        oracle.single_level()?;
        let local = Local::new(&x, &theta);
        Ok(Box::new(FedAvg { params: self.clone(), x, theta, local }))
    }
}

impl<T: Real> Algorithm<T> for FedAvg<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.local.x);
        out.vector("theta", &self.local.theta);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let FedAvg { params, x, theta, local } = self;
        let alpha = T::of(params.alpha.at(oracle.k()));
        let [wx, w_theta] = mixed.vectors();
        x.copy_from_slice(wx);
        theta.copy_from_slice(w_theta);
        local.x.copy_from_slice(x);
        local.theta.copy_from_slice(theta);
        for t in 0..params.local_steps {
            local.step(alpha, t, None, oracle);
        }
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { FedAvg { x, theta, local: Local { x: y, theta: phi, .. }, .. } =>
        "theta": theta, "x": x, "local_theta": phi, "local_x": y,
    }
}
