//! Which edges a round uses, their weights, losses and delays.

use super::edges::Edges;
use crate::engine::messages::{Failures, Fate, Tally};
use crate::math::real::Real;
use crate::network::Mixing;
use crate::network::outbox::Round;

/// The edges of a round.
pub struct States<T> {
    /// The fate of each edge; an edge that is not part of this round is down.
    pub fates: Vec<Fate>,
    /// The consensus step times w_ij, by edge.
    pub weights: Vec<T>,
    /// Which edges carried messages in the same exchange of the previous iteration.
    pub before: Vec<bool>,
    /// Which nodes take part in this iteration.
    pub awake: Vec<bool>,
    /// The cost of the round.
    pub once: Tally,
    /// How edges and nodes fail.
    pub failures: Failures,
    step: f64,
    live: Vec<usize>,      // the edges of this round
    drawn: Option<u64>,    // the iteration of the fates
    carried: Vec<Carried>, // by exchange of the iteration, where messages may be late
}

/// The edges that carried messages when an exchange was last done.
struct Carried {
    k: Option<u64>,
    edges: Vec<bool>,
}

impl<T: Real> States<T> {
    /// Edges that fail, with a consensus step; no round yet. Where messages may be late, the edges
    /// used in each of the `exchanges` of an iteration are kept.
    pub fn new(edges: &Edges, failures: Failures, step: f64, exchanges: usize) -> States<T> {
        let count = edges.all.len();
        let carried = |_| Carried { k: None, edges: vec![false; count] };
        let exchanges = if failures.delays() { exchanges } else { 0 };
        States {
            fates: vec![Fate::default(); count],
            weights: vec![T::zero(); count],
            before: vec![false; if exchanges > 0 { count } else { 0 }],
            awake: vec![true; failures.nodes()],
            once: Tally::default(),
            failures,
            step,
            live: Vec::with_capacity(count),
            drawn: None,
            carried: (0..exchanges).map(carried).collect(),
        }
    }

    /// Whether any of these edges carries messages.
    pub fn any_up(&self, edges: &[usize]) -> bool {
        edges.iter().any(|&edge| self.fates[edge].up)
    }

    /// Uses the edges of a round, whose W this is.
    pub fn turn(&mut self, edges: &Edges, mixing: &Mixing) {
        for &edge in &self.live {
            (self.fates[edge], self.weights[edge]) = (Fate::default(), T::zero());
        }
        self.live.clear();
        for (i, row) in mixing.rows().iter().enumerate() {
            // W may be symmetric only up to rounding: both ends take the same entry.
            for &(j, w) in row.iter().filter(|&&(j, w)| j > i && w != 0.0) {
                let edge = edges.edge(i, j);
                self.weights[edge] = T::of(self.step * w);
                self.live.push(edge);
            }
        }
        self.drawn = None;
    }

    /// Draws the fate of the edges of this round in iteration `k`.
    fn draw(&mut self, edges: &Edges, k: u64) {
        if self.drawn == Some(k) {
            return;
        }
        let States { fates, awake, failures, live, once, .. } = self;
        failures.wake(k, awake);
        *once = Tally::default();
        for &edge in live.iter() {
            let (i, j) = edges.all[edge];
            fates[edge] = failures.between(k, awake, (i, j));
            once.sent += 2 * u64::from(fates[edge].up);
            once.late += 2 * u64::from(fates[edge].late);
            once.lost += 2 * u64::from(!fates[edge].up && awake[i] && awake[j]);
        }
        once.slept = awake.iter().filter(|awake| !**awake).count() as u64;
        self.drawn = Some(k);
    }

    /// Whether a round needs the unknown traffic of the same exchange in the previous iteration, as
    /// after a resume.
    pub fn forgot(&self, Round { k, e }: Round) -> bool {
        k > 0 && self.carried.get(e).is_some_and(|carried| carried.k != Some(k - 1))
    }

    /// Records the traffic of the same exchange in the previous iteration, whose edges are set.
    pub fn recall(&mut self, edges: &Edges, Round { k, e }: Round) {
        self.draw(edges, k - 1);
        self.note(Round { k: k - 1, e });
    }

    fn note(&mut self, Round { k, e }: Round) {
        let Some(carried) = self.carried.get_mut(e) else { return };
        carried.k = Some(k);
        carried.edges.iter_mut().zip(&self.fates).for_each(|(to, fate)| *to = fate.up);
    }

    /// Begins a round, whose edges are set.
    pub fn begin(&mut self, edges: &Edges, round: Round) {
        self.draw(edges, round.k);
        if let Some(carried) = self.carried.get_mut(round.e) {
            std::mem::swap(&mut self.before, &mut carried.edges);
        }
        self.note(round);
    }
}
