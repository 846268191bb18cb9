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

use super::linear::Linear;
use super::local::{cut, named};
use super::loss::{LossKeys, LossName};
use super::weighted::{self, Weighted, Weighting};
use super::{Local, Scale, data};
use crate::choices;
use crate::data::{Data, Target};
use crate::error::{Error, Fault, Result, nearest};
use crate::math::real::{Real, dot, update};
use crate::params;
use crate::problem::predictor::Predictor;
use crate::problem::scope::Scope;
use crate::problem::{At, Parts, Problem, Setting};
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
        weighted::model("reweighting", self.loss(), (inputs, true), target)
    }

    /// A node's rows, and the group of each that trains.
    fn local<T: Real>(
        &self,
        node: usize,
        (data, setting): (&Data, &Setting),
        trusted: &[bool],
    ) -> Result<(Local<T>, Vec<u32>)> {
        let group = |row: u32| match self.by {
            By::Group => data.train.groups().map_or(0, |groups| groups.of[row as usize]),
            By::Class => data.train.labels()[row as usize],
            By::Node => node as u32,
        };
        let mut groups = Vec::new();
        let local = Local::of_node("reweighting", node, setting, |rows, stream| {
            stream.shuffle(rows);
            let (train, validation) = match setting.whole {
                true => (rows.to_vec(), rows.to_vec()),
                false if named(setting).is_some() => cut(rows, self.validation, setting)?,
                false => {
                    let (mut own, mut train): (Vec<u32>, Vec<u32>) =
                        rows.iter().partition(|&&row| trusted[group(row) as usize]);
                    // Rows that are not trusted train all the same; one row may be for f alone.
                    let (rest, validation) = match (own.len(), train.is_empty()) {
                        (1, false) => (Vec::new(), std::mem::take(&mut own)),
                        _ => cut(&own, self.validation, setting)?,
                    };
                    train.extend(rest);
                    (train, validation)
                }
            };
            groups = train.iter().map(|&row| group(row)).collect();
            Some((train, validation))
        });
        let local = local.map_err(|error| match error.id {
            "data/too-few-samples" if !self.trusted.is_empty() => Error {
                hint: Some("every node needs a row of a group in `trusted`, to judge by".into()),
                ..error
            },
            _ => error,
        })?;
        Ok((local, groups))
    }

    /// The names of the groups.
    fn names(&self, data: &Data, setting: &Setting) -> Result<Vec<String>> {
        match self.by {
            By::Group => data.train.groups().map(|groups| groups.names.clone()).ok_or_else(|| {
                Error::config("config/no-groups", "the data has no groups to weigh").hint(
                    "name the column as `group` in [data], and its groups as `group_names` where nodes have \
                     files of their own; or write `by = \"class\"` in [problem]",
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
        let part = |node| {
            let (local, of) = self.local(node, (data, setting), &trusted)?;
            let model = self.model(local.features(), local.target)?;
            let weighting = EachGroup { of, names: names.clone(), shares: Vec::new() };
            Ok(Weighted::new(local, model, (self.ridge, self.scale), setting, weighting))
        };
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

/// w_k(x) for each row of group k.
struct EachGroup<T> {
    of: Vec<u32>, // the group of each training row
    names: Vec<String>,
    shares: Vec<T>, // w(x)
}

impl<T: Real> EachGroup<T> {
    fn find_shares(&mut self, x: &[T]) {
        self.shares.clear();
        self.shares.extend_from_slice(x);
        Level::best().softmax(&mut self.shares, x.len());
        let groups = T::of(x.len() as f64);
        update(&mut self.shares, [], |share, []| groups * share);
    }
}

impl<T: Real> Weighting<T> for EachGroup<T> {
    const NOT_PRIVATE: &'static str = "the weight of a small group says much about its few rows";

    fn entries(&self) -> usize {
        self.names.len()
    }

    fn weigh(&mut self, x: &[T], batch: &[u32], weights: &mut Vec<T>, factors: &mut Vec<T>) {
        self.find_shares(x);
        weights.extend(batch.iter().map(|&e| self.shares[self.of[e as usize] as usize]));
        factors.resize(batch.len(), T::one());
    }

    fn entry(&self, row: u32) -> usize {
        self.of[row as usize] as usize
    }

    /// w_l (G_l − Σ_k w_k G_k / K), from G.
    fn pull_back(&self, sums: &mut [T]) {
        let mean = dot(&self.shares, sums) / T::of(sums.len() as f64);
        update(sums, [&self.shares], |sum, [share]| share * (sum - mean));
    }

    /// The weight of each group, as `weight_` and its name.
    fn measures(&mut self, x: &[T]) -> Vec<(String, f64)> {
        self.find_shares(x);
        let weight = |(name, share): (&String, &T)| (format!("weight_{name}"), share.to_f64());
        self.names.iter().zip(&self.shares).map(weight).collect()
    }
}
