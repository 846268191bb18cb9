//! Measurements of a run, and how it ended.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::problem::derivative::Counts;

/// Every cost that is counted, by its name in rows.
pub const COSTS: [&str; 9] = [
    "iteration",
    "gradients",
    "hessians",
    "jacobians",
    "samples",
    "exchanges",
    "bytes",
    "virtual_seconds",
    "seconds",
];

/// The measures of this crate, by their names in rows. Problems and probes may add others.
pub const MEASURES: [&str; 34] = [
    "loss",
    "train_accuracy",
    "test_accuracy",
    "own_test_accuracy",
    "holdout_accuracy",
    "test_majority",
    "own_test_majority",
    "holdout_majority",
    "train_r2",
    "train_rmse",
    "train_mae",
    "test_r2",
    "test_rmse",
    "test_mae",
    "test_r2_of_mean",
    "test_rmse_of_mean",
    "test_mae_of_mean",
    "holdout_r2",
    "holdout_rmse",
    "holdout_mae",
    "holdout_r2_of_mean",
    "holdout_rmse_of_mean",
    "holdout_mae_of_mean",
    "train_concordance",
    "test_concordance",
    "holdout_concordance",
    "phi",
    "grad_phi_sq",
    "theta_error",
    "theta_consensus",
    "x_error",
    "consensus",
    "tracking",
    "epsilon",
];

/// Whether more of a measure is better: true of accuracies, of R² and of concordances only.
pub fn more_is_better(measure: &str) -> bool {
    ["accuracy", "_r2", "_concordance"].iter().any(|end| measure.ends_with(end))
}

/// The same measure of a prediction that uses no feature, for a measure on rows outside training: that
/// of naming each node's most frequent class, or the mean of its numbers.
pub fn baseline_of(measure: &str) -> Option<String> {
    let baseline = match measure.strip_suffix("accuracy") {
        Some(start) => format!("{start}majority"),
        None => format!("{measure}_of_mean"),
    };
    MEASURES.contains(&&baseline[..]).then_some(baseline)
}

/// Who predicts so: a word for tables.
pub fn baseline_name(measure: &str) -> &'static str {
    if measure.ends_with("accuracy") { "majority class" } else { "mean of the node" }
}

/// Whether a measure spans powers of ten and is compared by its logarithm.
pub fn spans_powers(measure: &str) -> bool {
    let squares = ["consensus", "theta_consensus", "theta_error", "x_error", "grad_phi_sq"];
    squares.contains(&measure)
}

/// One measurement of a run. Costs that may differ between nodes are means over them.
///
/// Read back, every number beside the costs is a measure. `null` stands for one that was not
/// finite; other values are skipped, except under the names in [`MEASURES`], where they are an
/// error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Iterations done.
    pub iteration: u64,
    /// Hessian-vector products per node.
    pub hessians: f64,
    /// Jacobian-vector products per node.
    pub jacobians: f64,
    /// Gradients per node, of all kinds.
    pub gradients: f64,
    /// Samples evaluated per node, counted each time they are used.
    pub samples: f64,
    /// Rounds of communication.
    pub exchanges: u64,
    /// Bytes sent over all links.
    pub bytes: u64,
    /// Virtual seconds by the file's `[time]`, if it has one: when the last node is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_seconds: Option<f64>,
    /// Seconds of computing and mixing, without evaluation.
    pub seconds: f64,
    /// Measures of quality by name: `loss`, `test_accuracy`, `phi`, `grad_phi_sq`, `consensus`, …
    #[serde(flatten)]
    pub values: BTreeMap<String, f64>,
}

impl Row {
    /// A row of costs; measures of quality are added to it.
    pub fn new(counts: &Counts, nodes: usize) -> Row {
        let each = |total: u64| total as f64 / nodes as f64;
        let Counts { grad_theta_g, grad_theta_f, grad_x_f, grad_x_g, .. } = *counts;
        Row {
            iteration: 0,
            hessians: each(counts.hess_g),
            jacobians: each(counts.cross_g),
            gradients: each(grad_theta_g + grad_theta_f + grad_x_f + grad_x_g),
            samples: each(counts.samples),
            exchanges: 0,
            bytes: 0,
            virtual_seconds: None,
            seconds: 0.0,
            values: BTreeMap::new(),
        }
    }

