//! The kernels of kernels/lopa.cu on the processor: every sum in the same order, hence the same bits.

// Fused products of the card, emulated for tests.
#![allow(clippy::disallowed_methods)]

use lopa::algorithms::parts::steps::number::{self, STEPS};
use lopa::algorithms::parts::steps::{
    self, Finder, Seen, Shown, note, settle, show, weight_of_theta,
};
use lopa::algorithms::update_rule::Turn;
use lopa::engine::device::{DeviceRun, Exchange, Program};
use lopa::engine::list::{List, Step};
use lopa::engine::{Node, Parcel};
use lopa::error::Result;
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::Real;
use lopa::network::outbox::Combine;

use crate::choice::{Can, Choice, choose};
use crate::exponential::Exponential;
use crate::finds::{Finds, SENT};
use crate::job::{
    Common, HUBER, LOGISTIC, PER_COLUMN, PER_GROUP, PER_ROW, PER_SAMPLE, RELU, SOFTMAX, TANH,
};
use crate::plan::{Kind, Plan, Rule, THETA, Table, X, Y, refused};
use crate::steps::FINDERS;
use crate::{general, tensor};

/// A run on an emulated card.
pub struct Emulation<T: Exponential> {
    pub plan: Plan<T>,
    k: u64,
    /// theta, d, v, h, s, z, y, x, then the other arrays of a list
    pub now: Vec<Vec<T>>,
    /// The same of neighbours in other processes, where they are mixed, with the rows of nodes here left free.
    others: Vec<Vec<T>>,
    pub picks: Vec<u32>,
    /// The array for the product with v in h, in an evaluation where it is wanted.
    pub hess: Option<usize>,
    finding: Finding<T>,
    /// d, h and s of a node on tensor cores.
    oracle: Option<fn(&mut Emulation<T>, usize)>,
    /// Of each layer.
    hidden: Vec<Vec<T>>,
    slopes: Vec<T>,
    errors: Vec<Vec<T>>,
}

const D: usize = 1;
const V: usize = 2;
const H: usize = 3;
const S: usize = 4;
const Z: usize = 5;

const XI1: usize = 0;
const XI2: usize = 1;
const XI3: usize = 2;
const SIGMA1: usize = 3;
const SIGMA2: usize = 4;

/// Takes over a run with plain kernels.
pub fn open<T: Exponential>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let (_, plan, _) = choose(&program, found(&program), |_, _| Can::default())?;
    Ok(Box::new(Emulation::new(plan, program.nodes, None)))
}

fn found<T: Exponential>(program: &Program<T>) -> Result<((), Plan<T>)> {
    Plan::new(program).map(|plan| ((), plan))
}

/// Takes over a run on tensor cores wherever they support it.
pub fn open_tensor<T: Exponential>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let can = |_: &(), plan: &Plan<T>| Can { tensor: tensor::can(plan), ..Can::default() };
    match choose(&program, found(&program), can)? {
        (_, plan, Choice::Tensor) => tensor::emulated(plan, program.nodes),
        _ => Err(refused("what tensor cores do not serve")),
    }
}

/// Takes over a run with the kernels of any shape wherever they support it.
pub fn open_general<T: Exponential>(program: Program<T>) -> Result<Box<dyn DeviceRun<T>>> {
    let can = |_: &(), plan: &Plan<T>| Can { general: general::can(plan), ..Can::default() };
    match choose(&program, found(&program), can)? {
        (_, plan, Choice::General) => general::emulated(plan, program.nodes),
        _ => Err(refused("what tensor cores do not serve")),
    }
}

impl<T: Exponential> DeviceRun<T> for Emulation<T> {
    fn advance(&mut self, exchange: Exchange) -> Result<()> {
        match std::mem::replace(&mut self.plan.rule, Rule::Listed(List::default())) {
            Rule::Usual(rule) => {
                self.plan.rule = Rule::Usual(rule);
                self.hear(self.plan.mixed(), exchange)?;
                let turns = self.plan.finds.as_ref().map(|finds| finds.turns);
                if let Some([first, ..]) = turns {
                    self.find(first);
                }
                self.mix();
                self.turn();
                self.evaluate(0);
                if let Some([_, seen, last]) = turns {
                    self.find(seen);
                    if let Some((measures, _)) = self.plan.probe() {
                        self.evaluate(measures.probe);
                    }
                    self.find(last);
                }
            }
            Rule::Listed(list) => {
                let factors: Vec<T> =
                    list.factors.iter().map(|factor| T::of(factor(self.k))).collect();
                for step in &list.steps {
                    match step {
                        Step::Sums { wide, .. } => {
                            self.hear(&step.mixed(), &mut *exchange)?;
                            self.sums(step, *wide, &factors);
                        }
                        Step::Evaluate(number) => self.evaluate(*number),
                    }
                }
                self.plan.rule = Rule::Listed(list);
            }
        }
        self.k += 1;
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        Ok(())
    }

    fn count(&mut self, nodes: &mut [Node<T>]) -> Result<()> {
        for (node, probes) in nodes.iter_mut().zip(&mut self.finding.probes) {
            node.oracle.count_products(std::mem::take(probes));
        }
        Ok(())
    }

