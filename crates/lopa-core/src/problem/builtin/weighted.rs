//! A linear model whose training rows have weights that depend on x.
//!
//! ```text
//! f_i(θ)    = c · mean over validation of ℓ(θ; s, y)
//! g_i(x, θ) = c · mean over training e of w_e(x) ℓ(θ; s_e, y_e)  +  r |θ|²
//!
//! ∇²_xθ g v = c/b Σ_e ∇w_e(x) ⟨∇ℓ_e(θ), v⟩,   ∇_x g likewise with ℓ_e(θ)
//! ```
//!
//! A problem says how x weighs the rows, as a [`Weighting`].

use std::ops::Range;

use super::Local;
use super::Scale;
use super::affine::Affine;
use super::linear::Linear;
use super::loss::{LossKeys, unfit};
use super::losses::Losses;
use crate::data::{Samples, Target};
use crate::error::Result;
use crate::math::random::Stream;
use crate::math::real::{Real, axpy, dot, norm, update};
use crate::problem::form::{Form, Per};
use crate::problem::private::RowSums;
use crate::problem::{
    At, Bilevel, Dims, Directions, Minibatches, Setting, SingleLevel, each_term_of_g, one,
};

/// How x weighs the training rows of a node: Σ_e ∇w_e t_e is `pulled_back` from the sums of factor_e t_e by entry.
pub trait Weighting<T>: Send {
    /// Why the messages cannot be made private.
    const NOT_PRIVATE: &'static str;

    /// How many entries x has.
    fn entries(&self) -> usize;

    /// Where every entry of x starts.
    fn start(&self) -> f64 {
        0.0
    }

    /// The weight and the factor of each row of a minibatch.
    fn weigh(&mut self, x: &[T], batch: &[u32], weights: &mut Vec<T>, factors: &mut Vec<T>);

    /// The entry to which a row's term is added.
    fn entry(&self, row: u32) -> usize;

    /// The product from the sums by entry.
    fn pull_back(&self, _sums: &mut [T]) {}

    /// The entries in which the product on a minibatch may differ from zero.
    fn touched(&self, _batch: &[u32]) -> Range<usize> {
        0..self.entries()
    }

    /// What x has an entry for, where devices know it; `ridge` is r.
    fn per(&self, _ridge: T) -> Option<Per<'_, T>> {
        None
    }

    /// What the weights at x are, as measures.
    fn measures(&mut self, x: &[T]) -> Vec<(String, f64)>;
}

/// The linear model of a problem that weighs rows.
pub fn model<T: Real>(
    problem: &str,
    keys: LossKeys,
    (inputs, bias): (usize, bool),
    target: Target,
) -> Result<Linear<T>> {
    let (loss, outputs) = keys.fit(target)?;
    loss.alone().map_err(|why| {
        let message = format!("`{problem}` weighs the loss of each row, and {why}");
        unfit(message, "choose the problem `hyperparameter` or `representation`")
    })?;
    Ok(Linear::new(Affine { inputs, outputs, bias }, loss))
}

/// A node's part.
pub struct Weighted<T, W> {
    local: Local<T>,
    model: Linear<T>,
    ridge: T,
    outer: Losses<T>,
    /// The training rows.
    pub inner: Losses<T>,
    /// How x weighs them.
    pub weighting: W,
    weights: Vec<T>, // of the rows of a minibatch
    factors: Vec<T>,
}

impl<T: Real, W: Weighting<T>> Weighted<T, W> {
    pub fn new(
        local: Local<T>,
        model: Linear<T>,
        (ridge, scale): (f64, Scale),
        setting: &Setting,
        weighting: W,
    ) -> Weighted<T, W> {
        let losses = |samples: &Samples<T>| {
            Losses::new(samples.clone(), scale.factor(setting.batch, samples.len()))
        };
        Weighted {
            model,
            ridge: T::of(ridge),
            outer: losses(&local.validation),
            inner: losses(&local.train),
            weighting,
            weights: Vec::new(),
            factors: Vec::new(),
            local,
        }
    }

    fn weigh(&mut self, x: &[T], batch: &[u32]) {
        let Weighted { weighting, weights, factors, .. } = self;
        weights.clear();
        factors.clear();
        weighting.weigh(x, batch, weights, factors);
    }

