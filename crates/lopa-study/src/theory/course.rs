//! Runs of LoPA watched from the inside: ‖∇Φ(x̄^k)‖² and the terms of V^k along the way.

use toml::{Table, Value};

use super::lyapunov::{Snapshot, State, centre, square};
use super::measure::ends;
use super::{Scheme, Steps};
use lopa::algorithms::{AnyMethod, algorithms};
use lopa::config::Choice;
use lopa::engine::Simulation;
use lopa::error::Result;
use lopa::evaluate::exact::{conjugate_gradients, solve};
use lopa::experiment::AlgorithmSpec;
use lopa::math::real::{Real, axpy, cast};
use lopa::problem::Bilevel;
use lopa::run::{Setup, variables};

/// A run has lost its way where ‖∇Φ‖² is so many times what it was.
const LOST: f64 = 1e12;

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
    /// Found by solving every part at the origin and at the unit vectors.
    pub fn of(parts: &mut [Box<dyn Bilevel<f64>>]) -> LinearGradient {
        let n = parts[0].dims().n;
        let m = parts.len() as f64;
        let mut at = |x: &[f64]| {
            let mut sum = vec![0.0; n];
            parts.iter_mut().for_each(|p| axpy(1.0 / m, &solve(&mut **p, x, &[]).grad, &mut sum));
            sum
        };
        let constant = at(&vec![0.0; n]);
        let column = |j: usize| {
            let mut unit = vec![0.0; n];
            unit[j] = 1.0;
            let mut column = at(&unit);
            axpy(-1.0, &constant, &mut column);
            column
        };
        let columns = (0..n).map(column).collect();
        LinearGradient { columns, constant }
    }

    /// ∇Φ(x)
    pub fn at(&self, x: &[f64]) -> Vec<f64> {
        let mut out = self.constant.clone();
        self.columns.iter().zip(x).for_each(|(column, x)| axpy(*x, column, &mut out));
        out
    }

    /// The outer eigenvalues of H.
    pub fn curvatures(&self) -> (f64, f64) {
        ends(self.columns.len(), usize::MAX, |v, out| self.product(v, out))
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

/// A run as it was seen.
#[derive(Debug, Clone)]
pub struct Course {
    /// The iterations looked at closely, and what was seen.
    pub seen: Vec<(u64, Snapshot)>,
    /// (K, mean of ‖∇Φ(x̄^k)‖² over k = 0 … K) at the same iterations.
    pub averages: Vec<(u64, f64)>,
    /// The iteration at which the run had lost its way, if it did.
    pub lost: Option<u64>,
    /// Whether every iteration is in the averages, or only those looked at.
    pub whole: bool,
}

impl Course {
    /// ‖∇Φ‖² at the last look.
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
    centre(&all)
}

/// Runs LoPA and looks at it at the iterations `looks` (increasing, 0 first), the last of which
/// ends the run.
pub fn run(setup: &Setup, choice: &Choice<AnyMethod>, looks: &[u64]) -> Result<Course> {
    let nodes =
        setup.experiment.nodes::<f64>(setup.data, setup.world, setup.seed, &choice.build)?;
    let mut simulation = Simulation::new(nodes, &setup.world.mixing, setup.pool);
    let mut parts = setup.parts()?;
    let closed = quadratic(setup).then(|| LinearGradient::of(&mut parts));
    let whole = closed.is_some();
    let mut course = Course { seen: Vec::new(), averages: Vec::new(), lost: None, whole };
    let mut sum = 0.0;
    for &look in looks {
        while simulation.k() < look {
            simulation.iterate();
            if let Some(closed) = &closed {
                sum += square(&closed.at(&mean_x(&simulation)));
            }
        }
        let Some(state) = State::of(&simulation.nodes().iter().map(variables).collect::<Vec<_>>())
        else {
            break;
        };
        let snapshot = Snapshot::new(&mut parts, state, setup.pool);
        let now = snapshot.grad_phi_sq();
        let first = course.seen.first().map_or(now, |(_, first)| first.grad_phi_sq());
        if !now.is_finite() || now > LOST * first.max(f64::MIN_POSITIVE) {
            course.lost = Some(look);
            break;
        }
        if look == 0 {
            sum = now;
        }
        course.seen.push((look, snapshot));
        let mean = if whole { sum / (look + 1) as f64 } else { trapezium(&course.seen) };
        course.averages.push((look, mean));
    }
    Ok(course)
}

/// The mean over iterations, by straight lines between the looks.
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

/// About `count` iterations from 0 to `last`, evenly spread in the logarithm.
pub fn looks(last: u64, count: usize) -> Vec<u64> {
    let top = ((last + 1) as f64).ln();
    let at = |j: usize| ((top * j as f64 / (count - 1) as f64).exp() - 1.0).round() as u64;
    let mut looks: Vec<u64> = (0..count).map(at).collect();
    looks.push(last);
    looks.sort_unstable();
    looks.dedup();
    looks
}

/// The choice in a file that has these step sizes and starts z in the same way.
pub fn with_steps(
    spec: &AlgorithmSpec,
    scheme: Scheme,
    steps: &Steps,
) -> Result<Choice<AnyMethod>> {
    let mut params: Table = spec.choice.params.clone();
    let Steps { alpha, beta, lambda, gamma, tau } = *steps;
    let all =
        [("alpha", alpha), ("beta", beta), ("lambda", lambda), ("gamma", gamma), ("tau", tau)];
    for (key, value) in all {
        params.insert(key.into(), Value::Float(value));
    }
    algorithms().choose(scheme.name(), &params)
}
