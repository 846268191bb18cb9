//! Trained models on disk: one safetensors file with x_i and θ_i of every node and what it takes to
//! use them on new data, but none of the data they were trained on.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::Table;

use crate::config::Registry;
use crate::data::{Columns, Features, Scaling, Scalings};
use crate::error::{Error, Kind, Result};
use crate::problem::{AnyProblem, At};
use crate::run::hex;
use crate::store::files::replace;

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
    /// Number of raw features.
    pub features: usize,
    /// The classes by name, in the order of their numbers.
    pub classes: Vec<String>,
    /// The names of the columns, if the data has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// Whether the run diverged: the numbers mean nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diverged: bool,
}

/// Our entry in the file's header.
#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    about: About,
    /// Of everything else, to detect damage.
    sha256: String,
}

impl Model {
    /// Writes the file atomically.
    pub fn save(&self, path: &Path) -> Result<()> {
        let wrong = |what: String| {
            Error::storage("storage/write", format!("cannot write the model: {what}"))
                .at(path.display().to_string())
        };
        let tensors = [
            ("x", bytes(self.x.concat().as_slice()), shape(&self.x)),
            ("theta", bytes(self.theta.concat().as_slice()), shape(&self.theta)),
            self.scaling_tensor("scaling.shift", |scaling| &scaling.shift),
            self.scaling_tensor("scaling.factor", |scaling| &scaling.factor),
        ];
        let views: std::result::Result<Vec<_>, _> = tensors
            .iter()
            .map(|(name, data, shape)| {
                TensorView::new(Dtype::F64, shape.clone(), data).map(|view| (*name, view))
            })
            .collect();
        let header = Header { about: self.about.clone(), sha256: self.digest() };
        let header = serde_json::to_string(&header).map_err(|error| wrong(error.to_string()))?;
        let metadata = HashMap::from([("lopa".to_string(), header)]);
        let views = views.map_err(|error| wrong(error.to_string()))?;
        let file = safetensors::serialize(views, Some(metadata))
            .map_err(|error| wrong(error.to_string()))?;
        replace(path, &file).map_err(|error| wrong(error.to_string()))
    }

    /// Reads a file; a damaged one is refused.
    pub fn load(path: &Path) -> Result<Model> {
        let wrong = |what: String| {
            Error::storage("storage/model", format!("this is not a model file of lopa: {what}"))
                .at(path.display().to_string())
        };
        let file = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let (_, header) =
            SafeTensors::read_metadata(&file).map_err(|error| wrong(error.to_string()))?;
        let entry = header.metadata().as_ref().and_then(|metadata| metadata.get("lopa"));
        let entry = entry.ok_or_else(|| wrong("the header has no entry `lopa`".into()))?;
        let Header { about, sha256 } =
            serde_json::from_str(entry).map_err(|error| wrong(error.to_string()))?;
        let tensors = SafeTensors::deserialize(&file).map_err(|error| wrong(error.to_string()))?;
        let read = |name: &str| -> Result<(Vec<f64>, Vec<usize>)> {
            let view = tensors.tensor(name).map_err(|error| wrong(error.to_string()))?;
            if view.dtype() != Dtype::F64 {
                return Err(wrong(format!("the tensor `{name}` is not of type F64")));
            }
            let (words, _) = view.data().as_chunks::<8>();
            Ok((words.iter().map(|&w| f64::from_le_bytes(w)).collect(), view.shape().to_vec()))
        };
        let rows = |name: &str| -> Result<Vec<Vec<f64>>> {
            let (values, shape) = read(name)?;
            match shape[..] {
                [_, 0] => Err(wrong(format!("the tensor `{name}` is empty"))),
                [_, width] => Ok(values.chunks_exact(width).map(<[f64]>::to_vec).collect()),
                _ => Err(wrong(format!("the tensor `{name}` is not a matrix"))),
            }
        };
        let (shift, factor) = (read("scaling.shift")?, read("scaling.factor")?);
        let unfit = || wrong("its tensors do not fit together".into());
        let scaling = scalings(shift, factor).ok_or_else(unfit)?;
        let model = Model { about, x: rows("x")?, theta: rows("theta")?, scaling };
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
        let mut hasher = Sha256::new();
        hasher.update(serde_json::to_vec(&self.about).expect("plain values are JSON"));
        let scalings = self.scaling.as_slice().iter();
        let scaled = scalings.flat_map(|Scaling { shift, factor }| [shift, factor]);
        for values in self.x.iter().chain(&self.theta).chain(scaled) {
            hasher.update(bytes(values));
        }
        hex(&hasher.finalize())
    }

