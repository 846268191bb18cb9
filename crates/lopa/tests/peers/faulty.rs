//! A network that loses, duplicates, delays, reorders and damages frames and cuts links, and
//! machines that die, all drawn from a seed. One thread runs at a time, and the clock advances to the
//! next event only when all threads wait for one: the same seed gives the same run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lopa::engine::{Event, Signature, Wire};
use lopa::math::random::{Purpose, Stream};
use sha2::{Digest, Sha256};

use super::connections::{Addresses, Air, Change, Connections};
use super::relay::{Ends, Forger, Relay, flipped, seal};

/// The panic payload of a machine that dies.
pub struct Killed;

/// Faults; numbers are probabilities.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// A frame is lost.
    pub loss: f64,
    /// A frame is duplicated.
    pub duplicate: f64,
    /// A frame is late and arrives after frames sent later.
    pub late: f64,
    /// A frame is damaged.
    pub damage: f64,
    /// The machine dies while it writes a checkpoint.
    pub torn: f64,
    /// The wire reports a cut link or a dead machine.
    pub reported: f64,
    /// Cut links, by direction.
    pub cuts: Vec<Cut>,
    /// Deaths of machines, in order of time.
    pub deaths: Vec<Death>,
    /// From this time on no frame is lost, late or damaged.
    pub calm: Duration,
    /// Frames travel over connections, which machines must make and which can be lost; the wire
    /// reports both.
    pub connects: bool,
    /// The smallest delay of a packet, one way, in seconds.
    pub delay: f64,
    /// A relay, where some machines have no direct path.
    pub relay: Relay,
    /// Machines that get another address, and are cut off from all others until they have it.
    pub moves: Vec<Move>,
    /// Whether the roster has names, which lead to the present addresses.
    pub named: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Move {
    pub node: usize,
    pub since: Duration,
    pub until: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct Cut {
    pub from: usize,
    pub to: usize,
    pub since: Duration,
    pub until: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct Death {
    pub node: usize,
    pub at: Duration,
    pub downtime: Duration,
}

/// The network, its clock and its machines.
pub struct World {
    state: Mutex<State>,
    turns: Vec<Turn>,
}

/// The turn of a machine's thread. It is passed on without the state's lock, so that the next thread never
/// waits for that.
#[derive(Default)]
struct Turn {
    has: Mutex<bool>,
    comes: Condvar,
}

impl Turn {
    fn give(&self) {
        *self.has.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.comes.notify_one();
    }

    /// Waits for the turn.
    fn take(&self) {
        let has = self.has.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.comes.wait_while(has, |has| !*has);
        *wait.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// Replaces a frame (from, to, frame) by others, each with its apparent sender, in this order.
pub type Tamper = Box<dyn Fn(usize, usize, &[u8]) -> Vec<(usize, Vec<u8>)> + Send>;

struct State {
    now: Duration,
    wake: Vec<Option<Duration>>, // of the threads that wait
    pending: Vec<BinaryHeap<Reverse<Pending>>>,
    sent: u64,
    stream: Stream,
    faults: Faults,
    tamper: Option<Tamper>,
    connections: Option<Connections>,
    limit: usize, // bytes of a frame
    ends: Vec<Ends>,
    forger: Forger,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    at: Duration,
    number: u64,
    event: Delivery,
}

/// An event that can be ordered.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Delivery {
    Up(usize),
    Down(usize),
    Frame(usize, Vec<u8>),
    /// A packet of the relay.
    Packet(Vec<u8>),
    Stop,
}

pub fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

impl World {
    /// Machines, their links, and the largest frame that they take.
    pub fn new(
        (nodes, links, limit): (usize, &[(usize, usize)], usize),
        seed: u64,
        faults: Faults,
        tamper: Option<Tamper>,
    ) -> Arc<World> {
        let moves = faults.moves.iter().map(|Move { node, until, .. }| (*until, *node)).collect();
        let relayed = faults.relay.pairs.clone();
        let addresses = Addresses { moves, named: faults.named, relayed };
        let connections = faults.connects.then(|| Connections::new(links, &[]).at(addresses));
        let trusts = faults.relay.trusted;
        let mut state = State {
            now: Duration::ZERO,
            wake: vec![Some(Duration::ZERO); nodes],
            pending: (0..nodes).map(|_| BinaryHeap::new()).collect(),
            sent: 0,
            stream: Stream::new(seed, Purpose::Tuning, 1),
            faults,
            tamper,
            connections,
            limit,
            ends: (0..nodes).map(|_| Ends::new(trusts)).collect(),
            forger: Forger::default(),
        };
        state.announce_cuts();
        let turns: Vec<Turn> = (0..nodes).map(|_| Turn::default()).collect();
        turns[0].give();
        Arc::new(World { state: Mutex::new(state), turns })
    }

    /// The wire of a machine.
    pub fn wire(self: &Arc<World>, node: usize) -> Faulty {
        Faulty { world: self.clone(), node }
    }

    /// The time.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// Waits for this machine's first turn.
    pub fn begin(&self, node: usize) {
        self.turns[node].take();
        self.lock().wake[node] = None;
    }

    /// Takes a machine off the network for good.
    pub fn leave(&self, node: usize) {
        let mut state = self.lock();
        state.wake[node] = None;
        if let Some(connections) = &mut state.connections {
            connections.kill(node);
        }
        let next = state.next_turn();
        drop(state);
        if let Some(next) = next {
            self.turns[next].give();
        }
    }

    /// Keeps a machine down for a time; frames in transit to it are lost or arrive afterwards.
    pub fn stay_down(&self, node: usize, downtime: Duration) {
        let mut state = self.lock();
        let (now, reported) = (state.now, state.chance(|faults| faults.reported));
        if state.stream.unit() < 0.5 {
            state.pending[node].clear();
        }
        let reported = reported && state.connections.is_none();
        if let Some(connections) = &mut state.connections {
            connections.kill(node);
        }
        for other in (0..state.wake.len()).filter(|&other| other != node && reported) {
            state.push(other, now + seconds(0.01), Delivery::Down(node));
            state.push(other, now + downtime, Delivery::Up(node));
        }
        let until = now + downtime;
        while state.now < until {
            state = self.wait(state, node, until);
        }
        if let Some(connections) = &mut state.connections {
            connections.start(node, until);
        }
    }

    /// Packets of the relay that a machine did not open.
    pub fn refused(&self, node: usize) -> usize {
        self.lock().ends[node].refused
    }

    /// Asks a machine to stop.
    pub fn stop(&self, node: usize, at: Duration) {
        self.lock().push(node, at, Delivery::Stop);
    }

    /// Whether the machine dies while it writes this checkpoint.
    pub fn tears(&self) -> bool {
        let mut state = self.lock();
        state.now < state.faults.calm && state.chance(|faults| faults.torn)
    }

    /// A random index below a length.
    pub fn below(&self, length: usize) -> usize {
        self.lock().stream.below(length)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panics must not keep the others from finishing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a time, while others run.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        node: usize,
        until: Duration,
    ) -> MutexGuard<'s, State> {
        state.wake[node] = Some(until);
        if let Some(next) = state.next_turn().filter(|next| *next != node) {
            drop(state);
            self.turns[next].give();
            self.turns[node].take();
            state = self.lock();
        }
        state.wake[node] = None;
        state
    }
}

impl State {
    /// The thread that wakes first. The clock advances to it.
    fn next_turn(&mut self) -> Option<usize> {
        let first = |state: &State| {
            let waiting = state.wake.iter().enumerate();
            waiting.filter_map(|(node, wake)| wake.map(|wake| (wake, node))).min()
        };
        while let Some((wake, _)) = first(self)
            && let Some(at) = self.connections.as_ref().and_then(Connections::next)
            && at <= wake.max(self.now)
        {
            self.now = self.now.max(at);
            self.advance_connections();
        }
        let (wake, node) = first(self)?;
        self.now = self.now.max(wake);
        Some(node)
    }

    fn chance(&mut self, of: impl Fn(&Faults) -> f64) -> bool {
        self.stream.unit() < of(&self.faults)
    }

    fn push(&mut self, to: usize, at: Duration, event: Delivery) {
        self.sent += 1;
        self.pending[to].push(Reverse(Pending { at, number: self.sent, event }));
        // A thread that waits for something later wakes for this.
        if let Some(wake) = &mut self.wake[to] {
            *wake = (*wake).min(at.max(self.now));
        }
    }

    fn is_cut(&self, from: usize, to: usize) -> bool {
        let now = self.now;
        let is_cut =
            |cut: &Cut| cut.from == from && cut.to == to && cut.since <= now && now < cut.until;
        let is_away = |moves: &Move| {
            [from, to].contains(&moves.node) && moves.since <= now && now < moves.until
        };
        self.faults.cuts.iter().any(is_cut) || self.faults.moves.iter().any(is_away)
    }

    /// The relay between two machines, if they need one.
    fn relay(&self, from: usize, to: usize) -> Option<&Relay> {
        let relay = &self.faults.relay;
        relay.pairs.contains(&(from.min(to), from.max(to))).then_some(relay)
    }

    /// How much longer a packet takes by the relay; `None` if it is lost there.
    fn relayed(&mut self, from: usize, to: usize) -> Option<f64> {
        let wild = self.now < self.faults.calm;
        let Some(relay) = self.relay(from, to) else { return Some(0.0) };
        let ((least, most), loss) = (relay.delay, relay.loss);
        let delay = self.stream.between(least, most);
        // It arrives there after half of the way.
        let there = self.now + seconds((self.faults.delay + delay) / 2.0);
        let is_down = |&(since, until): &(Duration, Duration)| since <= there && there < until;
        let down = self.faults.relay.down.iter().any(is_down);
        let lost = wild && self.stream.unit() < loss;
        (!lost && !down).then_some(delay)
    }

    /// Processes connection events up to now, and reports them to the machines.
    fn advance_connections(&mut self) {
        let Some(mut connections) = self.connections.take() else { return };
        connections.advance(self.now, self);
        for (_, node, peer, change) in std::mem::take(&mut connections.changes) {
            let event = match change {
                Change::Up => Delivery::Up(peer),
                Change::Down => Delivery::Down(peer),
            };
            self.push(node, self.now, event);
        }
        self.connections = Some(connections);
    }

    fn announce_cuts(&mut self) {
        if self.connections.is_some() {
            return;
        }
        for Cut { from, to, since, until } in self.faults.cuts.clone() {
            if self.chance(|faults| faults.reported) {
                self.push(to, since, Delivery::Down(from));
                self.push(to, until, Delivery::Up(from));
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, frame: &[u8]) {
        let now = self.now;
        let connected = self.connections.as_mut().is_none_or(|all| all.carries(from, to));
        if self.is_cut(from, to) || !connected || frame.len() > self.limit {
            return;
        }
        let wild = now < self.faults.calm;
        if wild && self.chance(|faults| faults.loss) {
            return;
        }
        let frames = match &self.tamper {
            Some(tamper) => tamper(from, to, frame),
            None => vec![(from, frame.to_vec())],
        };
        let copies = 1 + usize::from(wild && self.chance(|faults| faults.duplicate));
        for _ in 0..copies {
            let late = wild && self.chance(|faults| faults.late);
            let delay =
                self.faults.delay + self.stream.between(0.001, if late { 1.0 } else { 0.02 });
            for (from, frame) in &frames {
                if self.relay(*from, to).is_some() {
                    self.send_relayed(*from, to, frame, delay);
                    continue;
                }
                let mut frame = frame.clone();
                if wild && self.chance(|faults| faults.damage) {
                    frame = flipped(frame, &mut self.stream);
                }
                self.push(to, now + seconds(delay), Delivery::Frame(*from, frame));
            }
        }
    }

    fn send_relayed(&mut self, from: usize, to: usize, frame: &[u8], delay: f64) {
        let Some(more) = self.relayed(from, to) else { return };
        let packet = seal(from, to, self.sent, frame);
        let forges = if self.now < self.faults.calm { self.faults.relay.forges } else { 0.0 };
        let packets = self.forger.pass(to, packet, forges, &mut self.stream);
        let at = self.now + seconds(delay + more);
        for (receiver, packet) in packets {
            self.push(receiver, at, Delivery::Packet(packet));
        }
    }

    /// When a machine dies next.
    fn death(&self, node: usize) -> Option<Duration> {
        self.faults.deaths.iter().find(|death| death.node == node).map(|death| death.at)
    }
}

impl Air for State {
    fn arrival(&mut self, now: Duration, from: usize, to: usize) -> Option<Duration> {
        let lost = now < self.faults.calm && self.chance(|faults| faults.loss);
        let delay = self.faults.delay + self.stream.between(0.001, 0.02);
        let more = self.relayed(from, to)?;
        (!lost && !self.is_cut(from, to)).then_some(now + seconds(delay + more))
    }

    fn unit(&mut self) -> f64 {
        self.stream.unit()
    }
}

/// The wire of a machine.
pub struct Faulty {
    world: Arc<World>,
    node: usize,
}

impl World {
    /// How long a machine that just died stays down: as drawn in advance, or briefly.
    pub fn downtime(&self, node: usize) -> Duration {
        let mut state = self.lock();
        let now = state.now;
        let due = |death: &Death| death.node == node && death.at <= now;
        match state.faults.deaths.iter().position(due) {
            Some(at) => state.faults.deaths.remove(at).downtime,
            None => seconds(state.stream.between(0.05, 2.0)),
        }
    }
}

/// Kills the thread if its machine is due to die.
fn die_if_due(state: MutexGuard<'_, State>, node: usize) -> MutexGuard<'_, State> {
    if state.death(node).is_some_and(|at| at <= state.now) {
        drop(state); // the others keep running
        resume_unwind(Box::new(Killed));
    }
    state
}

impl Wire for Faulty {
    fn send(&mut self, to: usize, frame: &[u8]) {
        let mut state = die_if_due(self.world.lock(), self.node);
        state.send(self.node, to, frame);
    }

    fn next(&mut self, until: Duration) -> Option<Event> {
        let mut state = self.world.lock();
        loop {
            state = die_if_due(state, self.node);
            let first = state.pending[self.node].peek().map(|Reverse(pending)| pending.at);
            if first.is_some_and(|at| at <= state.now) {
                let Reverse(pending) = state.pending[self.node].pop()?;
                return Some(match pending.event {
                    Delivery::Up(peer) => Event::Up(peer),
                    Delivery::Down(peer) => Event::Down(peer),
                    Delivery::Frame(peer, bytes) => Event::Frame(peer, bytes),
                    Delivery::Packet(packet) => {
                        match state.ends[self.node].open(self.node, &packet) {
                            Some((peer, frame)) => Event::Frame(peer, frame),
                            None => continue,
                        }
                    }
                    Delivery::Stop => Event::Stop,
                });
            }
            if state.now >= until {
                return None;
            }
            let wake = [Some(until), first, state.death(self.node)].into_iter().flatten().min()?;
            state = self.world.wait(state, self.node, wake);
        }
    }

    fn now(&self) -> Duration {
        self.world.lock().now
    }

    fn sign(&self, bytes: &[u8]) -> Signature {
        sign(self.node, bytes)
    }

    fn secret(&self, node: usize) -> Option<[u8; 32]> {
        let (low, high) = (self.node.min(node) as u8, self.node.max(node) as u8);
        Some(Sha256::digest([low, high]).into())
    }

    fn verify(&self, node: usize, bytes: &[u8], signature: &Signature) -> bool {
        sign(node, bytes) == *signature
    }
}

/// A machine's signature: a hash keyed by its number. A hostile machine signs as itself only.
pub fn sign(node: usize, bytes: &[u8]) -> Signature {
    let half = |part: u8| -> [u8; 32] {
        let keyed = Sha256::new_with_prefix([part, node as u8]);
        keyed.chain_update(bytes).finalize().into()
    };
    [half(0), half(1)].concat().try_into().expect("two halves")
}
