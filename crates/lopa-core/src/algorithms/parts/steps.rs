//! Step sizes: those that are given, and a rule for the others.
//!
//! ```text
//! auto, ours [D]: β = λ = c / L, where L is the largest curvature |H w| / |w| of g_i that was measured
//!   at the start    4 power steps from d⁰
//!   every iteration |H v| / |v|, from the product inside h
//!   now and then    a probe: |H w| / |w| along w, the change of d or of h, which has turned more; when
//!                   one of them swings back (cosine below −0.8), or after a wait that doubles from 1
//!                   to 32 while probes find nothing new, and halves where L rose by more than 2 %
//!   c               1.4, or 0.6 in the global scope, where L is also the largest of the neighbours'
//! α from y, the direction of x, in iteration k:
//!   r = (T |y|_∞)²,   E ← M + (r − M)/(k + 1),   M = Σ_j w_ij E_j
//!   α = u min(1, (k + 1)/32) / (τ √(k + 1) √max(E, r/4))
//!   u               24 standard deviations of the entries of x⁰; 1 if all are equal
//!   T               the lag of θ and v behind x, in iterations: the smallest of 1/(1 − q), L |v| / (1.4 |H v|) and
//!                   (k + 1)/4, but at least 1; q is the larger of two running means, of weight 1/16, of what
//!                   is left of d and of h after an iteration, ⟨d⁺, d⟩ / |d|² between 0 and 1
//! safeguard: while |d| or |h| grows by half or more per iteration, and has grown a hundredfold in a row (an
//! iteration counts 3.2-fold at most), L doubles
//!
//! adaptive, AdaSDBO [K]: m² ← Σ_j w_ij m_j² + |direction|², from 1, for x, θ and v (squares of |y|, |d|, |h|)
//!   β = 1/m_θ,   λ = 1/max(m_θ, m_v),   α = 1/(m_x max(m_θ, m_v) τ)
//! ```
//!
//! T is there because x must not run ahead: for T iterations y is that of an older x, so that T steps are taken on
//! the same y. Noise hides a lag from q, and a slow x looks like one; the curvature along v shows neither.
//!
//! The rule `auto` has no units: f or g times a power of two leaves the bits of x and θ. It measures at the
//! end of an iteration, for the next one, so that a checkpoint needs no old directions.
//!
//! Where minibatches are drawn, a node that finds β also keeps the running mean of its θ, of weight 8/(k + 8),
//! which is about that of the last eighth of the run: it is reported, and no step depends on it.

use super::directions::DirectionBuffers;
use crate::choices;
use crate::math::real::{Real, largest, norm, update, wide_dot};
use crate::math::schedule::Schedule;
use crate::network::mixed::Mixed;
use crate::network::outbox::{Combine, Outbox};
use crate::problem::At;
use crate::problem::oracle::{Draw, Oracle, PROBE};
use crate::problem::scope::Scope;

choices! {
    /// How step sizes are found that are not given.
    pub enum Rule {
        /// From the curvature of g and the size of the hypergradients.
        Auto,
        /// AdaSDBO's, from accumulated squares.
        Adaptive,
    }
}

const PERSONAL: f64 = 1.4;
const GLOBAL: f64 = 0.6;
/// Products at the start, to find the curvature.
pub const POWER: usize = 4;
const LONGEST: f64 = 32.0;
const RISE: f64 = 1.02;
const SWING: f64 = -0.8;
const RAMP: f64 = 32.0;
const CLIP: f64 = 0.25;
const SPREAD: f64 = 24.0;
const LATELY: f64 = 1.0 / 16.0;
const LONGEST_LAG: f64 = 0.25;
const GROWTH: f64 = 1.5;
const AT_ONCE: f64 = 3.2;
const TOO_MUCH: f64 = 100.0;
const RECENT: f64 = 8.0;

/// The name of the rule's numbers among the variables of a node. They have any size, so that their growth
/// says nothing.
pub const RULE: &str = "rule";

