//! A clock for networks: when each node would be done, if computing and messages took as long as
//! the `[time]` section specifies.
//!
//! ```text
//! t_i ← max( t_i, max_j t_j + latency_ji + transfer_ji ) + compute_i
//! transfer_ji = max( bytes / bandwidth_ji, messages_j · bytes / uplink_j )
//! ```
//!
//! over the neighbours j whose messages node i mixes in that round; messages_j is their number at j.
//! Node i begins a round when it has finished the previous one, and continues when all messages
//! have arrived.
//!
//! Times are whole nanoseconds, and random times use only sums and products: the same bits on every
//! machine.

mod spec;

pub use spec::{
    Amount, Calls, Compute, LinkSpec, Links, Measured, Preset, Range, Slowness, Special,
    Stragglers, TimeSpec,
};

use super::{Graph, Mixing};
use crate::error::{Error, Result};
use crate::math::random::{Purpose, Stream};

/// The times of computations and messages on a network, for a seed.
#[derive(Debug, Clone)]
pub struct Timetable {
    calls: [f64; 4], // nanoseconds of a gradient, a Hessian and a Jacobian product, and a sample
    slowness: Vec<f64>,
    stragglers: Option<Stragglers>,
    seed: u64,
    links: Vec<Vec<Way>>, // by receiver, then by sender in the order of the graph
    senders: Vec<Vec<usize>>,
    uplinks: Vec<u64>, // picoseconds per byte
    overhead: u64,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    latency: u64, // nanoseconds
    rate: u64,    // picoseconds per byte
}

/// Draws of a node's slowness and uplink, far from those of iterations.
const OF_NODES: u64 = 1 << 31;

impl Timetable {
    /// The times of a specification on a graph.
    pub fn new(spec: &TimeSpec, graph: &Graph, seed: u64) -> Result<Timetable> {
        let m = graph.nodes();
        let Some(Calls { gradient, hessian, jacobian, sample }) = spec.compute.calls() else {
            return Err(unmeasured());
        };
        let mut own: Vec<Stream> = (0..m).map(|i| Stream::new(seed, Purpose::Time, i)).collect();
        own.iter_mut().for_each(|stream| stream.seek(OF_NODES, 0));
        let slowness = match &spec.slowness {
            Slowness::Same(factor) => vec![*factor; m],
            Slowness::Drawn(Range { from, to }) => {
                own.iter_mut().map(|stream| stream.between(*from, *to)).collect()
            }
            Slowness::Each(all) if all.len() == m => all.clone(),
            Slowness::Each(all) => {
                let message = format!("`slowness` has {} factors for {m} nodes", all.len());
                return Err(Error::config("time/nodes", message).hint("give one for each node"));
            }
        };
        let Links { latency, bandwidth, uplink, overhead, table } = spec.links.links();
        own.iter_mut().for_each(|stream| stream.seek(OF_NODES, 1));
        let uplinks = own.iter_mut().map(|stream| rate(draw(uplink, stream))).collect();
        let mut links: Vec<Vec<Way>> =
            (0..m).map(|i| vec![Way::default(); graph.degree(i)]).collect();
        let senders: Vec<Vec<usize>> = (0..m).map(|i| graph.neighbours(i).to_vec()).collect();
        for (i, j) in graph.edges() {
            // One draw for both directions, by its two ends.
            let stream = &mut Stream::new(seed, Purpose::Time, m + i);
            stream.seek(j as u64, 0);
            let (latency, bandwidth) = (draw(latency, stream), draw(bandwidth, stream));
            let way = Way { latency: nanoseconds(latency.unwrap_or(0.0)), rate: rate(bandwidth) };
            *at(&mut links, &senders, i, j).expect("an edge") = way;
            *at(&mut links, &senders, j, i).expect("an edge") = way;
        }
        for Special { between: [i, j], latency, bandwidth } in table {
            let known = i < m && j < m && graph.joins(i, j);
            if !known {
                let message = format!("`links.table` names the link {i} – {j}, which is not there");
                return Err(Error::config("time/unknown-link", message)
                    .hint("name two neighbours; nodes are counted from 0"));
            }
            for (i, j) in [(i, j), (j, i)] {
                let way = at(&mut links, &senders, i, j).expect("they are neighbours");
                way.latency = latency.map_or(way.latency, nanoseconds);
                way.rate = bandwidth.map_or(way.rate, |bandwidth| rate(Some(bandwidth)));
            }
        }
        let calls = [gradient, hessian, jacobian, sample].map(|seconds| seconds * 1e9);
        let stragglers = spec.stragglers.filter(|slow| slow.p > 0.0);
        Ok(Timetable { calls, slowness, stragglers, seed, links, senders, uplinks, overhead })
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.slowness.len()
    }

