//! Hyper-cleaning: training samples with wrong labels lose their weight.
//!
//! ```text
//! f_i(θ)    = c · mean over clean validation of ℓ(θ; s, y)
//! g_i(x, θ) = c · mean over training e of σ(x_e) ℓ(θ; s_e, ỹ_e)  +  r |θ|²
//! ```
//!
//! ℓ is the loss of a linear model with bias, as in `loss`, σ the sigmoid, ỹ the labels of which a
//! share was replaced by another class, or the targets of which a share was replaced by that of another
//! sample. x has one entry for each training sample of the
//! whole network; node i's part depends only on its own block of it, and every gradient with
//! respect to x is zero outside that block.

use std::ops::Range;

use super::affine::Affine;
use super::linear::Linear;
use super::local::{draws, training};
use super::loss::{LossKeys, LossName, sigmoid, unfit};
use super::losses::{Goals, Losses};
use super::{Local, Scale};
use crate::data::{Samples, Target};
use crate::error::Result;
use crate::math::rank::auc;
use crate::math::real::{Real, axpy, dot};
use crate::params;
use crate::problem::predictor::Predictor;
use crate::problem::private::RowSums;
use crate::problem::{At, Bilevel, Dims, Parts, Problem, Setting, SingleLevel};

params! {
    /// Parameters of the `hyper-cleaning` problem.
    #[derive(PartialEq)]
    pub struct Options {
        /// The share of training labels that are replaced by another class, or by the target of another
        /// sample.
        corruption: f64 = 0.3, share_or_none;
        /// r, the strength of the ridge.
        ridge: f64 = 0.001, positive;
        /// The share of a node's samples that is kept clean, for the outer function.
        validation: f64 = 0.2, share;
        /// What multiplies the mean losses.
        scale: Scale = Scale::Mean;
        /// The loss; by default `softmax` for classes and `squared` for numbers. Not `cox`, in which a row has no
        /// term of its own to weigh.
        loss: Option<LossName> = None;
        /// Where `huber` becomes linear, in deviations of the target (1).
        delta: Option<f64> = None, positive;
    }
    check |options| options.loss().check()
}

impl Options {
    fn loss(&self) -> LossKeys {
        LossKeys { loss: self.loss, delta: self.delta, of_two: LossName::Softmax }
    }

