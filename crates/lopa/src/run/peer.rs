//! What an experiment must be, and is known by, among peers.

use serde_json::json;
use sha2::{Digest, Sha256};

use super::longest;
use crate::bytes::Hash;
use crate::data::Data;
use crate::engine::Longest;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::network;

/// More than a frame takes besides what it brings.
const FRAME: usize = 256;

impl Experiment {
    /// Tells runs of this experiment, on its networks, with this version, from all others: peers
    /// that agree on it run the same thing. Their data and how often they keep where they stand are
    /// their own.
    pub fn identity(&self) -> Result<Hash> {
        let mut table = self.resolved();
        table.remove("checkpoint");
        let mut networks = Vec::new();
        for &seed in &self.run.seeds {
            let spec = &self.network;
            let seed = spec.seed.unwrap_or(seed);
            let (_, mixing) = network::build(&spec.graph, &spec.weights, spec.nodes, seed)
                .map_err(|error| error.at("[network]"))?;
            networks.push(mixing.rows().to_vec());
        }
        let text = toml::to_string(&table).expect("a table is TOML");
        let what = json!(["lopa", env!("CARGO_PKG_VERSION"), text, networks]);
        Ok(Sha256::digest(what.to_string()).into())
    }

    /// Entries of x, and the most bytes that a frame between peers may have, seen from one node.
    pub fn sizes(&self, data: Option<&Data>, node: usize) -> Result<(usize, usize)> {
        let seed = self.run.seeds[0];
        let world = self.world(data, seed)?;
        let (mut entries, mut most) = (0, 0);
        for algorithm in &self.algorithms {
            let parts = self.parts_of::<f64>(data, &world, seed, node..node + 1)?;
            entries = parts[0].dims().n;
            let nodes = self.nodes_of(parts, node, seed, &algorithm.choice)?;
            let Longest { message, saying } = longest(&nodes[0]);
            most = most.max(message).max(saying);
        }
        Ok((entries, most + FRAME))
    }

    /// Whether so many peers can run it.
    pub(super) fn check_peers(&self, size: usize) -> Result<()> {
        let nodes = self.network.nodes;
        if size != nodes {
            let message = format!("{size} peers for {nodes} nodes: it takes one for each");
            return Err(Error::config("config/peers", message).at("[network] nodes"));
        }
        if self.run.limits().any(|(name, _)| name == "seconds") {
            let message = "peers have no common clock: a budget in seconds is none for them";
            return Err(Error::config("config/seconds-among-peers", message)
                .at("run.budget")
                .hint("give `iterations`, or a budget in `exchanges`, `bytes` or oracle calls"));
        }
        Ok(())
    }
}
