//! Reweighting: which groups of rows help, as a weight for each.
//!
//! ```text
//! w_k(x)    = K e^{x_k} / Σ_l e^{x_l}                            K groups; at x = 0 all weights are 1
//! f_i(θ)    = c · mean over validation of ℓ(θ; s, y)
//! g_i(x, θ) = c · mean over training e of w_{k(e)}(x) ℓ(θ; s_e, y_e)  +  r |θ|²
//!
//! (∇²_xθ g v)_l = w_l (G_l − Σ_k w_k G_k / K),   G_k = c/b Σ_{e of group k} ⟨∇ℓ_e(θ), v⟩
//! ```
//!
//! ℓ is the loss of a linear model with bias, as in `loss`. A group is a value of the column `group` of the
//! data (a source, a hospital, a device), a class, or a node: x has one entry for each, whatever the size
//! of the model. Rows of the groups in `trusted` alone make f, if any are named: rows that are not
//! trusted would else ask for a model of themselves.

use std::ops::Range;

use super::affine::Affine;
use super::linear::Linear;
use super::local::cut;
use super::loss::{Goal, LossKeys, LossName, unfit};
use super::losses::Losses;
use super::{Local, Scale, data};
use crate::choices;
use crate::data::{Data, Samples, Target};
use crate::error::{Error, Fault, Result, nearest};
use crate::math::real::{Real, axpy, dot, update};
use crate::params;
use crate::problem::predictor::Predictor;
use crate::problem::private::RowSums;
use crate::problem::scope::Scope;
use crate::problem::{At, Bilevel, Dims, Parts, Problem, Setting, SingleLevel};
use lopa_kernels::Level;

choices! {
    /// What rows are grouped by.
    pub enum By {
        /// The column `group` of the data.
        Group,
        /// Their class, or the tenth of their number to predict.
        Class,
        /// The node that has them; for a global scope, in which all nodes train one model.
        Node,
    }
}

params! {
    /// Parameters of the `reweighting` problem.
    #[derive(PartialEq)]
    pub struct Options {
        /// What rows are grouped by.
        by: By = By::Group;
        /// The groups whose rows make the outer function, by name; all of them by default.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        trusted: Vec<String> = Vec::new();
        /// r, the strength of the ridge.
        ridge: f64 = 0.001, positive;
        /// The share of a node's samples, or of those that are trusted, for the outer function.
        validation: f64 = 0.3, share;
        /// What multiplies the mean losses.
        scale: Scale = Scale::Mean;
        /// The loss; by default `softmax` for classes and `squared` for numbers. Not `cox`, in which a row has no
        /// term of its own to weigh.
        loss: Option<LossName> = None;
        /// Where `huber` becomes linear, in deviations of the target (1).
        delta: Option<f64> = None, positive;
    }
    check |options| {
        let grouped = options.trusted.is_empty() || options.by == By::Group;
        Fault::unless(grouped, "trusted", "[…]", "left out, or go with `by = \"group\"`")?;
        options.loss().check()
    }
}

impl Options {
    fn loss(&self) -> LossKeys {
        LossKeys { loss: self.loss, delta: self.delta, of_two: LossName::Softmax }
    }

    fn model<T: Real>(&self, inputs: usize, target: Target) -> Result<Linear<T>> {
        let (loss, outputs) = self.loss().fit(target)?;
        loss.alone().map_err(|why| {
            let message = format!("`reweighting` weighs the loss of each row, and {why}");
            unfit(message, "choose the problem `hyperparameter` or `representation`")
        })?;
        Ok(Linear::new(Affine { inputs, outputs, bias: true }, loss))
    }

