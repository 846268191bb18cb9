//! The messages of the nodes here, from `share` to `step`.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPool;
use rayon::prelude::*;

use super::attack::Attack;
use super::clip::Clipping;
use super::compress::Compressor;
use super::failures::Failures;
use super::links::Links;
use super::mail::Mail;
use super::map::{Border, Map};
use super::slot::{Address, Desk, Slot, receive, send};
use super::spec::Messages;
use crate::engine::{Parcel, block};
use crate::error::{Error, Kind, Result};
use crate::math::real::{Real, all_finite};
use crate::network::Mixing;
use crate::network::outbox::Outbox;

/// What happened to messages so far, over all links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Messages sent.
    pub sent: u64,
    /// Messages that links did not carry.
    pub lost: u64,
    /// Messages that came too late.
    pub late: u64,
    /// Iterations that nodes slept through.
    pub slept: u64,
}

/// Where the traffic is: whose, on which network, in which process.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// W; of a graph that changes as if all its links were used in every round.
    pub mixing: &'a Mixing,
    /// Whether rounds use some of these links only: see [`Traffic::turn`].
    pub changes: bool,
    /// 1 less the smallest eigenvalue of any W.
    pub spread: f64,
    /// The seed of the run.
    pub seed: u64,
    /// The number of processes.
    pub size: usize,
    /// The rank of this one.
    pub rank: usize,
    /// The number of threads.
    pub threads: usize,
    /// For each exchange of an iteration, the lengths of the vectors in a message.
    pub lengths: &'a [Vec<usize>],
}

/// The messages of the nodes here, from `share` to `step`.
pub struct Traffic<T: Real> {
    out: Vec<Parcel>,  // to send; those of this exchange come first
    into: Vec<Parcel>, // to receive, likewise
    open: Vec<usize>,  // the borders that they cross
    pub(super) map: Map,
    links: Links<T>,
    pub(super) slots: Vec<Slot<T>>,
    pub(super) compressor: Option<Arc<dyn Compressor<T>>>,
    pub(super) feedback: bool,
    clip: Option<Clipping<T>>,
    attack: Option<Attack>,
    seed: u64,
    nodes: usize,
    pub(super) delays: bool,
    lies: Vec<Vec<T>>, // of the nodes here; empty for honest ones
    liars: Vec<bool>,
    wires: Vec<Vec<u8>>,
    desks: Vec<Mutex<Desk<T>>>,
}

impl<T: Real> Traffic<T> {
    /// The traffic of a run at its start.
    pub fn new(messages: &Messages, attack: Option<&Attack>, site: Site) -> Traffic<T> {
        let Site { mixing, changes, spread, seed, size, rank, threads, lengths } = site;
        let nodes = mixing.nodes();
        let compressor = messages.compress.as_ref().map(|with| with.choice.build.get::<T>());
        let feedback = messages.compress.as_ref().is_some_and(|with| with.feedback);
        let map = Map::new(mixing, (size, rank), apart(messages, changes));
        let clip = messages.rules.clip.map(Clipping::new);
        let told = clip.is_some_and(|clip: Clipping<T>| clip.is_told());
        let delays = messages.rules.late > 0.0;
        let slot = |lengths: &Vec<usize>| {
            let (length, tail) = (lengths.iter().sum(), if told { lengths.len() } else { 0 });
            let values = vec![vec![T::zero(); length + tail]; map.ways.len()];
            Slot {
                wire: wire_bytes::<T>(messages, lengths),
                length,
                lengths: lengths.clone(),
                old: if delays { values.clone() } else { Vec::new() },
                values,
                reach: vec![vec![T::zero(); tail]; map.links.len()],
            }
        };
        let slots: Vec<Slot<T>> = lengths.iter().map(slot).collect();
        let most = slots.iter().map(|slot| slot.length).max().unwrap_or(0);
        let desk = || Desk {
            difference: vec![T::zero(); most],
            order: Vec::with_capacity(most),
            moved: Vec::with_capacity(most),
            distances: Vec::with_capacity(map.links.iter().map(Vec::len).max().unwrap_or(0)),
        };
        let wire = slots.iter().map(|slot| slot.wire).max().unwrap_or(0);
        let parcels = |ways: fn(&Border) -> usize| {
            let parcel = |border: &Border| Parcel {
                rank: border.rank,
                bytes: Vec::with_capacity(ways(border) * wire),
                finite: false,
            };
            map.borders.iter().map(parcel).collect()
        };
        let liar = |i: usize| attack.is_some_and(|attack| attack.nodes.contains(&i));
        let failures = Failures::new(&messages.rules, seed, nodes);
        let mut links = Links::new(&map, failures, messages.consensus_step(spread), lengths.len());
        if !changes {
            links.turn(&map, mixing);
        }
        Traffic {
            out: parcels(|border| border.out.len()),
            into: parcels(|border| border.into.len()),
            open: Vec::with_capacity(map.borders.len()),
            links,
            compressor,
            feedback,
            clip,
            attack: attack.cloned(),
            seed,
            nodes,
            delays,
            lies: vec![Vec::new(); map.here.len()],
            liars: map.here.clone().map(liar).collect(),
            // Room for all, since a way may be used for the first time in any iteration.
            wires: (0..map.ours).map(|_| Vec::with_capacity(wire)).collect(),
            desks: (0..threads).map(|_| Mutex::new(desk())).collect(),
            slots,
            map,
        }
    }