    fn fetch(&mut self, nodes: &mut [Node<T>]) -> Result<()> {
        self.count(nodes)?;
        self.plan.variables.give_back(nodes, |place, to| {
            to.copy_from_slice(&self.now[place]);
            Ok(())
        })
    }

    fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        let m = self.plan.job.m as usize;
        let mut sizes = Vec::with_capacity(m * self.now.len());
        for i in 0..m {
            for values in &self.now {
                let length = values.len() / m;
                sizes.push(largest(&values[i * length..(i + 1) * length]));
            }
        }
        Ok(self.plan.variables.sorted(&sizes))
    }
}

fn largest<T: Exponential>(values: &[T]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| match value.is_finite() {
        true => most.max(Real::to_f64(*value).abs()) + most * 0.0,
        false => f64::NAN,
    })
}

fn sigmoid<T: Exponential>(z: T) -> T {
    T::one() / (T::one() + (-z).exponential())
}

fn softmax<T: Exponential>(z: &mut [T]) {
    let top = z[1..].iter().fold(z[0], |top, &z| if z > top { z } else { top });
    let mut sum = T::zero();
    for z in &mut *z {
        *z = (*z - top).exponential();
        sum += *z;
    }
    z.iter_mut().for_each(|z| *z /= sum);
}

fn curve<T: Exponential>(p: &[T], a: &mut [T], weight: T) {
    let mean = p.iter().zip(&*a).fold(T::zero(), |mean, (&p, &a)| p.mul_add(a, mean));
    p.iter().zip(a).for_each(|(&p, a)| *a = weight * p * (*a - mean));
}

fn dot<T: Exponential>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).fold(T::zero(), |sum, (&a, &b)| a.mul_add(b, sum))
}

/// The rule that finds step sizes: what nodes send, and what an iteration showed.
struct Finding<T> {
    sent: Vec<[T; 4]>,
    shown: Vec<Shown>,
    awake: Vec<bool>,
    /// Products since they were counted.
    probes: Vec<u64>,
}

impl<T: Exponential> Finding<T> {
    fn new(plan: &Plan<T>, now: &[Vec<T>]) -> Finding<T> {
        let m = if plan.finds.is_some() { plan.job.m as usize } else { 0 };
        let rules = plan.finds.iter().flat_map(|of| now[of.rule].chunks_exact(number::ALL));
        let sent = rules.map(|rule| SENT.map(|at| rule[at])).collect();
        Finding {
            sent,
            shown: vec![Shown::default(); m],
            awake: vec![false; m],
            probes: vec![0; m],
        }
    }
}

/// The sum of these terms as a block adds them: each thread some, then in pairs within warps, then over warps.
fn total(terms: impl Iterator<Item = f64>) -> f64 {
    let mut threads = [0.0; FINDERS as usize];
    terms.enumerate().for_each(|(j, term)| threads[j % FINDERS as usize] += term);
    let pairs = |values: &[f64]| {
        let mut values = values.to_vec();
        let mut by = values.len() / 2;
        while by > 0 {
            values = (0..values.len()).map(|at| values[at] + values[at ^ by]).collect();
            by /= 2;
        }
        values[0]
    };
    let warps: Vec<f64> = threads.chunks(32).map(pairs).collect();
    pairs(&warps)
}

fn wide_dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    total(a.iter().zip(b).map(|(&a, &b)| Real::to_f64(a) * Real::to_f64(b)))
}

fn norm<T: Real>(a: &[T]) -> f64 {
    wide_dot(a, a).sqrt()
}

impl<T: Exponential> Emulation<T> {
    /// A turn of the rule that finds step sizes, of every node.
    fn find(&mut self, turn: Turn) {
        let Some(finds) = self.plan.finds.take() else { return };
        (0..self.plan.job.m as usize).for_each(|i| self.find_of(&finds, turn, i));
        if !turn.mixes {
            let rules = self.now[finds.rule].chunks_exact(number::ALL);
            self.finding.sent = rules.map(|rule| SENT.map(|at| rule[at])).collect();
        }
        self.plan.finds = Some(finds);
    }

