//! Prometheus (Liu et al., *ICML* 2023) and INTERACT: tracking, SPIDER, a proximal step.
//!
//! ```text
//! (8)   x̃  = argmin_{x ∈ X} ⟨y, x⟩ + τ/2 |x − x_i|² + l₁ |x|₁        X: low ≤ x ≤ high
//! (9)   x⁺ = Σ_j w_ij x_j + α (x̃ − x_i)
//! (10)  θ⁺ = θ − β d
//! (11)  every P-th iteration on all samples:  u⁺ = hyper(x⁺, θ⁺),   d⁺ = ∇_θ g(x⁺, θ⁺)
//!       else SPIDER:  u⁺ = u + hyper(x⁺, θ⁺) − hyper(x, θ),         d⁺ likewise, same minibatches
//! (13)  y⁺ = Σ_j w_ij y_j + u⁺ − u
//! ```
//!
//! with the hypergradient of hypergradient.rs. Read in the paper \[V\]: its u is y here, and its p
//! is u. `period = 0` is its "-SG" variant, plain stochastic estimates. INTERACT (Liu et al.,
//! 2022), of which only the abstract was read, is assumed to be the same without (8): x⁺ = Σ_j w_ij
//! x_j − α y \[K\].

use super::parts::consensus::track;
use super::parts::estimator::storm;
use super::parts::hypergradient::{Hypergradient, Inverse, Series};
use super::parts::prox::Prox;
use super::prelude::*;

params! {
    /// INTERACT's parameters.
    pub struct InteractParams {
        /// Step size of x.
        alpha: Schedule = 0.05, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Step of the Hessian-inverse series: at most 1 / L.
        lambda: Schedule = 0.5, required, step;
        /// Q: terms of the Hessian-inverse series.
        hv_steps: usize = 10, passes;
        /// How the Hessian's inverse is approximated.
        inverse: Inverse = Inverse::Shia;
        /// P: every P-th iteration uses all samples; 0 switches this and SPIDER off.
        period: u64 = 10;
    }
}

params! {
    /// Prometheus's parameters.
    pub struct PrometheusParams {
        /// Step size of x.
        alpha: Schedule = 0.05, required, step;
        /// Step size of θ.
        beta: Schedule = 0.5, required, step;
        /// Step of the Hessian-inverse series: at most 1 / L.
        lambda: Schedule = 0.5, required, step;
        /// Q: terms of the Hessian-inverse series.
        hv_steps: usize = 10, passes;
        /// How the Hessian's inverse is approximated.
        inverse: Inverse = Inverse::Shia;
        /// P: every P-th iteration uses all samples; 0 switches this and SPIDER off.
        period: u64 = 10;
        /// τ of the proximal step.
        tau: f64 = 1.0, positive;
        /// Weight of |x|₁, added to Φ.
        l1: f64 = 0.0, not_negative;
        /// Lower bound of every entry of x.
        low: Option<f64> = None;
        /// Upper bound of every entry of x.
        high: Option<f64> = None;
    }
    check |params| {
        let Prox { low, high, .. } = params.prox();
        Fault::unless(low <= high, "low", low, &format!("at most `high = {high}`"))
    }
}

impl InteractParams {
    fn series(&self) -> Series {
        Series { inverse: self.inverse, hv_steps: self.hv_steps, lambda: self.lambda }
    }
}

impl PrometheusParams {
    fn common(&self) -> InteractParams {
        let &PrometheusParams { alpha, beta, lambda, hv_steps, inverse, period, .. } = self;
        InteractParams { alpha, beta, lambda, hv_steps, inverse, period }
    }

    fn prox(&self) -> Prox {
        let low = self.low.unwrap_or(f64::NEG_INFINITY);
        let high = self.high.unwrap_or(f64::INFINITY);
        Prox { tau: self.tau, l1: self.l1, low, high }
    }
}

/// Metadata of Prometheus.
pub const PROMETHEUS: Facts = Facts {
    source: "Liu et al., ICML 2023 [V]",
    scopes: &[Scope::Personal],
    loops: "Q on v",
    complexity: "ε⁻¹ √samples",
    needs_lazy: true,
    steps: &[("beta", &["theta", "d"]), ("lambda", &["v"]), ("alpha", &["x", "u", "y"])],
    ..Facts::LOOPLESS
};

/// Metadata of INTERACT.
pub const INTERACT: Facts =
    Facts { source: "Liu et al., 2022 [K]: Prometheus without its proximal step", ..PROMETHEUS };

