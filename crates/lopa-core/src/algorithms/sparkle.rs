//! SPARKLE (Zhu, Kong, Lu, Huang, Yuan, *NeurIPS* 2024; arXiv 2411.14166), no loops.
//!
//! One primal-dual step for each of x, θ and v, with matrices A, B, C built from W:
//!
//! ```text
//! w⁺ = C w − A η q − B p,    p⁺ = p + B w⁺           (w, η, q) = (x, α, r), (θ, β, d), (v, λ, h)
//!
//!         C    A   B²           the same without B, which a node cannot apply
//! ed      W    W   I − W        ψ⁺ = w − η q,   w⁺ = W (ψ⁺ + w − ψ),   ψ⁰ = w⁰
//! extra   W    I   I − W        w⁺ = W w − η q − M,   M⁺ = M + w⁺ − W w⁺,   M⁰ = 0
//! gt      W²   W   (I − W)²     w⁺ = W (w − η y),   y⁺ = W y + q⁺ − q,   y = q in the first step
//! atc     W²   W²  (I − W)²     w⁺ = W (w − η y),   y⁺ = W (y + q⁺ − q), y = W q in the first step
//!
//! in turn:  x⁺ with r
//!           θ⁺ with d = ∇_θ ĝ(x⁺, θ; ξ₁)
//!           v⁺ with h = ∇²_θθ ĝ(x⁺, θ⁺; ξ₂) v − ∇_θ f̂(x⁺, θ⁺; ς₁)
//!           r⁺ = (1 − γ) r + γ s,   s = ∇_x f̂(x⁺, θ⁺; ς₂) − ∇²_xθ ĝ(x⁺, θ⁺; ξ₃) v⁺
//! ```
//!
//! Abstract and figures were available, the equations were not \[K\]: the primal-dual form with these
//! A, B, C (its authors' earlier unification of single-level methods; `gt` is its one-exchange form, `atc`
//! adapts before it combines in both lines and needs an exchange for each), the momentum on x alone and the order θ, v, x are from general knowledge; so is γ's place. The cycle
//! begins at x here, with r⁰ = 0, so that one exchange does in the personal scope; there θ and v are
//! not mixed \[D\]. Steps that are not given are found (`parts/steps.rs`).

use super::parts::consensus::{add_change, dual};
use super::parts::estimator::average;
use super::parts::loopless::loopless_params;
use super::prelude::*;
use super::update_rule::{Evaluation, ListedRule, Stage, Sum, UpdateRule, mixed, own, sum};

loopless_params! {
    /// SPARKLE's step sizes and strategies.
    pub struct SparkleParams {
        /// Weight of the moving average.
        gamma: Schedule = 0.2, weight;
        /// How the nodes agree on x.
        upper: Strategy = Strategy::Ed;
        /// How they agree on θ and v in the global scope.
        lower: Strategy = Strategy::Ed;
    }
}

choices! {
    /// How nodes that differ come to agree.
    pub enum Strategy {
        /// Exact diffusion: one vector.
        Ed,
        /// EXTRA: one vector.
        Extra,
        /// Gradient tracking: two vectors.
        Gt,
        /// Gradient tracking, adapt then combine: two exchanges of one vector.
        Atc,
    }
}

/// Metadata of SPARKLE.
pub const FACTS: Facts = Facts {
    source: "Zhu et al., NeurIPS 2024 [K]; without mixing θ and v [D]",
    complexity: "ε⁻²",
    messages: Some(
        "`ed` and `extra` are derived for one W that stays: where links fail or messages are \
         compressed, nothing is known of them",
    ),
    needs_lazy: true,
    fixed_graph: true,
    steps: &[("beta", &["theta"]), ("lambda", &["v"]), ("alpha", &["x", "r"])],
    finds_steps: true,
    ..Facts::LOOPLESS
};

/// One of x, θ, v, with the memory of its strategy.
struct Level<T> {
    strategy: Strategy,
    shared: bool,
    value: Vec<T>,
    memory: Vec<T>, // ψ, M or y
    ahead: Vec<T>,  // for the next exchange: ψ⁺ + w − ψ, η q or w − η y
    last: Vec<T>,   // the last q added to y
}

impl<T: Real> Level<T> {
    fn new(strategy: Strategy, shared: bool, value: &[T]) -> Level<T> {
        let zeros = |needed: bool| vec![T::zero(); if needed { value.len() } else { 0 }];
        let mut memory = zeros(shared);
        if strategy == Strategy::Ed && shared {
            memory.copy_from_slice(value);
        }
        let last = zeros(shared && matches!(strategy, Strategy::Gt | Strategy::Atc));
        Level { strategy, shared, value: value.to_vec(), memory, ahead: zeros(shared), last }
    }

