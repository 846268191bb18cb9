//! A neural network with shared hidden layers and a personal head, for classes, numbers or survival.
//!
//! ```text
//! h(s; x)   = φ(… φ(s W_1 + b_1) …)                 x = (W_1, b_1, W_2, b_2, …), shared
//! f_i(x, θ) = c · mean of ℓ(h W + b; y),            θ = (W, b), personal;  ℓ as in `loss`
//! g_i(x, θ) = c · mean of ℓ(h W + b; y) + (μ/2) |θ|²
//! ```
//!
//! The paper's losses lack the minus sign of the cross-entropy, print sums, and use the same
//! samples in f_i and g_i; the last is also the default here (`validation = 0`). The biases of the
//! head are regularised with it. All derivatives need φ' at most, since the head is linear: with ReLU, g is as smooth in θ
//! as without, and has kinks in x. With `bias = false`, hidden layers have no b_l. Weights are stored
//! feature by feature: `W[q * units + unit]`, then b.

use std::ops::Range;

use super::activation::Activation;
use super::affine::{Affine, Rows, Table};
use super::hidden::{Hidden, Layers, Pass, Spare};
use super::linear::{Linear, Room};
use super::loss::{LossKeys, LossName};
use super::losses::Losses;
use super::{Local, Scale};
use crate::data::{Samples, Target};
use crate::error::{Fault, Result};
use crate::math::random::Stream;
use crate::math::real::{Real, axpy, dot, norm, update};
use crate::math::scratch::lent;
use crate::params;
use crate::problem::derivative::Derivative;
use crate::problem::form::Form;
use crate::problem::predictor::Predictor;
use crate::problem::private::RowSums;
use crate::problem::{
    At, Bilevel, Dims, Directions, Minibatches, Parts, Problem, Setting, SingleLevel, Trains,
};

params! {
    /// Parameters of the `representation` problem.
    #[derive(PartialEq)]
    pub struct Options {
        /// Units of each hidden layer.
        hidden: Vec<usize> = vec![28];
        /// What the hidden units compute.
        activation: Activation = Activation::Sigmoid;
        /// Whether the hidden layers have biases b_l; the head always has one.
        bias: bool = true;
        /// μ, the strength of the ridge on the heads.
        ridge: f64 = 0.52, positive;
        /// What multiplies the mean losses.
        scale: Scale = Scale::Mean;
        /// The share of a node's samples that is kept for f; with 0, f and g both use all of them.
        validation: f64 = 0.0, share_or_none;
        /// The loss; by default `softmax` for classes, `squared` for numbers and `cox` for survival.
        loss: Option<LossName> = None;
        /// Where `huber` becomes linear, in deviations of the target (1).
        delta: Option<f64> = None, positive;
    }
    check |options| {
        let list = format!("{:?}", options.hidden);
        let layers = (1..=8).contains(&options.hidden.len());
        let units = options.hidden.iter().all(|units| (1..=4096).contains(units));
        Fault::unless(layers && units, "hidden", list, "1 to 8 layers of 1 to 4096 units")?;
        options.loss().check()
    }
}

impl Options {
    fn loss(&self) -> LossKeys {
        LossKeys { loss: self.loss, delta: self.delta, of_two: LossName::Softmax }
    }

    fn model<T: Real>(&self, features: usize, target: Target) -> Result<Model<T>> {
        let (loss, outputs) = self.loss().fit(target)?;
        let hidden = Hidden::new(features, &self.hidden, self.activation, self.bias);
        let head = Affine { inputs: hidden.outputs(), outputs, bias: true };
        Ok(Model { hidden, head: Linear::new(head, loss), spare: Spare::default() })
    }
}

impl<T: Real> Problem<T> for Options {
    fn needs_data(&self) -> bool {
        true
    }

    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let locals = Local::split("representation", self.validation, setting, nodes)?;
        let part = |local| Representation::new(local, self, setting.batch);
        locals.into_iter().map(part).collect()
    }

    fn predictor(&self, target: Target, at: At<f64>, features: usize) -> Option<Predictor> {
        let Model { hidden, head, .. } = self.model::<f64>(features, target).ok()?;
        let mut layers = hidden.layers(at.x)?;
        layers.push(head.layer(at.theta)?);
        Some(Predictor { layers })
    }
}

/// h_L, as rows.
fn top<'a, T>(hidden: &Hidden, layers: &Layers<'a, T>) -> Table<'a, T> {
    Table { values: layers.top(), cols: hidden.outputs() }
}

/// The samples of f or of g with their last forward pass.
struct Side<T> {
    losses: Losses<T>,
    pass: Pass<T>,
}

