//! Rounds that are drawn: a random subset of a graph's edges, or a random matching.

use crate::error::{Error, Result};
use crate::math::random::{Purpose, Stream};
use crate::network::{Graph, Mixing};

/// Windows that are tried before a run.
const TRIALS: u64 = 8;

/// The longest window.
pub const LONGEST: u64 = 1 << 14;

/// Draws of a window until one is connected. At least half of the windows are, or the window is
/// refused; so all draws fail once in 2⁶⁴ windows, and then the last one is used.
const ATTEMPTS: u64 = 64;

/// The draws of every round, at the address (seed, attempt, round).
#[derive(Debug, Clone)]
pub struct Drawn {
    seed: u64,
    how: How,
}

#[derive(Debug, Clone)]
pub enum How {
    /// Every edge with probability p; the weight of a missing edge stays with its two ends.
    Edges {
        /// W with all edges.
        base: Mixing,
        /// The number of the edge of each entry of `base`; that of the diagonal is meaningless.
        ids: Vec<Vec<u32>>,
        edges: usize,
        p: f64,
    },
    /// A matching: each node meets at most one other.
    Matching {
        /// The graph of possible pairs; `None` if any two nodes may meet.
        base: Option<Graph>,
        nodes: usize,
        /// The weight of the partner.
        weight: f64,
    },
}

/// The memory of a draw.
#[derive(Debug, Clone)]
pub struct Draw {
    pub mixing: Mixing,
    picked: Vec<bool>,           // by edge
    order: Vec<usize>,           // nodes, shuffled
    partner: Vec<usize>,         // by node; the node itself if it has none
    parent: Vec<usize>,          // union-find
    attempt: Option<(u64, u64)>, // of a window: (its number, the attempt)
}

impl Drawn {
    /// Every edge of W's graph with probability p.
    pub fn edges(seed: u64, base: &Mixing, p: f64) -> Drawn {
        let mut edges = 0;
        let mut ids: Vec<Vec<u32>> = Vec::with_capacity(base.nodes());
        for i in 0..base.nodes() {
            let id = |&(j, _): &(usize, f64)| {
                if j < i {
                    let row = base.row(j);
                    let at = row.binary_search_by_key(&i, |&(k, _)| k).expect("W is symmetric");
                    return ids[j][at];
                }
                edges += u32::from(j > i);
                edges.saturating_sub(1)
            };
            let row = base.row(i).iter().map(id).collect();
            ids.push(row);
        }
        let (base, edges) = (base.clone(), edges as usize);
        Drawn { seed, how: How::Edges { base, ids, edges, p } }
    }

    /// Random pairs, among the edges of a graph or among all nodes.
    pub fn matching(seed: u64, base: Option<Graph>, nodes: usize, weight: f64) -> Drawn {
        Drawn { seed, how: How::Matching { base, nodes, weight } }
    }

    pub fn nodes(&self) -> usize {
        match &self.how {
            How::Edges { base, .. } => base.nodes(),
            How::Matching { nodes, .. } => *nodes,
        }
    }

    /// Memory for draws, large enough for every round.
    pub fn place(&self) -> Draw {
        let m = self.nodes();
        let (room, edges): (Vec<usize>, usize) = match &self.how {
            How::Edges { base, edges, .. } => (base.rows().iter().map(Vec::len).collect(), *edges),
            How::Matching { .. } => (vec![2; m], 0),
        };
        let rows = room.into_iter().map(Vec::with_capacity).collect();
        Draw {
            mixing: Mixing::bare(rows),
            picked: vec![false; edges],
            order: vec![0; m],
            partner: vec![0; m],
            parent: vec![0; m],
            attempt: None,
        }
    }

    /// W of a round.
    pub fn draw(&self, round: u64, window: u64, draw: &mut Draw) {
        let number = round / window;
        let attempt = match draw.attempt {
            Some((known, attempt)) if known == number => attempt,
            _ => {
                let rounds = number * window..(number + 1) * window;
                let good = (0..ATTEMPTS).find(|&attempt| self.joins(attempt, rounds.clone(), draw));
                good.unwrap_or(ATTEMPTS - 1)
            }
        };
        draw.attempt = Some((number, attempt));
        self.pick(attempt, round, draw);
        let Draw { mixing, picked, partner, .. } = draw;
        match &self.how {
            How::Edges { base, ids, .. } => {
                for (i, (row, ids)) in base.rows().iter().zip(ids).enumerate() {
                    let kept = |(_, id): &(&(usize, f64), &u32)| picked[**id as usize];
                    let entries = row.iter().zip(ids).filter(|entry| entry.0.0 != i && kept(entry));
                    mixing.fill(i, entries.map(|(&entry, _)| entry));
                }
            }
            How::Matching { weight, .. } => {
                for (i, &j) in partner.iter().enumerate() {
                    mixing.fill(i, (j != i).then_some((j, *weight)).into_iter());
                }
            }
        }
    }