    /// d ← ∇_θ ĝ, h ← ∇²_θθ ĝ v, and s ← `sign` ∇²_xθ ĝ v, on one minibatch: its rows are multiplied with θ
    /// and v once.
    fn of_g(&mut self, at: At<T>, v: &[T], batch: &[u32], sign: T, [d, h, s]: [&mut [T]; 3]) {
        self.weigh(at.x, batch);
        let Weighted { model, ridge, inner, weighting, weights, factors, .. } = self;
        [&mut *d, &mut *h, &mut *s].into_iter().for_each(|out| out.fill(T::zero()));
        let weighted = inner.each_weighted(batch, |r| weights[r]);
        let sloping = inner.each_weighted(batch, |r| factors[r]);
        let cross = |r: usize, slope| s[weighting.entry(batch[r])] += sign * slope;
        model.add_terms(&inner.rows(batch), (at.theta, v), (weighted, sloping), (d, h), cross);
        weighting.pull_back(s);
        axpy(*ridge + *ridge, at.theta, d);
        axpy(*ridge + *ridge, v, h);
    }
}

impl<T: Real, W: Weighting<T>> Bilevel<T> for Weighted<T, W> {
    fn dims(&self) -> Dims {
        Dims { n: self.weighting.entries(), p: self.model.size() }
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
        self.weigh(at.x, batch);
        let each = self.inner.each_weighted(batch, |r| self.weights[r]);
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
        self.weigh(at.x, batch);
        let each = self.inner.each_weighted(batch, |r| self.weights[r]);
        self.model.add_gradient(&self.inner.rows(batch), at.theta, each, out);
        axpy(self.ridge + self.ridge, at.theta, out);
    }

    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.weigh(at.x, batch);
        let each = self.inner.each_weighted(batch, |r| self.weights[r]);
        self.model.add_hessian_product(&self.inner.rows(batch), at.theta, v, each, out);
        axpy(self.ridge + self.ridge, v, out);
    }

    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.weigh(at.x, batch);
        let Weighted { model, inner, weighting, factors, .. } = self;
        let each = inner.each_weighted(batch, |r| factors[r]);
        model.each_slope(&inner.rows(batch), at.theta, v, each, |r, slope| {
            out[weighting.entry(batch[r])] += slope;
        });
        weighting.pull_back(out);
    }

    fn terms_of_g(&mut self, at: At<T>, v: &[T], xi: [&[u32]; 3], out: [&mut [T]; 3]) {
        match one(xi) {
            Some(batch) => self.of_g(at, v, batch, T::one(), out),
            None => each_term_of_g(self, at, v, xi, out),
        }
    }

    fn entries_of_g(&self, batch: &[u32]) -> Range<usize> {
        self.weighting.touched(batch)
    }

    fn entries_of_f(&self, _batch: &[u32]) -> Range<usize> {
        0..0
    }

    /// f does not depend on x.
    fn directions(&mut self, at: At<T>, v: &[T], on: Minibatches, out: Directions<T>) {
        let Directions { d, h, s, hess, scratch } = out;
        match one(on.xi) {
            Some(batch) => self.of_g(at, v, batch, -T::one(), [d, h, s]),
            None => {
                each_term_of_g(self, at, v, on.xi, [d, h, s]);
                update(s, [], |cross_v, []| T::zero() - cross_v);
            }
        }
        if let Some(hess) = hess {
            *hess = norm(h);
        }
        let grad_theta_f = &mut scratch[..h.len()];
        self.grad_theta_f(at, on.sigma[0], grad_theta_f);
        update(h, [grad_theta_f], |hess_v, [grad]| hess_v - grad);
    }

    fn start_x(&self, _common: &mut Stream) -> Vec<f64> {
        vec![self.weighting.start(); self.weighting.entries()]
    }

    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let Weighted { local, model, outer, weighting, .. } = self;
        let loss = model.loss(&outer.samples, at.theta, outer.every());
        let mut metrics = vec![("loss".into(), loss)];
        metrics.extend(local.measures(|samples| model.scores(samples, at.theta)));
        metrics.extend(weighting.measures(at.x));
        metrics
    }

    fn form(&self) -> Result<Form<'_, T>, &'static str> {
        let unknown = "devices do not weigh rows by group: only `hyper-cleaning` weighs them there";
        Ok(Form::Linear {
            inner: self.inner.term(),
            outer: self.outer.term(),
            loss: self.model.kind(),
            columns: self.model.columns(),
            bias: self.model.bias(),
            per: self.weighting.per(self.ridge).ok_or(unknown)?,
        })
    }

    fn row_sums(&self) -> Result<RowSums, &'static str> {
        Err(W::NOT_PRIVATE)
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }
}

impl<T: Real, W: Weighting<T>> SingleLevel<T> for Weighted<T, W> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        self.weigh(at.x, batch);
        let Weighted { model, inner, weighting, factors, .. } = self;
        let each = inner.each_weighted(batch, |r| factors[r]);
        model.each_loss(&inner.rows(batch), at.theta, each, |r, loss| {
            out[weighting.entry(batch[r])] += loss;
        });
        weighting.pull_back(out);
    }
}
