//! The theory of one experiment: its LoPA runs, their constants, conditions and bounds.

use serde::Serialize;

use super::bound::{self, Bound, Start, Variance};
use super::conditions::{Condition, conditions};
use super::course::{self, Affine, Course, Setup, looks, with_steps};
use super::heterogeneity::{self, Dissimilarity};
use super::lemmas::recursions;
use super::lyapunov::Snapshot;
use super::measure::{self, Depth, Place, Region, Subject};
use super::practical::{self, Suggestion};
use super::steps::{self, Admissible, Choice};
use super::{Constants, Derived, Known, Scheme, Steps};
use crate::algorithms::lopa::{LopaParams, StartZ};
use crate::error::{Error, Result};
use crate::exact::solve;
use crate::experiment::{AlgorithmSpec, Experiment};
use crate::problem::Bilevel;
use crate::registry::params;
use crate::schedule::Schedule;
use crate::scope::Scope;

/// Points of a run that are looked at closely.
const LOOKS: usize = 9;

/// Points of a run that constants are estimated at.
const PLACES: usize = 4;

/// The theory of an experiment on one seed.
pub struct Study<'a> {
    /// What is run.
    pub setup: Setup<'a>,
    /// K: the iterations that the file plans for LoPA.
    pub planned: u64,
    /// K of the runs watched here: `planned`, unless that was too many.
    pub watched: u64,
    /// Where the constants hold.
    pub region: Region,
    /// The constants with their origins.
    pub constants: Constants<Known>,
    /// What follows from them.
    pub derived: Derived,
    /// A lower bound of Φ.
    pub phi_low: Known,
    /// The file's LoPA algorithms.
    pub cases: Vec<Case>,
    /// What the theorems do not cover in this file.
    pub remarks: Vec<String>,
}

/// One LoPA algorithm of the file.
pub struct Case {
    /// Its label.
    pub label: String,
    /// Its scheme.
    pub scheme: Scheme,
    /// Its step sizes, those of the first iteration where they change.
    pub steps: Steps,
    /// What the bound needs of its start.
    pub start: Start,
    /// Its run.
    pub course: Course,
    spec: AlgorithmSpec,
}