    /// A cost or a measure by name.
    pub fn value(&self, name: &str) -> Option<f64> {
        Some(match name {
            "iteration" => self.iteration as f64,
            "hessians" => self.hessians,
            "jacobians" => self.jacobians,
            "gradients" => self.gradients,
            "samples" => self.samples,
            "exchanges" => self.exchanges as f64,
            "bytes" => self.bytes as f64,
            "virtual_seconds" => return self.virtual_seconds,
            "seconds" => self.seconds,
            _ => return self.values.get(name).copied(),
        })
    }

    /// Every cost and measure with its name.
    pub fn quantities(&self) -> impl Iterator<Item = (&str, f64)> {
        let costs = COSTS.into_iter().filter_map(|name| Some((name, self.value(name)?)));
        costs.chain(self.values.iter().map(|(name, value)| (name.as_str(), *value)))
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Row, D::Error> {
        let wrong = |name: &str| D::Error::custom(format!("`{name}` is not a number"));
        let mut fields = BTreeMap::<String, Value>::deserialize(input)?;
        let mut take =
            |name: &'static str| fields.remove(name).ok_or_else(|| D::Error::missing_field(name));
        let mut count = |name| take(name)?.as_u64().ok_or_else(|| wrong(name));
        let (iteration, exchanges, bytes) =
            (count("iteration")?, count("exchanges")?, count("bytes")?);
        let mut mean = |name| take(name)?.as_f64().ok_or_else(|| wrong(name));
        let mut row = Row {
            iteration,
            hessians: mean("hessians")?,
            jacobians: mean("jacobians")?,
            gradients: mean("gradients")?,
            samples: mean("samples")?,
            exchanges,
            bytes,
            virtual_seconds: None,
            seconds: mean("seconds")?,
            values: BTreeMap::new(),
        };
        row.virtual_seconds = match fields.remove("virtual_seconds") {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_f64().ok_or_else(|| wrong("virtual_seconds"))?),
        };
        for (name, value) in fields {
            match value.as_f64() {
                Some(value) => drop(row.values.insert(name, value)),
                None if value.is_null() || !MEASURES.contains(&name.as_str()) => {}
                None => return Err(wrong(&name)),
            }
        }
        Ok(row)
    }
}

/// How a run ended. Not an error: the rows up to then are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All iterations were done.
    Finished,
    /// A budget was used up.
    Budget,
    /// The target was reached.
    Target,
    /// Values grew without bound or stopped being numbers.
    Diverged,
    /// Stopped on request.
    Interrupted,
}

impl Stop {
    /// The word for it, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Stop::Finished => "finished",
            Stop::Budget => "budget",
            Stop::Target => "target",
            Stop::Diverged => "diverged",
            Stop::Interrupted => "interrupted",
        }
    }
}

/// Each node's metrics are an object, in the problem's order.
pub(super) mod nodes {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value};

    type Metrics = Vec<(String, f64)>;

    struct Object<'a>(&'a Metrics);

    impl Serialize for Object<'_> {
        fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
            output.collect_map(self.0.iter().map(|(name, value)| (name, value)))
        }
    }

    pub fn serialize<S: Serializer>(nodes: &[Metrics], output: S) -> Result<S::Ok, S::Error> {
        output.collect_seq(nodes.iter().map(Object))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Metrics>, D::Error> {
        let number = |(name, value): (String, Value)| match value {
            Value::Null => Ok((name, f64::NAN)),
            value => match value.as_f64() {
                Some(value) => Ok((name, value)),
                None => Err(D::Error::custom(format!("`{name}` of a node is not a number"))),
            },
        };
        let nodes = Vec::<Map<String, Value>>::deserialize(input)?;
        nodes.into_iter().map(|node| node.into_iter().map(number).collect()).collect()
    }
}
