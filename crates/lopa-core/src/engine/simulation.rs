//! All nodes in this process, for programs that build nodes by hand.

use rayon::ThreadPool;

use super::{Alone, Cluster, Direct, Lossy, Node, Progress, Site, pieces};
use crate::engine::messages::{Attack, Messages};
use crate::error::Result;
use crate::math::real::Real;
use crate::network::{Mixing, Rounds};
use crate::problem::Together;
use crate::problem::derivative::Counts;

/// All nodes of a run.
pub struct Simulation<'p, T: Real>(Cluster<'p, T>);

impl<'p, T: Real> Simulation<'p, T> {
    /// Nodes on a network; without a pool, on this thread alone.
    pub fn new(nodes: Vec<Node<T>>, mixing: &Mixing, pool: Option<&'p ThreadPool>) -> Self {
        // A zero-sized value: nothing is leaked.
        let alone = Box::leak(Box::new(Alone));
        let direct = Box::new(Direct::new(mixing, 1, 0));
        Simulation(Cluster::new(nodes, mixing, direct, pool, alone))
    }

    /// Uses in each round only some of the edges of the network.
    pub fn over(self, rounds: Option<&'p Rounds>) -> Self {
        Simulation(self.0.over(rounds))
    }

    /// Continues from the progress of an earlier run, whose nodes these are.
    pub fn from(self, progress: Progress) -> Self {
        Simulation(self.0.from(progress))
    }

    /// Lets `together` compute the directions of all nodes in one call.
    pub fn answered_by(self, together: Option<Box<dyn Together<T>>>) -> Self {
        Simulation(self.0.answered_by(together))
    }

    /// Sends messages according to `[messages]` and `[attack]`, on this network, drawn from a seed;
    /// the nodes are at their start. Where the graph changes, call [`Simulation::over`] first.
    ///
    /// # Errors
    /// If compression would keep too many replicas.
    pub fn with_messages(
        self,
        messages: &Messages,
        attack: Option<&Attack>,
        (mixing, seed): (&Mixing, u64),
    ) -> Result<Self> {
        let lambda_min = match self.0.rounds() {
            Some(rounds) => rounds.lambda_min(),
            None => mixing.spectrum().lambda_min,
        };
        let site = Site {
            mixing,
            changes: self.0.rounds().is_some(),
            spread: 1.0 - lambda_min,
            seed,
            size: 1,
            rank: 0,
            pieces: &pieces(&*self.0.nodes()[0].algorithm),
        };
        let lossy = Box::new(Lossy::new(messages, attack, site)?);
        Ok(Simulation(self.0.delivered_by(lossy)))
    }

    /// One iteration of every node.
    ///
    /// # Panics
    /// If the problem fails to compute a derivative: see [`Simulation::try_iterate`].
    pub fn iterate(&mut self) {
        self.try_iterate().unwrap_or_else(|error| panic!("{error}"));
    }

    /// One iteration of every node; the error is that of a derivative that failed.
    pub fn try_iterate(&mut self) -> Result<()> {
        self.0.advance()
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node<T>] {
        self.0.nodes()
    }

    /// The nodes, mutably.
    pub fn nodes_mut(&mut self) -> &mut [Node<T>] {
        self.0.nodes_mut()
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        self.0.progress()
    }

    /// Iterations done.
    pub fn k(&self) -> u64 {
        self.progress().k
    }

    /// Rounds of communication done.
    pub fn exchanges(&self) -> u64 {
        self.progress().exchanges
    }

    /// Scalars sent over all links so far.
    pub fn floats(&self) -> u64 {
        self.progress().floats
    }

    /// The calls that all nodes have made.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }
}
