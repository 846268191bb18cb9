//! Minibatches as blocks of epochs, and SAGA's estimates on them.

use std::ops::Range;

use lopa::math::real::{Real, cast, norm};
use lopa::problem::derivative::Batches;
use lopa::problem::oracle::{Oracle, SIGMA1, XI1};
use lopa::problem::{At, Bilevel, Dims};
use serde::Deserialize;

use crate::common::bench::{Bench, variable};

/// The file that `make_saga.py` writes.
#[derive(Deserialize)]
struct Golden {
    seed: u64,
    batch: usize,
    ridge: f64,
    alpha: f64,
    beta: f64,
    lambda: f64,
    gamma: f64,
    tau: f64,
    rows: Vec<[f64; 3]>,
    goals: Vec<f64>,
    outer_rows: Vec<[f64; 3]>,
    outer_goals: Vec<f64>,
    start: [Vec<f64>; 3],
    #[serde(rename = "d-soba")]
    d_soba: Vec<[Vec<f64>; 6]>,
    #[serde(rename = "lopa-lg")]
    lopa_lg: Vec<[Vec<f64>; 6]>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../golden/saga.json")).unwrap()
}

/// Least squares with a weight σ(x_e) for every training sample.
struct Weighted {
    rows: [Vec<[f64; 3]>; 2], // of g and of f
    goals: [Vec<f64>; 2],
    ridge: f64,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Weighted {
    fn of(golden: &Golden) -> Weighted {
        Weighted {
            rows: [golden.rows.clone(), golden.outer_rows.clone()],
            goals: [golden.goals.clone(), golden.outer_goals.clone()],
            ridge: golden.ridge,
        }
    }

    /// `out` ← mean of weight(e) (a_eᵀu − with b_e) a_e + 2 ridge u.
    fn sum(
        &self,
        of: usize,
        (u, with): (&[f64], f64),
        batch: &[u32],
        weight: impl Fn(usize) -> f64,
        ridge: f64,
        out: &mut [f64],
    ) {
        out.iter_mut().zip(u).for_each(|(out, u)| *out = 2.0 * ridge * u);
        for e in batch.iter().map(|&e| e as usize) {
            let row = &self.rows[of][e];
            let off = weight(e) * (dot(row, u) - with * self.goals[of][e]) / batch.len() as f64;
            out.iter_mut().zip(row).for_each(|(out, a)| *out += off * a);
        }
    }
}

impl Bilevel<f64> for Weighted {
    fn dims(&self) -> Dims {
        Dims { n: self.rows[0].len(), p: 3 }
    }
    fn samples_f(&self) -> usize {
        self.rows[1].len()
    }
    fn samples_g(&self) -> usize {
        self.rows[0].len()
    }
    fn f(&mut self, _: At<f64>, _: &[u32]) -> f64 {
        0.0
    }
    fn g(&mut self, _: At<f64>, _: &[u32]) -> f64 {
        0.0
    }
    fn grad_x_f(&mut self, _: At<f64>, _: &[u32], out: &mut [f64]) {
        out.fill(0.0);
    }
    fn grad_theta_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.sum(1, (at.theta, 1.0), batch, |_| 1.0, 0.0, out);
    }
    fn grad_theta_g(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.sum(0, (at.theta, 1.0), batch, |e| sigmoid(at.x[e]), self.ridge, out);
    }
    fn hess_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
        self.sum(0, (v, 0.0), batch, |e| sigmoid(at.x[e]), self.ridge, out);
    }
    fn cross_g(&mut self, at: At<f64>, batch: &[u32], v: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for e in batch.iter().map(|&e| e as usize) {
            let (row, weight) = (&self.rows[0][e], sigmoid(at.x[e]));
            let off = dot(row, at.theta) - self.goals[0][e];
            out[e] += weight * (1.0 - weight) * off * dot(row, v) / batch.len() as f64;
        }
    }
    fn entries_of_g(&self, batch: &[u32]) -> Range<usize> {
        batch[0] as usize..batch[batch.len() - 1] as usize + 1
    }
    fn entries_of_f(&self, _: &[u32]) -> Range<usize> {
        0..0
    }
}