/// The rule's numbers at a node.
pub mod number {
    /// L, the largest curvature.
    pub const CURVATURE: usize = 0;
    /// E, the mean square of T |y|_∞; m² of x.
    pub const SQUARE: usize = 1;
    /// m² of θ.
    pub const SQUARE_THETA: usize = 2;
    /// m² of v.
    pub const SQUARE_V: usize = 3;
    /// Iterations from one probe to the next.
    pub const WAIT: usize = 4;
    /// Iterations from one probe to the next that a swing may cause.
    pub const GAP: usize = 5;
    /// Iterations since the last probe.
    pub const SINCE: usize = 6;
    /// How much d has kept growing.
    pub const GROWN_D: usize = 7;
    /// How much h has kept growing.
    pub const GROWN_H: usize = 8;
    /// How often growth has halved the steps.
    pub const CUTS: usize = 9;
    /// The last α, β and λ.
    pub const STEPS: [usize; 3] = [10, 11, 12];
    /// What is left of d and of h after an iteration, lately.
    pub const LEFT: [usize; 2] = [13, 14];
    /// The curvature along v.
    pub const ALONG_V: usize = 15;
    /// T, the lag of θ and v behind x.
    pub const LAG: usize = 16;
    /// How many there are.
    pub const ALL: usize = 17;
}
use number::*;

/// The step sizes that are given, and the rule for the others.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// Of x.
    pub alpha: Option<Schedule>,
    /// Of θ.
    pub beta: Option<Schedule>,
    /// Of v.
    pub lambda: Option<Schedule>,
    /// Of the others.
    pub rule: Rule,
}

impl Given {
    /// Whether the rule finds α, β and λ.
    pub fn finds(&self) -> [bool; 3] {
        [self.alpha, self.beta, self.lambda].map(|step| step.is_none())
    }

    /// Whether it finds β or λ: where θ or v is tracked, W must then be lazy.
    pub fn finds_inner(&self) -> bool {
        let [_, beta, lambda] = self.finds();
        beta || lambda
    }

    /// Whether it measures curvatures.
    pub fn measures(&self) -> bool {
        self.finds_inner() && self.rule == Rule::Auto
    }
}

/// The rule without vectors: what a node's numbers become from what is measured. The kernels of devices repeat its
/// formulas (`kernels/steps.cuh`).
#[derive(Debug, Clone, Copy)]
pub struct Finder {
    /// The steps that are given, and the rule.
    pub given: Given,
    /// Whether all nodes share θ and v.
    pub global: bool,
    /// 24 standard deviations of the entries of x⁰; 1 if all are equal.
    pub unit: f64,
}

/// What two successive d, and two successive h, have to do with each other.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// |d⁺| and |h⁺|
    pub sizes: [f64; 2],
    /// |d| and |h|
    pub old_sizes: [f64; 2],
    /// ⟨d⁺, d⟩ and ⟨h⁺, h⟩
    pub products: [f64; 2],
}

/// What an iteration showed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown {
    /// Whether d has turned more than h.
    pub of_d: bool,
    /// Whether a probe is due because a direction swings back.
    pub triggered: bool,
    /// Whether a probe is due because the last one is long ago.
    pub scheduled: bool,
    /// Whether a direction keeps growing.
    pub keeps: bool,
}

impl Shown {
    /// Whether a probe is due.
    pub fn probes(self) -> bool {
        self.triggered || self.scheduled
    }
}

impl Finder {
    /// Whether it is AdaSDBO's rule, which adds the squares of all directions.
    pub fn adapts(&self) -> bool {
        self.given.rule == Rule::Adaptive && self.given.finds().contains(&true)
    }

