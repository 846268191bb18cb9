//! Graphs that change from round to round.
//!
//! A *round* is one exchange of messages. Round r uses its own matrix W_r, which is doubly
//! stochastic, so that means are kept, and symmetric except for one kind of graph. A single W_r
//! need not be connected; the *window* must be: over that many rounds, starting at a multiple of
//! it, all links used form a connected graph.
//!
//! ```text
//! x^{r+1} = W_r x^r              ‖W_{B−1} ⋯ W_0 x − x̄‖² ≤ ρ_B ‖x − x̄‖²
//! ```
//!
//! W_r depends only on the seed and on r: every process of a run computes it without communication,
//! and a resumed run computes it again.

mod drawn;
mod joint;
mod kinds;

pub use joint::Joint;
pub(super) use kinds::{one_peer, random_edges, random_matching, sequence};

use super::{Graph, Mixing};
use crate::error::{Error, Result};
use drawn::{Draw, Drawn};

/// Which W is used in which round.
#[derive(Debug, Clone)]
pub struct Rounds {
    kind: Kind,
    window: u64,
    lambda_min: f64,
    symmetric: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    /// One after the other, each for this many rounds, then again from the first.
    Cycle { each: Vec<Mixing>, every: u64 },
    /// A new draw in every round.
    Drawn(Drawn),
}

impl Rounds {
    /// These matrices one after the other, each for `every` rounds, and again from the first.
    fn cycle(each: Vec<Mixing>, every: u64) -> Result<Rounds> {
        let symmetric = each.iter().all(|mixing| mixing.check_symmetry().is_ok());
        let lambda_min = match symmetric {
            true => each.iter().map(|mixing| mixing.eigenvalues().1).fold(1.0, f64::min),
            // W = (1 − w) I + w P with a permutation P: its eigenvalues lie on a circle.
            false => each.iter().map(|mixing| 2.0 * mixing.weight(0, 0) - 1.0).fold(1.0, f64::min),
        };
        let window = each.len() as u64 * every;
        Ok(Rounds { kind: Kind::Cycle { each, every }, window, lambda_min, symmetric })
    }

    /// A new draw in every round. `window` is given, or the shortest that works.
    fn drawn(drawn: Drawn, window: Option<u64>, lambda_min: f64) -> Result<Rounds> {
        let mut rounds =
            Rounds { kind: Kind::Drawn(drawn), window: 1, lambda_min, symmetric: true };
        let Kind::Drawn(drawn) = &mut rounds.kind else { unreachable!("it was just made") };
        rounds.window = drawn.settle(window)?;
        Ok(rounds)
    }

    /// The number of nodes, m.
    pub fn nodes(&self) -> usize {
        match &self.kind {
            Kind::Cycle { each, .. } => each[0].nodes(),
            Kind::Drawn(drawn) => drawn.nodes(),
        }
    }

    /// Over this many rounds, starting at a multiple of it, the links used connect all nodes.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Whether every W_r is symmetric; otherwise they are doubly stochastic only.
    pub fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    /// A lower bound on the eigenvalues of every W_r (on their real parts, if not symmetric).
    pub fn lambda_min(&self) -> f64 {
        self.lambda_min
    }

    /// Memory for W of one round after another.
    pub fn cursor(&self) -> Cursor<'_> {
        let draw = match &self.kind {
            Kind::Cycle { .. } => None,
            Kind::Drawn(drawn) => Some(drawn.place()),
        };
        Cursor { rounds: self, at: None, draw }
    }
}

/// W of one round after another, in memory that is allocated once.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    rounds: &'a Rounds,
    at: Option<u64>, // the round, or the place in the cycle
    draw: Option<Draw>,
}

impl Cursor<'_> {
    /// The rounds.
    pub fn rounds(&self) -> &Rounds {
        self.rounds
    }

    /// Moves to a round; returns whether W may differ from the previous one.
    pub fn go(&mut self, round: u64) -> bool {
        let at = match &self.rounds.kind {
            Kind::Cycle { each, every } => round / every % each.len() as u64,
            Kind::Drawn(_) => round,
        };
        if self.at == Some(at) {
            return false;
        }
        self.at = Some(at);
        if let (Kind::Drawn(drawn), Some(draw)) = (&self.rounds.kind, &mut self.draw) {
            drawn.draw(round, self.rounds.window, draw);
        }
        true
    }

    /// W of the current round; at first, that of round 0.
    pub fn mixing(&self) -> &Mixing {
        match (&self.rounds.kind, &self.draw) {
            (_, Some(draw)) => &draw.mixing,
            (Kind::Cycle { each, .. }, None) => &each[self.at.unwrap_or(0) as usize],
            (Kind::Drawn(_), None) => unreachable!("what is drawn has a place"),
        }
    }
}

/// The weight that a rule gives to the one neighbour of a node, where each has one at most.
fn single(weights: &super::WeightsBuild, nodes: usize) -> Result<f64> {
    let pairs = Graph::from_edges(nodes, (1..nodes).step_by(2).map(|i| (i - 1, i)))?;
    let mixing = weights(&pairs).map_err(|error| fixed_weights(&error))?;
    let mut found = pairs.edges().map(|(i, j)| mixing.weight(i, j));
    let weight = found.next().unwrap_or(0.0);
    match found.all(|other| other == weight) {
        true => Ok(weight),
        false => Err(fixed_weights(&Error::network("", "edges differ in weight"))),
    }
}

/// The error of weights that belong to one graph alone.
fn fixed_weights(error: &Error) -> Error {
    let message = format!("these weights do not fit a graph that changes: {}", error.message);
    Error::network("network/fixed-weights", message)
        .hint("let a rule make them, such as `weights = \"metropolis\"`")
}
