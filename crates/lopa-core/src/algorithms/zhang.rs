//! Zhang, Thai, Wu, Gao (arXiv 2311.11342): STORM and gradient tracking on three levels, no loops.
//!
//! ```text
//! d = ∇_θ ĝ,   h = ∇²_θθ ĝ v − ∇_θ f̂,   s = ∇_x f̂ − ∇²_xθ ĝ v
//! refresh θ:  e⁺ = (1 − γ)(e − d') + d        d' at the point of e's last refresh, same minibatch
//!             Ze⁺ = Σ_j w_ij Ze_j + e⁺ − e
//! move θ:     θ⁺ = θ − η (θ − Σ_j w_ij θ_j) − β η Ze
//! likewise for v with h, c, Zc, λ, and for x with s, u, Zu, α
//!
//! simultaneous:  move θ, v, x; then refresh all at (x⁺, θ⁺, v⁺)
//! alternating:   refresh θ at (x, θ), move θ; refresh v at (x, θ⁺, v), move v;
//!                refresh x at (x, θ⁺, v⁺), move x
//! ```
//!
//! The first refresh is E = Z = D. Only the abstracts were available: two algorithms, one
//! simultaneous, one alternating, variance-reduced, no strong assumption on heterogeneity. The
//! equations follow the same group's VRDBO \[K\]. Without mixing θ and v: our personal form \[D\]. Steps that are
//! not given are found (`parts/steps.rs`), so that those found are the products with η.

use std::ops::RangeInclusive;

use super::parts::consensus::{relax, track};
use super::parts::estimator::storm;
use super::parts::loopless::stepped_params;
use super::prelude::*;
use super::update_rule::{Evaluation, ListedRule, Stage, Sum, UpdateRule, mixed, own, sum};

stepped_params! {
    /// The parameters of Zhang et al.
    pub struct ZhangParams {
        /// η: scales the mixing, and the steps that are given.
        eta: f64 = 0.5, weight;
        /// Weight of new estimates.
        gamma: Schedule = 0.5, weight;
        /// Whether all three move at once or one after the other.
        order: Order = Order::Simultaneous;
    }
}

choices! {
    /// Whether all three move at once or one after the other.
    pub enum Order {
        /// At once: one exchange.
        Simultaneous,
        /// θ, then v, then x: three exchanges in the global scope.
        Alternating,
    }
}

/// Metadata of Zhang et al.
pub const FACTS: Facts = Facts {
    source: "Zhang et al., arXiv 2311.11342 [K]; without mixing θ and v [D]",
    complexity: "ε⁻³ᐟ²",
    needs_lazy: true,
    steps: &[
        ("beta", &["theta", "e", "Ze"]),
        ("lambda", &["v", "c", "Zc"]),
        ("alpha", &["x", "u", "Zu"]),
    ],
    finds_steps: true,
    ..Facts::LOOPLESS
};

/// One of θ, v, x with its estimate.
struct Level<T> {
    value: Vec<T>,
    old: Vec<T>, // where the estimates were last refreshed
    estimate: Vec<T>,
    before: Vec<T>,
    tracker: Vec<T>,
}

impl<T: Real> Level<T> {
    fn new(value: Vec<T>) -> Level<T> {
        let [estimate, before, tracker] = [(); 3].map(|()| vec![T::zero(); value.len()]);
        Level { old: value.clone(), value, estimate, before, tracker }
    }

    /// E = Z = D.
    fn begin(&mut self, new: &[T]) {
        self.estimate.copy_from_slice(new);
        self.tracker.copy_from_slice(new);
    }

    /// E⁺ and Z⁺.
    fn refresh(&mut self, mixed: &[T], new: &[T], old: &[T], a: T) {
        self.before.copy_from_slice(&self.estimate);
        storm(&mut self.estimate, new, old, a);
        track(&mut self.tracker, mixed, &self.estimate, &self.before);
    }

    fn advance(&mut self, mixed: &[T], eta: T, step: T) {
        self.old.copy_from_slice(&self.value);
        relax(&mut self.value, mixed, eta);
        axpy(-step * eta, &self.tracker, &mut self.value);
    }
}

/// The order of the levels.
const THETA: usize = 0;
const V: usize = 1;
const X: usize = 2;

struct Zhang<T> {
    params: ZhangParams,
    scope: Scope,
    levels: [Level<T>; 3],
    new: DirectionBuffers<T>,
    old: DirectionBuffers<T>,
    steps: Steps<T>,
}

