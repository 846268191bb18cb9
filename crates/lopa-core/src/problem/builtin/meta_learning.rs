//! Meta-learning: a common start x from which one step adapts to a node's tasks.
//!
//! ```text
//! f_i(θ)    = c Σ_t f_i^t(θ)                                 f_i^t on the query samples of task t
//! g_i(x, θ) = c Σ_t ⟨θ, ∇f_i^t(x)⟩ + (ν/2) |x − θ|²          f_i^t on its support samples
//!
//! θ_i*(x)   = x − (c/ν) Σ_t ∇f_i^t(x)
//! f_i^t     = mean over the samples of task t of ℓ,   ℓ of a linear model, as in `loss`
//! ```
//!
//! This is the motivating example of the paper's introduction. A node's samples are sorted by
//! label or (first) target and cut into tasks of nearly equal size, so that a task has few classes, or
//! numbers that are near to each other; `validation` sets
//! the share of query samples in each task, by default half; the rest is support. A sample of task
//! t weighs N/N_t, so that the mean over a batch drawn from all tasks is unbiased for the sum over
//! tasks.

use std::ops::Range;

use super::affine::Affine;
use super::goal::Goal;
use super::linear::Linear;
use super::local::cut;
use super::loss::{LossKeys, LossName, unfit};
use super::losses::Losses;
use super::{Local, Scale, data};
use crate::data::{Samples, Target};
use crate::error::{Error, Result};
use crate::math::real::{Real, axpy, update};
use crate::params;
use crate::problem::predictor::Predictor;
use crate::problem::private::RowSums;
use crate::problem::{At, Bilevel, Dims, Parts, Problem, Setting, Shortcuts, SingleLevel};

params! {
    /// Parameters of the `meta-learning` problem.
    #[derive(PartialEq)]
    pub struct Options {
        /// Tasks a node.
        tasks: usize = 3, from_to(1, 10_000);
        /// ν: how strongly θ is held near x; the step of the adaptation is 1/ν.
        nu: f64 = 1.0, positive;
        /// The share of each task that is query (outer) and not support (inner).
        validation: f64 = 0.5, share;
        /// What multiplies the mean losses.
        scale: Scale = Scale::Mean;
        /// The loss; by default `softmax` for classes, `squared` for numbers and `cox` for survival, which takes
        /// one task.
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
        if !loss.adds_up() && self.tasks > 1 {
            return Err(unfit(
                format!(
                    "{} tasks are rows with near times, whose order `loss = \"cox\"` learns from",
                    self.tasks
                ),
                "write `tasks = 1`",
            ));
        }
        Ok(Linear::new(Affine { inputs, outputs, bias: true }, loss))
    }
}

impl<T: Real> Problem<T> for Options {
    fn needs_data(&self) -> bool {
        true
    }

    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let part = |node| MetaLearning::new(node, self, setting);
        nodes.map(part).collect()
    }

    fn predictor(&self, target: Target, at: At<f64>, features: usize) -> Option<Predictor> {
        let head = self.model::<f64>(features, target).ok()?.layer(at.theta)?;
        Some(Predictor { layers: vec![head] })
    }
}

/// The data term Σ_t f_i^t of f or of g: every sample with the weight of its task.
struct Tasks<T> {
    losses: Losses<T>,
    weights: Vec<T>,
}

impl<T: Real> Tasks<T> {
    /// `sizes[t]` samples belong to task t, one task after the other.
    fn new(losses: Losses<T>, sizes: &[usize]) -> Tasks<T> {
        let all = losses.count() as f64;
        let weight = |&size: &usize| std::iter::repeat_n(T::of(all / size as f64), size);
        Tasks { losses, weights: sizes.iter().flat_map(weight).collect() }
    }

    fn each<'a>(&'a self, batch: &'a [u32]) -> impl Fn(usize) -> (Goal<'a, T>, T) + 'a {
        self.losses.each_weighted(batch, |r| self.weights[batch[r] as usize])
    }

    /// All samples, as they come in full sums.
    fn every<'a>(&'a self) -> impl Fn(usize) -> (Goal<'a, T>, T) + 'a {
        let every = self.losses.every();
        move |e| (every(e).0, every(e).1 * self.weights[e])
    }
}

/// A node's part.
pub struct MetaLearning<T> {
    local: Local<T>,
    model: Linear<T>,
    tasks: usize,
    nu: T,
    query: Tasks<T>,
    support: Tasks<T>,
}