    /// Whether its tracker is mixed before its value.
    fn tracks_first(&self) -> bool {
        self.shared && self.strategy == Strategy::Atc
    }

    /// Its exchanges, in their order: whether each mixes the tracker.
    fn exchanges(&self) -> &'static [bool] {
        match (self.shared, self.tracks_first()) {
            (false, _) => &[],
            (true, false) => &[false],
            (true, true) => &[true, false],
        }
    }

    /// Takes the direction of the next step; where nothing is mixed, makes the step. The step size counts
    /// later where the tracker is mixed first.
    fn adapt(&mut self, q: &[T], eta: T) {
        let Level { strategy, shared, value, memory, ahead, last } = self;
        match strategy {
            _ if !*shared => axpy(-eta, q, value),
            Strategy::Ed => {
                update(ahead, [value, q, memory], |_, [w, q, psi]| (w - eta * q) + (w - psi));
                update(memory, [value, q], |_, [w, q]| w - eta * q);
            }
            Strategy::Extra => update(ahead, [q], |_, [q]| eta * q),
            Strategy::Gt => {
                add_change(memory, q, last);
                last.copy_from_slice(q);
                update(ahead, [value, memory], |_, [w, y]| w - eta * y);
            }
            Strategy::Atc => {
                add_change(memory, q, last);
                last.copy_from_slice(q);
            }
        }
    }

    /// y⁺ from the mixed trackers, where they are mixed first.
    fn track(&mut self, wy: &[T], eta: T) {
        let Level { value, memory, ahead, .. } = self;
        memory.copy_from_slice(wy);
        update(ahead, [value, memory], |_, [w, y]| w - eta * y);
    }

    /// Sends the vectors that are mixed in an exchange of the tracker, or in one of the value.
    fn share(&self, of_tracker: bool, [name, tracker]: [&'static str; 2], out: &mut Outbox<T>) {
        if of_tracker {
            return out.vector(tracker, &self.memory);
        }
        let value = if self.strategy == Strategy::Extra { &self.value } else { &self.ahead };
        out.vector(name, value);
        out.vector_if(self.strategy == Strategy::Gt, tracker, &self.memory);
    }

    /// w⁺ from the mixed messages of iteration `k`.
    fn combine(&mut self, [ww, wy]: [&[T]; 2], k: u64) {
        match self.strategy {
            Strategy::Ed | Strategy::Atc => self.value.copy_from_slice(ww),
            Strategy::Extra => {
                if k > 0 {
                    dual(&mut self.memory, &self.value, ww);
                }
                let with = [ww, &self.ahead, &self.memory];
                update(&mut self.value, with, |_, [ww, ahead, dual]| ww - ahead - dual);
            }
            Strategy::Gt => {
                self.value.copy_from_slice(ww);
                self.memory.copy_from_slice(wy);
            }
        }
    }
}

/// One of x, θ, v on a device: the names of its arrays, and its step size.
#[derive(Clone, Copy)]
struct Listed {
    strategy: Strategy,
    shared: bool,
    names: [&'static str; 5], // w, q, and the memory of the strategy: ψ, M or y; ahead; last
    eta: Schedule,
    ahead: u64, // iterations from the evaluation of q to its use
}

impl Listed {
    /// As [`Level::adapt`].
    fn adapt(self) -> Vec<Sum> {
        let Listed { strategy, shared, names: [w, q, memory, ahead, last], eta, ahead: later } =
            self;
        let down = |q| own(q).by(move |k| -eta.at(k + later));
        match strategy {
            _ if !shared => vec![sum(w, [own(w), down(q)])],
            Strategy::Ed => vec![
                sum(ahead, [own(w).times(2.0), down(q), own(memory).times(-1.0)]),
                sum(memory, [own(w), down(q)]),
            ],
            Strategy::Extra => vec![sum(ahead, [own(q).by(move |k| eta.at(k + later))])],
            Strategy::Gt | Strategy::Atc => vec![
                sum(memory, [own(memory), own(q), own(last).times(-1.0)]),
                sum(last, [own(q)]),
                sum(ahead, [own(w), down(memory)]),
            ],
        }
    }