impl Method for ZhangParams {
    fn cost(&self, _: Task) -> Cost {
        Cost {
            grad_theta_g: 2.0.into(),
            hess_g: 2.0.into(),
            cross_g: 2.0.into(),
            grad_theta_f: 2.0.into(),
            grad_x_f: 2.0.into(),
            ..Cost::default()
        }
        .probing(self.given().measures())
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let params = self.clone();
        let Start { x, theta, v, scope, oracle, .. } = start;
        let [mut new, old] = [(); 2].map(|()| DirectionBuffers::new(x.len(), theta.len(), FIVE));
        if self.given().measures() {
            new.of_theta(At { x: &x, theta: &theta }, oracle);
        }
        let steps =
            Steps::start(self.given(), scope, At { x: &x, theta: &theta }, &v, &new, oracle);
        let levels = [theta, v, x].map(|value| Level::new(value.to_vec()));
        let mut node = Zhang { params, scope, levels, new, old, steps };
        if node.params.order == Order::Simultaneous {
            (THETA..=X).for_each(|level| node.begin(level, oracle));
        }
        Ok(Box::new(node))
    }
}

impl<T: Real> Zhang<T> {
    /// The levels that are updated in exchange `e`.
    fn served(&self, e: usize) -> RangeInclusive<usize> {
        match self.exchanges() {
            1 => THETA..=X,
            _ => e..=e,
        }
    }

    fn shared(&self, level: usize) -> bool {
        level == X || self.scope == Scope::Global
    }

    fn begin(&mut self, level: usize, oracle: &mut Oracle<T>) {
        self.evaluate_new(level, oracle);
        self.levels[level].begin(direction(&self.new, level));
    }

    fn refresh(&mut self, level: usize, mixed: &[T], oracle: &mut Oracle<T>) {
        let a = T::of(self.params.gamma.at(oracle.k()));
        evaluate(&mut self.old, level, self.levels.each_ref().map(|l| &l.old[..]), None, oracle);
        self.evaluate_new(level, oracle);
        let (new, old) = (direction(&self.new, level), direction(&self.old, level));
        self.levels[level].refresh(mixed, new, old, a);
    }

    /// d, h or s where the level is now.
    fn evaluate_new(&mut self, level: usize, oracle: &mut Oracle<T>) {
        let Zhang { levels, new, steps, .. } = self;
        let point @ [theta, v, x] = levels.each_ref().map(|level| &level.value[..]);
        let hess = if level == V { steps.hess() } else { None };
        evaluate(new, level, point, hess, oracle);
        if level == V {
            let at = At { x, theta };
            steps.note(v, XI2, &mut |draw, w, out| oracle.hess_g(at, draw, w, out));
        }
    }

    /// What iteration `k` showed of the curvature, for the next one.
    fn measure(&mut self, k: u64, oracle: &mut Oracle<T>) {
        let Zhang { levels: [theta, _, x], new, old, steps, .. } = self;
        let at = At { x: &x.value, theta: &theta.value };
        steps.leave([&old.d, &old.h]);
        let product = &mut |draw, w: &[T], out: &mut [T]| oracle.hess_g(at, draw, w, out);
        steps.measure(k, at.theta, [&new.d, &new.h], product);
    }

    fn advance(&mut self, level: usize, mixed: &[T], k: u64) {
        let Zhang { levels, steps, .. } = self;
        let (eta, direction) = (T::of(self.params.eta), &levels[level].tracker);
        let step = match level {
            THETA => steps.beta(k, direction),
            V => steps.lambda(k, direction),
            _ => steps.outer(k, direction, T::one()),
        };
        // A step that is found is that of the update, η included.
        let found = steps.given().finds()[[1, 2, 0][level]];
        let step = if found { step / eta } else { step };
        levels[level].advance(mixed, eta, step);
    }
}

/// d, h or s at (θ, v, x).
fn evaluate<T: Real>(
    into: &mut DirectionBuffers<T>,
    level: usize,
    [theta, v, x]: [&[T]; 3],
    hess: Option<&mut f64>,
    oracle: &mut Oracle<T>,
) {
    let at = At { x, theta };
    match level {
        THETA => into.of_theta(at, oracle),
        V => into.of_v(at, v, hess, oracle),
        _ => into.of_x(at, v, oracle),
    }
}

fn direction<T>(of: &DirectionBuffers<T>, level: usize) -> &[T] {
    [&of.d, &of.h, &of.s][level]
}

impl<T: Real> Algorithm<T> for Zhang<T> {
    fn exchanges(&self) -> usize {
        match (self.params.order, self.scope) {
            (Order::Alternating, Scope::Global) => 3,
            _ => 1,
        }
    }

    fn share(&self, round: Round, out: &mut Outbox<T>) {
        let names = [["theta", "Ze"], ["v", "Zc"], ["x", "Zu"]];
        if round.e == 0 {
            self.steps.share(out);
        }
        for level in self.served(round.e) {
            let [value, tracker] = names[level];
            out.vector_if(self.shared(level), value, &self.levels[level].value);
            out.vector_if(self.shared(level), tracker, &self.levels[level].tracker);
        }
    }

