//! Experiments: read, run into a folder, listed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lopa::config::Source;
use lopa::data::Where;
use lopa::error::{Error, Result};
use lopa::experiment::{Experiment, open};
use lopa::folder::work::Unit;
use lopa::folder::{Parts, RunFolder, Runs, Status, merged, parts_folder, remove_parts, share};
use lopa::run::{Context, Listener, Outcome};
use lopa_study::tune::TuneSpec;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::without;
use crate::going::{attached, detached};
use crate::send::Send;
use crate::{registries, values};

/// Time between two checks for signals, and between two reports of progress.
const LOOK: Duration = Duration::from_millis(100);

/// The path of an experiment file, or the text of a dictionary; and overrides.
#[derive(FromPyObject)]
pub struct Input(Option<PathBuf>, Option<String>, Vec<(String, String)>);

impl Input {
    /// The file or the dictionary, with the overrides.
    pub fn source(self) -> Result<Source> {
        let Input(path, json, sets) = self;
        let mut source = match path {
            Some(path) => open(&path).map_err(|error| match error.id {
                "config/unreadable" => error.hint("name a TOML file, or pass a dictionary"),
                _ => error,
            })?,
            None => values::source(json.as_deref().unwrap_or("{}"))?,
        };
        for (key, value) in sets {
            let json: Value = serde_json::from_str(&value).map_err(|error| {
                Error::config("config/wrong-type", error.to_string()).at(format!("set: {key}"))
            })?;
            source.sets.push(format!("{key}={}", values::to_toml(&key, &json)?));
        }
        Ok(source)
    }
}

/// Reads and checks a whole file.
pub fn read(source: &Source) -> Result<Experiment> {
    let experiment = Experiment::read(source, &registries());
    let checked = experiment.and_then(|experiment| {
        TuneSpec::of(source, &experiment)?;
        Ok(experiment)
    });
    checked.map_err(|error| values::by_key(source, error))
}

/// The experiment with every default filled in, as JSON.
#[pyfunction]
pub fn check(py: Python, input: Input) -> PyResult<String> {
    without(py, || {
        let source = input.source()?;
        Ok(json!(read(&source)?.resolved()).to_string())
    })
}

/// Runs an experiment into a run folder below `out`; returns the folder. `send` does runs elsewhere, unless it is `None`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the keywords of `lopa.run`")]
pub fn run(
    py: Python,
    input: Input,
    out: PathBuf,
    threads: usize,
    resume: bool,
    data: Option<PathBuf>,
    send: Py<PyAny>,
    tell: Py<PyAny>,
) -> PyResult<PathBuf> {
    let interrupt = AtomicBool::new(false);
    let send = Send::new(py, &send, &interrupt);
    let mut teller = Teller::new(tell, &interrupt);
    let done = detached(py, || -> Result<PathBuf> {
        let source = input.source()?;
        let experiment = read(&source)?;
        let pool = pool(threads)?;
        let context = Context {
            pool: pool.as_ref(),
            data_dir: Where::new(data.as_deref(), 0).directory,
            interrupt: &interrupt,
            probe: lopa_cli::probe(),
        };
        let data = experiment.load_data(&context)?;
        let place = parts_folder(&out, &experiment);
        let parts = match send.is_given() {
            true => sent(&experiment, &place, &send, &interrupt)?,
            false => Parts::new(),
        };
        let unfinished = match resume {
            true => RunFolder::unfinished(&out, &experiment, data.as_ref())?,
            false => None,
        };
        let mut folder = match unfinished {
            Some(folder) => folder,
            None => RunFolder::create(&out, &experiment, data.as_ref(), threads)?,
        };
        folder.merge(parts);
        teller.started(&experiment);
        let done = experiment.run_on(data.as_ref(), &context, &mut folder, &mut teller);
        match (&done, interrupt.load(Ordering::Relaxed)) {
            (Err(error), _) => folder.fail(error)?,
            (Ok(_), true) => folder.finish(Status::Interrupted)?,
            (Ok(_), false) => folder.finish(Status::Done)?,
        }
        done?;
        if send.is_given() {
            // All that is in it is now in the run folder.
            remove_parts(&place);
        }
        Ok(folder.path().to_path_buf())
    });
    match teller.raised {
        Some(raised) => Err(raised),
        None => send.ended(py, done),
    }
}

/// The folder that workers of an executor share.
#[pyfunction]
pub fn parts(py: Python, input: Input, out: PathBuf) -> PyResult<PathBuf> {
    without(py, || {
        let experiment = read(&input.source()?)?;
        Ok(parts_folder(&out, &experiment))
    })
}

