//! A part of the problem with minibatches and counters: the interface of an algorithm to its node.

use super::derivative::{Batches, Counts, Derivative};
use super::form::Form;
use super::private::{Key, Mechanism, Private, Question};
use super::saga::{self, Saga, Term};
use super::{Ask, At, Bilevel, Dims, Directions, Minibatches, SingleLevel};
use crate::error::{Error, Result};
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, norm, update};
use crate::math::scratch::lent;

/// Which of an iteration's independent minibatches: ξ₁, ξ₂, … of g, ς₁, ς₂ of f.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw(u32);

/// ξ₁, for ∇_θ g.
pub const XI1: Draw = Draw(0);
/// ξ₂, for Hessian-vector products.
pub const XI2: Draw = Draw(1);
/// ξ₃, for Jacobian-vector products.
pub const XI3: Draw = Draw(2);
/// ς₁, for ∇_θ f.
pub const SIGMA1: Draw = Draw(3);
/// ς₂, for ∇_x f.
pub const SIGMA2: Draw = Draw(4);
/// The length of a randomly truncated series.
const TRUNCATION: Draw = Draw(5);
/// For Hessian-vector products that only measure the curvature: a minibatch of their own, also where
/// others share one.
pub const PROBE: Draw = Draw(6);

/// Independent draws in one pass of an inner loop.
const DRAWS_PER_PASS: u32 = 8;

impl Draw {
    /// Its slot among the draws of an iteration; `shared` if all of g uses one minibatch, and all
    /// of f another.
    pub fn slot(self, shared: bool) -> u32 {
        if shared { one_of_each(self.0) } else { self.0 }
    }

    /// The same draw in pass `t` of an inner loop, independent of those of other passes.
    pub fn pass(self, t: usize) -> Draw {
        Draw(self.0 + DRAWS_PER_PASS * t as u32)
    }
}

/// Which minibatches the directions of a method without inner loops are evaluated on.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    /// ξ₁, ξ₂, ξ₃
    pub xi: [Draw; 3],
    /// ς₁, ς₂
    pub sigma: [Draw; 2],
}

/// Five independent minibatches.
pub const FIVE: Draws = Draws { xi: [XI1, XI2, XI3], sigma: [SIGMA1, SIGMA2] };

/// One of g and one of f.
pub const TWO: Draws = Draws { xi: [XI1; 3], sigma: [SIGMA1; 2] };

/// The directions that a step requests at its end: see
/// [`Algorithm::asks`](crate::algorithms::Algorithm::asks).
pub struct DirectionRequest<'a, T> {
    /// The point.
    pub at: At<'a, T>,
    /// v of (7) and (8).
    pub v: &'a [T],
    /// The minibatches.
    pub draws: Draws,
    /// The output for d of (6).
    pub d: &'a mut [T],
    /// The output for h of (7).
    pub h: &'a mut [T],
    /// The output for s of (8).
    pub s: &'a mut [T],
    /// The output for |∇²_θθ ĝ v| in (7), if it is wanted.
    pub hess: Option<&'a mut f64>,
    /// The tables that the estimates are corrected by, if there are any.
    pub saga: Option<&'a mut Saga<T>>,
}