    fn find_of(&mut self, finds: &Finds, turn: Turn, i: usize) {
        let [n, p] = [self.plan.job.n, self.plan.job.p].map(|length| length as usize);
        let Finds { finder, units, mean, measures, .. } = finds;
        let finder = Finder { unit: units[i], ..*finder };
        let of = |now: &[Vec<T>], array: usize| now[array][i * p..(i + 1) * p].to_vec();
        let (d, h, v) = (of(&self.now, D), of(&self.now, H), of(&self.now, V));
        let mut rule = self.now[finds.rule][i * number::ALL..(i + 1) * number::ALL].to_vec();
        if let Some(measures) = measures.filter(|_| turn.settles) {
            let product = of(&self.now, measures.product);
            let curvature = if self.finding.awake[i] { norm(&product) } else { 0.0 };
            settle(&mut rule, std::mem::take(&mut self.finding.shown[i]), curvature);
            self.finding.awake[i] = false;
        }
        if turn.mixes {
            let sent = &self.finding.sent;
            for (number, (_, combine, at, is_sent)) in finder.sends().into_iter().enumerate() {
                let message = |j: usize| sent[j][number];
                let row = self.plan.links[i] as usize..self.plan.links[i + 1] as usize;
                let linked = self.plan.linked[row].iter().map(|&j| message(j as usize));
                let sum = match combine {
                    Combine::Largest => linked.fold(message(i), |top, of| top.max(of)),
                    _ => self.mixed(i, message(i), message),
                };
                if is_sent {
                    rule[at] = sum.max(T::zero());
                }
            }
        }
        let k = self.k + turn.ahead;
        if turn.finds.iter().any(Option::is_some) {
            let mut steps = Vec::new();
            self.plan.steps(k, &mut steps);
            let square = |of: &[T]| if finder.adapts() { wide_dot(of, of) } else { 0.0 };
            finder.beta(&mut rule, k, square(&d));
            finder.lambda(&mut rule, k, square(&h));
            let y = &self.now[Y][i * n..(i + 1) * n];
            let size = match (finder.given.alpha, finder.given.rule) {
                (Some(_), _) => 0.0,
                (None, steps::Rule::Auto) => lopa::math::real::largest(y),
                (None, steps::Rule::Adaptive) => wide_dot(y, y),
            };
            finder.outer(&mut rule, k, size, steps[4]);
        }
        if let Some(measures) = measures {
            let old = measures.old.map(|array| of(&self.now, array));
            if turn.notes {
                let (size, hess) = (norm(&v), norm(&of(&self.now, measures.hess)));
                note(&mut rule, if size > 0.0 { hess / size } else { 0.0 });
            }
            if turn.shows {
                let sizes = [norm(&d), norm(&h)];
                let old_sizes = [norm(&old[0]), norm(&old[1])];
                let products = [wide_dot(&d, &old[0]), wide_dot(&h, &old[1])];
                let shown = show(&mut rule, Seen { sizes, old_sizes, products });
                self.finding.shown[i] = shown;
                let (new, old) = if shown.of_d { (&d, &old[0]) } else { (&h, &old[1]) };
                let w: Vec<T> = new.iter().zip(old).map(|(&new, &old)| new - old).collect();
                let size = norm(&w);
                if shown.probes() && size != 0.0 {
                    self.finding.awake[i] = true;
                    self.finding.probes[i] += 1;
                    let to = &mut self.now[measures.w][i * p..(i + 1) * p];
                    to.iter_mut().zip(w).for_each(|(to, w)| *to = T::of(Real::to_f64(w) / size));
                }
            }
            if turn.leaves {
                self.now[measures.old[0]][i * p..(i + 1) * p].copy_from_slice(&d);
                self.now[measures.old[1]][i * p..(i + 1) * p].copy_from_slice(&h);
            }
        }
        if let Some(mean) = mean.filter(|_| turn.shows) {
            let weight = T::of(weight_of_theta(k));
            let theta = of(&self.now, THETA);
            let to = &mut self.now[mean][i * p..(i + 1) * p];
            to.iter_mut().zip(theta).for_each(|(mean, theta)| *mean += weight * (theta - *mean));
        }
        self.now[finds.rule][i * number::ALL..(i + 1) * number::ALL].copy_from_slice(&rule);
    }

    pub fn new(
        plan: Plan<T>,
        nodes: &[Node<T>],
        oracle: Option<fn(&mut Emulation<T>, usize)>,
    ) -> Emulation<T> {
        let array = |at: usize| {
            let mut all = vec![T::zero(); nodes.len() * plan.variables.lengths[at]];
            let handed = plan.variables.hand_over(nodes, at, |first, values| {
                all[first * plan.variables.lengths[at]..][..values.len()].copy_from_slice(values);
                Ok(())
            });
            handed.expect("nothing fails");
            all
        };
        let now: Vec<Vec<T>> = (0..plan.arrays.len()).map(array).collect();
        let finding = Finding::new(&plan, &now);
        let rows = |at: usize| vec![T::zero(); plan.rows(at) * plan.variables.lengths[at]];
        let others = (0..plan.arrays.len()).map(rows).collect();
        let (k, picks, hess) = (plan.k, Vec::new(), None);
        let (hidden, slopes, errors) = (Vec::new(), Vec::new(), Vec::new());
        Emulation { k, picks, hess, finding, hidden, slopes, errors, now, others, plan, oracle }
    }

    /// Exchanges some arrays with the neighbours in other processes.
    fn hear(&mut self, arrays: &[usize], exchange: Exchange) -> Result<()> {
        if self.plan.borders.is_empty() || arrays.is_empty() {
            return Ok(());
        }
        let Emulation { plan, now, others, .. } = self;
        let parcel = |rank, bytes| Parcel { rank, bytes, finite: false };
        let (mut out, mut into) = (Vec::new(), Vec::new());
        let each = arrays.iter().map(|&at| plan.variables.lengths[at]).sum::<usize>();
        for border in &plan.borders {
            let mut bytes = Vec::new();
            for &i in &border.out {
                for &at in arrays {
                    let length = plan.variables.lengths[at];
                    T::extend_le(&now[at][i * length..(i + 1) * length], &mut bytes);
                }
            }
            out.push(parcel(border.rank, bytes));
            into.push(parcel(border.rank, vec![0; border.into.len() * each * T::BYTES]));
        }
        exchange(&out, &mut into)?;
        for (border, Parcel { bytes, .. }) in plan.borders.iter().zip(&into) {
            let mut bytes = &bytes[..];
            for &row in &border.into {
                for &at in arrays {
                    let length = plan.variables.lengths[at];
                    let (own, rest) = bytes.split_at(length * T::BYTES);
                    T::read_le(own, &mut others[at][row * length..(row + 1) * length]);
                    bytes = rest;
                }
            }
        }
        Ok(())
    }

