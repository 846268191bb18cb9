//! The problems: the meaning of the shared x and the personal θ_i.
//!
//! Each problem is one file and one line of [`problems`].

pub mod activation;
pub mod affine;
pub mod cox;
pub mod goal;
pub mod hidden;
pub mod hyper_cleaning;
pub mod hyperparameter;
pub mod linalg;
pub mod linear;
mod local;
pub mod loss;
pub mod losses;
pub mod meta_learning;
pub mod quadratic;
pub mod representation;
pub mod reweighting;
mod weighted;

pub use local::Local;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Registry;
use crate::data::{Data, Target};
use crate::error::{Error, Result};
use crate::problem::{AnyProblem, Setting, problem_entry};

/// The problems that come with the library.
pub fn problems() -> Registry<AnyProblem> {
    let entries = vec![
        problem_entry::<quadratic::Options>(
            "quadratic",
            "quadratic f and g with everything in closed form, made at random or read from a file",
        ),
        problem_entry::<hyperparameter::Options>(
            "hyperparameter",
            "a linear model of classes or numbers; x is the log of each feature's regularisation",
        ),
        problem_entry::<representation::Options>(
            "representation",
            "a neural network with shared hidden layers x and personal linear heads theta_i",
        ),
        problem_entry::<meta_learning::Options>(
            "meta-learning",
            "a common start x from which one gradient step adapts to a node's tasks",
        ),
        problem_entry::<hyper_cleaning::Options>(
            "hyper-cleaning",
            "a weight x_e for every training sample, so that wrong labels lose their weight",
        ),
        problem_entry::<reweighting::Options>(
            "reweighting",
            "a softmax weight x_k for every group of rows: which sources or classes help",
        ),
    ];
    Registry::new("problem", entries)
}

/// What multiplies the mean data loss in f_i and in g_i; regularisers are not scaled.
///
/// The paper writes sums. A single batch size, that of the run, goes into `batch-sum`, so that
/// batches of any size estimate the same function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// 1: losses are means.
    #[default]
    Mean,
    /// The batch size (with full batches, the number of samples).
    BatchSum,
    /// The number of samples.
    Sum,
}

impl Scale {
    /// The factor for a function with this many samples.
    pub fn factor(self, batch: Option<usize>, samples: usize) -> f64 {
        match self {
            Scale::Mean => 1.0,
            Scale::BatchSum => batch.unwrap_or(samples) as f64,
            Scale::Sum => samples as f64,
        }
    }
}

/// The data set, which is required and must have targets, or at least two classes.
fn data<'a>(name: &str, setting: &Setting<'a>) -> Result<&'a Data> {
    let data = setting.data.ok_or_else(|| {
        Error::data("data/missing", format!("the problem `{name}` needs data, and there is none"))
            .hint("add a `[data]` section, or choose the problem `quadratic`, which makes its own")
    })?;
    if matches!(data.target(), Target::Classes(0 | 1)) {
        let message =
            format!("the data has {} class(es); at least 2 are needed", data.classes.len());
        return Err(Error::data("data/one-class", message)
            .hint("keep two classes or more, or check which column holds the label"));
    }
    Ok(data)
}
