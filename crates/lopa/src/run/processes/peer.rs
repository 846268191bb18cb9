//! An experiment among peers, each with checkpoints of its own.

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::data::Data;
use crate::engine::messages::Messages;
use crate::engine::{
    Independent, Limits, Node, Peers, Transport, Wire, masked, outboxes, pieces, wire_bytes,
};
use crate::error::{Error, Kind, Result};
use crate::experiment::{AlgorithmSpec, Experiment};
use crate::math::real::Real;
use crate::network::outbox::Piece;
use crate::network::{self, Graph, Mixing};
use crate::problem::At;
use crate::run::evaluate::watch;
use crate::run::job::cannot_leave;
use crate::run::processes::Processes;
use crate::run::{Context, Listener, Outcome, Setup, Store};
use crate::store::bytes::Hash;

/// More than the overhead of a frame, in bytes.
const FRAME: usize = 256;

/// More than the measures of a problem.
const MEASURES: usize = 256;

/// Enough bytes for everything that is broadcast besides points.
const WORDS: usize = 1 << 16;

impl Experiment {
    /// Runs one node of it, as one of independent peers; `store` must be this node's own. Returns
    /// once the neighbours have also ended.
    pub fn run_peer<W: Wire>(
        &self,
        peers: &mut Peers<W>,
        data: Option<Data>,
        context: &Context,
        store: &mut dyn Store,
        listener: &mut dyn Listener,
    ) -> Result<Vec<Outcome>> {
        self.check_peers(peers.size())?;
        self.check_skips(peers.skips())?;
        self.check_leaves(peers, data.as_ref())?;
        let outcomes = self.run_across(peers, data, context, store, listener)?;
        if outcomes.is_empty() {
            return Err(missed());
        }
        peers.linger()?;
        Ok(outcomes)
    }

    /// A hash of this experiment, its networks and this version: peers with the same hash run the
    /// same thing. Data and the interval between checkpoints may differ.
    pub fn identity(&self) -> Result<Hash> {
        let mut table = self.resolved();
        table.remove("checkpoint");
        table.get_mut("run").and_then(toml::Value::as_table_mut).map(|run| run.remove("device"));
        let networks: Vec<_> =
            self.networks()?.into_iter().map(|(_, mixing)| mixing.rows().to_vec()).collect();
        let text = toml::to_string(&table).expect("a table is TOML");
        let what = json!(["lopa", env!("CARGO_PKG_VERSION"), text, networks]);
        Ok(Sha256::digest(what.to_string()).into())
    }

    /// The networks of all runs, by seed.
    fn networks(&self) -> Result<Vec<(Graph, Mixing)>> {
        let spec = &self.network;
        let build = |&seed: &u64| {
            network::build(&spec.graph, &spec.weights, spec.nodes, spec.seed.unwrap_or(seed))
        };
        let all: Result<Vec<_>> = self.run.seeds.iter().map(build).collect();
        all.map_err(|error| error.at("[network]"))
    }

    /// The length of x, and the largest size of a frame in bytes, as one node computes them.
    pub fn sizes(&self, data: Option<&Data>, node: usize) -> Result<(usize, usize)> {
        self.refuse_simulation()?;
        let (mut entries, mut most) = (0, self.told_bytes(data));
        self.at_start(data, node, |setup, _, node| {
            let Limits { message, broadcast } = setup.limits(node);
            entries = node.algorithm.at().x.len();
            most = most.max(message).max(broadcast);
            Ok(())
        })?;
        Ok((entries, most + FRAME))
    }

    /// Shows one node as it is at the start of each algorithm, by the algorithm's label.
    fn at_start(
        &self,
        data: Option<&Data>,
        node: usize,
        mut show: impl FnMut(&Setup, &str, &Node<f64>) -> Result<()>,
    ) -> Result<()> {
        let seed = self.run.seeds[0];
        let world = self.world(data, seed)?;
        let setup = self.setup(data, &world, seed);
        for algorithm in &self.algorithms {
            show(&setup, &algorithm.label, &setup.node(node, algorithm)?)?;
        }
        Ok(())
    }