#[test]
fn saga_follows_the_trajectories_of_an_independent_implementation() {
    let golden = golden();
    let Golden { seed, batch, alpha, beta, lambda, gamma, tau, .. } = golden;
    let steps = format!(
        "estimate = 'saga', alpha = {alpha}, beta = {beta}, lambda = {lambda}, gamma = {gamma}"
    );
    let setup = format!(
        "problem = {{ name = 'quadratic' }}
         network = {{ nodes = 1, graph = 'complete' }}
         run = {{ iterations = 1, batch = {batch}, epochs = true, seeds = [{seed}] }}"
    );
    let cases = [
        (format!("name = 'd-soba', {steps}"), &golden.d_soba),
        (format!("name = 'lopa-lg', {steps}, tau = {tau}"), &golden.lopa_lg),
    ];
    for (algorithm, states) in cases {
        let bench = Bench::new(&setup, &algorithm);
        let part = Box::new(Weighted::of(&golden));
        let node = bench.node_from(0, part, golden.start.clone(), &[]);
        let mut simulation = bench.begin_with(vec![node]);
        for (k, state) in states.iter().enumerate() {
            simulation.iterate();
            for (name, want) in ["x", "theta", "v", "d", "h", "s"].into_iter().zip(state) {
                let said = variable(&simulation.nodes()[0], name);
                let gap = said.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(gap < 1e-11, "{algorithm}: {name} in iteration {k} differs by {gap:e}");
            }
        }
    }
}

/// Records the minibatches of ∇_θ g and ∇_θ f.
fn blocks(k: Range<u64>, from: u64) -> Vec<[usize; 2]> {
    let golden = golden();
    let (x, theta) = (&golden.start[0], &golden.start[1]);
    let mut oracle = Oracle::new(Box::new(Seen), Batches::all(Some(4)), false, 9, 2);
    oracle.take_epochs();
    let at = At { x, theta };
    let mut first = |k: u64| {
        oracle.begin(k);
        [XI1, SIGMA1].map(|draw| {
            let mut out = [0.0];
            match draw == XI1 {
                true => oracle.grad_theta_g(at, draw, &mut out),
                false => oracle.grad_theta_f(at, draw, &mut out),
            }
            out[0] as usize
        })
    };
    first(from);
    k.map(first).collect()
}

/// A part whose derivatives are the first sample and the number of samples of a minibatch: 100 first + number.
struct Seen;

impl Bilevel<f64> for Seen {
    fn dims(&self) -> Dims {
        Dims { n: 1, p: 1 }
    }
    fn samples_f(&self) -> usize {
        10
    }
    fn samples_g(&self) -> usize {
        23
    }
    fn f(&mut self, _: At<f64>, _: &[u32]) -> f64 {
        0.0
    }
    fn g(&mut self, _: At<f64>, _: &[u32]) -> f64 {
        0.0
    }
    fn grad_x_f(&mut self, _: At<f64>, batch: &[u32], out: &mut [f64]) {
        assert!(batch.windows(2).all(|pair| pair[1] == pair[0] + 1), "{batch:?}");
        out[0] = f64::from(100 * batch[0] + batch.len() as u32);
    }
    fn grad_theta_f(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.grad_x_f(at, batch, out);
    }
    fn grad_theta_g(&mut self, at: At<f64>, batch: &[u32], out: &mut [f64]) {
        self.grad_x_f(at, batch, out);
    }
    fn hess_g(&mut self, at: At<f64>, batch: &[u32], _: &[f64], out: &mut [f64]) {
        self.grad_x_f(at, batch, out);
    }
    fn cross_g(&mut self, at: At<f64>, batch: &[u32], _: &[f64], out: &mut [f64]) {
        self.grad_x_f(at, batch, out);
    }
}

#[test]
fn an_epoch_has_every_block_once_and_the_next_another_order() {
    // Address 0 is the start: iteration 5 begins the second epoch of six blocks, and iteration 2 that of three.
    let of_g = |epoch: u64| -> Vec<usize> {
        blocks(6 * epoch - 1..6 * epoch + 5, 0).iter().map(|pair| pair[0]).collect()
    };
    let of_f = |epoch: u64| -> Vec<usize> {
        blocks(3 * epoch - 1..3 * epoch + 2, 0).iter().map(|pair| pair[1]).collect()
    };
    for epoch in 1..20 {
        let (mut g, mut f) = (of_g(epoch), of_f(epoch));
        g.sort_unstable();
        f.sort_unstable();
        assert_eq!(g, [4, 404, 804, 1204, 1604, 2003]);
        assert_eq!(f, [4, 404, 802]);
    }
    assert!((1..20).any(|epoch| of_g(epoch) != of_g(epoch + 1)));
    assert!((1..20).any(|epoch| of_f(epoch) != of_f(epoch + 1)));
}

