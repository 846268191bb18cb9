//! A personal model for a new node: x is fixed, and θ solves the inner problem on the node's own
//! rows.
//!
//! ```text
//! x̄  = mean over the nodes of the run (or x_i of one of them)
//! θ  = argmin_θ g(x̄, θ),   g on all rows of the new node
//! ```
//!
//! It is judged by cross-validation, on rows that were not trained on, against two others: *alone*, a
//! linear model on the same scaled features, trained on the node's rows only, whose ridge is
//! chosen on one of the folds it trains on; and *mean*, the run's (x̄, mean of the θ_i), which has seen
//! none of the rows.

use crate::config::Registry;
use crate::data::{
    Data, Dataset, Features, SURVIVAL, Scaling, Scalings, Target, TargetScaling, Targets,
};
use crate::error::{Error, Kind, Result};
use crate::folder::model::{About, Model};
use crate::math::concordance::Seen;
use crate::math::portable::ln;
use crate::math::random::{Purpose, Stream};
use crate::problem::builtin::hyperparameter;
use crate::problem::builtin::loss::LossName;
use crate::problem::{AnyProblem, At, Bilevel, Problem, Setting};
use crate::run::evaluate::exact;
use crate::run::evaluate::mean;

use super::score::{Answers, AnyScore};

/// The ridges that a node alone chooses from.
const RIDGES: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// The index of the folds' draws; partitions and preparation have lower ones.
const FOLDS: u64 = 16;

/// A new node, which took no part in training.
#[derive(Debug, Clone, Copy)]
pub struct Newcomer<'a> {
    /// The name of its model.
    pub name: &'a str,
    /// Its raw features.
    pub features: &'a Features<f64>,
    /// The class of each row, all of them classes of the model; or its numbers.
    pub answers: &'a Answers,
    /// The node whose x it takes; the mean of all by default.
    pub like: Option<usize>,
    /// The batch size of the run, which losses may be scaled by.
    pub batch: Option<usize>,
    /// How many parts its rows are split into to judge it.
    pub folds: usize,
}

/// A newcomer's model, and how it compares on rows that were not trained on.
#[derive(Debug, Clone)]
pub struct Adapted {
    /// The model of one node, trained on all rows.
    pub model: Model,
    /// Whether every inner problem was solved exactly.
    pub solved: bool,
    /// x of the run, θ of the other folds.
    pub adapted: AnyScore,
    /// A linear model trained on the other folds.
    pub alone: AnyScore,
    /// x and the mean θ of the run.
    pub mean: AnyScore,
}

/// Adapts a run's model to a newcomer.
pub fn adapt(model: &Model, who: &Newcomer, problems: &Registry<AnyProblem>) -> Result<Adapted> {
    let About { problem: name, params, seed, .. } = &model.about;
    let target = model.about.target();
    let width = target.width();
    let chosen = problems.choose(name, params)?;
    let problem = chosen.build.get::<f64>();
    if !problem.transfers() || width == 0 {
        let message = format!("nothing that `{name}` learns helps a node that was not there");
        return Err(Error::config("config/no-meaning", message).hint(
            "`representation`, `hyperparameter` and `meta-learning` learn an x for all nodes",
        ));
    }
    let rows = who.answers.rows();
    if who.folds < 3 || rows < who.folds {
        let message = format!("{rows} rows cannot be split into {} folds", who.folds);
        return Err(Error::data("data/too-few-samples", message)
            .hint("at least 3 folds are needed, and a row for each"));
    }
    let (x, common) = shared(model, who.like)?;
    let all: Vec<u32> = (0..rows as u32).collect();
    let whole = who.scaled(model, &all);
    let folds = folds(whole.train.labels(), who.folds, *seed);
    let mut found = [(); 3].map(|()| vec![0.0; rows * width]);
    let mut solved = true;
    for (at, held) in folds.iter().enumerate() {
        let others: Vec<u32> = rest(&folds, &[at]);
        // Rows that are held out tell nothing, also not by their moments.
        let data = who.scaled(model, &others);
        let mut bench = Bench { data: &data, seed: *seed, batch: who.batch, solved };
        let theta = bench.solve(&**problem, &others, &x, &common)?;
        let theta_alone = bench.alone(&folds, at)?;
        solved = bench.solved;
        let on = data.train.features().select(held);
        let ours = problem.predictions(target, At { x: &x, theta: &theta }, &on);
        let alone = At { x: &[], theta: &theta_alone };
        let theirs = Problem::<f64>::predictions(&linear(target), target, alone, &on);
        let mean = problem.predictions(target, At { x: &x, theta: &common }, &on);
        for (found, said) in found.iter_mut().zip([ours, theirs, mean]) {
            let mut said =
                said.ok_or_else(|| Error::config("config/no-meaning", "nothing is predicted"))?;
            data.scaling.of(0).target.undo(&mut said);
            for (row, p) in held.iter().zip(said.chunks_exact(width)) {
                found[*row as usize * p.len()..][..p.len()].copy_from_slice(p);
            }
        }
    }
    let mut bench = Bench { data: &whole, seed: *seed, batch: who.batch, solved };
    let theta = bench.solve(&**problem, &all, &x, &common)?;
    let solved = bench.solved;
    let about = About { nodes: vec![who.name.to_string()], privacy: None, ..model.about.clone() };
    let [adapted, alone, mean] = found.map(|said| who.answers.score(&said, width));
    let scaling = whole.scaling;
    Ok(Adapted {
        model: Model { about, x: vec![x], theta: vec![theta], scaling },
        solved,
        adapted,
        alone,
        mean,
    })
}

