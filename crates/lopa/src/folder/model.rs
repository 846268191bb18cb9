//! Trained models on disk: one safetensors file with x_i and θ_i of every node and everything
//! needed to use them on new data, but none of the training data.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::Table;

use super::compact::{self, Blocks, Rows, Tensor};
use crate::config::Registry;
use crate::data::{Columns, Features, Needed, Scaling, Scalings, Target, TargetScaling, Unnamed};
use crate::error::{Error, Kind, Result, nearest};
use crate::problem::predictor::Predictor;
use crate::problem::{AnyProblem, At};
use crate::run::Part;
use crate::run::evaluate::Point;
use crate::store::bytes::hex;
use crate::store::disk;
use crate::store::files::{cannot_write, replace};
use crate::store::output;

/// The id of the error of a model file that is missing or damaged.
pub(super) const DAMAGED: &str = "storage/model";

/// The models that one run of one algorithm ended with.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Their metadata.
    pub about: About,
    /// x_i of every node.
    pub x: Vec<Vec<f64>>,
    /// θ_i of every node.
    pub theta: Vec<Vec<f64>>,
    /// How raw features are scaled.
    pub scaling: Scalings,
}

/// Metadata of models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// The problem's name.
    pub problem: String,
    /// The problem's parameters.
    pub params: Table,
    /// Number of raw features, without columns left out.
    pub features: usize,
    /// The classes by name, in the order of their numbers; none where it predicts numbers.
    pub classes: Vec<String>,
    /// The names of the numbers that it predicts; none where it predicts classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Whether these are a time and an event, of which it predicts the risk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub survival: bool,
    /// The names of the columns, if the data has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// What must be known of columns without names.
    #[serde(default, skip_serializing_if = "Unnamed::is_usual")]
    pub unnamed: Unnamed,
    /// Whether the run diverged: the numbers are meaningless.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diverged: bool,
    /// Whether raw features are replaced by sign(raw) ln(1 + |raw|) before they are shifted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log: bool,
    /// Whether each scaled row is divided by its Euclidean length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub row: bool,
    /// The budget of `[privacy]` that the run has spent, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Spent>,
    /// Whether missing values are filled, by the tensor `scaling.fill`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fills: bool,
    /// The names of the nodes, if they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The node of each group, where nodes are not named after their groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, usize>,
    /// Who took part from which iteration on, if not all nodes took part in all iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<Part>,
}

impl About {
    /// What rows of new data need.
    pub fn needs(&self) -> Needed<'_> {
        let About { features, columns, unnamed, .. } = self;
        let outputs = self.outputs.len().max(1);
        Needed {
            features: *features,
            outputs,
            fills: self.fills,
            columns: columns.as_ref(),
            unnamed,
        }
    }

    /// What it predicts.
    pub fn target(&self) -> Target {
        match self.outputs.len() {
            0 => Target::Classes(self.classes.len()),
            _ if self.survival => Target::Survival,
            outputs => Target::Numbers(outputs),
        }
    }

    /// The names of its predictions.
    pub fn predictions(&self) -> Vec<String> {
        match self.target() {
            Target::Classes(_) => self.classes.clone(),
            Target::Numbers(_) => self.outputs.clone(),
            Target::Survival => vec!["risk".into()],
        }
    }
}

/// A privacy budget that a run has spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// ε of the row that it says most about.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// Whether the noise came from a known seed, and hides nothing.
    pub simulated: bool,
}

/// Our entry in the file's header.
#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    about: About,
    /// The digest of everything else, to detect damage.
    sha256: String,
    /// The layout of θ, if it is not one tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    theta: Option<Blocks>,
}

impl Model {
    /// Writes the file that a user named.
    pub fn save(&self, path: &Path) -> Result<()> {
        let points: Vec<Point> = self.x.iter().cloned().zip(self.theta.iter().cloned()).collect();
        let file = encode(path, &self.about, &points, &self.scaling)?;
        output::write(path, &file, "the model", output::OTHER)
    }

