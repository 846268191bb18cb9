//! A linear model of classes or numbers whose regularisation is learnt, one strength per feature.
//!
//! ```text
//! f_i(θ)    = c · mean over validation of ℓ(θ; s, b)
//! g_i(x, θ) = c · mean over training   of ℓ(θ; s, b)  +  θᵀ diag(eˣ) θ
//!
//! two classes:   ℓ = log(1 + e^{−b sᵀθ}),  b = +1 for class 0, −1 for class 1,  θ has d entries
//! C classes:     ℓ = softmax cross-entropy, θ[q C + class],  θᵀ diag(eˣ) θ = Σ_q e^{x_q} Σ_c θ_qc²
//! K numbers:     ℓ = ½ |sᵀθ − t|² or Huber's, θ[q K + output]: ridge regression
//! survival:      Cox's partial likelihood of the risk score sᵀθ, as in `cox`; a bias has no effect
//! ```
//!
//! There is no ½ before the regulariser and no bias, as in the paper's experiment; hence
//! ∇_θ of it is 2eˣθ and its cross term 2eˣθv. A fixed ridge (μ/2)|θ|² is x = ln(μ/2).
//! With `bias = true` there is one, the last row of θ, with a strength of its own. With `strength = "class"` x has an entry
//! for each column of θ in place of each row; with `groups`, one for each group of consecutive rows.
//! The paper prints sums over samples; `scale` sets c.

use std::ops::Range;

use super::affine::Affine;
use super::linear::Linear;
use super::loss::{LossKeys, LossName};
use super::losses::Losses;
use super::{Local, Scale};
use crate::data::{Samples, Target};
use crate::error::{Error, Fault, Result};
use crate::math::portable::{exp, ln};
use crate::math::random::Stream;
use crate::math::real::{Real, dot, norm, update};
use crate::math::{number, written};
use crate::problem::derivative::Derivative::{GradThetaF, GradThetaG, HessG};
use crate::problem::form::{Form, Per};
use crate::problem::predictor::Predictor;
use crate::problem::private::RowSums;
use crate::problem::{
    At, Bilevel, Dims, Directions, Minibatches, Parts, Problem, Setting, Shortcuts, SingleLevel,
};
use crate::{choices, params};
use lopa_kernels::Level;

params! {
    /// Parameters of the `hyperparameter` problem.
    #[derive(PartialEq)]
    pub struct Options {
        /// The share of a node's samples that the outer function is made of.
        validation: f64 = 0.5, share;
        /// What multiplies the mean losses.
        scale: Scale = Scale::Mean;
        /// Where every entry of x starts.
        start: f64 = 0.0, from_to(-100.0, 100.0);
        /// The standard deviation of the entries of x at the start, drawn the same at every node; by default 0.
        #[serde(skip_serializing_if = "is_zero")]
        spread: f64 = 0.0, from_to(0.0, 100.0);
        /// What has a strength of its own; by default each feature.
        #[serde(skip_serializing_if = "Strength::is_feature")]
        strength: Strength = Strength::Feature;
        /// One strength for each group of consecutive features, given by the numbers of features.
        groups: Option<Vec<usize>> = None;
        /// Whether the model has a bias, with a strength of its own.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        bias: bool = false;
        /// The loss; by default `logistic` for two classes, `softmax` for more, `squared` for numbers and `cox`
        /// for survival.
        loss: Option<LossName> = None;
        /// Where `huber` becomes linear, in deviations of the target (1).
        delta: Option<f64> = None, positive;
    }
    check |options| options.check_rest()
}

choices! {
    /// What has a strength of its own.
    pub enum Strength {
        /// Each feature.
        Feature,
        /// Each class, or each number to predict.
        Class,
    }
}

impl Strength {
    fn is_feature(&self) -> bool {
        *self == Strength::Feature
    }
}

fn is_zero(spread: &f64) -> bool {
    *spread == 0.0
}

impl<T: Real> Problem<T> for Options {
    fn needs_data(&self) -> bool {
        true
    }

    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let locals = Local::split("hyperparameter", self.validation, setting, nodes)?;
        let part = |local| Hyperparameter::new(local, self, setting.batch);
        locals.into_iter().map(part).collect()
    }

    fn predictor(&self, target: Target, at: At<f64>, features: usize) -> Option<Predictor> {
        let head = self.model::<f64>(features, target).ok()?.layer(at.theta)?;
        Some(Predictor { layers: vec![head] })
    }
}

impl Options {
    fn loss(&self) -> LossKeys {
        LossKeys { loss: self.loss, delta: self.delta, of_two: LossName::Logistic }
    }