#[test]
fn a_block_does_not_depend_on_the_draws_before() {
    assert_eq!(blocks(30..60, 0), blocks(30..60, 1000));
    assert_eq!(blocks(40..60, 0), blocks(30..60, 0)[10..]);
}

#[test]
fn saga_without_epochs_is_refused() {
    let bench = |run: &str| {
        let setup = format!(
            "problem = {{ name = 'quadratic', noise = 0.5, samples = 30 }}
             network = {{ nodes = 1, graph = 'complete' }}
             run = {{ iterations = 1, batch = 4, {run} }}"
        );
        let bench = Bench::new(
            &setup,
            "name = 'd-soba', alpha = 0.1, beta = 0.1, lambda = 0.1, estimate = 'saga'",
        );
        let setup = bench.experiment.setup(None, &bench.world, 1);
        let made = setup.nodes::<f64>(&bench.choice().build);
        made.map(|_| ()).map_err(|error| (error.id, error.to_string()))
    };
    let (id, text) = bench("epochs = false").unwrap_err();
    assert!(id == "config/saga" && text.contains("epochs = true"), "{text}");
    let (id, text) = bench("epochs = true, finite_differences = 1e-4").unwrap_err();
    assert!(id == "config/saga" && text.contains("differences"), "{text}");
    bench("epochs = true").unwrap();
}

/// |d| + |h| + |mean s| on all samples, after some iterations.
fn left<T: Real>(
    (algorithm, alpha, nodes): (&str, f64, usize),
    estimate: &str,
    iterations: usize,
) -> f64 {
    let setup = format!(
        "problem = {{ name = 'quadratic', n = 3, p = 4, condition = 3, noise = 0.3, samples = 30 }}
         network = {{ nodes = {nodes}, graph = 'complete' }}
         run = {{ iterations = 1, batch = 4, epochs = true }}"
    );
    let steps = format!("alpha = {alpha}, beta = 0.1, lambda = 0.1");
    let algorithm = format!("name = '{algorithm}', {steps}, estimate = '{estimate}'");
    let bench = Bench::new(&setup, &algorithm);
    let simulation = bench.run::<T>(iterations);
    let (mut most, mut sum) = (0.0f64, Vec::new());
    for (node, mut part) in simulation.nodes().iter().zip(bench.parts::<f64>()) {
        let at = node.algorithm.at();
        let [x, theta, v] = [at.x, at.theta, variable(node, "v")].map(cast::<T, f64>);
        let at = At { x: &x, theta: &theta };
        let all = |count: usize| -> Vec<u32> { (0..count as u32).collect() };
        let (f, g) = (all(part.samples_f()), all(part.samples_g()));
        let Dims { n, p } = part.dims();
        let [mut d, mut h, mut of_f] = [p, p, p].map(|length| vec![0.0; length]);
        let [mut s, mut of_x] = [n, n].map(|length| vec![0.0; length]);
        part.grad_theta_g(at, &g, &mut d);
        part.hess_g(at, &g, &v, &mut h);
        part.grad_theta_f(at, &f, &mut of_f);
        part.cross_g(at, &g, &v, &mut s);
        part.grad_x_f(at, &f, &mut of_x);
        h.iter_mut().zip(&of_f).for_each(|(h, of_f)| *h -= of_f);
        s.iter_mut().zip(&of_x).for_each(|(s, of_x)| *s = of_x - *s);
        most = most.max(norm(&d)).max(norm(&h));
        sum.resize(n, 0.0);
        sum.iter_mut().zip(&s).for_each(|(sum, s)| *sum += s / nodes as f64);
    }
    most + norm(&sum)
}

#[test]
fn saga_converges_linearly_with_constant_steps_where_plain_estimates_stall() {
    let cases = [
        ("d-soba", 0.002, 1),
        ("sldbo", 0.002, 1),
        ("sparkle", 0.002, 1),
        ("local", 0.01, 1),
        ("lopa-gt", 0.003, 3),
    ];
    for case in cases {
        let plain = left::<f64>(case, "plain", 6000);
        let saga = [2000, 4000, 6000].map(|k| left::<f64>(case, "saga", k));
        assert!(plain > 1e-3, "{}: plain estimates are left with {plain:e}", case.0);
        let linear = saga[1] < 1e-2 * saga[0] && saga[2] < 1e-2 * saga[1];
        assert!(linear && saga[2] < 1e-7, "{}: SAGA is left with {saga:?}", case.0);
    }
    let single = left::<f32>(cases[0], "saga", 6000);
    assert!(single < 1e-4, "in single precision it is left with {single:e}");
}