impl<'a, T> DirectionRequest<'a, T> {
    /// The same with a place for |∇²_θθ ĝ v|.
    pub fn noting(self, hess: Option<&'a mut f64>) -> DirectionRequest<'a, T> {
        DirectionRequest { hess, ..self }
    }
}

/// Draws minibatches, evaluates derivatives on them and counts.
///
/// Samples are drawn uniformly with replacement, or in blocks of consecutive samples that come in a new order in every
/// epoch ([`take_epochs`](Oracle::take_epochs)). The draw at (iteration, [`Draw`]) is always the same: requesting it
/// twice gives the same minibatch.
pub struct Oracle<T: Real> {
    part: Box<dyn Bilevel<T>>,
    sampler: Sampler,
    batches: Batches,
    counts: Counts,
    differences: Option<Differences<T>>,
    private: Option<Box<Private<T>>>,
    scripted: Option<std::vec::IntoIter<usize>>,
    scratch: Vec<T>, // for calls together with other nodes; else that of the thread is used
}

/// Scratch memory of a thread, of length n or p, whichever is larger.
#[derive(Default)]
struct Room<T>(Vec<T>);

impl<T: Real> Room<T> {
    fn of(&mut self, length: usize) -> &mut [T] {
        if self.0.len() < length {
            self.0.resize(length, T::zero());
        }
        &mut self.0[..length]
    }
}

/// 0, 1, 2, …: all samples of most nodes.
static FIRST: [u32; 4096] = {
    let mut all = [0; 4096];
    let mut at = 0;
    while at < all.len() {
        all[at] = at as u32;
        at += 1;
    }
    all
};

/// ∂/∂θ of a gradient along v, by [∇(x, θ + δv) − ∇(x, θ − δv)] / 2δ on one minibatch.
struct Differences<T> {
    delta: T,
    theta: Vec<T>,
    scratch: Vec<T>,
}

impl<T: Real> Differences<T> {
    fn take(
        &mut self,
        At { x, theta }: At<T>,
        v: &[T],
        out: &mut [T],
        mut gradient: impl FnMut(At<T>, &mut [T]),
    ) {
        let (delta, there) = (self.delta, &mut self.theta);
        let below = &mut self.scratch[..out.len()];
        update(there, [theta, v], |_, [theta, v]| theta + delta * v);
        gradient(At { x, theta: there }, out);
        update(there, [theta, v], |_, [theta, v]| theta - delta * v);
        gradient(At { x, theta: there }, below);
        update(out, [below], |above, [below]| (above - below) / (delta + delta));
    }
}

/// The draw of a pass that is shared by all of g, or all of f: ξ₁ or ς₁. Their samples differ, even
/// where f and g have the same number of them.
fn one_of_each(slot: u32) -> u32 {
    let (pass, kind) = (slot - slot % DRAWS_PER_PASS, slot % DRAWS_PER_PASS);
    pass + match kind {
        0..3 => XI1.0,
        3..5 => SIGMA1.0,
        own => own,
    }
}

/// Draws the minibatches of a node.
pub struct Sampler {
    stream: Stream,
    address: u64, // 0 at the start, k + 1 in iteration k
    shared: bool,
    full: bool,
    epochs: Option<Vec<Epoch>>, // the orders of blocks that are in use, where blocks are drawn
    all: Vec<u32>,              // 0, 1, 2, … where there are more than in `FIRST`
    drawn: [Vec<u32>; 5],       // as many as are needed at the same time
}

/// The order in which one draw takes the blocks of an epoch.
struct Epoch {
    slot: u32,
    number: u64,
    blocks: Vec<u32>,
}

/// A minibatch to be drawn: the draw, its size and the number of samples.
type Wanted = (Draw, Option<usize>, usize);

impl Sampler {
    /// That of node `node`, whose f and g have at most this number of samples.
    pub fn new(samples: usize, shared: bool, seed: u64, node: usize) -> Sampler {
        let all = if samples > FIRST.len() { (0..samples as u32).collect() } else { Vec::new() };
        let stream = Stream::new(seed, Purpose::Sampling, node);
        let drawn = Default::default();
        Sampler { stream, address: 0, shared, full: false, epochs: None, all, drawn }
    }

    /// Begins iteration `k` = 0, 1, …: new minibatches from here on.
    pub fn begin(&mut self, k: u64) {
        self.address = k + 1;
    }

    /// A minibatch of this size, or of all samples, of a function with this number of samples.
    pub fn draw(&mut self, draw: Draw, size: Option<usize>, of: usize) -> &[u32] {
        self.draw_all([(draw, size, of)])[0]
    }

    fn draw_all<const N: usize>(&mut self, of: [Wanted; N]) -> [&[u32]; N] {
        if let Some(blocks) = self.blocks(of) {
            return std::array::from_fn(|i| self.block(of[i], blocks[i]));
        }
        let known: [usize; N] = std::array::from_fn(|i| self.first_like(&of, i));
        for (i, (draw, size, of)) in of.into_iter().enumerate().filter(|&(i, _)| known[i] == i) {
            let Some(size) = size.filter(|_| !self.full) else { continue };
            self.stream.seek(self.address, draw.slot(self.shared));
            let batch = &mut self.drawn[i];
            batch.clear();
            // One word per sample: the bias is at most `of` / 2³².
            let index = |word: u32| ((u64::from(word) * of as u64) >> 32) as u32;
            batch.extend((0..size).map(|_| index(self.stream.word())));
        }
        std::array::from_fn(|i| match of[i] {
            (_, Some(_), _) if !self.full => &self.drawn[known[i]][..],
            (.., of) => self.first(of),
        })
    }

