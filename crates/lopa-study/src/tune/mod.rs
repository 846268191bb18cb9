//! Fair tuning: the same number of trials for every algorithm, on separate seeds, judged on
//! training or validation data.
//!
//! The values of a trial depend only on its number, so the outcome is the same for any number of
//! threads and after any interruption. Winners are confirmed at full length on further seeds.

mod confirm;
mod journal;
mod space;
mod spec;
mod written;

pub use confirm::Confirmation;
pub use journal::{Journal, Trial};
pub use space::Candidate;
pub use spec::{Between, Method, Range, Scale, TuneSpec};

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use crate::parallel;
use lopa::config::Source;
use lopa::data::Data;
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Exactly, Experiment, Registries};
use lopa::run::steps::TOLD;
use lopa::run::trace::Stop;
use lopa::run::{Context, Outcome};
use lopa::store::bytes::hex;
use space::Space;

/// One in `ETA` trials survives a stage of successive halving.
const ETA: usize = 3;

/// The outcome of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// Every trial, by algorithm, stage and number.
    pub trials: Vec<Trial>,
    /// The best confirmed trial of each algorithm.
    pub best: Vec<Trial>,
    /// The outcomes of testing trials, in that order; the last of an algorithm is that of its best
    /// trial.
    pub tests: Vec<Confirmation>,
    /// The experiment file with the best values and their provenance.
    pub text: String,
}

/// Runs the search of an experiment's `[tune]` section. Finished trials are kept in the journal and
/// not run again; trials share the context's threads. `extends` is the path of the file from the tuned
/// one, which then has only what differs; without it, the tuned file has everything.
pub fn tune(
    source: &Source,
    registries: &Registries,
    journal: &Path,
    extends: Option<&str>,
    context: &Context,
    told: &(dyn Fn(&Trial, usize, usize) + Sync),
    tested: &(dyn Fn(&Confirmation) + Sync),
) -> Result<Tuned> {
    let experiment = Experiment::read(source, registries)?;
    let spec = TuneSpec::of(source, &experiment)?;
    let spec = spec.ok_or_else(|| {
        Error::config("config/missing-key", "the section `[tune]` is missing")
            .at(&source.name)
            .hint("for example `[tune]` with `seeds = [101, 102]` and `trials = 16`")
    })?;
    let data = experiment.load_data(context)?;
    let (journal, done, confirmed) = Journal::open(journal, &digest(&experiment, &spec))?;
    let search = Search {
        source,
        registries,
        experiment: &experiment,
        spec: &spec,
        data: data.as_ref(),
        context,
        journal: Mutex::new(journal),
        done,
        confirmed,
        told,
        tested,
    };
    let trials = search.all()?;
    let (best, tests) = search.winners(&trials)?;
    let tuned = Tuned { trials, best, tests, text: String::new() };
    let text = written::file((source, registries), &experiment, &spec, &tuned, extends);
    Ok(Tuned { text, ..tuned })
}

/// The settings that must be unchanged for a journal to be resumed.
fn digest(experiment: &Experiment, spec: &TuneSpec) -> String {
    let experiment = toml::to_string(&experiment.resolved()).expect("a table is TOML");
    let spec = serde_json::to_string(spec).expect("a section is JSON");
    hex(&Sha256::digest(format!("{experiment}\n{spec}")))
}

struct Search<'a> {
    source: &'a Source,
    registries: &'a Registries,
    experiment: &'a Experiment,
    spec: &'a TuneSpec,
    data: Option<&'a Data>,
    context: &'a Context<'a>,
    journal: Mutex<Journal>,
    done: Vec<Trial>,
    confirmed: Vec<Confirmation>,
    told: &'a (dyn Fn(&Trial, usize, usize) + Sync),
    tested: &'a (dyn Fn(&Confirmation) + Sync),
}

/// A trial to run.
struct Task {
    index: usize,
    rung: usize,
    trial: usize,
    params: Candidate,
    share: f64,
}

