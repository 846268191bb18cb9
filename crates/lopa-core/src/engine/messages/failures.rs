//! Which links carry something in an iteration, and which nodes take part.
//!
//! All draws depend only on the address (seed, iteration, link): both ends of a link compute the
//! same, on every engine and after a restart.

use super::spec::{Bursts, Rules};
use crate::math::random::{Purpose, Stream};

/// The draws of a link in an iteration.
const FATE: u32 = 0;
const WEATHER: u32 = 1;

/// The state of a link in an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// It carries messages.
    pub up: bool,
    /// Its messages are late.
    pub late: bool,
}

/// The failures of links and nodes.
#[derive(Debug, Clone)]
pub struct Failures {
    drop: f64,
    late: f64,
    active: f64,
    bursts: Option<Bursts>,
    seed: u64,
    nodes: usize,
}

impl Failures {
    /// With these rules, in a network of this many nodes.
    pub fn new(rules: &Rules, seed: u64, nodes: usize) -> Failures {
        let Rules { drop, late, active, bursts, .. } = *rules;
        Failures { drop, late, active, bursts, seed, nodes }
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.drop > 0.0 || self.late > 0.0 || self.active < 1.0 || self.bursts.is_some()
    }

    /// Whether messages may be late.
    pub fn delays(&self) -> bool {
        self.late > 0.0
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    fn at(&self, k: u64, (i, j): (usize, usize), slot: u32) -> Stream {
        let mut draw = Stream::new(self.seed, Purpose::Failures, i * self.nodes + j);
        draw.seek(k, slot);
        draw
    }

    /// Whether a node takes part in iteration `k`. All do in the first, which is special in some
    /// methods.
    pub fn awake(&self, k: u64, node: usize) -> bool {
        k == 0 || self.active >= 1.0 || self.at(k, (node, node), FATE).unit() < self.active
    }

    /// Computes which nodes take part in iteration `k`.
    pub fn wake(&self, k: u64, awake: &mut [bool]) {
        awake.iter_mut().enumerate().for_each(|(i, awake)| *awake = self.awake(k, i));
    }

    /// The state of the link between two nodes in iteration `k`, in which both take part.
    pub fn between(&self, k: u64, awake: &[bool], (i, j): (usize, usize)) -> Fate {
        match awake[i] && awake[j] {
            true => self.fate(k, (i.min(j), i.max(j))),
            false => Fate::default(),
        }
    }

    /// The state of the link i < j in iteration `k`, in which both nodes take part.
    pub fn fate(&self, k: u64, link: (usize, usize)) -> Fate {
        let drop = match &self.bursts {
            Some(bursts) if self.bad(bursts, k, link) => bursts.drop,
            _ => self.drop,
        };
        if drop == 0.0 && self.late == 0.0 {
            return Fate { up: true, late: false };
        }
        let mut draw = self.at(k, link, FATE);
        let (up, late) = (draw.unit() >= drop, draw.unit() < self.late);
        Fate { up, late: up && late }
    }

    /// Whether a link is bad in iteration `k`. All are good in iteration 0.
    ///
    /// A link's next state follows from a number: bad if it is below `begin`, for a good link, or
    /// below 1 − `end`, for a bad one. A number outside both ranges decides the state on its own,
    /// so that it is enough to search back to the last such number, and no state is kept.
    fn bad(&self, &Bursts { begin, end, .. }: &Bursts, k: u64, link: (usize, usize)) -> bool {
        let (low, high) = (begin.min(1.0 - end), begin.max(1.0 - end));
        let turns = begin > 1.0 - end; // whether numbers in between change the state
        let mut turned = false;
        for t in (1..=k).rev() {
            match self.at(t, link, WEATHER).unit() {
                number if number < low => return !turned,
                number if number >= high => return turned,
                _ => turned ^= turns,
            }
        }
        turned
    }
}
