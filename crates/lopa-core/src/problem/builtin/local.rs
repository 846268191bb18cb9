//! The data of a node in a learning problem: samples of g, samples of f, and the test set.

use std::ops::Range;

use super::data;
use super::loss::decide;
use crate::data::{Data, Samples, Target};
use crate::error::{Error, Result};
use crate::math::concordance::{Seen, concordance};
use crate::math::errors::Errors;
use crate::math::parallel;
use crate::math::random::{Purpose, Stream};
use crate::math::real::Real;
use crate::problem::Setting;

/// Separates these draws from those of the partition, which have the same purpose.
const DRAWS: u64 = 1 << 20;

/// The stream of a node's splits (`slot` 0) and corruptions (`slot` 1).
pub(super) fn draws(seed: u64, node: usize, slot: u32) -> Stream {
    let mut stream = Stream::new(seed, Purpose::Data, node);
    stream.seek(DRAWS, slot);
    stream
}

/// A node's samples.
#[derive(Debug, Clone)]
pub struct Local<T> {
    /// The samples of g.
    pub train: Samples<T>,
    /// The samples of f.
    pub validation: Samples<T>,
    /// Whether they are others than those of g.
    pub apart: bool,
    /// The test samples.
    pub test: Samples<T>,
    /// The samples that the node holds out; may be empty.
    pub holdout: Samples<T>,
    /// What the samples of the whole network are labelled with.
    pub target: Target,
    /// What 1 stands for in each scaled target; empty for classes.
    pub units: Vec<f64>,
    /// Whether there are test samples, and samples held out, at this node or another.
    pub judged: [bool; 2],
}

impl<T: Real> Local<T> {
    /// Splits the rows of some nodes at random; `validation` is the share that goes to f, unless the data name its
    /// rows. With 0, f and g have the same samples.
    pub fn split(
        name: &str,
        validation: f64,
        setting: &Setting,
        nodes: Range<usize>,
    ) -> Result<Vec<Local<T>>> {
        let apart = validation > 0.0 || named(setting).is_some();
        let one = |i| {
            let local = Local::of_node(name, i, setting, |rows, stream| {
                stream.shuffle(rows);
                match !apart || setting.whole {
                    true => Some((rows.to_vec(), rows.to_vec())),
                    false => cut(rows, validation, setting),
                }
            })?;
            Ok(Local { apart, ..local })
        };
        parallel::map(setting.pool, nodes, one).into_iter().collect()
    }

    /// Node i's samples; `share` splits its rows into those of g and of f, or returns `None` if there
    /// are too few.
    pub(super) fn of_node(
        name: &str,
        node: usize,
        setting: &Setting,
        share: impl FnOnce(&mut [u32], &mut Stream) -> Option<(Vec<u32>, Vec<u32>)>,
    ) -> Result<Local<T>> {
        let data = data(name, setting)?;
        let mut rows = setting.partition[node].clone();
        let hint = "use fewer nodes, more data, or a partition that gives every node its share";
        if rows.is_empty() {
            return Err(
                Error::data("data/empty-node", format!("node {node} has no samples")).hint(hint)
            );
        }
        let found = rows.len();
        let (train, validation) =
            share(&mut rows, &mut draws(setting.seed, node, 0)).ok_or_else(|| {
                let message = match named(setting) {
                    None => {
                        format!("node {node} has {found} sample(s), too few to split for `{name}`")
                    }
                    Some(_) => format!(
                        "node {node} has {found} sample(s), and needs some to train on and some for validation"
                    ),
                };
                Error::data("data/too-few-samples", message).hint(hint)
            })?;
        let same = train == validation;
        let train = data.train.samples(train);
        Ok(Local {
            validation: if same { train.clone() } else { data.train.samples(validation) },
            apart: !same,
            train,
            test: tests(data, node),
            holdout: data.train.samples(setting.holdout.get(node).cloned().unwrap_or_default()),
            target: data.target(),
            units: data.scaling.of(node).target.units(),
            judged: [!data.test.is_empty(), setting.holdout.iter().any(|rows| !rows.is_empty())],
        })
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.train.cols()
    }

