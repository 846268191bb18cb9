//! The nodes of this process, on any number of threads, and the way to the others: the same bits
//! on any number of threads and processes.

mod mailed;

use std::ops::Range;
use std::sync::Mutex;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::device::{Device, count_derivatives};
use super::expect::Expect;
use super::links::Links;
use super::peers::Refusal;
use super::timing::Timing;
use super::transport::{Independent, Transport, anything, block};
use super::{Node, Progress};
use crate::error::{Error, Kind, Result};
use crate::math::real::Real;
use crate::messages::{Attack, Messages, Site, Traffic, lengths};
use crate::network::mixed::{Mixed, Row};
use crate::network::outbox::{Outbox, Round};
use crate::network::time::Timetable;
use crate::network::{Cursor, Mixing, Rounds};
use crate::problem::oracle::Counts;
use crate::problem::{Ask, Together};
use crate::store::bytes::{Reader, Writer};
use lopa_kernels::Pages;

/// The nodes that live in this process, and the way to the others.
pub struct Cluster<'a, T: Real> {
    here: Range<usize>,
    total: usize, // nodes in all processes
    team: Team<'a, T>,
    messages: Vec<Outbox<T>>,
    links: Links<T>,
    arrows: u64,                // Σ_i neighbours of node i in this round, over all nodes
    rounds: Option<Cursor<'a>>, // which links a round uses, if that changes
    progress: Progress,
    transport: &'a mut dyn Transport,
    together: Option<Box<dyn Together<T>>>,
    device: Option<Box<dyn Device<T>>>,
    timing: Option<Timing<'a>>,
    traffic: Option<Box<Traffic<T>>>,
}

/// The nodes, and scratch memory for their steps.
struct Team<'a, T: Real> {
    nodes: Vec<Node<T>>,
    rows: Vec<Row<T>>,
    next: Vec<Outbox<T>>,
    scratch: Vec<Mutex<Vec<T>>>, // for weighted sums, one per thread
    pool: Option<&'a ThreadPool>,
}

