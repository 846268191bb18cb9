//! MDBO and VRDBO (Gao, Gu, Thai, *AISTATS* 2023): momentum or STORM, tracked on both levels.
//!
//! ```text
//! F = hyper(x, θ) (see hypergradient.rs),   G = ∇_θ ĝ(x, θ; ξ)
//! k = 0:  u = Zf = F,   e = Zg = G                                  VRDBO: on all samples
//! k > 0:  MDBO    u⁺ = (1 − γ) u + γ F,                e⁺ likewise with G
//!         VRDBO   u⁺ = (1 − γ)(u − F') + F,            e⁺ likewise; F' at the point before, with
//!                                                      the same minibatch and truncation
//!         Zf⁺ = Σ_j w_ij Zf_j + u⁺ − u,                Zg⁺ = Σ_j w_ij Zg_j + e⁺ − e
//! x⁺ = x − η (x − Σ_j w_ij x_j) − α η Zf⁺,             θ⁺ likewise with β and Zg⁺
//! ```
//!
//! Algorithms 1 and 2 were read in the paper \[V\]: its β₁, β₂ are α, β here, its α₁η = α₂η (MDBO) and
//! α₁η² = α₂η² (VRDBO) are γ. It draws the truncation from 0, …, J with the factor J, which is biased;
//! here it is drawn from 0, …, Q − 1.
//! The paper assumes i.i.d. data: F uses local Hessians, and where the g_i differ, the mean of
//! the F_i is not ∇Φ in the global scope. With a personal θ it is right, and exact \[D\].

use super::LOCAL_HESSIANS;
use super::parts::consensus::{relax, track};
use super::parts::estimator::{average, storm};
use super::parts::hypergradient::{Hypergradient, Inverse, Series};
use super::prelude::*;

params! {
    /// The parameters of MDBO and VRDBO.
    pub struct MdboParams {
        /// η: scales every step.
        eta: f64 = 0.5, required, weight;
        /// Step size of x, times η.
        alpha: Schedule = 0.1, required, step;
        /// Step size of θ, times η.
        beta: Schedule = 0.5, required, step;
        /// Weight of new estimates: the paper's α₁ η (MDBO) and α₁ η² (VRDBO).
        gamma: Schedule = 0.5, required, weight;
        /// Step of the Hessian-inverse series: at most 1 / L.
        lambda: Schedule = 0.5, required, step;
        /// Q: terms of the Hessian-inverse series.
        hv_steps: usize = 10, passes;
        /// How the Hessian's inverse is approximated.
        inverse: Inverse = Inverse::Neumann;
    }
}

impl MdboParams {
    fn series(&self) -> Series {
        Series { inverse: self.inverse, hv_steps: self.hv_steps, lambda: self.lambda }
    }
}

/// How estimates are carried from iteration to iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// MDBO.
    Momentum,
    /// VRDBO.
    Storm,
}

/// Metadata of MDBO and VRDBO.
pub fn facts(estimator: Estimator) -> Facts {
    Facts {
        source: "Gao et al., AISTATS 2023 [V]; without mixing θ [D]",
        loops: "Q on v",
        complexity: match estimator {
            Estimator::Momentum => "ε⁻² log 1/ε",
            Estimator::Storm => "ε⁻³ᐟ² log 1/ε",
        },
        assumes: "i.i.d. data (global)",
        warning: Some(LOCAL_HESSIANS),
        needs_lazy: true,
        steps: &[("beta", &["theta", "e", "Zg"]), ("lambda", &["v"]), ("alpha", &["x", "u", "Zf"])],
        ..Facts::LOOPLESS
    }
}

struct MdboNode<T> {
    estimator: Estimator,
    params: MdboParams,
    scope: Scope,
    x: Vector<T>,
    theta: Vector<T>,
    u: Vec<T>,  // estimate of ∇Φ
    e: Vec<T>,  // estimate of ∇_θ g
    zf: Vec<T>, // tracks u
    zg: Vec<T>, // tracks e
    hyper: Hypergradient<T>,
    g: Vec<T>,
    old: Old<T>,
}

/// The previous point, with its estimates and derivatives.
struct Old<T> {
    x: Vec<T>,
    theta: Vec<T>,
    u: Vec<T>,
    e: Vec<T>,
    hyper: Hypergradient<T>,
    g: Vec<T>,
}

/// MDBO or VRDBO with its parameters.
pub struct Mdbo {
    /// How estimates are carried from iteration to iteration.
    pub estimator: Estimator,
    /// The step sizes.
    pub params: MdboParams,
}

