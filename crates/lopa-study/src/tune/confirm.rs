//! Confirms winners: at full length, on further seeds, also with larger step sizes.
//!
//! The best trial of a search is often the largest step size that happened not to diverge on its
//! seeds. It wins only if it does not diverge on other seeds either, nor does its neighbour, whose
//! searched values are all a quarter larger. Otherwise the next best is tried.

use super::Search;
use super::runner::{Job, Runner, Task};
use super::spec::Tried;
use super::trial::{Candidate, Confirmation, Trial};
use lopa::error::Result;

/// How much larger a neighbour's values are.
const ABOVE: f64 = 1.25;

/// The most trials of an algorithm that are tested.
const MOST: usize = 12;

impl Search<'_> {
    /// The best confirmed trial of each algorithm, and all tests. If none is confirmed, the last
    /// tested trial is taken.
    pub(super) fn winners(&self, trials: &[Trial]) -> Result<(Vec<Trial>, Vec<Confirmation>)> {
        let algorithms = self.experiment.algorithms.len();
        let ranked: Vec<Vec<&Trial>> =
            (0..algorithms).map(|index| self.ranked(trials, index)).collect();
        let most = if self.spec.confirm == 0 { 0 } else { MOST };
        let worth =
            |index: usize| ranked[index].iter().filter(|trial| trial.value.is_some()).take(most);
        let mut tests: Vec<Vec<Confirmation>> = vec![Vec::new(); algorithms];
        loop {
            let next = |index: usize| -> Option<(usize, &Trial)> {
                let over = tests[index].last().is_some_and(|test| test.stands);
                let trial = worth(index).nth(tests[index].len()).filter(|_| !over)?;
                Some((index, trial))
            };
            let open: Vec<(usize, &Trial)> = (0..algorithms).filter_map(next).collect();
            if open.is_empty() {
                break;
            }
            let job = |&(index, trial): &(usize, &Trial)| {
                let (params, trial) = (trial.params.clone(), trial.trial);
                Job::Test(Task { index, rung: 0, trial, params, share: 1.0 })
            };
            let found = self.each(open.iter().map(job))?;
            for ((index, _), test) in open.into_iter().zip(found) {
                tests[index].push(test);
            }
        }
        let best = |index: usize| {
            let tested = tests[index].len().checked_sub(1).and_then(|last| worth(index).nth(last));
            (*tested.unwrap_or(&ranked[index][0])).clone()
        };
        Ok(((0..algorithms).map(best).collect(), tests.concat()))
    }

    /// The trials of an algorithm, the best first: one of a later stage before all of an earlier one.
    pub(super) fn ranked<'t>(&self, trials: &'t [Trial], index: usize) -> Vec<&'t Trial> {
        let label = &self.experiment.algorithms[index].label;
        let mut own: Vec<&Trial> = trials.iter().filter(|t| t.algorithm == *label).collect();
        own.sort_by(|a, b| b.rung.cmp(&a.rung).then(self.compare(a, b)));
        let mut seen = std::collections::BTreeSet::new();
        own.retain(|trial| seen.insert(trial.trial));
        own
    }
}

impl Runner<'_> {
    /// Tests a trial.
    pub(super) fn test(&self, algorithm: String, task: &Task) -> Result<Confirmation> {
        let seeds = self.further_seeds();
        let full = |params: Candidate| {
            let task = Task { params, rung: 0, share: 1.0, ..*task };
            let experiment = self.trial_experiment(&task, &seeds);
            experiment.map(|experiment| self.mean(&experiment)).transpose()
        };
        let value = full(task.params.clone())?.flatten();
        let neighbour = match value {
            Some(_) => full(self.above(task.index, &task.params))?,
            None => None,
        };
        Ok(Confirmation {
            algorithm,
            confirms: task.trial,
            stands: value.is_some() && neighbour != Some(None),
            above: neighbour.flatten(),
            value,
            seeds,
        })
    }

    /// The neighbour of some values; whole numbers and names stay.
    fn above(&self, index: usize, params: &Candidate) -> Candidate {
        let own = self.experiment.algorithms[index].choice.params();
        let whole = |key: &String| own.get(key).is_some_and(toml::Value::is_integer);
        let larger = |(key, value): (&String, &Tried)| {
            let larger = match value {
                Tried::Number(number) if !whole(key) => Tried::Number(number * ABOVE),
                same => same.clone(),
            };
            (key.clone(), larger)
        };
        params.iter().map(larger).collect()
    }

    /// Seeds after all others of the file.
    fn further_seeds(&self) -> Vec<u64> {
        let used = || self.spec.seeds.iter().chain(&self.experiment.run.seeds);
        let first = used().max().map_or(1, |&largest| largest.saturating_add(1));
        let mut seeds = (first..).chain(1..).filter(|seed| *seed <= i64::MAX as u64);
        std::iter::from_fn(|| seeds.find(|seed| !used().any(|used| used == seed)))
            .take(self.spec.confirm)
            .collect()
    }
}