struct Prometheus<T> {
    params: InteractParams,
    prox: Prox,
    x: Vector<T>,
    theta: Vector<T>,
    u: Vec<T>, // estimate of ∇Φ_i
    d: Vec<T>, // estimate of ∇_θ g
    y: Vec<T>, // tracks u
    hyper: Hypergradient<T>,
    grad: Vec<T>,
    old: Old<T>,
}

/// The previous point and its derivatives.
struct Old<T> {
    x: Vec<T>,
    theta: Vec<T>,
    u: Vec<T>,
    hyper: Hypergradient<T>,
    grad: Vec<T>,
}

impl Method for InteractParams {
    fn cost(&self, _: Task) -> Cost {
        // SPIDER evaluates two points, except in every P-th iteration, which evaluates one.
        let points = match self.period {
            0 => 1.0,
            period => 2.0 - 1.0 / period as f64,
        };
        Cost {
            grad_theta_g: points.into(),
            hess_g: self.series().products() * points,
            cross_g: points.into(),
            grad_theta_f: points.into(),
            grad_x_f: points.into(),
            ..Cost::default()
        }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        node(self.clone(), Prox::PLAIN, start)
    }
}

impl Method for PrometheusParams {
    fn cost(&self, task: Task) -> Cost {
        self.common().cost(task)
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        node(self.common(), self.prox(), start)
    }
}

fn node<T: Real>(
    params: InteractParams,
    prox: Prox,
    Start { x, theta, oracle, .. }: Start<T>,
) -> Result<Box<dyn Algorithm<T>>> {
    let (of_x, of_theta) = (|| vec![T::zero(); x.len()], || vec![T::zero(); theta.len()]);
    let hyper = || Hypergradient::new(x.len(), theta.len(), params.series());
    let old = Old { x: of_x(), theta: of_theta(), u: of_x(), hyper: hyper(), grad: of_theta() };
    let (hyper, u, d, y, grad) = (hyper(), of_x(), of_theta(), of_x(), of_theta());
    let mut node = Prometheus { params, prox, x, theta, u, d, y, hyper, grad, old };
    oracle.take_all(node.params.period > 0);
    node.evaluate(oracle);
    oracle.take_all(false);
    node.renew();
    node.y.copy_from_slice(&node.u);
    Ok(Box::new(node))
}

impl<T: Real> Prometheus<T> {
    /// The derivatives at the current point.
    fn evaluate(&mut self, oracle: &mut Oracle<T>) {
        let at = At { x: &self.x, theta: &self.theta };
        self.hyper.evaluate(at, oracle);
        oracle.grad_theta_g(at, XI1, &mut self.grad);
    }

    /// Sets u and d to the last evaluation.
    fn renew(&mut self) {
        self.u.copy_from_slice(&self.hyper.u);
        self.d.copy_from_slice(&self.grad);
    }

    /// (11)
    fn estimate(&mut self, oracle: &mut Oracle<T>) {
        let period = self.params.period;
        let due = period > 0 && (oracle.k() + 1).is_multiple_of(period);
        oracle.take_all(due);
        self.evaluate(oracle);
        oracle.take_all(false);
        if due || period == 0 {
            return self.renew();
        }
        let old = &mut self.old;
        let at = At { x: &old.x, theta: &old.theta };
        old.hyper.evaluate(at, oracle);
        oracle.grad_theta_g(at, XI1, &mut old.grad);
        storm(&mut self.u, &self.hyper.u, &old.hyper.u, T::zero());
        storm(&mut self.d, &self.grad, &old.grad, T::zero());
    }
}

impl<T: Real> Algorithm<T> for Prometheus<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.x);
        out.vector("y", &self.y);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let [wx, wy] = mixed.vectors();
        let k = oracle.k();
        let (alpha, beta) = (T::of(self.params.alpha.at(k)), T::of(self.params.beta.at(k)));
        let prox = self.prox;
        self.old.x.copy_from_slice(&self.x);
        self.old.theta.copy_from_slice(&self.theta);
        self.old.u.copy_from_slice(&self.u);
        update(&mut self.x, [wx, &self.y], |x, [wx, y]| {
            wx + alpha * (prox.apply(x, y) - x) // (8), (9)
        });
        axpy(-beta, &self.d, &mut self.theta); // (10)
        self.estimate(oracle); // (11)
        track(&mut self.y, wy, &self.u, &self.old.u); // (13)
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { Prometheus { x, theta, u, d, y, hyper, .. } =>
        "theta": theta, "d": d, "v": hyper.v, "u": u, "y": y, "x": x,
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        Some((&self.y[..], &self.u[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("y", Some("u"))])
    }
}