    /// Reads a file; a damaged one is refused.
    pub fn load(path: &Path) -> Result<Model> {
        let wrong = |what: String| {
            Error::storage(DAMAGED, format!("this is not a model file of lopa: {what}"))
                .at(path.display().to_string())
        };
        let file = disk::read(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => wrong("there is no such file".into()),
            _ => Error::storage("storage/read", format!("cannot read the model: {error}"))
                .at(path.display().to_string())
                .hint("check who may read the file, and the disk"),
        })?;
        let (_, header) =
            SafeTensors::read_metadata(&file).map_err(|error| wrong(error.to_string()))?;
        let entry = header.metadata().as_ref().and_then(|metadata| metadata.get("lopa"));
        let entry = entry.ok_or_else(|| wrong("the header has no entry `lopa`".into()))?;
        let Header { about, sha256, theta } =
            serde_json::from_str(entry).map_err(|error| wrong(error.to_string()))?;
        let tensors = SafeTensors::deserialize(&file).map_err(|error| wrong(error.to_string()))?;
        let view = |name: &str| tensors.tensor(name).map_err(|error| wrong(error.to_string()));
        let read = |name: &str| -> Result<(Vec<f64>, Vec<usize>)> {
            let view = view(name)?;
            let other = || wrong(format!("the tensor `{name}` is not of type F64 or F32"));
            Ok((compact::numbers(&view).ok_or_else(other)?, view.shape().to_vec()))
        };
        let rows = |name: &str| -> Result<Vec<Vec<f64>>> {
            let (values, shape) = read(name)?;
            match shape[..] {
                [_, 0] => Err(wrong(format!("the tensor `{name}` is empty"))),
                [_, width] => Ok(values.chunks_exact(width).map(<[f64]>::to_vec).collect()),
                _ => Err(wrong(format!("the tensor `{name}` is not a matrix"))),
            }
        };
        let theta = match theta {
            None => rows("theta")?,
            Some(blocks) => {
                let [start, index] = [view("theta.start")?, view("theta.index")?];
                let (data, _) = read("theta.data")?;
                let unfit = || wrong("the blocks of `theta` do not fit together".into());
                blocks.rows(&start, &index, &data).ok_or_else(unfit)?
            }
        };
        let (shift, factor) = (read("scaling.shift")?, read("scaling.factor")?);
        let unfit = || wrong("its tensors do not fit together".into());
        let mut scaling = scalings(&about, shift, factor).ok_or_else(unfit)?;
        if about.fills {
            let (values, shape) = read("scaling.fill")?;
            scaling = filling(scaling, about.features, &values, &shape).ok_or_else(unfit)?;
        }
        if matches!(about.target(), Target::Numbers(_)) {
            let (shift, factor) = (read("target.shift")?, read("target.factor")?);
            scaling = targeted(scaling, about.outputs.len(), shift, factor).ok_or_else(unfit)?;
        }
        let model = Model { about, x: rows("x")?, theta, scaling };
        let scaled = |values: &[f64]| values.is_empty() || values.len() == model.about.features;
        let scalings = model.scaling.as_slice();
        let fits = model.x.len() == model.theta.len()
            && (scalings.len() == 1 || scalings.len() == model.x.len())
            && scalings.iter().all(|scaling| scaled(&scaling.shift) && scaled(&scaling.factor));
        if !fits {
            return Err(unfit());
        }
        match model.digest() == sha256 {
            true => Ok(model),
            false => Err(wrong("it was damaged or changed after it was written".into())),
        }
    }

    /// SHA-256 of the metadata and of every number.
    fn digest(&self) -> String {
        digest(&self.about, self.x.iter().chain(&self.theta), &self.scaling)
    }

    /// For each row of raw features, the probability of each class, each number in its own units, or the
    /// risk: rows × [`Target::width`] entries.
    pub fn predictions(
        &self,
        node: usize,
        raw: &Features<f64>,
        problems: &Registry<AnyProblem>,
    ) -> Result<Vec<f64>> {
        let at = self.at(node)?;
        let About { features, problem, params, .. } = &self.about;
        let raw = self.about.needs().cut(raw.clone());
        if raw.cols() != *features {
            let message = format!(
                "the model was trained on {features} features, but these rows have {}",
                raw.cols()
            );
            return Err(Error::data("data/shape", message));
        }
        let chosen = problems.choose(problem, params)?;
        let (scaling, target) = (self.scaling.of(node), self.about.target());
        let found = chosen.build.get::<f64>().predictions(target, at, &scaling.apply(raw));
        let mut found = found.ok_or_else(|| self.meaningless())?;
        scaling.target.undo(&mut found);
        Ok(found)
    }

    /// A node's model as layers on scaled features.
    pub fn predictor(&self, node: usize, problems: &Registry<AnyProblem>) -> Result<Predictor> {
        let at = self.at(node)?;
        let About { features, problem, params, .. } = &self.about;
        let chosen = problems.choose(problem, params)?;
        let found = chosen.build.get::<f64>().predictor(self.about.target(), at, *features);
        found.ok_or_else(|| self.meaningless())
    }

    /// The node of this name or number; without one, the only node.
    pub fn node(&self, wanted: Option<&str>) -> Result<usize> {
        let (nodes, names) = (self.x.len(), &self.about.nodes);
        let known = || match names.is_empty() {
            true => format!("the model has nodes 0 to {}", nodes.saturating_sub(1)),
            false => format!("the model has {}", names.join(", ")),
        };
        let Some(wanted) = wanted else {
            return match nodes {
                1 => Ok(0),
                _ => Err(Error::config("config/missing-key", "the model has several nodes")
                    .at("--node")
                    .hint(format!("choose one: {}", known()))),
            };
        };
        let named = names.iter().position(|name| name == wanted);
        match named.or_else(|| wanted.parse().ok()) {
            Some(node) => self.at(node).map(|_| node),
            None => {
                let near = nearest(wanted, names.iter().map(String::as_str));
                let did = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let message = format!("there is no node `{wanted}`");
                Err(Error::config("config/unknown-name", message)
                    .at("--node")
                    .hint(format!("{did}{}", known())))
            }
        }
    }

    /// The node that rows of a group belong to.
    pub fn home(&self, group: &str) -> Option<usize> {
        let About { nodes, groups, .. } = &self.about;
        let named = nodes.iter().position(|name| name == group);
        named.or_else(|| groups.get(group).copied()).filter(|&node| node < self.x.len())
    }

    /// A node's name, or its number.
    pub fn name(&self, node: usize) -> String {
        self.about.nodes.get(node).cloned().unwrap_or_else(|| node.to_string())
    }

    fn meaningless(&self) -> Error {
        let message = format!("models of the problem `{}` predict nothing", self.about.problem);
        Error::config("config/no-meaning", message)
    }

    /// Whether a node's θ_i is not here: it is among peers, or has left.
    pub fn lacks(&self, node: usize) -> bool {
        self.theta[node].iter().all(|value| value.is_nan())
    }

    /// Whether some θ_i are not here.
    pub fn lacks_some(&self) -> bool {
        (0..self.theta.len()).any(|node| self.lacks(node))
    }

    /// (x_i, θ_i) of a node.
    pub fn at(&self, node: usize) -> Result<At<'_, f64>> {
        let nodes = self.x.len();
        if node >= nodes {
            let message = format!(
                "there is no node {node}: the run has nodes 0 to {}",
                nodes.saturating_sub(1)
            );
            return Err(Error::config("config/out-of-range", message).at("--node"));
        }
        let diverged = self.about.diverged;
        if !diverged && self.lacks(node) {
            let left = self.about.chapters.last().is_some_and(|part| !part.members.contains(&node));
            let message = match left {
                true => format!("node {node} left the run before its end: its model is not here"),
                false => format!("only node {node} itself has its model"),
            };
            return Err(Error::config("config/not-here", message)
                .at("--node")
                .hint("a peer's folder holds the model of its own node"));
        }
        let mut numbers = self.x[node].iter().chain(&self.theta[node]);
        if !numbers.all(|value| value.is_finite()) {
            let what = format!("the model of node {node} has values that are not finite");
            return Err(match diverged {
                true => Error::new(Kind::Run, "run/diverged", format!("the run diverged: {what}"))
                    .at("--node")
                    .hint("run it again with smaller steps"),
                false => Error::storage("storage/model", what)
                    .at("--node")
                    .hint("make the model again: lopa writes none like it"),
            });
        }
        Ok(At { x: &self.x[node], theta: &self.theta[node] })
    }
}