    fn check_rest(&self) -> Result<(), Fault> {
        let sizes = format!("{:?}", self.groups.as_deref().unwrap_or_default());
        let alone = self.groups.is_none() || self.strength == Strength::Feature;
        Fault::unless(alone, "groups", &sizes, "left out with `strength = \"class\"`")?;
        let filled = self.groups.iter().all(|sizes| !sizes.is_empty() && !sizes.contains(&0));
        Fault::unless(filled, "groups", &sizes, "a list of positive numbers of features")?;
        self.loss().check()
    }

    /// The entry of x for each row of θ, where several rows have one; or the reason why there are none.
    fn group_of_row(&self, features: usize) -> Result<Option<Vec<u32>>> {
        let Some(sizes) = &self.groups else { return Ok(None) };
        let all = sizes.iter().fold(0usize, |sum, &size| sum.saturating_add(size));
        if all != features {
            let message = format!("`groups` has {all} features, and the data {features}");
            return Err(Error::config("config/unfit-groups", message)
                .hint("give the numbers of features of consecutive groups, all columns of the data in all"));
        }
        let rows = (0..).zip(sizes).flat_map(|(group, &size)| std::iter::repeat_n(group, size));
        let bias = self.bias.then_some(sizes.len() as u32);
        Ok(Some(rows.chain(bias).collect()))
    }

    fn model<T: Real>(&self, inputs: usize, target: Target) -> Result<Linear<T>> {
        let (loss, outputs) = self.loss().fit(target)?;
        Ok(Linear::new(Affine { inputs, outputs, bias: self.bias }, loss))
    }
}

/// A node's part.
pub struct Hyperparameter<T> {
    local: Local<T>,
    model: Linear<T>,
    outer: Losses<T>,
    inner: Losses<T>,
    start: [f64; 2], // mean and deviation
    bias: bool,
    of: Strength,
    groups: Option<Vec<u32>>, // the entry of x for each row of θ, where several rows have one
    strengths: Vec<T>,        // 2eˣ, for each row of θ or, with `Strength::Class`, for each column
    dots: Vec<T>,             // of each row, where several have one entry of x
    squares: Option<Vec<T>>,  // mean of s_q² over training, 1 for the bias; computed on first use
}

impl<T: Real> Hyperparameter<T> {
    /// From the node's samples; `batch` is the batch size of the run.
    ///
    /// # Errors
    /// If the loss does not fit the target.
    pub fn new(
        local: Local<T>,
        options: &Options,
        batch: Option<usize>,
    ) -> Result<Hyperparameter<T>> {
        let losses = |samples: &Samples<T>| {
            Losses::new(samples.clone(), options.scale.factor(batch, samples.len()))
        };
        Ok(Hyperparameter {
            model: options.model(local.features(), local.target)?,
            outer: losses(&local.validation),
            inner: losses(&local.train),
            start: [options.start, options.spread],
            bias: options.bias,
            of: options.strength,
            groups: options.group_of_row(local.features())?,
            strengths: Vec::new(),
            dots: Vec::new(),
            squares: None,
            local,
        })
    }

    /// strengths ← 2eˣ.
    fn find_strengths(&mut self, x: &[T]) {
        self.strengths.clear();
        match &self.groups {
            None => self.strengths.extend_from_slice(x),
            Some(groups) => self.strengths.extend(groups.iter().map(|&group| x[group as usize])),
        }
        Level::best().exp(&mut self.strengths);
        update(&mut self.strengths, [], |e, []| e + e);
    }

    /// `out ← 2 diag(eˣ) u + c · mean of ∇ℓ(u)` over a minibatch of g.
    fn gradient(&mut self, u: &[T], batch: &[u32], out: &mut [T]) {
        self.regularise(u, out);
        self.model.add_gradient(&self.inner.rows(batch), u, self.inner.each(batch), out);
    }

    /// `out ← (2 diag(eˣ) + c · mean of ∇²ℓ(θ)) v` over a minibatch of g.
    fn hessian_product(&mut self, theta: &[T], batch: &[u32], v: &[T], out: &mut [T]) {
        self.regularise(v, out);
        let each = self.inner.each(batch);
        self.model.add_hessian_product(&self.inner.rows(batch), theta, v, each, out);
    }

    /// `out ← 2 diag(eˣ) u`.
    fn regularise(&self, u: &[T], out: &mut [T]) {
        let columns = self.model.columns();
        match self.of {
            Strength::Feature => Level::best().scale_rows(&self.strengths, u, columns, out),
            Strength::Class => {
                for (out, u) in out.chunks_exact_mut(columns).zip(u.chunks_exact(columns)) {
                    update(out, [u, &self.strengths], |_, [u, strength]| strength * u);
                }
            }
        }
    }

