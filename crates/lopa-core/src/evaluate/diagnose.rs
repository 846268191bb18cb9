//! Why a run diverged, in words a user can act on.

use toml::Table;

use crate::algorithms::Facts;
use crate::evaluate::exact::largest_curvature;
use crate::evaluate::watch::{Culprit, Grown};
use crate::math::schedule::Schedule;
use crate::math::{number, written};
use crate::problem::{At, Bilevel};

/// Explains what grew first and which step size is the likely cause.
///
/// `at` is the culprit's last point that was measured before anything grew: limits at a point that
/// has exploded are meaningless.
pub fn diagnose(
    culprit: &Culprit,
    facts: &Facts,
    params: &Table,
    part: &mut dyn Bilevel<f64>,
    at: At<f64>,
) -> String {
    let Culprit { node, k, grown } = culprit;
    let (suspect, reason) = match suspect(facts, params, *k, part, at) {
        Some((suspect, reason)) => (suspect, format!("; the suspect is {reason}")),
        None => ("", String::new()),
    };
    // Of the variables that grew, the one that the suspect drives is closest to the cause.
    let driven = |grown: &&Grown| facts.steps.contains(&(grown.variable, suspect));
    let Grown { variable, size, early } = grown.iter().find(driven).unwrap_or(&grown[0]);
    let grew = match size.is_finite() {
        true => format!("grew from {early:.1e} to {size:.1e}"),
        false => "stopped being a number".to_string(),
    };
    format!("{variable} at node {node} {grew} by iteration {k}, before all else{reason}")
}

/// The step size that is probably too large, and the reason.
fn suspect(
    facts: &Facts,
    params: &Table,
    k: u64,
    part: &mut dyn Bilevel<f64>,
    at: At<f64>,
) -> Option<(&'static str, String)> {
    let step = |key: &str| -> Option<f64> {
        let schedule: Schedule = params.get(key)?.clone().try_into().ok()?;
        Some(schedule.at(k))
    };
    // Judge the steps on θ and v by the curvature of g, no matter what grew first: an unstable
    // inner iteration also makes x grow, and x makes a stable one grow.
    let inner = facts.steps.iter().filter(|(variable, _)| ["theta", "v"].contains(variable));
    let curvature = largest_curvature(part, at);
    for &(_, key) in inner.clone() {
        let Some(value) = step(key) else { continue };
        let known = part.shortcuts().and_then(|known| known.unstable(at, value));
        if let Some(reason) = known {
            return Some((key, format!("{key} = {}: {reason}", written(value))));
        }
        if value * curvature >= 2.0 {
            let reason = format!(
                "{key} = {}: the curvature of g is about {l}, and a stable step stays below 2 / {l} \
                 = {}",
                written(value),
                number(2.0 / curvature),
                l = number(curvature)
            );
            return Some((key, reason));
        }
    }
    let &(_, key) = facts.steps.iter().find(|(variable, _)| *variable == "x")?;
    let value = step(key)?;
    let cleared: Vec<_> = inner.map(|(_, key)| *key).filter(|inner| *inner != key).collect();
    let cleared = match &cleared[..] {
        [] => String::new(),
        [one] => format!(" ({one} is within its limit 2 / L)"),
        keys => format!(" ({} are within their limit 2 / L)", keys.join(" and ")),
    };
    Some((key, format!("{key} = {}{cleared}: try a tenth of it", written(value))))
}
