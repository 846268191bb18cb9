//! The limit of an algorithm must not depend on how its step sizes decrease.

use toml::{Table, Value};

use super::lab::{Lab, Run, iterate};
use super::{broken, compare::short};
use crate::algorithms::{AnyMethod, Facts};
use crate::error::Result;

/// Iterations with a constant step.
const ITERATIONS: u64 = 600;

/// If the limit is the same for two constant steps, then also for steps c / √(k + 1): the distance
/// to it keeps falling. Algorithms whose limit depends on the step size are exempt.
pub(super) fn limit(lab: Lab, facts: &Facts) -> Result<()> {
    let keys: Vec<String> = facts.driving(&["x", "theta"]).into_iter().map(String::from).collect();
    let lab = lab.on_all_samples();
    let over_sqrt = |c: f64| Value::Table(Table::from_iter([("over_sqrt".into(), c.into())]));
    let half = lab.with(&keys, |c| Value::Float(c / 2.0));
    let (Some(half), Some(lowered)) = (half, lab.with(&keys, over_sqrt)) else { return Ok(()) };

    let after = |method: &AnyMethod, iterations| -> Result<Vec<f64>> {
        let mut run = lab.start::<f64>(method, None)?;
        iterate(&mut run, iterations)?;
        Ok(points(&run))
    };
    let start = points(&lab.start::<f64>(&lab.method, None)?);
    let limit = after(&lab.method, ITERATIONS)?;
    let way = distance(&start, &limit);
    if distance(&after(&half, 2 * ITERATIONS)?, &limit) > 1e-8 * way || !way.is_finite() {
        return Ok(());
    }
    let mut run = lab.start::<f64>(&lowered, None)?;
    iterate(&mut run, ITERATIONS)?;
    let early = distance(&points(&run), &limit);
    iterate(&mut run, 3 * ITERATIONS)?;
    let late = distance(&points(&run), &limit);
    if late <= early / 2.0 || late <= 1e-6 * way {
        return Ok(());
    }
    let message = format!(
        "two constant steps lead to one point, and steps c / sqrt(k + 1) lead elsewhere: {} away \
         after {ITERATIONS} iterations, {} after {}",
        short(early),
        short(late),
        4 * ITERATIONS
    );
    Err(broken("conformance/limit", message)
        .hint("an old gradient keeps its old step: is one multiplied by the step of today?"))
}

/// (x, θ) of all nodes.
fn points(run: &Run<f64>) -> Vec<f64> {
    let points = run.nodes().iter().map(|node| node.algorithm.at());
    points.flat_map(|at| at.x.iter().chain(at.theta)).copied().collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