    /// Entry j of row k of an array.
    fn entry(&self, at: usize, k: usize, j: usize) -> T {
        let rows = if k < self.plan.job.m as usize { &self.now } else { &self.others };
        rows[at][k * self.plan.variables.lengths[at] + j]
    }

    /// d, h and s of an evaluation.
    fn evaluate(&mut self, number: usize) {
        let evaluated = &mut self.plan.evaluations[number];
        let ([x, theta, v], [d, h, s], single) = (evaluated.at, evaluated.into, evaluated.single);
        let noted = !evaluated.probe;
        self.plan.job = evaluated.job;
        std::mem::swap(&mut self.plan.weights, &mut evaluated.weights);
        let Common { m, drawn, classes, size, .. } = self.plan.job.common;
        let of = |length: u32| vec![T::zero(); m as usize * length as usize];
        let layers = |rows: u32| self.plan.units.iter().map(|units| of(rows * units)).collect();
        self.picks = vec![0; m as usize * drawn as usize];
        self.slopes = of(drawn * classes);
        (self.hidden, self.errors) = (layers(drawn), layers(size[SIGMA2] + size[XI3]));
        let places = [(x, X), (theta, THETA), (v, V), (d, D), (h, H), (s, S)];
        places.into_iter().for_each(|(array, place)| self.now.swap(array, place));
        self.hess = self.plan.probe().map(|(measures, _)| measures.hess).filter(|_| noted);
        self.draw(single);
        match (self.plan.kind, self.oracle) {
            (Kind::Layers, Some(oracle)) => (0..m as usize).for_each(|i| oracle(self, i)),
            (Kind::Layers, None) => {
                self.forward();
                self.heads();
                self.rows();
                self.backward();
            }
            (Kind::Linear, _) => {
                self.scores();
                self.linear();
                self.cross();
            }
            (Kind::Quadratic, _) => self.quadratic(),
        }
        places.into_iter().rev().for_each(|(array, place)| self.now.swap(array, place));
        let evaluated = &mut self.plan.evaluations[number];
        std::mem::swap(&mut self.plan.weights, &mut evaluated.weights);
    }

    /// The sums of a step of a list.
    fn sums(&mut self, step: &Step, wide: bool, factors: &[T]) {
        let Step::Sums { sums, .. } = step else { return };
        let each = self.plan.variables.lengths[if wide { X } else { THETA }];
        let mixed = |at: usize| {
            let parts = sums.iter().flat_map(|line| &line.parts);
            parts.into_iter().any(|part| part.mixed && part.from == at)
        };
        let before: Vec<Vec<T>> = self
            .now
            .iter()
            .enumerate()
            .map(|(at, values)| if mixed(at) { values.clone() } else { Vec::new() })
            .collect();
        for line in sums {
            for entry in 0..self.now[line.to].len() {
                let (i, j) = (entry / each, entry % each);
                let value = |from: usize, is_mixed: bool| match is_mixed {
                    true => {
                        let old = &before[from];
                        let message = |k: usize| match old.get(k * each + j) {
                            Some(&value) => value,
                            None => self.entry(from, k, j),
                        };
                        self.mixed(i, old[entry], message)
                    }
                    false => self.now[from][entry],
                };
                let terms = line
                    .parts
                    .iter()
                    .map(|part| factors[part.factor] * value(part.from, part.mixed));
                let total = terms.reduce(|total, term| total + term);
                self.now[line.to][entry] = total.unwrap_or(T::zero());
            }
        }
    }

    /// Which minibatch row r of a node belongs to.
    fn batch(&self, r: usize) -> usize {
        let start = &self.plan.job.start;
        (1..5).rev().find(|&batch| r >= start[batch] as usize).unwrap_or(0)
    }

    /// The rows of a minibatch.
    fn range(&self, batch: usize) -> std::ops::Range<usize> {
        let Common { start, size, .. } = &self.plan.job.common;
        start[batch] as usize..(start[batch] + size[batch]) as usize
    }

    /// A feature as stored in the table.
    fn stored(&self, row: usize, column: usize) -> T {
        let at = row * self.plan.job.features as usize + column;
        match &self.plan.table {
            Table::Numbers(values) => values[at],
            Table::Bytes(bytes) => T::of(f64::from(bytes[at])),
        }
    }

    fn feature(&self, row: usize, column: usize) -> T {
        let stored = self.stored(row, column);
        match &self.plan.table {
            Table::Numbers(_) => stored,
            Table::Bytes(_) => (stored - self.plan.shift[column]) * self.plan.job.unit,
        }
    }

    /// The shift subtracted from the features of the table, if any.
    fn shift(&self) -> Option<&[T]> {
        self.plan.shift.iter().any(|&shift| shift != T::zero()).then_some(&self.plan.shift[..])
    }

    fn mixed(&self, i: usize, own: T, message: impl Fn(usize) -> T) -> T {
        let Plan { links, linked, w, .. } = &self.plan;
        let row = links[i] as usize..links[i + 1] as usize;
        row.fold(own, |sum, at| sum + w[at] * (message(linked[at] as usize) - own))
    }

