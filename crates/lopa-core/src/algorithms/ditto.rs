//! Ditto (Li, Hu, Beirami and Smith, *ICML* 2021), between neighbours.
//!
//! ```text
//! w⁺ = Σ_j w_ij u_j                                   the common model, by FedAvg
//! T times  (x, θ) ← (x, θ) − β (∇ĝ(x, θ; ξ_t) + λ ((x, θ) − w⁺))     the personal one, pulled towards it
//! u = w⁺, then T times  u ← u − α ∇ĝ(u; ξ_{T+t})
//! ```
//!
//! Where every w_ij is 1/m, w is the model of the published method's server after each of its rounds.

use super::fedavg::Local;
use super::prelude::*;

params! {
    /// Ditto's parameters.
    pub struct DittoParams {
        /// Step size of the common model.
        alpha: Schedule = 0.01, step;
        /// Step size of the personal models.
        beta: Schedule = 0.01, step;
        /// λ, the strength that pulls personal models towards the common one.
        pull: f64 = 0.1, not_negative;
        /// T, steps on each model between two exchanges.
        local_steps: usize = 5, from_to(1, 10_000);
    }
}

/// Metadata of Ditto.
pub const FACTS: Facts = Facts {
    source: "Li et al., ICML 2021 [K]",
    scopes: &[Scope::Personal],
    loops: "T steps on each of two models",
    assumes: "–",
    second_order: false,
    steps: &[
        ("alpha", &["local_theta", "local_x", "common_theta", "common_x"]),
        ("beta", &["theta", "x"]),
    ],
    ..Facts::LOOPLESS
};

struct Ditto<T> {
    params: DittoParams,
    common_x: Vector<T>,
    common_theta: Vector<T>,
    own: Local<T>,
    local: Local<T>,
}

impl Method for DittoParams {
    fn cost(&self, _: Task) -> Cost {
        let each = || steps("T", self.local_steps) * 2.0;
        Cost { grad_theta_g: each(), grad_x_g: each(), ..Cost::default() }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Start { x: common_x, theta: common_theta, oracle, .. } = start;
        oracle.single_level()?;
        let [own, local] = [(); 2].map(|()| Local::new(&common_x, &common_theta));
        Ok(Box::new(Ditto { params: self.clone(), common_x, common_theta, own, local }))
    }
}

impl<T: Real> Algorithm<T> for Ditto<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.local.x);
        out.vector("theta", &self.local.theta);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let Ditto { params, common_x, common_theta, own, local } = self;
        let k = oracle.k();
        let (alpha, beta) = (T::of(params.alpha.at(k)), T::of(params.beta.at(k)));
        let [wx, w_theta] = mixed.vectors();
        common_x.copy_from_slice(wx);
        common_theta.copy_from_slice(w_theta);
        local.x.copy_from_slice(common_x);
        local.theta.copy_from_slice(common_theta);
        let common = At { x: &common_x[..], theta: &common_theta[..] };
        for t in 0..params.local_steps {
            own.step(beta, t, Some((T::of(params.pull), common)), oracle);
        }
        for t in 0..params.local_steps {
            local.step(alpha, params.local_steps + t, None, oracle);
        }
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![])
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.own.x, theta: &self.own.theta }
    }

    variables! { Ditto {
        common_x, common_theta, own: Local { x, theta, .. }, local: Local { x: u, theta: phi, .. }, ..
    } =>
        "theta": theta, "x": x, "common_theta": common_theta, "common_x": common_x,
        "local_theta": phi, "local_x": u,
    }
}