    /// The numbers that a node sends: their names, how they are combined, their places, and whether each is sent.
    pub fn sends(&self) -> [(&'static str, Combine, usize, bool); 4] {
        [
            ("E", Combine::Number, SQUARE, self.given.alpha.is_none()),
            ("m_theta", Combine::Number, SQUARE_THETA, self.adapts()),
            ("m_v", Combine::Number, SQUARE_V, self.adapts()),
            ("L", Combine::Largest, CURVATURE, self.given.measures() && self.global),
        ]
    }

    /// α of iteration `k`, for an update by α τ y; `size` is |y|_∞, or |y|² of AdaSDBO's rule.
    pub fn outer<T: Real>(&self, rule: &mut [T], k: u64, size: f64, tau: T) -> T {
        if let Some(alpha) = self.given.alpha {
            return used(rule, 0, T::of(alpha.at(k)));
        }
        let mixed = rule[SQUARE].to_f64();
        let (square, alpha) = match self.given.rule {
            Rule::Auto => {
                let now = (k + 1) as f64;
                let r = (lag(rule, now) * size).powi(2);
                let square = mixed + (r - mixed) / now;
                let size = square.max(CLIP * r).sqrt() * now.sqrt();
                let unit = self.unit * (now / RAMP).min(1.0);
                // As long as every direction has been 0, so is the step.
                (square, if size == 0.0 { 0.0 } else { unit / size })
            }
            Rule::Adaptive => {
                let square = mixed + size;
                let inner = rule[SQUARE_THETA].max(rule[SQUARE_V]).to_f64();
                (square, 1.0 / (square * inner).sqrt())
            }
        };
        rule[SQUARE] = T::of(square);
        used(rule, 0, T::of(alpha / tau.to_f64()))
    }

    /// β of iteration `k`; `square` is |d|².
    pub fn beta<T: Real>(&self, rule: &mut [T], k: u64, square: f64) -> T {
        let square = self.adds(rule, SQUARE_THETA, square);
        let found = self.inner(rule, k, self.given.beta, square);
        used(rule, 1, found)
    }

    /// λ of iteration `k`, after β; `square` is |h|².
    pub fn lambda<T: Real>(&self, rule: &mut [T], k: u64, square: f64) -> T {
        let square = self.adds(rule, SQUARE_V, square);
        let square = square.map(|v| v.max(rule[SQUARE_THETA].to_f64()));
        let found = self.inner(rule, k, self.given.lambda, square);
        used(rule, 2, found)
    }

    /// A step of θ or v: the one that is given, 1/m, or c/L.
    fn inner<T: Real>(
        &self,
        rule: &[T],
        k: u64,
        given: Option<Schedule>,
        square: Option<f64>,
    ) -> T {
        let c = if self.global { GLOBAL } else { PERSONAL };
        T::of(match (given, square) {
            (Some(step), _) => step.at(k),
            (None, Some(square)) => 1.0 / square.sqrt(),
            (None, None) => match rule[CURVATURE].to_f64() {
                0.0 => 1.0,
                curvature => c / curvature,
            },
        })
    }

    /// m² with the square of a direction, where the rule is AdaSDBO's.
    fn adds<T: Real>(&self, rule: &mut [T], at: usize, square: f64) -> Option<f64> {
        if !self.adapts() {
            return None;
        }
        let square = rule[at].to_f64() + square;
        rule[at] = T::of(square);
        Some(square)
    }
}

/// Notes a step, for messages and reports.
fn used<T: Real>(rule: &mut [T], which: usize, step: T) -> T {
    if let Some(place) = rule.get_mut(STEPS[which]) {
        *place = step;
    }
    step
}

/// T in iteration `now`, counted from 1.
fn lag<T: Real>(rule: &mut [T], now: f64) -> f64 {
    let [d, h] = LEFT.map(|at| rule[at].to_f64());
    let [curvature, along_v] = [CURVATURE, ALONG_V].map(|at| rule[at].to_f64());
    // Before v moves, nothing is known of the curvature along it.
    let of_v = if along_v > 0.0 { curvature / (PERSONAL * along_v) } else { 1.0 };
    let lag = (1.0 / (1.0 - d.max(h))).min(of_v).min(LONGEST_LAG * now).max(1.0);
    rule[LAG] = T::of(lag);
    lag
}

/// Takes a curvature into account.
fn raise<T: Real>(rule: &mut [T], curvature: f64) {
    // A product that is not a number measures nothing.
    rule[CURVATURE] = rule[CURVATURE].max(T::of(curvature));
}

/// Notes the curvature along v.
pub fn note<T: Real>(rule: &mut [T], along_v: f64) {
    raise(rule, along_v);
    rule[ALONG_V] = T::of(if along_v.is_finite() { along_v } else { 0.0 });
}

/// Notes what an iteration showed of d and h.
pub fn show<T: Real>(rule: &mut [T], seen: Seen) -> Shown {
    let Seen { sizes, old_sizes, products } = seen;
    let over = |which: usize, size: f64| if size == 0.0 { 0.0 } else { products[which] / size };
    let [turned_d, turned_h] = [0, 1].map(|which| over(which, sizes[which] * old_sizes[which]));
    for (which, at) in LEFT.into_iter().enumerate() {
        let (mean, left) = (rule[at].to_f64(), over(which, old_sizes[which].powi(2)));
        // What is not a number says nothing.
        let left = if left > 0.0 { left.min(1.0) } else { 0.0 };
        rule[at] = T::of(mean + LATELY * (left - mean));
    }
    let since = rule[SINCE].to_f64() + 1.0;
    let triggered = turned_d.min(turned_h) < SWING && since >= rule[GAP].to_f64();
    let scheduled = since >= rule[WAIT].to_f64();
    rule[SINCE] = T::of(if triggered || scheduled { 0.0 } else { since });
    let mut keeps = false;
    for (which, at) in [GROWN_D, GROWN_H].into_iter().enumerate() {
        let (size, old) = (sizes[which], old_sizes[which]);
        let growth = match old > 0.0 && size > GROWTH * old {
            true => rule[at].to_f64().max(1.0) * (size / old).min(AT_ONCE),
            false => 0.0,
        };
        rule[at] = T::of(growth);
        keeps |= growth >= TOO_MUCH;
    }
    Shown { of_d: turned_d < turned_h, triggered, scheduled, keeps }
}

/// Takes a probe into account, where one was due; then halves the steps of θ and v while a direction keeps growing.
pub fn settle<T: Real>(rule: &mut [T], shown: Shown, curvature: f64) {
    let Shown { triggered, scheduled, keeps, .. } = shown;
    if shown.probes() {
        let before = rule[CURVATURE].to_f64();
        raise(rule, curvature);
        let [mut wait, mut gap] = [WAIT, GAP].map(|at| rule[at].to_f64());
        if curvature > RISE * before {
            (wait, gap) = ((wait / 2.0).floor().max(1.0), 1.0);
        } else {
            wait = if scheduled { (2.0 * wait).min(LONGEST) } else { wait };
            gap = if triggered { (2.0 * gap).min(LONGEST) } else { gap };
        }
        (rule[WAIT], rule[GAP]) = (T::of(wait), T::of(gap));
    }
    if keeps {
        raise(rule, 2.0 * rule[CURVATURE].to_f64());
        rule[CUTS] += T::one();
    }
}

/// The weight of θ in its running mean after iteration `k`.
pub fn weight_of_theta(k: u64) -> f64 {
    if k == 0 { 1.0 } else { RECENT / (k as f64 + RECENT) }
}

/// A Hessian-vector product on the minibatch of a draw, of length p; the last argument is the output.
pub type Product<'a, T> = &'a mut dyn FnMut(Draw, &[T], &mut [T]);

/// A node's step sizes.
///
/// A method that mixes first calls [`mix`](Steps::mix), then [`beta`](Steps::beta), [`lambda`](Steps::lambda) and
/// [`outer`](Steps::outer) in its step; one that mixes last calls them at the end of the iteration before, and
/// takes the steps from [`at`](Steps::at) in its messages. After the new directions, both call
/// [`look`](Steps::look); one whose directions come one after the other calls [`note`](Steps::note) and
/// [`measure`](Steps::measure), which it is made of.
pub struct Steps<T> {
    finder: Finder,
    /// The rule's numbers; empty if all steps are given.
    pub rule: Vec<T>,
    /// The running mean of θ; empty if there is none.
    pub mean: Vec<T>,
    /// d and h of the point just left, where the rule measures.
    pub old: [Vec<T>; 2],
    probe: [Vec<T>; 2], // w and H w
    hess: f64,          // |∇²_θθ ĝ v|
}

impl<T: Real> Steps<T> {
    /// At x⁰ and θ⁰, with directions d and h of these lengths, where `oracle` estimates them.
    pub fn new(
        given: Given,
        scope: Scope,
        At { x, theta }: At<T>,
        lengths: [usize; 2],
        oracle: &Oracle<T>,
    ) -> Steps<T> {
        let zeros = |needed: bool, length: usize| vec![T::zero(); if needed { length } else { 0 }];
        let [alpha, beta, lambda] = given.finds();
        let mut rule = zeros(alpha || beta || lambda, ALL);
        let ones: &[usize] = match given.rule {
            Rule::Auto => &[WAIT, GAP],
            Rule::Adaptive => &[SQUARE, SQUARE_THETA, SQUARE_V],
        };
        for &at in ones {
            rule.get_mut(at).into_iter().for_each(|number| *number = T::one());
        }
        let measures = given.measures();
        let mean = if beta && oracle.draws() { theta.to_vec() } else { Vec::new() };
        let old = lengths.map(|length| zeros(measures, length));
        let probe = [(); 2].map(|()| zeros(measures, lengths[0]));
        let finder = Finder { given, global: scope == Scope::Global, unit: unit(x) };
        Steps { finder, rule, mean, old, probe, hess: f64::NAN }
    }

