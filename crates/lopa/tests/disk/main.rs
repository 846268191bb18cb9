//! Disks that fail: every disk step of a run fails in turn, and the power is cut after any of them.
//! In every case, the same command then ends with the digest and the measurements of an undisturbed
//! run.

mod failing;
mod power;
mod simulated;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
use lopa::data::Data;
use lopa::error::Result;
use lopa::experiment::{Experiment, Registries};
use lopa::folder::{RunReader, Status, complete};
use lopa::run::trace::Row;
use lopa::run::{Context, Listener, Outcome};
use lopa_base::store::disk::{Step, Verdict, watched};

/// Two algorithms, with three checkpoints each, on data that is divided.
const EXPERIMENT: &str = r#"
name = "disk"
problem = "hyperparameter"
data = { name = "blobs", rows = 60, features = 2 }
network = { nodes = 2, graph = "path" }
run = { iterations = 40, evaluations = 4, batch = 4 }
checkpoint = { iterations = 11 }

[[algorithm]]
name = "lopa-gt"
alpha = 0.01
beta = 0.1
lambda = 0.1

[[algorithm]]
name = "dgd"
alpha = 0.01
"#;

/// Iterations between checkpoints.
const INTERVAL: u64 = 11;

struct Lab {
    experiment: Experiment,
    data: Option<Data>,
}

static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { pool: None, data_dir: "".into(), interrupt: &NEVER, probe: None }
}

impl Lab {
    fn new() -> Lab {
        let source = Source::new("test", EXPERIMENT);
        let experiment = Experiment::read(&source, &Registries::default());
        let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
        let data = experiment.load_data(&context()).unwrap();
        Lab { experiment, data }
    }

    /// Does the missing runs below `root`; `watch` decides the outcome of every step.
    fn run(
        &self,
        root: &Path,
        watch: impl FnMut(Step) -> Verdict + 'static,
    ) -> (Result<PathBuf>, Vec<Event>) {
        let mut events = Events::default();
        // Two folders that are not there yet.
        let runs = (&*root.join("out").join("runs"), 1);
        let data = self.data.as_ref();
        let done =
            watched(watch, || complete(&self.experiment, data, runs, &context(), &mut events));
        (done.map(|(folder, _)| folder), events.0)
    }

    /// Does the missing runs on a working disk.
    fn mend(&self, root: &Path) -> (Left, Vec<Event>) {
        let (folder, events) = self.run(root, |step| quick(&step));
        (left(&folder.unwrap_or_else(|error| panic!("{error}"))), events)
    }
}

/// Waiting for the disk is left out: these tests take thousands of steps.
fn quick(step: &Step) -> Verdict {
    match step {
        Step::Sync(_) | Step::SyncFolder(_) => Verdict::Skip,
        _ => Verdict::Go,
    }
}

/// The results of a run that must not depend on disturbances.
#[derive(Debug, PartialEq)]
struct Left {
    status: Status,
    digests: Vec<(String, String)>,
    rows: Vec<(String, Row)>,
    models: Vec<Vec<u8>>,
    files: BTreeSet<String>,
    runs: usize,
}

fn left(folder: &Path) -> Left {
    let reader = RunReader::open(folder).unwrap();
    let results = reader.results().unwrap();
    let digests = results.iter().map(|entry| (entry.algorithm.clone(), entry.digest.clone()));
    let rows = reader.rows().unwrap().into_iter();
    let path = |algorithm: &str| lopa::folder::model_path(folder, algorithm, 1);
    let runs = fs::read_dir(folder.parent().unwrap()).unwrap().count();
    let mut files = BTreeSet::new();
    list(folder, folder, &mut files);
    Left {
        status: reader.manifest().status,
        models: results.iter().map(|e| fs::read(path(&e.algorithm)).unwrap()).collect(),
        digests: digests.collect(),
        rows: rows.map(|line| (line.algorithm, Row { seconds: 0.0, ..line.row })).collect(),
        files,
        runs,
    }
}

/// All files below a folder.
fn list(top: &Path, folder: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => list(top, &path, files),
            path => drop(files.insert(path.strip_prefix(top).unwrap().display().to_string())),
        }
    }
}

/// The messages of a run.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    Skip(String),
    Begin(String),
    Resumed(Option<u64>),
    End(String),
}

#[derive(Default)]
struct Events(Vec<Event>);

impl Listener for Events {
    fn begin(&mut self, algorithm: &str, _: u64) {
        self.0.push(Event::Begin(algorithm.into()));
    }
    fn skip(&mut self, algorithm: &str, _: u64) {
        self.0.push(Event::Skip(algorithm.into()));
    }
    fn resumed(&mut self, from: Option<u64>) {
        self.0.push(Event::Resumed(from));
    }
    fn end(&mut self, outcome: &Outcome) {
        self.0.push(Event::End(outcome.algorithm.clone()));
    }
}

/// The number of steps of the run that resumes from `root`.
fn steps(lab: &Lab, root: &Path) -> usize {
    let steps = Rc::new(RefCell::new(0));
    let count = steps.clone();
    let (folder, _) = lab.run(root, move |step| {
        *count.borrow_mut() += 1;
        quick(&step)
    });
    folder.unwrap();
    steps.take()
}

/// The number of steps of a run, and its results.
fn undisturbed(lab: &Lab) -> (usize, Left) {
    let root = tempfile::tempdir().unwrap();
    let steps = steps(lab, root.path());
    let root = tempfile::tempdir().unwrap();
    let (left, events) = lab.mend(root.path());
    assert_eq!(left.rows.len(), 10, "five measurements of each algorithm");
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Begin(_))).count(), 2);
    (steps, left)
}