impl<'a> Study<'a> {
    /// Runs the file's LoPA algorithms for at most `most` iterations and finds the constants along
    /// their way.
    pub fn new(setup: Setup<'a>, most: u64) -> Result<Study<'a>> {
        let experiment = setup.experiment;
        let specs = lopa(experiment)?;
        let planned = planned(experiment);
        let watched = planned.min(most);
        let mut parts = setup.parts()?;
        let run = |(scheme, spec): &(Scheme, AlgorithmSpec)| {
            Ok((*scheme, spec.clone(), course::run(&setup, &spec.choice, &looks(watched, LOOKS))?))
        };
        let runs = specs.iter().map(run).collect::<Result<Vec<_>>>()?;
        let region = Region::around(&mut parts, &seen(&runs), setup.seed);
        let subject = Subject::of(&setup);
        let constants = measure::constants(&subject, &mut parts, &region, setup.pool);
        let values = constants.values();
        let phi_low = lowest(&setup, &mut parts, &runs);
        let cases = runs
            .into_iter()
            .map(|(scheme, spec, course)| case(scheme, spec, course, &values, &phi_low))
            .collect();
        let remarks = remarks(experiment, planned, watched);
        let derived = Derived::of(&values);
        Ok(Study { setup, planned, watched, region, constants, derived, phi_low, cases, remarks })
    }

    /// The constants as numbers.
    pub fn values(&self) -> Constants {
        self.constants.values()
    }

    /// What the proofs ask of the case's step sizes.
    pub fn conditions(&self, case: &Case, steps: &Steps) -> Vec<Condition> {
        conditions(case.scheme, &self.values(), &self.derived, steps)
    }

    /// The theorem's intervals for the case's τ.
    pub fn admissible(&self, case: &Case) -> Admissible {
        steps::admissible(case.scheme, &self.values(), &self.derived, case.steps.tau)
    }

    /// The corollaries' choice for the iterations that the file plans.
    pub fn choice(&self, case: &Case) -> Choice {
        let (values, tau) = (self.values(), case.steps.tau);
        steps::choose(case.scheme, &values, &self.derived, tau, self.planned, &case.start)
    }

    /// The theorem's bound for K iterations with these step sizes.
    pub fn bound(&self, case: &Case, steps: &Steps, iterations: u64) -> Bound {
        let values = self.values();
        bound::bound(case.scheme, &values, &self.derived, steps, &case.start, iterations)
    }

    /// σ_LG² or σ_GT² of these step sizes.
    pub fn variance(&self, case: &Case, steps: &Steps) -> Variance {
        bound::variance_sq(case.scheme, &self.values(), &self.derived, steps)
    }

    /// The practical suggestion for a case.
    pub fn suggestion(&self, case: &Case) -> Result<Suggestion> {
        let places: Vec<&Place> =
            self.region.places[..2.min(self.region.places.len())].iter().collect();
        practical::suggest(&self.setup, &case.spec, case.scheme, &case.steps, &places, self.planned)
    }

    /// A run of the case with other step sizes, looked at where its own run was.
    pub fn run(&self, case: &Case, steps: &Steps) -> Result<Course> {
        let choice = with_steps(&case.spec, case.scheme, steps);
        course::run(&self.setup, &choice, &looks(self.watched, LOOKS))
    }

    /// Assumption 4 and Lemma 1 along the case's run: (k, what was measured at x̄^k).
    pub fn dissimilarities(&self, case: &Case) -> Result<Vec<(u64, Dissimilarity)>> {
        let mut parts = self.setup.parts()?;
        let depth = if self.setup.quadratic() { Depth::QUADRATIC } else { Depth::ESTIMATE };
        let mut at = |(k, seen): &(u64, Snapshot)| {
            let best: Vec<_> = seen.exact.iter().map(|own| own.theta.clone()).collect();
            (*k, heterogeneity::at(&mut parts, &seen.mean_x, &best, depth))
        };
        Ok(spaced(&case.course.seen, PLACES).into_iter().map(&mut at).collect())
    }

    /// The forecast for local gradients with the case's α: b at the start, smoothness there.
    pub fn forecast(&self, case: &Case) -> Result<heterogeneity::Forecast> {
        let mut parts = self.setup.parts()?;
        let smoothness = practical::smoothness(&mut parts, &self.region.places[0], &self.setup);
        let b_sq = case.course.seen[0].1.dissimilarity();
        let best = self.cases.iter().map(|case| case.course.last()).fold(f64::INFINITY, f64::min);
        let alpha = case.steps.alpha;
        Ok(heterogeneity::Forecast::of(alpha, smoothness, b_sq, &self.values(), best))
    }

    /// Each lemma's recursion along the first iterations of a run on full batches: the largest
    /// (left − right) relative to the size of the two sides.
    pub fn lemmas(&self, case: &Case, steps: &Steps, iterations: u64) -> Result<Vec<Worst>> {
        let mut experiment = self.setup.experiment.clone();
        experiment.run.batch = crate::experiment::BatchSpec::default();
        let setup = Setup { experiment: &experiment, ..self.setup };
        let choice = with_steps(&case.spec, case.scheme, steps);
        let run = course::run(&setup, &choice, &(0..=iterations).collect::<Vec<_>>())?;
        let mut parts = setup.parts()?;
        let full = Constants {
            sigma_f_x: 0.0,
            sigma_f_theta: 0.0,
            sigma_g_theta: 0.0,
            sigma_g_x_theta: 0.0,
            sigma_g_theta_theta: 0.0,
            ..self.values()
        };
        let mut worst: Vec<Worst> = Vec::new();
        for pair in run.seen.windows(2) {
            let both = [&pair[0].1, &pair[1].1];
            let now = recursions(case.scheme, &full, &self.derived, steps, &mut parts, both);
            for (at, one) in now.into_iter().enumerate() {
                let size = one.left.abs().max(one.right.abs()).max(1e-300);
                let excess = (one.left - one.right) / size;
                match worst.get_mut(at) {
                    None => worst.push(Worst { name: one.name, place: one.place, excess }),
                    Some(worst) => worst.excess = worst.excess.max(excess),
                }
            }
        }
        Ok(worst)
    }
}

/// How a lemma fared along a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Worst {
    /// What it bounds.
    pub name: &'static str,
    /// Its equation.
    pub place: &'static str,
    /// The largest (left − right) / size: above 0 where the lemma was broken.
    pub excess: f64,
}

impl Worst {
    /// Whether it was respected, but for rounding.
    pub fn holds(&self) -> bool {
        self.excess <= 1e-9
    }
}

type Ran = (Scheme, AlgorithmSpec, Course);

