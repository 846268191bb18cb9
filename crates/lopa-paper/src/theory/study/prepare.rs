//! The parts of a study: its algorithms, their length, their start.

use super::Case;
use crate::theory::bound::Start;
use crate::theory::{Constants, Known, Parts, Scheme, Steps};
use lopa::algorithms::lopa::{LopaParams, StartZ};
use lopa::error::{Error, Result};
use lopa::experiment::{AlgorithmSpec, Experiment};
use lopa::math::schedule::Schedule;
use lopa::problem::scope::Scope;
use lopa::run::Setup;
use lopa::run::evaluate::exact::solve;
use lopa_study::practical::course::{Course, LinearGradient, quadratic};
use lopa_study::practical::snapshot::Snapshot;

/// Points of a run at which constants are estimated.
pub(super) const POINTS: usize = 3;

pub(super) type Ran = (Scheme, AlgorithmSpec, Course);

/// The file's LoPA algorithms.
pub(super) fn lopa(experiment: &Experiment) -> Result<Vec<(Scheme, AlgorithmSpec)>> {
    if experiment.scope == Scope::Global {
        let message = "the theorems cover personal inner problems, but the scope is global";
        return Err(Error::config("theory/global-scope", message)
            .at("scope")
            .hint("omit `scope`, or set `scope = \"personal\"`"));
    }
    let specs = experiment.algorithms.iter();
    let found: Vec<_> =
        specs.filter_map(|spec| Some((Scheme::of(&spec.choice.name)?, spec.clone()))).collect();
    if found.is_empty() {
        let message = "the theorems cover `lopa-gt` and `lopa-lg`, but the file has neither";
        return Err(Error::config("theory/no-lopa", message)
            .at("[[algorithm]]")
            .hint("add one of them: see `lopa list algorithms`"));
    }
    Ok(found)
}

/// The iterations of LoPA within a file's limits: one Hessian-vector product, one Jacobian-vector
/// product and three gradients at the start and in every iteration.
pub fn planned(experiment: &Experiment) -> u64 {
    let run = &experiment.run;
    let of = |limit: Option<f64>, each: f64| {
        limit.map_or(u64::MAX, |limit| ((limit / each).ceil() as u64).max(2) - 1)
    };
    let exchanges = run.budget.exchanges.map_or(u64::MAX, |limit| (limit.ceil() as u64).max(1));
    let limits = [
        run.iterations.unwrap_or(u64::MAX),
        of(run.budget.hessians, 1.0),
        of(run.budget.jacobians, 1.0),
        of(run.budget.gradients, 3.0),
        exchanges,
    ];
    match limits.into_iter().min() {
        None | Some(u64::MAX) => 1000,
        Some(planned) => planned,
    }
}

/// At most `limit` items of a list, evenly spaced, including the first and the last.
pub(super) fn spaced<T>(all: &[T], limit: usize) -> Vec<&T> {
    let count = all.len().min(limit);
    (0..count).map(|k| &all[k * (all.len() - 1) / (count - 1).max(1)]).collect()
}

/// The points at which constants are estimated: along all runs, up to divergence.
pub(super) fn seen(runs: &[Ran]) -> Vec<Snapshot> {
    let mut all = Vec::new();
    for (_, _, course) in runs {
        let first = course.seen[0].1.grad_phi_sq();
        let sane: Vec<_> =
            course.seen.iter().filter(|(_, s)| s.grad_phi_sq() <= 1e3 * first.max(1e-12)).collect();
        let skip = usize::from(!all.is_empty());
        all.extend(spaced(&sane, POINTS).into_iter().skip(skip).map(|(_, seen)| seen.clone()));
    }
    all
}

/// A lower bound of Φ: its minimum if it is a convex quadratic, or else 0, since losses are not
/// negative.
pub(super) fn lowest(setup: &Setup, parts: &mut Parts, runs: &[Ran]) -> Known {
    if !quadratic(setup) {
        return Known::bound(0.0, "losses are not negative");
    }
    match LinearGradient::of(parts).minimiser() {
        Some(x) => {
            let sum: f64 = parts.iter_mut().map(|part| solve(&mut **part, &x, &[]).phi).sum();
            Known::exact(sum / parts.len() as f64, "the minimum of Phi")
        }
        None => {
            let seen = runs.iter().flat_map(|(_, _, course)| &course.seen);
            let low = seen.map(|(_, seen)| seen.errors.objective).fold(f64::INFINITY, f64::min);
            Known::estimate(low, "the lowest seen: Phi is not convex")
        }
    }
}

/// An algorithm with the quantities that the bound needs.
pub(super) fn case(
    scheme: Scheme,
    spec: AlgorithmSpec,
    course: Course,
    values: &Constants,
    phi_low: &Known,
) -> Case {
    let params: LopaParams = spec.choice.typed().expect("LoPA has these parameters");
    let steps = Steps::of(&params);
    let mut errors = course.seen[0].1.errors;
    errors.objective -= phi_low.value;
    let reused = params.start == StartZ::Estimate && !values.deterministic();
    let start = Start { errors, b_sq: values.b.powi(2), reused };
    Case { label: spec.label.clone(), scheme, steps, start, course, spec }
}

/// Parts of an experiment that the theorems do not cover.
pub(super) fn remarks(experiment: &Experiment, planned: u64, watched: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    let run = &experiment.run;
    if run.shared_samples {
        remarks.push(
            "`shared_samples` violates Assumption 5: the five minibatches are not independent"
                .into(),
        );
    }
    if run.epochs {
        remarks.push(
            "`epochs` violates Assumption 5: the minibatches of an epoch depend on each other"
                .into(),
        );
    }
    if run.finite_differences.is_some() {
        remarks.push("`finite_differences` biases second derivatives by its width".into());
    }
    for spec in &experiment.algorithms {
        if Scheme::of(&spec.choice.name).is_none() {
            continue;
        }
        let Some(own) = spec.choice.typed::<LopaParams>() else { continue };
        let inner = [own.alpha, own.beta, own.lambda];
        if inner.iter().any(Option::is_none) {
            remarks.push(format!(
                "{}: the theorems need given step sizes; typical ones stand for those left out",
                spec.label
            ));
        }
        let mut all = inner.into_iter().flatten().chain([own.gamma, own.tau]);
        if all.any(|schedule| !matches!(schedule, Schedule::Constant(_))) {
            remarks.push(format!(
                "{}: the theorems need constant step sizes; those of the first iteration are used",
                spec.label
            ));
        }
    }
    if watched < planned {
        remarks.push(format!("only the first {watched} of {planned} planned iterations were run"));
    }
    remarks
}