    /// The first of these minibatches that is the same as the i-th.
    fn first_like(&self, of: &[Wanted], i: usize) -> usize {
        let key = |&(draw, size, of): &Wanted| (draw.slot(self.shared), size, of);
        of[..i].iter().position(|other| key(other) == key(&of[i])).unwrap_or(i)
    }

    /// The first samples, in their order.
    fn first(&self, of: usize) -> &[u32] {
        FIRST.get(..of).unwrap_or_else(|| &self.all[..of])
    }

    /// The samples of a block.
    fn block(&self, (_, size, of): Wanted, block: usize) -> &[u32] {
        let size = size.unwrap_or(of);
        &self.first(of)[block * size..of.min((block + 1) * size)]
    }

    /// The block of each draw, if blocks are drawn.
    fn blocks<const N: usize>(&mut self, of: [Wanted; N]) -> Option<[usize; N]> {
        if self.full || self.epochs.is_none() {
            return None;
        }
        Some(of.map(|wanted| self.drawn_block(wanted)))
    }

    /// The block of a draw: the blocks of an epoch come in an order of their own, which is a function of the number
    /// of the epoch.
    fn drawn_block(&mut self, (draw, size, of): Wanted) -> usize {
        let Sampler { stream, address, shared, epochs: Some(epochs), .. } = self else { return 0 };
        let (count, slot) = (saga::blocks(size, of) as u64, draw.slot(*shared));
        let (number, at) = (*address / count, (*address % count) as usize);
        let found = epochs.iter().position(|epoch| epoch.slot == slot);
        let epoch = match found {
            Some(found) => &mut epochs[found],
            None => {
                epochs.push(Epoch { slot, number: u64::MAX, blocks: Vec::new() });
                epochs.last_mut().expect("just pushed")
            }
        };
        if epoch.number != number || epoch.blocks.len() as u64 != count {
            epoch.number = number;
            epoch.blocks.clear();
            epoch.blocks.extend(0..count as u32);
            stream.seek(number, slot);
            stream.shuffle(&mut epoch.blocks);
        }
        epoch.blocks[at] as usize
    }
}

/// The largest tables of a node: 64 GiB.
const MOST_BYTES: u64 = 1 << 36;

impl<T: Real> Oracle<T> {
    /// The oracle of node `node`; with `shared` samples, all derivatives of an iteration are
    /// evaluated on one minibatch of f and one of g.
    pub fn new(
        part: Box<dyn Bilevel<T>>,
        batches: Batches,
        shared: bool,
        seed: u64,
        node: usize,
    ) -> Oracle<T> {
        let sampler = Sampler::new(part.samples_f().max(part.samples_g()), shared, seed, node);
        let counts = Counts::default();
        let (differences, private, scripted, scratch) = (None, None, None, Vec::new());
        Oracle { part, sampler, batches, counts, differences, private, scripted, scratch }
    }

    /// Replaces the random truncations by a fixed sequence, to compare with another implementation
    /// step by step.
    pub fn script_truncations(&mut self, lengths: Vec<usize>) {
        self.scripted = Some(lengths.into_iter());
    }

    /// From here on every minibatch is all samples, until it is switched off.
    pub fn take_all(&mut self, all: bool) {
        self.sampler.full = all;
    }

    /// From here on minibatches are blocks of consecutive samples, each once in an epoch, in an order that is drawn
    /// for the epoch.
    pub fn take_epochs(&mut self) {
        self.sampler.epochs = Some(Vec::new());
    }

    /// From here on products with second derivatives are central differences of gradients with
    /// the width `delta`, and counted as the two gradients that they are.
    ///
    /// # Errors
    /// If the problem has no ∇_x g to take differences of.
    pub fn take_differences(&mut self, delta: f64) -> Result<()> {
        self.single_level()?;
        let (n, p) = (self.part.dims().n, self.part.dims().p);
        let [theta, scratch] = [p, n.max(p)].map(|length| vec![T::zero(); length]);
        self.differences = Some(Differences { delta: T::of(delta), theta, scratch });
        Ok(())
    }

