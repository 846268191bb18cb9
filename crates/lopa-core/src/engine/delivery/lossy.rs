//! Messages that are compressed, lost, delayed, clipped or false: see [`crate::engine::messages`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::buffers::{Buffers, Held, Opener, encoded, ranges, send};
use super::edges::Edges;
use super::states::States;
use super::{Carried, Delivery, Parcels, Scratch, Site, Workers};
use crate::engine::messages::{
    Attack, Clip, Clipping, Compressor, Failures, Fate, Messages, Tally, distance, factor, median,
};
use crate::engine::refusal::Refusal;
use crate::engine::transport::{Parcel, block};
use crate::error::{Error, Kind, Result};
use crate::math::real::{Real, all_finite, update};
use crate::network::Cursor;
use crate::network::mixed::Mixed;
use crate::network::outbox::{Combine, Outbox, Piece, Round};

/// Delivery according to `[messages]` and `[attack]`.
pub struct Lossy<T: Real> {
    pub(super) edges: Edges,
    states: States<T>,
    pub(super) buffers: Vec<Buffers<T>>, // one for each exchange of an iteration
    pub(super) compressor: Option<Arc<dyn Compressor<T>>>,
    pub(super) feedback: bool,
    clip: Option<Clipping<T>>,
    attack: Option<Attack>,
    seed: u64,
    lies: Vec<Option<Vec<T>>>, // of the lying nodes of this process
    open: Vec<usize>,          // the borders with messages in this round
    trial: Mutex<Trial<T>>,    // for checking parcels before they are used
}

/// Memory to read a message into before it counts.
#[derive(Default)]
struct Trial<T> {
    value: Vec<T>,
    order: Vec<u32>,
}

impl<T: Real> Lossy<T> {
    /// The messages of a run at its start.
    ///
    /// # Errors
    /// If compression would keep too many replicas.
    pub fn new(messages: &Messages, attack: Option<&Attack>, site: Site) -> Result<Lossy<T>> {
        check_replicas::<T>(messages, &site)?;
        let Site { mixing, changes, spread, seed, size, rank, pieces } = site;
        let edges = Edges::new(mixing, (size, rank), apart(messages, changes));
        let failures = Failures::new(&messages.rules, seed, mixing.nodes());
        let step = messages.consensus_step(spread);
        let mut states = States::new(&edges, failures, step, pieces.len());
        if !changes {
            states.turn(&edges, mixing);
        }
        let lies = |i| attack.is_some_and(|attack| attack.nodes.contains(&i)).then(Vec::new);
        Ok(Lossy {
            buffers: pieces.iter().map(|pieces| buffers(messages, pieces, &edges)).collect(),
            states,
            compressor: messages.compress.as_ref().map(|with| with.choice.build.get::<T>()),
            feedback: messages.compress.as_ref().is_some_and(|with| with.feedback),
            clip: messages.rules.clip.map(Clipping::new),
            attack: attack.cloned(),
            seed,
            lies: edges.here.clone().map(lies).collect(),
            open: Vec::with_capacity(edges.borders.len()),
            trial: Mutex::default(),
            edges,
        })
    }

    pub(super) fn delays(&self) -> bool {
        self.states.failures.delays()
    }

    /// Rounds per iteration: exchanges with messages.
    fn rounds(&self) -> u64 {
        self.buffers.iter().filter(|buffers| buffers.length > 0).count() as u64
    }

    /// Replaces the messages of lying nodes.
    fn lie(&mut self, round: Round, messages: &[Outbox<T>]) {
        let Some(attack) = &self.attack else { return };
        for (i, lie) in self.lies.iter_mut().enumerate() {
            let Some(lie) = lie else { continue };
            let whose = (self.seed, self.edges.here.start + i);
            attack.lie(whose, round, messages[i].values(), lie);
        }
    }

    /// Updates the replica of a node of this process by its message; `None` if the compressor
    /// breaks its promises.
    fn update(
        &self,
        (round, replica): (Round, usize),
        message: &[T],
        held: &mut Held<T>,
        (buffers, scratch): (&Buffers<T>, &mut Scratch<T>),
    ) -> Option<()> {
        held.wire.clear();
        if self.edges.edge_of[replica].is_some_and(|edge| !self.states.fates[edge].up) {
            return Some(());
        }
        held.keep_old();
        let i = self.edges.replicas[replica].of - self.edges.here.start;
        let said = self.lies[i].as_deref().unwrap_or(message);
        match &self.compressor {
            None => {
                held.value[..said.len()].copy_from_slice(said);
                if self.edges.crosses[replica] {
                    T::extend_le(said, &mut held.wire);
                }
            }
            Some(compressor) => {
                if !self.feedback {
                    held.value.fill(T::zero());
                }
                let address = self.edges.address(self.seed, round, replica);
                send(&**compressor, address, &buffers.pieces, said, held, scratch)?;
            }
        }
        if self.clip.is_some_and(|clip| clip.is_told()) {
            let radii = buffers.radii[i].lock().expect("no step panics");
            held.value[buffers.length..].copy_from_slice(&radii);
            T::extend_le(&radii, &mut held.wire);
        }
        Some(())
    }