/// Writes a model file of a run folder.
pub(super) fn save(path: &Path, about: &About, points: &[Point], all: &Scalings) -> Result<()> {
    let file = encode(path, about, points, all)?;
    replace(path, &file).map_err(|error| cannot_write(path, &error))
}

/// The content of a model file, with one copy of its numbers in memory.
fn encode(path: &Path, about: &About, points: &[Point], all: &Scalings) -> Result<Vec<u8>> {
    let wrong = |what: String| {
        Error::storage("storage/write", format!("cannot write the model: {what}"))
            .at(path.display().to_string())
    };
    let (x, theta) = (points.iter().map(|point| &point.0), points.iter().map(|point| &point.1));
    let digest = digest(about, x.clone().chain(theta.clone()), all);
    let rows = all.as_slice().iter();
    let alone = rows.len() == 1;
    let large = theta.clone().map(Vec::len).sum::<usize>() > SMALL;
    let blocks = Blocks::of(about.target().width(), theta.clone()).filter(|_| large);
    let (layout, mut tensors) = match blocks {
        None => (None, vec![("theta", Tensor::Rows(Rows::of(theta, false).in_f32_if(large)))]),
        Some((layout, packed)) => (Some(layout), packed.tensors()),
    };
    tensors.extend([
        ("x", Tensor::Rows(Rows::of(x, false).in_f32_if(large))),
        ("scaling.shift", Tensor::Rows(Rows::of(rows.clone().map(|s| &s.shift), alone))),
        ("scaling.factor", Tensor::Rows(Rows::of(rows.map(|s| &s.factor), alone))),
    ]);
    if about.fills {
        let rows = all.as_slice().iter().map(|scaling| &scaling.fill);
        tensors.push(("scaling.fill", Tensor::Rows(Rows::of(rows, false))));
    }
    if matches!(about.target(), Target::Numbers(_)) {
        let rows = all.as_slice().iter().map(|scaling| &scaling.target);
        tensors.extend([
            ("target.shift", Tensor::Rows(Rows::of(rows.clone().map(|t| &t.shift), false))),
            ("target.factor", Tensor::Rows(Rows::of(rows.map(|t| &t.factor), false))),
        ]);
    }
    let header = Header { about: about.clone(), sha256: digest, theta: layout };
    let header = serde_json::to_string(&header).map_err(|error| wrong(error.to_string()))?;
    let metadata = HashMap::from([("lopa".to_string(), header)]);
    safetensors::serialize(tensors, Some(metadata)).map_err(|error| wrong(error.to_string()))
}