    /// From here on every derivative hides single rows: see [`private`](super::private).
    pub fn protect(&mut self, mechanism: Mechanism, key: Key) {
        let longest = self.room();
        self.private = Some(Box::new(Private::new(mechanism, key, longest)));
    }

    /// The mechanism that hides single rows, if there is one.
    pub fn mechanism(&self) -> Option<&Mechanism> {
        self.private.as_ref().map(|private| private.mechanism())
    }

    /// The clips of derivatives that change during a run.
    pub fn clips(&self) -> &[f64] {
        self.private.as_ref().map_or(&[], |private| private.clips())
    }

    /// The same, to continue an earlier run.
    pub fn clips_mut(&mut self) -> &mut [f64] {
        self.private.as_mut().map_or(&mut [], |private| private.clips_mut())
    }

    /// The functions of the problem that single-level and first-order methods need.
    pub fn single_level(&mut self) -> Result<&mut dyn SingleLevel<T>> {
        self.part.single_level().ok_or_else(|| {
            let message = "single-level and first-order methods need ∇_x g, which this problem \
                           does not offer";
            Error::config("config/no-first-order", message)
                .hint("choose a method that takes second derivatives, such as `lopa-gt`")
        })
    }

    /// Takes the error of a derivative, if one failed.
    pub fn error(&mut self) -> Option<Error> {
        self.part.error()
    }

    /// The iteration under way.
    pub fn k(&self) -> u64 {
        self.sampler.address.saturating_sub(1)
    }

    /// Begins iteration `k` = 0, 1, …: new minibatches from here on.
    pub fn begin(&mut self, k: u64) {
        self.sampler.begin(k);
        self.private.iter_mut().for_each(|private| private.begin());
    }

    /// The calls so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Continues the counts of an earlier run.
    pub fn count_from(&mut self, counts: Counts) {
        self.counts = counts;
    }

    /// The functions of the part, for a device; or the reason why no device can take it over.
    pub fn form(&self) -> Result<Form<'_, T>, &'static str> {
        if self.sampler.epochs.is_some() {
            return Err("devices draw each row by itself: leave `epochs` out");
        }
        match self.joins() {
            true => self.part.form(),
            false => {
                Err("devices take no differences and hide no rows: leave `finite_differences` and \
                          `[privacy]` out")
            }
        }
    }

    /// Tables for all five terms, not yet filled; or the reason why there can be none.
    pub fn saga(&self) -> Result<Saga<T>> {
        let refused =
            |message: &str, hint: &str| Err(Error::config("config/saga", message).hint(hint));
        if self.sampler.epochs.is_none() {
            return refused(
                "`estimate = \"saga\"` keeps the terms of each block of an epoch, and this run draws no blocks",
                "set `epochs = true` in [run]",
            );
        }
        if !self.joins() {
            return refused(
                "`estimate = \"saga\"` goes neither with differences of gradients nor with `[privacy]`",
                "leave `estimate` out, or `finite_differences`, `order = \"first\"` and `[privacy]`",
            );
        }
        let bytes = saga::bytes(&*self.part, self.batches);
        if bytes > MOST_BYTES {
            let message = format!(
                "the tables of `estimate = \"saga\"` would take {} GiB at this node",
                bytes >> 30
            );
            return refused(&message, "take a larger `batch`, or leave `estimate` out");
        }
        Ok(Saga::new(&*self.part, self.batches))
    }

    /// Fills tables at a point, block by block.
    pub fn fill(&mut self, saga: &mut Saga<T>, at: At<T>, v: &[T]) {
        lent(|room: &mut Room<T>| {
            let Oracle { part, sampler, counts, .. } = self;
            for term in Term::ALL {
                let wanted = wanted(&**part, self.batches, term, XI1);
                let out = room.of(saga.length(term));
                for block in 0..saga::blocks(wanted.1, wanted.2) {
                    let batch = sampler.block(wanted, block);
                    term.compute(&mut **part, (at, v), batch, out);
                    term.derivative().count(counts, batch.len() as u64);
                    saga.set(term, block, out);
                }
            }
        });
        saga.sum();
    }

    fn wanted(&self, term: Term, draw: Draw) -> Wanted {
        wanted(&*self.part, self.batches, term, draw)
    }

