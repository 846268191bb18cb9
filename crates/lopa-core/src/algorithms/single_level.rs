//! Single-level companions of DGD that are exact where nodes differ [K: standard forms].
//!
//! ```text
//! w = θ, or (θ, x) where the problem says so;   q = ∇ĝ(w; ξ)
//!
//! gradient tracking   w⁺ = Σ_j w_ij w_j − α y,    y⁺ = Σ_j w_ij y_j + q⁺ − q,    y⁰ = q⁰
//! EXTRA               w¹ = W w⁰ − α⁰ q⁰,   wᵏ⁺¹ = 2 V wᵏ − V wᵏ⁻¹ − (αᵏ qᵏ − αᵏ⁻¹ qᵏ⁻¹)
//! exact diffusion     ψ⁺ = w − α q,   φ⁺ = ψ⁺ + w − ψ,   w⁺ = V φ⁺,   ψ⁰ = w⁰
//! both with           V = (I + W) / 2
//! ```
//!
//! EXTRA's old gradient keeps its old step: the sum over all iterations is then that of αᵏ qᵏ,
//! which vanishes only at the solution. With the current step instead, a schedule would converge to
//! another point.
//!
//! Gradient tracking: Di Lorenzo and Scutari 2016, Nedić et al. 2017, with stochastic gradients
//! Pu and Nedić 2021. EXTRA: Shi, Ling, Wu, Yin 2015. Exact diffusion: Yuan, Ying, Zhao, Sayed
//! 2019.

use super::dgd::{DgdParams, single, single_level_cost};
use super::prelude::*;

/// Which companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Gradient tracking.
    GradientTracking,
    /// EXTRA.
    Extra,
    /// Exact diffusion.
    ExactDiffusion,
}

/// Metadata of the companions.
pub fn facts(scheme: Scheme) -> Facts {
    Facts {
        source: match scheme {
            Scheme::GradientTracking => "Pu and Nedić, Math. Programming 187, 2021 [K]",
            Scheme::Extra => "Shi et al., SIAM J. Optimization 25(2), 2015 [K]",
            Scheme::ExactDiffusion => "Yuan et al., IEEE Trans. Signal Processing 67(3), 2019 [K]",
        },
        complexity: match scheme {
            Scheme::GradientTracking => "ε⁻²",
            _ => "ε⁻¹ (deterministic)",
        },
        assumes: "none",
        messages: match scheme {
            Scheme::GradientTracking => None,
            _ => Some(
                "it is derived for one W that stays: where links fail or messages are compressed, \
                 nothing is known of it",
            ),
        },
        needs_lazy: scheme == Scheme::GradientTracking,
        fixed_graph: scheme != Scheme::GradientTracking,
        steps: &[("theta", "alpha"), ("x", "alpha"), ("y", "alpha")],
        ..super::dgd::FACTS
    }
}

struct SingleLevelNode<T> {
    scheme: Scheme,
    params: DgdParams,
    w: Vec<T>,     // θ, then x
    p: usize,      // length of θ
    moving: usize, // length of the trained part of w: p, or all
    q: Vec<T>,     // ∇ĝ
    q_old: Vec<T>, // of the previous iteration
    y: Vec<T>,     // y, V wᵏ, or φ
    psi: Vec<T>,   // exact diffusion's ψ
}

/// One of them with its parameters.
pub struct SingleLevel {
    /// Which.
    pub scheme: Scheme,
    /// The step size.
    pub params: DgdParams,
}

impl Method for SingleLevel {
    fn cost(&self, task: Task) -> Cost {
        single_level_cost(task)
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let SingleLevel { scheme, params } = self;
        let (scheme, params) = (*scheme, params.clone());
        let Start { theta, oracle, .. } = start;
        let (x, both) = single(&params, start.x, oracle)?;
        let (n, p) = (x.len(), theta.len());
        let moving = if both { p + n } else { p };
        let w = [&theta[..], &x].concat();
        let [q, q_old, y] = [(); 3].map(|()| vec![T::zero(); moving]);
        let psi = w[..moving].to_vec();
        let mut node = SingleLevelNode { scheme, params, w, p, moving, q, q_old, y, psi };
        match scheme {
            Scheme::GradientTracking => {
                node.evaluate(oracle);
                node.y.copy_from_slice(&node.q);
            }
            Scheme::Extra => {}
            Scheme::ExactDiffusion => node.adapt(0, oracle),
        }
        Ok(Box::new(node))
    }
}