    /// The names of the groups.
    fn names(&self, data: &Data, setting: &Setting) -> Result<Vec<String>> {
        match self.by {
            By::Group => data.train.groups().map(|groups| groups.names.clone()).ok_or_else(|| {
                Error::config("config/no-groups", "the data has no groups to weigh").hint(
                    "name the column as `group` in [data], or write `by = \"class\"` in [problem]",
                )
            }),
            By::Class => Ok(match data.target() {
                Target::Classes(_) => data.classes.clone(),
                _ => (1..=data.strata()).map(|tenth| format!("tenth {tenth}")).collect(),
            }),
            By::Node if setting.scope == Scope::Global => {
                Ok((0..setting.nodes).map(|node| format!("node {node}")).collect())
            }
            By::Node => Err(Error::config(
                "config/no-meaning",
                "`by = \"node\"` weighs the rows of nodes, and each trains on its own alone",
            )
            .hint(
                "write `scope = \"global\"`, or `by = \"group\"` where nodes have rows of several",
            )),
        }
    }

    /// Whether each group is trusted.
    fn trusts(&self, names: &[String]) -> Result<Vec<bool>> {
        for name in &self.trusted {
            if !names.contains(name) {
                let near = nearest(name, names.iter().map(String::as_str));
                let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let message = format!("the data has no group `{name}` to trust");
                return Err(Error::config("config/unknown-name", message)
                    .hint(format!("{did}the groups are {}", names.join(", "))));
            }
        }
        let all = self.trusted.is_empty();
        Ok(names.iter().map(|name| all || self.trusted.contains(name)).collect())
    }
}

impl<T: Real> Problem<T> for Options {
    fn needs_data(&self) -> bool {
        true
    }

    fn parts(&self, setting: &Setting, nodes: Range<usize>) -> Result<Parts<T>> {
        let data = data("reweighting", setting)?;
        let names = self.names(data, setting)?;
        let trusted = self.trusts(&names)?;
        let part = |node| Reweighting::new(node, self, (data, setting), &names, &trusted);
        nodes.map(part).collect()
    }

    fn predictor(&self, target: Target, at: At<f64>, features: usize) -> Option<Predictor> {
        let head = self.model::<f64>(features, target).ok()?.layer(at.theta)?;
        Some(Predictor { layers: vec![head] })
    }

    /// x has weights for the groups of the training rows only.
    fn transfers(&self) -> bool {
        false
    }
}

/// A node's part.
pub struct Reweighting<T> {
    local: Local<T>,
    model: Linear<T>,
    ridge: T,
    outer: Losses<T>,
    inner: Losses<T>,
    groups: Vec<u32>, // of each training sample
    names: Vec<String>,
    weights: Vec<T>, // w(x)
}

impl<T: Real> Reweighting<T> {
    fn new(
        node: usize,
        options: &Options,
        (data, setting): (&Data, &Setting),
        names: &[String],
        trusted: &[bool],
    ) -> Result<Reweighting<T>> {
        let group = |row: u32| match options.by {
            By::Group => data.train.groups().map_or(0, |groups| groups.of[row as usize]),
            By::Class => data.train.labels()[row as usize],
            By::Node => node as u32,
        };
        let mut groups = Vec::new();
        let local = Local::of_node("reweighting", node, setting, |rows, stream| {
            stream.shuffle(rows);
            let (train, validation) = match setting.whole {
                true => (rows.to_vec(), rows.to_vec()),
                false => {
                    let (mut own, mut train): (Vec<u32>, Vec<u32>) =
                        rows.iter().partition(|&&row| trusted[group(row) as usize]);
                    // Rows that are not trusted train all the same; one row may be for f alone.
                    let (rest, validation) = match (own.len(), train.is_empty()) {
                        (1, false) => (Vec::new(), std::mem::take(&mut own)),
                        _ => cut(&own, options.validation)?,
                    };
                    train.extend(rest);
                    (train, validation)
                }
            };
            groups = train.iter().map(|&row| group(row)).collect();
            Some((train, validation))
        })
        .map_err(|error| match error.id {
            "data/too-few-samples" if !options.trusted.is_empty() => Error {
                hint: Some("every node needs a row of a group in `trusted`, to judge by".into()),
                ..error
            },
            _ => error,
        })?;
        let losses = |samples: &Samples<T>| {
            Losses::new(samples.clone(), options.scale.factor(setting.batch, samples.len()))
        };
        Ok(Reweighting {
            model: options.model(local.features(), local.target)?,
            ridge: T::of(options.ridge),
            outer: losses(&local.validation),
            inner: losses(&local.train),
            groups,
            names: names.to_vec(),
            weights: Vec::new(),
            local,
        })
    }

