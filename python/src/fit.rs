//! Training in memory, for estimators: no run folder, a model as arrays.
//!
//! ```text
//! x̄    what LoPA-GT ends with, the mean over the nodes
//! θ_i  = argmin_θ g_i(x̄, θ), exactly, on all rows of node i
//! ```

use std::sync::atomic::AtomicBool;

use lopa::config::Choice;
use lopa::data::{Data, Dataset, Scaling, Scalings};
use lopa::error::{Error, Kind, Result};
use lopa::evaluate::mean;
use lopa::experiment::Experiment;
use lopa::folder::model::{About, Model};
use lopa::run::trace::{Row, Stop};
use lopa::run::{Context, Listener, Outcome, Setup};
use lopa::serve::Personal;
use lopa_study::practical::{self, Point, Scheme, Steps, course};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::arrays::{self, Matrix};
use crate::errors::raise;
use crate::experiment::{Teller, pool};
use crate::going::detached;
use crate::{registries, values};

/// Step sizes are calibrated on at most so many rows of all nodes.
const TRIAL_ROWS: usize = 4000;

/// The start of x times this: inputs of hidden units are far from 0.
const SATURATED: f64 = 10.0;

/// A run is lost if its loss ends so many times higher than it began.
const HIGHER: f64 = 10.0;

/// How often the step of x is halved when a run with calibrated step sizes is lost.
const HALVINGS: usize = 12;