impl<'a, T: Real> Cluster<'a, T> {
    /// The nodes of this process's block, on a network; without a pool, on this thread alone.
    pub fn new(
        nodes: Vec<Node<T>>,
        mixing: &Mixing,
        pool: Option<&'a ThreadPool>,
        transport: &'a mut dyn Transport,
    ) -> Self {
        let here = block(mixing.nodes(), transport.size(), transport.rank());
        assert_eq!(here.len(), nodes.len(), "one row of W for each node");
        let (links, rows) = Links::new(mixing, transport.size(), transport.rank());
        let mut messages = vec![Outbox::default(); nodes.len()];
        share(&nodes, Round::default(), &mut messages);
        let arrows = mixing.arrows();
        let next = messages.clone();
        settle(&nodes, &[&messages, &next]);
        let threads = pool.map_or(1, ThreadPool::current_num_threads);
        let scratch = (0..threads).map(|_| Mutex::default()).collect();
        let team = Team { nodes, rows, next, scratch, pool };
        let progress = Progress::default();
        let (rounds, together, device, timing, traffic) = (None, None, None, None, None);
        Cluster {
            here,
            total: mixing.nodes(),
            team,
            messages,
            links,
            arrows,
            rounds,
            progress,
            transport,
            together,
            device,
            timing,
            traffic,
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
            timing
        });
        if self.is_whole()
            && let Some(timing) = &mut self.timing
        {
            timing.pass_own();
        }
        self
    }

    /// Uses in each round only some of the links, those of its mixing matrix.
    pub fn over(mut self, rounds: Option<&'a Rounds>, whole: &Mixing) -> Self {
        if rounds.is_some() {
            self.links.change(whole, self.transport.size());
        }
        self.rounds = rounds.map(Rounds::cursor);
        self
    }

    /// Continues from the progress of an earlier run, whose nodes these are.
    pub fn from(mut self, progress: Progress) -> Self {
        self.progress = progress;
        share(&self.team.nodes, Round { k: progress.k, e: 0 }, &mut self.messages);
        self
    }

    /// Lets `together` answer the directions of all nodes here in one call.
    pub fn answered_by(mut self, together: Option<Box<dyn Together<T>>>) -> Self {
        // Where products are differences of gradients, nodes are answered one by one.
        let joins = self.team.nodes.iter().all(|node| node.oracle.joins());
        self.together = together.filter(|_| joins);
        self
    }

    /// Lets a device do the iterations, which has taken over these nodes.
    pub fn done_by(mut self, device: Option<Box<dyn Device<T>>>) -> Self {
        self.device = device;
        self
    }

    /// Sends messages as this traffic says, and lets clocks know of failures.
    pub fn by(mut self, traffic: Option<Box<Traffic<T>>>) -> Self {
        if let (Some(timing), Some(traffic)) = (&mut self.timing, &traffic) {
            timing.fail(traffic.failures(), self.team.nodes[0].algorithm.exchanges());
        }
        self.traffic = traffic;
        self
    }

    /// Sends messages as `[messages]` and `[attack]` say; the nodes are at their start.
    pub fn mailed(
        self,
        messages: &Messages,
        attack: Option<&Attack>,
        (mixing, seed): (&Mixing, u64),
    ) -> Self {
        let lengths = lengths(&*self.team.nodes[0].algorithm);
        let lambda_min = match &self.rounds {
            Some(cursor) => cursor.rounds().lambda_min(),
            None => mixing.spectrum().lambda_min,
        };
        let site = Site {
            mixing,
            changes: self.rounds.is_some(),
            spread: 1.0 - lambda_min,
            seed,
            size: self.transport.size(),
            rank: self.transport.rank(),
            threads: self.team.scratch.len(),
            lengths: &lengths,
        };
        let traffic = Traffic::new(messages, attack, site);
        self.by(Some(Box::new(traffic)))
    }

    /// What a checkpoint needs of the messages of each node here.
    pub fn mail(&self) -> Vec<Vec<u8>> {
        let save = |i: usize| self.traffic.as_ref().map(|mail| mail.save(i)).unwrap_or_default();
        (0..self.here.len()).map(save).collect()
    }

    /// One iteration of every node; on a device it may be under way for a while.
    #[inline(never)] // its instructions are counted by this name: bench/instructions
    pub fn advance(&mut self) -> Result<()> {
        if let Some(device) = &mut self.device {
            device.advance()?;
            count_derivatives(&mut self.team.nodes);
            let length = self.messages[0].values().len() as u64;
            self.note(length * T::BYTES as u64);
            self.progress.exchanges += u64::from(length > 0);
            self.progress.floats += self.arrows * length;
            self.progress.bytes += self.arrows * length * T::BYTES as u64;
            self.progress.k += 1;
            return Ok(());
        }
        if self.traffic.is_some() {
            return self.advance_by_mail();
        }
        let exchanges = self.team.nodes[0].algorithm.exchanges();
        for e in 0..exchanges {
            // Rounds are counted by exchanges, so that an inner loop does not meet one graph only.
            if let Some(rounds) = &mut self.rounds
                && rounds.go(self.progress.exchanges)
            {
                self.arrows = rounds.mixing().arrows();
                self.links.turn(rounds.mixing(), &mut self.team.rows);
            }
            let Cluster { here, team, messages, links, transport, progress, .. } = self;
            let apart = self.together.is_some();
            let round = Round { k: progress.k, e };
            let step = Step { round, exchanges, messages, apart };
            let (out, into) = links.pack(messages);
            let mut near = || team.work(&step, None, here.len());
            // Nodes whose neighbours are all here need not wait for messages on their way.
            transport.exchange(round, T::BYTES, out, into, &|_, _, _| Ok(()), &mut near)?;
            if !into.is_empty() {
                links.unpack();
                team.work(&step, Some(&links.messages), here.len());
            }
            if let Some(together) = &mut self.together {
                team.answer(&mut **together, e)?;
                team.share(round, exchanges);
            }
            team.check()?;
            let length = messages[0].values().len() as u64;
            self.note(length * T::BYTES as u64);
            self.progress.exchanges += u64::from(length > 0);
            self.progress.floats += self.arrows * length;
            self.progress.bytes += self.arrows * length * T::BYTES as u64;
            std::mem::swap(&mut self.messages, &mut self.team.next);
        }
        self.progress.k += 1;
        Ok(())
    }

    /// Tells the clocks of a round, whose messages have so many bytes.
    fn note(&mut self, bytes: u64) {
        let Some(timing) = &mut self.timing else { return };
        let Progress { k, exchanges, .. } = self.progress;
        timing.note(&self.team.nodes, Some(k), exchanges, bytes);
        if self.transport.size() == 1 {
            timing.pass_own();
        }
    }

    /// The clocks, if there are any.
    pub fn timing(&self) -> Option<&Timing<'a>> {
        self.timing.as_ref()
    }

    /// The clocks, to be moved or restored, and the nodes here.
    pub fn timing_mut(&mut self) -> (Option<&mut Timing<'a>>, &[Node<T>]) {
        (self.timing.as_mut(), &self.team.nodes)
    }

    /// Whether a device does the iterations: its variables come back with
    /// [`fetch`](Cluster::fetch) only.
    pub fn is_away(&self) -> bool {
        self.device.is_some()
    }

    /// Waits until the device, if there is one, is as far as it was told to go.
    pub fn wait(&mut self) -> Result<()> {
        self.device.as_mut().map_or(Ok(()), |device| device.wait())
    }

    /// Brings the variables back from the device, if there is one.
    pub fn fetch(&mut self) -> Result<()> {
        let nodes = &mut self.team.nodes;
        self.device.as_mut().map_or(Ok(()), |device| device.fetch(nodes))
    }

    /// The largest entry of each variable of the nodes here; NaN if an entry is not finite.
    pub fn sizes(&mut self) -> Result<Vec<Vec<f64>>> {
        match &mut self.device {
            Some(device) => device.sizes(),
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

    /// The calls that the nodes here have made.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.nodes().iter().for_each(|node| sum += node.oracle.counts());
        sum
    }

    /// Whether all nodes live here.
    pub fn is_whole(&self) -> bool {
        self.transport.size() == 1
    }

    /// Every node's numbers, in the order of the nodes, from those of the nodes here. All tell as many,
    /// and what `expect` says.
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

    /// Every node's bytes, in the order of the nodes, from those of the nodes here. All tell as many, or
    /// text.
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

/// Lets all nodes share what they send in a round.
fn share<T: Real>(nodes: &[Node<T>], round: Round, messages: &mut [Outbox<T>]) {
    for (node, message) in nodes.iter().zip(messages) {
        message.clear();
        node.algorithm.share(round, message);
    }
}

/// Asks for large pages for everything that iterations pass over.
fn settle<T: Real>(nodes: &[Node<T>], messages: &[&[Outbox<T>]]) {
    let mut pages = Pages::default();
    let variables = nodes.iter().flat_map(|node| node.algorithm.variables());
    variables.for_each(|(_, variable)| pages.add(variable));
    messages.iter().copied().flatten().for_each(|message| pages.add(message.values()));
    pages.settle();
}

/// What each process may tell of its block of the nodes.
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
struct Step<'s, T> {
    round: Round,
    exchanges: usize,
    messages: &'s [Outbox<T>],
    apart: bool, // whether directions are answered for all nodes together, after their steps
}

