//! The variables of a run beside exact θ*, v* and ∇Φ, and their differences: the terms of LoPA's
//! Lyapunov function V^k, (25) of the paper.

use rayon::ThreadPool;
use serde::Serialize;

use super::Parts;
use crate::parallel;
use lopa::problem::Bilevel;
use lopa::run::Variables;
use lopa::run::evaluate::exact::{Solution, solve};
use lopa::run::evaluate::mean;

/// The terms of V^k without their weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Φ(x̄).
    pub objective: f64,
    /// Hv errors, 1/m ‖v − v*(x̄)‖².
    pub hv: f64,
    /// Inner-level errors, 1/m ‖θ − θ*(x̄)‖².
    pub inner: f64,
    /// Average variance errors, ‖∇Φ(x̄) − z̄‖².
    pub average: f64,
    /// Variance errors, 1/m ‖∇Φ̃(x̄) − z‖².
    pub variance: f64,
    /// Consensus errors, 1/m ‖x − 1 ⊗ x̄‖².
    pub consensus: f64,
    /// Gradient errors, 1/m ‖y − 1 ⊗ ȳ‖².
    pub gradient: f64,
}

/// The names of the terms, in the order of d_0 … d_6.
pub const TERMS: [&str; 7] =
    ["objective", "hv", "inner", "average", "variance", "consensus", "gradient"];

impl Errors {
    /// The terms in the order of d_0 … d_6.
    pub fn list(&self) -> [f64; 7] {
        let Errors { objective, hv, inner, average, variance, consensus, gradient } = *self;
        [objective, hv, inner, average, variance, consensus, gradient]
    }
}

/// All nodes' variables at an iteration, in double precision.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// x_i
    pub x: Vec<Vec<f64>>,
    /// θ_i
    pub theta: Vec<Vec<f64>>,
    /// v_i
    pub v: Vec<Vec<f64>>,
    /// z_i
    pub z: Vec<Vec<f64>>,
    /// y_i
    pub y: Vec<Vec<f64>>,
}

impl State {
    /// The state of a run of LoPA; `None` for an algorithm without these variables.
    pub fn of(nodes: &[Variables]) -> Option<State> {
        let one = |node: &Variables, name: &str| {
            node.iter().find(|(known, _)| *known == name).map(|(_, values)| values.clone())
        };
        let all = |name: &str| nodes.iter().map(|node| one(node, name)).collect::<Option<_>>();
        Some(State { x: all("x")?, theta: all("theta")?, v: all("v")?, z: all("z")?, y: all("y")? })
    }

    /// x̄
    pub fn mean_x(&self) -> Vec<f64> {
        mean_row(&self.x)
    }
}

/// A state with the exact solutions at its x̄.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The nodes' variables.
    pub state: State,
    /// x̄
    pub mean_x: Vec<f64>,
    /// θ_i*, v_i*, Φ_i, ∇Φ_i at x̄.
    pub exact: Vec<Solution>,
    /// ∇Φ(x̄)
    pub grad_phi: Vec<f64>,
    /// The terms of V^k.
    pub errors: Errors,
}

impl Snapshot {
    /// Solves every node's part at x̄, on the threads of a pool if there is one.
    pub fn new(parts: &mut Parts, state: State, pool: Option<&ThreadPool>) -> Snapshot {
        let mean_x = state.mean_x();
        let one = |(part, theta): (&mut Box<dyn Bilevel<f64>>, &Vec<f64>)| {
            solve(&mut **part, &mean_x, theta)
        };
        let exact = parallel::map(pool, parts.iter_mut().zip(&state.theta), one);
        let grad_phi = mean(exact.iter().map(|solution| &solution.grad[..]));
        let errors = errors(&state, &mean_x, &exact, &grad_phi);
        Snapshot { state, mean_x, exact, grad_phi, errors }
    }

    /// ‖∇Φ(x̄)‖²
    pub fn grad_phi_sq(&self) -> f64 {
        norm_sq(&self.grad_phi)
    }

    /// Σ_i ‖∇Φ_i − ∇Φ‖², which Lemma 1 bounds.
    pub fn dissimilarity(&self) -> f64 {
        self.exact.iter().map(|solution| distance_sq(&solution.grad, &self.grad_phi)).sum()
    }
}

fn errors(state: &State, mean_x: &[f64], exact: &[Solution], grad_phi: &[f64]) -> Errors {
    let m = exact.len() as f64;
    let over = |of: &[Vec<f64>], star: &dyn Fn(usize) -> Vec<f64>| {
        of.iter().enumerate().map(|(i, own)| distance_sq(own, &star(i))).sum::<f64>() / m
    };
    let mean_y = mean_row(&state.y);
    Errors {
        objective: exact.iter().map(|solution| solution.phi).sum::<f64>() / m,
        hv: over(&state.v, &|i| exact[i].v.clone()),
        inner: over(&state.theta, &|i| exact[i].theta.clone()),
        average: distance_sq(grad_phi, &mean_row(&state.z)),
        variance: over(&state.z, &|i| exact[i].grad.clone()),
        consensus: over(&state.x, &|_| mean_x.to_vec()),
        gradient: over(&state.y, &|_| mean_y.clone()),
    }
}

/// The mean of the rows.
pub fn mean_row(rows: &[Vec<f64>]) -> Vec<f64> {
    mean(rows.iter().map(|row| &row[..]))
}

/// ‖a‖²
pub fn norm_sq(a: &[f64]) -> f64 {
    a.iter().map(|a| a * a).sum()
}

/// ‖a − b‖²
pub fn distance_sq(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}
