//! Training in memory, for estimators: no run folder, a model as arrays.
//!
//! ```text
//! x̄    what LoPA-GT ends with, the mean over the nodes
//! θ_i  = argmin_θ g_i(x̄, θ), exactly, on all rows of node i; with a privacy budget, what LoPA-GT ends with
//! ```

use std::sync::atomic::AtomicBool;

use lopa::data::{
    Data, Dataset, Origin, Scaling, Scalings, Target, TargetScaling, Targets, check_spelling,
};
use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::folder::model::{About, Model, Spent};
use lopa::folder::serve::Personal;
use lopa::problem::private::Key;
use lopa::run::evaluate::mean;
use lopa::run::private::fresh;
use lopa::run::reserved::{Claim, Reservation, Reserved};
use lopa::run::steps::TOLD;
use lopa::run::{Context, Outcome, Setup, Solved, Store};
use lopa_study::choose::{self, Ended};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::arrays::{self, Matrix};
use crate::errors::raise;
use crate::experiment::{Teller, pool};
use crate::going::detached;
use crate::{registries, values};

/// Trains the first algorithm of an experiment on arrays. Returns the properties of the model as
/// JSON; then x̄, a row of θ for each node, the shift and factor of every feature, and those of every
/// number to predict, as doubles.
#[pyfunction]
pub fn fit<'py>(
    py: Python<'py>,
    json: String,
    arrays: Py<PyAny>,
    threads: usize,
    tell: Py<PyAny>,
) -> PyResult<(String, [Bound<'py, PyBytes>; 6])> {
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
        Fit { experiment, data, context: &context, teller: &mut teller }.whole()
    });
    if let Some(raised) = teller.raised {
        return Err(raised);
    }
    let (said, model) = done.map_err(|error| raise(py, error))?;
    let Scaling { shift, factor, target, .. } = model.scaling.of(0);
    let theta = model.theta.concat();
    let numbers = [&model.x[0], &theta, shift, factor, &target.shift, &target.factor];
    Ok((said, numbers.map(|values| bytes(py, values))))
}

struct Fit<'a, 'b> {
    experiment: Experiment,
    data: Data,
    context: &'a Context<'a>,
    teller: &'a mut Teller<'b>,
}

/// Draws a key for each fit, and keeps no ledger: every fit spends its budget again.
struct Fresh;

impl Store for Fresh {
    fn reserve(&mut self, _: &[Origin], _: &Reservation) -> Result<Reserved> {
        Ok(Reserved { key: Key(fresh()?), claim: Claim::default() })
    }
}

impl Fit<'_, '_> {
    fn whole(self) -> Result<(String, Model)> {
        let (data, context) = (Some(&self.data), self.context);
        if self.experiment.protects_rows() {
            let runs = self.experiment.run_on(data, context, &mut Fresh, &mut *self.teller)?;
            return self.private(runs);
        }
        let runs = choose::run(&self.experiment, data, context, &mut *self.teller);
        let runs = runs.map_err(|error| match error.id {
            "run/diverged" => error
                .hint("choose smaller step sizes, or leave `steps` to lopa; scale the features"),
            _ => error,
        })?;
        let Some(Ended { outcome, last, .. }) = runs.into_iter().next() else {
            return Err(Error::config("config/no-meaning", "there is no algorithm"));
        };
        let iterations = outcome.row.iteration;
        let steps = self.steps(&outcome);
        let (model, solved) = self.model(outcome)?;
        let said = json!({
            "about": model.about, "iterations": iterations, "loss": last, "solved": solved,
            "steps": steps,
        });
        Ok((said.to_string(), model))
    }

    /// The model of a run with noise: nothing is measured or solved on the rows.
    fn private(&self, runs: Vec<Outcome>) -> Result<(String, Model)> {
        let none = || Error::config("config/no-meaning", "there is no algorithm");
        let outcome = runs.into_iter().next().ok_or_else(none)?;
        if let Some(why) = &outcome.diagnosis {
            let message = format!("the run diverged: {why}");
            return Err(Error::new(lopa::error::Kind::Run, "run/diverged", message));
        }
        let spent = outcome.row.value("epsilon").zip(self.experiment.privacy.as_ref());
        let privacy = spent.map(|(epsilon, spec)| Spent {
            epsilon,
            delta: spec.delta,
            simulated: spec.is_simulated(),
        });
        let x = mean(outcome.models.iter().map(|(x, _)| &x[..]));
        let theta = outcome.models.iter().map(|(_, theta)| theta.clone()).collect();
        let about = About { privacy, ..self.about(&outcome) };
        let model = Model { about, x: vec![x], theta, scaling: self.data.scaling.clone() };
        let said = json!({
            "about": model.about, "iterations": outcome.row.iteration, "loss": null, "solved": false,
            "steps": self.steps(&outcome),
        });
        Ok((said.to_string(), model))
    }

    /// The steps that are given, and the last ones of those that were found.
    fn steps(&self, outcome: &Outcome) -> Value {
        let mut steps = json!(self.experiment.algorithms[0].choice.params());
        for (key, told) in ["alpha", "beta", "lambda"].iter().zip(TOLD) {
            if let (true, Some(found)) = (steps.get(key).is_none(), outcome.row.value(told)) {
                steps[*key] = found.into();
            }
        }
        steps
    }

    fn seed(&self) -> u64 {
        self.experiment.run.seeds.first().copied().unwrap_or_default()
    }

