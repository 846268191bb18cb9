//! A part of the problem with minibatches and counters: what an algorithm may ask of its node.

use serde::{Deserialize, Serialize};

use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, update};
use crate::problem::{At, Bilevel, Directions, Minibatches};

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

/// Independent draws in one turn of an inner loop.
const A_TURN: u32 = 8;

/// How many turns an inner loop may have.
pub const MOST_TURNS: usize = 500;

impl Draw {
    /// The same draw in turn `t` of an inner loop: independent of those of other turns.
    pub fn turn(self, t: usize) -> Draw {
        Draw(self.0 + A_TURN * t as u32)
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

/// How often each derivative was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// ∇_θ g.
    pub grad_theta_g: u64,
    /// ∇²_θθ g · v.
    pub hess_g: u64,
    /// ∇²_xθ g · v.
    pub cross_g: u64,
    /// ∇_θ f.
    pub grad_theta_f: u64,
    /// ∇_x f.
    pub grad_x_f: u64,
    /// ∇_x g.
    pub grad_x_g: u64,
    /// Samples these were evaluated on.
    pub samples: u64,
}

impl Counts {
    /// All of them, in the order above.
    pub fn to_array(self) -> [u64; 7] {
        let Counts { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples } =
            self;
        [grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples]
    }

    /// From all of them, in the order above.
    pub fn from_array(counts: [u64; 7]) -> Counts {
        let [grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples] = counts;
        Counts { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let (ours, theirs) = (self.to_array(), other.to_array());
        *self = Counts::from_array(std::array::from_fn(|at| ours[at] + theirs[at]));
    }
}

/// Samples per minibatch for each derivative; `None` takes all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// For ∇_θ g and ∇_x g.
    pub grad_g: Option<usize>,
    /// For ∇²_θθ g · v.
    pub hess_g: Option<usize>,
    /// For ∇²_xθ g · v.
    pub cross_g: Option<usize>,
    /// For ∇_θ f.
    pub grad_theta_f: Option<usize>,
    /// For ∇_x f.
    pub grad_x_f: Option<usize>,
}

impl Batches {
    /// The same size for every derivative.
    pub fn all(size: Option<usize>) -> Batches {
        Batches { grad_g: size, hess_g: size, cross_g: size, grad_theta_f: size, grad_x_f: size }
    }
}

/// Draws minibatches, evaluates derivatives on them and counts.
///
/// Samples are drawn uniformly with replacement. The draw at (iteration, [`Draw`]) is always the
/// same one: asking twice gives the same minibatch.
pub struct Oracle<T: Real> {
    part: Box<dyn Bilevel<T>>,
    sampler: Sampler,
    batches: Batches,
    counts: Counts,
    differences: Option<Differences<T>>,
    scripted: Option<std::vec::IntoIter<usize>>,
}

/// ∂/∂θ of a gradient along v, by [∇(x, θ + δv) − ∇(x, θ − δv)] / 2δ on one minibatch.
struct Differences<T> {
    delta: T,
    theta: Vec<T>,
    hold: Vec<T>,
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
        let below = &mut self.hold[..out.len()];
        update(there, [theta, v], |_, [theta, v]| theta + delta * v);
        gradient(At { x, theta: there }, out);
        update(there, [theta, v], |_, [theta, v]| theta - delta * v);
        gradient(At { x, theta: there }, below);
        update(out, [below], |above, [below]| (above - below) / (delta + delta));
    }
}

/// Draws minibatches.
struct Sampler {
    stream: Stream,
    address: u64, // 0 at the start, k + 1 in iteration k
    shared: bool,
    full: bool,
    all: Vec<u32>,
    drawn: [Vec<u32>; 5], // as many as are wanted at the same time
}

impl Sampler {
    fn draw(&mut self, draw: Draw, size: Option<usize>, of: usize) -> &[u32] {
        self.draw_all([(draw, size, of)])[0]
    }

