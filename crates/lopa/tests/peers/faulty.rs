//! A network that loses, doubles, delays, reorders, damages and cuts, and machines that die, all
//! drawn from a seed. One thread runs at a time, and the clock goes on to the next event only when
//! all wait for one: the same seed gives the same run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lopa::engine::{Event, Wire};
use lopa::math::random::{Purpose, Stream};

/// What a thread that dies unwinds with.
pub struct Killed;

/// What may happen, as chances in one.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Of a frame to be lost.
    pub loss: f64,
    /// Of a frame to come twice.
    pub double: f64,
    /// Of a frame to come late, after those sent later.
    pub late: f64,
    /// Of a frame to be damaged.
    pub damage: f64,
    /// Of a checkpoint to be cut short by death.
    pub torn: f64,
    /// Of a wire to tell of a link that is cut or a machine that is dead.
    pub told: f64,
    /// Directions of links that carry nothing for a time.
    pub cuts: Vec<Cut>,
    /// When which machine dies, and for how long, in the order of time.
    pub deaths: Vec<Death>,
    /// No frame is lost, late or damaged from here on.
    pub calm: Duration,
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
    pub rest: Duration,
}

/// The network, its clock and its machines.
pub struct World {
    state: Mutex<State>,
    turns: Vec<Condvar>,
}

/// What comes in place of a frame (from, to, frame), in this order: frames, and as whose they come.
pub type Tamper = Box<dyn Fn(usize, usize, &[u8]) -> Vec<(usize, Vec<u8>)> + Send>;

struct State {
    now: Duration,
    turn: usize,
    wake: Vec<Option<Duration>>, // of those who wait
    coming: Vec<BinaryHeap<Reverse<Coming>>>,
    sent: u64,
    stream: Stream,
    faults: Faults,
    tamper: Option<Tamper>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Coming {
    at: Duration,
    number: u64,
    event: Told,
}

/// An event that can be ordered.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Up(usize),
    Down(usize),
    Frame(usize, Vec<u8>),
    Stop,
}

pub fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

impl World {
    pub fn new(nodes: usize, seed: u64, faults: Faults, tamper: Option<Tamper>) -> Arc<World> {
        let mut state = State {
            now: Duration::ZERO,
            turn: 0,
            wake: vec![Some(Duration::ZERO); nodes],
            coming: (0..nodes).map(|_| BinaryHeap::new()).collect(),
            sent: 0,
            stream: Stream::new(seed, Purpose::Tuning, 1),
            faults,
            tamper,
        };
        state.announce_cuts();
        let turns = (0..nodes).map(|_| Condvar::new()).collect();
        Arc::new(World { state: Mutex::new(state), turns })
    }

    /// The end of a wire at a machine.
    pub fn wire(self: &Arc<World>, node: usize) -> Faulty {
        Faulty { world: self.clone(), node }
    }

    /// Waits for this machine's first turn.
    pub fn begin(&self, node: usize) {
        let mut state = self.lock();
        while state.turn != node {
            state = self.turns[node].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.wake[node] = None;
    }

    /// This machine is done, or dead for good.
    pub fn leave(&self, node: usize) {
        let mut state = self.lock();
        state.wake[node] = None;
        self.pass(&mut state);
    }

    /// This machine is dead for a time; what was on its way to it is lost, or comes to its next life.
    pub fn rest(&self, node: usize, rest: Duration) {
        let mut state = self.lock();
        let (now, told) = (state.now, state.chance(|faults| faults.told));
        if state.stream.unit() < 0.5 {
            state.coming[node].clear();
        }
        for other in (0..state.wake.len()).filter(|&other| other != node && told) {
            state.push(other, now + seconds(0.01), Told::Down(node));
            state.push(other, now + rest, Told::Up(node));
        }
        let until = now + rest;
        while state.now < until {
            state = self.wait(state, node, until);
        }
    }

    /// Somebody asks a machine to stop.
    pub fn stop(&self, node: usize, at: Duration) {
        self.lock().push(node, at, Told::Stop);
    }

    /// Whether a checkpoint is to be cut short.
    pub fn tears(&self) -> bool {
        let mut state = self.lock();
        state.now < state.faults.calm && state.chance(|faults| faults.torn)
    }

    /// A place to cut something of a length.
    pub fn below(&self, length: usize) -> usize {
        self.lock().stream.below(length)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panics must not keep the others from coming to their end.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a time, while others have their turns.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        node: usize,
        until: Duration,
    ) -> MutexGuard<'s, State> {
        state.wake[node] = Some(until);
        self.pass(&mut state);
        while state.turn != node {
            state = self.turns[node].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.wake[node] = None;
        state
    }

    /// The next turn is that of whoever has to wake first.
    fn pass(&self, state: &mut State) {
        let waiting = state.wake.iter().enumerate();
        let first = waiting.filter_map(|(node, wake)| wake.map(|wake| (wake, node))).min();
        if let Some((wake, node)) = first {
            state.now = state.now.max(wake);
            state.turn = node;
            self.turns[node].notify_one();
        }
    }
}

impl State {
    fn chance(&mut self, of: impl Fn(&Faults) -> f64) -> bool {
        self.stream.unit() < of(&self.faults)
    }

