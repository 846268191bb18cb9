//! Problems with a mistake each, and the check that must find it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use lopa::conformance::problem;
use lopa::error::Kind;
use lopa::prelude::*;
use lopa::problem::builtin::quadratic;
use lopa::problem::{Ask, Directions, Minibatches, Shortcuts, SingleLevel, Together};

/// Each mistake, and the id of the check that must find it.
const MISTAKES: &[(&str, &str)] = &[
    ("none", ""),
    ("sign of cross_g", "conformance/cross-g"),
    ("factor 2 in hess_g", "conformance/hess-g"),
    ("sum over the batch in grad_theta_f", "conformance/grad-theta-f"),
    ("term left out of grad_theta_g", "conformance/grad-theta-g"),
    ("another point in grad_x_f", "conformance/grad-x-f"),
    ("zero grad_x_g", "conformance/grad-x-g"),
    ("grad_x_f adds to its output", "conformance/not-overwritten"),
    ("grad_theta_g counts its calls", "conformance/not-repeatable"),
    ("grad_theta_f at the last point of f", "conformance/not-repeatable"),
    ("asymmetric hess_g", "conformance/not-symmetric"),
    ("NaN in grad_x_f", "conformance/not-finite"),
    ("concave g", "conformance/not-convex"),
    ("f grows with the batch", "conformance/biased"),
    ("directions without grad f", "conformance/directions"),
    ("directions with another norm", "conformance/directions"),
    ("together mixes nodes up", "conformance/together"),
    ("nodes start apart", "conformance/start"),
    ("short start", "conformance/start"),
    ("another theta_star", "conformance/theta-star"),
    ("negative hess_diagonal", "conformance/hess-diagonal"),
    ("parts from a global counter", "conformance/parts-differ"),
    ("parts numbered from 0", "conformance/range-differs"),
    ("a part too few", "problem/malformed"),
    ("no samples", "problem/malformed"),
    ("metrics without loss", "conformance/metrics"),
    ("metrics of the first node alone", "conformance/metrics"),
    ("single precision", "conformance/precision"),
    ("allocation in hess_g", "conformance/allocates"),
];

params! {
    /// A quadratic with a mistake.
    struct Planted {
        /// The mistake.
        mistake: String = "none".into();
    }
}

static MADE: AtomicU64 = AtomicU64::new(0);

impl Planted {
    fn make<T: Real>(&self, setting: &Setting, nodes: Range<usize>) -> Result<Vec<Part<T>>> {
        let (mut setting, mut made) = (*setting, nodes.clone());
        match &self.mistake[..] {
            "parts from a global counter" => setting.seed += MADE.fetch_add(1, Ordering::Relaxed),
            "parts numbered from 0" => made = 0..nodes.len(),
            "a part too few" => made.end -= 1,
            _ => {}
        }
        let text = "n = 3\np = 4\nnoise = 0.5\nsamples = 7";
        let quadratic: quadratic::Options = toml::from_str(text).unwrap();
        let parts = quadratic.parts(&setting, made)?.each;
        let planted = |(node, part): (usize, Box<dyn Bilevel<T>>)| {
            let theta = vec![T::zero(); part.dims().p];
            Part { part, mistake: self.mistake.clone(), node, calls: 0.0, theta }
        };
        Ok(nodes.zip(parts).map(planted).collect())
    }
}

impl<T: Real> Problem<T> for Planted {
    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let mut parts: Parts<T> = self.make(setting, nodes.clone())?.into_iter().collect();
        parts.together = Some(Box::new(All(self.make(setting, nodes)?)));
        Ok(parts)
    }
}

/// A part of a quadratic, with a mistake.
struct Part<T> {
    part: Box<dyn Bilevel<T>>,
    mistake: String,
    node: usize,
    calls: f64,
    theta: Vec<T>, // θ at the last call of f
}

impl<T: Real> Part<T> {
    fn is(&self, mistake: &str) -> bool {
        self.mistake == mistake
    }

