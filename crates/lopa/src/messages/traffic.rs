//! The messages of the nodes here, from `share` to `step`.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPool;
use rayon::prelude::*;

use super::attack::Attack;
use super::clip::Clipping;
use super::compress::Compressor;
use super::failures::{Failures, Fate};
use super::mail::Mail;
use super::map::{Border, Map};
use super::slot::{Address, Desk, Slot, receive, send};
use super::spec::Messages;
use crate::engine::Parcel;
use crate::error::{Error, Kind, Result};
use crate::math::real::Real;
use crate::network::Mixing;

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
    /// W, the same in all rounds.
    pub mixing: &'a Mixing,
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
    /// Parcels to send.
    pub out: Vec<Parcel>,
    /// Parcels to receive.
    pub into: Vec<Parcel>,
    pub(super) map: Map,
    pub(super) slots: Vec<Slot<T>>,
    pub(super) compressor: Option<Arc<dyn Compressor<T>>>,
    pub(super) feedback: bool,
    clip: Option<Clipping<T>>,
    failures: Failures,
    attack: Option<Attack>,
    seed: u64,
    nodes: usize,
    now: Option<u64>, // the iteration of the fates
    fates: Vec<Fate>,
    used: Vec<Fate>,   // the same, but for links of weight 0
    weights: Vec<T>,   // of edges: the consensus step times w_ij
    before: Vec<Fate>, // one iteration before
    awake: Vec<bool>,
    pub(super) delays: bool,
    lies: Vec<Vec<T>>, // of the nodes here; empty for honest ones
    liars: Vec<bool>,
    wires: Vec<Vec<u8>>,
    desks: Vec<Mutex<Desk<T>>>,
    once: Tally, // of the current iteration, for an exchange
}

impl<T: Real> Traffic<T> {
    /// The traffic of a run at its start.
    pub fn new(messages: &Messages, attack: Option<&Attack>, site: Site) -> Traffic<T> {
        let Site { mixing, seed, size, rank, threads, lengths } = site;
        let nodes = mixing.nodes();
        let compressor = messages.compress.as_ref().map(|with| with.choice.build.get::<T>());
        let feedback = messages.compress.as_ref().is_some_and(|with| with.feedback);
        let map = Map::new(mixing, (size, rank), apart(messages));
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
        let parcel = |border: &Border| Parcel { rank: border.rank, bytes: Vec::new() };
        let liar = |i: usize| attack.is_some_and(|attack| attack.nodes.contains(&i));
        // W may be symmetric up to rounding only: both ends take the same entry.
        let step = messages.consensus_step();
        let weights = map.edges.iter().map(|&(i, j)| T::of(step * mixing.weight(i, j))).collect();
        Traffic {
            out: map.borders.iter().map(parcel).collect(),
            into: map.borders.iter().map(parcel).collect(),
            compressor,
            feedback,
            clip,
            failures: Failures::new(&messages.rules, seed, nodes),
            attack: attack.cloned(),
            seed,
            nodes,
            now: None,
            fates: vec![Fate { up: true, late: false }; map.edges.len()],
            before: vec![Fate::default(); map.edges.len()],
            awake: vec![true; nodes],
            delays,
            lies: vec![Vec::new(); map.here.len()],
            liars: map.here.clone().map(liar).collect(),
            wires: vec![Vec::new(); map.ours],
            desks: (0..threads).map(|_| Mutex::new(desk())).collect(),
            once: Tally::default(),
            used: vec![Fate { up: true, late: false }; map.edges.len()],
            weights,
            slots,
            map,
        }
    }

    /// Bytes per number of a parcel: 1 if its content is compressed.
    pub fn scalar(&self) -> usize {
        if self.compressor.is_some() { 1 } else { T::BYTES }
    }

    /// Draws what becomes of links and nodes in iteration `k`.
    fn draw(&mut self, k: u64) {
        if self.now == Some(k) {
            return;
        }
        if self.failures.any() {
            match self.now {
                Some(now) if now + 1 == k => std::mem::swap(&mut self.before, &mut self.fates),
                _ if k > 0 => {
                    fates(&self.failures, k - 1, &self.map, &mut self.awake, &mut self.before);
                }
                _ => {}
            }
            fates(&self.failures, k, &self.map, &mut self.awake, &mut self.fates);
        }
        self.now = Some(k);
    }

    /// The links that are used in this exchange, and what that costs.
    fn choose(&mut self) {
        let Traffic { fates, used, weights, map, awake, .. } = self;
        let mut once = Tally::default();
        let links = used.iter_mut().zip(fates.iter().zip(weights.iter().zip(&map.edges)));
        for (used, (fate, (weight, &(i, j)))) in links {
            let has = *weight != T::zero();
            *used = Fate { up: fate.up && has, late: fate.late && has };
            once.sent += 2 * u64::from(used.up);
            once.late += 2 * u64::from(used.late);
            once.lost += 2 * u64::from(has && !used.up && awake[i] && awake[j]);
        }
        once.slept = awake.iter().filter(|awake| !**awake).count() as u64;
        self.once = once;
    }