    /// `out_q ← factor · 2 e^{x_q} ⟨u_q, v_q⟩`, where u_q and v_q are the rows or columns with this strength.
    fn ridge_cross(&mut self, factor: T, u: &[T], v: &[T], out: &mut [T]) {
        let columns = self.model.columns();
        match (self.of, &self.groups) {
            (Strength::Feature, None) => {
                Level::best().row_dots(u, v, columns, out);
                update(out, [&self.strengths], |dot, [strength]| factor * strength * dot);
            }
            (Strength::Feature, Some(groups)) => {
                self.dots.resize(groups.len(), T::zero());
                Level::best().row_dots(u, v, columns, &mut self.dots);
                out.fill(T::zero());
                for ((&group, &dot), &strength) in
                    groups.iter().zip(&self.dots).zip(&self.strengths)
                {
                    out[group as usize] += factor * strength * dot;
                }
            }
            (Strength::Class, _) => {
                out.fill(T::zero());
                for (u, v) in u.chunks_exact(columns).zip(v.chunks_exact(columns)) {
                    update(out, [u, v], |sum, [u, v]| sum + u * v);
                }
                update(out, [&self.strengths], |dot, [strength]| factor * strength * dot);
            }
        }
    }

    /// The largest eigenvalue of the data part of ∇²g, by power iteration: a lower estimate.
    fn largest_eigenvalue(&mut self, theta: &[T]) -> f64 {
        let inner = &self.inner;
        // Not constant, so that it is not orthogonal to the eigenvector of a softmax.
        let mut v: Vec<T> = (0..theta.len()).map(|j| T::of(1.0 + (j % 7) as f64)).collect();
        let mut norm = T::zero();
        for _ in 0..30 {
            let mut next = vec![T::zero(); v.len()];
            let length = dot(&v, &v).sqrt();
            v.iter_mut().for_each(|v| *v /= length);
            self.model.add_hessian_product(&inner.samples, theta, &v, inner.every(), &mut next);
            norm = dot(&next, &next).sqrt();
            if norm <= T::zero() {
                break;
            }
            v = next;
        }
        self.inner.c * norm.to_f64()
    }
}

impl<T: Real> Bilevel<T> for Hyperparameter<T> {
    fn dims(&self) -> Dims {
        let rows = self.local.features() + usize::from(self.bias);
        let n = match (self.of, &self.groups) {
            (Strength::Class, _) => self.model.columns(),
            (Strength::Feature, None) => rows,
            (Strength::Feature, Some(groups)) => groups.last().map_or(0, |&last| last as usize + 1),
        };
        Dims { n, p: self.model.size() }
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
        let loss = self.model.loss(&self.inner.rows(batch), at.theta, self.inner.each(batch));
        let columns = self.model.columns();
        let strength = |x: &T| exp(x.to_f64());
        let own = at.theta.chunks_exact(columns);
        loss + match self.of {
            Strength::Feature => {
                let groups = self.groups.as_deref();
                let entry = |q: usize| groups.map_or(q, |groups| groups[q] as usize);
                let one =
                    |(q, own): (usize, &[T])| strength(&at.x[entry(q)]) * dot(own, own).to_f64();
                own.enumerate().map(one).sum::<f64>()
            }
            Strength::Class => {
                let of = |(x, own): (&T, &T)| strength(x) * (*own * *own).to_f64();
                own.map(|own| at.x.iter().zip(own).map(of).sum::<f64>()).sum()
            }
        }
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
        self.find_strengths(at.x);
        self.gradient(at.theta, batch, out);
    }

    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        self.find_strengths(at.x);
        self.hessian_product(at.theta, batch, v, out);
    }

    fn cross_g(&mut self, at: At<T>, _batch: &[u32], v: &[T], out: &mut [T]) {
        self.find_strengths(at.x);
        self.ridge_cross(T::one(), at.theta, v, out);
    }

    fn entries_of_f(&self, _batch: &[u32]) -> Range<usize> {
        0..0
    }

    /// f does not depend on x, and ∇_θ f is subtracted while it is summed.
    fn directions(&mut self, at: At<T>, v: &[T], on: Minibatches, out: Directions<T>) {
        let Directions { d, h, s, hess, .. } = out;
        self.find_strengths(at.x);
        self.gradient(at.theta, on.xi[0], d);
        self.hessian_product(at.theta, on.xi[1], v, h);
        if let Some(hess) = hess {
            *hess = norm(h);
        }
        let minus = self.outer.each_weighted(on.sigma[0], |_| -T::one());
        self.model.add_gradient(&self.outer.rows(on.sigma[0]), at.theta, minus, h);
        self.ridge_cross(-T::one(), at.theta, v, s);
    }

    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        let Hyperparameter { local, model, outer, .. } = self;
        let loss = model.loss(&outer.samples, at.theta, outer.every());
        let mut metrics = vec![("loss".into(), loss)];
        metrics.extend(local.measures(|samples| model.scores(samples, at.theta)));
        metrics
    }

    fn start_x(&self, common: &mut Stream) -> Vec<f64> {
        let [mean, spread] = self.start;
        let entry = |_| if spread > 0.0 { mean + spread * common.normal() } else { mean };
        (0..self.dims().n).map(entry).collect()
    }

    fn form(&self) -> Result<Form<'_, T>, &'static str> {
        Ok(Form::Linear {
            inner: self.inner.term(),
            outer: self.outer.term(),
            loss: self.model.kind(),
            columns: self.model.columns(),
            bias: self.bias,
            per: match (self.of, &self.groups) {
                (Strength::Class, _) => Per::Column,
                (Strength::Feature, None) => Per::Row,
                (Strength::Feature, Some(groups)) => Per::Group(groups),
            },
        })
    }

    fn adds_up(&self) -> bool {
        self.model.kind().adds_up()
    }

    /// The regularisation is that of x, and rows have no part in it: nor in ∇_x.
    fn row_sums(&self) -> Result<RowSums, &'static str> {
        self.model.kind().alone()?;
        Ok(RowSums { depend: &[GradThetaG, HessG, GradThetaF], common: false })
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }

    fn shortcuts(&mut self) -> Option<&mut dyn Shortcuts<T>> {
        Some(self)
    }
}