    /// Uses the links of a round, whose W this is, where they change.
    pub fn turn(&mut self, mixing: &Mixing) {
        self.links.turn(&self.map, mixing);
    }

    /// Rounds in an iteration: exchanges in which something is said.
    pub fn rounds(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.length > 0).count() as u64
    }

    /// Whether exchange `e` of iteration `k` needs to know what the same one carried an iteration
    /// before, and does not: a run was resumed. Set its round, and let it [`recall`](Traffic::recall).
    pub fn forgot(&self, at: (u64, usize)) -> bool {
        self.links.forgot(at)
    }

    /// Finds again what exchange `e` of iteration `k − 1` carried.
    pub fn recall(&mut self, at: (u64, usize)) {
        self.links.recall(&self.map, at);
    }

    /// Whether nodes here have neighbours in other processes.
    pub fn spans(&self) -> bool {
        !self.map.borders.is_empty()
    }

    /// How links and nodes fail.
    pub fn failures(&self) -> &Failures {
        self.links.failures()
    }

    /// Bytes per number of a parcel: 1 if its content is compressed.
    pub fn scalar(&self) -> usize {
        if self.compressor.is_some() { 1 } else { T::BYTES }
    }

    /// Takes the messages of exchange `e` of iteration `k`: fills the parcels to send, and makes room
    /// in those to receive.
    pub fn begin(
        &mut self,
        (k, e): (u64, usize),
        messages: &[Outbox<T>],
        pool: Option<&ThreadPool>,
    ) -> Result<()> {
        self.links.choose(&self.map, (k, e));
        if let Some(attack) = &self.attack {
            let liars = self.liars.iter().enumerate().filter(|(_, liar)| **liar);
            for (i, _) in liars {
                let whose = (self.seed, self.map.here.start + i);
                attack.lie(whose, (k, e), messages[i].values(), &mut self.lies[i]);
            }
        }
        let Traffic { map, links, slots, compressor, feedback, lies, liars, desks, .. } = self;
        let (map, compressor, fates) = (&*map, &*compressor, &links.fates[..]);
        let (lies, liars) = (&*lies, &*liars);
        let (desks, feedback) = (&*desks, *feedback);
        let Slot { lengths, length, values, old, reach, .. } = &mut slots[e];
        let (lengths, length, reach) = (&*lengths, *length, &*reach);
        let (broken, told) = (AtomicBool::new(false), self.clip.is_some_and(|clip| clip.is_told()));
        let (seed, nodes) = (self.seed, self.nodes);
        let one = |(c, ((value, old), wire)): Work<T>| {
            let (way, i) = (map.ways[c], map.ways[c].from - map.here.start);
            wire.clear();
            if map.edge_of[c].is_some_and(|edge| !fates[edge].up) {
                return;
            }
            if let Some(old) = old {
                old.copy_from_slice(value);
            }
            let said = if liars[i] { &lies[i][..] } else { messages[i].values() };
            match compressor {
                None => {
                    value[..length].copy_from_slice(said);
                    if map.crosses[c] {
                        T::extend_le(said, wire);
                    }
                }
                Some(compressor) => {
                    if !feedback {
                        value.fill(T::zero());
                    }
                    let thread = pool.and_then(ThreadPool::current_thread_index).unwrap_or(0);
                    let desk = &mut *desks[thread].lock().expect("nothing panics with a desk");
                    let address = Address { seed, stream: way.from * nodes + way.to, k, e };
                    if send(&**compressor, address, lengths, said, value, desk, wire).is_none() {
                        broken.store(true, Ordering::Relaxed);
                    }
                }
            }
            if told {
                value[length..].copy_from_slice(&reach[i]);
                T::extend_le(&reach[i], wire);
            }
        };
        let (values, wires) = (&mut values[..map.ours], &mut self.wires);
        match (pool, self.delays) {
            (None, false) => {
                let all = values.iter_mut().map(|value| (value, None));
                all.zip(wires).enumerate().for_each(one);
            }
            (None, true) => {
                let all = values.iter_mut().zip(old.iter_mut().map(Some));
                all.zip(wires).enumerate().for_each(one);
            }
            (Some(pool), false) => pool.install(|| {
                let all = values.par_iter_mut().map(|value| (value, None));
                all.zip(wires).enumerate().for_each(one);
            }),
            (Some(pool), true) => pool.install(|| {
                let all = values.par_iter_mut().zip(old.par_iter_mut().map(Some));
                all.zip(wires).enumerate().for_each(one);
            }),
        }
        if broken.into_inner() {
            let message =
                "the compressor cannot read what it wrote, or wrote too much or too little";
            return Err(Error::new(Kind::Run, "messages/compressor", message)
                .at("[messages] compress")
                .hint("`encode` must append as many bytes as `bytes` says, and `add` read them"));
        }
        self.pack(e);
        Ok(())
    }

    /// Fills the parcels of the borders that links of this exchange cross.
    fn pack(&mut self, e: usize) {
        let Traffic { map, links, wires, out, into, open, slots, .. } = self;
        let up = |edges: &[usize]| edges.iter().any(|&edge| links.fates[edge].up);
        open.clear();
        for (at, border) in map.borders.iter().enumerate() {
            let count = border.into.iter().filter(|(_, edges)| up(edges)).count();
            if count == 0 {
                continue; // both ends know
            }
            let (out, into) = (&mut out[open.len()], &mut into[open.len()]);
            (out.rank, into.rank) = (border.rank, border.rank);
            out.bytes.clear();
            out.finite = true;
            for (way, _) in border.out.iter().filter(|(_, edges)| up(edges)) {
                out.bytes.extend_from_slice(&wires[*way]);
                out.finite &= all_finite(&slots[e].values[*way]);
            }
            into.bytes.resize(count * slots[e].wire, 0);
            open.push(at);
        }
    }

    /// Takes the messages of other processes out of their parcels.
    pub fn unpack(&mut self, (k, e): (u64, usize)) -> Result<()> {
        let Traffic { map, links, open, into, slots, compressor, desks, .. } = self;
        let Slot { lengths, length, wire, values, old, .. } = &mut slots[e];
        let desk = &mut *desks[0].lock().expect("nothing panics with a desk");
        let up = |edges: &[usize]| edges.iter().any(|&edge| links.fates[edge].up);
        for (&at, parcel) in open.iter().zip(into) {
            let border = &map.borders[at];
            let ways = border.into.iter().filter(|(_, edges)| up(edges));
            for (&(way, _), bytes) in ways.zip(parcel.bytes.chunks_exact((*wire).max(1))) {
                let value = &mut values[way];
                if let Some(old) = old.get_mut(way) {
                    old.copy_from_slice(value);
                }
                let Some(compressor) = compressor else {
                    T::read_le(bytes, value);
                    continue;
                };
                if !self.feedback {
                    value.fill(T::zero());
                }
                let from = map.ways[way].from;
                let stream = from * self.nodes + map.ways[way].to;
                let address = Address { seed: self.seed, stream, k, e };
                let (vectors, radii) = value.split_at_mut(*length);
                let order = &mut desk.order;
                let rest = receive(&**compressor, address, lengths, bytes, vectors, order);
                let rest = rest.ok_or_else(|| garbled(from, k))?;
                T::read_le(rest, radii);
                if parcel.finite && !all_finite(value) {
                    return Err(not_finite(from, k));
                }
            }
        }
        Ok(())
    }

    /// Bytes of a message of exchange `e`.
    pub fn wire(&self, e: usize) -> u64 {
        self.slots[e].wire as u64
    }

    /// The rest of an exchange: what it cost.
    pub fn tally(&self, e: usize) -> (Tally, u64) {
        let Slot { length, wire, .. } = &self.slots[e];
        let once = if *length > 0 { self.links.once } else { Tally::default() };
        let slept = if e == 0 { self.links.once.slept } else { 0 };
        (Tally { slept, ..once }, once.sent * *wire as u64)
    }

    /// What mixing needs of exchange `e`, and each node's radii, which it renews.
    pub fn mail(&mut self, e: usize) -> Opened<'_, T> {
        let Traffic { map, links, slots, clip, liars, desks, out, into, open, .. } = self;
        let Slot { lengths, length, values, old, reach, .. } = &mut slots[e];
        let mail =
            Mail { map, clip: *clip, links, liars, desks, lengths, length: *length, values, old };
        (mail, reach, &out[..open.len()], &mut into[..open.len()])
    }
}

