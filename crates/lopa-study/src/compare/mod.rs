//! Compares algorithms under each cost: at equal budgets, and by the cost of a target.
//!
//! For every cost, algorithms are compared at the same budget: the last measurement within it
//! counts, without interpolation. Comparisons are paired over seeds: a lead is significant if the
//! 95 % confidence interval of the paired differences lies above zero. That of accuracies contains the
//! sampling error of the rows they are measured on. Measures that span powers of ten are compared by
//! their logarithm.

mod rank;

pub use rank::{Lead, Place, Scale, lead};

use std::collections::BTreeSet;

use serde::Serialize;

use crate::seeds::Seeds;
use crate::statistics::Summary;
use lopa::error::{Error, Result, nearest};
use lopa::experiment::{Experiment, Until};
use lopa::folder::{Run, RunReader, Traces};
use lopa::run::trace::{COSTS, Row, baseline_of, more_is_better, spans_powers};

/// A measurement below this share of the budget does not represent the budget.
const MIN_SHARE: f64 = 0.9;

/// The costs of which a lead under another cost says nothing.
const LEFT_OUT: [&str; 4] = ["gradients", "hessians", "exchanges", "bytes"];

/// The question.
#[derive(Debug, Clone)]
pub struct Question {
    /// Labels of the algorithms that should have run.
    pub algorithms: Vec<String>,
    /// The seeds that they should have run on.
    pub seeds: Vec<u64>,
    /// The measure that decides.
    pub measure: String,
    /// The costs to compare under.
    pub costs: Vec<&'static str>,
    /// Budgets of some costs; for others, the largest that every algorithm reached.
    pub budgets: Vec<(&'static str, f64)>,
    /// The level of the measure to reach.
    pub target: Option<f64>,
    /// The rows that decide the measure, if it is an accuracy on rows outside training.
    pub rows: Option<f64>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The measure that decides.
    pub measure: String,
    /// How it is compared.
    pub scale: Scale,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The rows whose sampling error the intervals contain.
    pub rows: Option<f64>,
    /// One entry per cost: the algorithm with the best measure for the same budget.
    pub standings: Vec<Standing>,
    /// The measure of always naming a node's most frequent class, or the mean of its numbers, if it is
    /// taken on rows outside training: the mean over seeds.
    pub majority: Option<f64>,
    /// The level to reach.
    pub target: Option<f64>,
    /// One entry per cost: the algorithm that reaches the target most cheaply.
    pub races: Vec<Standing>,
    /// One sentence per algorithm that diverged on some seed, and hence is not ranked.
    pub diverged: Vec<String>,
    /// Other reasons why the comparison is unfair or incomplete.
    pub warnings: Vec<String>,
}

/// The algorithms under one cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// The cost.
    pub cost: &'static str,
    /// The budget of each; `None` where the cost itself is compared.
    pub budget: Option<f64>,
    /// Every algorithm, in the order of the file.
    pub places: Vec<Place>,
    /// The leader; `None` if no algorithm can be ranked.
    pub lead: Option<Lead>,
}

/// The default measure is the first of these that was measured, as in the summary of `lopa run`.
pub const DECISIVE: [&str; 8] = [
    "holdout_accuracy",
    "own_test_accuracy",
    "holdout_r2",
    "test_r2",
    "holdout_concordance",
    "test_concordance",
    "grad_phi_sq",
    "loss",
];

/// Answers a question from traces.
pub fn compare(traces: &Traces, question: &Question) -> Comparison {
    let Question { measure, seeds, costs, target, .. } = question;
    let spent = |cost: &&&'static str| traces.runs.iter().any(|run| total(run, cost) > 0.0);
    let costs: Vec<&'static str> = costs.iter().filter(spent).copied().collect();
    let standings: Vec<Standing> =
        costs.iter().filter_map(|cost| question.standing(traces, cost)).collect();
    let race = |level: f64| costs.iter().map(move |cost| question.race(traces, cost, level));
    Comparison {
        measure: measure.clone(),
        scale: Scale::of(measure),
        seeds: seeds.clone(),
        rows: question.rows,
        target: *target,
        diverged: question.diverged(traces),
        races: target.iter().flat_map(|&level| race(level)).collect(),
        warnings: question.warnings(traces, &standings),
        majority: question.majority(traces),
        standings,
    }
}

/// The total cost of a run.
fn total(run: &Run, cost: &str) -> f64 {
    run.last(cost).unwrap_or(0.0)
}