/// Trains the first algorithm of an experiment on arrays. Returns what there is to say about the model
/// as JSON; then x̄, a row of θ for each node, and the shift and factor of every feature, as doubles.
#[pyfunction]
pub fn fit<'py>(
    py: Python<'py>,
    json: String,
    arrays: Py<PyAny>,
    threads: usize,
    calibrated: bool,
    tell: Py<PyAny>,
) -> PyResult<(String, [Bound<'py, PyBytes>; 4])> {
    let interrupt = AtomicBool::new(false);
    let mut teller = Teller::new(tell, &interrupt);
    let done = detached(py, || -> Result<(String, Model)> {
        let source = values::source(&json)?;
        let mut all = registries();
        all.sources.add(arrays::given(arrays));
        let experiment = Experiment::read(&source, &all);
        let experiment = experiment.map_err(|error| values::by_key(&source, error))?;
        let pool = pool(threads)?;
        let (pool, data_dir) = (pool.as_ref(), Default::default());
        let context = Context { pool, data_dir, interrupt: &interrupt, probe: None };
        let data = experiment.load_data(&context)?;
        let data = data.ok_or_else(|| Error::config("config/no-meaning", "there are no data"))?;
        Fit { experiment, data, context: &context, teller: &mut teller }.whole(calibrated)
    });
    if let Some(raised) = teller.raised {
        return Err(raised);
    }
    let (said, model) = done.map_err(|error| raise(py, error))?;
    let Scaling { shift, factor, .. } = model.scaling.of(0);
    let theta = model.theta.concat();
    Ok((said, [&model.x[0], &theta, shift, factor].map(|values| bytes(py, values))))
}

struct Fit<'a, 'b> {
    experiment: Experiment,
    data: Data,
    context: &'a Context<'a>,
    teller: &'a mut Teller<'b>,
}

impl Fit<'_, '_> {
    fn whole(mut self, calibrated: bool) -> Result<(String, Model)> {
        if calibrated {
            self.calibrate()?;
        }
        let mut course = self.run()?;
        let mut halvings = 0;
        while course.lost() {
            if !calibrated || halvings == HALVINGS {
                return Err(course.error());
            }
            halvings += 1;
            self.halve()?;
            course = self.run()?;
        }
        let iterations = course.outcome.row.iteration;
        let (model, solved) = self.model(course.outcome)?;
        let said = json!({
            "about": model.about, "iterations": iterations, "loss": course.last, "solved": solved,
            "steps": self.experiment.algorithms[0].choice.params(),
        });
        Ok((said.to_string(), model))
    }

    fn seed(&self) -> u64 {
        self.experiment.run.seeds.first().copied().unwrap_or_default()
    }

    /// Step sizes from the curvature and from short runs, on some of the rows.
    fn calibrate(&mut self) -> Result<()> {
        let (seed, experiment) = (self.seed(), &self.experiment);
        let mut world = experiment.world(Some(&self.data), seed)?;
        let most = (TRIAL_ROWS / experiment.network.nodes).max(2);
        // A node's rows are in random order: any part of them is a fair draw.
        world.partition.nodes.iter_mut().for_each(|rows| rows.truncate(most));
        let (data, pool) = (Some(&self.data), self.context.pool);
        let setup = Setup { experiment, data, world: &world, seed, pool };
        let spec = &experiment.algorithms[0];
        let own = Steps::of(&spec.choice.typed().unwrap_or_default());
        let start = practical::at_start(&setup, spec)?;
        // Once hidden units are saturated, the inner problem is steeper than it is at the start.
        let x = start.x.iter().map(|x| SATURATED * x).collect();
        let saturated = Point { x, ..start.clone() };
        let planned = experiment.run.iterations.unwrap_or(1);
        let (scheme, points) = (Scheme::GradientTracking, [&start, &saturated]);
        let found = practical::calibrate(&setup, spec, scheme, &own, &points, planned)?;
        self.experiment.algorithms[0].choice = course::with_steps(spec, scheme, &found.best)?;
        Ok(())
    }

    fn halve(&mut self) -> Result<()> {
        let spec = &self.experiment.algorithms[0];
        let steps = Steps::of(&spec.choice.typed().unwrap_or_default());
        let steps = Steps { alpha: steps.alpha / 2.0, ..steps };
        self.experiment.algorithms[0].choice =
            course::with_steps(spec, Scheme::GradientTracking, &steps)?;
        Ok(())
    }

    fn run(&mut self) -> Result<Course> {
        let mut heard = Heard { teller: self.teller, losses: Vec::new() };
        let outcomes =
            self.experiment.run_on(Some(&self.data), self.context, &mut (), &mut heard)?;
        let losses = heard.losses;
        let (first, last) = (losses.first().copied(), losses.last().copied());
        let outcome = outcomes.into_iter().next();
        let outcome = outcome.filter(|outcome| outcome.stop != Stop::Interrupted);
        let outcome = outcome
            .ok_or_else(|| Error::new(Kind::Run, "run/interrupted", "the fit was interrupted"))?;
        Ok(Course { outcome, first: first.unwrap_or(f64::NAN), last: last.unwrap_or(f64::NAN) })
    }

    /// x̄ with the exact θ_i of every node on all of its rows.
    fn model(&self, outcome: Outcome) -> Result<(Model, bool)> {
        let Experiment { problem: Choice { name, .. }, run, .. } = &self.experiment;
        let (problem, seed) = (&self.experiment.problem, self.seed());
        let x = mean(outcome.models.iter().map(|(x, _)| &x[..]));
        let rows = self.experiment.world(Some(&self.data), seed)?.partition.nodes;
        let personal = Personal {
            problem: &**problem.build.get::<f64>(),
            data: &self.data,
            seed,
            batch: run.batch.batches().grad_g,
        };
        let (mut theta, mut solved) = (Vec::new(), true);
        for (rows, (_, guess)) in rows.iter().zip(&outcome.models) {
            let (own, exact) = personal.theta(rows, &x, guess)?;
            solved &= exact;
            theta.push(own);
        }
        let scaling = self.data.scaling.clone();
        let Scaling { log, row, .. } = *scaling.of(0);
        let about = About {
            algorithm: outcome.algorithm,
            seed,
            problem: name.clone(),
            params: problem.params().clone(),
            features: self.data.train.cols(),
            classes: self.data.classes.clone(),
            columns: None,
            diverged: false,
            log,
            row,
            nodes: Vec::new(),
        };
        Ok((Model { about, x: vec![x], theta, scaling }, solved))
    }
}

/// How a run went.
struct Course {
    outcome: Outcome,
    first: f64,
    last: f64,
}

impl Course {
    /// Whether it diverged or is about to. Where labels are noise, the loss on rows for validation
    /// rises from its start at θ = 0, but not by such a factor.
    fn lost(&self) -> bool {
        self.outcome.stop == Stop::Diverged
            || !self.last.is_finite()
            || self.last > HIGHER * self.first
    }

    fn error(&self) -> Error {
        let message = match &self.outcome.diagnosis {
            Some(why) => format!("the fit diverged: {why}"),
            None => format!("the fit raised the loss from {} to {}", self.first, self.last),
        };
        Error::new(Kind::Run, "run/diverged", message)
            .hint("choose smaller step sizes, or leave `steps` to lopa; scale the features")
    }
}

/// Passes everything on, and keeps the losses.
struct Heard<'a, 'b> {
    teller: &'a mut Teller<'b>,
    losses: Vec<f64>,
}

impl Listener for Heard<'_, '_> {
    fn progress(&mut self, iteration: u64, fraction: f64) {
        self.teller.progress(iteration, fraction);
    }
    fn row(&mut self, _algorithm: &str, _seed: u64, row: &Row) {
        self.losses.extend(row.value("loss"));
    }
}

/// A fitted model as Python keeps it: what there is to say about it, x, θ, and the shift and factor of
/// every feature.
type Kept<'py> = (String, [Bound<'py, PyAny>; 4]);