/// The runs that workers did in a folder that they share.
fn sent(
    experiment: &Experiment,
    place: &Path,
    send: &Send,
    interrupt: &AtomicBool,
) -> Result<Parts> {
    let sender =
        |units: &[Unit], keep: &mut dyn FnMut(usize, String) -> Result<()>| send.send(units, keep);
    share(&[experiment], (place, Send::member()), interrupt, Runs::Sent(&sender), &|_| ())?;
    Ok(merged(&[experiment], place)?.pop().unwrap_or_default())
}

/// Threads, unless it is this one alone.
pub fn pool(threads: usize) -> Result<Option<rayon::ThreadPool>> {
    let pool = || {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
            Error::config("config/threads", format!("cannot start {threads} threads: {error}"))
                .at("threads")
        })
    };
    (threads > 1).then(pool).transpose()
}

/// Passes progress events to Python, and checks for signals.
pub struct Teller<'a> {
    tell: Py<PyAny>,
    interrupt: &'a AtomicBool,
    /// The exception that ended the run: Ctrl-C, or one of the function that shows progress.
    pub raised: Option<PyErr>,
    looked: Instant,
}

impl<'a> Teller<'a> {
    /// Calls a function with an event, unless it is `None`; an exception interrupts the run.
    pub fn new(tell: Py<PyAny>, interrupt: &'a AtomicBool) -> Teller<'a> {
        Teller { tell, interrupt, raised: None, looked: Instant::now() }
    }

    /// Calls the function with an event and its values.
    fn tell(&mut self, event: &str, values: Value) {
        if self.raised.is_some() {
            return;
        }
        let told = attached(|py| -> PyResult<()> {
            py.check_signals()?;
            if !self.tell.is_none(py) {
                self.tell.call1(py, (event, values.to_string()))?;
            }
            Ok(())
        });
        if !matches!(told, Some(Ok(()))) {
            self.raised = told.and_then(|told| told.err());
            self.interrupt.store(true, Ordering::Relaxed);
        }
        self.looked = Instant::now();
    }

    fn started(&mut self, experiment: &Experiment) {
        let runs = experiment.algorithms.len() * experiment.run.seeds.len();
        self.tell("started", json!({ "runs": runs, "name": experiment.name }));
    }
}

impl Listener for Teller<'_> {
    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.tell("begin", json!({ "algorithm": algorithm, "seed": seed }));
    }
    fn skip(&mut self, algorithm: &str, seed: u64) {
        self.tell("skip", json!({ "algorithm": algorithm, "seed": seed }));
    }
    fn resumed(&mut self, from: Option<u64>) {
        self.tell("resumed", json!({ "iteration": from }));
    }
    fn warn(&mut self, text: &str) {
        self.tell("warn", json!({ "text": text }));
    }
    fn progress(&mut self, iteration: u64, fraction: f64) {
        if self.looked.elapsed() > LOOK {
            self.tell("progress", json!({ "iteration": iteration, "fraction": fraction }));
        }
    }
    fn end(&mut self, outcome: &Outcome) {
        self.tell("end", json!({ "algorithm": outcome.algorithm, "seed": outcome.seed }));
    }
}

/// The registries as JSON: name and description of each entry.
#[pyfunction]
pub fn listing() -> String {
    let all = registries();
    let algorithms: Vec<Value> = all
        .algorithms
        .iter()
        .map(|entry| {
            let scopes: Vec<_> = entry.facts.scopes.iter().map(|scope| scope.name()).collect();
            let facts = &entry.facts;
            let typical = all.algorithms.typical(&entry.name).ok().flatten();
            let sends = typical.and_then(|typical| typical.build.sends().ok()).unwrap_or_default();
            json!({ "name": entry.name, "about": entry.about, "scopes": scopes,
                    "sends": sends, "loops": facts.loops, "source": facts.source })
        })
        .collect();
    fn plain<B: ?Sized>(entries: &[lopa::config::Entry<B>]) -> Vec<Value> {
        entries.iter().map(|entry| json!({ "name": entry.name, "about": entry.about })).collect()
    }
    json!({
        "algorithms": algorithms,
        "problems": plain(&all.problems),
        "graphs": plain(&all.graphs),
        "weights": plain(&all.weights),
        "partitions": plain(&all.partitions),
        "data": plain(&all.sources),
    })
    .to_string()
}

/// The JSON Schema of experiment files.
#[pyfunction]
pub fn schema() -> String {
    {
        use lopa::experiment::schema;
        schema::experiment(&registries(), &[("tune", schema::section::<TuneSpec>())]).to_string()
    }
}