    /// Nanoseconds of computing at a node for these numbers of gradients, Hessian and Jacobian
    /// products, and samples.
    pub fn compute(&self, node: usize, calls: [u64; 4]) -> u64 {
        let parts = self.calls.iter().zip(calls).map(|(each, count)| each * count as f64);
        (parts.sum::<f64>() * self.slowness[node]).round() as u64
    }

    /// The computing time of an iteration in which the node may be a straggler.
    fn taken(&self, node: usize, k: Option<u64>, compute: u64) -> u64 {
        let (Some(Stragglers { p, factor }), Some(k)) = (self.stragglers, k) else {
            return compute;
        };
        let mut stream = Stream::new(self.seed, Purpose::Time, node);
        stream.seek(k, 2);
        match stream.unit() < p {
            true => (compute as f64 * factor).round() as u64,
            false => compute,
        }
    }

    /// Calls `f` with each node, each sender that it receives from in a round, and the index of
    /// that sender among all that it ever receives from.
    pub fn each_way(&self, mixing: &Mixing, mut f: impl FnMut(usize, usize, usize)) {
        for (i, row) in mixing.rows().iter().enumerate() {
            let mut place = 0;
            for &(j, _) in row.iter().filter(|(j, _)| *j != i) {
                // Both lists increase.
                while self.senders[i][place] != j {
                    place += 1;
                }
                f(i, j, place);
            }
        }
    }

    /// Advances all clocks by a round: W defines who receives from whom, `bytes` is the content of
    /// a message, and node i then computes for `compute(i)`. Without W nothing is sent. `k` is the
    /// iteration, unless it is the start. `next` and `sent` are memory.
    pub fn pass(
        &self,
        clocks: &mut [u64],
        exchange: Option<(&Mixing, u64)>,
        k: Option<u64>,
        compute: impl Fn(usize) -> u64,
        memory: (&mut [u64], &mut [u64]),
    ) {
        self.pass_where(clocks, exchange, k, compute, memory, (|_, _| true, |_, _, there| there));
    }

    /// The same where messages may be missing: `carries(i, place)` is whether an edge carries one
    /// to node i, and `waits(i, place, there)` is the time until which node i waits for the message
    /// that it uses, if the one sent now arrives at `there`.
    pub fn pass_where(
        &self,
        clocks: &mut [u64],
        exchange: Option<(&Mixing, u64)>,
        k: Option<u64>,
        compute: impl Fn(usize) -> u64,
        (next, sent): (&mut [u64], &mut [u64]),
        (carries, mut waits): (impl Fn(usize, usize) -> bool, impl FnMut(usize, usize, u64) -> u64),
    ) {
        next.copy_from_slice(clocks);
        if let Some((mixing, bytes)) = exchange {
            sent.fill(0);
            self.each_way(mixing, |i, j, place| sent[j] += u64::from(carries(i, place)));
            let bytes = bytes + self.overhead;
            self.each_way(mixing, |i, j, place| {
                if carries(i, place) {
                    let Way { latency, rate } = self.links[i][place];
                    let shared = travel(sent[j] * bytes, self.uplinks[j]);
                    let there = clocks[j] + latency + travel(bytes, rate).max(shared);
                    next[i] = next[i].max(waits(i, place, there));
                }
            });
        }
        for (i, (clock, next)) in clocks.iter_mut().zip(next).enumerate() {
            *clock = next.saturating_add(self.taken(i, k, compute(i)));
        }
    }
}

/// The error for times that must be measured first.
pub fn unmeasured() -> Error {
    Error::config("time/unmeasured", "`compute = \"measured\"` is still to be measured")
        .at("[time]")
        .hint("`lopa run` measures it in one process, and its folder has the numbers to write here")
}

fn at<'l>(
    links: &'l mut [Vec<Way>],
    senders: &[Vec<usize>],
    i: usize,
    j: usize,
) -> Option<&'l mut Way> {
    let place = senders[i].binary_search(&j).ok()?;
    links[i].get_mut(place)
}

fn draw(amount: Option<Amount>, stream: &mut Stream) -> Option<f64> {
    amount.map(|amount| match amount {
        Amount::Same(value) => value,
        Amount::Drawn(Range { from, to }) => stream.between(from, to),
    })
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Picoseconds per byte; zero without a limit.
fn rate(bandwidth: Option<f64>) -> u64 {
    bandwidth.map_or(0, |bandwidth| (1e12 / bandwidth).round() as u64)
}

/// Nanoseconds for some bytes, rounded up.
fn travel(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * u128::from(rate)).div_ceil(1000) as u64
}