impl<T: Real> Side<T> {
    fn new(samples: &Samples<T>, options: &Options, batch: Option<usize>) -> Side<T> {
        let c = options.scale.factor(batch, samples.len());
        Side { losses: Losses::new(samples.clone(), c), pass: Pass::new() }
    }

    fn join(&mut self, hidden: &Hidden, x: &[T], batches: &[&[u32]]) {
        self.pass.join(hidden, &self.losses, x, batches);
    }
}

/// The layers and the head, with their scratch memory.
struct Model<T> {
    hidden: Hidden,
    head: Linear<T>,
    spare: Spare<T>,
}

impl<T: Real> Model<T> {
    /// c · mean of ℓ.
    fn loss(&mut self, side: &mut Side<T>, at: At<T>, batch: &[u32]) -> f64 {
        let Side { losses, pass } = side;
        let layers = pass.layers(&self.hidden, &losses.rows(batch), at.x, batch);
        self.head.loss(&top(&self.hidden, &layers), at.theta, losses.each(batch))
    }

    /// ∇_θ of the loss.
    fn grad_theta(&mut self, side: &mut Side<T>, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        let Side { losses, pass } = side;
        let layers = pass.layers(&self.hidden, &losses.rows(batch), at.x, batch);
        self.head.add_gradient(&top(&self.hidden, &layers), at.theta, losses.each(batch), out);
    }

    /// ∇²_θθ of the loss · v.
    fn hess(&mut self, side: &mut Side<T>, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        let Side { losses, pass } = side;
        let layers = pass.layers(&self.hidden, &losses.rows(batch), at.x, batch);
        let rows = top(&self.hidden, &layers);
        self.head.add_hessian_product(&rows, at.theta, v, losses.each(batch), out);
    }

    /// Adds `sign` times ∇_x of the loss, or with a v of ⟨∇_θ loss, v⟩: one pass back from the head.
    fn add_grad_x(
        &mut self,
        side: &mut Side<T>,
        at: At<T>,
        batch: &[u32],
        v: Option<&[T]>,
        sign: T,
        out: &mut [T],
    ) {
        let Side { losses, pass } = side;
        let rows = losses.rows(batch);
        let layers = pass.layers(&self.hidden, &rows, at.x, batch);
        let (h, each) = (top(&self.hidden, &layers), losses.each_weighted(batch, |_| sign));
        let back = match v {
            None => self.head.row_gradients(&h, at.theta, each),
            Some(v) => self.head.row_cross(&h, at.theta, v, each),
        };
        self.hidden.add_gradient(&rows, at.x, layers, back, out, &mut self.spare);
    }

    fn scores(&mut self, at: At<T>, rows: &impl Rows<T>) -> Vec<T> {
        let mut layers = Vec::new();
        self.hidden.forward(rows, at.x, &mut layers);
        let values = layers.last().expect("there is a layer");
        self.head.scores(&Table { values, cols: self.hidden.outputs() }, at.theta)
    }
}

/// A node's part.
pub struct Representation<T> {
    local: Local<T>,
    model: Model<T>,
    ridge: T,
    inner: Side<T>,
    /// `None` where f and g have the same samples.
    outer: Option<Side<T>>,
}

impl<T: Real> Representation<T> {
    /// From the node's samples; `batch` is the batch size of the run.
    ///
    /// # Errors
    /// If the loss does not fit the target.
    pub fn new(
        local: Local<T>,
        options: &Options,
        batch: Option<usize>,
    ) -> Result<Representation<T>> {
        Ok(Representation {
            model: options.model(local.features(), local.target)?,
            ridge: T::of(options.ridge),
            inner: Side::new(&local.train, options, batch),
            outer: local.apart.then(|| Side::new(&local.validation, options, batch)),
            local,
        })
    }
}

/// The scratch memory of one or several minibatches.
struct Work<T> {
    passes: [Pass<T>; 2],
    head: Room<T>,
    spare: Spare<T>,
}

impl<T: Real> Default for Work<T> {
    fn default() -> Work<T> {
        Work { passes: [Pass::new(), Pass::new()], head: Room::default(), spare: Spare::default() }
    }
}

impl<T: Real> Representation<T> {
    /// Exchanges its scratch memory for another, or back.
    fn change(&mut self, Work { passes: [inner, outer], head, spare }: &mut Work<T>) {
        std::mem::swap(&mut self.inner.pass, inner);
        self.outer.iter_mut().for_each(|side| std::mem::swap(&mut side.pass, outer));
        std::mem::swap(&mut self.model.head.room, head);
        std::mem::swap(&mut self.model.spare, spare);
    }
}

