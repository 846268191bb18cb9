//! Hyper-cleaning: training samples with wrong labels lose their weight.
//!
//! ```text
//! f_i(θ)    = c · mean over clean validation of ℓ(θ; s, y)
//! g_i(x, θ) = c · mean over training e of σ(x_e) ℓ(θ; s_e, ỹ_e)  +  r |θ|²
//! ```
//!
//! ℓ is the loss of a linear model, as in `loss`, σ the sigmoid, ỹ the labels of which a share was
//! replaced by another class, or the targets of which a share was replaced by that of another sample.
//! x has one entry for each training sample of the whole network; node i's part depends only on its own
//! block of it, and every gradient with respect to x is zero outside the samples of the minibatch.

use std::ops::Range;

use super::goal::Goals;
use super::linear::Linear;
use super::local::{draws, training};
use super::loss::{LossKeys, LossName, sigmoid};
use super::weighted::{self, Weighted, Weighting};
use super::{Local, Scale};
use crate::data::Target;
use crate::error::Result;
use crate::math::random::Stream;
use crate::math::rank::auc;
use crate::math::real::{Real, update};
use crate::problem::form::Per;
use crate::problem::predictor::Predictor;
use crate::problem::{At, Parts, Problem, Setting};
use crate::{choices, params};
use lopa_kernels::Level;

params! {
    /// Parameters of the `hyper-cleaning` problem.
    #[derive(PartialEq)]
    pub struct Options {
        /// The share of training labels that are replaced by another class, or by the target of another
        /// sample.
        corruption: f64 = 0.3, share_or_none;
        /// What a replaced label becomes; by default another class.
        #[serde(skip_serializing_if = "Wrong::is_other")]
        wrong: Wrong = Wrong::Other;
        /// r, the strength of the ridge.
        ridge: f64 = 0.001, positive;
        /// The share of a node's samples that is kept clean, for the outer function.
        validation: f64 = 0.2, share;
        /// What multiplies the mean losses.
        scale: Scale = Scale::Mean;
        /// Where every entry of x starts; by default at 0.
        #[serde(skip_serializing_if = "is_zero")]
        start: f64 = 0.0, from_to(-100.0, 100.0);
        /// Whether the model has a bias; by default it has.
        #[serde(skip_serializing_if = "is_true")]
        bias: bool = true;
        /// The loss; by default `softmax` for classes and `squared` for numbers. Not `cox`, in which a row has no
        /// term of its own to weigh.
        loss: Option<LossName> = None;
        /// Where `huber` becomes linear, in deviations of the target (1).
        delta: Option<f64> = None, positive;
    }
    check |options| options.loss().check()
}

choices! {
    /// What a replaced label becomes.
    pub enum Wrong {
        /// Another class.
        Other,
        /// Any class, the right one included.
        Any,
    }
}

impl Wrong {
    fn is_other(&self) -> bool {
        *self == Wrong::Other
    }
}

fn is_true(bias: &bool) -> bool {
    *bias
}

fn is_zero(start: &f64) -> bool {
    *start == 0.0
}

impl Options {
    fn loss(&self) -> LossKeys {
        LossKeys { loss: self.loss, delta: self.delta, of_two: LossName::Softmax }
    }

    fn model<T: Real>(&self, inputs: usize, target: Target) -> Result<Linear<T>> {
        weighted::model("hyper-cleaning", self.loss(), (inputs, self.bias), target)
    }

    /// The part of a node, whose entries of x are `block`.
    fn part<T: Real>(
        &self,
        node: usize,
        local: Local<T>,
        block: Block,
        setting: &Setting,
    ) -> Result<Weighted<T, EachSample>> {
        let (model, target) = (self.model(local.features(), local.target)?, local.target);
        let weighting = EachSample { block, start: self.start, wrong: Vec::new() };
        let mut part = Weighted::new(local, model, (self.ridge, self.scale), setting, weighting);
        let stream = draws(setting.seed, node, 1);
        part.weighting.wrong = corrupt(&mut part.inner.goals, self, target, stream);
        Ok(part)
    }
}

impl<T: Real> Problem<T> for Options {
    fn needs_data(&self) -> bool {
        true
    }

    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let first = nodes.start;
        let locals: Vec<Local<T>> =
            Local::split("hyper-cleaning", self.validation, setting, nodes)?;
        let training = |rows: &Vec<u32>| match setting.whole {
            true => rows.len(),
            false => training(rows, self.validation, setting).unwrap_or(0),
        };
        let lengths: Vec<usize> = setting.partition.iter().map(training).collect();
        let n = lengths.iter().sum();
        let part = |(i, local): (usize, Local<T>)| {
            let block = Block { offset: lengths[..first + i].iter().sum(), n };
            self.part(first + i, local, block, setting)
        };
        locals.into_iter().enumerate().map(part).collect()
    }

    fn predictor(&self, target: Target, at: At<f64>, features: usize) -> Option<Predictor> {
        let head = self.model::<f64>(features, target).ok()?.layer(at.theta)?;
        Some(Predictor { layers: vec![head] })
    }

    /// x has weights for the samples of the training nodes only.
    fn transfers(&self) -> bool {
        false
    }
}