fn model((about, numbers): &Kept) -> Result<Model> {
    let about: About = serde_json::from_str(about).map_err(|error| {
        Error::storage("storage/model", format!("the estimator is damaged: {error}"))
    })?;
    let mut read = Vec::new();
    for values in numbers {
        read.push(arrays::doubles(values)?);
    }
    let [x, theta, shift, factor] =
        <[Vec<f64>; 4]>::try_from(read).unwrap_or_else(|_| Default::default());
    let fits = |values: &Vec<f64>| values.is_empty() || values.len() == about.features;
    if !fits(&shift) || !fits(&factor) {
        return Err(Error::storage("storage/model", "the estimator is damaged: its scaling"));
    }
    let scaling = Scalings::all(Scaling { shift, factor, log: about.log, row: about.row });
    Ok(Model { about, x: vec![x], theta: vec![theta], scaling })
}

/// The probability of each class for each row of raw features, as doubles.
#[pyfunction]
pub fn probabilities<'py>(
    py: Python<'py>,
    kept: Kept<'py>,
    matrix: Matrix<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let read = || -> Result<_> { Ok((model(&kept)?, arrays::features(&matrix, py)?)) };
    let found = read().and_then(|(model, features)| {
        detached(py, || model.probabilities(0, &features, &registries().problems))
    });
    Ok(bytes(py, &found.map_err(|error| raise(py, error))?))
}

/// θ of a node that was not there, on its raw rows, and whether its inner problem was solved exactly.
#[pyfunction]
pub fn personal<'py>(
    py: Python<'py>,
    kept: Kept<'py>,
    matrix: Matrix<'py>,
    labels: Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyBytes>, bool)> {
    let read = || -> Result<_> {
        let (model, features) = (model(&kept)?, arrays::features(&matrix, py)?);
        let classes = model.about.classes.len();
        let labels = arrays::numbered(&labels, classes, features.rows(), "labels")?;
        Ok((model, features, labels))
    };
    let found = read().and_then(|(model, features, labels)| {
        detached(py, || -> Result<_> {
            let Model { about, x, theta, scaling } = model;
            let scaled = scaling.of(0).apply(features);
            let all: Vec<u32> = (0..labels.len() as u32).collect();
            let data = Data {
                test: Dataset::new(scaled.select(&[]), Vec::new()),
                train: Dataset::new(scaled, labels),
                classes: about.classes,
                scaling,
                columns: None,
                own: None,
                left_out: Vec::new(),
            };
            let problem = registries().problems.choose(&about.problem, &about.params)?;
            let problem = &**problem.build.get::<f64>();
            let personal = Personal { problem, data: &data, seed: about.seed, batch: None };
            personal.theta(&all, &x[0], &theta[0])
        })
    });
    let (theta, solved) = found.map_err(|error| raise(py, error))?;
    Ok((bytes(py, &theta), solved))
}

fn bytes<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    PyBytes::new(py, &bytes)
}
