//! The nodes of this process, on any number of threads, and the transport to the others: the same
//! bits on any number of threads and processes.

use std::ops::Range;

use rayon::ThreadPool;

use super::delivery::{Carried, Delivery, Parcels, Workers};
use super::device::{DeviceRun, OnDevice};
use super::expect::Expect;
use super::refusal::Refusal;
use super::timing::Timing;
use super::transport::{Independent, Transport, anything, block};
use super::{Node, Progress, masked};
use crate::error::{Error, Kind, Result};
use crate::math::real::Real;
use crate::network::outbox::{Outbox, Round};
use crate::network::time::Timetable;
use crate::network::{Cursor, Mixing, Rounds};
use crate::problem::derivative::Counts;
use crate::problem::{Ask, Together};
use crate::store::bytes::{Reader, Writer};
use lopa_kernels::Pages;

/// The nodes of this process, and the transport to the others.
pub struct Cluster<'a, T: Real> {
    here: Range<usize>,
    total: usize, // nodes in all processes
    team: Team<'a, T>,
    messages: Vec<Outbox<T>>,
    delivery: Box<dyn Delivery<T>>,
    parcels: Parcels,
    rounds: Option<Cursor<'a>>, // which edges a round uses, if that changes
    progress: Progress,
    transport: &'a mut dyn Transport,
    together: Option<Box<dyn Together<T>>>,
    device: Option<OnDevice<T>>,
    exact: bool, // whether counts are needed after every iteration
    timing: Option<Timing<'a>>,
}

/// The nodes, their next messages, and the threads that step them.
struct Team<'a, T: Real> {
    nodes: Vec<Node<T>>,
    next: Vec<Outbox<T>>,
    workers: Workers<'a, T>,
}

impl<'a, T: Real> Cluster<'a, T> {
    /// The nodes of this process's block of a network; without a pool, on this thread alone.
    pub fn new(
        nodes: Vec<Node<T>>,
        mixing: &Mixing,
        delivery: Box<dyn Delivery<T>>,
        pool: Option<&'a ThreadPool>,
        transport: &'a mut dyn Transport,
    ) -> Self {
        let here = block(mixing.nodes(), transport.size(), transport.rank());
        assert_eq!(here.len(), nodes.len(), "one row of W for each node");
        let mut messages = vec![Outbox::default(); nodes.len()];
        share(&nodes, Round::default(), &mut messages);
        let next = messages.clone();
        settle(&nodes, &[&messages, &next]);
        Cluster {
            here,
            total: mixing.nodes(),
            team: Team { nodes, next, workers: Workers::new(pool) },
            messages,
            delivery,
            parcels: Parcels::default(),
            rounds: None,
            progress: Progress::default(),
            transport,
            together: None,
            device: None,
            exact: false,
            timing: None,
        }
    }

    /// Keeps the clocks of a timetable on the same network, from the nodes' start.
    pub fn timed(
        mut self,
        table: Option<&'a Timetable>,
        network: (&'a Mixing, Option<&'a Rounds>),
    ) -> Self {
        self.timing = table.map(|table| {
            let mut timing = Timing::new(table, network, (self.here.start, self.here.len()));
            timing.note(&self.team.nodes, None, 0, 0);
            if let Some(failures) = self.delivery.failures() {
                timing.fail(failures, self.team.nodes[0].algorithm.exchanges());
            }
            timing
        });
        if self.is_whole()
            && let Some(timing) = &mut self.timing
        {
            timing.pass_own();
        }
        self
    }

    /// Uses in each round only some of the edges, those of its mixing matrix.
    pub fn over(mut self, rounds: Option<&'a Rounds>) -> Self {
        self.rounds = rounds.map(Rounds::cursor);
        self
    }

    /// Which edges a round uses, if that changes.
    pub fn rounds(&self) -> Option<&Rounds> {
        self.rounds.as_ref().map(Cursor::rounds)
    }

    /// Delivers messages in another way.
    pub fn delivered_by(mut self, delivery: Box<dyn Delivery<T>>) -> Self {
        self.delivery = delivery;
        self
    }

    /// Continues from the progress of an earlier run, whose nodes these are.
    pub fn from(mut self, progress: Progress) -> Self {
        self.progress = progress;
        share(&self.team.nodes, Round { k: progress.k, e: 0 }, &mut self.messages);
        self
    }

