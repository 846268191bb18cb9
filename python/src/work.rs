//! Work that an executor of Python does: trials of a search, runs of an experiment.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lopa::data::Where;
use lopa::error::Result;
use lopa::experiment::Experiment;
use lopa::folder::work::Unit;
use lopa::folder::{RunReader, complete, run_of};
use lopa::run::Context;
use lopa_study::compare::Question;
use lopa_study::tune::{self as search, Note, Trial, Trials, Tried, Tuned};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::without;
use crate::experiment::{Input, pool, read};
use crate::going::{attached, detached};
use crate::send::Send;
use crate::{registries, values};

/// The environment of a search or a run.
fn context<'a>(
    pool: Option<&'a rayon::ThreadPool>,
    data: Option<&Path>,
    interrupt: &'a AtomicBool,
) -> Context<'a> {
    let data_dir = Where::new(data, 0).directory;
    Context { pool, data_dir, interrupt, probe: lopa_cli::probe() }
}

/// Searches step sizes; returns the outcome as JSON. `send` does trials elsewhere, unless it is `None`; `tell` receives
/// the trials and tests that end.
#[pyfunction]
pub fn tune(
    py: Python,
    input: Input,
    journal: PathBuf,
    threads: usize,
    data: Option<PathBuf>,
    send: Py<PyAny>,
    tell: Py<PyAny>,
) -> PyResult<String> {
    let interrupt = AtomicBool::new(false);
    let send = Send::new(py, &send, &interrupt);
    let told = |event: &str, text: String| {
        let done = attached(|py| -> PyResult<()> {
            py.check_signals()?;
            if !tell.is_none(py) {
                tell.call1(py, (event, text))?;
            }
            Ok(())
        });
        if let Some(Err(error)) = done {
            send.failed(error);
        }
    };
    let done = detached(py, || -> Result<String> {
        let source = input.source()?;
        read(&source)?;
        let pool = pool(threads)?;
        let context = context(pool.as_ref(), data.as_deref(), &interrupt);
        let sender = |units: &[Unit], keep: &mut dyn FnMut(usize, String) -> Result<()>| {
            send.send(units, keep)
        };
        let trials = match send.is_given() {
            true => Trials::Sent { journal: &journal, send: &sender },
            false => Trials::Here(&journal),
        };
        let trial = |trial: &Trial, _: usize, of: usize| {
            told("trial", json!({ "trial": trial, "of": of }).to_string());
        };
        let note = |note: Note| match note {
            Note::Test(test) => told("test", json!({ "test": test }).to_string()),
            Note::Moved(moved) => told("moved", json!({ "moved": moved }).to_string()),
        };
        let done = search::tune(&source, &registries(), trials, None, &context, &trial, &note);
        let Tuned { trials, best, tests, moves, text } =
            done.map_err(|error| values::by_key(&source, error))?;
        let found =
            json!({ "trials": trials, "best": best, "tests": tests, "moves": moves, "text": text });
        Ok(found.to_string())
    });
    send.ended(py, done)
}

/// Does a unit of a search; returns its result.
#[pyfunction]
pub fn tune_unit(
    py: Python,
    input: Input,
    data: Option<PathBuf>,
    task: String,
) -> PyResult<String> {
    let never = AtomicBool::new(false);
    without(py, || {
        let source = input.source()?;
        let context = context(None, data.as_deref(), &never);
        search::work(&source, &registries(), &task, &context)
    })
}

/// The ranges that a search draws from, by algorithm and parameter, as JSON.
#[pyfunction]
pub fn ranges(py: Python, input: Input, data: Option<PathBuf>) -> PyResult<String> {
    let never = AtomicBool::new(false);
    without(py, || {
        let source = input.source()?;
        let context = context(None, data.as_deref(), &never);
        let ranges = search::ranges(&source, &registries(), &context)?;
        Ok(json!(ranges).to_string())
    })
}

/// A value of a parameter.
#[derive(FromPyObject)]
pub enum Given {
    Number(f64),
    Name(String),
}

impl Given {
    fn tried(self) -> Tried {
        match self {
            Given::Number(number) => Tried::Number(number),
            Given::Name(name) => Tried::Name(name),
        }
    }
}

/// The metric of a search for given values of an algorithm; `None` if a run diverged.
#[pyfunction]
pub fn trial(
    py: Python,
    input: Input,
    data: Option<PathBuf>,
    algorithm: String,
    params: std::collections::BTreeMap<String, Given>,
) -> PyResult<Option<f64>> {
    let never = AtomicBool::new(false);
    without(py, || {
        let source = input.source()?;
        let context = context(None, data.as_deref(), &never);
        let params = params.into_iter().map(|(key, given)| (key, given.tried())).collect();
        search::measure(&source, &registries(), (&algorithm, params), &context)
    })
}

/// Does one run of an experiment in the folder that all workers share; returns its result.
#[pyfunction]
pub fn run_unit(
    py: Python,
    input: Input,
    folder: PathBuf,
    threads: usize,
    data: Option<PathBuf>,
    task: String,
) -> PyResult<String> {
    let never = AtomicBool::new(false);
    without(py, || {
        let experiment = read(&input.source()?)?;
        let pool = pool(threads)?;
        let context = context(pool.as_ref(), data.as_deref(), &never);
        let data = experiment.load_data(&context)?;
        let mut one = |one: &Experiment, runs: &Path| {
            let (folder, whole) = complete(one, data.as_ref(), (runs, threads), &context, &mut ())?;
            Ok(whole.then_some(folder))
        };
        run_of(&[&experiment], &task, &folder, &mut one)
    })
}

/// Compares the runs in a run folder; returns the comparison as JSON.
#[pyfunction]
pub fn compare(
    py: Python,
    folder: PathBuf,
    measure: Option<String>,
    target: Option<f64>,
) -> PyResult<String> {
    without(py, || {
        let reader = RunReader::open(&folder)?;
        let mut inert = registries();
        inert.problems.run_no_code();
        let experiment = Experiment::read(&reader.resolved()?, &inert)?;
        let traces = reader.traces()?;
        let question = Question::of(&experiment, &reader, &traces, measure.as_deref())?;
        Ok(json!(lopa_study::compare::compare(&traces, &Question { target, ..question }))
            .to_string())
    })
}
