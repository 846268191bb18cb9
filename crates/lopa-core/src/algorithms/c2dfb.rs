//! C²DFB (Wen, Liu, Abdelmoniem, Zhou, Xu, arXiv 2410.14115, 2024): gradients alone.
//!
//! θ*(x) is kept by a penalty: with y(σ) = argmin_θ f / σ + g, the gradient of Φ is that of
//! f(x, y) + σ (g(x, y) − g(x, θ*)) up to an error of the order of 1 / σ.
//!
//! ```text
//! 1 exchange of x, t       x⁺ = x − τ (x − Σ_j w_ij x_j) − α t
//! N exchanges of the rest  q⁺ = ∇_θ ĝ(x⁺, y; ξ) + ∇_θ f̂(x⁺, y; ς) / σ
//!                          ty ← ty − τ' (ty − Σ_j w_ij ty_j) + q⁺ − q
//!                          y  ← y − τ' (y − Σ_j w_ij y_j) − β ty
//!                          θ and tθ likewise, with d = ∇_θ ĝ(x⁺, θ; ξ) in place of q
//! then                     u⁺ = ∇_x f̂(x⁺, y) + σ (∇_x ĝ(x⁺, y) − ∇_x ĝ(x⁺, θ)), one minibatch of g
//!                          t⁺ = t − τ (t − Σ_j w_ij t_j) + u⁺ − u
//! ```
//!
//! Only the abstract was available, and two facts from it: only gradients, in a min-min-max
//! problem; and loops that send compressed residuals. The equations are from general knowledge
//! \[K\]; that trackers continue from one iteration to the next, and that y's step is β / σ for f +
//! σ g, are our choices. Its σ is printed λ, its θ z, its N K. Compression is not part of this
//! file: `[messages]` does it for every algorithm, with the same differences to common replicas.
//! With personal y and θ the loops are plain gradient steps \[D\].

use super::parts::consensus::{add_change, relax};
use super::prelude::*;

params! {
    /// C²DFB's step sizes, penalty and loop.
    pub struct C2dfbParams {
        /// Step size of x.
        alpha: Schedule = 0.02, required, step;
        /// Step size of θ, and of y.
        beta: Schedule = 0.3, required, step;
        /// σ: the weight of g against f. The larger, the nearer to the solution, and the noisier.
        penalty: f64 = 10.0, positive;
        /// N: steps on θ and y in an iteration.
        inner_steps: usize = 5, passes;
        /// τ: the weight of the neighbours.
        tau: f64 = 1.0, weight;
        /// τ': the same in the loop, in the global scope; left out, it is `tau`. Compressed messages need a small one.
        tau_inner: Option<f64> = None, weight;
    }
}

/// Metadata of C²DFB.
pub const FACTS: Facts = Facts {
    source: "Wen et al., arXiv 2410.14115, 2024 [K]; without mixing θ and y [D]",
    loops: "N on θ and y",
    complexity: "ε⁻² log 1/ε",
    needs_lazy: true,
    second_order: false,
    steps: &[("beta", &["theta", "y"]), ("alpha", &["x", "u", "t"])],
    ..Facts::LOOPLESS
};

/// θ or y.
struct Inner<T> {
    value: Vec<T>,
    tracker: Vec<T>, // in the global scope
    q: Vec<T>,
    new: Vec<T>, // q⁺
}

impl<T: Real> Inner<T> {
    fn new(scope: Scope, value: &[T]) -> Inner<T> {
        let [q, new] = [(); 2].map(|()| vec![T::zero(); value.len()]);
        let tracker = if scope == Scope::Global { q.clone() } else { Vec::new() };
        Inner { value: value.to_vec(), tracker, q, new }
    }

    /// One step along q⁺, with the mixed value and tracker; they are empty in the personal scope.
    fn turn(&mut self, [mixed, mixed_tracker]: [&[T]; 2], tau: T, beta: T) {
        let Inner { value, tracker, q, new } = self;
        if tracker.is_empty() {
            axpy(-beta, new, value);
        } else {
            relax(tracker, mixed_tracker, tau);
            add_change(tracker, new, q);
            relax(value, mixed, tau);
            axpy(-beta, tracker, value);
        }
        std::mem::swap(q, new);
    }
}

struct C2dfb<T> {
    params: C2dfbParams,
    scope: Scope,
    x: Vector<T>,
    t: Vec<T>,
    u: Vec<T>,
    u_old: Vec<T>,
    grad_x: Vec<T>,
    y: Inner<T>,
    theta: Inner<T>,
}