    /// A vector where all nodes share the scaling, else a matrix with a row per node.
    fn scaling_tensor(
        &self,
        name: &'static str,
        part: impl Fn(&Scaling) -> &Vec<f64>,
    ) -> (&'static str, Vec<u8>, Vec<usize>) {
        let scalings = self.scaling.as_slice();
        let length = part(&scalings[0]).len();
        let shape = if scalings.len() == 1 { vec![length] } else { vec![scalings.len(), length] };
        (name, scalings.iter().flat_map(|scaling| bytes(part(scaling))).collect(), shape)
    }

    /// The class numbers that a node's model predicts for raw features.
    pub fn predict(
        &self,
        node: usize,
        raw: &Features<f64>,
        problems: &Registry<AnyProblem>,
    ) -> Result<Vec<u32>> {
        let nodes = self.x.len();
        if node >= nodes {
            let message = format!(
                "there is no node {node}: the run has nodes 0 to {}",
                nodes.saturating_sub(1)
            );
            return Err(Error::config("config/out-of-range", message).at("--node"));
        }
        let numbers = || self.x[node].iter().chain(&self.theta[node]);
        if self.about.diverged && !numbers().all(|value| value.is_finite()) {
            let message = format!(
                "the run diverged: the model of node {node} has values that are not finite"
            );
            return Err(Error::new(Kind::Run, "run/diverged", message)
                .at("--node")
                .hint("run it again with smaller steps"));
        }
        if self.theta[node].iter().any(|value| value.is_nan()) {
            let message = format!("only node {node} itself has its model");
            return Err(Error::config("config/not-here", message)
                .at("--node")
                .hint("a peer's folder holds the model of its own node"));
        }
        let About { features, problem, params, classes, .. } = &self.about;
        if raw.cols() != *features {
            let message = format!(
                "the model was trained on {features} features, but these rows have {}",
                raw.cols()
            );
            return Err(Error::data("data/shape", message));
        }
        let chosen = problems.choose(problem, params)?;
        let at = At { x: &self.x[node], theta: &self.theta[node] };
        let scaled = self.scaling.of(node).apply(raw.clone());
        chosen.build.get::<f64>().predict(classes.len(), at, &scaled).ok_or_else(|| {
            let message = format!("models of the problem `{problem}` predict nothing");
            Error::config("config/no-meaning", message)
        })
    }
}

/// The scalings in two tensors; `None` if their shapes do not fit.
fn scalings(
    (shift, shape): (Vec<f64>, Vec<usize>),
    (factor, same): (Vec<f64>, Vec<usize>),
) -> Option<Scalings> {
    match (&shape[..], &same[..]) {
        ([_], [_]) => Some(Scalings::all(Scaling { shift, factor })),
        (&[nodes, shifts], &[others, factors]) if nodes == others && nodes > 0 => {
            let row = |values: &[f64], width: usize, node: usize| {
                values[node * width..(node + 1) * width].to_vec()
            };
            let scaling = |node| Scaling {
                shift: row(&shift, shifts, node),
                factor: row(&factor, factors, node),
            };
            Some(Scalings::each((0..nodes).map(scaling).collect()))
        }
        _ => None,
    }
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn shape(rows: &[Vec<f64>]) -> Vec<usize> {
    vec![rows.len(), rows.first().map_or(0, Vec::len)]
}
