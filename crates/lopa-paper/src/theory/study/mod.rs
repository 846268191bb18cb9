//! The theory of one experiment: its LoPA runs, their constants, conditions and bounds.

mod prepare;

pub use prepare::planned;

use serde::Serialize;

use self::prepare::{POINTS, case, lopa, lowest, remarks, seen, spaced};
use super::bound::{self, Bound, Start, Variance};
use super::conditions::{Condition, conditions};
use super::lemmas::recursions;
use super::measure::heterogeneity::{self, Dissimilarity};
use super::measure::{self, Point, Region, Subject};
use super::steps::{self, Admissible, Choice};
use super::{Constants, Derived, Known, Scheme, Steps};
use lopa::error::{Error, Result};
use lopa::experiment::{AlgorithmSpec, BatchSpec};
use lopa::run::Setup;
use lopa_study::practical::course::{self, Course, log_spaced, with_steps};
use lopa_study::practical::inspector::Depth;
use lopa_study::practical::snapshot::Snapshot;
use lopa_study::practical::{self, Suggestion};

/// Snapshots of a run.
const SNAPSHOTS: usize = 8;

/// The theory of an experiment on one seed.
pub struct Study<'a> {
    /// The experiment.
    pub setup: Setup<'a>,
    /// K: the iterations that the file sets for LoPA.
    pub planned: u64,
    /// K of the runs made here: `planned`, or the limit if that is smaller.
    pub watched: u64,
    /// Where the constants hold.
    pub region: Region,
    /// The constants with their origins.
    pub constants: Constants<Known>,
    /// The constants derived from them.
    pub derived: Derived,
    /// A lower bound of Φ.
    pub phi_low: Known,
    /// The file's LoPA algorithms.
    pub cases: Vec<Case>,
    /// Parts of this file that the theorems do not cover.
    pub remarks: Vec<String>,
}

/// One LoPA algorithm of the file.
pub struct Case {
    /// Its label.
    pub label: String,
    /// Its scheme.
    pub scheme: Scheme,
    /// Its step sizes; of the first iteration if they change.
    pub steps: Steps,
    /// The quantities of its start that the bound needs.
    pub start: Start,
    /// Its run.
    pub course: Course,
    spec: AlgorithmSpec,
}

impl<'a> Study<'a> {
    /// Runs the file's LoPA algorithms for at most `limit` iterations and measures the constants
    /// along the way.
    pub fn new(setup: Setup<'a>, limit: u64) -> Result<Study<'a>> {
        let experiment = setup.experiment;
        if setup.world.rounds.is_some() {
            let name = &experiment.network.graph.name;
            let message = format!("the theory is about a fixed W, and `{name}` changes it");
            return Err(Error::config("theory/changing-graph", message)
                .at("[network] graph")
                .hint("name a fixed graph: `--set 'network.graph=\"exponential\"'`"));
        }
        let specs = lopa(experiment)?;
        let planned = planned(experiment);
        let watched = planned.min(limit);
        let mut parts = setup.parts()?;
        let run = |(scheme, spec): &(Scheme, AlgorithmSpec)| {
            Ok((
                *scheme,
                spec.clone(),
                course::run(&setup, &spec.choice, &log_spaced(watched, SNAPSHOTS))?,
            ))
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

    /// The proofs' conditions on the case's step sizes.
    pub fn conditions(&self, case: &Case, steps: &Steps) -> Vec<Condition> {
        conditions(case.scheme, &self.values(), &self.derived, steps)
    }

    /// The theorem's intervals for the case's τ.
    pub fn admissible(&self, case: &Case) -> Admissible {
        steps::admissible(case.scheme, &self.values(), &self.derived, case.steps.tau)
    }

    /// The corollaries' choice for the planned iterations.
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
        let points: Vec<&Point> =
            self.region.points[..2.min(self.region.points.len())].iter().collect();
        practical::suggest(&self.setup, &case.spec, case.scheme, &case.steps, &points, self.planned)
    }

    /// A run of the case with other step sizes, with snapshots at the same iterations.
    pub fn run(&self, case: &Case, steps: &Steps) -> Result<Course> {
        let choice = with_steps(&case.spec, case.scheme, steps)?;
        course::run(&self.setup, &choice, &log_spaced(self.watched, SNAPSHOTS))
    }

    /// Assumption 4 and Lemma 1 along the case's run: (k, measured at x̄^k).
    pub fn dissimilarities(&self, case: &Case) -> Result<Vec<(u64, Dissimilarity)>> {
        let mut parts = self.setup.parts()?;
        let depth = if course::quadratic(&self.setup) { Depth::QUADRATIC } else { Depth::ESTIMATE };
        let mut at = |(k, seen): &(u64, Snapshot)| {
            let best: Vec<_> = seen.exact.iter().map(|own| own.theta.clone()).collect();
            (*k, heterogeneity::at(&mut parts, &seen.mean_x, &best, depth))
        };
        Ok(spaced(&case.course.seen, POINTS).into_iter().map(&mut at).collect())
    }

    /// Whether gradient tracking pays with the case's α, judged at the end of the best run.
    pub fn forecast(&self, case: &Case) -> Result<heterogeneity::Forecast> {
        let mut parts = self.setup.parts()?;
        let ends = self.cases.iter().filter_map(|case| case.course.seen.last());
        let best = ends.min_by(|a, b| a.1.grad_phi_sq().total_cmp(&b.1.grad_phi_sq()));
        let (_, best) = best.expect("every run has snapshots");
        let theta: Vec<_> = best.exact.iter().map(|own| own.theta.clone()).collect();
        let (mixing, alpha) = (&self.setup.world.mixing, case.steps.alpha);
        let floor = heterogeneity::floor(&mut parts, mixing, &best.mean_x, &theta, alpha);
        Ok(heterogeneity::Forecast { floor, reached: best.grad_phi_sq() })
    }

    /// Every lemma's recursion over the first iterations of a run on full batches: the largest
    /// (left − right) relative to the size of the two sides.
    pub fn lemmas(&self, case: &Case, steps: &Steps, iterations: u64) -> Result<Vec<Worst>> {
        let mut experiment = self.setup.experiment.clone();
        experiment.run.batch = BatchSpec::default();
        let setup = Setup { experiment: &experiment, ..self.setup };
        let choice = with_steps(&case.spec, case.scheme, steps)?;
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

/// How well a lemma holds along a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Worst {
    /// The bounded quantity.
    pub name: &'static str,
    /// Its equation.
    pub place: &'static str,
    /// The largest (left − right) / size: above 0 if the lemma is violated.
    pub excess: f64,
}

impl Worst {
    /// Whether it holds, up to rounding.
    pub fn holds(&self) -> bool {
        self.excess <= 1e-9
    }
}