    /// Checks that this many peers can run it.
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

/// The error of a node without which the others ended all runs.
fn missed() -> Error {
    let message = "the others ended all runs without this node";
    Error::new(Kind::Left, "peers/missed", message)
        .hint("its last checkpoint stays in the run folder; `lopa adapt` makes a model for it from one of theirs")
}

impl Experiment {
    /// Where nodes may be left out, iterations are repeated with other neighbours, in all graphs.
    fn check_leaves<W: Wire>(&self, peers: &mut Peers<W>, data: Option<&Data>) -> Result<()> {
        if !Processes::of(peers).leave() {
            return Ok(());
        }
        let refuse = |what: &str, place: &str| {
            let message = format!("with `--policy leave`, {what}");
            Err(Error::config("config/leave", message)
                .at(place)
                .hint("let nodes wait for each other: `--policy wait`"))
        };
        if self.privacy.is_some() {
            let what = "iterations are repeated with other neighbours, and rows would not be hidden as often as \
                        they are used";
            return refuse(what, "[privacy]");
        }
        if self.mails() {
            let what = "messages are not compressed, lost or clipped: what they build on belongs to all nodes";
            return refuse(what, "[messages]");
        }
        if self.network.graph.build.changes() {
            return refuse("the graph must stay: it is made for all nodes", "[network] graph");
        }
        let graphs: Vec<Graph> = self.networks()?.into_iter().map(|(graph, _)| graph).collect();
        let runs = graphs.len() * self.algorithms.len() + usize::from(self.agrees());
        peers.set_runs(graphs, runs as u32);
        self.at_start(data, peers.node(), |_, label, node| {
            let trackers = node.algorithm.trackers();
            trackers.map(drop).map_err(|why| cannot_leave(label, why))
        })
    }

    /// A link that is used in one direction cannot be skipped: the weights of a node's receivers
    /// would no longer sum to one.
    fn check_skips(&self, skips: bool) -> Result<()> {
        let (spec, seed) = (&self.network, self.run.seeds[0]);
        let seed = spec.seed.unwrap_or(seed);
        if !skips || !spec.graph.build.changes() {
            return Ok(());
        }
        let rounds = network::build(&spec.graph, &spec.weights, spec.nodes, seed)
            .and_then(|(graph, mixing)| {
                network::rounds(&spec.graph, &spec.weights, (&graph, &mixing), seed)
            })
            .map_err(|error| error.at("[network]"))?;
        match rounds {
            Some((rounds, _)) if !rounds.is_symmetric() => {
                let (name, nodes) = (&spec.graph.name, spec.nodes);
                let message = format!(
                    "`{name}` on {nodes} nodes uses links in one direction, and such a link cannot be \
                     skipped"
                );
                Err(Error::config("config/directed-skips", message)
                    .at("[network] graph")
                    .hint("use `--policy wait`, a power of two of nodes, or `random-matching`"))
            }
            _ => Ok(()),
        }
    }
}

impl Setup<'_> {
    /// A node as it is at the start of an algorithm.
    fn node(&self, node: usize, algorithm: &AlgorithmSpec) -> Result<Node<f64>> {
        let parts = self.parts_of(node..node + 1)?.each;
        Ok(self.nodes_of(parts, node, &algorithm.choice.build)?.swap_remove(0))
    }

    /// The names of the vectors that a node sends in an iteration of an algorithm.
    pub fn sends(&self, node: usize, algorithm: &AlgorithmSpec) -> Result<Vec<&'static str>> {
        let node = self.node(node, algorithm)?;
        let mut names = Vec::new();
        for out in outboxes(&*node.algorithm) {
            // Those of length 0 are not sent; those of length 1 are the numbers of a rule for steps.
            for &(name, _) in out.vectors().iter().filter(|(_, length)| *length > 1) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Ok(names)
    }

    /// The largest messages of a node like this one.
    pub(super) fn limits<T: Real>(&self, node: &Node<T>) -> Limits {
        let usual = Messages::default();
        let messages = self.experiment.messages.as_ref().unwrap_or(&usual);
        let bytes = |of: Vec<Piece>| wire_bytes::<T>(messages, &of);
        let message = pieces(&*node.algorithm).into_iter().map(bytes).max().unwrap_or(0);
        // Points, metrics and the diagnosis of a divergence are broadcast.
        let At { x, theta } = node.algorithm.at();
        // Its computing times in each round since the last broadcast are also sent.
        let rounds = (watch::EVERY as usize + 1) * node.algorithm.exchanges();
        let mut broadcast = WORDS + 16 * (x.len() + theta.len()) + size_of::<f64>() * rounds;
        // What a node that comes back must know of the sizes of all variables.
        let sizes = self.experiment.network.nodes * (1 + node.algorithm.variables().len());
        broadcast += 4 * size_of::<f64>() * sizes;
        if self.experiment.masks() {
            // Each measure and each entry of ∇Φ, and whether it is finite.
            broadcast += 2 * masked::BYTES * (MEASURES + x.len());
        }
        Limits { message, broadcast }
    }
}
