//! The clocks of all nodes, according to the `[time]` section.
//!
//! The calls of a node are counted in its own process: they may differ between nodes, as with a
//! randomly truncated series. Everything else follows from the seed. So each process records the
//! computing times of its nodes, round by round, and sends them when the processes exchange costs
//! anyway; then every process advances all clocks over the same rounds. Messages carry no time, and
//! no node waits for it.

use crate::engine::messages::Failures;
use crate::math::real::Real;
use crate::network::time::Timetable;
use crate::network::{Cursor, Mixing, Rounds};
use crate::problem::derivative::Counts;
use crate::store::bytes::{Reader, Writer};

use super::Node;
use super::failing::Failing;

/// The clocks of all nodes, and the computing times of this process since.
pub struct Timing<'a> {
    table: &'a Timetable,
    mixing: &'a Mixing,
    rounds: Option<Cursor<'a>>,
    failing: Option<Failing>,
    clocks: Vec<u64>, // nanoseconds, of all nodes
    memory: (Vec<u64>, Vec<u64>),
    first: usize,         // the first node of this process
    counted: Vec<Counts>, // of the nodes of this process, up to now
    turns: Vec<Turn>,     // since the clocks were advanced
    computed: Vec<u64>,   // by the nodes of this process in each of them, one after the other
}

/// A round, or the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    k: Option<u64>,
    round: u64,
    bytes: u64, // none if nothing is exchanged
}

/// Marks the start, which is in no iteration.
const START: u64 = u64::MAX;

impl<'a> Timing<'a> {
    /// Clocks at zero, before the nodes' start.
    pub fn new(
        table: &'a Timetable,
        (mixing, rounds): (&'a Mixing, Option<&'a Rounds>),
        (first, here): (usize, usize),
    ) -> Timing<'a> {
        let m = table.nodes();
        Timing {
            table,
            mixing,
            rounds: rounds.map(Rounds::cursor),
            failing: None,
            clocks: vec![0; m],
            memory: (vec![0; m], vec![0; m]),
            first,
            counted: vec![Counts::default(); here],
            turns: Vec::with_capacity(64),
            computed: Vec::with_capacity(64 * here),
        }
    }

    /// Makes links and nodes fail, with this many exchanges per iteration.
    pub fn fail(&mut self, failures: &Failures, exchanges: usize) {
        let failing = || Failing::new(failures.clone(), self.mixing, exchanges);
        self.failing = failures.any().then(failing);
    }

    /// Records the computing times of the nodes of this process in a round; `k` is its iteration,
    /// unless it is the start.
    pub fn note<T: Real>(&mut self, nodes: &[Node<T>], k: Option<u64>, round: u64, bytes: u64) {
        self.turns.push(Turn { k, round, bytes });
        for (at, (node, counted)) in nodes.iter().zip(&mut self.counted).enumerate() {
            let now = node.oracle.counts();
            let calls = calls(counted, &now);
            self.computed.push(self.table.compute(self.first + at, calls));
            *counted = now;
        }
    }

    /// The computing time of the `at`-th node of this process in each recorded round, to be sent to
    /// all.
    pub fn noted(&self, at: usize) -> impl Iterator<Item = f64> + '_ {
        // Whole numbers below 2⁵³, which are 104 days.
        self.computed.iter().skip(at).step_by(self.counted.len().max(1)).map(|&ns| ns as f64)
    }

    /// The number of recorded rounds.
    pub fn pending(&self) -> usize {
        self.turns.len()
    }

    /// Advances the clocks over all recorded rounds; `computed(i, t)` is the computing time of node
    /// i in the t-th.
    pub fn pass(&mut self, computed: impl Fn(usize, usize) -> u64) {
        let Timing { table, mixing, rounds, failing, clocks, memory, turns, .. } = self;
        for (t, &Turn { k, round, bytes }) in turns.iter().enumerate() {
            let mixing = match rounds {
                None => *mixing,
                Some(rounds) => {
                    rounds.go(round);
                    rounds.mixing()
                }
            };
            let exchange = (bytes > 0).then_some((mixing, bytes));
            let memory = (&mut memory.0[..], &mut memory.1[..]);
            let compute = |i| computed(i, t);
            match (&mut *failing, k) {
                (Some(failing), Some(k)) => {
                    failing.pass(table, clocks, exchange, k, compute, memory);
                }
                _ => table.pass(clocks, exchange, k, compute, memory),
            }
        }
        self.turns.clear();
        self.computed.clear();
    }

    /// The same if all nodes are in this process.
    pub fn pass_own(&mut self) {
        let (computed, m) = (std::mem::take(&mut self.computed), self.counted.len());
        self.pass(|i, t| computed[t * m + i]);
        self.computed = computed;
        self.computed.clear();
    }

    /// When the last node is done, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clocks.iter().copied().max().unwrap_or(0)
    }

    /// When each node is done, in nanoseconds.
    pub fn clocks(&self) -> &[u64] {
        &self.clocks
    }

    /// Saves the clocks and the rounds recorded since.
    pub fn save(&self, out: &mut Writer) {
        out.u64(self.clocks.len() as u64);
        self.clocks.iter().for_each(|&clock| out.u64(clock));
        out.u64(self.turns.len() as u64);
        for Turn { k, round, bytes } in &self.turns {
            [k.unwrap_or(START), *round, *bytes].into_iter().for_each(|value| out.u64(value));
        }
        self.computed.iter().for_each(|&computed| out.u64(computed));
        if let Some(failing) = &self.failing {
            failing.save(out);
        }
    }

    /// Restores the saved state, for nodes with the same counts; `None` if it does not fit.
    pub fn restore<T: Real>(&mut self, nodes: &[Node<T>], bytes: &mut Reader) -> Option<()> {
        if bytes.u64()? != self.clocks.len() as u64 {
            return None;
        }
        for clock in &mut self.clocks {
            *clock = bytes.u64()?;
        }
        self.turns.clear();
        for _ in 0..bytes.u64()? {
            let (k, round, bytes) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
            self.turns.push(Turn { k: (k != START).then_some(k), round, bytes });
        }
        self.computed.clear();
        for _ in 0..self.turns.len() * self.counted.len() {
            self.computed.push(bytes.u64()?);
        }
        if let Some(failing) = &mut self.failing {
            failing.restore(bytes)?;
        }
        let counted = self.counted.iter_mut().zip(nodes);
        counted.for_each(|(counted, node)| *counted = node.oracle.counts());
        Some(())
    }
}

/// Gradients, Hessian products, Jacobian products and samples between two counts.
fn calls(before: &Counts, after: &Counts) -> [u64; 4] {
    let each = |counts: &Counts| {
        let Counts { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, samples } =
            *counts;
        [grad_theta_g + grad_theta_f + grad_x_f + grad_x_g, hess_g, cross_g, samples]
    };
    let (before, after) = (each(before), each(after));
    std::array::from_fn(|at| after[at] - before[at])
}
