//! A line of `metrics.jsonl` and an entry of `results.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::LISTED;
use crate::evaluate::Point;
use crate::messages::Tally;
use crate::run::Outcome;
use crate::run::trace::{Row, Stop};

/// A line of `metrics.jsonl`: a measurement and the run it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsRow {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// The measurement.
    #[serde(flatten)]
    pub row: Row,
}

/// An entry of `results.json`: how one algorithm ended on one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultEntry {
    /// The algorithm's label.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// SHA-256 of every variable at every measurement, to the bit.
    pub digest: String,
    /// How it ended.
    pub stop: Stop,
    /// The last measurement.
    #[serde(flatten)]
    pub row: Row,
    /// Seconds of creating the nodes and of measuring, which are not part of the iterations; over
    /// all parts of a resumed run. Left out if they were not measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub measuring: f64,
    /// Why it diverged, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<String>,
    /// Counts of messages, if the file has `[messages]` or `[attack]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Tally>,
    /// The problem's metrics of every node, at the end; NaN for one that was not finite. Empty if there
    /// are more than [`LISTED`](super::LISTED) nodes.
    #[serde(default, with = "nodes")]
    pub nodes: Vec<Vec<(String, f64)>>,
    /// How the metrics spread over the nodes, where they are not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spread: BTreeMap<String, Quartiles>,
}

/// How a metric spreads over nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    /// The smallest.
    pub min: f64,
    /// A quarter of the nodes are not above it.
    pub lower: f64,
    /// Half of the nodes are not above it.
    pub median: f64,
    /// Three quarters of the nodes are not above it.
    pub upper: f64,
    /// The largest.
    pub max: f64,
}

impl Quartiles {
    /// Of values that are finite; `None` if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Quartiles> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let [min, lower, median, upper, max] = [0, 1, 2, 3, 4].map(|part| values[last * part / 4]);
        Some(Quartiles { min, lower, median, upper, max })
    }

    /// Of every metric of some nodes.
    pub fn of_nodes(nodes: &[Vec<(String, f64)>]) -> BTreeMap<String, Quartiles> {
        let names = nodes.first().into_iter().flatten().enumerate();
        let spread = |(at, (name, _)): (usize, &(String, f64))| {
            let values = nodes.iter().filter_map(|node| Some(node.get(at)?.1));
            Some((name.clone(), Quartiles::of(values)?))
        };
        names.filter_map(spread).collect()
    }
}

impl ResultEntry {
    /// Whether it is the result of this algorithm on this seed.
    pub fn is_of(&self, algorithm: &str, seed: u64) -> bool {
        self.algorithm == algorithm && self.seed == seed
    }

    /// The outcome, with the models the run ended with.
    pub(super) fn outcome(&self, models: Vec<Point>) -> Outcome {
        let ResultEntry { algorithm, seed, digest, stop, row, measuring, diagnosis, .. } =
            self.clone();
        let (messages, nodes) = (self.messages, self.nodes.clone());
        Outcome {
            algorithm,
            seed,
            stop,
            diagnosis,
            row,
            measuring,
            messages,
            nodes,
            digest,
            models,
        }
    }
}

impl From<&Outcome> for ResultEntry {
    fn from(outcome: &Outcome) -> ResultEntry {
        let Outcome { algorithm, seed, stop, diagnosis, row, measuring, nodes, digest, .. } =
            outcome;
        let (nodes, spread) = match nodes.len() <= LISTED {
            true => (nodes.clone(), BTreeMap::new()),
            false => (Vec::new(), Quartiles::of_nodes(nodes)),
        };
        ResultEntry {
            algorithm: algorithm.clone(),
            seed: *seed,
            digest: digest.clone(),
            stop: *stop,
            row: row.clone(),
            measuring: *measuring,
            diagnosis: diagnosis.clone(),
            messages: outcome.messages,
            nodes,
            spread,
        }
    }
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Each node's metrics are an object, in the problem's order.
mod nodes {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_known_values() {
        let found = Quartiles::of([5.0, 1.0, f64::NAN, 4.0, 2.0, 3.0].into_iter()).unwrap();
        let expected = Quartiles { min: 1.0, lower: 2.0, median: 3.0, upper: 4.0, max: 5.0 };
        assert_eq!(found, expected);
        assert_eq!(Quartiles::of([f64::NAN].into_iter()), None);
        let nodes = [vec![("loss".to_string(), 2.0)], vec![("loss".to_string(), 1.0)]];
        assert_eq!(Quartiles::of_nodes(&nodes)["loss"].max, 2.0);
    }
}