impl Newcomer<'_> {
    /// All its rows, scaled as the run's nodes were; where these scaled by moments of their own, by the moments of
    /// the given rows.
    fn scaled(&self, model: &Model, rows: &[u32]) -> Data {
        let seen = || self.features.select(rows);
        let mut scaling = match model.scaling.as_slice() {
            [common] => common.clone(),
            [first, others @ ..] if others.iter().all(|other| alike(first, other)) => {
                first.clone().refilled(&seen())
            }
            // Each node was scaled by its own moments, and so is the new one.
            [first, ..] => Scaling::own(first, &seen()),
            [] => Scaling::default(),
        };
        let agreed = model.scaling.as_slice().windows(2).all(|two| two[0].target == two[1].target);
        if let (Answers::Numbers(targets), false) = (self.answers, agreed) {
            scaling.target = TargetScaling::of(&targets.clone().select(rows));
        }
        let scaled = scaling.apply(self.features.clone());
        let empty = Dataset::new(scaled.select(&[]), Vec::new());
        let train = Dataset::new(scaled, self.answers.labels());
        Data {
            train: match self.answers {
                Answers::Classes(_) => train,
                Answers::Numbers(targets) => {
                    train.targeted(targets.clone().scaled(&scaling.target))
                }
                Answers::Survival(seen) => {
                    let row = |seen: &Seen| [seen.time, f64::from(seen.event)];
                    let values = seen.iter().flat_map(row).collect();
                    train.targeted(Targets { outputs: SURVIVAL, values })
                }
            },
            test: empty,
            classes: model.about.classes.clone(),
            outputs: model.about.outputs.clone(),
            survival: matches!(self.answers, Answers::Survival(_)),
            scaling: Scalings::all(scaling),
            columns: None,
            unnamed: Default::default(),
            own: None,
            left_out: Vec::new(),
        }
    }
}

/// Whether two nodes scale features alike; they may fill missing values by means of their own.
fn alike(one: &Scaling, other: &Scaling) -> bool {
    one.shift == other.shift && one.factor == other.factor
}

/// x, and the mean of the θ_i in this process: a peer has only its own.
fn shared(model: &Model, like: Option<usize>) -> Result<(Vec<f64>, Vec<f64>)> {
    let x = match like {
        Some(node) => model.at(node)?.x.to_vec(),
        None => {
            // Nodes that have left have none.
            let left =
                |x: &&[f64]| !model.about.chapters.is_empty() && x.iter().all(|x| x.is_nan());
            let all: Vec<&[f64]> = model.x.iter().map(Vec::as_slice).filter(|x| !left(x)).collect();
            mean(all.into_iter())
        }
    };
    let here = (0..model.theta.len()).filter(|&node| !model.lacks(node));
    let here: Vec<&[f64]> = here.map(|node| &model.theta[node][..]).collect();
    let theta = mean(here.into_iter());
    if theta.is_empty() || !x.iter().chain(&theta).all(|value| value.is_finite()) {
        let message = "the run diverged: its model has values that are not finite";
        return Err(Error::new(Kind::Run, "run/diverged", message)
            .hint("choose another seed or algorithm, or run it again with smaller steps"));
    }
    Ok((x, theta))
}