impl Method for C2dfbParams {
    fn cost(&self, _: Task) -> Cost {
        let loops = || steps("N", self.inner_steps);
        Cost {
            grad_theta_g: loops() * 2.0,
            grad_theta_f: loops(),
            grad_x_f: 1.0.into(),
            grad_x_g: 2.0.into(),
            ..Cost::default()
        }
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Start { x, theta, scope, oracle, .. } = start;
        oracle.single_level()?;
        let [u, u_old, grad_x] = [(); 3].map(|()| vec![T::zero(); x.len()]);
        let [y, theta] = [(); 2].map(|()| Inner::new(scope, &theta));
        let t = u.clone();
        let params = self.clone();
        let mut node = C2dfb { params, scope, x, t, u, u_old, grad_x, y, theta };
        node.outer(oracle);
        Ok(Box::new(node))
    }
}

impl<T: Real> C2dfb<T> {
    /// Step `e` of the loop on y and θ.
    fn inner(&mut self, e: usize, [wy, w_theta]: [[&[T]; 2]; 2], oracle: &mut Oracle<T>) {
        let C2dfb { params, x, y, theta, .. } = self;
        let tau = T::of(params.tau_inner.unwrap_or(params.tau));
        let beta = T::of(params.beta.at(oracle.k()));
        let per_penalty = T::of(1.0 / params.penalty);
        let at = At { x, theta: &y.value };
        // q is overwritten below where nothing is tracked; that of θ is not used before its own
        // step.
        oracle.grad_theta_f(at, SIGMA1.pass(e), &mut theta.new);
        oracle.grad_theta_g(at, XI1.pass(e), &mut y.new);
        axpy(per_penalty, &theta.new, &mut y.new);
        oracle.grad_theta_g(At { x, theta: &theta.value }, XI1.pass(e), &mut theta.new);
        y.turn(wy, tau, beta);
        theta.turn(w_theta, tau, beta);
    }

    /// u⁺, and t⁺ where t is mixed already.
    fn outer(&mut self, oracle: &mut Oracle<T>) {
        let C2dfb { params, x, t, u, u_old, grad_x, y, theta, .. } = self;
        let penalty = T::of(params.penalty);
        let (there, here) = (At { x, theta: &y.value }, At { x, theta: &theta.value });
        std::mem::swap(u, u_old);
        oracle.grad_x_g(there, XI3, u);
        oracle.grad_x_g(here, XI3, grad_x);
        update(u, [grad_x], |there, [here]| penalty * (there - here));
        oracle.grad_x_f(there, SIGMA2, grad_x);
        update(u, [grad_x], |u, [grad]| u + grad);
        add_change(t, u, u_old);
    }
}

impl<T: Real> Algorithm<T> for C2dfb<T> {
    fn exchanges(&self) -> usize {
        match self.scope {
            Scope::Personal => 1,
            Scope::Global => 1 + self.params.inner_steps,
        }
    }

    fn share(&self, round: Round, out: &mut Outbox<T>) {
        if round.e == 0 {
            out.vector("x", &self.x);
            out.vector("t", &self.t);
        } else {
            out.vector("y", &self.y.value);
            out.vector("t_y", &self.y.tracker);
            out.vector("theta", &self.theta.value);
            out.vector("t_theta", &self.theta.tracker);
        }
    }

    fn step(&mut self, e: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        if e > 0 {
            let [wy, w_ty, w_theta, w_t_theta] = mixed.vectors();
            self.inner(e - 1, [[wy, w_ty], [w_theta, w_t_theta]], oracle);
            if e == self.params.inner_steps {
                self.outer(oracle);
            }
            return;
        }
        let [wx, wt] = mixed.vectors();
        let (alpha, tau) = (T::of(self.params.alpha.at(oracle.k())), T::of(self.params.tau));
        relax(&mut self.x, wx, tau);
        axpy(-alpha, &self.t, &mut self.x);
        relax(&mut self.t, wt, tau);
        if self.scope == Scope::Personal {
            (0..self.params.inner_steps).for_each(|t| self.inner(t, [[&[]; 2]; 2], oracle));
            self.outer(oracle);
        }
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.x, theta: &self.theta.value }
    }

    variables! { C2dfb { x, t, u, y, theta, .. } =>
        "theta": theta.value, "y": y.value, "u": u, "t": t, "x": x, "d": theta.q, "q": y.q,
        "t_theta": theta.tracker, "t_y": y.tracker,
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        Some((&self.t, &self.u))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("t", Some("u")), ("t_theta", Some("d")), ("t_y", Some("q"))])
    }
}