/// Models with at most this many numbers in θ are stored as one tensor in double precision, which
/// any reader supports.
const SMALL: usize = 1 << 17;

/// SHA-256 of the metadata and of every number.
fn digest<'a>(
    about: &About,
    numbers: impl Iterator<Item = &'a Vec<f64>>,
    scalings: &'a Scalings,
) -> String {
    let mut hasher = Sha256::new();
    hasher.update(serde_json::to_vec(about).expect("plain values are JSON"));
    let scalings = scalings.as_slice().iter();
    let scaled = scalings.flat_map(|Scaling { shift, factor, fill, target, .. }| {
        [shift, factor, fill, &target.shift, &target.factor]
    });
    for values in numbers.chain(scaled) {
        // In pieces: a copy of a row would be as large as the row.
        values.chunks(1 << 13).for_each(|piece| hasher.update(bytes(piece)));
    }
    hex(&hasher.finalize())
}

/// The scalings in two tensors; `None` if their shapes do not fit.
fn scalings(
    &About { log, row, .. }: &About,
    (shift, shape): (Vec<f64>, Vec<usize>),
    (factor, same): (Vec<f64>, Vec<usize>),
) -> Option<Scalings> {
    match (&shape[..], &same[..]) {
        ([_], [_]) => {
            Some(Scalings::all(Scaling { shift, factor, log, row, ..Scaling::default() }))
        }
        (&[nodes, shifts], &[others, factors]) if nodes == others && nodes > 0 => {
            let of = |values: &[f64], width: usize, node: usize| {
                values[node * width..(node + 1) * width].to_vec()
            };
            let scaling = |node| Scaling {
                shift: of(&shift, shifts, node),
                factor: of(&factor, factors, node),
                log,
                row,
                ..Scaling::default()
            };
            Some(Scalings::each((0..nodes).map(scaling).collect()))
        }
        _ => None,
    }
}

/// The scalings with what fills missing values; `None` if their shapes do not fit.
fn filling(all: Scalings, features: usize, values: &[f64], shape: &[usize]) -> Option<Scalings> {
    let each = all.as_slice();
    if shape != [each.len(), features] {
        return None;
    }
    let with =
        |(scaling, fill): (&Scaling, &[f64])| Scaling { fill: fill.to_vec(), ..scaling.clone() };
    let rows = values.chunks_exact(features.max(1));
    let each: Vec<Scaling> = each.iter().zip(rows).map(with).collect();
    (!each.is_empty()).then(|| Scalings::each(each))
}

/// The scalings with those of the numbers to predict, in two tensors; `None` if their shapes do not fit.
fn targeted(
    scalings: Scalings,
    outputs: usize,
    (shift, shape): (Vec<f64>, Vec<usize>),
    (factor, same): (Vec<f64>, Vec<usize>),
) -> Option<Scalings> {
    let each = scalings.as_slice();
    if shape != [each.len(), outputs] || same != shape {
        return None;
    }
    let of = |values: &[f64], node: usize| values[node * outputs..(node + 1) * outputs].to_vec();
    let with = |(node, scaling): (usize, &Scaling)| {
        let target = TargetScaling { shift: of(&shift, node), factor: of(&factor, node) };
        Scaling { target, ..scaling.clone() }
    };
    Some(match each {
        [one] => Scalings::all(with((0, one))),
        _ => Scalings::each(each.iter().enumerate().map(with).collect()),
    })
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