    /// weights ← w(x).
    fn find_weights(&mut self, x: &[T]) {
        self.weights.clear();
        self.weights.extend_from_slice(x);
        Level::best().softmax(&mut self.weights, x.len());
        let groups = T::of(x.len() as f64);
        update(&mut self.weights, [], |share, []| groups * share);
    }

    /// out_l ← w_l (G_l − Σ_k w_k G_k / K), from G.
    fn pull_back(&self, out: &mut [T]) {
        let mean = dot(&self.weights, out) / T::of(out.len() as f64);
        update(out, [&self.weights], |sum, [weight]| weight * (sum - mean));
    }
}

/// The goal and the weight w_{k(e)} c/b of the r-th example of a batch.
fn weighted<'a, T: Real>(
    losses: &'a Losses<T>,
    (weights, groups): (&'a [T], &'a [u32]),
    batch: &'a [u32],
) -> impl Fn(usize) -> (Goal<'a, T>, T) + 'a {
    losses.each_weighted(batch, |e| weights[groups[e] as usize])
}

impl<T: Real> Bilevel<T> for Reweighting<T> {
    fn dims(&self) -> Dims {
        Dims { n: self.names.len(), p: self.model.size() }
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
        self.find_weights(at.x);
        let each = weighted(&self.inner, (&self.weights, &self.groups), batch);
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
        self.find_weights(at.x);
        let each = weighted(&self.inner, (&self.weights, &self.groups), batch);
        self.model.add_gradient(&self.inner.rows(batch), at.theta, each, out);
        axpy(self.ridge + self.ridge, at.theta, out);
    }

    fn hess_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.find_weights(at.x);
        let each = weighted(&self.inner, (&self.weights, &self.groups), batch);
        self.model.add_hessian_product(&self.inner.rows(batch), at.theta, v, each, out);
        axpy(self.ridge + self.ridge, v, out);
    }

    fn cross_g(&mut self, at: At<T>, batch: &[u32], v: &[T], out: &mut [T]) {
        out.fill(T::zero());
        self.find_weights(at.x);
        let Reweighting { model, inner, groups, .. } = self;
        model.each_slope(&inner.rows(batch), at.theta, v, inner.each(batch), |r, slope| {
            out[groups[batch[r] as usize] as usize] += slope;
        });
        self.pull_back(out);
    }

    /// Then the weight of each group, as `weight_` and its name.
    fn metrics(&mut self, at: At<T>) -> Vec<(String, f64)> {
        self.find_weights(at.x);
        let Reweighting { local, model, outer, names, weights, .. } = self;
        let loss = model.loss(&outer.samples, at.theta, outer.every());
        let mut metrics = vec![("loss".into(), loss)];
        metrics.extend(local.measures(|samples| model.scores(samples, at.theta)));
        let weight = |(name, weight): (&String, &T)| (format!("weight_{name}"), weight.to_f64());
        metrics.extend(names.iter().zip(&*weights).map(weight));
        metrics
    }

    fn row_sums(&self) -> Result<RowSums, &'static str> {
        Err("the weight of a small group says much about its few rows")
    }

    fn single_level(&mut self) -> Option<&mut dyn SingleLevel<T>> {
        Some(self)
    }
}

impl<T: Real> SingleLevel<T> for Reweighting<T> {
    fn grad_x_g(&mut self, at: At<T>, batch: &[u32], out: &mut [T]) {
        out.fill(T::zero());
        self.find_weights(at.x);
        let Reweighting { model, inner, groups, .. } = self;
        model.each_loss(&inner.rows(batch), at.theta, inner.each(batch), |r, loss| {
            out[groups[batch[r] as usize] as usize] += loss;
        });
        self.pull_back(out);
    }
}