    /// As [`Level::combine`]; nothing where it is not mixed.
    fn combine(self) -> Vec<Sum> {
        let Listed { strategy, shared, names: [w, _, memory, ahead, _], .. } = self;
        let later = |k: u64| f64::from(u8::from(k > 0));
        match strategy {
            _ if !shared => vec![],
            Strategy::Ed => vec![sum(w, [mixed(ahead)])],
            Strategy::Extra => vec![
                sum(memory, [own(memory), own(w).by(later), mixed(w).by(move |k| -later(k))]),
                sum(w, [mixed(w), own(ahead).times(-1.0), own(memory).times(-1.0)]),
            ],
            Strategy::Gt | Strategy::Atc => {
                vec![sum(w, [mixed(ahead)]), sum(memory, [mixed(memory)])]
            }
        }
    }
}

/// The order of the levels.
const X: usize = 0;
const THETA: usize = 1;
const V: usize = 2;

struct Sparkle<T> {
    params: SparkleParams,
    levels: [Level<T>; 3],
    r: Vec<T>, // moving average of s
    now: DirectionBuffers<T>,
    steps: Steps<T>,
}

impl Method for SparkleParams {
    fn cost(&self, _: Task) -> Cost {
        Cost::loopless().probing(self.given().measures())
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Start { x, theta, v, scope, oracle, .. } = start;
        let inner = |value: &[T]| Level::new(self.lower, scope == Scope::Global, value);
        let levels = [Level::new(self.upper, true, &x), inner(&theta), inner(&v)];
        let mut now = DirectionBuffers::new(x.len(), theta.len(), FIVE);
        let r = vec![T::zero(); x.len()];
        let at = At { x: &x, theta: &theta };
        now.estimated(self.estimate, (at, &v), oracle)?;
        if self.given().measures() {
            now.of_theta(at, oracle);
        }
        let steps = Steps::start(self.given(), scope, at, &v, &now, oracle);
        let mut node = Sparkle { params: self.clone(), levels, r, now, steps };
        node.direct_x(0, oracle);
        Ok(Box::new(node))
    }
}

impl<T: Real> Sparkle<T> {
    /// d, once x has moved.
    fn direct_theta(&mut self, k: u64, oracle: &mut Oracle<T>) {
        let [x, theta, _] = &mut self.levels;
        self.now.of_theta(At { x: &x.value, theta: &theta.value }, oracle);
        let beta = match theta.tracks_first() {
            true => T::zero(),
            false => self.steps.beta(k, &self.now.d),
        };
        theta.adapt(&self.now.d, beta);
    }

    /// h, once θ has moved.
    fn direct_v(&mut self, k: u64, oracle: &mut Oracle<T>) {
        let Sparkle { levels: [x, theta, v], now, steps, .. } = self;
        let at = At { x: &x.value, theta: &theta.value };
        now.of_v(at, &v.value, steps.hess(), oracle);
        steps.note(&v.value, XI2, &mut |draw, w, out| oracle.hess_g(at, draw, w, out));
        let lambda = if v.tracks_first() { T::zero() } else { steps.lambda(k, &now.h) };
        v.adapt(&now.h, lambda);
    }

    /// What iteration `k` showed of the curvature, for the next one.
    fn measure(&mut self, k: u64, oracle: &mut Oracle<T>) {
        let Sparkle { levels: [x, theta, _], now, steps, .. } = self;
        let at = At { x: &x.value, theta: &theta.value };
        let product = &mut |draw, w: &[T], out: &mut [T]| oracle.hess_g(at, draw, w, out);
        steps.measure(k, at.theta, [&now.d, &now.h], product);
        steps.leave([&now.d, &now.h]);
    }

    /// s and r, once v has moved, for the x of iteration `k`.
    fn direct_x(&mut self, k: u64, oracle: &mut Oracle<T>) {
        let [x, theta, v] = &mut self.levels;
        self.now.of_x(At { x: &x.value, theta: &theta.value }, &v.value, oracle);
        average(&mut self.r, &self.now.s, T::of(self.params.gamma.at(k)));
        let alpha = match x.tracks_first() {
            true => T::zero(),
            false => self.steps.outer(k, &self.r, T::one()),
        };
        x.adapt(&self.r, alpha);
    }

    /// The level of an exchange, and whether its tracker is mixed.
    fn turn(&self, e: usize) -> (usize, bool) {
        let levels = self.levels.iter().enumerate();
        let mut all =
            levels.flat_map(|(at, level)| level.exchanges().iter().map(move |&of| (at, of)));
        all.nth(e).unwrap_or((X, false))
    }

    /// The step size of a level whose tracker has been mixed.
    fn eta(&mut self, level: usize, k: u64) -> T {
        match level {
            X => self.steps.outer(k, &self.r, T::one()),
            THETA => self.steps.beta(k, &self.now.d),
            _ => self.steps.lambda(k, &self.now.h),
        }
    }
}

impl<T: Real> Algorithm<T> for Sparkle<T> {
    fn exchanges(&self) -> usize {
        self.levels.iter().map(|level| level.exchanges().len()).sum()
    }