/// What mixing needs, the nodes' radii, parcels to send and parcels to receive.
pub type Opened<'a, T> = (Mail<'a, T>, &'a mut [Vec<T>], &'a [Parcel], &'a mut [Parcel]);

/// A way of the nodes here: what is held, what was held, and its bytes.
type Work<'w, T> = (usize, ((&'w mut Vec<T>, Option<&'w mut Vec<T>>), &'w mut Vec<u8>));

/// Whether each neighbour has a replica of its own: where links fail or change, neighbours hold
/// different ones.
fn apart(messages: &Messages, changes: bool) -> bool {
    let feedback = messages.compress.as_ref().is_some_and(|with| with.feedback);
    feedback && (changes || messages.fail())
}

/// Replicas that a process may keep, in bytes.
const MOST: u64 = 8 << 30;

/// Refuses to keep a replica for every neighbour that a node may ever have, where that is too much.
pub fn check_replicas<T: Real>(messages: &Messages, site: &Site) -> Result<()> {
    if !apart(messages, site.changes) {
        return Ok(());
    }
    let here = block(site.mixing.nodes(), site.size, site.rank);
    let near = |i: usize| site.mixing.row(i).iter().filter(move |(j, _)| *j != i);
    let sent: usize = here.clone().map(|i| near(i).count()).sum();
    let heard: usize =
        here.clone().map(|i| near(i).filter(|(j, _)| !here.contains(j)).count()).sum();
    let (count, length) = ((sent + heard) as u64, site.lengths.iter().flatten().sum::<usize>());
    let copies = if messages.rules.late > 0.0 { 2 } else { 1 };
    let bytes = count.saturating_mul((copies * length * T::BYTES) as u64);
    if bytes <= MOST {
        return Ok(());
    }
    let message = format!(
        "compression would keep {count} replicas of {length} numbers, {:.1} GB: one for each \
         direction of each link that is ever used",
        bytes as f64 / 1e9
    );
    Err(Error::config("config/messages-replicas", message)
        .at("[messages] compress")
        .hint("use a graph with fewer links, such as `base = \"ring\"`, or more processes"))
}

/// Bytes of a message with vectors of these lengths.
pub fn wire_bytes<T: Real>(messages: &Messages, lengths: &[usize]) -> usize {
    let told = matches!(messages.rules.clip, Some(super::Clip::Adaptive(_)));
    let radii = if told { lengths.len() * T::BYTES } else { 0 };
    let bytes = match &messages.compress {
        None => lengths.iter().sum::<usize>() * T::BYTES,
        Some(with) => {
            let compressor = with.choice.build.get::<T>();
            lengths.iter().map(|&length| compressor.bytes(length)).sum()
        }
    };
    bytes + radii
}

fn not_finite(from: usize, k: u64) -> Error {
    let message =
        format!("what node {from} sent in iteration {k} is not finite, and it did not say so");
    Error::new(Kind::Run, "messages/not-finite", message)
        .hint("run the same version of lopa with the same compressors at every node")
}

fn garbled(from: usize, k: u64) -> Error {
    let message = format!("what node {from} sent in iteration {k} cannot be decompressed");
    Error::new(Kind::Peer, "messages/garbled", message)
        .hint("run the same version of lopa with the same compressors at every node")
}