    /// alpha, beta, lambda, gamma and tau of every node.
    fn steps(&self) -> Vec<[T; 5]> {
        let mut given = Vec::new();
        self.plan.steps(self.k, &mut given);
        let given: [T; 5] = std::array::from_fn(|at| given[at]);
        let [.., gamma, tau] = given;
        let rule = self.plan.finds.as_ref().map(|finds| &self.now[finds.rule]);
        let of_node = |i: usize| match rule {
            Some(rule) => {
                let [alpha, beta, lambda] = STEPS.map(|at| rule[i * number::ALL + at]);
                [alpha, beta, lambda, gamma, tau]
            }
            None => given,
        };
        (0..self.plan.job.m as usize).map(of_node).collect()
    }

    fn mix(&mut self) {
        let steps = self.steps();
        let (n, scheme, one) = (self.plan.job.n as usize, self.plan.job.scheme, T::one());
        let (mut new_x, mut new_y) = (self.now[X].clone(), self.now[Y].clone());
        for at in 0..new_x.len() {
            let (i, j) = (at / n, at % n);
            let [alpha, _, _, gamma, tau] = steps[i];
            let (x, y) = (&self.now[X], &self.now[Y]);
            let s = self.now[S][at];
            if scheme == 3 {
                // Other processes have the same steps: those that are found are of one process.
                let half = |k: usize| {
                    let alpha = steps.get(k).map_or(alpha, |steps| steps[0]);
                    self.entry(X, k, j) - alpha * self.entry(Y, k, j)
                };
                new_x[at] = self.mixed(i, half(i), half);
                new_y[at] = (one - gamma) * y[at] + gamma * s;
                continue;
            }
            let z = self.now[Z][at];
            let average = s + (one - gamma) * (z - s);
            new_x[at] = match scheme {
                2 => x[at] - tau * alpha * y[at],
                _ => {
                    let wx = self.mixed(i, x[at], |k| self.entry(X, k, j));
                    (one - tau) * x[at] + tau * (wx - alpha * y[at])
                }
            };
            new_y[at] = match scheme {
                0 => self.mixed(i, y[at], |k| self.entry(Y, k, j)) + average - z,
                _ => average,
            };
            self.now[Z][at] = average;
        }
        (self.now[X], self.now[Y]) = (new_x, new_y);
    }

    fn turn(&mut self) {
        let (steps, p) = (self.steps(), self.plan.job.p as usize);
        let [theta, d, v, h, ..] = &mut self.now[..] else { return };
        for at in 0..theta.len() {
            let [_, beta, lambda, _, _] = steps[at / p];
            theta[at] -= beta * d[at];
            v[at] -= lambda * h[at];
        }
    }

    fn draw(&mut self, single: bool) {
        let Common { m, drawn, size, start, slot, full, seed: [low, high], .. } =
            self.plan.job.common;
        let seed = u64::from(low) | u64::from(high) << 32;
        let first_node = self.plan.job.first as usize;
        for i in 0..m as usize {
            let mut stream = Stream::new(seed, Purpose::Sampling, first_node + i);
            for batch in 0..5 {
                let side = usize::from(batch >= SIGMA1 && !single);
                let (own, owned) = (&self.plan.own[side], &self.plan.owned[side]);
                let (first, count) = (own[i], u64::from(own[i + 1] - own[i]));
                stream.seek(self.k + 1, slot[batch]);
                for t in 0..size[batch] {
                    let drawn_index = ((u64::from(stream.word()) * count) >> 32) as u32;
                    let index = if full[batch] == 1 { t } else { drawn_index };
                    let row = owned.get((first + index) as usize).copied();
                    let at = i * drawn as usize + (start[batch] + t) as usize;
                    self.picks[at] = if owned.is_empty() { index } else { row.unwrap_or(0) };
                }
            }
        }
    }

    /// Inputs and outputs of a hidden layer, and where its weights start in x.
    fn layer(&self, l: usize) -> [usize; 3] {
        let job = self.plan.job.layer(&self.plan.units, l);
        [job.features, job.units, job.offset].map(|of| of as usize)
    }

    fn activation(&self, z: T) -> T {
        let one = T::one();
        match self.plan.job.tanh {
            RELU if z < T::zero() => T::zero(),
            RELU => z,
            TANH => one - (one + one) / ((z + z).exponential() + one),
            _ => sigmoid(z),
        }
    }

    fn slope(&self, h: T) -> T {
        let one = T::one();
        match self.plan.job.tanh {
            RELU if h > T::zero() => one,
            RELU => T::zero(),
            TANH => one - h * h,
            _ => h * (one - h),
        }
    }

    /// The inputs of layer l for row `at`, and 1 where there is a bias.
    fn inputs(&self, l: usize, at: usize) -> Vec<T> {
        let inputs = self.layer(l)[0];
        let bias = (self.plan.job.bias == 1).then(T::one);
        let of = |q: usize| match l {
            0 => self.feature(self.picks[at] as usize, q),
            _ => self.hidden[l - 1][at * inputs + q],
        };
        (0..inputs).map(of).chain(bias).collect()
    }