    /// Fills the parcels of the borders that edges of this round cross.
    fn pack(&mut self, e: usize, parcels: &mut Parcels) {
        let Lossy { edges, states, buffers, open, .. } = self;
        parcels.clear();
        open.clear();
        for (at, border) in edges.borders.iter().enumerate() {
            let count = border.into.iter().filter(|(_, edges)| states.any_up(edges)).count();
            if count == 0 {
                continue; // both ends know
            }
            let Parcel { bytes, finite, .. } = parcels.send(border.rank);
            for (replica, _) in border.out.iter().filter(|(_, edges)| states.any_up(edges)) {
                let held = &buffers[e].replicas[*replica];
                bytes.extend_from_slice(&held.wire);
                *finite &= all_finite(&held.value);
            }
            parcels.expect(border.rank, count * buffers[e].wire);
            open.push(at);
        }
    }

    /// Reads the messages of exchange `e`.
    fn opener(&self, e: usize) -> Opener<'_, T> {
        let Buffers { pieces, length, .. } = &self.buffers[e];
        let compressor = self.compressor.as_deref();
        Opener { compressor, feedback: self.feedback, pieces, length: *length }
    }

    /// Updates the replicas of nodes in other processes by their messages.
    fn take(
        &self,
        round: Round,
        workers: &Workers<T>,
        parcels: &Parcels,
        replicas: &mut [Held<T>],
    ) -> Result<()> {
        let opener = self.opener(round.e);
        let wire = self.buffers[round.e].wire.max(1);
        for (&at, parcel) in self.open.iter().zip(parcels.received()) {
            let into = self.edges.borders[at].into.iter();
            let into = into.filter(|(_, edges)| self.states.any_up(edges));
            for (&(replica, _), bytes) in into.zip(parcel.bytes.chunks_exact(wire)) {
                let held = &mut replicas[replica];
                held.keep_old();
                let address = self.edges.address(self.seed, round, replica);
                let opened = workers.with_scratch(|Scratch { order, .. }| {
                    opener.open(address, bytes, &mut held.value, order)
                });
                opened.ok_or_else(|| garbled(self.edges.replicas[replica].of, round.k))?;
            }
        }
        Ok(())
    }

    /// For each active edge of a node of this process: its weight, the replica of the neighbour,
    /// and the neighbour's replica of the node.
    fn pairs<'m>(
        &'m self,
        i: usize,
        own: &'m [T],
        replicas: &'m [Held<T>],
    ) -> impl Iterator<Item = (T, &'m [T], &'m [T])> {
        self.edges.ends[i].iter().filter_map(move |end| {
            let value = |replica: usize| match self.states.fates[end.edge].late {
                true => &replicas[replica].old[..],
                false => &replicas[replica].value[..],
            };
            match self.states.fates[end.edge] {
                Fate { up: false, .. } => return None,
                Fate { late: true, .. } if !self.states.before[end.edge] => return None,
                _ => {}
            }
            // An attacker mixes with its true vector, not with the false one it sent.
            let ours = if self.lies[i].is_some() { own } else { value(end.out) };
            Some((self.states.weights[end.edge], value(end.into), ours))
        })
    }

    /// `scratch.moved` ← Σ_j w_ij (v_j − v_i), times the consensus step, or the largest v_j; updates the
    /// node's radii where they adapt.
    fn move_node(&self, e: usize, i: usize, own: &[T], scratch: &mut Scratch<T>) {
        self.move_by_sums(e, i, own, scratch);
        let Buffers { pieces, replicas, .. } = &self.buffers[e];
        for (_, at) in ranges(pieces).filter(|(kind, _)| *kind == Combine::Largest) {
            let at = at.start;
            let theirs = self.pairs(i, own, replicas).map(|(_, theirs, _)| theirs[at]);
            scratch.moved[at] = theirs.fold(own[at], T::max);
        }
    }

    fn move_by_sums(&self, e: usize, i: usize, own: &[T], scratch: &mut Scratch<T>) {
        let Buffers { pieces, length, replicas, radii, .. } = &self.buffers[e];
        let Scratch { moved, difference, distances, .. } = scratch;
        moved.clear();
        moved.resize(*length, T::zero());
        let Some(clip) = self.clip else {
            for (weight, theirs, ours) in self.pairs(i, own, replicas) {
                update(moved, [theirs, ours], |sum, [theirs, ours]| sum + weight * (theirs - ours));
            }
            return;
        };
        difference.resize(difference.len().max(*length), T::zero());
        distances.reserve(self.edges.ends[i].len());
        for (at, (_, piece)) in ranges(pieces).enumerate() {
            distances.clear();
            for (weight, theirs, ours) in self.pairs(i, own, replicas) {
                let radius = |values: &[T]| values.get(length + at).copied();
                let radius = match clip {
                    Clipping::Radius(radius) => radius,
                    // A lying node has no radius of its own: the neighbour's counts.
                    Clipping::Median(_) => {
                        let theirs = radius(theirs).unwrap_or(T::zero());
                        radius(ours).map_or(theirs, |ours| ours.min(theirs))
                    }
                };
                let (theirs, ours) = (&theirs[piece.clone()], &ours[piece.clone()]);
                let length = distance(theirs, ours, &mut difference[..piece.len()]);
                distances.push(length);
                let weight = weight * factor(length, radius);
                update(&mut moved[piece.clone()], [theirs, ours], |sum, [theirs, ours]| {
                    sum + weight * (theirs - ours)
                });
            }
            if let (Clipping::Median(times), Some(median)) = (clip, median(distances)) {
                radii[i].lock().expect("no step panics")[at] = times * median;
            }
        }
    }
}