impl Question {
    /// The usual question about the runs of an experiment: all costs that it has, and the requested measure, or the
    /// first decisive one that was taken.
    pub fn of(
        experiment: &Experiment,
        reader: &RunReader,
        traces: &Traces,
        measure: Option<&str>,
    ) -> Result<Question> {
        let rows = || traces.runs.iter().flat_map(|run| &run.rows);
        let measured = |name: &str| rows().any(|row| row.values.contains_key(name));
        let found = match measure {
            Some(name) => Some(name).filter(|name| measured(name)),
            None => DECISIVE.into_iter().find(|name| measured(name)),
        };
        let measure = found.map(str::to_string).ok_or_else(|| {
            let known: BTreeSet<String> =
                rows().flat_map(|row| row.values.keys()).cloned().collect();
            unmeasured(measure.unwrap_or_default(), &known.into_iter().collect::<Vec<_>>())
        })?;
        let timed = experiment.time.is_some();
        let spent = |cost: &&'static str| timed || *cost != "virtual_seconds";
        Ok(Question {
            algorithms: experiment.algorithms.iter().map(|spec| spec.label.clone()).collect(),
            seeds: experiment.run.seeds.clone(),
            rows: reader.manifest().judged(&measure),
            measure,
            costs: COSTS.into_iter().filter(spent).collect(),
            // The file's own limits, if every algorithm ran until it had reached all of them.
            budgets: match experiment.run.until {
                Until::All => experiment.run.limits().collect(),
                Until::First => Vec::new(),
            },
            target: None,
        })
    }

    /// The runs of an algorithm, one per seed.
    fn runs<'a>(&self, traces: &'a Traces, algorithm: &str) -> Seeds<'a, Run> {
        let asked = |run: &&Run| self.seeds.contains(&run.seed);
        Seeds::of(algorithm, traces.of(algorithm).into_iter().filter(asked))
    }

    /// The runs of the algorithms that diverged on no seed.
    fn complete<'a>(&self, traces: &'a Traces) -> impl Iterator<Item = Vec<&'a Run>> {
        let all = self.algorithms.iter().map(|algorithm| self.runs(traces, algorithm));
        let whole = |runs: &Seeds<Run>| runs.ranked() && runs.all().len() == self.seeds.len();
        all.filter(whole).map(|runs| runs.all().to_vec())
    }

    /// The given budget, or the largest that every algorithm reached on every seed; algorithms that
    /// spend nothing of a cost are ignored.
    fn budget(&self, traces: &Traces, cost: &str) -> Option<f64> {
        let given = self.budgets.iter().find(|(name, _)| *name == cost);
        let totals = || self.complete(traces).flatten().map(|run| total(run, cost));
        let common = || totals().filter(|&total| total > 0.0).reduce(f64::min);
        given.map(|(_, budget)| *budget).or_else(common)
    }

    /// The measure of every algorithm at the same budget.
    fn standing(&self, traces: &Traces, cost: &'static str) -> Option<Standing> {
        let budget = self.budget(traces, cost)?;
        let scale = Scale::of(&self.measure);
        let place = |algorithm: &String| {
            let seeds = self.runs(traces, algorithm);
            let runs: Vec<&Run> = seeds.sound().collect();
            let free = !runs.is_empty() && runs.iter().all(|run| total(run, cost) == 0.0);
            let rows: Vec<(u64, &Row, f64)> = runs
                .iter()
                .filter_map(|run| Some((run.seed, run.within(cost, budget, &self.measure)?)))
                .map(|(seed, (row, value))| (seed, row, value))
                .collect();
            let least = rows.iter().filter_map(|(_, row, _)| row.value(cost)).reduce(f64::min);
            let values = rows.iter().map(|&(seed, _, value)| (seed, value)).collect();
            let ranked = !free && rows.len() == self.seeds.len();
            let used = least.filter(|_| !free).map(|spent| spent / budget);
            let spent = |cost: &'static str| {
                let all = Summary::of(rows.iter().filter_map(|(_, row, _)| row.value(cost)))?;
                Some((cost, all.mean))
            };
            Place {
                spent: LEFT_OUT.into_iter().filter_map(spent).collect(),
                ..Place::new(algorithm, scale, values, seeds.count(), used, ranked)
            }
        };
        let places: Vec<Place> = self.algorithms.iter().map(place).collect();
        Some(Standing {
            cost,
            budget: Some(budget),
            lead: rank::lead(&places, scale, self.rows),
            places,
        })
    }

    /// The cost of the target, for every algorithm.
    fn race(&self, traces: &Traces, cost: &'static str, level: f64) -> Standing {
        let place = |algorithm: &String| {
            let arrival =
                |run: &Run| Some((run.seed, run.reaches(&self.measure, level)?.value(cost)?));
            let seeds = self.runs(traces, algorithm);
            let values: Vec<(u64, f64)> = seeds.sound().filter_map(arrival).collect();
            let free = seeds.sound().all(|run| total(run, cost) == 0.0);
            let ranked = !free && values.len() == self.seeds.len();
            Place::new(algorithm, Scale::COST, values, seeds.count(), None, ranked)
        };
        let places: Vec<Place> = self.algorithms.iter().map(place).collect();
        Standing { cost, budget: None, lead: rank::lead(&places, Scale::COST, None), places }
    }

    /// The same for every algorithm of a seed, whether it diverged or not.
    fn majority(&self, traces: &Traces) -> Option<f64> {
        let name = baseline_of(&self.measure)?;
        let of_seed = |seed: &u64| {
            let mut runs = traces.runs.iter().filter(|run| run.seed == *seed);
            runs.find_map(|run| run.rows.iter().find_map(|row| row.value(&name)))
        };
        Summary::of(self.seeds.iter().filter_map(of_seed)).map(|all| all.mean)
    }

    fn diverged(&self, traces: &Traces) -> Vec<String> {
        let sentence = |label: &String| self.runs(traces, label).count().sentence(label);
        self.algorithms.iter().filter_map(sentence).collect()
    }

    fn warnings(&self, traces: &Traces, standings: &[Standing]) -> Vec<String> {
        let mut warnings = Vec::new();
        for algorithm in &self.algorithms {
            let runs = self.runs(traces, algorithm);
            let ran = |seed: &&u64| runs.all().iter().any(|run| run.seed == **seed);
            let missing: Vec<String> =
                self.seeds.iter().filter(|seed| !ran(seed)).map(u64::to_string).collect();
            if !missing.is_empty() {
                let missing = missing.join(", ");
                warnings
                    .push(format!("{algorithm} did not run on seed {missing} and is not ranked"));
            }
        }
        warnings.extend(standings.iter().filter_map(Standing::unequal));
        if self.seeds.len() == 1 {
            warnings.push("one seed cannot show that a lead is significant".into());
        }
        let accuracy = self.measure.ends_with("accuracy");
        if accuracy && baseline_of(&self.measure).is_some() && self.rows.is_none() {
            let text = "intervals are of the seeds alone: the sampling error of the test rows is not in \
                        them, since the folder does not say how many there are";
            warnings.push(text.into());
        }
        warnings
    }
}