    /// Lets `together` compute the directions of all nodes of this process in one call.
    pub fn answered_by(mut self, together: Option<Box<dyn Together<T>>>) -> Self {
        // Where products are differences of gradients, directions are computed node by node.
        let joins = self.team.nodes.iter().all(|node| node.oracle.joins());
        self.together = together.filter(|_| joins);
        self
    }

    /// Lets a device compute the iterations; it has taken over these nodes. `exact`: whether the nodes' counts are
    /// needed after every iteration; else they are exact where variables are fetched.
    pub fn done_by(mut self, device: Option<Box<dyn DeviceRun<T>>>, exact: bool) -> Self {
        self.device = device.map(|run| OnDevice::new(run, &self.team.nodes));
        self.exact = exact || self.timing.is_some();
        self
    }

    /// The state of the messages of each node of this process, for a checkpoint.
    pub fn held(&self) -> Vec<Vec<u8>> {
        (0..self.here.len()).map(|i| self.delivery.save(i)).collect()
    }

    /// One iteration of every node; on a device it may be under way for a while.
    #[inline(never)] // its instructions are counted by this name: bench/instructions
    pub fn advance(&mut self) -> Result<()> {
        if let Some(device) = &mut self.device {
            let (k, transport) = (self.progress.k, &mut *self.transport);
            let mut turn = 0..;
            device.run.advance(&mut |out, into| {
                // Processes in step trust each other: their transport checks nothing.
                let (round, accepts) =
                    (Round { k, e: turn.next().unwrap_or(0) }, &|_: usize, _: &[u8], _| Ok(()));
                transport.exchange(round, T::BYTES, out, into, accepts, &mut || ())
            })?;
            device.count_derivatives(k, &mut self.team.nodes);
            if self.exact && device.probes {
                device.run.count(&mut self.team.nodes)?;
            }
            let mut e = 0;
            while let Some(&length) = self.device.as_ref().and_then(|d| d.lengths.get(e)) {
                self.count(e, length);
                e += 1;
            }
        } else {
            let exchanges = self.team.nodes[0].algorithm.exchanges();
            for e in 0..exchanges {
                self.exchange(Round { k: self.progress.k, e }, exchanges)?;
                self.count(e, self.messages[0].values().len() as u64);
                std::mem::swap(&mut self.messages, &mut self.team.next);
            }
        }
        self.progress.k += 1;
        Ok(())
    }

    /// One exchange of every node: messages, sums, steps and the messages of the next round.
    fn exchange(&mut self, round: Round, exchanges: usize) -> Result<()> {
        let Cluster { team, messages, delivery, parcels, transport, .. } = self;
        // Rounds are counted by exchanges, so that an inner loop does not use a single graph.
        delivery.go(round, self.progress.exchanges, self.rounds.as_mut());
        delivery.begin(round, messages, &team.workers, parcels)?;
        let turn = Turn { round, exchanges, messages, apart: self.together.is_some() };
        let (out, into) = parcels.both();
        // Nodes whose neighbours are all in this process need not wait for messages of other
        // processes.
        let accepts =
            |rank: usize, bytes: &[u8], finite| delivery.accepts(round, rank, bytes, finite);
        let mut near = || team.step(turn, &**delivery, false);
        transport.exchange(round, delivery.scalar(), out, into, &accepts, &mut near)?;
        if delivery.spans() {
            delivery.receive(round, &team.workers, parcels)?;
            team.step(turn, &**delivery, true);
        }
        if let Some(together) = &mut self.together {
            team.answer(&mut **together, turn, &**delivery)?;
        }
        team.check()
    }

    /// Counts the cost of exchange `e`, in which each node sends `length` numbers, and advances the clocks by it.
    fn count(&mut self, e: usize, length: u64) {
        let Carried { floats, bytes, message, tally } = self.delivery.end(e, length);
        if let Some(timing) = &mut self.timing {
            let Progress { k, exchanges, .. } = self.progress;
            timing.note(&self.team.nodes, Some(k), exchanges, message);
            if self.transport.size() == 1 {
                timing.pass_own();
            }
        }
        self.progress.exchanges += u64::from(length > 0);
        self.progress.floats += floats;
        self.progress.bytes += bytes;
        self.progress.tally += tally;
    }