    fn share(&self, round: Round, out: &mut Outbox<T>) {
        let names = [["x", "y"], ["theta", "y_theta"], ["v", "y_v"]];
        if round.e == 0 {
            self.steps.share(out);
        }
        let (level, of_tracker) = self.turn(round.e);
        self.levels[level].share(of_tracker, names[level], out);
    }

    fn step(&mut self, e: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let (k, (level, of_tracker)) = (oracle.k(), self.turn(e));
        if e == 0 {
            self.steps.mix(&mut mixed);
        }
        if of_tracker {
            let [wy] = mixed.vectors();
            let eta = self.eta(level, k);
            return self.levels[level].track(wy, eta);
        }
        self.levels[level].combine(mixed.vectors(), k);
        // In the personal scope all three follow each other in one exchange.
        let last = if self.levels[THETA].shared { level } else { V };
        for moved in level..=last {
            match moved {
                X => self.direct_theta(k, oracle),
                THETA => self.direct_v(k, oracle),
                _ => {
                    self.measure(k, oracle);
                    self.direct_x(k + 1, oracle);
                }
            }
        }
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.levels[X].value, theta: &self.levels[THETA].value }
    }

    variables! { Sparkle { levels: [x, theta, v], r, now, steps: Steps { rule, old: [d, h], mean, .. }, .. } =>
        "theta": theta.value, "v": v.value, "r": r, "x": x.value,
        "memory_theta": theta.memory, "memory_v": v.memory, "memory_x": x.memory,
        "ahead_x": x.ahead, "last_theta": theta.last, "last_v": v.last, "last_x": x.last,
        "rule": rule, "rule_d": d, "rule_h": h, "mean_theta": mean, "table": now.saga.values,
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let SparkleParams { alpha, beta, lambda, gamma, upper, lower, .. } = self.params;
        self.now.on_device()?;
        if self.levels.iter().any(Level::tracks_first) {
            return Err("a device does not mix a tracker before the value (`atc`)");
        }
        let [alpha, beta, lambda] = UpdateRule::given([alpha, beta, lambda])?;
        let shared = self.levels[THETA].shared;
        let x = Listed {
            strategy: upper,
            shared: true,
            names: ["x", "r", "memory_x", "ahead_x", "last_x"],
            eta: alpha,
            ahead: 1,
        };
        let theta = Listed {
            strategy: lower,
            shared,
            names: ["theta", "d", "memory_theta", "ahead_theta", "last_theta"],
            eta: beta,
            ahead: 0,
        };
        let v = Listed { names: ["v", "h", "memory_v", "ahead_v", "last_v"], eta: lambda, ..theta };
        let only = |which: usize| {
            let all = Evaluation::directions();
            let into = std::array::from_fn(|at| all.into[at].filter(|_| at == which));
            Stage::Evaluate(Evaluation { into, ..all })
        };
        let inner = |sums| Stage::Update { theta: sums, x: vec![] };
        let average =
            [own("r").by(move |k| 1.0 - gamma.at(k + 1)), own("s").by(move |k| gamma.at(k + 1))];
        let mut last = vec![sum("r", average)];
        last.extend(x.adapt());
        let stages = vec![
            Stage::Update { theta: vec![], x: x.combine() },
            only(0), // d
            inner(theta.adapt()),
            inner(theta.combine()),
            only(1), // h
            inner(v.adapt()),
            inner(v.combine()),
            only(2), // s
            Stage::Update { theta: vec![], x: last },
        ];
        Ok(UpdateRule::Listed(ListedRule { stages, joined: vec![], draws: FIVE }))
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        let x = &self.levels[X];
        matches!(x.strategy, Strategy::Gt | Strategy::Atc).then_some((&x.memory[..], &self.r[..]))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        let SparkleParams { upper, lower, .. } = self.params;
        let inner = |memory, last, value| match lower {
            Strategy::Ed => (memory, Some(value)), // ψ = w, as at the start
            Strategy::Extra => (memory, None),
            Strategy::Gt | Strategy::Atc => (memory, Some(last)),
        };
        let x = match upper {
            Strategy::Ed => ("ahead_x", Some("memory_x")),
            Strategy::Extra => ("memory_x", None),
            Strategy::Gt | Strategy::Atc => ("memory_x", Some("last_x")),
        };
        let theta = inner("memory_theta", "last_theta", "theta");
        Ok(vec![x, theta, inner("memory_v", "last_v", "v")])
    }
}
