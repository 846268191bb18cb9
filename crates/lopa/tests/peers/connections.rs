//! Connections between machines on a simulated network: the decisions are those of real nodes
//! (`lopa::engine::dial`), the packets are simulated. A packet of a handshake is sent again until it
//! arrives; a connection ends when one end receives nothing for a while, or is informed that the
//! other has closed it.
//!
//! A machine may get another address. As in QUIC, a connection follows the end that called to its new
//! address, and is lost if the other end moves: packets to the old address arrive nowhere, and those from the
//! new one are a stranger's. Calls go to the address in the roster: the first one, or, where the roster has names, the
//! present one. Packets that pass through a relay are addressed by keys.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use lopa::engine::dial::{Connected, Dialling, Role};

use super::faulty::seconds;

/// As in `lopa-peers`.
const CALL: f64 = 20.0;
const IDLE: f64 = 10.0;
const KEEP_ALIVE: f64 = 2.0;
/// How soon a lost packet is sent again.
const AGAIN: f64 = 1.0;
/// Packets of a handshake: two each way.
const HANDSHAKE: usize = 4;

/// When a packet sent at a time from one machine to another arrives, if it does; and a random number
/// in 0..1.
pub trait Air {
    fn arrival(&mut self, now: Duration, from: usize, to: usize) -> Option<Duration>;
    fn unit(&mut self) -> f64;
}

/// A mistake planted to see whether it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Both ends call at once.
    BothCall,
    /// A call on its way is dropped when a link comes up.
    GivesUp,
    /// A change of the link resets the back-off.
    Forgets,
}

/// An event at a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Up,
    Down,
}

/// One end of a link.
struct End {
    session: u64, // 0: the machine is down
    dialling: Dialling,
    live: Option<(u64, Connected)>,
    heard: Duration,
    call: Option<u64>,
}

/// A connection or an attempt at one: the machines, the caller first, and whether each has it open.
struct Call {
    ends: [usize; 2],
    sessions: [u64; 2],
    open: [bool; 2],
    /// The addresses between which packets travel; `None` over a relay.
    path: Option<[u64; 2]>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// A machine may be due to call another.
    Due(usize, usize),
    /// A packet of a handshake is sent.
    Sent(u64, usize),
    Arrived(u64, usize),
    /// A call has taken too long.
    Late(u64),
    /// An end (0: the caller) sends a sign of life, and looks for one.
    Tick(u64, usize),
    Alive(u64, usize),
    /// An end is informed that the other has closed the connection.
    Closed(u64, usize),
    /// A machine has another address.
    Moved(usize),
}

/// How machines can be reached.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    /// When machines get another address.
    pub moves: Vec<(Duration, usize)>,
    /// Whether the roster has names, which lead to the present addresses.
    pub named: bool,
    /// Pairs whose packets pass through a relay.
    pub relayed: BTreeSet<(usize, usize)>,
}

/// All links of a network.
pub struct Connections {
    now: Duration,
    ends: BTreeMap<(usize, usize), End>,
    calls: BTreeMap<u64, Call>,
    queue: BinaryHeap<Reverse<(Duration, u64, Happens)>>,
    number: u64,
    mistakes: Vec<Mistake>,
    addresses: Addresses,
    moved: BTreeMap<usize, u64>, // how often each machine has
    /// The events: when, at which machine, about which other.
    pub changes: Vec<(Duration, usize, usize, Change)>,
}

impl Connections {
    /// Machines that are all up, and their links.
    pub fn new(links: &[(usize, usize)], mistakes: &[Mistake]) -> Connections {
        let (ends, calls, queue) = (BTreeMap::new(), BTreeMap::new(), BinaryHeap::new());
        let mistakes = mistakes.to_vec();
        let mut all = Connections {
            now: Duration::ZERO,
            ends,
            calls,
            queue,
            number: 0,
            mistakes,
            addresses: Addresses::default(),
            moved: BTreeMap::new(),
            changes: Vec::new(),
        };
        for (me, peer) in links.iter().flat_map(|&(i, j)| [(i, j), (j, i)]) {
            all.number += 1;
            let end = End {
                session: all.number,
                dialling: all.dialling(me, peer),
                live: None,
                heard: Duration::ZERO,
                call: None,
            };
            all.ends.insert((me, peer), end);
            all.plan(me, peer);
        }
        all
    }

    /// The same where machines move or are behind a relay.
    pub fn at(mut self, addresses: Addresses) -> Connections {
        for &(at, node) in &addresses.moves {
            self.push(at, Happens::Moved(node));
        }
        Connections { addresses, ..self }
    }

    /// The address of a machine.
    fn address(&self, node: usize) -> u64 {
        self.moved.get(&node).copied().unwrap_or(0)
    }

    /// The path of a call, as its caller knows it.
    fn path(&self, from: usize, to: usize) -> Option<[u64; 2]> {
        let pair = (from.min(to), from.max(to));
        let there = if self.addresses.named { self.address(to) } else { 0 };
        (!self.addresses.relayed.contains(&pair)).then(|| [self.address(from), there])
    }

