//! Does one unit of a search: a trial, a test of a winner, or a run that finds steps.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::spec::{Tried, TuneSpec};
use super::trial::{Candidate, Found, Trial};
use lopa::config::Source;
use lopa::data::Data;
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Exactly, Experiment, Registries};
use lopa::run::steps::TOLD;
use lopa::run::trace::Stop;
use lopa::run::{Context, Outcome};

/// Runs trials: everything that a unit needs beside its task.
pub(super) struct Runner<'a> {
    pub source: &'a Source,
    pub registries: &'a Registries,
    pub experiment: &'a Experiment,
    pub spec: &'a TuneSpec,
    pub data: Option<&'a Data>,
    pub context: &'a Context<'a>,
}

/// Values of one algorithm to try.
#[derive(Serialize, Deserialize)]
pub(super) struct Task {
    pub index: usize,
    pub rung: usize,
    pub trial: usize,
    pub params: Candidate,
    pub share: f64,
}

/// A unit of a search.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Job {
    /// Finds the steps that the file leaves out.
    Steps(Task),
    /// A trial.
    Trial(Task),
    /// Tests a winner.
    Test(Task),
}

impl Runner<'_> {
    /// Does a unit; returns its result as a line of the journal.
    pub fn done(&self, task: &str) -> Result<String> {
        let job: Job = serde_json::from_str(task).map_err(|error| foreign(&error))?;
        let (Job::Steps(task) | Job::Trial(task) | Job::Test(task)) = &job;
        let algorithm = match self.experiment.algorithms.get(task.index) {
            Some(spec) => spec.label.clone(),
            None => return Err(foreign(&format!("there is no algorithm {}", task.index + 1))),
        };
        let line = match &job {
            Job::Steps(task) => {
                serde_json::to_string(&Found { algorithm, found: self.found(task)? })
            }
            Job::Trial(task) => {
                let (rung, trial, params) = (task.rung, task.trial, task.params.clone());
                let value = self.measure(task)?;
                serde_json::to_string(&Trial { algorithm, rung, trial, params, value })
            }
            Job::Test(task) => serde_json::to_string(&self.test(algorithm, task)?),
        };
        Ok(line.expect("a line is JSON"))
    }

    /// An algorithm as the file has it.
    pub fn own(&self, index: usize) -> Task {
        Task { index, rung: 0, trial: 0, params: Candidate::new(), share: self.spec.share }
    }

    /// The step sizes that the file leaves out: their keys, and the values that a run reports.
    pub fn missing(&self, index: usize) -> Vec<(&'static str, &'static str)> {
        let spec = &self.experiment.algorithms[index];
        let mut missing: Vec<(&str, &str)> =
            ["alpha", "beta", "lambda"].into_iter().zip(TOLD).collect();
        missing.retain(|(key, _)| {
            spec.choice.build.facts.steps.iter().any(|(step, _)| step == key)
                && !spec.choice.params().contains_key(*key)
        });
        missing
    }

    /// The step sizes that an algorithm finds itself, where the file leaves them out: ranges are around these,
    /// so that they contain the best ones.
    pub fn found(&self, task: &Task) -> Result<Candidate> {
        let Some(experiment) = self.trial_experiment(task, &self.spec.seeds) else {
            return Ok(Candidate::new());
        };
        let outcomes = self.run(&experiment)?;
        let mean = |told: &str| {
            let all: Vec<f64> = outcomes.iter().filter_map(|run| run.row.value(told)).collect();
            let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
            (mean > 0.0 && mean.is_finite()).then_some(mean)
        };
        let missing = self.missing(task.index).into_iter();
        let found =
            missing.filter_map(|(key, told)| Some((key.to_string(), Tried::Number(mean(told)?))));
        Ok(found.collect())
    }

    /// The mean of the metric over the seeds; `None` if a run diverged or the values are refused.
    pub fn measure(&self, task: &Task) -> Result<Option<f64>> {
        match self.trial_experiment(task, &self.spec.seeds).map(|one| self.mean(&one)) {
            // Values that do not go together are refused by the run; those of the file must.
            Some(Err(error)) if error.kind == Kind::Config && task.trial > 0 => Ok(None),
            Some(value) => value,
            None => Ok(None),
        }
    }

    /// The mean of the metric over the seeds of an experiment; `None` if a run diverged.
    pub fn mean(&self, experiment: &Experiment) -> Result<Option<f64>> {
        let outcomes = self.run(experiment)?;
        let mut sum = 0.0;
        for outcome in &outcomes {
            if outcome.stop == Stop::Diverged {
                return Ok(None);
            }
            sum += match outcome.row.value(&self.spec.metric) {
                Some(value) => value,
                None if outcome.row.values.contains_key("consensus") => {
                    return Err(unmeasured(&self.spec.metric, outcome.row.values.keys()));
                }
                None => return Ok(None),
            };
        }
        Ok(Some(sum / outcomes.len() as f64))
    }

    /// Runs an experiment on this thread.
    fn run(&self, experiment: &Experiment) -> Result<Vec<Outcome>> {
        let Context { data_dir, interrupt, .. } = self.context;
        let alone = Context { pool: None, data_dir: data_dir.clone(), interrupt, probe: None };
        let outcomes = experiment.run_on(self.data, &alone, &mut (), &mut ())?;
        if interrupt.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        Ok(outcomes)
    }

    /// One algorithm with the values of a trial, on some seeds and a share of the budget; `None` if
    /// the algorithm does not accept the values.
    pub fn trial_experiment(&self, task: &Task, seeds: &[u64]) -> Option<Experiment> {
        let spec = &self.experiment.algorithms[task.index];
        let mut source = self.source.clone();
        for (key, value) in &task.params {
            let whole = spec.choice.params().get(key).is_some_and(toml::Value::is_integer);
            let value = value.value(whole);
            source.sets.push(format!("algorithm.{}.{key}={value}", task.index));
        }
        let mut experiment = Experiment::read(&source, self.registries).ok()?;
        experiment.algorithms = vec![experiment.algorithms.swap_remove(task.index)];
        let run = &mut experiment.run;
        run.seeds = seeds.to_vec();
        run.target = None;
        run.evaluations = 1;
        run.exact = match self.spec.metric.as_str() {
            "phi" | "grad_phi_sq" | "theta_error" => Exactly::End,
            _ => Exactly::Never,
        };
        run.shorten(task.share);
        Some(experiment)
    }
}

pub(super) fn interrupted() -> Error {
    Error::new(Kind::Run, "tune/interrupted", "the search was interrupted")
        .hint("finished trials are kept: the same command resumes the search")
}

/// A task or a result that another version or another experiment made.
pub(super) fn foreign(error: &dyn Display) -> Error {
    Error::storage("tune/other-search", format!("not a result of this search: {error}"))
        .hint("run all parts with the same experiment and the same version")
}

fn unmeasured<'a>(metric: &str, known: impl Iterator<Item = &'a String>) -> Error {
    let known: Vec<_> = known.filter(|name| !name.contains("test")).map(String::as_str).collect();
    Error::config("config/unknown-name", format!("the metric `{metric}` is not measured here"))
        .at("tune.metric")
        .hint(format!("measured: {}", known.join(", ")))
}