    /// The step sizes that are given, and the rule for the others.
    pub fn given(&self) -> Given {
        self.finder.given
    }

    /// The rule, unless all steps are given.
    pub fn finder(&self) -> Option<Finder> {
        (!self.rule.is_empty()).then_some(self.finder)
    }

    fn measures(&self) -> bool {
        !self.probe[0].is_empty()
    }

    /// The numbers that nodes agree on, before all vectors.
    pub fn share(&self, out: &mut Outbox<T>) {
        for (name, kind, at, sent) in self.finder.sends() {
            if sent {
                out.number(name, kind, self.rule[at]);
            }
        }
    }

    /// Takes the numbers of the neighbours.
    pub fn mix(&mut self, mixed: &mut Mixed<T>) {
        for (_, kind, at, sent) in self.finder.sends() {
            if sent {
                // Where messages are late or clipped, a sum may leave the range of its terms.
                self.rule[at] = mixed.number(kind).max(T::zero());
            }
        }
    }

    /// α of iteration `k` with the direction y, for an update by α τ y.
    pub fn outer(&mut self, k: u64, y: &[T], tau: T) -> T {
        let Given { alpha, rule, .. } = self.finder.given;
        let size = match (alpha, rule) {
            (Some(_), _) => 0.0,
            (None, Rule::Auto) => largest(y),
            (None, Rule::Adaptive) => wide_dot(y, y),
        };
        self.finder.outer(&mut self.rule, k, size, tau)
    }

