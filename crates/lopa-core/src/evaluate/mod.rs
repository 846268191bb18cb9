//! Measures a run: each node's metrics, consensus, and Φ at the mean x̄.
//!
//! In the global scope Φ has one θ*(x̄) for all nodes, and their θ_i should also agree.
//! Measurements are in double precision, on all of a node's data, with the clock stopped.

pub mod diagnose;
pub mod exact;
pub mod mean;
mod quartiles;
pub mod watch;

pub use quartiles::Quartiles;

use std::collections::BTreeMap;

use rayon::ThreadPool;

use crate::error::Result;
use crate::evaluate::exact::{Solution, solve};
use crate::evaluate::mean::Mean;
use crate::math::parallel;
use crate::math::real::{axpy, dot};
use crate::problem::{At, Bilevel};

/// (x_i, θ_i) of a node, in double precision.
pub type Point = (Vec<f64>, Vec<f64>);

/// Collects every node's numbers, in the order of the nodes, from those of this process.
pub type Everyone<'a> = &'a mut (dyn FnMut(Vec<Vec<f64>>) -> Result<Vec<Vec<f64>>> + Send);

/// The contribution of one node to a measurement.
#[derive(Debug, Clone)]
pub struct Local {
    /// The problem's own metrics at (x_i, θ_i).
    pub values: Vec<(String, f64)>,
    /// ‖x_i − x̄‖²
    pub distance_sq: f64,
    /// The node's part solved at x̄, if requested, without θ* and v*.
    pub exact: Option<Solution>,
    /// ‖θ_i − θ_i*(x̄)‖², if requested.
    pub theta_error_sq: f64,
}

/// One node's contribution: its metrics at its own point, and its part solved at x̄.
pub fn local(part: &mut dyn Bilevel<f64>, at: At<f64>, mean: &[f64], exact: bool) -> Local {
    let exact = exact.then(|| solve(part, mean, at.theta));
    let off = |(a, b): (&f64, &f64)| (a - b) * (a - b);
    let theta_error_sq = match &exact {
        Some(solution) => at.theta.iter().zip(&solution.theta).map(off).sum(),
        None => 0.0,
    };
    // θ* and v* are as long as θ_i, at every node: only the numbers that a row needs are kept.
    let exact = exact.map(|solution| Solution { theta: Vec::new(), v: Vec::new(), ..solution });
    Local {
        values: part.metrics(at),
        distance_sq: at.x.iter().zip(mean).map(off).sum(),
        exact,
        theta_error_sq,
    }
}

impl Local {
    /// Its numbers, to send to other processes.
    pub fn to_numbers(&self) -> Vec<f64> {
        let mut numbers: Vec<f64> = self.values.iter().map(|(_, value)| *value).collect();
        numbers.extend([self.distance_sq, self.theta_error_sq]);
        if let Some(Solution { phi, converged, grad, .. }) = &self.exact {
            numbers.extend([*phi, f64::from(*converged)]);
            numbers.extend(grad);
        }
        numbers
    }

    /// From the numbers of another process, with the names of the metrics. Of a solution they hold
    /// only the numbers that a row needs.
    pub fn from_numbers(names: &[String], numbers: &[f64]) -> Option<Local> {
        let (values, rest) = numbers.split_at_checked(names.len())?;
        let values = names.iter().cloned().zip(values.iter().copied()).collect();
        let (&[distance_sq, theta_error_sq], rest) = rest.split_first_chunk()?;
        let exact = rest.split_first_chunk().map(|(&[phi, converged], grad)| Solution {
            theta: Vec::new(),
            v: Vec::new(),
            phi,
            grad: grad.to_vec(),
            converged: converged != 0.0,
        });
        Some(Local { values, distance_sq, exact, theta_error_sq })
    }
}