    /// The factor of g and its derivatives.
    fn scale_g(&self) -> f64 {
        if self.is("concave g") { -1.0 } else { 1.0 }
    }

    /// The factor of f and its derivatives.
    fn scale_f(&self, batch: &[u32]) -> f64 {
        if self.is("f grows with the batch") { 1.0 + batch.len() as f64 } else { 1.0 }
    }
}

fn scale<T: Real>(by: f64, out: &mut [T]) {
    out.iter_mut().for_each(|value| *value *= T::of(by));
}

impl<T: Real> Bilevel<T> for Part<T> {
    fn dims(&self) -> Dims {
        self.part.dims()
    }

    fn samples_f(&self) -> usize {
        if self.is("no samples") { 0 } else { self.part.samples_f() }
    }

    fn samples_g(&self) -> usize {
        self.part.samples_g()
    }

    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.theta.copy_from_slice(at.theta);
        self.scale_f(batch) * self.part.f(at, batch)
    }

    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.scale_g() * self.part.g(at, batch)
    }

    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        let before: [T; 3] = std::array::from_fn(|j| out[j]);
        let x = if self.is("another point in grad_x_f") { &[T::zero(); 3] } else { at.x };
        self.part.grad_x_f(At { x, ..at }, batch, out);
        scale(self.scale_f(batch), out);
        match &self.mistake[..] {
            "grad_x_f adds to its output" => axpy(T::one(), &before, out),
            "NaN in grad_x_f" => out[1] = T::nan(),
            "single precision" if T::BYTES == 4 => scale(1.1, out),
            _ => {}
        }
    }

    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        let stale = self.is("grad_theta_f at the last point of f");
        let theta = if stale { &self.theta } else { at.theta };
        self.part.grad_theta_f(At { theta, ..at }, batch, out);
        scale(self.scale_f(batch), out);
        if self.is("sum over the batch in grad_theta_f") {
            scale(batch.len() as f64, out);
        }
    }

    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.part.grad_theta_g(at, batch, out);
        scale(self.scale_g(), out);
        self.calls += 1.0;
        match &self.mistake[..] {
            "term left out of grad_theta_g" => out[2] = T::zero(),
            "grad_theta_g counts its calls" => out[0] += T::of(1e-3 * self.calls),
            _ => {}
        }
    }

    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.part.hess_g(at, batch, v, out);
        scale(self.scale_g(), out);
        match &self.mistake[..] {
            "factor 2 in hess_g" => scale(2.0, out),
            "asymmetric hess_g" => out[0] += v[1],
            "allocation in hess_g" => drop(std::hint::black_box(v.to_vec())),
            _ => {}
        }
    }

    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.part.cross_g(at, batch, v, out);
        scale(self.scale_g(), out);
        if self.is("sign of cross_g") {
            scale(-1.0, out);
        }
    }

    fn directions(&mut self, at: At<T>, v: &[T], on: Minibatches, out: Directions<T>) {
        let Directions { d, h, s, hess, scratch } = out;
        self.grad_theta_g(at, on.xi[0], d);
        self.hess_g(at, on.xi[1], v, h);
        if let Some(hess) = hess {
            *hess = dot(h, h).to_f64().sqrt()
                * if self.is("directions with another norm") { 1.5 } else { 1.0 };
        }
        if !self.is("directions without grad f") {
            let grad = &mut scratch[..h.len()];
            self.grad_theta_f(at, on.sigma[0], grad);
            axpy(-T::one(), grad, h);
        }
        self.grad_x_f(at, on.sigma[1], s);
        let cross_v = &mut scratch[..s.len()];
        self.cross_g(at, on.xi[2], v, cross_v);
        axpy(-T::one(), cross_v, s);
    }

    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let mut metrics = self.part.metrics(at);
        match &self.mistake[..] {
            "metrics without loss" => drop(metrics.remove(0)),
            "metrics of the first node alone" if self.node > 0 => metrics.truncate(1),
            _ => {}
        }
        metrics
    }

    fn start_x(&self, common: &mut Stream) -> Vec<f64> {
        let mut start = self.part.start_x(common);
        match &self.mistake[..] {
            "nodes start apart" => start[0] = self.node as f64,
            "short start" => drop(start.pop()),
            _ => {}
        }
        start
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }

    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<T>> {
        Some(self)
    }
}