    /// β of iteration `k` with the direction d.
    pub fn beta(&mut self, k: u64, d: &[T]) -> T {
        let square = self.square(d);
        self.finder.beta(&mut self.rule, k, square)
    }

    /// The step of a method with a single one: β, which is reported as α.
    pub fn only(&mut self, k: u64, d: &[T]) -> T {
        let step = self.beta(k, d);
        used(&mut self.rule, 0, step)
    }

    /// λ of iteration `k` with the direction h, after β.
    pub fn lambda(&mut self, k: u64, h: &[T]) -> T {
        let square = self.square(h);
        self.finder.lambda(&mut self.rule, k, square)
    }

    /// The square of a direction, where the rule needs it.
    fn square(&self, direction: &[T]) -> f64 {
        if self.finder.adapts() { wide_dot(direction, direction) } else { 0.0 }
    }

    /// α, β and λ of iteration `k`, where they were found before it.
    pub fn at(&self, k: u64) -> [T; 3] {
        let Given { alpha, beta, lambda, .. } = self.finder.given;
        let given = [alpha, beta, lambda];
        std::array::from_fn(|which| match given[which] {
            Some(step) => T::of(step.at(k)),
            None => self.rule[STEPS[which]],
        })
    }

    /// The place for |∇²_θθ ĝ v| of the next directions, if it is wanted.
    pub fn hess(&mut self) -> Option<&mut f64> {
        self.hess = f64::NAN;
        if self.measures() { Some(&mut self.hess) } else { None }
    }

    /// Keeps d and h before others replace them.
    pub fn leave(&mut self, [d, h]: [&[T]; 2]) {
        if self.measures() {
            let [old_d, old_h] = &mut self.old;
            old_d.copy_from_slice(d);
            old_h.copy_from_slice(h);
        }
    }