impl<T: Real> SingleLevelNode<T> {
    /// Evaluates q at w, and keeps the previous one.
    fn evaluate(&mut self, oracle: &mut Oracle<T>) {
        std::mem::swap(&mut self.q, &mut self.q_old);
        let (theta, x) = self.w.split_at(self.p);
        let at = At { x, theta };
        oracle.grad_theta_g(at, XI1, &mut self.q[..self.p]);
        if self.moving > self.p {
            oracle.grad_x_g(at, XI1, &mut self.q[self.p..]);
        }
    }

    /// Exact diffusion's ψ⁺ and φ⁺ of iteration `k`.
    fn adapt(&mut self, k: u64, oracle: &mut Oracle<T>) {
        let alpha = T::of(self.params.alpha.at(k));
        self.evaluate(oracle);
        let w = &self.w[..self.moving];
        update(&mut self.y, [w, &self.q, &self.psi], |_, [w, q, psi]| (w - alpha * q) + w - psi);
        update(&mut self.psi, [w, &self.q], |_, [w, q]| w - alpha * q);
    }
}

impl<T: Real> Algorithm<T> for SingleLevelNode<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        let (theta, x) = self.w[..self.moving].split_at(self.p);
        let (y_theta, y_x) = self.y.split_at(self.p);
        match self.scheme {
            Scheme::ExactDiffusion => {
                out.vector("theta", y_theta); // φ
                out.vector("x", y_x);
            }
            _ => {
                out.vector("theta", theta);
                out.vector("x", x);
            }
        }
        if self.scheme == Scheme::GradientTracking {
            out.vector("y_theta", y_theta);
            out.vector("y_x", y_x);
        }
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let mut sums = mixed.sums();
        let (k, moving, half) = (oracle.k(), self.moving, T::of(0.5));
        let alpha = T::of(self.params.alpha.at(k));
        let first = sums.together(2);
        match self.scheme {
            Scheme::GradientTracking => {
                let wy = sums.together(2);
                update(&mut self.w[..moving], [first, &self.y], |_, [ww, y]| ww - alpha * y);
                self.evaluate(oracle);
                update(&mut self.y, [wy, &self.q, &self.q_old], |_, [wy, q, old]| wy + q - old);
            }
            Scheme::Extra => {
                self.evaluate(oracle);
                let w = &mut self.w[..moving];
                if k > 0 {
                    let before = [first, &self.y, &self.q, &self.q_old];
                    // With a constant step this factor is 1, and does not change the bits.
                    let times = T::of(self.params.alpha.at(k - 1) / self.params.alpha.at(k));
                    update(&mut self.psi, [w], |_, [w]| w);
                    update(w, before, |w, [ww, vw, q, old]| {
                        w + ww - vw - alpha * (q - times * old)
                    });
                } else {
                    update(w, [first, &self.q], |_, [ww, q]| ww - alpha * q);
                }
                update(&mut self.y, [&self.psi, first], |_, [w, ww]| half * (w + ww));
            }
            Scheme::ExactDiffusion => {
                update(&mut self.w[..moving], [&self.y, first], |_, [phi, w]| half * (phi + w));
                self.adapt(k + 1, oracle);
            }
        }
    }

    fn at(&self) -> At<'_, T> {
        let (theta, x) = self.w.split_at(self.p);
        At { x, theta }
    }

    fn variables(&self) -> Vec<(&'static str, &[T])> {
        let (theta, x) = self.w.split_at(self.p);
        vec![("theta", theta), ("x", x), ("y", &self.y), ("q", &self.q), ("psi", &self.psi)]
    }

    fn variables_mut(&mut self) -> Vec<(&'static str, &mut [T])> {
        let (theta, x) = self.w.split_at_mut(self.p);
        let SingleLevelNode { y, q, psi, .. } = self;
        vec![("theta", theta), ("x", x), ("y", y), ("q", q), ("psi", psi)]
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        (self.scheme == Scheme::GradientTracking).then_some((&self.y[..], &self.q[..]))
    }
}