impl<T: Real> SingleLevel<T> for Part<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.part.single_level().unwrap().grad_x_g(at, batch, out);
        let zero = self.is("zero grad_x_g");
        scale(if zero { 0.0 } else { self.scale_g() }, out);
    }
}

impl<T: Real> Shortcuts<T> for Part<T> {
    fn theta_star(&mut self, x: &[T]) -> Option<Vec<T>> {
        let mut theta = self.part.shortcuts()?.theta_star(x)?;
        if self.is("another theta_star") {
            theta[1] += T::of(1e-4);
        }
        Some(theta)
    }

    fn hess_diagonal(&mut self, at: At<T>) -> Option<Vec<T>> {
        let all: Vec<u32> = (0..self.samples_g() as u32).collect();
        let p = self.dims().p;
        let mut column = vec![T::zero(); p];
        let mut entry = |j: usize| {
            let unit: Vec<T> = (0..p).map(|i| T::of(f64::from(u8::from(i == j)))).collect();
            self.hess_g(at, &all, &unit, &mut column);
            column[j]
        };
        let mut diagonal: Vec<T> = (0..p).map(&mut entry).collect();
        if self.is("negative hess_diagonal") {
            scale(-1.0, &mut diagonal);
        }
        Some(diagonal)
    }
}

/// Computes for all nodes.
struct All<T>(Vec<Part<T>>);

impl<T: Real> Together<T> for All<T> {
    fn directions(&mut self, asks: &mut [Ask<T>]) -> Result<()> {
        let count = self.0.len();
        for Ask { node, at, v, on, out } in asks {
            let part = &mut self.0[*node];
            let node = if part.is("together mixes nodes up") { (*node + 1) % count } else { *node };
            let Directions { d, h, s, scratch, .. } = out;
            self.0[node].directions(*at, v, *on, Directions { d, h, s, hess: None, scratch });
        }
        Ok(())
    }
}

fn check(mistake: &str) -> Result<()> {
    let mut registries = Registries::default();
    registries.problems.add(problem_entry::<Planted>("planted", "a quadratic with a mistake"));
    problem(&registries, &format!("problem = {{ name = 'planted', mistake = '{mistake}' }}"))
}

#[test]
fn every_mistake_in_a_problem_is_found() {
    for &(mistake, id) in MISTAKES {
        let found = check(mistake).err();
        let said = found.as_ref().map_or("", |error| error.id);
        assert_eq!(said, id, "{mistake}: {found:?}");
        let ours = found.filter(|error| error.id.starts_with("conformance/"));
        assert!(ours.is_none_or(|error| error.kind == Kind::Mismatch), "{mistake}");
    }
}

#[test]
fn messages_name_the_place_the_numbers_and_the_cause() {
    let message = |mistake: &str| check(mistake).unwrap_err().to_string();
    let sign = message("sign of cross_g");
    let place = "problem `planted` in f64, node 0, all samples: ";
    assert!(sign.starts_with(place), "{sign}");
    assert!(sign.contains("cross_g disagrees with differences of grad_theta_g along v"), "{sign}");
    assert!(sign.contains("entry 0 is ") && sign.ends_with(": a sign?"), "{sign}");
    assert!(message("factor 2 in hess_g").ends_with(": a factor of 2?"));
    let sum = message("sum over the batch in grad_theta_f");
    assert!(sum.ends_with(": a factor of 7, the size of the batch?"), "{sum}");
}