    fn push(&mut self, to: usize, at: Duration, event: Told) {
        self.sent += 1;
        self.coming[to].push(Reverse(Coming { at, number: self.sent, event }));
        // Who waits for something later is to wake for this.
        if let Some(wake) = &mut self.wake[to] {
            *wake = (*wake).min(at.max(self.now));
        }
    }

    fn announce_cuts(&mut self) {
        for Cut { from, to, since, until } in self.faults.cuts.clone() {
            if self.chance(|faults| faults.told) {
                self.push(to, since, Told::Down(from));
                self.push(to, until, Told::Up(from));
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, frame: &[u8]) {
        let now = self.now;
        let here =
            |cut: &Cut| cut.from == from && cut.to == to && cut.since <= now && now < cut.until;
        if self.faults.cuts.iter().any(here) {
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
        let copies = 1 + usize::from(wild && self.chance(|faults| faults.double));
        for _ in 0..copies {
            let late = wild && self.chance(|faults| faults.late);
            let delay = self.stream.between(0.001, if late { 1.0 } else { 0.02 });
            for (from, frame) in &frames {
                let mut frame = frame.clone();
                if wild && self.chance(|faults| faults.damage) {
                    let (at, bit) = (self.stream.below(frame.len()), self.stream.below(8));
                    frame[at] ^= 1 << bit;
                }
                self.push(to, now + seconds(delay), Told::Frame(*from, frame));
            }
        }
    }

    /// When a machine dies next.
    fn death(&self, node: usize) -> Option<Duration> {
        self.faults.deaths.iter().find(|death| death.node == node).map(|death| death.at)
    }
}

/// The end of a wire at a machine.
pub struct Faulty {
    world: Arc<World>,
    node: usize,
}

impl World {
    /// For how long a machine that just died is dead: as was drawn, or for a moment.
    pub fn burial(&self, node: usize) -> Duration {
        let mut state = self.lock();
        let now = state.now;
        let due = |death: &Death| death.node == node && death.at <= now;
        match state.faults.deaths.iter().position(due) {
            Some(at) => state.faults.deaths.remove(at).rest,
            None => seconds(state.stream.between(0.05, 2.0)),
        }
    }
}

/// Dies if it is time.
fn live(state: MutexGuard<'_, State>, node: usize) -> MutexGuard<'_, State> {
    if state.death(node).is_some_and(|at| at <= state.now) {
        drop(state); // the others live on
        resume_unwind(Box::new(Killed));
    }
    state
}

impl Wire for Faulty {
    fn send(&mut self, to: usize, frame: &[u8]) {
        let mut state = live(self.world.lock(), self.node);
        state.send(self.node, to, frame);
    }

    fn next(&mut self, until: Duration) -> Option<Event> {
        let mut state = self.world.lock();
        loop {
            state = live(state, self.node);
            let first = state.coming[self.node].peek().map(|Reverse(coming)| coming.at);
            if first.is_some_and(|at| at <= state.now) {
                let Reverse(coming) = state.coming[self.node].pop()?;
                return Some(match coming.event {
                    Told::Up(peer) => Event::Up(peer),
                    Told::Down(peer) => Event::Down(peer),
                    Told::Frame(peer, bytes) => Event::Frame(peer, bytes),
                    Told::Stop => Event::Stop,
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
}