    /// Takes the messages of exchange `e` of iteration `k`: fills the parcels to send, and makes room
    /// in those to receive.
    pub fn begin(
        &mut self,
        (k, e): (u64, usize),
        messages: &[Vec<T>],
        pool: Option<&ThreadPool>,
    ) -> Result<()> {
        self.draw(k);
        self.choose();
        if let Some(attack) = &self.attack {
            let liars = self.liars.iter().enumerate().filter(|(_, liar)| **liar);
            for (i, _) in liars {
                let whose = (self.seed, self.map.here.start + i);
                attack.lie(whose, (k, e), &messages[i], &mut self.lies[i]);
            }
        }
        let Traffic { map, slots, compressor, feedback, used, lies, liars, desks, .. } = self;
        let (map, compressor, fates, lies, liars) = (&*map, &*compressor, &*used, &*lies, &*liars);
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
            let said = if liars[i] { &lies[i] } else { &messages[i] };
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

    fn pack(&mut self, e: usize) {
        let Traffic { map, used: fates, wires, out, into, slots, .. } = self;
        let up = |edges: &[usize]| edges.iter().any(|&edge| fates[edge].up);
        for (border, (out, into)) in map.borders.iter().zip(out.iter_mut().zip(into)) {
            out.bytes.clear();
            for (way, _) in border.out.iter().filter(|(_, edges)| up(edges)) {
                out.bytes.extend_from_slice(&wires[*way]);
            }
            let count = border.into.iter().filter(|(_, edges)| up(edges)).count();
            into.bytes.resize(count * slots[e].wire, 0);
        }
    }

    /// Takes the messages of other processes out of their parcels.
    pub fn unpack(&mut self, (k, e): (u64, usize)) -> Result<()> {
        let Traffic { map, used: fates, into, slots, compressor, desks, .. } = self;
        let Slot { lengths, length, wire, values, old, .. } = &mut slots[e];
        let desk = &mut *desks[0].lock().expect("nothing panics with a desk");
        let up = |edges: &[usize]| edges.iter().any(|&edge| fates[edge].up);
        for (border, parcel) in map.borders.iter().zip(into) {
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
            }
        }
        Ok(())
    }

    /// Whether everything that the nodes here said and heard in exchange `e` is finite.
    pub fn is_finite(&self, e: usize) -> bool {
        self.slots[e].values.iter().flatten().all(|value| value.is_finite())
    }

    /// Bytes of a message of exchange `e`.
    pub fn wire(&self, e: usize) -> u64 {
        self.slots[e].wire as u64
    }

    /// The rest of an exchange: what it cost.
    pub fn tally(&self, e: usize) -> (Tally, u64) {
        let Slot { length, wire, .. } = &self.slots[e];
        let once = if *length > 0 { self.once } else { Tally::default() };
        let slept = if e == 0 { self.once.slept } else { 0 };
        (Tally { slept, ..once }, once.sent * *wire as u64)
    }

    /// What mixing needs of exchange `e`, and each node's radii, which it renews.
    pub fn mail(&mut self, e: usize) -> Opened<'_, T> {
        let Traffic { map, slots, clip, used, before, awake, liars, desks, out, into, .. } = self;
        let weights = &self.weights;
        let Slot { lengths, length, values, old, reach, .. } = &mut slots[e];
        let mail = Mail {
            map,
            clip: *clip,
            fates: used,
            weights,
            before,
            awake,
            liars,
            desks,
            lengths,
            length: *length,
            values,
            old,
        };
        (mail, reach, out, into)
    }
}

/// What mixing needs, the nodes' radii, parcels to send and parcels to receive.
pub type Opened<'a, T> = (Mail<'a, T>, &'a mut [Vec<T>], &'a [Parcel], &'a mut [Parcel]);

/// A way of the nodes here: what is held, what was held, and its bytes.
type Work<'w, T> = (usize, ((&'w mut Vec<T>, Option<&'w mut Vec<T>>), &'w mut Vec<u8>));

/// Whether each neighbour has a replica of its own: where links fail, neighbours hold different ones.
fn apart(messages: &Messages) -> bool {
    messages.compress.as_ref().is_some_and(|with| with.feedback) && messages.fail()
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

/// The fates of all links in iteration `k`, and which nodes take part.
fn fates(failures: &Failures, k: u64, map: &Map, awake: &mut [bool], fates: &mut [Fate]) {
    awake.iter_mut().enumerate().for_each(|(i, awake)| *awake = failures.awake(k, i));
    for (fate, &(i, j)) in fates.iter_mut().zip(&map.edges) {
        *fate = if awake[i] && awake[j] { failures.fate(k, (i, j)) } else { Fate::default() };
    }
}

fn garbled(from: usize, k: u64) -> Error {
    let message = format!("what node {from} sent in iteration {k} cannot be decompressed");
    Error::new(Kind::Peer, "messages/garbled", message)
        .hint("run the same version of lopa with the same compressors at every node")
}
