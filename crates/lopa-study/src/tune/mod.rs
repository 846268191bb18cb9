//! Fair tuning: the same number of trials for every algorithm, on separate seeds, judged on
//! training or validation data.
//!
//! The values of a trial depend only on its number and on the trials before its round, so the outcome is the
//! same for any number of threads and after any interruption. Winners are confirmed at full length on further
//! seeds.

mod confirm;
mod journal;
mod moved;
mod runner;
mod space;
mod spec;
mod trial;
mod written;

pub use journal::Journal;
pub use moved::Moved;
pub use spec::{Around, Between, Method, Range, Scale, Tried, TuneSpec};
pub use trial::{Candidate, Confirmation, Found, Trial};

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use journal::{Line, Merged, found_name, test_name, trial_name};
use lopa::config::Source;
use lopa::error::{Error, Result};
use lopa::experiment::{AlgorithmSpec, Experiment, Registries};
use lopa::folder::work::{Beating, Ledger, Member, Merge, Sender, Unit, walk, walk_sent};
use lopa::math::portable::powi;
use lopa::run::Context;
use lopa_base::store::bytes::hex;
use runner::{Job, Runner, Task, foreign, interrupted};
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
    /// The ranges that moved, in that order.
    pub moves: Vec<Moved>,
    /// The experiment file with the best values and their provenance.
    pub text: String,
}

/// What happens between trials.
#[derive(Debug, Clone, Copy)]
pub enum Note<'a> {
    /// A trial was tested.
    Test(&'a Confirmation),
    /// A range moved.
    Moved(&'a Moved),
}

impl Note<'_> {
    /// The note in words.
    pub fn says(self) -> String {
        match self {
            Note::Test(test) => {
                format!("{} trial {} {}", test.algorithm, test.confirms, test.says())
            }
            Note::Moved(moved) => format!("{} {}", moved.algorithm, moved.says()),
        }
    }
}

/// Where the trials of a search run, and where their results are kept.
pub enum Trials<'a> {
    /// In this process, with a journal.
    Here(&'a Path),
    /// In several processes that share a folder; this one is a part.
    Part {
        /// The folder.
        folder: &'a Path,
        /// This part.
        member: Member,
        /// Receives the progress of all parts, after every trial and while this part waits.
        progress: &'a (dyn Fn(&str) + Sync),
    },
    /// All parts have ended: their results are copied to the journal.
    Merge {
        /// The folder of the parts.
        folder: &'a Path,
        /// The journal.
        journal: &'a Path,
    },
    /// Wherever a function sends them, with a journal.
    Sent {
        /// The journal.
        journal: &'a Path,
        /// Does units, each by [`work`].
        send: &'a Sender<'a>,
    },
}

impl<'a> From<&'a Path> for Trials<'a> {
    fn from(journal: &'a Path) -> Trials<'a> {
        Trials::Here(journal)
    }
}

impl<'a> From<&'a std::path::PathBuf> for Trials<'a> {
    fn from(journal: &'a std::path::PathBuf) -> Trials<'a> {
        Trials::Here(journal)
    }
}

/// Runs the search of an experiment's `[tune]` section. Finished trials are kept and not run again; trials share the
/// context's threads. `extends` is the path of the file from the tuned one, which then has only what differs; without
/// it, the tuned file has everything. `told` receives each new trial, its number and the number of trials of its
/// stage; `note` a remark between trials.
pub fn tune<'a>(
    source: &Source,
    registries: &Registries,
    trials: impl Into<Trials<'a>>,
    extends: Option<&str>,
    context: &Context,
    told: &(dyn Fn(&Trial, usize, usize) + Sync),
    note: &(dyn Fn(Note) + Sync),
) -> Result<Tuned> {
    let (experiment, spec) = read(source, registries)?;
    let data = experiment.load_data(context)?;
    let digest = digest(&experiment, &spec);
    let tuned =
        |ledger: &Mutex<dyn Ledger>, progress: &(dyn Fn(&str) + Sync), send: Option<&Sender>| {
            let (experiment, spec, data) = (&experiment, &spec, data.as_ref());
            let runner = Runner { source, registries, experiment, spec, data, context };
            Search { runner, ledger, progress, send, told, note }.tuned(extends)
        };
    match trials.into() {
        Trials::Here(journal) => {
            tuned(&Mutex::new(Journal::open(journal, &digest)?), &|_| (), None)
        }
        Trials::Part { folder, member, progress } => {
            let beating = Beating::join(folder, &shared(&digest), member)?;
            let done = tuned(beating.part(), progress, None);
            beating.leave(&done);
            done
        }
        Trials::Merge { folder, journal } => {
            let parts = Merge::open(folder, &shared(&digest))?;
            let journal = Journal::open(journal, &digest)?;
            tuned(&Mutex::new(Merged { parts, journal }), &|_| (), None)
        }
        Trials::Sent { journal, send } => {
            tuned(&Mutex::new(Journal::open(journal, &digest)?), &|_| (), Some(send))
        }
    }
}