    /// `out` ← one term on the minibatch of `draw`, corrected by its table.
    pub fn corrected(
        &mut self,
        (term, draw): (Term, Draw),
        (at, v): (At<T>, &[T]),
        saga: &mut Saga<T>,
        out: &mut [T],
    ) {
        let wanted = self.wanted(term, draw);
        let block = self.sampler.drawn_block(wanted);
        let batch = self.sampler.block(wanted, block);
        term.compute(&mut *self.part, (at, v), batch, out);
        term.derivative().count(&mut self.counts, batch.len() as u64);
        saga.correct(term, block, out);
    }

    /// The directions of a request, each of the five terms corrected by its table.
    fn answer_corrected(&mut self, wanted: DirectionRequest<T>) {
        let DirectionRequest { at, v, draws, d, h, s, hess, saga: Some(saga) } = wanted else {
            return;
        };
        let Draws { xi: [xi1, xi2, xi3], sigma: [sigma1, sigma2] } = draws;
        let of_g = [(Term::GradThetaG, xi1), (Term::HessG, xi2), (Term::CrossG, xi3)];
        let of_g = of_g.map(|(term, draw)| self.wanted(term, draw));
        let blocks = of_g.map(|wanted| self.sampler.drawn_block(wanted));
        let xi: [&[u32]; 3] = std::array::from_fn(|i| self.sampler.block(of_g[i], blocks[i]));
        self.part.terms_of_g(at, v, xi, [&mut *d, &mut *h, &mut *s]);
        let samples = xi.iter().map(|on| on.len() as u64).sum();
        self.counts +=
            Counts { samples, grad_theta_g: 1, hess_g: 1, cross_g: 1, ..Counts::default() };
        saga.correct(Term::GradThetaG, blocks[0], d);
        saga.correct(Term::HessG, blocks[1], h);
        saga.correct(Term::CrossG, blocks[2], s);
        if let Some(hess) = hess {
            *hess = norm(h);
        }
        let length = self.room();
        lent(|room: &mut Room<T>| {
            let room = room.of(length);
            let grad = &mut room[..h.len()];
            self.corrected((Term::GradThetaF, sigma1), (at, v), saga, grad);
            update(h, [grad], |hess_v, [grad]| hess_v - grad);
            let grad = &mut room[..s.len()];
            self.corrected((Term::GradXF, sigma2), (at, v), saga, grad);
            update(s, [grad], |cross_v, [grad]| grad - cross_v);
        });
    }

    /// Whether gradients of g are estimates from minibatches.
    pub fn draws(&self) -> bool {
        self.batches.grad_g.is_some()
    }

    /// The samples of f and of g.
    pub fn samples(&self) -> (usize, usize) {
        (self.part.samples_f(), self.part.samples_g())
    }

    /// Counts the derivatives of d, h and s that a device computed, those that are `wanted`; `single` if s is
    /// ∇_x g.
    pub fn count(&mut self, [d, h, s]: [bool; 3], single: bool) {
        let (f, g) = self.samples();
        let Batches { grad_g, hess_g, cross_g, grad_theta_f, grad_x_f } = self.batches;
        let counted = [
            (d, grad_g, g),
            (h, hess_g, g),
            (s && !single, cross_g, g),
            (h, grad_theta_f, f),
            (s && !single, grad_x_f, f),
            (s && single, grad_g, g),
        ];
        let samples = counted.map(|(counts, size, all)| match counts {
            true => size.unwrap_or(all) as u64,
            false => 0,
        });
        let [d, h, cross, of_theta, of_x, single] = counted.map(|(counts, ..)| u64::from(counts));
        self.counts +=
            Counts::from_array([d, h, cross, of_theta, of_x, single, samples.iter().sum()]);
    }

    /// Counts Hessian-vector products that a device computed.
    pub fn count_products(&mut self, products: u64) {
        let samples = self.batches.hess_g.unwrap_or(self.samples().1) as u64;
        let none = Counts::default();
        self.counts += Counts { hess_g: products, samples: products * samples, ..none };
    }

    /// The problem's part, for calls without a minibatch.
    pub fn part(&mut self) -> &mut dyn Bilevel<T> {
        &mut *self.part
    }

    /// A length drawn uniformly from 0, …, `q` − 1.
    pub fn truncation(&mut self, q: usize) -> usize {
        if let Some(next) = self.scripted.as_mut().and_then(Iterator::next) {
            return next;
        }
        self.sampler.stream.seek(self.sampler.address, TRUNCATION.0);
        self.sampler.stream.below(q)
    }

