//! All registries, from which experiment files choose.

use crate::algorithms::{AnyMethod, Facts, algorithms};
use crate::config::Registry;
use crate::data::partition::{PartitionBuild, partitions};
use crate::data::{SourceBuild, sources};
use crate::engine::device::{Device, devices};
use crate::engine::messages::{AnyCompressor, compressors};
use crate::network::{GraphBuild, WeightsBuild, graphs, weights};
use crate::problem::AnyProblem;
use crate::problem::builtin::problems;

/// The registries of experiment files; by default, those of the library.
///
/// ```
/// use lopa::prelude::*;
///
/// fn line(_: &NoParams, nodes: usize, _seed: u64) -> Result<Graph> {
///     Graph::from_edges(nodes, (1..nodes).map(|i| (i - 1, i)))
/// }
///
/// let mut registries = Registries::default();
/// registries.graphs.add(graph_entry("line", "a path under another name", line));
/// assert!(registries.graphs.find("line").is_ok());
/// ```
pub struct Registries {
    /// Problems.
    pub problems: Registry<AnyProblem>,
    /// Algorithms.
    pub algorithms: Registry<AnyMethod, Facts>,
    /// Graphs.
    pub graphs: Registry<GraphBuild>,
    /// Rules for mixing weights.
    pub weights: Registry<WeightsBuild>,
    /// Data sources.
    pub sources: Registry<SourceBuild>,
    /// Partitions of data over nodes.
    pub partitions: Registry<PartitionBuild>,
    /// Compressors of messages.
    pub compressors: Registry<AnyCompressor>,
    /// Devices.
    pub devices: Registry<Device>,
}

impl Default for Registries {
    fn default() -> Registries {
        Registries {
            problems: problems(),
            algorithms: algorithms(),
            graphs: graphs(),
            weights: weights(),
            sources: sources(),
            partitions: partitions(),
            compressors: compressors(),
            devices: devices(),
        }
    }
}
