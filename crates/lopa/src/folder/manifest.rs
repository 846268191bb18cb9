//! `manifest.json`: the experiment, the data, the machine, and the status.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::experiment::FinalTheta;
use crate::network::Joint;
use crate::run::Part;

/// The manifest of a run folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of lopa that ran it.
    pub lopa: String,
    /// The experiment's name.
    pub name: String,
    /// When the folder was made: RFC 3339, UTC, as all times here.
    pub started: String,
    /// The status.
    pub status: Status,
    /// SHA-256 of the resolved experiment without `[checkpoint]`.
    pub experiment_digest: String,
    /// SHA-256 of the data, if the experiment has any.
    pub data_digest: Option<String>,
    /// The labels of the algorithms.
    #[serde(default)]
    pub algorithms: Vec<String>,
    /// The names of the classes, if the experiment has data.
    pub classes: Option<Vec<String>>,
    /// The names of the nodes, if they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Which θ_i the runs end with, unless it is that of the last iteration.
    #[serde(default, skip_serializing_if = "FinalTheta::is_mean")]
    pub final_theta: FinalTheta,
    /// The network and partition of each seed that was begun.
    pub worlds: Vec<WorldNote>,
    /// The number of threads.
    pub threads: usize,
    /// The kind of machine.
    pub machine: Machine,
    /// When it ended or was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// When it was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<String>,
    /// Who took part in which iterations, by run, where not all nodes did in all of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, Vec<Part>>,
    /// The runs that the others ended without this node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<String>,
    /// SHA-256 of files that never change: `resolved.toml` and the partitions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checksums: BTreeMap<String, String>,
    /// Keys that are unknown to this version: shown, and kept when the run resumes.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Manifest {
    /// The rows that decide an accuracy, the fewest of any seed; `None` if a seed does not have it.
    pub fn judged(&self, accuracy: &str) -> Option<f64> {
        let rows = self.worlds.iter().map(|world| world.judged.get(accuracy).copied());
        rows.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
    }
}

/// The status of a run folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Being written, or its process was killed.
    Running,
    /// All runs ended.
    Done,
    /// Stopped on request.
    Interrupted,
    /// Ended by an error.
    Failed,
}

impl Status {
    /// The word for it, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Done => "done",
            Status::Interrupted => "interrupted",
            Status::Failed => "failed",
        }
    }
}

/// A folder has entries per node up to this many nodes. For more, they would dominate the folder
/// without being read: the experiment makes the same network again, models have every node, and
/// results have the spread of measures.
pub const LISTED: usize = 10_000;

/// The network and partition of a seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorldNote {
    /// The seed.
    pub seed: u64,
    /// SHA-256 of edges and weights.
    pub graph_digest: String,
    /// ρ of W; for a changing graph, ρ per round over a window.
    pub rho: f64,
    /// The effect of the rounds of a changing graph; edges and weights are then those of all its
    /// links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Joint>,
    /// Whether ρ is an estimate: the true one is not smaller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Pairs of neighbours. Empty, as are all lists by nodes, if there are more than [`LISTED`] nodes.
    pub edges: Vec<[usize; 2]>,
    /// The rows of W: (j, w_ij) where w_ij is not zero.
    #[serde(default)]
    pub weights: Vec<Vec<(usize, f64)>>,
    /// SHA-256 of the partition, if there is data to divide.
    pub partition_digest: Option<String>,
    /// Training samples of each node.
    #[serde(default)]
    pub samples: Vec<usize>,
    /// The names of the classes, or of the tenths of the numbers to predict.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Training samples of each class at each node.
    #[serde(default)]
    pub class_counts: Vec<Vec<usize>>,
    /// The rows that decide each accuracy on rows outside training.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judged: BTreeMap<String, f64>,
}

/// The kind of machine: on machines of one kind, results agree to the bit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor architecture.
    pub arch: String,
    /// The operating system.
    pub os: String,
    /// The vector instructions it has.
    pub simd: Vec<String>,
    /// The device that iterations are done on, unless it is the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// The keys that decide whether a folder can be resumed, as far as its manifest can be read.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Identity {
    pub lopa: Option<String>,
    pub experiment_digest: Option<String>,
    pub data_digest: Option<String>,
    pub status: Option<Status>,
}