    fn model<T: Real>(&self, inputs: usize, target: Target) -> Result<Linear<T>> {
        let (loss, outputs) = self.loss().fit(target)?;
        loss.alone().map_err(|why| {
            let message = format!("`hyper-cleaning` weighs the loss of each row, and {why}");
            unfit(message, "choose the problem `hyperparameter` or `representation`")
        })?;
        Ok(Linear::new(Affine { inputs, outputs, bias: true }, loss))
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
        let training = |rows: &Vec<u32>| match self.validation == 0.0 || setting.whole {
            true => rows.len(),
            false => training(rows.len(), self.validation).unwrap_or(0),
        };
        let lengths: Vec<usize> = setting.partition.iter().map(training).collect();
        let n = lengths.iter().sum();
        let part = |(i, local): (usize, Local<T>)| {
            let block = Block { offset: lengths[..first + i].iter().sum(), n };
            HyperCleaning::new(local, first + i, block, self, setting)
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

/// A node's part.
pub struct HyperCleaning<T> {
    local: Local<T>,
    model: Linear<T>,
    block: Block,
    ridge: T,
    outer: Losses<T>,
    inner: Losses<T>,
    wrong: Vec<bool>, // whether a sample's label or target was replaced by another
}

impl<T: Real> HyperCleaning<T> {
    fn new(
        local: Local<T>,
        node: usize,
        block: Block,
        options: &Options,
        setting: &Setting,
    ) -> Result<HyperCleaning<T>> {
        let losses = |samples: &Samples<T>| {
            Losses::new(samples.clone(), options.scale.factor(setting.batch, samples.len()))
        };
        let mut inner = losses(&local.train);
        let wrong = corrupt(&mut inner.goals, options.corruption, local.target, setting.seed, node);
        Ok(HyperCleaning {
            model: options.model(local.features(), local.target)?,
            block,
            ridge: T::of(options.ridge),
            outer: losses(&local.validation),
            inner,
            wrong,
            local,
        })
    }

    /// Mean weights of clean and of corrupted samples, and the probability that a clean sample weighs
    /// more than a corrupted one.
    fn cleaning(&self, x: &[T]) -> Vec<(String, f64)> {
        let weight = weight(self.block.offset, x);
        let (mut clean, mut corrupted) = (Vec::new(), Vec::new());
        for (e, &wrong) in self.wrong.iter().enumerate() {
            if wrong { &mut corrupted } else { &mut clean }.push(weight(e).to_f64());
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

/// σ(x_e): how much a node's sample e counts.
fn weight<T: Real>(offset: usize, x: &[T]) -> impl Fn(usize) -> T {
    move |e| sigmoid(x[offset + e])
}

/// σ'(x_e).
fn slope<T: Real>(offset: usize, x: &[T]) -> impl Fn(usize) -> T {
    move |e| sigmoid(x[offset + e]) * sigmoid(-x[offset + e])
}

/// Replaces a share of the labels by other classes, or of the targets by those of other samples; returns
/// which of them are another now.
fn corrupt<T: Real>(
    goals: &mut Goals<T>,
    share: f64,
    target: Target,
    seed: u64,
    node: usize,
) -> Vec<bool> {
    let mut stream = draws(seed, node, 1);
    let samples = match goals {
        Goals::Classes(classes) => classes.len(),
        Goals::Numbers { outputs, values } => values.len() / *outputs,
    };
    let mut order: Vec<usize> = (0..samples).collect();
    stream.shuffle(&mut order);
    let count = (samples as f64 * share).round() as usize;
    let clean = goals.clone();
    for &e in &order[..count] {
        match (&mut *goals, target) {
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

impl<T: Real> Bilevel<T> for HyperCleaning<T> {
    fn dims(&self) -> Dims {
        Dims { n: self.block.n, p: self.model.size() }
    }

    fn samples_f(&self) -> usize {
        self.outer.count()
    }

    fn samples_g(&self) -> usize {
        self.inner.count()
    }

    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.model.loss(&self.outer.rows(batch), at.theta, self.outer.each(batch))
    }

    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        let each = self.inner.each_weighted(batch, weight(self.block.offset, at.x));
        let loss = self.model.loss(&self.inner.rows(batch), at.theta, each);
        loss + (self.ridge * dot(at.theta, at.theta)).to_f64()
    }

    fn grad_x_f(&mut self, _at: At<T>, _batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
    }

    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        let rows = self.outer.rows(batch);
        self.model.add_gradient(&rows, at.theta, self.outer.each(batch), out);
    }

    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        let each = self.inner.each_weighted(batch, weight(self.block.offset, at.x));
        self.model.add_gradient(&self.inner.rows(batch), at.theta, each, out);
        axpy(self.ridge + self.ridge, at.theta, out);
    }

    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        let each = self.inner.each_weighted(batch, weight(self.block.offset, at.x));
        self.model.add_hessian_product(&self.inner.rows(batch), at.theta, v, each, out);
        axpy(self.ridge + self.ridge, v, out);
    }

    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        // (∇²_xθ g · v)_e = c/b σ'(x_e) ⟨∇ℓ_e(θ), v⟩
        out.fill(T::zero());
        let offset = self.block.offset;
        let each = self.inner.each_weighted(batch, slope(offset, at.x));
        self.model.each_slope(&self.inner.rows(batch), at.theta, v, each, |r, slope| {
            out[offset + batch[r] as usize] += slope;
        });
    }

    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let HyperCleaning { local, model, outer, .. } = self;
        let loss = model.loss(&outer.samples, at.theta, outer.every());
        let mut metrics = vec![("loss".into(), loss)];
        metrics.extend(local.measures(|samples| model.scores(samples, at.theta)));
        metrics.extend(self.cleaning(at.x));
        metrics
    }

    fn row_sums(&self) -> Result<RowSums, &'static str> {
        Err("x has an entry for each training row, so that its messages are about single rows")
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }
}

impl<T: Real> SingleLevel<T> for HyperCleaning<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        // (∇_x g)_e = c/b σ'(x_e) ℓ_e(θ)
        out.fill(T::zero());
        let offset = self.block.offset;
        let each = self.inner.each_weighted(batch, slope(offset, at.x));
        self.model.each_loss(&self.inner.rows(batch), at.theta, each, |r, loss| {
            out[offset + batch[r] as usize] += loss;
        });
    }
}