    /// The clocks, if there are any.
    pub fn timing(&self) -> Option<&Timing<'a>> {
        self.timing.as_ref()
    }

    /// The clocks, to be advanced or restored, and the nodes of this process.
    pub fn timing_mut(&mut self) -> (Option<&mut Timing<'a>>, &[Node<T>]) {
        (self.timing.as_mut(), &self.team.nodes)
    }

    /// Whether a device computes the iterations: only [`fetch`](Cluster::fetch) copies its
    /// variables back.
    pub fn is_away(&self) -> bool {
        self.device.is_some()
    }

    /// Waits until the device, if there is one, has finished all iterations that were begun.
    pub fn wait(&mut self) -> Result<()> {
        self.device.as_mut().map_or(Ok(()), |device| device.run.wait())
    }

    /// Copies the variables back from the device, if there is one.
    pub fn fetch(&mut self) -> Result<()> {
        let nodes = &mut self.team.nodes;
        self.device.as_mut().map_or(Ok(()), |device| device.run.fetch(nodes))
    }

    /// The largest entry of each variable of the nodes of this process; NaN if an entry is not
    /// finite.
    pub fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        match &mut self.device {
            Some(device) => device.run.sizes(),
            None => Ok(self.team.nodes.iter().map(Node::sizes).collect()),
        }
    }

    /// The nodes here.
    pub fn nodes(&self) -> &[Node<T>] {
        &self.team.nodes
    }

    /// The nodes here, mutably.
    pub fn nodes_mut(&mut self) -> &mut [Node<T>] {
        &mut self.team.nodes
    }

    /// The indices of the nodes here.
    pub fn here(&self) -> Range<usize> {
        self.here.clone()
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The calls that the nodes of this process have made.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.nodes().iter().for_each(|node| sum += node.oracle.counts());
        sum
    }

    /// Whether all nodes are in this process.
    pub fn is_whole(&self) -> bool {
        self.transport.size() == 1
    }

    /// Every node's numbers, in the order of the nodes, from those of this process. All nodes have
    /// as many, of the form that `expect` describes.
    pub fn everyone(&mut self, ours: Vec<Vec<f64>>, expect: Expect) -> Result<Vec<Vec<f64>>> {
        if self.is_whole() {
            return Ok(ours);
        }
        let length = ours[0].len();
        let mut out = Writer::default();
        ours.iter().for_each(|values| out.reals(values));
        let accepts = accepts(expect, (self.total, self.transport.size()), length);
        let all = self.transport.all(&out.done(), &accepts)?;
        split(&all, |bytes| bytes.reals())
    }

    /// The sum of each number over all nodes, from those of the nodes here; no process sees another's.
    pub fn sums(&mut self, ours: &[Vec<f64>]) -> Result<Vec<f64>> {
        masked::sums(self.transport, ours)
    }

    /// Every node's bytes, in the order of the nodes, from those of this process. All nodes have as
    /// many, or text.
    pub fn everyone_bytes(&mut self, ours: Vec<Vec<u8>>, expect: Expect) -> Result<Vec<Vec<u8>>> {
        if self.is_whole() {
            return Ok(ours);
        }
        let accepts = accepts(expect, (self.total, self.transport.size()), ours[0].len());
        let all = self.transport.all(&joined(&ours), &accepts)?;
        split(&all, |bytes| bytes.bytes().map(<[u8]>::to_vec))
    }

    /// Every node's bytes at process 0, as many as each may have; the others get nothing.
    pub fn gather(&mut self, ours: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if self.is_whole() {
            return Ok(ours);
        }
        let all = self.transport.gather(&joined(&ours), &anything)?;
        split(&all, |bytes| bytes.bytes().map(<[u8]>::to_vec))
    }

    /// This process as a peer, if it is one.
    pub fn independent(&mut self) -> Option<&mut dyn Independent> {
        self.transport.independent()
    }

    /// Whether this is process 0.
    pub fn is_first(&self) -> bool {
        self.transport.rank() == 0
    }
}

/// Collects the messages of all nodes in a round.
fn share<T: Real>(nodes: &[Node<T>], round: Round, messages: &mut [Outbox<T>]) {
    for (node, message) in nodes.iter().zip(messages) {
        message.clear();
        node.algorithm.share(round, message);
    }
}

