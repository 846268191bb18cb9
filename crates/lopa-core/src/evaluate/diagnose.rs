//! Why a run diverged, in words a user can act on.

use toml::Table;

use crate::algorithms::Facts;
use crate::evaluate::exact::largest_curvature;
use crate::evaluate::watch::{Culprit, Grown};
use crate::math::schedule::Schedule;
use crate::math::{number, written};
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel};

/// The conditions of a run that limit its step sizes.
pub struct Conditions<'a> {
    /// What is known of the algorithm.
    pub facts: &'a Facts,
    /// Its parameters.
    pub params: &'a Table,
    /// Whose θ it is.
    pub scope: Scope,
    /// The smallest eigenvalue of W.
    pub lambda_min: f64,
}

/// A step size that is probably too large.
struct Suspect {
    key: &'static str,
    value: f64,
    reason: String,
    /// The value to try instead.
    instead: f64,
}

/// Explains what grew first, which step sizes are the likely cause, and what to write instead.
///
/// `at` is the culprit's last point that was measured before anything grew: limits at a point that
/// has exploded are meaningless.
pub fn diagnose(
    culprit: &Culprit,
    conditions: &Conditions,
    part: &mut dyn Bilevel<f64>,
    at: At<f64>,
) -> String {
    let Culprit { node, k, grown } = culprit;
    let facts = conditions.facts;
    let suspects = conditions.suspects(culprit, part, at);
    // Of the variables that grew, the one that the suspect drives is closest to the cause.
    let drives =
        |grown: &Grown, suspect: &Suspect| facts.driving(&[grown.variable]).contains(&suspect.key);
    let driven = |grown: &&Grown| suspects.first().is_some_and(|first| drives(grown, first));
    let Grown { variable, size, early } = grown.iter().find(driven).unwrap_or(&grown[0]);
    let grew = match size.is_finite() {
        true => format!("grew from {early:.1e} to {size:.1e}"),
        false => "stopped being a number".to_string(),
    };
    let reason = match suspects.is_empty() {
        true => String::new(),
        false => format!("; {}; {}", accused(&suspects), conditions.advice(&suspects)),
    };
    format!("{variable} at node {node} {grew} by iteration {k}, before all else{reason}")
}

/// "the suspect is beta = 3: the curvature of g is about 2, …".
fn accused(suspects: &[Suspect]) -> String {
    let each = suspects.iter().map(|Suspect { key, value, reason, .. }| {
        format!("the suspect is {key} = {}{reason}", written(*value))
    });
    each.collect::<Vec<_>>().join("; ")
}

impl Conditions<'_> {
    /// What to write in the file instead.
    fn advice(&self, suspects: &[Suspect]) -> String {
        if self.facts.finds_steps {
            // All of them: a step that is too large for the others often hides behind the suspect.
            let mut keys: Vec<&str> = self.facts.steps.iter().map(|&(key, _)| key).collect();
            keys.sort_unstable();
            keys.retain(|key| self.params.contains_key(*key));
            let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
            let them = if keys.len() == 1 { "it" } else { "them" };
            return format!("leave {} out, and the nodes find {them}", keys.join(" and "));
        }
        let each = suspects.iter().map(|one| format!("`{} = {}`", one.key, number(one.instead)));
        format!("try {}", each.collect::<Vec<_>>().join(" and "))
    }

    /// A step size at the iteration of the divergence; `None` if the file leaves it out.
    fn step(&self, key: &str, k: u64) -> Option<f64> {
        let schedule: Schedule = self.params.get(key)?.clone().try_into().ok()?;
        Some(schedule.at(k))
    }

    /// The largest stable step times the curvature of g. Alone, a node may go up to 2. Where nodes mix
    /// θ and track its direction, the eigenvalues w of W give z² − (2w − βL) z + w² − βL = 0, whose
    /// roots stay inside the unit circle while βL < (1 + w)²/2.
    fn limit(&self) -> f64 {
        match self.scope {
            Scope::Personal => 2.0,
            Scope::Global => (1.0 + self.lambda_min).max(0.0).powi(2) / 2.0,
        }
    }

    /// The step sizes that are probably too large.
    fn suspects(
        &self,
        culprit: &Culprit,
        part: &mut dyn Bilevel<f64>,
        at: At<f64>,
    ) -> Vec<Suspect> {
        let k = culprit.k;
        // Judge the steps on θ and v by the curvature of g, no matter what grew first: an unstable
        // inner iteration also makes x grow, and x makes a stable one grow.
        let inner = self.facts.driving(&["theta", "v"]).into_iter();
        let inner: Vec<(&'static str, f64)> =
            inner.filter_map(|key| Some((key, self.step(key, k)?))).collect();
        let curvature = largest_curvature(part, at);
        let (stable, l) = (self.limit() / curvature, number(curvature));
        let mut found = Vec::new();
        for &(key, value) in &inner {
            let known = part.shortcuts().and_then(|known| known.unstable(at, value));
            let reason = match known {
                Some(known) => format!(": {known}"),
                None if value < stable => continue,
                None if self.scope == Scope::Personal => format!(
                    ": the curvature of g is about {l}, and a stable step stays below 2 / {l} = {}",
                    number(stable)
                ),
                None => format!(
                    ": the curvature of g is about {l}, the smallest eigenvalue of W is {:.2}, and \
                     where θ is common a stable step stays below (1 + {0:.2})² / (2 · {l}) = {}",
                    self.lambda_min,
                    number(stable)
                ),
            };
            found.push(Suspect { key, value, reason, instead: stable.min(value) / 2.0 });
        }
        if !found.is_empty() {
            return found;
        }
        // With a common θ, nodes of unequal curvature have lower limits: what grew first decides.
        let first = culprit.grown[0].variable;
        let drives_first = |key: &str| self.facts.driving(&[first]).contains(&key);
        if self.scope == Scope::Global && inner.iter().any(|(key, _)| drives_first(key)) {
            let reason = format!(
                ": {first} grew first, and where θ is common the limit also depends on W and on how \
                 much nodes differ"
            );
            let suspect = |(key, value): (&'static str, f64)| Suspect {
                key,
                value,
                reason: reason.clone(),
                instead: value / 10.0,
            };
            return inner.into_iter().filter(|(key, _)| drives_first(key)).map(suspect).collect();
        }
        self.outer(k, &inner).into_iter().collect()
    }

    /// The step on x, after those on θ and v were found to be within their limits.
    fn outer(&self, k: u64, inner: &[(&'static str, f64)]) -> Option<Suspect> {
        let &key = self.facts.driving(&["x"]).first()?;
        let value = self.step(key, k)?;
        let cleared: Vec<_> = inner.iter().map(|&(key, _)| key).filter(|&one| one != key).collect();
        let limit = if self.scope == Scope::Personal { " 2 / L" } else { "" };
        let reason = match &cleared[..] {
            [] => String::new(),
            [one] => format!(" ({one} is within its limit{limit})"),
            keys => format!(" ({} are within their limit{limit})", keys.join(" and ")),
        };
        Some(Suspect { key, value, reason, instead: value / 10.0 })
    }
}
