//! The wire: neighbours dialled by their keys, strangers refused, frames to and fro.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iroh::PublicKey;
use lopa::engine::{Event, Wire};
use lopa::error::{Error, Kind, Result};
use tokio::sync::oneshot;

use crate::hello::{Hello, Terms};
use crate::key::Key;
use crate::link::{Item, framed};
use crate::log::Log;
use crate::net::{self, Net};

/// Between two looks at whether somebody asked the process to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Where a node is on the network, and who it talks to.
pub struct Place {
    /// The node's own key.
    pub key: Key,
    /// The node's number.
    pub node: usize,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Relays, if any.
    pub relays: Vec<String>,
    /// Its neighbours.
    pub neighbours: Vec<Neighbour>,
    /// What all must agree on.
    pub terms: Terms,
    /// The most bytes a frame may have.
    pub most: usize,
}

/// Somebody whom a node talks to.
#[derive(Debug, Clone)]
pub struct Neighbour {
    /// Its number.
    pub node: usize,
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
    /// Where it is found.
    pub addresses: Vec<String>,
}

/// What was refused so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections of those whose key is not that of a neighbour.
    pub strangers: AtomicU64,
    /// Connections that came to nothing, or were too many at a time.
    pub dropped: AtomicU64,
    /// Neighbours' connections that broke the rules, or had other terms.
    pub broken: AtomicU64,
}

/// A wire over QUIC between endpoints that are known by their keys.
pub struct Iroh {
    net: Arc<Net>,
    events: Receiver<Item>,
    early: VecDeque<Item>, // came while the neighbours were waited for
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    interrupt: Arc<AtomicBool>,
    told: bool, // that somebody asked to stop
    start: Instant,
}

/// How waiting for all neighbours ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// All are there.
    All,
    /// Somebody asked the process to stop.
    Stopped,
}

impl Iroh {
    /// Listens, and begins to look for the neighbours; `interrupt` is set when somebody asks the
    /// process to stop.
    pub fn start(place: Place, log: Log, interrupt: Arc<AtomicBool>) -> Result<Iroh> {
        let (sender, events) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let hello = Hello::new(place.terms.clone(), net::random());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(async {
                    let bound = Net::bind(place, hello, log, sender).await.map(Arc::new);
                    let net = bound.as_ref().ok().cloned();
                    // Whoever started this waits for the answer.
                    let _ = ready.send(bound);
                    if let Some(net) = net {
                        net.serve(stopped).await;
                    }
                }),
                Err(error) => drop(ready.send(Err(no_runtime(&error)))),
            }
        });
        let net = is_ready.recv().unwrap_or_else(|error| Err(no_runtime(&error)))?;
        Ok(Iroh {
            net,
            events,
            early: VecDeque::new(),
            stop: Some(stop),
            thread: Some(thread),
            interrupt,
            told: false,
            start: Instant::now(),
        })
    }

    /// Waits until every neighbour is there and runs the same; at most as long as `patience`.
    pub fn meet(&mut self, patience: Duration) -> Result<Met> {
        let until = self.now() + patience;
        let mut missing: BTreeSet<usize> = self.net.neighbours().map(|n| n.node).collect();
        while !missing.is_empty() {
            let Some(item) = self.wait(until) else { return Err(self.absent(&missing)) };
            match &item {
                Item::Refused => self.net.differing()?,
                Item::Happened { event, .. } => match event {
                    Event::Up(node) => _ = missing.remove(node),
                    Event::Down(node) => _ = missing.insert(*node),
                    Event::Stop => return Ok(Met::Stopped),
                    Event::Frame(..) => {}
                },
            }
            self.early.push_back(item);
        }
        Ok(Met::All)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.net.address()
    }

    /// What was refused so far.
    pub fn counters(&self) -> &Counters {
        &self.net.counters
    }

    /// The next item, or `None` when the clock shows `until`.
    fn wait(&mut self, until: Duration) -> Option<Item> {
        loop {
            if !self.told && self.interrupt.load(Ordering::Relaxed) {
                self.told = true;
                return Some(Event::Stop.into());
            }
            let left = until.saturating_sub(self.now());
            match self.events.recv_timeout(left.min(GLANCE)) {
                Ok(item) => return Some(item),
                Err(RecvTimeoutError::Timeout) if left > GLANCE => {}
                Err(_) => return None,
            }
        }
    }

    /// The error of neighbours who did not come.
    fn absent(&self, missing: &BTreeSet<usize>) -> Error {
        let away = self.net.neighbours().filter(|n| missing.contains(&n.node));
        let names: Vec<&str> = away.map(|neighbour| neighbour.name.as_str()).collect();
        let names = names.join(", ");
        match self.net.reasons(missing) {
            Some(why) => Error::new(Kind::Refused, "peers/refused", why)
                .hint("compare the rosters: each must have the other's key and links"),
            None => Error::new(Kind::Peer, "peers/absent", format!("{names} did not come in time"))
                .hint("start them, check addresses and firewalls (UDP), or give --deadline"),
        }
    }
}

impl Wire for Iroh {
    fn send(&mut self, to: usize, frame: &[u8]) {
        self.net.send(to, framed(frame));
    }

    fn next(&mut self, until: Duration) -> Option<Event> {
        loop {
            let early = self.early.pop_front();
            match early.or_else(|| self.wait(until))? {
                Item::Happened { event, .. } => return Some(event),
                // Told in the log; whoever it was may come back with the right terms.
                Item::Refused => {}
            }
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Drop for Iroh {
    /// Waits, not for ever, until what was sent has arrived.
    fn drop(&mut self) {
        if let (Some(stop), Some(thread)) = (self.stop.take(), self.thread.take()) {
            // It may have ended by itself.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

fn no_runtime(error: &dyn std::error::Error) -> Error {
    Error::new(Kind::Run, "peers/runtime", format!("the network cannot be used: {error}"))
}

/// Why neighbours and this node do not come together, by neighbour.
pub(crate) type Reasons = Mutex<Vec<Option<String>>>;