fn lopa(experiment: &Experiment) -> Result<Vec<(Scheme, AlgorithmSpec)>> {
    if experiment.scope == Scope::Global {
        let message = "the theorems are about personal inner problems, and the scope is global";
        return Err(Error::config("theory/global-scope", message)
            .at("scope")
            .hint("leave `scope` out, or write `scope = \"personal\"`"));
    }
    let specs = experiment.algorithms.iter();
    let found: Vec<_> =
        specs.filter_map(|spec| Some((Scheme::of(&spec.choice.name)?, spec.clone()))).collect();
    if found.is_empty() {
        let message = "the theorems are about `lopa-gt` and `lopa-lg`, and the file has neither";
        return Err(Error::config("theory/no-lopa", message)
            .at("[[algorithm]]")
            .hint("add one: `lopa list algorithms`"));
    }
    Ok(found)
}

/// The iterations that a file's end means for LoPA: one Hessian-vector and one Jacobian-vector
/// product and three gradients at the start and in every iteration.
pub fn planned(experiment: &Experiment) -> u64 {
    let run = &experiment.run;
    let of = |limit: Option<f64>, each: f64| {
        limit.map_or(u64::MAX, |limit| ((limit / each).ceil() as u64).max(2) - 1)
    };
    let exchanges = run.budget.exchanges.map_or(u64::MAX, |limit| (limit.ceil() as u64).max(1));
    let least = [
        run.iterations.unwrap_or(u64::MAX),
        of(run.budget.hessians, 1.0),
        of(run.budget.jacobians, 1.0),
        of(run.budget.gradients, 3.0),
        exchanges,
    ];
    match least.into_iter().min() {
        None | Some(u64::MAX) => 1000,
        Some(planned) => planned,
    }
}

/// At most so many of a list, evenly spread, the first and the last among them.
fn spaced<T>(all: &[T], most: usize) -> Vec<&T> {
    let count = all.len().min(most);
    (0..count).map(|k| &all[k * (all.len() - 1) / (count - 1).max(1)]).collect()
}

/// Where constants are looked for: along all runs, as far as they did not go astray.
fn seen(runs: &[Ran]) -> Vec<Snapshot> {
    let mut all = Vec::new();
    for (_, _, course) in runs {
        let first = course.seen[0].1.grad_phi_sq();
        let sane: Vec<_> =
            course.seen.iter().filter(|(_, s)| s.grad_phi_sq() <= 1e3 * first.max(1e-12)).collect();
        let skip = usize::from(!all.is_empty());
        all.extend(spaced(&sane, PLACES).into_iter().skip(skip).map(|(_, seen)| seen.clone()));
    }
    all
}

/// A lower bound of Φ: its minimum if it is a convex quadratic, else 0, for losses are positive.
fn lowest(setup: &Setup, parts: &mut [Box<dyn Bilevel<f64>>], runs: &[Ran]) -> Known {
    if !setup.quadratic() {
        return Known::bound(0.0, "losses are not negative");
    }
    match Affine::of(parts).minimiser() {
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

fn case(
    scheme: Scheme,
    spec: AlgorithmSpec,
    course: Course,
    values: &Constants,
    phi_low: &Known,
) -> Case {
    let params: LopaParams = params(&spec.choice.params);
    let steps = Steps::of(&params);
    let mut errors = course.seen[0].1.errors;
    errors.objective -= phi_low.value;
    let reused = params.start == StartZ::Estimate && !values.deterministic();
    let start = Start { errors, b_sq: values.b.powi(2), reused };
    Case { label: spec.label.clone(), scheme, steps, start, course, spec }
}

fn remarks(experiment: &Experiment, planned: u64, watched: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    let run = &experiment.run;
    if run.shared_samples {
        remarks.push(
            "`shared_samples` breaks Assumption 5: the five minibatches are not independent".into(),
        );
    }
    if run.finite_differences.is_some() {
        remarks.push("`finite_differences` makes second derivatives biased by its width".into());
    }
    for spec in &experiment.algorithms {
        if Scheme::of(&spec.choice.name).is_none() {
            continue;
        }
        let own: LopaParams = params(&spec.choice.params);
        let all = [&own.alpha, &own.beta, &own.lambda, &own.gamma, &own.tau];
        if all.iter().any(|schedule| !matches!(schedule, Schedule::Constant(_))) {
            remarks.push(format!(
                "{}: the theorems have constant step sizes; those of the first iteration are judged",
                spec.label
            ));
        }
    }
    if watched < planned {
        remarks.push(format!("{planned} iterations are planned, the first {watched} were watched"));
    }
    remarks
}
