//! Runs of LoPA with ‖∇Φ(x̄^k)‖² and the terms of V^k along the way.

use toml::{Table, Value};

use super::snapshot::{Snapshot, State, mean_row, norm_sq};
use super::spectrum::extreme_eigenvalues;
use super::{Parts, Scheme, Steps};
use lopa::algorithms::{AnyMethod, algorithms};
use lopa::config::Choice;
use lopa::engine::Simulation;
use lopa::error::Result;
use lopa::experiment::AlgorithmSpec;
use lopa::math::portable::{exp, ln};
use lopa::math::real::{Real, axpy, cast};
use lopa::run::evaluate::exact::{conjugate_gradients, solve};
use lopa::run::{Setup, variables};

/// A run has diverged when ‖∇Φ‖² exceeds its initial value by this factor.
const DIVERGENCE_FACTOR: f64 = 1e12;

/// Whether ∇Φ is known in closed form.
pub fn quadratic(setup: &Setup) -> bool {
    setup.experiment.problem.name == "quadratic"
}

/// ∇Φ(x) = H x + h of a quadratic.
#[derive(Debug, Clone)]
pub struct LinearGradient {
    columns: Vec<Vec<f64>>,
    constant: Vec<f64>,
}

impl LinearGradient {
    /// Solves every part at the origin and at the unit vectors.
    pub fn of(parts: &mut Parts) -> LinearGradient {
        let n = parts[0].dims().n;
        let m = parts.len() as f64;
        let mut at = |x: &[f64]| {
            let mut sum = vec![0.0; n];
            parts.iter_mut().for_each(|p| axpy(1.0 / m, &solve(&mut **p, x, &[]).grad, &mut sum));
            sum
        };
        let (constant, columns) = affine(&mut at, &vec![0.0; n]);
        LinearGradient { columns, constant }
    }

    /// ∇Φ(x)
    pub fn at(&self, x: &[f64]) -> Vec<f64> {
        let mut out = self.constant.clone();
        self.columns.iter().zip(x).for_each(|(column, x)| axpy(*x, column, &mut out));
        out
    }

    /// The smallest and the largest eigenvalue of H.
    pub fn curvatures(&self) -> (f64, f64) {
        extreme_eigenvalues(self.columns.len(), usize::MAX, |v, out| self.product(v, out))
    }

    /// H v
    fn product(&self, v: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        self.columns.iter().zip(v).for_each(|(column, v)| axpy(*v, column, out));
    }

    /// x* with ∇Φ(x*) = 0, if Φ is strongly convex.
    pub fn minimiser(&self) -> Option<Vec<f64>> {
        let minus: Vec<f64> = self.constant.iter().map(|h| -h).collect();
        let (x, solved) = conjugate_gradients(|v, out| self.product(v, out), &minus, 1e-12);
        solved.then_some(x)
    }
}

/// F(c) and the columns of DF for an affine F.
pub fn affine(f: &mut dyn FnMut(&[f64]) -> Vec<f64>, centre: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let middle = f(centre);
    let column = |j: usize| {
        let mut x = centre.to_vec();
        x[j] += 1.0;
        let mut moved = f(&x);
        axpy(-1.0, &middle, &mut moved);
        moved
    };
    let columns = (0..centre.len()).map(column).collect();
    (middle, columns)
}

/// The course of a run.
#[derive(Debug, Clone)]
pub struct Course {
    /// Snapshots and their iterations.
    pub seen: Vec<(u64, Snapshot)>,
    /// (K, mean of ‖∇Φ(x̄^k)‖² over k = 0 … K) at the same iterations.
    pub averages: Vec<(u64, f64)>,
    /// The iteration at which the run was found to have diverged.
    pub diverged: Option<u64>,
    /// Whether the averages include every iteration, or only the snapshots.
    pub whole: bool,
}

impl Course {
    /// ‖∇Φ‖² at the last snapshot.
    pub fn last(&self) -> f64 {
        self.seen.last().map_or(f64::NAN, |(_, seen)| seen.grad_phi_sq())
    }