    /// Draws the edges of a round.
    fn pick(&self, attempt: u64, round: u64, draw: &mut Draw) {
        let mut stream = Stream::new(self.seed, Purpose::Rounds, attempt as usize);
        stream.seek(round, 0);
        let Draw { picked, order, partner, .. } = draw;
        match &self.how {
            How::Edges { p, .. } => picked.iter_mut().for_each(|kept| *kept = stream.unit() < *p),
            How::Matching { base, .. } => {
                order.iter_mut().enumerate().for_each(|(i, place)| *place = i);
                partner.copy_from_slice(order);
                stream.shuffle(order);
                match base {
                    None => order.chunks_exact(2).for_each(|pair| join(partner, pair[0], pair[1])),
                    Some(graph) => order.iter().for_each(|&i| meet(graph, i, partner, &mut stream)),
                }
            }
        }
    }

    /// Whether the rounds of a window, in one attempt, connect all nodes.
    fn joins(&self, attempt: u64, rounds: std::ops::Range<u64>, draw: &mut Draw) -> bool {
        draw.parent.iter_mut().enumerate().for_each(|(i, parent)| *parent = i);
        let mut pieces = self.nodes();
        for round in rounds {
            self.pick(attempt, round, draw);
            let Draw { picked, partner, parent, .. } = draw;
            match &self.how {
                How::Edges { base, ids, .. } => {
                    for (i, (row, ids)) in base.rows().iter().zip(ids).enumerate() {
                        let above = row.iter().zip(ids).filter(|((j, _), _)| *j > i);
                        let kept = above.filter(|(_, id)| picked[**id as usize]);
                        kept.for_each(|(&(j, _), _)| pieces -= unite(parent, i, j));
                    }
                }
                How::Matching { .. } => {
                    let pairs = partner.iter().enumerate().filter(|(i, j)| i < *j);
                    pairs.for_each(|(i, &j)| pieces -= unite(parent, i, j));
                }
            }
            if pieces == 1 {
                return true;
            }
        }
        pieces == 1
    }

    /// The window: the requested one if it works, else the shortest power of two that does.
    pub fn settle(&self, asked: Option<u64>) -> Result<u64> {
        let draw = &mut self.place();
        // Attempt numbers that no run uses.
        let mut good = |window: u64| {
            let trials = (0..TRIALS).map(|trial| ATTEMPTS + trial);
            trials.filter(|&trial| self.joins(trial, 0..window, draw)).count() as u64
        };
        let lengths = std::iter::successors(Some(1), |length| Some(2 * length));
        let mut lengths = lengths.take_while(|&length| length <= LONGEST);
        match asked {
            Some(window) if good(window) >= TRIALS / 2 => Ok(window),
            Some(window) => {
                let found = good(window);
                let hint = match lengths.find(|&length| good(length) == TRIALS) {
                    Some(length) => format!("take `window = {length}`, or leave it out"),
                    None => "take more edges: a larger p, or a denser graph".into(),
                };
                let message = format!(
                    "{found} of {TRIALS} draws of {window} rounds connect all nodes: the window is \
                     too short"
                );
                Err(Error::network("network/short-window", message).hint(hint))
            }
            None => lengths.find(|&length| good(length) == TRIALS).ok_or_else(|| {
                let message = format!("{LONGEST} rounds do not connect all nodes");
                Error::network("network/short-window", message)
                    .hint("take more edges: a larger p, or a denser graph")
            }),
        }
    }
}

fn join(partner: &mut [usize], i: usize, j: usize) {
    (partner[i], partner[j]) = (j, i);
}

/// Gives a node one of its neighbours that are still alone, if there is one.
fn meet(graph: &Graph, i: usize, partner: &mut [usize], stream: &mut Stream) {
    if partner[i] != i {
        return;
    }
    let alone = |j: &&usize| partner[**j] == **j;
    let count = graph.neighbours(i).iter().filter(alone).count();
    if count > 0 {
        let choice = stream.below(count);
        let j = *graph.neighbours(i).iter().filter(alone).nth(choice).expect("it was counted");
        join(partner, i, j);
    }
}

/// Joins the pieces of two nodes: 1 if they were different.
fn unite(parent: &mut [usize], i: usize, j: usize) -> usize {
    let (i, j) = (root(parent, i), root(parent, j));
    parent[i.max(j)] = i.min(j);
    usize::from(i != j)
}

fn root(parent: &mut [usize], mut i: usize) -> usize {
    while parent[i] != i {
        // Path halving keeps later searches short.
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    i
}
