//! An experiment among peers, each of which keeps for itself where it stands.

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Context, Job, Listener, Outcome, Store, told_by_first};
use crate::data::Data;
use crate::engine::{Begin, Independent, Longest, Node, Peers, Transport, Wire};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::math::real::Real;
use crate::network;
use crate::problem::At;
use crate::run::checkpoint::State;
use crate::store::bytes::Hash;

/// More than a frame takes besides what it brings.
const FRAME: usize = 256;

/// Bytes that are enough for all that is said to all besides points.
const WORDS: usize = 1 << 16;

impl Experiment {
    /// Runs one node of it, as one of independent peers; `store` must be this node's own. Returns
    /// once the neighbours have ended, too.
    pub fn run_peer<W: Wire>(
        &self,
        peers: &mut Peers<W>,
        data: Option<Data>,
        context: &Context,
        store: &mut dyn Store,
        listener: &mut dyn Listener,
    ) -> Result<Vec<Outcome>> {
        self.check_peers(peers.size())?;
        let outcomes = self.run_across(peers, data, context, store, listener)?;
        peers.linger()?;
        Ok(outcomes)
    }

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
            let parts = self.parts_of::<f64>(data, &world, seed, node..node + 1)?.each;
            entries = parts[0].dims().n;
            let nodes = self.nodes_of(parts, node, seed, &algorithm.choice.build)?;
            let Longest { message, saying } = longest(&nodes[0]);
            most = most.max(message).max(saying);
        }
        Ok((entries, most + FRAME))
    }

    /// Whether so many peers can run it.
    fn check_peers(&self, size: usize) -> Result<()> {
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

impl Job<'_> {
    /// Whether the job came to its end before; a peer then lets its neighbours know.
    pub(super) fn is_known(&self, ended: bool, transport: &mut dyn Transport) -> Result<bool> {
        match transport.independent() {
            // What process 0 kept is what counts.
            None => Ok(transport.all(&[u8::from(ended)])?[0] == [1]),
            Some(own) if ended => {
                let mixing = &self.scene.world.mixing;
                let longest = Longest::default();
                own.pass(Begin { job: self.number, mixing, kept: None, longest })?;
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }

    /// Where an earlier run stood: what process 0 says, or, among peers, what each kept.
    pub(super) fn begin<T: Real>(
        &self,
        kept: Option<State>,
        node: &Node<T>,
        transport: &mut dyn Transport,
    ) -> Result<Option<State>> {
        let Some(own) = transport.independent() else { return told_by_first(kept, transport) };
        let links = kept.as_ref().map(|state| &state.links[..]);
        let mixing = &self.scene.world.mixing;
        own.begin(Begin { job: self.number, mixing, kept: links, longest: longest(node) })?;
        Ok(kept)
    }
}

/// What a node like this one may send at most.
fn longest<T: Real>(node: &Node<T>) -> Longest {
    let mut message = Vec::new();
    let mut length = |e: usize| {
        message.clear();
        node.algorithm.share(e, &mut message);
        message.len() * T::BYTES
    };
    let message = (0..node.algorithm.exchanges()).map(&mut length).max().unwrap_or(0);
    // All hear each other's points and metrics, and why a run diverged.
    let At { x, theta } = node.algorithm.at();
    Longest { message, saying: WORDS + 16 * (x.len() + theta.len()) }
}