    /// Whether packets of a connection from one end (0: the caller) reach the other. The called end answers
    /// where the last packet of the caller came from.
    fn reaches(&mut self, id: u64, at: usize) -> bool {
        let [caller, called] = self.calls[&id].ends.map(|node| self.address(node));
        let Some(path) = self.calls.get_mut(&id).and_then(|call| call.path.as_mut()) else {
            return true;
        };
        if at == 0 && path[1] == called {
            path[0] = caller;
        }
        *path == [caller, called]
    }

    /// When a packet of a connection from one end arrives at the other, if it does.
    fn arrival(&mut self, id: u64, at: usize, air: &mut dyn Air) -> Option<Duration> {
        let call = &self.calls[&id];
        let (from, to) = (call.ends[at], call.ends[1 - at]);
        let arrives = air.arrival(self.now, from, to);
        arrives.filter(|_| self.reaches(id, at))
    }

    fn dialling(&self, me: usize, peer: usize) -> Dialling {
        let callable = !self.mistakes.contains(&Mistake::BothCall);
        Dialling::new(Role::of(me, peer, callable), self.now)
    }

    /// How often a machine has called.
    pub fn calls(&self, from: usize) -> usize {
        self.calls.values().filter(|call| call.ends[0] == from).count()
    }

    /// Whether a frame sent from one machine to another would arrive.
    pub fn carries(&mut self, from: usize, to: usize) -> bool {
        let live = |a, b| self.ends.get(&(a, b)).and_then(|end: &End| end.live);
        match (live(from, to), live(to, from)) {
            (Some((ours, _)), Some((theirs, _))) => {
                let at = usize::from(self.calls[&ours].ends[0] != from);
                ours == theirs && self.reaches(ours, at)
            }
            _ => false,
        }
    }

    /// A machine dies: its connections are gone, and the others are not informed.
    pub fn kill(&mut self, node: usize) {
        for ((_, _), end) in self.ends.iter_mut().filter(|((me, _), _)| *me == node) {
            (end.session, end.live, end.call) = (0, None, None);
        }
        for call in self.calls.values_mut() {
            let dead = call.ends.map(|end| end == node);
            call.open = [0, 1].map(|at| call.open[at] && !dead[at]);
        }
    }