impl<T: Real> Representation<T> {
    /// All minibatches go through the layers together.
    fn all_directions(&mut self, at: At<T>, v: &[T], on: Minibatches, out: Directions<T>) {
        let Minibatches { xi: [xi1, xi2, xi3], sigma: [sigma1, sigma2] } = on;
        let Directions { d, h, s, hess, scratch } = out;
        let (hidden, inner) = (&self.model.hidden, &mut self.inner);
        match &mut self.outer {
            None => inner.join(hidden, at.x, &[xi1, xi2, xi3, sigma1, sigma2]),
            Some(outer) => {
                inner.join(hidden, at.x, &[xi1, xi2, xi3]);
                outer.join(hidden, at.x, &[sigma1, sigma2]);
            }
        }
        let grad_theta_f = &mut scratch[..h.len()];
        self.grad_theta_g(at, xi1, d);
        self.hess_g(at, xi2, v, h);
        if let Some(hess) = hess {
            *hess = norm(h);
        }
        self.grad_theta_f(at, sigma1, grad_theta_f);
        update(h, [grad_theta_f], |hess_v, [grad]| hess_v - grad);
        self.grad_x_f(at, sigma2, s);
        self.model.add_grad_x(&mut self.inner, at, xi3, Some(v), -T::one(), s);
        self.inner.pass.part();
        self.outer.iter_mut().for_each(|outer| outer.pass.part());
    }
}

impl<T: Real> Bilevel<T> for Representation<T> {
    fn dims(&self) -> Dims {
        Dims { n: self.model.hidden.size(), p: self.model.head.size() }
    }

    fn samples_f(&self) -> usize {
        self.outer.as_ref().unwrap_or(&self.inner).losses.count()
    }

    fn samples_g(&self) -> usize {
        self.inner.losses.count()
    }

    fn f(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        self.model.loss(self.outer.as_mut().unwrap_or(&mut self.inner), at, batch)
    }

    fn g(&mut self, at: At<T>, batch: &[u32]) -> f64 {
        let ridge = self.ridge * dot(at.theta, at.theta);
        self.model.loss(&mut self.inner, at, batch) + 0.5 * ridge.to_f64()
    }

    fn grad_x_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        let side = self.outer.as_mut().unwrap_or(&mut self.inner);
        self.model.add_grad_x(side, at, batch, None, T::one(), out);
    }

    fn grad_theta_f(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        let side = self.outer.as_mut().unwrap_or(&mut self.inner);
        self.model.grad_theta(side, at, batch, out);
    }

    fn grad_theta_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        self.model.grad_theta(&mut self.inner, at, batch, out);
        axpy(self.ridge, at.theta, out);
    }

    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.model.hess(&mut self.inner, at, batch, v, out);
        axpy(self.ridge, v, out);
    }

    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.model.add_grad_x(&mut self.inner, at, batch, Some(v), T::one(), out);
    }

    /// Nodes share the scratch memory of their thread.
    fn directions(&mut self, at: At<T>, v: &[T], on: Minibatches, out: Directions<T>) {
        lent(|work: &mut Work<T>| {
            self.change(work);
            self.all_directions(at, v, on, out);
            self.change(work);
        });
    }

    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let Representation { local, model, inner, outer, .. } = self;
        let side = outer.as_mut().unwrap_or(inner);
        let all: Vec<u32> = (0..side.losses.count() as u32).collect();
        let loss = model.loss(side, at, &all) / side.losses.c;
        let mut metrics = vec![("loss".into(), loss)];
        metrics.extend(local.measures(|samples| model.scores(at, samples)));
        metrics
    }

    fn start_x(&self, common: &mut Stream) -> Vec<f64> {
        self.model.hidden.start(common)
    }

    fn form(&self) -> Result<Form<'_, T>, &'static str> {
        let Model { hidden, head, .. } = &self.model;
        Ok(Form::Layers {
            inner: self.inner.losses.term(),
            outer: self.outer.as_ref().unwrap_or(&self.inner).losses.term(),
            loss: head.kind(),
            columns: head.columns(),
            units: hidden.units(),
            bias: hidden.bias(),
            activation: hidden.activation(),
            ridge: self.ridge,
        })
    }

    fn adds_up(&self) -> bool {
        self.model.head.kind().adds_up()
    }

    fn row_sums(&self) -> Result<RowSums, &'static str> {
        self.model.head.kind().alone()?;
        Ok(RowSums { depend: &Derivative::ALL, common: self.outer.is_none() })
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }
}

impl<T: Real> SingleLevel<T> for Representation<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        self.model.add_grad_x(&mut self.inner, at, batch, None, T::one(), out);
    }

    fn trains(&self) -> Trains {
        Trains::Both
    }
}