    /// The measures of a model, from the scores that it gives to samples: accuracies of classes, errors of
    /// numbers, concordance of risks. All nodes have the same ones; NaN is one that this node's samples do not
    /// define, and infinity one of scores that are not numbers.
    pub fn measures(&self, mut scores: impl FnMut(&Samples<T>) -> Vec<T>) -> Vec<(String, f64)> {
        let mut said = |samples: &Samples<T>| match samples.is_empty() {
            true => Vec::new(),
            false => scores(samples),
        };
        let said = [said(&self.train), said(&self.test), said(&self.holdout)];
        match self.target {
            Target::Classes(classes) => self.accuracies(classes, said),
            Target::Numbers(outputs) => self.errors(outputs, said),
            Target::Survival => self.concordances(said),
        }
    }

    /// Whether measures with this name are there.
    fn has(&self, name: &str) -> bool {
        let [test, holdout] = self.judged;
        (test || !name.contains("test")) && (holdout || !name.starts_with("holdout"))
    }

    /// The concordance of risk scores with times and events, on the same samples as the errors of numbers;
    /// NaN where no two samples can be compared.
    fn concordances(&self, scores: [Vec<T>; 3]) -> Vec<(String, f64)> {
        let sets = [("train", &self.train), ("test", &self.test), ("holdout", &self.holdout)];
        let of = |((name, samples), scores): ((&str, &Samples<T>), &Vec<T>)| {
            let seen = |row: &[f64]| Seen { time: row[0], event: row[1] > 0.5 };
            let seen: Vec<Seen> = targets(samples).map(seen).collect();
            let risks: Vec<f64> = scores.iter().map(|&score| score.to_f64()).collect();
            let value = match risks.iter().any(|risk| risk.is_nan()) {
                true => f64::INFINITY,
                false => concordance(&seen, &risks).unwrap_or(f64::NAN),
            };
            (format!("{name}_concordance"), value)
        };
        let there = sets.into_iter().zip(&scores).filter(|((name, _), _)| self.has(name));
        there.map(of).collect()
    }

    /// `train_accuracy`; with a test set `test_accuracy` on all of it and `own_test_accuracy` on the
    /// classes of the node's own samples; `holdout_accuracy` on the samples that the node holds out.
    /// Then, as `…_majority`, the accuracy of always naming the node's most frequent class.
    fn accuracies(&self, classes: usize, scores: [Vec<T>; 3]) -> Vec<(String, f64)> {
        let mut counts = vec![0; classes];
        // With the same samples in f and g, each is counted twice.
        for samples in [&self.train, &self.validation] {
            labels(samples).for_each(|label| counts[label as usize] += 1);
        }
        let majority = (0..counts.len()).rev().max_by_key(|&class| counts[class]).unwrap_or(0);
        let decided = |samples: &Samples<T>, scores: &[T]| -> Vec<u32> {
            scores.chunks_exact((scores.len() / samples.len().max(1)).max(1)).map(decide).collect()
        };
        let train = decided(&self.train, &scores[0]);
        let test = decided(&self.test, &scores[1]);
        let holdout = decided(&self.holdout, &scores[2]);
        let (any, own) = (|_| true, |label: u32| counts[label as usize] > 0);
        let always = |samples: &Samples<T>| vec![majority as u32; samples.len()];
        let found = [
            ("train_accuracy", accuracy(&self.train, &train, any)),
            ("test_accuracy", accuracy(&self.test, &test, any)),
            ("own_test_accuracy", accuracy(&self.test, &test, own)),
            ("holdout_accuracy", accuracy(&self.holdout, &holdout, any)),
            ("test_majority", accuracy(&self.test, &always(&self.test), any)),
            ("own_test_majority", accuracy(&self.test, &always(&self.test), own)),
            ("holdout_majority", accuracy(&self.holdout, &always(&self.holdout), any)),
        ];
        let there = found.into_iter().filter(|(name, _)| self.has(name));
        there.map(|(name, value)| (name.to_string(), value.unwrap_or(f64::NAN))).collect()
    }