impl Search<'_> {
    /// Every trial of every stage.
    fn all(&self) -> Result<Vec<Trial>> {
        let algorithms = &self.experiment.algorithms;
        let all: Vec<usize> = (0..algorithms.len()).collect();
        let found = parallel::map(self.context.pool, &all, |&index| self.found(index));
        let found: Vec<Candidate> = found.into_iter().collect::<Result<_>>()?;
        let candidates: Vec<Vec<Candidate>> = algorithms
            .iter()
            .zip(&found)
            .map(|(algorithm, found)| {
                Space::new(self.spec, algorithm, found)?.candidates(self.spec)
            })
            .collect::<Result<_>>()?;
        let rungs = self.rungs();
        // The surviving trials of each algorithm.
        let mut left: Vec<Vec<usize>> =
            candidates.iter().map(|all| (0..all.len()).collect()).collect();
        let mut trials: Vec<Trial> = Vec::new();
        for (rung, &share) in rungs.iter().enumerate() {
            let tasks: Vec<Task> = (0..algorithms.len())
                .flat_map(|index| left[index].iter().map(move |&trial| (index, trial)))
                .map(|(index, trial)| {
                    let params = candidates[index][trial].clone();
                    Task { index, rung, trial, params, share }
                })
                .collect();
            let ran = self.stage(&tasks)?;
            for (index, algorithm) in algorithms.iter().enumerate() {
                let mut ranked: Vec<&Trial> =
                    ran.iter().filter(|trial| trial.algorithm == algorithm.label).collect();
                ranked.sort_by(|a, b| self.compare(a, b));
                left[index] = ranked
                    .iter()
                    .take(left[index].len().div_ceil(ETA))
                    .map(|trial| trial.trial)
                    .collect();
                left[index].sort_unstable();
            }
            trials.extend(ran);
        }
        let place = |trial: &Trial| {
            let index = algorithms.iter().position(|a| a.label == trial.algorithm);
            (index, trial.rung, trial.trial)
        };
        trials.sort_by_key(place);
        Ok(trials)
    }

    /// The step sizes that an algorithm finds itself, where the file leaves them out: ranges are around these,
    /// so that they contain the best ones.
    fn found(&self, index: usize) -> Result<Candidate> {
        let spec = &self.experiment.algorithms[index];
        let mut missing: Vec<(&str, &str)> =
            ["alpha", "beta", "lambda"].into_iter().zip(TOLD).collect();
        missing.retain(|(key, _)| {
            let drives = |step: &(&str, &str)| step.1 == *key;
            spec.choice.build.facts.steps.iter().any(drives)
                && !spec.choice.params().contains_key(*key)
        });
        let none =
            Task { index, rung: 0, trial: 0, params: Candidate::new(), share: self.spec.share };
        let Some(experiment) =
            self.trial_experiment(&none, &self.spec.seeds).filter(|_| !missing.is_empty())
        else {
            return Ok(Candidate::new());
        };
        let outcomes = self.run(&experiment)?;
        let mean = |told: &str| {
            let all: Vec<f64> = outcomes.iter().filter_map(|run| run.row.value(told)).collect();
            let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
            (mean > 0.0 && mean.is_finite()).then_some(mean)
        };
        let found =
            missing.into_iter().filter_map(|(key, told)| Some((key.to_string(), mean(told)?)));
        Ok(found.collect())
    }

    /// The share of the budget at each stage.
    fn rungs(&self) -> Vec<f64> {
        let stages = match self.spec.method {
            Method::Halving => (self.spec.trials.ilog(ETA) as i32).min(3),
            _ => 0,
        };
        (0..=stages).rev().map(|power| self.spec.share * (ETA as f64).powi(-power)).collect()
    }

    /// The trials of the tasks, in their order; runs those that the journal does not have.
    fn stage(&self, tasks: &[Task]) -> Result<Vec<Trial>> {
        let one = |task: &Task| self.trial(task, tasks.len());
        parallel::map(self.context.pool, tasks, one).into_iter().collect()
    }

    fn trial(&self, task: &Task, of: usize) -> Result<Trial> {
        let label = &self.experiment.algorithms[task.index].label;
        let is = |trial: &&Trial| {
            trial.algorithm == *label && (trial.rung, trial.trial) == (task.rung, task.trial)
        };
        if let Some(known) = self.done.iter().find(is) {
            return Ok(known.clone());
        }
        let value = self.measure(task)?;
        let trial = Trial {
            algorithm: label.clone(),
            rung: task.rung,
            trial: task.trial,
            params: task.params.clone(),
            value,
        };
        self.journal.lock().expect("no trial panics").append(&trial)?;
        (self.told)(&trial, task.trial, of);
        Ok(trial)
    }

    /// The mean of the metric over the seeds; `None` if a run diverged or the values are refused.
    fn measure(&self, task: &Task) -> Result<Option<f64>> {
        match self.trial_experiment(task, &self.spec.seeds) {
            Some(experiment) => self.mean(&experiment),
            None => Ok(None),
        }
    }

    /// The mean of the metric over the seeds of an experiment; `None` if a run diverged.
    fn mean(&self, experiment: &Experiment) -> Result<Option<f64>> {
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
            return Err(Error::new(Kind::Run, "tune/interrupted", "the search was interrupted")
                .hint("finished trials are in the journal: the same command resumes the search"));
        }
        Ok(outcomes)
    }

    /// One algorithm with the values of a trial, on some seeds and a share of the budget; `None` if
    /// the algorithm does not accept the values.
    fn trial_experiment(&self, task: &Task, seeds: &[u64]) -> Option<Experiment> {
        let spec = &self.experiment.algorithms[task.index];
        let mut source = self.source.clone();
        for (key, value) in &task.params {
            let whole = spec.choice.params().get(key).is_some_and(toml::Value::is_integer);
            let value = if whole { format!("{value:.0}") } else { format!("{value:?}") };
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

    /// Better trials first: one without a value is worst, and of equals the earlier is better.
    fn compare(&self, a: &Trial, b: &Trial) -> std::cmp::Ordering {
        let key = |trial: &Trial| match (trial.value, self.spec.maximises()) {
            (None, _) => f64::INFINITY,
            (Some(value), true) => -value,
            (Some(value), false) => value,
        };
        key(a).total_cmp(&key(b)).then(a.trial.cmp(&b.trial))
    }
}

fn unmeasured<'a>(metric: &str, known: impl Iterator<Item = &'a String>) -> Error {
    let known: Vec<_> = known.filter(|name| !name.contains("test")).map(String::as_str).collect();
    Error::config("config/unknown-name", format!("the metric `{metric}` is not measured here"))
        .at("tune.metric")
        .hint(format!("measured: {}", known.join(", ")))
}