    fn forward(&mut self) {
        let Common { n, drawn, .. } = self.plan.job.common;
        let (n, drawn) = (n as usize, drawn as usize);
        for l in 0..self.plan.units.len() {
            let [_, units, offset] = self.layer(l);
            for at in 0..self.picks.len() {
                let x = &self.now[X][at / drawn * n..][offset..];
                let row = self.inputs(l, at);
                let unit = |u: usize| {
                    let terms = row.iter().enumerate();
                    let sum = terms.fold(T::zero(), |sum, (q, a)| a.mul_add(x[q * units + u], sum));
                    self.activation(sum)
                };
                let own: Vec<T> = (0..units).map(unit).collect();
                self.hidden[l][at * units..(at + 1) * units].copy_from_slice(&own);
            }
        }
    }

    /// Scores p to slopes, and tangents a to curvatures, of the loss of a row.
    fn losses(&self, row: usize, weight: T, p: &mut [T], a: &mut [T]) {
        let (one, delta) = (T::one(), self.plan.job.delta);
        let label = || self.plan.labels[row] as usize;
        match self.plan.job.loss {
            SOFTMAX => {
                softmax(p);
                curve(p, a, weight);
                p[label()] -= one;
                p.iter_mut().for_each(|p| *p = weight * *p);
            }
            LOGISTIC => {
                let small = sigmoid(-p[0].abs());
                a[0] *= weight * small * (one - small);
                let sign = if label() == 0 { -one } else { one };
                p[0] = sigmoid(sign * p[0]) * (sign * weight);
            }
            loss => {
                let targets = &self.plan.targets[row * p.len()..];
                for ((p, a), &target) in p.iter_mut().zip(a).zip(targets) {
                    let off = *p - target;
                    let far = loss == HUBER && (off > delta || off < -delta);
                    *a *= if far { T::zero() } else { weight };
                    let edge = if off > T::zero() { delta } else { -delta };
                    *p = weight * if far { edge } else { off };
                }
            }
        }
    }

    fn heads(&mut self) {
        let Common { p: length, drawn, units, classes, size, start, .. } = self.plan.job.common;
        let (drawn, units, classes) = (drawn as usize, units as usize, classes as usize);
        let (length, top) = (length as usize, self.hidden.len() - 1);
        for at in 0..self.picks.len() {
            let (i, r) = (at / drawn, at % drawn);
            let batch = self.batch(r);
            let mut weight = self.plan.weights[i * 5 + batch];
            let h = &self.hidden[top][at * units..(at + 1) * units];
            let (theta, v) =
                (&self.now[THETA][i * length..][..length], &self.now[V][i * length..][..length]);
            let scores = |weights: &[T]| -> Vec<T> {
                let score = |c: usize| {
                    let terms = h.iter().enumerate();
                    let sum = terms
                        .fold(T::zero(), |sum, (u, h)| h.mul_add(weights[u * classes + c], sum));
                    sum + weights[units * classes + c]
                };
                (0..classes).map(score).collect()
            };
            let (mut p, mut a) = (scores(theta), scores(v));
            if batch == XI3 || batch == SIGMA1 {
                weight = -weight;
            }
            self.losses(self.picks[at] as usize, weight, &mut p, &mut a);
            if batch != XI3 && batch != SIGMA2 {
                let slopes = if batch == XI2 { &a } else { &p };
                self.slopes[at * classes..(at + 1) * classes].copy_from_slice(slopes);
                continue;
            }
            let place = match batch {
                SIGMA2 => r - start[SIGMA2] as usize,
                _ => size[SIGMA2] as usize + r - start[XI3] as usize,
            };
            let from = (i * (size[SIGMA2] + size[XI3]) as usize + place) * units;
            let error = |u: usize| {
                let of = |weights: &[T], by: &[T], sum| {
                    let terms = by.iter().enumerate();
                    terms.fold(sum, |sum: T, (c, by)| by.mul_add(weights[u * classes + c], sum))
                };
                let back = match batch {
                    XI3 => of(v, &p, of(theta, &a, T::zero())),
                    _ => of(theta, &p, T::zero()),
                };
                back * self.slope(h[u])
            };
            let errors: Vec<T> = (0..units).map(error).collect();
            self.errors[top][from..from + units].copy_from_slice(&errors);
        }
    }

    fn rows(&mut self) {
        let Common { p, drawn, units, classes, .. } = self.plan.job.common;
        let ridge = self.plan.job.ridge;
        let (p, drawn, units) = (p as usize, drawn as usize, units as usize);
        let (classes, top) = (classes as usize, &self.hidden[self.hidden.len() - 1]);
        for at in 0..self.now[THETA].len() {
            let (i, j) = (at / p, at % p);
            let (u, c) = (j / classes, j % classes);
            let add = |batch: usize, sum: T| {
                self.range(batch).fold(sum, |sum, r| {
                    let row = i * drawn + r;
                    let h = if u < units { top[row * units + u] } else { T::one() };
                    h.mul_add(self.slopes[row * classes + c], sum)
                })
            };
            let (d, along) = (add(XI1, T::zero()), add(XI2, T::zero()));
            let h = add(SIGMA1, along);
            self.now[D][at] = d + ridge * self.now[THETA][at];
            let ridge = ridge * self.now[V][at];
            self.now[H][at] = h + ridge;
            if let Some(hess) = self.hess {
                self.now[hess][at] = along + ridge;
            }
        }
    }