    /// Whether directions can be computed together: not where products are differences, or rows are
    /// clipped one by one.
    pub fn joins(&self) -> bool {
        self.differences.is_none() && self.private.is_none()
    }

    /// Computes the directions that a step requested.
    pub fn answer(&mut self, wanted: DirectionRequest<T>) {
        if wanted.saga.is_some() {
            return self.answer_corrected(wanted);
        }
        if self.joins() {
            let length = self.room();
            return lent(|room: &mut Room<T>| {
                let Ask { at, v, on, out, .. } = question(
                    &mut self.sampler,
                    &mut self.counts,
                    room.of(length),
                    (&*self.part, self.batches),
                    wanted,
                );
                self.part.directions(at, v, on, out);
            });
        }
        let DirectionRequest { at, v, draws, d, h, s, hess, .. } = wanted;
        self.grad_theta_g(at, draws.xi[0], d);
        self.residual(at, v, (draws.xi[1], draws.sigma[0]), h, hess);
        self.hypergradient(at, v, (draws.xi[2], draws.sigma[1]), s);
    }

    /// The request of a step with its minibatches, to be computed together with those of other
    /// nodes.
    pub fn ask<'a>(&'a mut self, node: usize, wanted: DirectionRequest<'a, T>) -> Ask<'a, T> {
        let length = self.room();
        let Oracle { part, sampler, batches, counts, scratch, .. } = self;
        scratch.resize(length, T::zero());
        Ask { node, ..question(sampler, counts, scratch, (&**part, *batches), wanted) }
    }

    /// `out` ← ∇²_θθ ĝ(ξ) v − ∇_θ f̂(ς), the direction of v, (7), and `hess` ← |∇²_θθ ĝ(ξ) v|.
    pub fn residual(
        &mut self,
        at: At<T>,
        v: &[T],
        (xi, sigma): (Draw, Draw),
        out: &mut [T],
        hess: Option<&mut f64>,
    ) {
        self.hess_g(at, xi, v, out);
        if let Some(hess) = hess {
            *hess = norm(out);
        }
        self.minus(out, |oracle, grad| oracle.grad_theta_f(at, sigma, grad));
    }

    /// `out` ← ∇_x f̂(ς) − ∇²_xθ ĝ(ξ) v, the estimate of ∇Φ_i, (8).
    pub fn hypergradient(&mut self, at: At<T>, v: &[T], (xi, sigma): (Draw, Draw), out: &mut [T]) {
        self.grad_x_f(at, sigma, out);
        self.minus(out, |oracle, cross_v| oracle.cross_g(at, xi, v, cross_v));
    }

    /// `out` ← `out` − the output of `find`.
    pub fn minus(&mut self, out: &mut [T], find: impl FnOnce(&mut Self, &mut [T])) {
        lent(|room: &mut Room<T>| {
            let found = room.of(out.len());
            find(self, found);
            update(out, [found], |out, [found]| out - found);
        });
    }

    /// The length of scratch memory.
    fn room(&self) -> usize {
        let Dims { n, p } = self.part.dims();
        n.max(p)
    }

    /// ∇_θ ĝ(x, θ; ξ)
    pub fn grad_theta_g(&mut self, at: At<T>, xi: Draw, out: &mut [T]) {
        let of = (Derivative::GradThetaG, xi);
        self.take(of, at, &[], out, |part, batch, out| part.grad_theta_g(at, batch, out));
    }

    /// ∇²_θθ ĝ(x, θ; ξ) v
    pub fn hess_g(&mut self, at: At<T>, xi: Draw, v: &[T], out: &mut [T]) {
        if let Some(differences) = &mut self.differences {
            let batch = self.sampler.draw(xi, self.batches.hess_g, self.part.samples_g());
            self.counts.grad_theta_g += 2;
            self.counts.samples += 2 * batch.len() as u64;
            let part = &mut *self.part;
            return differences.take(at, v, out, |at, out| part.grad_theta_g(at, batch, out));
        }
        let of = (Derivative::HessG, xi);
        self.take(of, at, v, out, |part, batch, out| part.hess_g(at, batch, v, out));
    }

