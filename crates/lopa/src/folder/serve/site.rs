//! What a site gained: its personal model beside a model of its own rows alone and the mean of all models, on rows of
//! the site that none of them was trained on.
//!
//! ```text
//! together   (x_i, θ_i) of the site
//! alone      a linear model of the site's training rows, as for a newcomer: see `adapt`
//! mean       (x̄, mean of the θ_i), where the folder has the θ_i of all nodes
//! ```
//!
//! Intervals are those of the percentile bootstrap over rows: the measure on rows drawn with replacement, from the
//! 2.5 % to the 97.5 % quantile. A difference is one of two models on the same drawn rows.

use crate::data::{Data, Dataset, Target, Targets};
use crate::error::{Error, Result};
use crate::experiment::FinalTheta;
use crate::folder::model::Model;
use crate::math::concordance::{Seen, concordance};
use crate::math::errors::Errors;
use crate::math::random::{Purpose, Stream};
use crate::problem::predictor::decide;
use crate::problem::{At, Problem};
use crate::run::Setup;
use crate::run::evaluate::mean;

use super::adapt::{Bench, folds, linear};
use super::score::{Answers, AnyScore};

/// Draws of the bootstrap.
pub const DRAWS: usize = 1000;

/// The index of these draws; those of a newcomer's folds are lower.
const DRAWN: u64 = 17;

/// Folds of the training rows: the model alone chooses its ridge on one.
const FOLDS: usize = 5;

/// How the models do on a site's own rows.
#[derive(Debug, Clone)]
pub struct Site {
    /// The rows that it trained on.
    pub trained: usize,
    /// The rows that they are judged on.
    pub judged: usize,
    /// Which rows these are, in words.
    pub rows: &'static str,
    /// The measure that decides.
    pub measure: &'static str,
    /// The models: together, then alone and mean as far as there are any.
    pub models: Vec<Judged>,
    /// Why models are missing.
    pub missing: Vec<String>,
}

/// How one model does.
#[derive(Debug, Clone)]
pub struct Judged {
    /// `together`, `alone` or `mean`.
    pub name: &'static str,
    /// All measures.
    pub score: AnyScore,
    /// The measure that decides.
    pub value: Interval,
    /// How much better the model trained together is by it, below 0 if it is worse; `None` for that model itself.
    pub gain: Option<Interval>,
}

/// A number with the interval that it lies in, by 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Judges the models of a run on a site's own rows.
///
/// # Errors
/// If the experiment has no data, or the site has no rows that it did not train on.
pub fn judge(setup: &Setup, model: &Model, node: usize) -> Result<Site> {
    let Setup { experiment, data, world, seed, .. } = *setup;
    let Some(data) = data else {
        let message = "there are no rows to judge a site by: the problem takes no data";
        return Err(Error::config("config/no-meaning", message));
    };
    let own_rows = &world.partition.nodes[node];
    let (set, rows, which) = judged_rows(data, world.holdout.get(node), own_rows, node)?;
    let features = set.features().select(&rows);
    let target = data.target();
    let undo = |values: &mut [f64]| data.scaling.of(node).target.undo(values);
    let mut truth = Answers::of(set, &rows, target);
    if let Answers::Numbers(targets) = &mut truth {
        undo(&mut targets.values);
    }
    let problem = experiment.problem.build.get::<f64>();
    let said = |problem: &dyn Problem<f64>, at: At<f64>| {
        let mut said = problem.predictions(target, at, &features)?;
        undo(&mut said);
        Some(said)
    };

    let own = model.at(node)?;
    let (x, mut theta) = (own.x.to_vec(), own.theta.to_vec());
    if experiment.run.final_theta == FinalTheta::Refitted {
        // The model has seen the rows that it is judged on; the one that was judged had not.
        let point = (x.clone(), theta.clone());
        theta = setup.exact_theta(node..node + 1, &[point], false, &mut Ok)?.theta.swap_remove(0);
    }
    let mut found = vec![("together", said(&**problem, At { x: &x, theta: &theta }))];
    let mut missing = Vec::new();

    if own_rows.len() < FOLDS {
        let few = "There is no model of the site's rows alone to compare with: they are too few.";
        missing.push(few.to_string());
    } else {
        let labels: Vec<u32> =
            own_rows.iter().map(|&row| data.train.labels()[row as usize]).collect();
        let to_rows = |fold: Vec<u32>| fold.iter().map(|&at| own_rows[at as usize]).collect();
        let mut all: Vec<Vec<u32>> = folds(&labels, FOLDS, seed).into_iter().map(to_rows).collect();
        all.insert(0, Vec::new());
        let mut bench = Bench { data, seed, batch: None, solved: true };
        let theta = bench.alone(&all, 0)?;
        found.push(("alone", said(&linear(target), At { x: &[], theta: &theta })));
    }
    if model.lacks_some() {
        missing.push(
            "There is no mean of all models to compare with: the personal parts of the other sites \
             stayed with them."
                .to_string(),
        );
    } else {
        let (x, theta) =
            (mean(model.x.iter().map(Vec::as_slice)), mean(model.theta.iter().map(Vec::as_slice)));
        found.push(("mean", said(&**problem, At { x: &x, theta: &theta })));
    }
    let found = found.into_iter().map(|(name, said)| Some((name, said?))).collect::<Option<_>>();
    let found: Vec<(&'static str, Vec<f64>)> = found.ok_or_else(|| {
        let message = format!("`{}` does not predict anything", experiment.problem.name);
        Error::config("config/no-meaning", message)
    })?;
    let models = truth.judge(&found, target.width(), (seed, node));
    let (trained, judged) = (own_rows.len(), rows.len());
    Ok(Site { trained, judged, rows: which, measure: truth.measure(), models, missing })
}