    fn backward(&mut self) {
        let Common { m, n, drawn, .. } = self.plan.job.common;
        let (m, n, drawn) = (m as usize, n as usize, drawn as usize);
        self.now[S].fill(T::zero());
        let rows: Vec<usize> = self.range(SIGMA2).chain(self.range(XI3)).collect();
        for l in (0..self.plan.units.len()).rev() {
            let [inputs, units, offset] = self.layer(l);
            for (i, (place, &r)) in
                (0..m).flat_map(|i| rows.iter().enumerate().map(move |of| (i, of)))
            {
                let (at, from) = (i * drawn + r, i * rows.len() + place);
                let errors = self.errors[l][from * units..(from + 1) * units].to_vec();
                for (q, value) in self.inputs(l, at).into_iter().enumerate() {
                    let s = &mut self.now[S][i * n + offset + q * units..][..units];
                    s.iter_mut().zip(&errors).for_each(|(s, &error)| *s = value.mul_add(error, *s));
                }
                if l > 0 {
                    for q in 0..inputs {
                        let weights = &self.now[X][i * n + offset + q * units..][..units];
                        let h = self.hidden[l - 1][at * inputs + q];
                        let pulled = dot(&errors, weights) * self.slope(h);
                        self.errors[l - 1][from * inputs + q] = pulled;
                    }
                }
            }
        }
    }

    fn scores(&mut self) {
        let Common { n, p: length, drawn, features, classes, .. } = self.plan.job.common;
        let (unit, offset) = (self.plan.job.unit, self.plan.job.offset as usize);
        let (n, length, drawn) = (n as usize, length as usize, drawn as usize);
        let (classes, weighs) = (classes as usize, self.plan.job.per == PER_SAMPLE);
        for at in 0..self.picks.len() {
            let (i, batch) = (at / drawn, self.batch(at % drawn));
            if batch == XI3 && !weighs || batch == SIGMA2 {
                continue;
            }
            let mut weight = self.plan.weights[i * 5 + batch];
            let pick = self.picks[at] as usize;
            if weighs && batch <= XI3 {
                let x = self.now[X][i * n + offset + pick];
                let part = sigmoid(x);
                weight *= if batch == XI3 { part * sigmoid(-x) } else { part };
            }
            let row: Vec<T> = (0..features as usize).map(|q| self.stored(pick, q)).collect();
            // One sum for each lane of a warp, of four features in 128, then in pairs.
            let score = |weights: &[T], c: usize| {
                let mut lanes = [T::zero(); 32];
                for (q, &shift) in self.shift().into_iter().flatten().enumerate() {
                    let lane = &mut lanes[q / 4 % 32];
                    *lane = (-shift).mul_add(weights[q * classes + c], *lane);
                }
                for (q, value) in row.iter().enumerate() {
                    let lane = &mut lanes[q / 4 % 32];
                    *lane = value.mul_add(weights[q * classes + c], *lane);
                }
                for by in [16, 8, 4, 2, 1] {
                    lanes = std::array::from_fn(|lane| lanes[lane] + lanes[lane ^ by]);
                }
                lanes[0] * unit
            };
            let of = |place: usize| -> Vec<T> {
                let weights = &self.now[place][i * length..][..length];
                (0..classes).map(|c| score(weights, c)).collect()
            };
            let (mut p, mut a) = (of(THETA), of(V));
            if batch == SIGMA1 || batch == XI3 {
                weight = -weight;
            }
            let along = a.clone();
            self.losses(pick, weight, &mut p, &mut a);
            if batch == XI3 {
                self.slopes[at * classes] = dot(&p, &along);
                continue;
            }
            let slopes = if batch == XI2 { &mut a } else { &mut p };
            slopes.iter_mut().for_each(|slope| *slope *= unit);
            self.slopes[at * classes..(at + 1) * classes].copy_from_slice(slopes);
        }
    }

    fn linear(&mut self) {
        let Common { n, p, drawn, classes, .. } = self.plan.job.common;
        let (n, p, drawn, classes) = (n as usize, p as usize, drawn as usize, classes as usize);
        for at in 0..self.now[THETA].len() {
            let (i, j) = (at / p, at % p);
            let (q, c) = (j / classes, j % classes);
            let half = match self.plan.job.per {
                PER_ROW => self.now[X][i * n + q].exponential(),
                PER_GROUP => self.now[X][i * n + self.plan.groups[0][q] as usize].exponential(),
                PER_COLUMN => self.now[X][i * n + c].exponential(),
                _ => self.plan.job.ridge,
            };
            let strength = half + half;
            let add = |batch: usize, sum: T| {
                let slopes = self.range(batch).map(|r| self.slopes[(i * drawn + r) * classes + c]);
                let sum = self.shift().map_or(sum, |shift| {
                    (-shift[q]).mul_add(slopes.fold(T::zero(), |total, slope| total + slope), sum)
                });
                self.range(batch).fold(sum, |sum, r| {
                    let row = i * drawn + r;
                    let value = self.stored(self.picks[row] as usize, q);
                    value.mul_add(self.slopes[row * classes + c], sum)
                })
            };
            let d = add(XI1, strength * self.now[THETA][at]);
            let along = add(XI2, strength * self.now[V][at]);
            let h = along + add(SIGMA1, T::zero());
            (self.now[D][at], self.now[H][at]) = (d, h);
            if let Some(hess) = self.hess {
                self.now[hess][at] = along;
            }
            if c == 0 && self.plan.job.per == PER_ROW {
                let sum = dot(&self.now[THETA][at..at + classes], &self.now[V][at..at + classes]);
                self.now[S][i * n + q] = -strength * sum;
            }
        }
    }