    /// R², RMSE and MAE, in the units of the targets, on the node's own samples of g (`train_…`), on test
    /// samples (`test_…`) and on those that it holds out (`holdout_…`); of the last two also, as
    /// `…_of_mean`, those of always naming the mean of the node's own samples.
    fn errors(&self, outputs: usize, scores: [Vec<T>; 3]) -> Vec<(String, f64)> {
        // With the same samples in f and g, each is counted twice.
        let own = || [&self.train, &self.validation].into_iter().flat_map(targets);
        let count = own().count() as f64;
        let mean = |o: usize| own().map(|target| target[o]).sum::<f64>() / count;
        let mean: Vec<f64> = (0..outputs).map(mean).collect();
        let mut found = Vec::new();
        let sets = [("train", &self.train), ("test", &self.test), ("holdout", &self.holdout)];
        let there = sets.into_iter().zip(&scores).filter(|((name, _), _)| self.has(name));
        for ((name, samples), scores) in there {
            let said: Vec<f64> = scores.iter().map(|&score| score.to_f64()).collect();
            let truth: Vec<f64> = targets(samples).flatten().copied().collect();
            let constant: Vec<f64> = mean.repeat(samples.len());
            let beside = (name != "train").then_some((constant, "_of_mean"));
            for (said, end) in std::iter::once((said, "")).chain(beside) {
                let errors = Errors::of(&truth, &said, &self.units);
                let none = Errors { r2: f64::NAN, rmse: f64::NAN, mae: f64::NAN };
                for (measure, value) in errors.unwrap_or(none).named() {
                    let broken = value.is_nan() && errors.is_some();
                    let value = if broken { f64::INFINITY } else { value };
                    found.push((format!("{name}_{measure}{end}"), value));
                }
            }
        }
        found
    }
}

fn targets<T: Real>(samples: &Samples<T>) -> impl Iterator<Item = &[f64]> {
    (0..samples.len() as u32).map(|j| samples.target(j))
}

/// The test rows of a node: its own where nodes have files of their own, else all.
fn tests<T: Real>(data: &Data, node: usize) -> Samples<T> {
    match data.test.owners() {
        Some(own) => data.test.samples(own[node].clone().collect()),
        None => data.test.every(),
    }
}

/// Which rows are for validation, if the data name them.
pub(super) fn named<'a>(setting: &Setting<'a>) -> Option<&'a [bool]> {
    setting.data.and_then(|data| data.train.validation())
}

/// The rows for g and for f: those that the data name, else the last `share` of the rows; at least one on either side.
pub(super) fn cut(rows: &[u32], share: f64, setting: &Setting) -> Option<(Vec<u32>, Vec<u32>)> {
    let count = training(rows, share, setting)?;
    Some(match named(setting) {
        Some(is_named) => rows.iter().partition(|&&row| !is_named[row as usize]),
        None => (rows[..count].to_vec(), rows[count..].to_vec()),
    })
}

/// The number of rows for g, if `share` of them goes to f, or those that the data name.
pub(super) fn training(rows: &[u32], share: f64, setting: &Setting) -> Option<usize> {
    if let Some(is_named) = named(setting) {
        let count = rows.iter().filter(|&&row| !is_named[row as usize]).count();
        return (0 < count && count < rows.len()).then_some(count);
    }
    let most = rows.len().checked_sub(1).filter(|&most| most > 0)?;
    Some(rows.len() - ((rows.len() as f64 * share).round() as usize).clamp(1, most))
}

fn labels<T: Real>(samples: &Samples<T>) -> impl Iterator<Item = u32> {
    (0..samples.len() as u32).map(|j| samples.label(j))
}

fn accuracy<T: Real>(
    samples: &Samples<T>,
    predicted: &[u32],
    counts: impl Fn(u32) -> bool,
) -> Option<f64> {
    let pairs = labels(samples).zip(predicted).filter(|&(label, _)| counts(label));
    let (hits, all) = pairs.fold((0, 0), |(hits, all), (label, &predicted)| {
        (hits + usize::from(label == predicted), all + 1)
    });
    (all > 0).then(|| hits as f64 / all as f64)
}