/// Does a unit of a search that runs elsewhere; returns its result.
pub fn work(
    source: &Source,
    registries: &Registries,
    task: &str,
    context: &Context,
) -> Result<String> {
    let (experiment, spec) = read(source, registries)?;
    let data = experiment.load_data(context)?;
    let (experiment, spec, data) = (&experiment, &spec, data.as_ref());
    Runner { source, registries, experiment, spec, data, context }.done(task)
}

/// The ranges that a search draws from, by algorithm and parameter. Where the file leaves steps out, they are around
/// those that a run finds.
pub fn ranges(
    source: &Source,
    registries: &Registries,
    context: &Context,
) -> Result<BTreeMap<String, BTreeMap<String, Range>>> {
    let (experiment, spec) = read(source, registries)?;
    let data = experiment.load_data(context)?;
    let (experiment, spec, data) = (&experiment, &spec, data.as_ref());
    let runner = Runner { source, registries, experiment, spec, data, context };
    let of = |(index, algorithm): (usize, &AlgorithmSpec)| {
        let found = match runner.missing(index).is_empty() {
            true => Candidate::new(),
            false => runner.found(&runner.own(index))?,
        };
        Ok((algorithm.label.clone(), Space::new(spec, algorithm, &found)?.ranges()))
    };
    experiment.algorithms.iter().enumerate().map(of).collect()
}

/// The metric of a search for given values of an algorithm; `None` if a run diverged.
pub fn measure(
    source: &Source,
    registries: &Registries,
    (algorithm, params): (&str, Candidate),
    context: &Context,
) -> Result<Option<f64>> {
    let (experiment, spec) = read(source, registries)?;
    let mut labels = experiment.algorithms.iter().map(|spec| spec.label.as_str());
    let index = labels.position(|label| label == algorithm).ok_or_else(|| {
        let labels: Vec<_> = experiment.algorithms.iter().map(|a| a.label.as_str()).collect();
        Error::config("config/unknown-name", format!("there is no algorithm `{algorithm}`"))
            .at(&source.name)
            .hint(format!("the algorithms are {}", labels.join(", ")))
    })?;
    let data = experiment.load_data(context)?;
    let (experiment, spec, data) = (&experiment, &spec, data.as_ref());
    let runner = Runner { source, registries, experiment, spec, data, context };
    runner.measure(&Task { params, ..runner.own(index) })
}

/// The experiment of a file, and its search.
fn read(source: &Source, registries: &Registries) -> Result<(Experiment, TuneSpec)> {
    let experiment = Experiment::read(source, registries)?;
    let spec = TuneSpec::of(source, &experiment)?;
    let spec = spec.ok_or_else(|| {
        Error::config("config/missing-key", "the section `[tune]` is missing")
            .at(&source.name)
            .hint("for example `[tune]` with `seeds = [101, 102]` and `trials = 16`")
    })?;
    Ok((experiment, spec))
}

/// The same search by the same version.
fn shared(digest: &str) -> String {
    format!("tune {} {digest}", env!("CARGO_PKG_VERSION"))
}

/// The settings that must be unchanged for a journal to be resumed.
fn digest(experiment: &Experiment, spec: &TuneSpec) -> String {
    let experiment = toml::to_string(&experiment.resolved()).expect("a table is TOML");
    let spec = serde_json::to_string(spec).expect("a section is JSON");
    hex(&Sha256::digest(format!("{experiment}\n{spec}")))
}

/// A search under way: which units come next.
struct Search<'a> {
    runner: Runner<'a>,
    ledger: &'a Mutex<dyn Ledger>,
    progress: &'a (dyn Fn(&str) + Sync),
    send: Option<&'a Sender<'a>>,
    told: &'a (dyn Fn(&Trial, usize, usize) + Sync),
    note: &'a (dyn Fn(Note) + Sync),
}

impl<'a> std::ops::Deref for Search<'a> {
    type Target = Runner<'a>;

    fn deref(&self) -> &Runner<'a> {
        &self.runner
    }
}