    /// s where x has an entry for groups, columns or samples.
    fn cross(&mut self) {
        let Common { n, p, drawn, features, classes, .. } = self.plan.job.common;
        let (n, p, drawn, classes) = (n as usize, p as usize, drawn as usize, classes as usize);
        let (per, offset) = (self.plan.job.per, self.plan.job.offset as usize);
        if per == PER_ROW {
            return;
        }
        for at in 0..self.now[S].len() {
            let (i, k) = (at / n, at % n);
            self.now[S][at] = if per == PER_SAMPLE {
                let rows = self.range(XI3).map(|r| i * drawn + r);
                // A sample of another node is in none of its minibatches.
                let own = rows.filter(|&row| self.picks[row] as usize + offset == k);
                own.fold(T::zero(), |sum, row| sum + self.slopes[row * classes])
            } else {
                let entries: Vec<usize> = match &self.plan.groups[1][..] {
                    starts if per == PER_GROUP => {
                        (starts[k] as usize * classes..starts[k + 1] as usize * classes).collect()
                    }
                    _ => (0..features as usize).map(|q| q * classes + k).collect(),
                };
                // One sum for each lane of a warp, then in pairs.
                let mut lanes = [T::zero(); 32];
                for (e, entry) in entries.into_iter().enumerate() {
                    let place = i * p + entry;
                    let lane = &mut lanes[e % 32];
                    *lane = self.now[THETA][place].mul_add(self.now[V][place], *lane);
                }
                for by in [16, 8, 4, 2, 1] {
                    lanes = std::array::from_fn(|lane| lanes[lane] + lanes[lane ^ by]);
                }
                let half = self.now[X][at].exponential();
                -(half + half) * lanes[0]
            };
        }
    }

    fn quadratic(&mut self) {
        let Common { m, n, p, drawn, outputs, samples, size, .. } = self.plan.job.common;
        let (n, p, outputs) = (n as usize, p as usize, outputs as usize);
        let [a, b, c, dd, e, r, q, noise_a, noise_b, gamma, phi, chi] = &self.plan.coefficients;
        for i in 0..m as usize {
            let theta = &self.now[THETA][i * p..(i + 1) * p];
            let (v, x) = (&self.now[V][i * p..(i + 1) * p], &self.now[X][i * n..(i + 1) * n]);
            let row = |matrix: &[T], row: usize, length: usize| -> Vec<T> {
                matrix[row * length..(row + 1) * length].to_vec()
            };
            let mean = |batch: usize, vectors: &[T], length: usize, entry: usize| {
                let sum = self.range(batch).fold(T::zero(), |sum, r| {
                    let pick = self.picks[i * drawn as usize + r] as usize;
                    sum + vectors[(i * samples as usize + pick) * length + entry]
                });
                sum / T::of(f64::from(size[batch]))
            };
            let rest: Vec<T> = (i * outputs..(i + 1) * outputs)
                .map(|at| dot(&row(dd, at, p), theta) - e[at])
                .collect();
            let one_and = |batch, noise: &[T]| T::one() + mean(batch, noise, 1, 0);
            let (mut new_d, mut new_h, mut new_s) = (Vec::new(), Vec::new(), Vec::new());
            let mut noted = Vec::new();
            for j in 0..p {
                let at = i * p + j;
                let (by_a, by_b) = (one_and(XI1, noise_a), one_and(XI1, noise_b));
                let sum = by_a * dot(&row(a, at, p), theta) - by_b * dot(&row(b, at, n), x);
                new_d.push(sum - c[at] - mean(XI1, gamma, p, j));
                let back = (0..outputs).fold(T::zero(), |back, k| {
                    dd[(i * outputs + k) * p + j].mul_add(rest[k], back)
                });
                let by_a = one_and(XI2, noise_a);
                let along = by_a * dot(&row(a, at, p), v);
                noted.push(along);
                new_h.push(match size[SIGMA1] {
                    0 => along,
                    _ => along - (back + mean(SIGMA1, phi, p, j)),
                });
            }
            for j in 0..n {
                let at = i * n + j;
                let back =
                    (0..p).fold(T::zero(), |back, k| b[(i * p + k) * n + j].mul_add(v[k], back));
                let sum = dot(&row(r, at, n), x) - q[at] + mean(SIGMA2, chi, n, j);
                new_s.push(sum + one_and(XI3, noise_b) * back);
            }
            self.now[D][i * p..(i + 1) * p].copy_from_slice(&new_d);
            self.now[H][i * p..(i + 1) * p].copy_from_slice(&new_h);
            if let Some(hess) = self.hess {
                self.now[hess][i * p..(i + 1) * p].copy_from_slice(&noted);
            }
            self.now[S][i * n..(i + 1) * n].copy_from_slice(&new_s);
        }
    }
}