/// Requests large pages for everything that iterations pass over.
fn settle<T: Real>(nodes: &[Node<T>], messages: &[&[Outbox<T>]]) {
    let mut pages = Pages::default();
    let variables = nodes.iter().flat_map(|node| node.algorithm.variables());
    variables.for_each(|(_, variable)| pages.add(variable));
    messages.iter().copied().flatten().for_each(|message| pages.add(message.values()));
    pages.settle();
}

/// The messages that each process may send about its block of nodes.
fn accepts(
    expect: Expect,
    (nodes, size): (usize, usize),
    length: usize,
) -> impl Fn(usize, &[u8]) -> std::result::Result<(), Refusal> {
    move |rank, bytes| expect.check(bytes, block(nodes, size, rank).len(), length)
}

fn joined(ours: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Writer::default();
    ours.iter().for_each(|bytes| out.bytes(bytes));
    out.done()
}

/// Each node's data, from the messages of all processes.
fn split<V>(all: &[Vec<u8>], take: impl Fn(&mut Reader) -> Option<V>) -> Result<Vec<V>> {
    let mut said = Vec::new();
    for bytes in all {
        let mut bytes = Reader::new(bytes);
        while bytes.end().is_none() {
            said.push(take(&mut bytes).ok_or_else(|| {
                Error::new(Kind::Run, "engine/garbled", "malformed message from another process")
            })?);
        }
    }
    Ok(said)
}

/// One exchange of an iteration.
#[derive(Clone, Copy)]
struct Turn<'s, T> {
    round: Round,
    exchanges: usize,
    messages: &'s [Outbox<T>],
    apart: bool, // whether directions are computed for all nodes together, after their steps
}

impl<T: Real> Team<'_, T> {
    /// Mixing, step and next message of the nodes that wait for other processes, or of those that do not.
    /// A node that does not take part in the iteration repeats its last message.
    fn step(&mut self, turn: Turn<T>, delivery: &dyn Delivery<T>, waiting: bool) {
        let Turn { round, exchanges, messages, apart } = turn;
        let Team { nodes, next, workers } = self;
        workers.each_pair(nodes, next, |i, node, next, scratch| {
            if delivery.waits(i) != waiting {
                return;
            }
            let takes_part = delivery.takes_part(i);
            if takes_part {
                let mixed = delivery.mixed(round, i, messages, scratch);
                if round.e == 0 {
                    node.oracle.begin(round.k);
                }
                node.algorithm.step(round.e, mixed, &mut node.oracle);
            }
            if !apart {
                // Now, while x is in the cache.
                if let Some(request) = node.algorithm.asks(round.e).filter(|_| takes_part) {
                    node.oracle.answer(request);
                }
                node.share(round, exchanges, takes_part, next);
            }
        });
    }

    /// Computes the directions of all nodes that request them, in one call; then finishes every
    /// step.
    fn answer(
        &mut self,
        together: &mut dyn Together<T>,
        turn: Turn<T>,
        delivery: &dyn Delivery<T>,
    ) -> Result<()> {
        let Turn { round, exchanges, .. } = turn;
        let mut asks: Vec<Ask<T>> = Vec::with_capacity(self.nodes.len());
        for (i, Node { algorithm, oracle }) in self.nodes.iter_mut().enumerate() {
            let request = algorithm.asks(round.e).filter(|_| delivery.takes_part(i));
            asks.extend(request.map(|request| oracle.ask(i, request)));
        }
        if !asks.is_empty() {
            together.directions(&mut asks)?;
        }
        drop(asks);
        for (i, (node, next)) in self.nodes.iter_mut().zip(&mut self.next).enumerate() {
            node.share(round, exchanges, delivery.takes_part(i), next);
        }
        Ok(())
    }

    /// Whether every derivative could be computed.
    fn check(&mut self) -> Result<()> {
        self.nodes.iter_mut().find_map(|node| node.oracle.error()).map_or(Ok(()), Err)
    }
}

impl<T: Real> Node<T> {
    /// The rest of the step of a round, if the node took part in it, and the message of the next one.
    fn share(&mut self, round: Round, exchanges: usize, took_part: bool, message: &mut Outbox<T>) {
        if took_part {
            self.algorithm.finish(round.e, &mut self.oracle);
        }
        message.clear();
        self.algorithm.share(round.next(exchanges), message);
    }
}