    /// It starts again.
    pub fn start(&mut self, node: usize, now: Duration) {
        self.now = self.now.max(now);
        let keys: Vec<_> = self.ends.keys().copied().filter(|&(me, _)| me == node).collect();
        for (me, peer) in keys {
            self.number += 1;
            let (session, dialling) = (self.number, self.dialling(me, peer));
            let end = self.ends.get_mut(&(me, peer)).unwrap();
            (end.session, end.dialling) = (session, dialling);
            self.plan(me, peer);
        }
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Duration> {
        self.queue.peek().map(|Reverse((at, ..))| *at)
    }

    /// Processes all events up to a time.
    pub fn advance(&mut self, to: Duration, air: &mut dyn Air) {
        while self.next().is_some_and(|at| at <= to) {
            let Some(Reverse((at, _, happens))) = self.queue.pop() else { return };
            self.now = self.now.max(at);
            self.happens(happens, air);
        }
        self.now = self.now.max(to);
    }

    fn push(&mut self, at: Duration, happens: Happens) {
        self.number += 1;
        self.queue.push(Reverse((at, self.number, happens)));
    }

    fn plan(&mut self, me: usize, peer: usize) {
        if let Some(at) = self.ends[&(me, peer)].dialling.due() {
            self.push(at.max(self.now), Happens::Due(me, peer));
        }
    }

    fn happens(&mut self, happens: Happens, air: &mut dyn Air) {
        let now = self.now;
        match happens {
            Happens::Due(me, peer) => {
                let end = self.ends.get_mut(&(me, peer)).unwrap();
                if end.session == 0 || end.dialling.due().is_none_or(|at| at > now) {
                    return;
                }
                end.dialling.called();
                self.number += 1;
                let (id, session) = (self.number, end.session);
                end.call = Some(id);
                let (sessions, path) = ([session, 0], self.path(me, peer));
                let call = Call { ends: [me, peer], sessions, open: [true, false], path };
                self.calls.insert(id, call);
                self.push(now, Happens::Sent(id, 0));
                self.push(now + seconds(CALL), Happens::Late(id));
            }
            Happens::Sent(id, packet) => {
                if !self.calls[&id].open[packet % 2] {
                    return;
                }
                match self.arrival(id, packet % 2, air) {
                    Some(at) => self.push(at, Happens::Arrived(id, packet)),
                    None => self.push(now + seconds(AGAIN), Happens::Sent(id, packet)),
                }
            }
            Happens::Arrived(id, packet) => self.arrived(id, packet, air),
            Happens::Late(id) => {
                let [me, peer] = self.calls[&id].ends;
                if self.ends[&(me, peer)].call == Some(id) {
                    self.close(id, 0, air);
                }
            }
            Happens::Tick(id, at) => self.tick(id, at, air),
            Happens::Alive(id, at) => {
                let call = &self.calls[&id];
                let (me, peer) = (call.ends[at], call.ends[1 - at]);
                if call.open[at] {
                    self.ends.get_mut(&(me, peer)).unwrap().heard = now;
                } else if self.ends[&(me, peer)].session != 0 {
                    self.tell_closed(id, 1 - at, air);
                }
            }
            Happens::Closed(id, at) => self.closed(id, at, air),
            Happens::Moved(node) => *self.moved.entry(node).or_default() += 1,
        }
    }

    /// A packet of a handshake arrives; the third completes it for the callee, the fourth for the
    /// caller.
    fn arrived(&mut self, id: u64, packet: usize, air: &mut dyn Air) {
        let call = self.calls.get_mut(&id).unwrap();
        let at = 1 - packet % 2;
        let [me, peer] = [call.ends[at], call.ends[1 - at]];
        let session = self.ends[&(me, peer)].session;
        if packet == 0 {
            (call.open[1], call.sessions[1]) = (session != 0, session);
        }
        if !call.open[at] || call.sessions[at] != session {
            return;
        }
        if packet + 1 < HANDSHAKE {
            self.push(self.now, Happens::Sent(id, packet + 1));
        }
        if packet >= 2 {
            self.install(id, at, air);
        }
    }

    /// As `Net::install`.
    fn install(&mut self, id: u64, at: usize, air: &mut dyn Air) {
        let call = &self.calls[&id];
        let (me, peer) = (call.ends[at], call.ends[1 - at]);
        let new =
            Connected { session: call.sessions[1 - at], by_smaller: call.ends[0] < call.ends[1] };
        let now = self.now;
        let jitter = air.unit();
        let end = self.ends.get_mut(&(me, peer)).unwrap();
        let old = end.live;
        if old.is_some_and(|(_, old)| !old.gives_way_to(new)) {
            return self.close(id, at, air);
        }
        (end.live, end.heard) = (Some((id, new)), now);
        end.dialling.up(now);
        if at == 0 {
            end.call = None;
            end.dialling.answered(now, jitter);
        }
        let given_up = end.call.filter(|_| self.mistakes.contains(&Mistake::GivesUp));
        if let Some((old, _)) = old {
            self.changes.push((now, me, peer, Change::Down));
            let side = usize::from(self.calls[&old].ends[0] != me);
            self.close(old, side, air);
        }
        self.changes.push((now, me, peer, Change::Up));
        self.push(now, Happens::Tick(id, at));
        if let Some(call) = given_up {
            self.close(call, 0, air);
        }
    }

    fn tick(&mut self, id: u64, at: usize, air: &mut dyn Air) {
        let call = &self.calls[&id];
        let (me, peer) = (call.ends[at], call.ends[1 - at]);
        if !call.open[at] {
            return;
        }
        if self.now >= self.ends[&(me, peer)].heard + seconds(IDLE) {
            return self.closed(id, at, air); // silently: the other end cannot be reached
        }
        if let Some(when) = self.arrival(id, at, air) {
            self.push(when, Happens::Alive(id, 1 - at));
        }
        self.push(self.now + seconds(KEEP_ALIVE), Happens::Tick(id, at));
    }

    /// An end closes a connection.
    fn close(&mut self, id: u64, at: usize, air: &mut dyn Air) {
        if self.calls[&id].open[at] {
            self.closed(id, at, air);
            self.tell_closed(id, 1 - at, air);
        }
    }

    fn tell_closed(&mut self, id: u64, at: usize, air: &mut dyn Air) {
        if let Some(when) = self.arrival(id, 1 - at, air) {
            self.push(when, Happens::Closed(id, at));
        }
    }

    /// A connection is closed at one end. As `Net::lost`, and as the end of `Net::call`.
    fn closed(&mut self, id: u64, at: usize, air: &mut dyn Air) {
        let call = self.calls.get_mut(&id).unwrap();
        if !std::mem::take(&mut call.open[at]) {
            return;
        }
        let (me, peer, now) = (call.ends[at], call.ends[1 - at], self.now);
        let forgets = self.mistakes.contains(&Mistake::Forgets);
        let fresh = self.dialling(me, peer);
        let end = self.ends.get_mut(&(me, peer)).unwrap();
        if end.call == Some(id) {
            end.call = None;
            end.dialling.answered(now, air.unit());
        }
        if end.live.is_some_and(|(live, _)| live == id) {
            end.live = None;
            end.dialling.down(now, air.unit());
            if forgets && end.call.is_none() {
                end.dialling = fresh;
            }
            self.changes.push((now, me, peer, Change::Down));
        }
        self.plan(me, peer);
    }
}