impl<T: Real> MetaLearning<T> {
    fn new(node: usize, options: &Options, setting: &Setting) -> Result<MetaLearning<T>> {
        let train = &data("meta-learning", setting)?.train;
        let (mut support_sizes, mut query_sizes) = (Vec::new(), Vec::new());
        let local = Local::of_node("meta-learning", node, setting, |rows, stream| {
            stream.shuffle(rows);
            rows.sort_by(|&a, &b| train.compare(a, b));
            let (mut support, mut query) = (Vec::new(), Vec::new());
            for t in 0..options.tasks {
                let bound = |t: usize| rows.len() * t / options.tasks;
                let mut task = rows[bound(t)..bound(t + 1)].to_vec();
                // Without shuffling, samples sorted by label would leave some classes to the
                // support only.
                stream.shuffle(&mut task);
                let (mine, theirs) = match setting.whole {
                    true if task.is_empty() => return None,
                    true => (task.clone(), task),
                    false => cut(&task, options.validation, setting)?,
                };
                support_sizes.push(mine.len());
                query_sizes.push(theirs.len());
                support.extend(mine);
                query.extend(theirs);
            }
            Some((support, query))
        })
        .map_err(|error| match error.id {
            "data/too-few-samples" => Error {
                hint: Some(
                    "use fewer `tasks` (each needs 2 samples), fewer nodes or more data".into(),
                ),
                ..error
            },
            _ => error,
        })?;
        let tasks = |samples: &Samples<T>, sizes: &[usize]| {
            let c = options.scale.factor(setting.batch, samples.len());
            Tasks::new(Losses::new(samples.clone(), c), sizes)
        };
        Ok(MetaLearning {
            model: options.model(local.features(), local.target)?,
            tasks: options.tasks,
            nu: T::of(options.nu),
            query: tasks(&local.validation, &query_sizes),
            support: tasks(&local.train, &support_sizes),
            local,
        })
    }
}

impl<T: Real> Bilevel<T> for MetaLearning<T> {
    fn dims(&self) -> Dims {
        Dims { n: self.model.size(), p: self.model.size() }
    }

    fn samples_f(&self) -> usize {
        self.query.losses.count()
    }

    fn samples_g(&self) -> usize {
        self.support.losses.count()
    }

    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.model.loss(&self.query.losses.rows(batch), at.theta, self.query.each(batch))
    }

    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        let rows = self.support.losses.rows(batch);
        let mut linear = 0.0;
        let add = |_, slope: T| linear += slope.to_f64();
        self.model.each_slope(&rows, at.x, at.theta, self.support.each(batch), add);
        let far: f64 = at.x.iter().zip(at.theta).map(|(&x, &t)| (x - t).to_f64().powi(2)).sum();
        linear + 0.5 * self.nu.to_f64() * far
    }

    fn grad_x_f(&mut self, _at: At<T>, _batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
    }

    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        let rows = self.query.losses.rows(batch);
        self.model.add_gradient(&rows, at.theta, self.query.each(batch), out);
    }

    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        let nu = self.nu;
        update(out, [at.x, at.theta], |_, [x, theta]| nu * (theta - x));
        let rows = self.support.losses.rows(batch);
        self.model.add_gradient(&rows, at.x, self.support.each(batch), out);
    }

    fn hess_g(&mut self, _at: At<T>, _batch: &[u32], v: &[T], out: &mut [T]) {
        let nu = self.nu;
        update(out, [v], |_, [v]| nu * v);
    }

    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        let nu = self.nu;
        update(out, [v], |_, [v]| -nu * v);
        let rows = self.support.losses.rows(batch);
        self.model.add_hessian_product(&rows, at.x, v, self.support.each(batch), out);
    }

    /// `loss` is the mean over tasks of their mean loss.
    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let MetaLearning { local, model, query, .. } = self;
        let sum = model.loss(&query.losses.samples, at.theta, query.every());
        let mut metrics = vec![("loss".into(), sum / self.tasks as f64)];
        metrics.extend(local.measures(|samples| model.scores(samples, at.theta)));
        metrics
    }

    fn adds_up(&self) -> bool {
        self.model.kind().adds_up()
    }

    fn row_sums(&self) -> Result<RowSums, &'static str> {
        Err("its tasks are made of sorted labels, so that a row changes the tasks of other rows")
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }

    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<T>> {
        Some(self)
    }
}

impl<T: Real> SingleLevel<T> for MetaLearning<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        // ∇_x Σ_t ⟨θ, ∇f^t(x)⟩ = Σ_t ∇²f^t(x) θ
        let nu = self.nu;
        update(out, [at.x, at.theta], |_, [x, theta]| nu * (x - theta));
        let rows = self.support.losses.rows(batch);
        self.model.add_hessian_product(&rows, at.x, at.theta, self.support.each(batch), out);
    }
}

impl<T: Real> Shortcuts<T> for MetaLearning<T> {
    fn theta_star(&mut self, x: &[T]) -> Option<Vec<T>> {
        let mut gradient = vec![T::zero(); x.len()];
        let support = &self.support;
        self.model.add_gradient(&support.losses.samples, x, support.every(), &mut gradient);
        let mut theta = x.to_vec();
        axpy(-T::of(support.losses.c) / self.nu, &gradient, &mut theta);
        Some(theta)
    }
}
