//! The runs of an experiment, shared by several parts and merged: the run folder of one process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lopa::config::Source;
use lopa::error::Result;
use lopa::experiment::{Experiment, Registries};
use lopa::folder::work::{Member, Unit};
use lopa::folder::{
    Runs, Shared, complete, merge, merged, parts_folder, remove_parts, run_of, share,
};
use lopa::run::{Context, Listener};
use serde_json::Value;

static NEVER: AtomicBool = AtomicBool::new(false);

const EXPERIMENT: &str = r#"
schema = 1
name = "shared"
problem = { name = "quadratic", n = 3, p = 4, noise = 0.1, samples = 10 }
network = { nodes = 4, graph = "ring" }
run = { seeds = [1, 2, 3], iterations = 40, evaluations = 4, batch = 2 }
checkpoint = { iterations = 5 }
algorithm = [
    { name = "lopa-gt", alpha = 0.01, beta = 0.05, lambda = 0.05 },
    { name = "dgd", label = "gradients", alpha = 0.01 },
]
"#;

fn experiment() -> Experiment {
    Experiment::read(&Source::new("e.toml", EXPERIMENT), &Registries::default()).unwrap()
}

fn context(interrupt: &AtomicBool) -> Context<'_> {
    Context { pool: None, data_dir: "".into(), interrupt, probe: None }
}

/// All files of a run folder without times, by their names.
fn timeless(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            for below in fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()) {
                let bytes = fs::read(&below).unwrap();
                let below = below.file_name().unwrap().to_string_lossy().into_owned();
                files.insert(format!("{name}/{below}"), format!("{bytes:?}"));
            }
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = match name.rsplit('.').next() {
            Some("json") => strip(serde_json::from_str(&text).unwrap()).to_string(),
            Some("jsonl") => text
                .lines()
                .map(|line| strip(serde_json::from_str(line).unwrap()).to_string() + "\n")
                .collect(),
            _ => text,
        };
        files.insert(name, text);
    }
    files
}

fn strip(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            let timed = ["seconds", "measuring", "check", "started", "ended", "resumed"];
            fields.retain(|key, _| !timed.contains(&key.as_str()));
            fields.values_mut().for_each(|value| *value = strip(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = strip(item.take())),
        _ => {}
    }
    value
}

fn alone() -> BTreeMap<String, String> {
    let runs = tempfile::tempdir().unwrap();
    let place = (runs.path(), 1);
    let (folder, _) = complete(&experiment(), None, place, &context(&NEVER), &mut ()).unwrap();
    timeless(&folder)
}

fn merge_into(runs: &Path) -> Result<PathBuf> {
    let experiment = experiment();
    let parts = merged(&[&experiment], &parts_folder(runs, &experiment))?.pop().unwrap();
    assert_eq!(parts.len(), 6);
    merge(&experiment, parts, None, (runs, 1), &context(&NEVER), &mut ()).map(|(folder, _)| folder)
}

fn member(number: usize, of: usize) -> Member {
    let share = format!("{number}/{of}").parse().unwrap();
    Member::here(share, Duration::from_secs(600))
}

fn part(
    runs: &Path,
    member: Member,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Shared> {
    let experiment = experiment();
    let folder = parts_folder(runs, &experiment);
    let mut run = |one: &Experiment, runs: &Path| {
        let (folder, whole) = complete(one, None, (runs, 1), &context(interrupt), listener)?;
        Ok(whole.then_some(folder))
    };
    share(&[&experiment], (&folder, member), interrupt, Runs::Here(&mut run), &|_| ())
}

#[test]
fn merged_parts_are_the_run_folder_of_one_process() {
    let alone = alone();
    assert!(alone.len() >= 4 + 6, "{:?}", alone.keys());
    for of in [1, 2, 5] {
        let runs = tempfile::tempdir().unwrap();
        let done: usize = std::thread::scope(|scope| {
            let path = runs.path();
            let run = |number| scope.spawn(move || part(path, member(number, of), &NEVER, &mut ()));
            let parts: Vec<_> = (1..=of).map(run).collect();
            parts.into_iter().map(|part| part.join().unwrap().unwrap().here).sum()
        });
        assert_eq!(done, 6, "nothing is done twice");
        assert_eq!(timeless(&merge_into(runs.path()).unwrap()), alone, "{of} parts");
    }
}

/// Stops at an iteration of its third run.
struct Stops<'a> {
    interrupt: &'a AtomicBool,
    begun: AtomicUsize,
}