type Work<'w, T> = (usize, (&'w mut Node<T>, &'w mut Outbox<T>));

impl<T: Real> Team<'_, T> {
    /// Mixing, step and next message of the nodes without neighbours in other processes (`heard` is
    /// `None`), or of those with such neighbours. Neighbours from `count` on are elsewhere.
    fn work(&mut self, step: &Step<T>, heard: Option<&Vec<Vec<T>>>, count: usize) {
        let Team { nodes, rows, next, scratch, pool } = self;
        let (&Step { round, exchanges, messages, apart }, pool) = (step, *pool);
        let Round { k, e } = round;
        let far = |row: &Row<T>| row.iter().any(|&(j, _)| j >= count);
        let one = |(i, (node, next)): Work<T>| {
            if far(&rows[i]) != heard.is_some() {
                return;
            }
            let message = |j: usize| match heard {
                Some(heard) if j >= count => &heard[j - count][..],
                _ => messages[j].values(),
            };
            let thread = pool.and_then(ThreadPool::current_thread_index).unwrap_or(0);
            let scratch = &mut *scratch[thread].lock().expect("a step does not panic");
            let mixed = Mixed::new(&rows[i], &messages[i], &message, scratch);
            if e == 0 {
                node.oracle.begin(k);
            }
            node.algorithm.step(e, mixed, &mut node.oracle);
            if !apart {
                // Now, while x is in the cache.
                if let Some(wanted) = node.algorithm.asks(e) {
                    node.oracle.answer(wanted);
                }
                node.share(round, exchanges, next);
            }
        };
        match pool {
            None => nodes.iter_mut().zip(next).enumerate().for_each(one),
            Some(pool) => pool.install(|| {
                nodes.par_iter_mut().zip(next).enumerate().for_each(one);
            }),
        }
    }

    /// Answers all nodes that ask for directions, in one call.
    fn answer(&mut self, together: &mut dyn Together<T>, e: usize) -> Result<()> {
        let mut asks: Vec<Ask<T>> = Vec::with_capacity(self.nodes.len());
        for (i, Node { algorithm, oracle }) in self.nodes.iter_mut().enumerate() {
            asks.extend(algorithm.asks(e).map(|wanted| oracle.ask(i, wanted)));
        }
        match asks.is_empty() {
            true => Ok(()),
            false => together.directions(&mut asks),
        }
    }

    /// The rest of every node's step, and its next message.
    fn share(&mut self, round: Round, exchanges: usize) {
        let all = self.nodes.iter_mut().zip(&mut self.next);
        all.for_each(|(node, next)| node.share(round, exchanges, next));
    }

    /// Whether every derivative could be computed.
    fn check(&mut self) -> Result<()> {
        self.nodes.iter_mut().find_map(|node| node.oracle.error()).map_or(Ok(()), Err)
    }
}

impl<T: Real> Node<T> {
    /// The rest of the step of a round, and the message of the next one.
    fn share(&mut self, round: Round, exchanges: usize, message: &mut Outbox<T>) {
        self.algorithm.finish(round.e);
        message.clear();
        self.algorithm.share(round.next(exchanges), message);
    }
}