    /// ∇²_xθ ĝ(x, θ; ξ) v
    pub fn cross_g(&mut self, at: At<T>, xi: Draw, v: &[T], out: &mut [T]) {
        if let Some(differences) = &mut self.differences {
            let batch = self.sampler.draw(xi, self.batches.cross_g, self.part.samples_g());
            self.counts.grad_x_g += 2;
            self.counts.samples += 2 * batch.len() as u64;
            let part = self.part.single_level().expect("asked for when differences were");
            return differences.take(at, v, out, |at, out| part.grad_x_g(at, batch, out));
        }
        let of = (Derivative::CrossG, xi);
        self.take(of, at, v, out, |part, batch, out| part.cross_g(at, batch, v, out));
    }

    /// ∇_θ f̂(x, θ; ς)
    pub fn grad_theta_f(&mut self, at: At<T>, sigma: Draw, out: &mut [T]) {
        let of = (Derivative::GradThetaF, sigma);
        self.take(of, at, &[], out, |part, batch, out| part.grad_theta_f(at, batch, out));
    }

    /// ∇_x f̂(x, θ; ς)
    pub fn grad_x_f(&mut self, at: At<T>, sigma: Draw, out: &mut [T]) {
        let of = (Derivative::GradXF, sigma);
        self.take(of, at, &[], out, |part, batch, out| part.grad_x_f(at, batch, out));
    }

    /// ∇_x ĝ(x, θ; ξ), of a problem that has [`single_level`](Oracle::single_level).
    pub fn grad_x_g(&mut self, at: At<T>, xi: Draw, out: &mut [T]) {
        let of = (Derivative::GradXG, xi);
        self.take(of, at, &[], out, |part, batch, out| match part.single_level() {
            Some(part) => part.grad_x_g(at, batch, out),
            None => out.fill(T::nan()),
        });
    }

    /// `out` ← a derivative, which computes itself on given rows: on the minibatch of `draw`, or such that it hides
    /// single rows.
    fn take(
        &mut self,
        (of, draw): (Derivative, Draw),
        at: At<T>,
        v: &[T],
        out: &mut [T],
        derivative: impl Fn(&mut dyn Bilevel<T>, &[u32], &mut [T]),
    ) {
        let part = &mut *self.part;
        let samples = match &mut self.private {
            Some(private) => {
                let question = Question { of, address: self.sampler.address, at, v };
                private.take(question, out, |rows, out| derivative(part, rows, out))
            }
            None => {
                let rows = if of.is_outer() { part.samples_f() } else { part.samples_g() };
                let batch = self.sampler.draw(draw, of.batch(self.batches), rows);
                derivative(part, batch, out);
                batch.len()
            }
        };
        of.count(&mut self.counts, samples as u64);
    }
}

/// The calls behind d, h and s.
const ONCE: Counts = Counts {
    grad_theta_g: 1,
    hess_g: 1,
    cross_g: 1,
    grad_theta_f: 1,
    grad_x_f: 1,
    grad_x_g: 0,
    samples: 0,
};

/// The minibatch of a term.
fn wanted<T: Real>(part: &dyn Bilevel<T>, sizes: Batches, term: Term, draw: Draw) -> Wanted {
    (draw, term.derivative().batch(sizes), term.samples(part))
}

/// Draws the minibatches of a request, and counts them.
fn question<'a, T: Real>(
    sampler: &'a mut Sampler,
    counts: &mut Counts,
    scratch: &'a mut [T],
    (part, sizes): (&dyn Bilevel<T>, Batches),
    DirectionRequest { at, v, draws, d, h, s, hess, .. }: DirectionRequest<'a, T>,
) -> Ask<'a, T> {
    let Draws { xi: [xi1, xi2, xi3], sigma: [sigma1, sigma2] } = draws;
    let (f, g) = (part.samples_f(), part.samples_g());
    let [xi1, xi2, xi3, sigma1, sigma2] = sampler.draw_all([
        (xi1, sizes.grad_g, g),
        (xi2, sizes.hess_g, g),
        (xi3, sizes.cross_g, g),
        (sigma1, sizes.grad_theta_f, f),
        (sigma2, sizes.grad_x_f, f),
    ]);
    let samples = [xi1, xi2, xi3, sigma1, sigma2].iter().map(|on| on.len() as u64).sum();
    *counts += Counts { samples, ..ONCE };
    let on = Minibatches { xi: [xi1, xi2, xi3], sigma: [sigma1, sigma2] };
    Ask { node: 0, at, v, on, out: Directions { d, h, s, hess, scratch } }
}
