//! FedRep (Collins, Hassani, Mokhtari and Shakkottai, *ICML* 2021), between neighbours.
//!
//! ```text
//! x⁺ = Σ_j w_ij y_j                                   the body; the head θ stays at its node
//! H times  θ ← θ − β ∇_θ ĝ(x⁺, θ; ξ_t)                first the head
//! y = x⁺, then B times
//! y ← y − α ∇_x ĝ(y, θ; ξ_{H+t})                      then the body
//! ```
//!
//! Where every w_ij is 1/m, x is the body of the published method's server after each of its rounds.

use super::prelude::*;

params! {
    /// FedRep's parameters.
    pub struct FedRepParams {
        /// Step size of the body, x.
        alpha: Schedule = 0.01, step;
        /// Step size of the head, θ.
        beta: Schedule = 0.01, step;
        /// H, steps on the head between two exchanges.
        head_steps: usize = 5, from_to(1, 10_000);
        /// B, steps on the body between two exchanges.
        body_steps: usize = 1, from_to(1, 10_000);
    }
}

/// Metadata of FedRep.
pub const FACTS: Facts = Facts {
    source: "Collins et al., ICML 2021 [K]",
    scopes: &[Scope::Personal],
    loops: "H steps on θ, B on x",
    assumes: "–",
    second_order: false,
    steps: &[("beta", &["theta"]), ("alpha", &["local_x", "x"])],
    ..Facts::LOOPLESS
};

struct FedRep<T> {
    params: FedRepParams,
    x: Vector<T>,
    theta: Vector<T>,
    y: Vec<T>,
    grad_x: Vec<T>,
    grad_theta: Vec<T>,
}

impl Method for FedRepParams {
    fn cost(&self, _: Task) -> Cost {
        let (heads, bodies) = (steps("H", self.head_steps), steps("B", self.body_steps));
        Cost { grad_theta_g: heads, grad_x_g: bodies, ..Cost::default() }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Start { x, theta, oracle, .. } = start;
        oracle.single_level()?;
        let (y, grad_x, grad_theta) = (x.to_vec(), x.to_vec(), theta.to_vec());
        Ok(Box::new(FedRep { params: self.clone(), x, theta, y, grad_x, grad_theta }))
    }
}

impl<T: Real> Algorithm<T> for FedRep<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.y);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let FedRep { params, x, theta, y, grad_x, grad_theta } = self;
        let k = oracle.k();
        let (alpha, beta) = (T::of(params.alpha.at(k)), T::of(params.beta.at(k)));
        let [wy] = mixed.vectors();
        x.copy_from_slice(wy);
        y.copy_from_slice(wy);
        for t in 0..params.head_steps {
            oracle.grad_theta_g(At { x, theta }, XI1.pass(t), grad_theta);
            axpy(-beta, grad_theta, theta);
        }
        for t in 0..params.body_steps {
            oracle.grad_x_g(At { x: y, theta }, XI1.pass(params.head_steps + t), grad_x);
            axpy(-alpha, grad_x, y);
        }
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { FedRep { x, theta, y, .. } => "theta": theta, "x": x, "local_x": y }
}