/// The measures that the global scope adds: how far apart the θ_i are, and, if requested, Φ, ∇Φ and
/// the distance of the θ_i from the common θ*(x̄).
///
/// `points` are those of all nodes, `parts` those of this process; `everyone` collects the numbers of
/// all processes.
pub fn common(
    parts: &mut [Box<dyn Bilevel<f64>>],
    points: &[Point],
    exact: bool,
    pool: Option<&ThreadPool>,
    everyone: Everyone,
) -> Result<BTreeMap<String, f64>> {
    let x = mean(points.iter().map(|(x, _)| &x[..]));
    let theta = mean(points.iter().map(|(_, theta)| &theta[..]));
    let off_sq = |from: &[f64]| {
        let off = |(_, theta): &Point| -> f64 {
            theta.iter().zip(from).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        points.iter().map(off).sum::<f64>() / points.len() as f64
    };
    let mut values = BTreeMap::from([("theta_consensus".to_string(), off_sq(&theta))]);
    if exact {
        let mut mean = Mean::new(parts, pool, everyone);
        let solution = solve(&mut mean, &x, &theta);
        mean.check()?;
        values.insert("phi".into(), solution.phi);
        values.insert("grad_phi_sq".into(), dot(&solution.grad, &solution.grad));
        values.insert("theta_error".into(), off_sq(&solution.theta));
        if !solution.converged {
            values.insert("unsolved_nodes".into(), points.len() as f64);
        }
    }
    Ok(values)
}

/// The mean over nodes, in their order.
pub fn mean<'a>(of: impl ExactSizeIterator<Item = &'a [f64]>) -> Vec<f64> {
    let m = of.len() as f64;
    let mut sum = Vec::new();
    for x in of {
        sum.resize(x.len(), 0.0);
        axpy(1.0 / m, x, &mut sum);
    }
    sum
}

/// Σ ‖x_i − x̄‖² / m, of the x_i alone.
pub fn consensus(xs: &[Vec<f64>]) -> f64 {
    let mean = mean(xs.iter().map(|x| &x[..]));
    let off = |x: &Vec<f64>| x.iter().zip(&mean).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    xs.iter().map(off).sum::<f64>() / xs.len() as f64
}

/// Whether NaN under this name says that a node has no samples for the measure: its mean is over the other nodes.
pub fn may_lack(name: &str) -> bool {
    ["train_", "test_", "own_test_", "holdout_"].iter().any(|start| name.starts_with(start))
}

/// Turns the nodes' contributions into the measures of a row.
pub fn summarise(nodes: &[Local]) -> BTreeMap<String, f64> {
    let m = nodes.len() as f64;
    let mean_of = |f: &dyn Fn(&Local) -> f64| nodes.iter().map(f).sum::<f64>() / m;
    let mut values = BTreeMap::new();
    values.insert("consensus".into(), mean_of(&|node| node.distance_sq));
    for (at, (name, _)) in nodes[0].values.iter().enumerate() {
        let all = nodes.iter().map(|node| node.values[at].1);
        let known = all.filter(|value| !(value.is_nan() && may_lack(name)));
        let (sum, count) = known.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        values.insert(name.to_string(), sum / count);
    }
    let solutions: Vec<&Solution> = nodes.iter().filter_map(|node| node.exact.as_ref()).collect();
    if solutions.len() == nodes.len() {
        let grad = mean(solutions.iter().map(|solution| &solution.grad[..]));
        values.insert("phi".into(), solutions.iter().map(|s| s.phi).sum::<f64>() / m);
        values.insert("grad_phi_sq".into(), dot(&grad, &grad));
        values.insert("theta_error".into(), mean_of(&|node| node.theta_error_sq));
        let unsolved = solutions.iter().filter(|solution| !solution.converged).count();
        if unsolved > 0 {
            values.insert("unsolved_nodes".into(), unsolved as f64);
        }
    }
    values
}

/// All nodes' contributions, on a pool's threads if there is one.
pub fn all(
    parts: &mut [Box<dyn Bilevel<f64>>],
    points: &[Point],
    exact: bool,
    pool: Option<&ThreadPool>,
) -> Vec<Local> {
    let mean = mean(points.iter().map(|(x, _)| &x[..]));
    parallel::map(pool, parts.iter_mut().zip(points), |(part, (x, theta))| {
        local(&mut **part, At { x, theta }, &mean, exact)
    })
}