/// The rows of a site that it did not train on, and which they are. Of test rows that all sites have in common, those of
/// the classes that the site has: it cannot know others.
fn judged_rows<'a>(
    data: &'a Data,
    held: Option<&Vec<u32>>,
    trained: &[u32],
    node: usize,
) -> Result<(&'a Dataset, Vec<u32>, &'static str)> {
    if let Some(held) = held.filter(|held| !held.is_empty()) {
        return Ok((&data.train, held.clone(), "that it held out"));
    }
    let all = 0..data.test.len() as u32;
    let (rows, which): (Vec<u32>, _) = match (data.test.owners(), data.target()) {
        (Some(own), _) => (own[node].clone().collect(), "of its own for testing"),
        (None, Target::Classes(classes)) => {
            let mut known = vec![false; classes];
            trained
                .iter()
                .for_each(|&row| known[data.train.labels()[row as usize] as usize] = true);
            let has = |row: &u32| known[data.test.labels()[*row as usize] as usize];
            (all.filter(has).collect(), "of the common test set, of the classes that it has")
        }
        (None, _) => (all.collect(), "of the common test set"),
    };
    match rows.is_empty() {
        false => Ok((&data.test, rows, which)),
        true => Err(Error::data("data/empty", "the site has no rows that it did not train on")
            .hint("hold some out: `holdout = 0.2` in [data], then run it again")),
    }
}

impl Answers {
    /// The measure that decides.
    fn measure(&self) -> &'static str {
        match self {
            Answers::Classes(_) => "accuracy",
            Answers::Numbers(_) => "RMSE",
            Answers::Survival(_) => "concordance",
        }
    }

    /// How much better `ours` is than `theirs`.
    fn gain(&self, ours: f64, theirs: f64) -> f64 {
        match self {
            Answers::Numbers(_) => theirs - ours,
            _ => ours - theirs,
        }
    }

    /// The measure on some rows, of which each may be there several times.
    fn value(&self, said: &[f64], width: usize, rows: &[usize]) -> Option<f64> {
        match self {
            Answers::Classes(truth) => {
                let right = |&&row: &&usize| {
                    let one = decide(&said[row * width..(row + 1) * width], width);
                    truth.numbers[row] == one.first().map(|&class| class as usize)
                };
                let hits = rows.iter().filter(right).count();
                (!rows.is_empty()).then(|| hits as f64 / rows.len() as f64)
            }
            Answers::Numbers(Targets { outputs, values }) => {
                let of = |all: &[f64]| -> Vec<f64> {
                    let row = |&row: &usize| &all[row * outputs..(row + 1) * outputs];
                    rows.iter().flat_map(row).copied().collect()
                };
                Some(Errors::of(&of(values), &of(said), &vec![1.0; *outputs])?.rmse)
            }
            Answers::Survival(seen) => {
                let seen: Vec<Seen> = rows.iter().map(|&row| seen[row]).collect();
                let said: Vec<f64> = rows.iter().map(|&row| said[row]).collect();
                concordance(&seen, &said)
            }
        }
    }

    /// Each model with its intervals; the first is the one trained together.
    fn judge(
        &self,
        models: &[(&'static str, Vec<f64>)],
        width: usize,
        (seed, node): (u64, usize),
    ) -> Vec<Judged> {
        let all: Vec<usize> = (0..self.rows()).collect();
        let values = |rows: &[usize]| -> Vec<f64> {
            let value = |(_, said): &(_, Vec<f64>)| self.value(said, width, rows);
            models.iter().map(|model| value(model).unwrap_or(f64::NAN)).collect()
        };
        let now = values(&all);
        let mut stream = Stream::new(seed, Purpose::Data, node);
        stream.seek(DRAWN, 0);
        let draw = |_| -> Vec<f64> {
            let rows: Vec<usize> = all.iter().map(|_| stream.below(all.len())).collect();
            values(&rows)
        };
        let drawn: Vec<Vec<f64>> = (0..DRAWS).map(draw).collect();
        let judged = |(at, (name, said)): (usize, &(&'static str, Vec<f64>))| {
            let of = |of: &dyn Fn(&[f64]) -> f64| {
                Interval::new(of(&now), drawn.iter().map(|values| of(values)))
            };
            Judged {
                name,
                score: self.score(said, width),
                value: of(&|values| values[at]),
                gain: (at > 0).then(|| of(&|values| self.gain(values[0], values[at]))),
            }
        };
        models.iter().enumerate().map(judged).collect()
    }
}

impl Interval {
    fn new(value: f64, drawn: impl Iterator<Item = f64>) -> Interval {
        let mut drawn: Vec<f64> = drawn.filter(|value| value.is_finite()).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| match drawn.len() {
            0 => f64::NAN,
            count => drawn[((share * count as f64) as usize).min(count - 1)],
        };
        Interval { value, low: at(0.025), high: at(0.975) }
    }

    /// Whether it is above 0 (1), below 0 (−1), or neither (0).
    pub fn sign(&self) -> i32 {
        i32::from(self.low > 0.0) - i32::from(self.high < 0.0)
    }
}
