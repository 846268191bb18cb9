//! Which links an exchange uses, what they weigh, and what becomes of what they carry.

use super::failures::{Failures, Fate};
use super::map::Map;
use super::traffic::Tally;
use crate::math::real::Real;
use crate::network::Mixing;

/// The links of an exchange.
pub struct Links<T> {
    /// What becomes of each edge of the map; one that is not part of this round is down.
    pub fates: Vec<Fate>,
    /// The consensus step times w_ij, by edge.
    pub weights: Vec<T>,
    /// Which edges carried something in the same exchange one iteration before.
    pub before: Vec<bool>,
    /// Which nodes take part in this iteration.
    pub awake: Vec<bool>,
    /// What that costs.
    pub once: Tally,
    failures: Failures,
    step: f64,
    live: Vec<usize>,      // the edges of this round
    drawn: Option<u64>,    // the iteration of the fates
    carried: Vec<Carried>, // by exchange of the iteration, where messages may be late
}

/// What an exchange carried when it was last done.
struct Carried {
    k: Option<u64>,
    edges: Vec<bool>,
}

impl<T: Real> Links<T> {
    /// Links that fail so, with a consensus step; no round yet. `exchanges` of an iteration are
    /// remembered, where messages may be late.
    pub fn new(map: &Map, failures: Failures, step: f64, exchanges: usize) -> Links<T> {
        let edges = map.edges.len();
        let carried = |_| Carried { k: None, edges: vec![false; edges] };
        let exchanges = if failures.delays() { exchanges } else { 0 };
        Links {
            fates: vec![Fate::default(); edges],
            weights: vec![T::zero(); edges],
            before: vec![false; if exchanges > 0 { edges } else { 0 }],
            awake: vec![true; failures.nodes()],
            once: Tally::default(),
            failures,
            step,
            live: Vec::with_capacity(edges),
            drawn: None,
            carried: (0..exchanges).map(carried).collect(),
        }
    }

    /// How they fail.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Uses the links of a round, whose W this is.
    pub fn turn(&mut self, map: &Map, mixing: &Mixing) {
        for &edge in &self.live {
            (self.fates[edge], self.weights[edge]) = (Fate::default(), T::zero());
        }
        self.live.clear();
        for (i, row) in mixing.rows().iter().enumerate() {
            // W may be symmetric up to rounding only: both ends take the same entry.
            for &(j, w) in row.iter().filter(|&&(j, w)| j > i && w != 0.0) {
                let edge = map.edge(i, j);
                self.weights[edge] = T::of(self.step * w);
                self.live.push(edge);
            }
        }
        self.drawn = None;
    }

    /// Draws what becomes of the links of this round in iteration `k`.
    fn draw(&mut self, map: &Map, k: u64) {
        if self.drawn == Some(k) {
            return;
        }
        let Links { fates, awake, failures, live, once, .. } = self;
        failures.wake(k, awake);
        *once = Tally::default();
        for &edge in live.iter() {
            let (i, j) = map.edges[edge];
            fates[edge] = failures.between(k, awake, (i, j));
            once.sent += 2 * u64::from(fates[edge].up);
            once.late += 2 * u64::from(fates[edge].late);
            once.lost += 2 * u64::from(!fates[edge].up && awake[i] && awake[j]);
        }
        once.slept = awake.iter().filter(|awake| !**awake).count() as u64;
        self.drawn = Some(k);
    }

    /// Whether exchange `e` of iteration `k` needs to know what the one before it carried, which it
    /// has not seen: so it is when a run is resumed.
    pub fn forgot(&self, (k, e): (u64, usize)) -> bool {
        k > 0 && self.carried.get(e).is_some_and(|carried| carried.k != Some(k - 1))
    }

    /// Notes what exchange `e` of iteration `k − 1` carried; its round is set.
    pub fn recall(&mut self, map: &Map, (k, e): (u64, usize)) {
        self.draw(map, k - 1);
        self.note((k - 1, e));
    }

    fn note(&mut self, (k, e): (u64, usize)) {
        let Some(carried) = self.carried.get_mut(e) else { return };
        carried.k = Some(k);
        carried.edges.iter_mut().zip(&self.fates).for_each(|(to, fate)| *to = fate.up);
    }

    /// Goes to exchange `e` of iteration `k`; its round is set.
    pub fn choose(&mut self, map: &Map, (k, e): (u64, usize)) {
        self.draw(map, k);
        if let Some(carried) = self.carried.get_mut(e) {
            std::mem::swap(&mut self.before, &mut carried.edges);
        }
        self.note((k, e));
    }
}