impl Listener for Stops<'_> {
    fn begin(&mut self, _: &str, _: u64) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }
    fn progress(&mut self, iteration: u64, _: f64) {
        if self.begun.load(Ordering::Relaxed) == 3 && iteration >= 20 {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }
}

/// Counts where runs resume.
#[derive(Default)]
struct Resumed(Vec<Option<u64>>);

impl Listener for Resumed {
    fn resumed(&mut self, from: Option<u64>) {
        self.0.push(from);
    }
}

#[test]
fn a_stopped_part_is_taken_over_from_its_checkpoint() {
    let runs = tempfile::tempdir().unwrap();
    let interrupt = AtomicBool::new(false);
    let mut stops = Stops { interrupt: &interrupt, begun: AtomicUsize::new(0) };
    let error = part(runs.path(), member(1, 2), &interrupt, &mut stops).unwrap_err();
    assert_eq!(error.id, "run/interrupted");
    let error = merge_into(runs.path()).unwrap_err();
    assert_eq!(error.id, "share/missing");
    assert!(error.message.contains("4 of 6") && error.message.contains("was stopped"), "{error}");
    let mut resumed = Resumed::default();
    let done = part(runs.path(), member(2, 2), &NEVER, &mut resumed).unwrap();
    assert_eq!((done.here, done.of), (4, 6));
    assert!(matches!(resumed.0[..], [Some(k)] if k >= 20), "{:?}", resumed.0);
    assert_eq!(timeless(&merge_into(runs.path()).unwrap()), alone());
}

#[test]
fn runs_may_be_sent_elsewhere() {
    let (runs, experiment) = (tempfile::tempdir().unwrap(), experiment());
    let folder = parts_folder(runs.path(), &experiment);
    let send = |units: &[Unit], keep: &mut dyn FnMut(usize, String) -> Result<()>| {
        for (at, unit) in units.iter().enumerate().rev() {
            let mut run = |one: &Experiment, runs: &Path| {
                complete(one, None, (runs, 1), &context(&NEVER), &mut ())
                    .map(|(path, _)| Some(path))
            };
            keep(at, run_of(&[&experiment], &unit.task, &folder, &mut run)?)?;
        }
        Ok(())
    };
    share(&[&experiment], (&folder, member(1, 1)), &NEVER, Runs::Sent(&send), &|_| ()).unwrap();
    assert_eq!(timeless(&merge_into(runs.path()).unwrap()), alone());
    remove_parts(&folder);
    assert!(!folder.exists());
    let mut never = |_: &Experiment, _: &Path| panic!("no run");
    let foreign = r#"{"experiment":0,"algorithm":9,"seed":1}"#;
    let error = run_of(&[&experiment], foreign, &folder, &mut never).unwrap_err();
    assert_eq!(error.id, "share/other-work");
}

#[test]
fn runs_that_measure_times_are_not_shared() {
    let text = EXPERIMENT.to_string() + "[time]\ncompute = \"measured\"\nlinks = \"home\"\n";
    let experiment =
        Experiment::read(&Source::new("e.toml", text), &Registries::default()).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut never = |_: &Experiment, _: &Path| panic!("no run");
    let place = (runs.path(), member(1, 1));
    let error = share(&[&experiment], place, &NEVER, Runs::Here(&mut never), &|_| ()).unwrap_err();
    assert_eq!(error.id, "config/no-meaning");
}