    /// At x⁰, θ⁰ and v⁰, with the directions there: the curvature is measured.
    pub fn start(
        given: Given,
        scope: Scope,
        at: At<T>,
        v: &[T],
        now: &DirectionBuffers<T>,
        oracle: &mut Oracle<T>,
    ) -> Steps<T> {
        let lengths = now.inner().map(<[T]>::len);
        let mut steps = Steps::new(given, scope, at, lengths, oracle);
        let product = &mut |draw, w: &[T], out: &mut [T]| oracle.hess_g(at, draw, w, out);
        steps.begin(now.inner(), product);
        steps.note(v, now.draws.xi[1], product);
        steps
    }

    /// After iteration `k`, with the directions at the new point.
    pub fn look(&mut self, at: At<T>, v: &[T], now: &DirectionBuffers<T>, oracle: &mut Oracle<T>) {
        let k = oracle.k();
        let product = &mut |draw, w: &[T], out: &mut [T]| oracle.hess_g(at, draw, w, out);
        self.note(v, now.draws.xi[1], product);
        self.measure(k, at.theta, now.inner(), product);
    }

    /// Measures the curvature at the start, with the directions there.
    pub fn begin(&mut self, directions: [&[T]; 2], product: Product<T>) {
        if !self.measures() {
            return;
        }
        match directions.into_iter().find(|direction| norm(direction) > 0.0) {
            Some(first) => self.probe[0].copy_from_slice(first),
            None => self.probe[0].fill(T::one()),
        }
        for pass in 0..POWER {
            let curvature = self.along(PROBE.pass(pass), product);
            raise(&mut self.rule, curvature);
            if curvature == 0.0 {
                break;
            }
            self.probe.swap(0, 1);
        }
    }

    /// |H w| / |w|; H w / |w| is then in the second place of `probe`.
    fn along(&mut self, draw: Draw, product: Product<T>) -> f64 {
        let [w, found] = &mut self.probe;
        let size = norm(w);
        if size == 0.0 {
            return 0.0;
        }
        update(w, [], |w, []| T::of(Real::to_f64(w) / size));
        product(draw, w, found);
        norm(found)
    }

    /// |H v| / |v| of the directions at v; by the same product again, on the minibatch of `xi`, where they do
    /// not have it.
    pub fn note(&mut self, v: &[T], xi: Draw, product: Product<T>) {
        if !self.measures() {
            return;
        }
        let along_v = if self.hess.is_nan() {
            self.probe[0].copy_from_slice(v);
            self.along(xi, product)
        } else {
            let size = norm(v);
            if size > 0.0 { self.hess / size } else { 0.0 }
        };
        note(&mut self.rule, along_v);
    }

    /// Measures the curvature at the point that iteration `k` reached, for the next one, and continues the
    /// mean of θ.
    pub fn measure(&mut self, k: u64, theta: &[T], directions: [&[T]; 2], product: Product<T>) {
        if !self.mean.is_empty() {
            let weight = T::of(weight_of_theta(k));
            update(&mut self.mean, [theta], |mean, [theta]| mean + weight * (theta - mean));
        }
        if self.measures() {
            self.probe(directions, product);
        }
    }

    fn probe(&mut self, [d, h]: [&[T]; 2], product: Product<T>) {
        let sizes = [d, h].map(norm);
        let old_sizes = self.old.each_ref().map(|old| norm(old));
        let products = [wide_dot(d, &self.old[0]), wide_dot(h, &self.old[1])];
        let shown = show(&mut self.rule, Seen { sizes, old_sizes, products });
        let mut curvature = 0.0;
        if shown.probes() {
            let [old_d, old_h] = &self.old;
            let (new, old) = if shown.of_d || h.is_empty() { (d, old_d) } else { (h, old_h) };
            update(&mut self.probe[0], [new, old], |_, [new, old]| new - old);
            curvature = self.along(PROBE, product);
        }
        settle(&mut self.rule, shown, curvature);
    }
}

/// 24 standard deviations of the entries; 1 if all are equal.
fn unit<T: Real>(x: &[T]) -> f64 {
    if x.iter().all(|entry| *entry == x[0]) {
        return 1.0;
    }
    let n = x.len() as f64;
    let mean = x.iter().map(|&entry| Real::to_f64(entry)).sum::<f64>() / n;
    let square = x.iter().map(|&entry| (Real::to_f64(entry) - mean).powi(2)).sum::<f64>() / n;
    SPREAD * square.sqrt()
}