    /// The mean of ‖∇Φ‖² over the whole run.
    pub fn average(&self) -> f64 {
        self.averages.last().map_or(f64::NAN, |(_, mean)| *mean)
    }
}

/// x̄ of a run.
pub fn mean_x<T: Real>(simulation: &Simulation<T>) -> Vec<f64> {
    let all: Vec<Vec<f64>> =
        simulation.nodes().iter().map(|node| cast(node.algorithm.at().x)).collect();
    mean_row(&all)
}

/// Runs LoPA and takes snapshots at these iterations, in increasing order; the last one ends the run.
/// Averages are right only if the first is 0.
pub fn run(setup: &Setup, choice: &Choice<AnyMethod>, snapshots: &[u64]) -> Result<Course> {
    let nodes = setup.nodes::<f64>(&choice.build)?;
    let mut simulation = Simulation::new(nodes, &setup.world.mixing, setup.pool);
    let mut parts = setup.parts()?;
    let closed = quadratic(setup).then(|| LinearGradient::of(&mut parts));
    let whole = closed.is_some();
    let mut course = Course { seen: Vec::new(), averages: Vec::new(), diverged: None, whole };
    let mut sum = 0.0;
    for &k in snapshots {
        while simulation.k() < k {
            simulation.iterate();
            if let Some(closed) = &closed {
                sum += norm_sq(&closed.at(&mean_x(&simulation)));
            }
        }
        let Some(state) = State::of(&simulation.nodes().iter().map(variables).collect::<Vec<_>>())
        else {
            break;
        };
        let snapshot = Snapshot::new(&mut parts, state, setup.pool);
        let now = snapshot.grad_phi_sq();
        let first = course.seen.first().map_or(now, |(_, first)| first.grad_phi_sq());
        if !now.is_finite() || now > DIVERGENCE_FACTOR * first.max(f64::MIN_POSITIVE) {
            course.diverged = Some(k);
            break;
        }
        if k == 0 {
            sum = now;
        }
        course.seen.push((k, snapshot));
        let mean = if whole { sum / (k + 1) as f64 } else { trapezium(&course.seen) };
        course.averages.push((k, mean));
    }
    Ok(course)
}

/// The mean over iterations, interpolated linearly between the snapshots.
fn trapezium(seen: &[(u64, Snapshot)]) -> f64 {
    let [(_, first), .., (last, _)] = seen else { return seen[0].1.grad_phi_sq() };
    let area: f64 = seen
        .windows(2)
        .map(|pair| {
            let [(from, a), (to, b)] = pair else { unreachable!("windows of two") };
            (to - from) as f64 * (a.grad_phi_sq() + b.grad_phi_sq()) / 2.0
        })
        .sum();
    if *last == 0 { first.grad_phi_sq() } else { area / *last as f64 }
}

/// About `count` iterations from 0 to `last`, evenly spaced in the logarithm.
pub fn log_spaced(last: u64, count: usize) -> Vec<u64> {
    let top = ln((last + 1) as f64);
    let at = |j: usize| (exp(top * j as f64 / (count - 1) as f64) - 1.0).round() as u64;
    let mut iterations: Vec<u64> = (0..count).map(at).collect();
    iterations.push(last);
    iterations.sort_unstable();
    iterations.dedup();
    iterations
}

/// The choice in a file that has these step sizes and starts z in the same way.
pub fn with_steps(
    spec: &AlgorithmSpec,
    scheme: Scheme,
    steps: &Steps,
) -> Result<Choice<AnyMethod>> {
    let mut params: Table = spec.choice.params().clone();
    let Steps { alpha, beta, lambda, gamma, tau } = *steps;
    let all =
        [("alpha", alpha), ("beta", beta), ("lambda", lambda), ("gamma", gamma), ("tau", tau)];
    for (key, value) in all {
        params.insert(key.into(), Value::Float(value));
    }
    algorithms().choose(scheme.name(), &params)
}