    /// For each a draw, the size of the minibatch and the number of samples.
    fn draw_all<const N: usize>(&mut self, of: [(Draw, Option<usize>, usize); N]) -> [&[u32]; N] {
        for ((Draw(slot), size, of), batch) in of.into_iter().zip(&mut self.drawn) {
            let Some(size) = size.filter(|_| !self.full) else { continue };
            let slot = if self.shared { slot - slot % A_TURN } else { slot };
            self.stream.seek(self.address, slot);
            batch.clear();
            // One word a sample: the bias is at most `of` / 2³².
            let index = |word: u32| ((u64::from(word) * of as u64) >> 32) as u32;
            batch.extend((0..size).map(|_| index(self.stream.word())));
        }
        std::array::from_fn(|i| match of[i] {
            (_, Some(_), _) if !self.full => &self.drawn[i][..],
            (.., of) => &self.all[..of],
        })
    }
}

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
        let all = (0..part.samples_f().max(part.samples_g()) as u32).collect();
        let stream = Stream::new(seed, Purpose::Sampling, node);
        let drawn = Default::default();
        let sampler = Sampler { stream, address: 0, shared, full: false, all, drawn };
        let counts = Counts::default();
        Oracle { part, sampler, batches, counts, differences: None, scripted: None }
    }

    /// Puts a fixed sequence in place of the random truncations, to compare with another
    /// implementation step by step.
    pub fn script_truncations(&mut self, lengths: Vec<usize>) {
        self.scripted = Some(lengths.into_iter());
    }

    /// From here on every minibatch is all samples, until it is switched off.
    pub fn take_all(&mut self, all: bool) {
        self.sampler.full = all;
    }

    /// From here on products with second derivatives are central differences of gradients with
    /// the width `delta`, and counted as the two gradients that they are.
    pub fn take_differences(&mut self, delta: f64) {
        let (n, p) = (self.part.dims().n, self.part.dims().p);
        let [theta, hold] = [p, n.max(p)].map(|length| vec![T::zero(); length]);
        self.differences = Some(Differences { delta: T::of(delta), theta, hold });
    }

    /// The iteration under way.
    pub fn k(&self) -> u64 {
        self.sampler.address.saturating_sub(1)
    }

    /// Begins iteration `k` = 0, 1, …: new minibatches from here on.
    pub fn begin(&mut self, k: u64) {
        self.sampler.address = k + 1;
    }

    /// What was asked so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Counts on from what an earlier run had asked.
    pub fn count_from(&mut self, counts: Counts) {
        self.counts = counts;
    }

    /// The problem's part, for what needs no minibatch.
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

    /// Whether products with second derivatives are differences of gradients.
    pub fn takes_differences(&self) -> bool {
        self.differences.is_some()
    }

    /// All five derivatives of a method without inner loops, with exact second ones.
    pub fn directions(&mut self, at: At<T>, v: &[T], draws: Draws, out: Directions<T>) {
        let Draws { xi: [xi1, xi2, xi3], sigma: [sigma1, sigma2] } = draws;
        let (f, g, sizes) = (self.part.samples_f(), self.part.samples_g(), self.batches);
        let [xi1, xi2, xi3, sigma1, sigma2] = self.sampler.draw_all([
            (xi1, sizes.grad_g, g),
            (xi2, sizes.hess_g, g),
            (xi3, sizes.cross_g, g),
            (sigma1, sizes.grad_theta_f, f),
            (sigma2, sizes.grad_x_f, f),
        ]);
        let on = Minibatches { xi: [xi1, xi2, xi3], sigma: [sigma1, sigma2] };
        self.counts += Counts {
            grad_theta_g: 1,
            hess_g: 1,
            cross_g: 1,
            grad_theta_f: 1,
            grad_x_f: 1,
            grad_x_g: 0,
            samples: [xi1, xi2, xi3, sigma1, sigma2].iter().map(|on| on.len() as u64).sum(),
        };
        self.part.directions(at, v, on, out);
    }

    /// ∇_θ ĝ(x, θ; ξ)
    pub fn grad_theta_g(&mut self, at: At<T>, xi: Draw, out: &mut [T]) {
        let batch = self.sampler.draw(xi, self.batches.grad_g, self.part.samples_g());
        self.counts.grad_theta_g += 1;
        self.counts.samples += batch.len() as u64;
        self.part.grad_theta_g(at, batch, out);
    }

    /// ∇²_θθ ĝ(x, θ; ξ) v
    pub fn hess_g(&mut self, at: At<T>, xi: Draw, v: &[T], out: &mut [T]) {
        let batch = self.sampler.draw(xi, self.batches.hess_g, self.part.samples_g());
        if let Some(differences) = &mut self.differences {
            self.counts.grad_theta_g += 2;
            self.counts.samples += 2 * batch.len() as u64;
            let part = &mut *self.part;
            return differences.take(at, v, out, |at, out| part.grad_theta_g(at, batch, out));
        }
        self.counts.hess_g += 1;
        self.counts.samples += batch.len() as u64;
        self.part.hess_g(at, batch, v, out);
    }

    /// ∇²_xθ ĝ(x, θ; ξ) v
    pub fn cross_g(&mut self, at: At<T>, xi: Draw, v: &[T], out: &mut [T]) {
        let batch = self.sampler.draw(xi, self.batches.cross_g, self.part.samples_g());
        if let Some(differences) = &mut self.differences {
            self.counts.grad_x_g += 2;
            self.counts.samples += 2 * batch.len() as u64;
            let part = &mut *self.part;
            return differences.take(at, v, out, |at, out| part.grad_x_g(at, batch, out));
        }
        self.counts.cross_g += 1;
        self.counts.samples += batch.len() as u64;
        self.part.cross_g(at, batch, v, out);
    }

    /// ∇_θ f̂(x, θ; ς)
    pub fn grad_theta_f(&mut self, at: At<T>, sigma: Draw, out: &mut [T]) {
        let batch = self.sampler.draw(sigma, self.batches.grad_theta_f, self.part.samples_f());
        self.counts.grad_theta_f += 1;
        self.counts.samples += batch.len() as u64;
        self.part.grad_theta_f(at, batch, out);
    }

    /// ∇_x f̂(x, θ; ς)
    pub fn grad_x_f(&mut self, at: At<T>, sigma: Draw, out: &mut [T]) {
        let batch = self.sampler.draw(sigma, self.batches.grad_x_f, self.part.samples_f());
        self.counts.grad_x_f += 1;
        self.counts.samples += batch.len() as u64;
        self.part.grad_x_f(at, batch, out);
    }

    /// ∇_x ĝ(x, θ; ξ)
    pub fn grad_x_g(&mut self, at: At<T>, xi: Draw, out: &mut [T]) {
        let batch = self.sampler.draw(xi, self.batches.grad_g, self.part.samples_g());
        self.counts.grad_x_g += 1;
        self.counts.samples += batch.len() as u64;
        self.part.grad_x_g(at, batch, out);
    }
}