    /// x̄ with the exact θ_i of every node on all of its rows.
    fn model(&self, outcome: Outcome) -> Result<(Model, bool)> {
        let seed = self.seed();
        let x = mean(outcome.models.iter().map(|(x, _)| &x[..]));
        let (experiment, data, pool) = (&self.experiment, Some(&self.data), self.context.pool);
        let world = &experiment.world(data, seed)?;
        let setup = Setup { experiment, data, world, seed, pool };
        let at = |(_, theta): &(Vec<f64>, Vec<f64>)| (x.clone(), theta.clone());
        let points: Vec<_> = outcome.models.iter().map(at).collect();
        let Solved { theta, unsolved } =
            setup.exact_theta(0..points.len(), &points, false, &mut Ok)?;
        let about = self.about(&outcome);
        Ok((Model { about, x: vec![x], theta, scaling: self.data.scaling.clone() }, unsolved == 0))
    }

    fn about(&self, outcome: &Outcome) -> About {
        let problem = &self.experiment.problem;
        let Scaling { log, row, .. } = *self.data.scaling.of(0);
        About {
            algorithm: outcome.algorithm.clone(),
            seed: self.seed(),
            problem: problem.name.clone(),
            params: problem.params().clone(),
            features: self.data.train.cols(),
            classes: self.data.classes.clone(),
            outputs: self.data.outputs.clone(),
            survival: self.data.survival,
            columns: None,
            unnamed: Default::default(),
            diverged: false,
            log,
            row,
            privacy: None,
            fills: false,
            nodes: Vec::new(),
            groups: Default::default(),
            chapters: Vec::new(),
        }
    }
}

/// Which of these classes, given with their numbers of rows, differ by their spelling alone; none if
/// none do.
#[pyfunction]
pub fn spelling(classes: Vec<(String, usize)>) -> Option<String> {
    check_spelling(&classes).err().map(|error| error.message)
}

/// The graph of N silos, and the rows of a minibatch for silos with this many rows on average; none for
/// all of them.
#[pyfunction]
pub fn usual(silos: usize, rows: usize) -> (&'static str, Option<usize>) {
    (choose::graph(silos), choose::batch(rows))
}

/// A fitted model as Python keeps it: its properties, x, θ, the shift and factor of every feature, and
/// those of every number to predict.
type Kept<'py> = (String, [Bound<'py, PyAny>; 6]);

fn model((about, numbers): &Kept) -> Result<Model> {
    let about: About = serde_json::from_str(about).map_err(|error| {
        Error::storage("storage/model", format!("the estimator is damaged: {error}"))
    })?;
    let mut read = Vec::new();
    for values in numbers {
        read.push(arrays::doubles(values)?);
    }
    let [x, theta, shift, factor, target_shift, target_factor] =
        <[Vec<f64>; 6]>::try_from(read).unwrap_or_else(|_| Default::default());
    let fits = |values: &Vec<f64>| values.is_empty() || values.len() == about.features;
    let target = TargetScaling { shift: target_shift, factor: target_factor };
    let outputs = about.outputs.len();
    let targets = target.shift.len() == outputs && target.factor.len() == outputs;
    if !fits(&shift) || !fits(&factor) || !targets {
        return Err(Error::storage("storage/model", "the estimator is damaged: its scaling"));
    }
    let scaling = Scalings::all(Scaling {
        shift,
        factor,
        log: about.log,
        row: about.row,
        target,
        ..Scaling::default()
    });
    Ok(Model { about, x: vec![x], theta: vec![theta], scaling })
}

/// The probability of each class, or each number, for each row of raw features, as doubles.
#[pyfunction]
pub fn predictions<'py>(
    py: Python<'py>,
    kept: Kept<'py>,
    matrix: Matrix<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let read = || -> Result<_> { Ok((model(&kept)?, arrays::features(&matrix, py)?)) };
    let found = read().and_then(|(model, features)| {
        detached(py, || model.predictions(0, &features, &registries().problems))
    });
    Ok(bytes(py, &found.map_err(|error| raise(py, error))?))
}

/// θ of a new node, on its raw rows with their classes or numbers, and whether its inner problem was
/// solved exactly.
#[pyfunction]
pub fn personal<'py>(
    py: Python<'py>,
    kept: Kept<'py>,
    matrix: Matrix<'py>,
    labels: Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyBytes>, bool)> {
    let read = || -> Result<_> {
        let (model, features) = (model(&kept)?, arrays::features(&matrix, py)?);
        let rows = features.rows();
        let (labels, targets) = match model.about.target() {
            Target::Classes(classes) => (arrays::numbered(&labels, classes, rows, "labels")?, None),
            Target::Survival => {
                return Err(Error::config("config/no-meaning", "estimators predict no risks"));
            }
            Target::Numbers(outputs) => {
                let values = arrays::doubles(&labels)?;
                if values.len() != rows * outputs || !values.iter().all(|v| v.is_finite()) {
                    return Err(Error::data("data/shape", "the numbers to predict do not fit"));
                }
                (vec![0; rows], Some(Targets { outputs, values }))
            }
        };
        Ok((model, features, labels, targets))
    };
    let found = read().and_then(|(model, features, labels, targets)| {
        detached(py, || -> Result<_> {
            let Model { about, x, theta, scaling } = model;
            let scaled = scaling.of(0).apply(features);
            let all: Vec<u32> = (0..labels.len() as u32).collect();
            let test = Dataset::new(scaled.select(&[]), Vec::new());
            let train = Dataset::new(scaled, labels);
            let data = Data {
                test,
                train: match targets {
                    None => train,
                    Some(targets) => train.targeted(targets.scaled(&scaling.of(0).target)),
                },
                classes: about.classes,
                outputs: about.outputs,
                survival: false,
                scaling,
                columns: None,
                unnamed: Default::default(),
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