impl<T: Real> Delivery<T> for Lossy<T> {
    fn go(&mut self, round: Round, number: u64, graph: Option<&mut Cursor>) {
        let forgot = self.states.forgot(round);
        let mut graph = graph;
        if forgot {
            if let Some(graph) = &mut graph {
                graph.go(number - self.rounds());
                self.states.turn(&self.edges, graph.mixing());
            }
            self.states.recall(&self.edges, round);
        }
        if let Some(graph) = graph
            && (graph.go(number) || forgot)
        {
            self.states.turn(&self.edges, graph.mixing());
        }
    }

    fn begin(
        &mut self,
        round: Round,
        messages: &[Outbox<T>],
        workers: &Workers<T>,
        parcels: &mut Parcels,
    ) -> Result<()> {
        self.states.begin(&self.edges, round);
        self.lie(round, messages);
        let mut replicas = std::mem::take(&mut self.buffers[round.e].replicas);
        let (ours, broken) = (&mut replicas[..self.edges.ours], AtomicBool::new(false));
        let (this, buffers) = (&*self, &self.buffers[round.e]);
        workers.each(ours, |at, held, scratch| {
            let i = this.edges.replicas[at].of - this.edges.here.start;
            let message = messages[i].values();
            if this.update((round, at), message, held, (buffers, scratch)).is_none() {
                broken.store(true, Ordering::Relaxed);
            }
        });
        self.buffers[round.e].replicas = replicas;
        if broken.into_inner() {
            return Err(broken_compressor());
        }
        self.pack(round.e, parcels);
        Ok(())
    }

    fn accepts(
        &self,
        round: Round,
        rank: usize,
        bytes: &[u8],
        finite: bool,
    ) -> Result<(), Refusal> {
        let Buffers { length, wire, replicas, .. } = &self.buffers[round.e];
        let border = self.edges.borders.iter().find(|border| border.rank == rank);
        let into = border.into_iter().flat_map(|border| &border.into);
        let into = into.filter(|(_, edges)| self.states.any_up(edges));
        let opener = self.opener(round.e);
        let Trial { value, order } = &mut *self.trial.lock().expect("no decoder panics");
        let mut overflows = false;
        for (&(replica, _), bytes) in into.zip(bytes.chunks_exact((*wire).max(1))) {
            value.clear();
            value.extend_from_slice(&replicas[replica].value);
            let address = self.edges.address(self.seed, round, replica);
            opener.open(address, bytes, value, order).ok_or(Refusal::Shape)?;
            overflows |= !all_finite(value);
            if value[*length..].iter().any(|&radius| radius < T::zero()) {
                return Err(Refusal::Shape);
            }
        }
        match (finite, overflows) {
            (true, true) => Err(Refusal::NotFinite),
            (false, false) => Err(Refusal::Finite),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, round: Round, workers: &Workers<T>, parcels: &Parcels) -> Result<()> {
        let mut replicas = std::mem::take(&mut self.buffers[round.e].replicas);
        let received = self.take(round, workers, parcels, &mut replicas);
        self.buffers[round.e].replicas = replicas;
        received
    }

    fn mixed<'a>(
        &'a self,
        round: Round,
        i: usize,
        messages: &'a [Outbox<T>],
        scratch: &'a mut Scratch<T>,
    ) -> Mixed<'a, T> {
        self.move_node(round.e, i, messages[i].values(), scratch);
        Mixed::moved(&messages[i], &scratch.moved, &mut scratch.sums)
    }

    fn end(&self, e: usize, length: u64) -> Carried {
        let message = self.buffers[e].wire as u64;
        let once = if length > 0 { self.states.once } else { Tally::default() };
        let slept = if e == 0 { self.states.once.slept } else { 0 };
        let (floats, bytes) = (once.sent * length, once.sent * message);
        Carried { floats, bytes, message, tally: Tally { slept, ..once } }
    }

    fn spans(&self) -> bool {
        !self.edges.borders.is_empty()
    }

    fn waits(&self, i: usize) -> bool {
        self.edges.is_far(i)
    }

    fn takes_part(&self, i: usize) -> bool {
        self.states.awake[self.edges.here.start + i]
    }

    fn scalar(&self) -> usize {
        if self.compressor.is_some() { 1 } else { T::BYTES }
    }

    fn failures(&self) -> Option<&Failures> {
        Some(&self.states.failures)
    }

    fn save(&self, i: usize) -> Vec<u8> {
        self.saved(i)
    }

    fn restore(&mut self, i: usize, bytes: &[u8]) -> Option<()> {
        self.put_back(i, bytes)
    }
}