impl Method for Mdbo {
    fn cost(&self, _: Task) -> Cost {
        let points = if self.estimator == Estimator::Storm { 2.0 } else { 1.0 };
        Cost {
            grad_theta_g: points.into(),
            hess_g: self.params.series().products() * points,
            cross_g: points.into(),
            grad_theta_f: points.into(),
            grad_x_f: points.into(),
            ..Cost::default()
        }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Mdbo { estimator, params } = self;
        let (estimator, params) = (*estimator, params.clone());
        let Start { x, theta, scope, .. } = start;
        let (of_x, of_theta) = (|| vec![T::zero(); x.len()], || vec![T::zero(); theta.len()]);
        let hyper = || Hypergradient::new(x.len(), theta.len(), params.series());
        let (u, e, zf, zg, g) = (of_x(), of_theta(), of_x(), of_theta(), of_theta());
        let old = Old {
            x: of_x(),
            theta: of_theta(),
            u: of_x(),
            e: of_theta(),
            hyper: hyper(),
            g: of_theta(),
        };
        let hyper = hyper();
        Ok(Box::new(MdboNode { estimator, params, scope, x, theta, u, e, zf, zg, hyper, g, old }))
    }
}

impl<T: Real> MdboNode<T> {
    /// u, e, Zf, Zg at the starting point.
    fn first(&mut self, oracle: &mut Oracle<T>) {
        oracle.take_all(self.estimator == Estimator::Storm);
        self.evaluate(oracle);
        oracle.take_all(false);
        self.u.copy_from_slice(&self.hyper.u);
        self.e.copy_from_slice(&self.g);
        self.zf.copy_from_slice(&self.u);
        self.zg.copy_from_slice(&self.e);
    }

    /// F and G.
    fn evaluate(&mut self, oracle: &mut Oracle<T>) {
        let at = At { x: &self.x, theta: &self.theta };
        self.hyper.evaluate(at, oracle);
        oracle.grad_theta_g(at, XI1, &mut self.g);
    }

    /// u⁺ and e⁺.
    fn estimate(&mut self, oracle: &mut Oracle<T>) {
        self.evaluate(oracle);
        let a = T::of(self.params.gamma.at(oracle.k()));
        let MdboNode { u, e, hyper, g, old, .. } = self;
        old.u.copy_from_slice(u);
        old.e.copy_from_slice(e);
        match self.estimator {
            Estimator::Momentum => {
                average(u, &hyper.u, a);
                average(e, g, a);
            }
            Estimator::Storm => {
                let at = At { x: &old.x, theta: &old.theta };
                old.hyper.evaluate(at, oracle);
                oracle.grad_theta_g(at, XI1, &mut old.g);
                storm(u, &hyper.u, &old.hyper.u, a);
                storm(e, g, &old.g, a);
            }
        }
    }
}

impl<T: Real> Algorithm<T> for MdboNode<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let global = self.scope == Scope::Global;
        out.vector("x", &self.x);
        out.vector("Zf", &self.zf);
        out.vector_if(global, "theta", &self.theta);
        out.vector_if(global, "Zg", &self.zg);
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let [wx, w_zf, w_theta, w_zg] = mixed.vectors();
        let k = oracle.k();
        if k == 0 {
            self.first(oracle);
        } else {
            self.estimate(oracle);
            track(&mut self.zf, w_zf, &self.u, &self.old.u);
            track(&mut self.zg, w_zg, &self.e, &self.old.e);
        }
        self.old.x.copy_from_slice(&self.x);
        self.old.theta.copy_from_slice(&self.theta);
        let MdboParams { eta, alpha, beta, .. } = self.params;
        relax(&mut self.x, wx, T::of(eta));
        axpy(-T::of(alpha.at(k) * eta), &self.zf, &mut self.x);
        relax(&mut self.theta, w_theta, T::of(eta));
        axpy(-T::of(beta.at(k) * eta), &self.zg, &mut self.theta);
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta }
    }

    variables! { MdboNode { x, theta, u, e, zf, zg, hyper, old, .. } =>
        "theta": theta, "e": e, "Zg": zg, "v": hyper.v, "u": u, "Zf": zf, "x": x,
        "theta_old": old.theta, "x_old": old.x,
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        Some((&self.zf[..], &self.u[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("Zf", Some("u")), ("Zg", Some("e"))])
    }
}