    fn step(&mut self, e: usize, mut mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        if e == 0 {
            self.steps.mix(&mut mixed);
        }
        let (k, mut sums) = (oracle.k(), mixed.sums());
        let mut pieces = [[&[][..]; 2]; 3];
        for level in self.served(e) {
            pieces[level] = [(); 2].map(|()| sums.together(1));
        }
        match self.params.order {
            Order::Simultaneous => {
                (THETA..=X).for_each(|level| self.advance(level, pieces[level][0], k));
                (THETA..=X).for_each(|level| self.refresh(level, pieces[level][1], oracle));
            }
            Order::Alternating => {
                for level in self.served(e) {
                    match k {
                        0 => self.begin(level, oracle),
                        _ => self.refresh(level, pieces[level][1], oracle),
                    }
                    self.advance(level, pieces[level][0], k);
                }
            }
        }
        if e + 1 == self.exchanges() {
            self.measure(k, oracle);
        }
    }

    fn at(&self) -> At<'_, T> {
        At { x: &self.levels[X].value, theta: &self.levels[THETA].value }
    }

    variables! { Zhang { levels: [theta, v, x], steps, .. } =>
        "theta": theta.value, "e": theta.estimate, "Ze": theta.tracker, "v": v.value,
        "c": v.estimate, "Zc": v.tracker, "x": x.value, "u": x.estimate, "Zu": x.tracker,
        "theta_old": theta.old, "v_old": v.old, "x_old": x.old,
        "rule": steps.rule, "mean_theta": steps.mean,
    }

    fn update_rule(&self) -> Result<UpdateRule, &'static str> {
        let ZhangParams { eta, alpha, beta, lambda, gamma, order, .. } = self.params;
        let [alpha, beta, lambda] = UpdateRule::given([alpha, beta, lambda])?;
        let at = ["x", "theta", "v"];
        let old_at = ["x_old", "theta_old", "v_old"];
        let names = [
            ["theta", "theta_old", "e", "Ze", "d", "old_d", "before_e"],
            ["v", "v_old", "c", "Zc", "h", "old_h", "before_c"],
            ["x", "x_old", "u", "Zu", "s", "old_s", "before_u"],
        ];
        let moved = |level: usize| -> Vec<Sum> {
            let ([w, old, _, tracker, ..], step) = (names[level], [beta, lambda, alpha][level]);
            let down = own(tracker).by(move |k| -step.at(k) * eta);
            let kept = match self.shared(level) {
                true => vec![own(w).times(1.0 - eta), mixed(w).times(eta)],
                false => vec![own(w)],
            };
            vec![sum(old, [own(w)]), sum(w, kept.into_iter().chain([down]))]
        };
        // In the first iteration of the alternating form, E = Z = D: nothing is old.
        let first = u64::from(order == Order::Alternating);
        let weight = move |k: u64| if k < first { 0.0 } else { 1.0 - gamma.at(k) };
        let refreshed = |level: usize| -> Vec<Sum> {
            let [_, _, e, tracker, new, old, before] = names[level];
            let storm = [own(e).by(weight), own(old).by(move |k| -weight(k)), own(new)];
            let tracked = match self.shared(level) {
                true => vec![mixed(tracker), own(e), own(before).times(-1.0)],
                false => vec![own(e)],
            };
            vec![sum(before, [own(e)]), sum(e, storm), sum(tracker, tracked)]
        };
        let evaluated = |which: &[usize]| {
            let into = |place: usize| {
                let of = |level: usize| which.contains(&level).then_some(names[level][place]);
                [of(THETA), of(V), of(X)]
            };
            let new = Evaluation { at, into: into(4), ..Evaluation::directions() };
            let old = Evaluation { at: old_at, into: into(5), from: first, ..new.clone() };
            [Stage::Evaluate(old), Stage::Evaluate(new)]
        };
        let of = |level: usize, sums: Vec<Sum>| match level {
            X => Stage::Update { theta: vec![], x: sums },
            _ => Stage::Update { theta: sums, x: vec![] },
        };
        let mut stages = Vec::new();
        match order {
            Order::Simultaneous => {
                let all = |of: &dyn Fn(usize) -> Vec<Sum>| Stage::Update {
                    theta: [of(THETA), of(V)].concat(),
                    x: of(X),
                };
                stages.push(all(&moved));
                stages.extend(evaluated(&[THETA, V, X]));
                stages.push(all(&refreshed));
            }
            Order::Alternating => {
                for level in THETA..=X {
                    stages.extend(evaluated(&[level]));
                    stages.push(of(level, [refreshed(level), moved(level)].concat()));
                }
            }
        }
        Ok(UpdateRule::Listed(ListedRule { stages, joined: vec![], draws: FIVE }))
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        Some((&self.levels[X].tracker, &self.levels[X].estimate))
    }

    fn trackers(&self) -> Result<Vec<Tracker>, &'static str> {
        Ok(vec![("Zu", Some("u")), ("Ze", Some("e")), ("Zc", Some("c"))])
    }
}