/// The range of a node's entries of x.
#[derive(Debug, Clone, Copy)]
struct Block {
    offset: usize,
    n: usize,
}

/// σ(x_e) for each sample of a node's block.
struct EachSample {
    block: Block,
    start: f64,
    wrong: Vec<bool>, // whether a sample's label or target was replaced by another
}

impl<T: Real> Weighting<T> for EachSample {
    const NOT_PRIVATE: &'static str =
        "x has an entry for each training row, so that its messages are about single rows";

    fn entries(&self) -> usize {
        self.block.n
    }

    fn start(&self) -> f64 {
        self.start
    }

    /// σ(x_e) and σ'(x_e).
    fn weigh(&mut self, x: &[T], batch: &[u32], weights: &mut Vec<T>, factors: &mut Vec<T>) {
        let own = &x[self.block.offset..];
        weights.extend(batch.iter().map(|&e| own[e as usize]));
        factors.extend(weights.iter().map(|&x| -x));
        Level::best().sigmoid(weights);
        Level::best().sigmoid(factors);
        update(factors, [weights], |other, [weight]| weight * other);
    }

    fn entry(&self, row: u32) -> usize {
        self.block.offset + row as usize
    }

    fn per(&self, ridge: T) -> Option<Per<'_, T>> {
        Some(Per::Sample { first: self.block.offset, ridge })
    }

    fn touched(&self, batch: &[u32]) -> Range<usize> {
        let place = |e: Option<&u32>| self.block.offset + e.map_or(0, |&e| e as usize);
        place(batch.iter().min())..place(batch.iter().max()) + usize::from(!batch.is_empty())
    }

    /// Mean weights of clean and of corrupted samples, and the probability that a clean sample weighs
    /// more than a corrupted one.
    fn measures(&mut self, x: &[T]) -> Vec<(String, f64)> {
        let (mut clean, mut corrupted) = (Vec::new(), Vec::new());
        for (&wrong, &x) in self.wrong.iter().zip(&x[self.block.offset..]) {
            if wrong { &mut corrupted } else { &mut clean }.push(sigmoid(x).to_f64());
        }
        if clean.is_empty() || corrupted.is_empty() {
            return Vec::new();
        }
        let mean = |weights: &[f64]| weights.iter().sum::<f64>() / weights.len() as f64;
        vec![
            ("clean_weight".into(), mean(&clean)),
            ("corrupted_weight".into(), mean(&corrupted)),
            ("cleaning_auc".into(), auc(&clean, &mut corrupted)),
        ]
    }
}

/// Replaces a share of the labels by other classes, or of the targets by those of other samples; returns
/// which of them are another now.
fn corrupt<T: Real>(
    goals: &mut Goals<T>,
    options: &Options,
    target: Target,
    mut stream: Stream,
) -> Vec<bool> {
    let samples = match goals {
        Goals::Classes(classes) => classes.len(),
        Goals::Numbers { outputs, values } => values.len() / *outputs,
    };
    let mut order: Vec<usize> = (0..samples).collect();
    stream.shuffle(&mut order);
    let count = (samples as f64 * options.corruption).round() as usize;
    let clean = goals.clone();
    for &e in &order[..count] {
        match (&mut *goals, target) {
            (Goals::Classes(labels), Target::Classes(classes)) if options.wrong == Wrong::Any => {
                labels[e] = stream.below(classes) as u32;
            }
            (Goals::Classes(labels), Target::Classes(classes)) => {
                let other = stream.below(classes - 1) as u32;
                labels[e] = other + u32::from(other >= labels[e]);
            }
            (Goals::Numbers { outputs, values }, _) if samples > 1 => {
                let other = stream.below(samples - 1);
                let other = other + usize::from(other >= e);
                let Goals::Numbers { values: clean, .. } = &clean else { continue };
                let (to, from) = (e * *outputs, other * *outputs);
                values[to..to + *outputs].copy_from_slice(&clean[from..from + *outputs]);
            }
            _ => {}
        }
    }
    (0..samples).map(|e| goals.at(e) != clean.at(e)).collect()
}