impl<T: Real> SingleLevel<T> for Hyperparameter<T> {
    fn grad_x_g(&mut self, at: At<T>, _batch: &[u32], out: &mut [T]) {
        self.find_strengths(at.x);
        self.ridge_cross(T::of(0.5), at.theta, at.theta, out);
    }

    fn ridge_x(&self, mu: f64) -> Option<Vec<f64>> {
        Some(vec![ln(mu / 2.0); self.dims().n])
    }
}

impl<T: Real> Shortcuts<T> for Hyperparameter<T> {
    /// 2e^{x_q} + c · mean of s_q² · mean of ∂²ℓ/∂z_c², as if the last two were independent.
    fn hess_diagonal(&mut self, at: At<T>) -> Option<Vec<T>> {
        if !self.adds_up() {
            return None;
        }
        self.find_strengths(at.x);
        let curvatures =
            self.model.mean_curvatures(&self.inner.samples, at.theta, self.inner.every());
        let squares = self.squares.get_or_insert_with(|| {
            let mut squares = self.inner.samples.mean_squares();
            squares.extend(self.bias.then(T::one));
            squares
        });
        let c = T::of(self.inner.c);
        let (of, strengths) = (self.of, &self.strengths);
        let row = |(q, &square): (usize, &T)| {
            curvatures.iter().enumerate().map(move |(column, &curvature)| {
                let strength = strengths[if of == Strength::Class { column } else { q }];
                strength + c * square * curvature
            })
        };
        Some(squares.iter().enumerate().flat_map(row).collect())
    }

    fn unstable(&mut self, at: At<T>, step: f64) -> Option<String> {
        let zero = vec![T::zero(); at.theta.len()];
        // A diverged point has no useful curvature; the start has.
        let finite = at.theta.iter().all(|theta| theta.is_finite());
        let l = self.largest_eigenvalue(if finite { at.theta } else { &zero });
        let (t, x) = at.x.iter().enumerate().fold((0, f64::NEG_INFINITY), |best, (t, &x)| {
            if x.to_f64() > best.1 { (t, x.to_f64()) } else { best }
        });
        let curvature = 2.0 * exp(x) + l;
        (step * curvature >= 2.0).then(|| {
            let cause = match 2.0 * exp(x) >= l {
                true => format!("x[{t}] = {} makes", number(x)),
                false => "the features make".to_string(),
            };
            format!(
                "{cause} the inner problem too steep: step (2 e^x[{t}] + L) = \
                 {} (2 · {} + {}) = {} is not below 2; a step below {} is",
                written(step),
                number(exp(x)),
                number(l),
                number(step * curvature),
                number(2.0 / curvature),
            )
        })
    }
}