impl Comparison {
    /// The algorithms under a cost.
    pub fn standing(&self, cost: &str) -> Option<&Standing> {
        self.standings.iter().find(|standing| standing.cost == cost)
    }
}

impl Standing {
    /// The other cost of which the leader spent most, as a multiple of the median of the ranked algorithms that
    /// have this cost; `None` below twice the median.
    pub fn dearest(&self) -> Option<(&'static str, f64)> {
        let winner = &self.lead.as_ref()?.winner;
        let ranked: Vec<&Place> = self.places.iter().filter(|place| place.ranked).collect();
        let leader = ranked.iter().find(|place| place.algorithm == *winner)?;
        let multiple = |cost: &'static str| {
            let mut all: Vec<f64> =
                ranked.iter().filter_map(|place| place.spent.get(cost).copied()).collect();
            all.retain(|&spent| spent > 0.0);
            all.sort_by(f64::total_cmp);
            let middle = [all.len().checked_sub(1)? / 2, all.len() / 2];
            let median = middle.iter().map(|&at| all[at]).sum::<f64>() / 2.0;
            Some((cost, leader.spent.get(cost)? / median))
        };
        let others = LEFT_OUT.into_iter().filter(|cost| *cost != self.cost).filter_map(multiple);
        others.filter(|(_, times)| *times >= 2.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// A warning that names the algorithms measured far below the budget.
    fn unequal(&self) -> Option<String> {
        let short = |place: &Place| {
            let used = place.used.filter(|&used| place.ranked && used < MIN_SHARE)?;
            Some(format!("{} at {:.0} %", place.algorithm, 100.0 * used))
        };
        let short: Vec<String> = self.places.iter().filter_map(short).collect();
        let cost = self.cost;
        (!short.is_empty()).then(|| {
            format!(
                "budgets of {cost} are not equal: the last measurement within the budget was taken early \
                 ({}); set a budget of {cost} with `until = \"all\"`",
                short.join(", ")
            )
        })
    }
}

impl Scale {
    /// Less is better; differences are compared.
    const COST: Scale = Scale { more: false, log: false };

    /// How a measure is compared.
    pub fn of(measure: &str) -> Scale {
        Scale { more: more_is_better(measure), log: spans_powers(measure) }
    }
}

/// A cost by its name or a usual synonym.
pub fn cost_named(name: &str) -> Option<&'static str> {
    let name = match name {
        "iterations" => "iteration",
        "rounds" => "exchanges",
        other => other,
    };
    COSTS.into_iter().find(|cost| *cost == name)
}

/// The error for a measure that the runs do not take.
pub fn unmeasured(name: &str, known: &[String]) -> Error {
    let near = nearest(name, known.iter().map(String::as_str));
    let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Error::config("config/unknown-name", format!("the runs do not measure `{name}`"))
        .at("--measure")
        .hint(format!("{did}measured: {}", known.join(", ")))
}