impl Search<'_> {
    /// All trials, the best ones and the tuned file.
    fn tuned(&self, extends: Option<&str>) -> Result<Tuned> {
        let (trials, moves) = self.all()?;
        let (best, tests) = self.winners(&trials)?;
        let tuned = Tuned { trials, best, tests, moves, text: String::new() };
        let Runner { source, registries, experiment, spec, .. } = self.runner;
        let text = written::file((source, registries), experiment, spec, &tuned, extends);
        Ok(Tuned { text, ..tuned })
    }

    /// The results of some jobs, in their order; does those whose results are not known.
    fn each<R: DeserializeOwned>(&self, jobs: impl IntoIterator<Item = Job>) -> Result<Vec<R>> {
        let units: Vec<Unit> = jobs.into_iter().map(|job| self.unit(&job)).collect();
        let interrupt = self.context.interrupt;
        let lines = match self.send {
            None => {
                let one = |unit: &Unit| {
                    let line = self.done(&unit.task)?;
                    self.report(&line, units.len());
                    Ok(line)
                };
                walk(self.ledger, &units, (self.context.pool, interrupt), &one, self.progress)
            }
            Some(send) => {
                let send: &Sender = &|units, keep| {
                    send(units, &mut |at, line| {
                        self.report(&line, units.len());
                        keep(at, line)
                    })
                };
                walk_sent(self.ledger, &units, interrupt, send, self.progress)
            }
        };
        let lines = lines.map_err(|error| match error.id {
            "run/interrupted" => interrupted(),
            _ => error,
        })?;
        let read = |line: &String| serde_json::from_str(line).map_err(|error| foreign(&error));
        lines.iter().map(read).collect()
    }

    fn report(&self, line: &str, of: usize) {
        match serde_json::from_str(line) {
            Ok(Line::Trial(trial)) => (self.told)(&trial, trial.trial, of),
            Ok(Line::Test(test)) => (self.note)(Note::Test(&test)),
            Ok(Line::Found(_)) | Err(_) => {}
        }
    }

    fn unit(&self, job: &Job) -> Unit {
        let (Job::Steps(task) | Job::Trial(task) | Job::Test(task)) = job;
        let (label, trial) = (&self.experiment.algorithms[task.index].label, task.trial);
        let (name, shown) = match job {
            Job::Steps(_) => (found_name(label), format!("{label}, its own steps")),
            Job::Trial(_) => {
                let shown = format!("{label}, trial {trial} of stage {}", task.rung + 1);
                (trial_name(label, task.rung, trial), shown)
            }
            Job::Test(_) => (test_name(label, trial), format!("{label}, test of trial {trial}")),
        };
        let task = serde_json::to_string(job).expect("a task is JSON");
        Unit { name, shown, task }
    }

    /// Every trial, and the ranges that moved: all algorithms get as many trials, also where only the range of
    /// one moves.
    fn all(&self) -> Result<(Vec<Trial>, Vec<Moved>)> {
        let algorithms = &self.experiment.algorithms;
        let mut found = vec![Candidate::new(); algorithms.len()];
        let lacking = (0..algorithms.len()).filter(|&index| !self.missing(index).is_empty());
        let lacking: Vec<usize> = lacking.collect();
        let steps = |&index: &usize| Job::Steps(self.own(index));
        let own: Vec<Found> = self.each(lacking.iter().map(steps))?;
        for (index, own) in lacking.into_iter().zip(own) {
            found[index] = own.found;
        }
        let space = |(algorithm, found)| Space::new(self.spec, algorithm, found);
        let mut spaces: Vec<Space> =
            algorithms.iter().zip(&found).map(space).collect::<Result<_>>()?;
        let first = |space: &Space| space.candidates(self.spec);
        let first: Vec<Vec<Candidate>> = spaces.iter().map(first).collect::<Result<_>>()?;
        let mut trials = self.round(&first, 0)?;
        let mut moves = Vec::new();
        let mut numbers = self.spec.trials..self.spec.trials + self.spec.trials.div_ceil(2);
        for _ in 0..moved::MOST {
            let moved = self.follow(&mut spaces, &trials, numbers.start);
            if moved.is_empty() {
                break;
            }
            moves.extend(moved);
            let more: Vec<Vec<Candidate>> =
                spaces.iter().map(|space| space.draws(self.spec, numbers.clone())).collect();
            trials.extend(self.round(&more, numbers.start)?);
            numbers = numbers.end..numbers.end + numbers.len();
        }
        let place = |trial: &Trial| {
            let index = algorithms.iter().position(|a| a.label == trial.algorithm);
            (index, trial.rung, trial.trial)
        };
        trials.sort_by_key(place);
        Ok((trials, moves))
    }

    /// The trials of these values of each algorithm, in all stages; the first has the number `from`.
    fn round(&self, candidates: &[Vec<Candidate>], from: usize) -> Result<Vec<Trial>> {
        let algorithms = &self.experiment.algorithms;
        // The surviving trials of each algorithm.
        let mut left: Vec<Vec<usize>> =
            candidates.iter().map(|all| (0..all.len()).collect()).collect();
        let mut trials: Vec<Trial> = Vec::new();
        for (rung, &share) in self.rungs().iter().enumerate() {
            let jobs = (0..algorithms.len())
                .flat_map(|index| left[index].iter().map(move |&at| (index, at)))
                .map(|(index, at)| {
                    let params = candidates[index][at].clone();
                    Job::Trial(Task { index, rung, trial: from + at, params, share })
                });
            let ran: Vec<Trial> = self.each(jobs)?;
            for (index, algorithm) in algorithms.iter().enumerate() {
                let mut ranked: Vec<&Trial> =
                    ran.iter().filter(|trial| trial.algorithm == algorithm.label).collect();
                ranked.sort_by(|a, b| self.compare(a, b));
                left[index] = ranked
                    .iter()
                    .take(left[index].len().div_ceil(ETA))
                    .map(|trial| trial.trial - from)
                    .collect();
                left[index].sort_unstable();
            }
            trials.extend(ran);
        }
        Ok(trials)
    }

    /// The share of the budget at each stage.
    fn rungs(&self) -> Vec<f64> {
        let stages = match self.spec.method {
            Method::Halving => (self.spec.trials.ilog(ETA) as i32).min(3),
            _ => 0,
        };
        (0..=stages).rev().map(|power| self.spec.share * powi(ETA as f64, -power)).collect()
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