/// Rows in folds of nearly equal size, each with nearly the same share of every class.
pub(super) fn folds(labels: &[u32], count: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut stream = Stream::new(seed, Purpose::Data, 0);
    stream.seek(FOLDS, 0);
    let mut rows: Vec<u32> = (0..labels.len() as u32).collect();
    stream.shuffle(&mut rows);
    rows.sort_by_key(|&row| labels[row as usize]);
    let mut folds = vec![Vec::new(); count];
    rows.iter().enumerate().for_each(|(at, &row)| folds[at % count].push(row));
    folds
}

/// The rows of all folds but some.
fn rest(folds: &[Vec<u32>], but: &[usize]) -> Vec<u32> {
    let others = folds.iter().enumerate().filter(|(at, _)| !but.contains(at));
    others.flat_map(|(_, rows)| rows).copied().collect()
}

/// Finds θ where x is known: node by node, each on its own rows.
#[derive(Clone, Copy)]
pub struct Personal<'a> {
    /// The problem.
    pub problem: &'a dyn Problem<f64>,
    /// Scaled rows of any nodes, as training rows.
    pub data: &'a Data,
    /// The seed of the run.
    pub seed: u64,
    /// The batch size of the run, which losses may be scaled by.
    pub batch: Option<usize>,
}

impl Personal<'_> {
    /// argmin_θ g(x, θ) on a node's rows, searched from a guess (empty: from 0), and whether it was
    /// found exactly.
    pub fn theta(&self, rows: &[u32], x: &[f64], guess: &[f64]) -> Result<(Vec<f64>, bool)> {
        let setting = Setting {
            nodes: 1,
            seed: self.seed,
            batch: self.batch,
            data: Some(self.data),
            partition: &[rows.to_vec()],
            whole: true,
            ..Setting::default()
        };
        let mut parts = self.problem.parts(&setting, 0..1)?.each;
        let part: &mut dyn Bilevel<f64> = &mut *parts[0];
        let zero = vec![0.0; part.dims().p];
        let guess = if guess.is_empty() { &zero } else { guess };
        if (part.dims().n, part.dims().p) != (x.len(), guess.len()) {
            let message = "the model does not fit the new rows: x or θ has another length";
            return Err(Error::data("data/shape", message));
        }
        let found = exact::inner(part, x, guess);
        match part.error() {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }
}

/// Solves inner problems on some of the rows.
pub(super) struct Bench<'a> {
    pub data: &'a Data,
    pub seed: u64,
    pub batch: Option<usize>,
    pub solved: bool,
}

impl Bench<'_> {
    /// argmin_θ g(x, θ) on some rows.
    fn solve(
        &mut self,
        problem: &dyn Problem<f64>,
        rows: &[u32],
        x: &[f64],
        guess: &[f64],
    ) -> Result<Vec<f64>> {
        let &mut Bench { data, seed, batch, .. } = self;
        let personal = Personal { problem, data, seed, batch };
        let (theta, solved) = personal.theta(rows, x, guess)?;
        self.solved &= solved;
        Ok(theta)
    }

    /// θ of the linear model trained on the rows outside a fold.
    pub fn alone(&mut self, folds: &[Vec<u32>], at: usize) -> Result<Vec<f64>> {
        let next = (at + 1) % folds.len();
        let (inner, held) = (rest(folds, &[at, next]), &folds[next]);
        let target = self.data.target();
        let answers = Answers::of(&self.data.train, held, target);
        let on = self.data.train.features().select(held);
        let (model, strengths) = (linear(target), on.cols() + 1);
        let mut best: Option<(f64, Vec<f64>, Vec<f64>)> = None;
        let mut guess = Vec::new();
        // From the strongest ridge on: each solution is a good guess for the next.
        for ridge in RIDGES.into_iter().rev() {
            let x = vec![ln(ridge); strengths];
            guess = self.solve(&model, &inner, &x, &guess)?;
            let at = At { x: &x, theta: &guess };
            let said = Problem::<f64>::predictions(&model, target, at, &on);
            let loss = said.and_then(|said| answers.score(&said, target.width()).loss());
            let loss = loss.unwrap_or(f64::INFINITY);
            if best.as_ref().is_none_or(|(least, ..)| loss < *least) {
                best = Some((loss, x, guess.clone()));
            }
        }
        let (_, x, guess) = best.expect("there is a ridge");
        self.solve(&model, &rest(folds, &[at]), &x, &guess)
    }
}

/// Mean loss of a linear model with a bias; every entry of x is the logarithm of its ridge.
pub(super) fn linear(target: Target) -> hyperparameter::Options {
    let loss = matches!(target, Target::Classes(_)).then_some(LossName::Softmax);
    hyperparameter::Options { bias: true, loss, ..Default::default() }
}
