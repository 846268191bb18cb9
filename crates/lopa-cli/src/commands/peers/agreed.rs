//! What the nodes of a roster agree on: the experiment, its names and graphs; and how their files are named.

use std::path::{Path, PathBuf};

use lopa::error::{Error, Kind, Result};
use lopa::experiment::Experiment;
use lopa::network::{self, Graph};
use lopa_base::store::bytes::Hash;
use lopa_peers::Roster;
use sha2::{Digest, Sha256};
use toml::Table;

/// The file of an experiment beside its roster, unless another is named.
pub const EXPERIMENT: &str = "experiment.toml";

/// The file of a node's key: given, or named after the node.
pub fn key_file(given: Option<&Path>, name: &str) -> PathBuf {
    given.map_or_else(|| PathBuf::from(format!("{name}.key")), Path::to_path_buf)
}

/// The settings that must be the same at every node, as a table.
pub fn common(experiment: &Experiment) -> Table {
    let mut table = experiment.resolved();
    table.remove("checkpoint");
    table
}

/// The digest of an experiment in a signed roster: all settings that must be the same at every node.
pub fn digest(experiment: &Experiment) -> Hash {
    let text = toml::to_string(&common(experiment)).expect("a table is TOML");
    Sha256::digest(text).into()
}

/// Fails if a roster is signed for another experiment.
pub fn same_experiment(roster: &Roster, experiment: &Experiment) -> Result<()> {
    match &roster.seal {
        Some(seal) if seal.experiment != digest(experiment) => {
            let message = format!("`{}` signed the roster for another experiment", seal.organiser);
            Err(Error::new(Kind::Refused, "roster/other-experiment", message)
                .hint("use the experiment of the invitation, without --set or --seed"))
        }
        _ => Ok(()),
    }
}

/// The graphs of all seeds.
pub fn graphs(experiment: &Experiment) -> Result<Vec<Graph>> {
    let spec = &experiment.network;
    let graph = |&seed: &u64| {
        let seed = spec.seed.unwrap_or(seed);
        let built = network::build(&spec.graph, &spec.weights, spec.nodes, seed);
        built.map(|(graph, _)| graph).map_err(|error| error.at("[network]"))
    };
    experiment.run.seeds.iter().map(graph).collect()
}

/// Whether a roster can run an experiment on its graphs.
pub fn fits(roster: &Roster, experiment: &Experiment, graphs: &[Graph]) -> Result<()> {
    same_names(roster, experiment)?;
    graphs.iter().try_for_each(|graph| roster.allows(graph))
}

/// Where each node has its own data file, the files carry the names of the roster.
fn same_names(roster: &Roster, experiment: &Experiment) -> Result<()> {
    let named = experiment.data.as_ref().and_then(|data| data.preparation.nodes.as_ref());
    let members: Vec<&String> = roster.members.iter().map(|member| &member.name).collect();
    match named {
        Some(named) if named.iter().collect::<Vec<_>>() != members => {
            let message = "the data's `nodes` differ from the roster's, or are in another order";
            Err(Error::config("roster/other-nodes", message)
                .hint("give both the same names in the same order"))
        }
        _ => Ok(()),
    }
}
