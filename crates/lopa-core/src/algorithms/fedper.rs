//! FedPer (Arivazhagan, Aggarwal, Singh and Choudhary, arXiv:1912.00818, 2019), between neighbours.
//!
//! ```text
//! x⁺ = Σ_j w_ij y_j                                   the body; the head θ stays at its node
//! y = x⁺, then T times
//! (y, θ) ← (y, θ) − α ∇ĝ(y, θ; ξ_t)                   body and head together
//! ```
//!
//! Where every w_ij is 1/m, x is the body of the published method's server after each of its rounds.

use super::fedavg::Local;
use super::prelude::*;

params! {
    /// FedPer's parameters.
    pub struct FedPerParams {
        /// Step size of body and head.
        alpha: Schedule = 0.01, step;
        /// T, steps on a node's own samples between two exchanges.
        local_steps: usize = 5, from_to(1, 10_000);
    }
}

/// Metadata of FedPer.
pub const FACTS: Facts = Facts {
    source: "Arivazhagan et al., arXiv:1912.00818, 2019 [K]",
    scopes: &[Scope::Personal],
    loops: "T steps on (x, θ)",
    assumes: "–",
    second_order: false,
    steps: &[("alpha", &["theta", "local_x", "x"])],
    ..Facts::LOOPLESS
};

struct FedPer<T> {
    params: FedPerParams,
    x: Vector<T>,
    /// y and θ
    local: Local<T>,
}

impl Method for FedPerParams {
    fn cost(&self, _: Task) -> Cost {
        let each = || steps("T", self.local_steps);
        Cost { grad_theta_g: each(), grad_x_g: each(), ..Cost::default() }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Start { x, theta, oracle, .. } = start;
        oracle.single_level()?;
        let local = Local::new(&x, &theta);
        Ok(Box::new(FedPer { params: self.clone(), x, local }))
    }
}

impl<T: Real> Algorithm<T> for FedPer<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.local.x);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let FedPer { params, x, local } = self;
        let alpha = T::of(params.alpha.at(oracle.k()));
        let [wy] = mixed.vectors();
        x.copy_from_slice(wy);
        local.x.copy_from_slice(wy);
        for t in 0..params.local_steps {
            local.step(alpha, t, None, oracle);
        }
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.local.theta }
    }

    variables! { FedPer { x, local: Local { x: y, theta, .. }, .. } =>
        "theta": theta, "x": x, "local_x": y,
    }
}