/// The buffers of an exchange with these vectors and numbers.
fn buffers<T: Real>(messages: &Messages, pieces: &[Piece], edges: &Edges) -> Buffers<T> {
    let told = matches!(messages.rules.clip, Some(Clip::Adaptive(_)));
    let length = pieces.iter().map(|piece| piece.length).sum();
    let tail = if told { pieces.len() } else { 0 };
    let wire = wire_bytes::<T>(messages, pieces);
    let held = |replica| Held {
        value: vec![T::zero(); length + tail],
        old: vec![T::zero(); if messages.rules.late > 0.0 { length + tail } else { 0 }],
        // Allocated now, because an edge may be used for the first time in any iteration.
        wire: Vec::with_capacity(if replica < edges.ours { wire } else { 0 }),
    };
    Buffers {
        pieces: pieces.to_vec(),
        length,
        wire,
        replicas: (0..edges.replicas.len()).map(held).collect(),
        radii: edges.ends.iter().map(|_| vec![T::zero(); tail].into()).collect(),
    }
}

/// Whether each neighbour has its own replica: where edges fail or change, neighbours hold
/// different ones.
fn apart(messages: &Messages, changes: bool) -> bool {
    let feedback = messages.compress.as_ref().is_some_and(|with| with.feedback);
    feedback && (changes || messages.fail())
}

/// Replicas that a process may keep, in bytes.
const MOST: u64 = 8 << 30;

/// Refuses a run whose replicas, one for every neighbour that a node may ever have, would need too
/// much memory.
fn check_replicas<T: Real>(messages: &Messages, site: &Site) -> Result<()> {
    if !apart(messages, site.changes) {
        return Ok(());
    }
    let here = block(site.mixing.nodes(), site.size, site.rank);
    let near = |i: usize| site.mixing.row(i).iter().filter(move |(j, _)| *j != i);
    let sent: usize = here.clone().map(|i| near(i).count()).sum();
    let heard: usize =
        here.clone().map(|i| near(i).filter(|(j, _)| !here.contains(j)).count()).sum();
    let length: usize = site.pieces.iter().flatten().map(|piece| piece.length).sum();
    let count = (sent + heard) as u64;
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

/// Bytes of a message with these vectors and numbers.
pub fn wire_bytes<T: Real>(messages: &Messages, pieces: &[Piece]) -> usize {
    let told = matches!(messages.rules.clip, Some(Clip::Adaptive(_)));
    let radii = if told { pieces.len() * T::BYTES } else { 0 };
    let bytes = match &messages.compress {
        None => pieces.iter().map(|piece| piece.length).sum::<usize>() * T::BYTES,
        Some(with) => {
            let compressor = with.choice.build.get::<T>();
            let bytes = |piece: &Piece| encoded(&*compressor, piece.kind, piece.length);
            pieces.iter().map(bytes).sum()
        }
    };
    bytes + radii
}

fn broken_compressor() -> Error {
    let message = "the compressor cannot read what it wrote, or wrote too much or too little";
    Error::new(Kind::Run, "messages/compressor", message)
        .at("[messages] compress")
        .hint("`encode` must append as many bytes as `bytes` says, and `add` read them")
}

fn garbled(from: usize, k: u64) -> Error {
    let message = format!("what node {from} sent in iteration {k} cannot be decompressed");
    Error::new(Kind::Peer, "messages/garbled", message)
        .hint("run the same version of lopa with the same compressors at every node")
}
