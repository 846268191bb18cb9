//! The wire: finds neighbours by their keys, refuses strangers, carries frames.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iroh::PublicKey;
use lopa::engine::{Event, Signature, Wire};
use lopa::error::{Error, Kind, Result};
use tokio::sync::oneshot;

use crate::hello::Hello;
use crate::key::Key;
use crate::link::{Item, framed};
use crate::log::Log;
use crate::net::{self, Net};
use crate::place::{Counters, Place, no_runtime};

/// How often a wait checks whether the process was asked to stop.
const POLL: Duration = Duration::from_millis(50);

/// A wire over QUIC, between endpoints identified by their keys.
pub struct Iroh {
    net: Arc<Net>,
    key: Key,
    members: Vec<PublicKey>,
    events: Receiver<Item>,
    early: VecDeque<Item>, // arrived during `meet`
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    interrupt: Arc<AtomicBool>,
    stop_sent: bool, // whether the interrupt became an event
    start: Instant,
}

/// How waiting for all neighbours ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// All are connected.
    All,
    /// Some are, and the others did not connect in time.
    Some,
    /// The process was asked to stop.
    Stopped,
}

impl Iroh {
    /// Listens, and starts calling the neighbours; `interrupt` is set when the process is asked to
    /// stop.
    pub fn start(place: Place, log: Log, interrupt: Arc<AtomicBool>) -> Result<Iroh> {
        let (sender, events) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let (key, members) = (place.key.clone(), place.members.clone());
        let hello = Hello::new(place.terms.clone(), net::random());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(async {
                    let bound = Net::bind(place, hello, log, sender, false).await.map(Arc::new);
                    let net = bound.as_ref().ok().cloned();
                    // `start` waits for the result.
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
            key,
            members,
            events,
            early: VecDeque::new(),
            stop: Some(stop),
            thread: Some(thread),
            interrupt,
            stop_sent: false,
            start: Instant::now(),
        })
    }

    /// Waits, at most `patience`, until all neighbours are connected and have the same terms; if
    /// `enough` is given, waits that long for all, and longer only if none has connected.
    pub fn meet(&mut self, patience: Duration, enough: Option<Duration>) -> Result<Met> {
        let start = self.now();
        let until = start.saturating_add(patience);
        let mut missing: BTreeSet<usize> = self.net.neighbours().map(|n| n.node).collect();
        let all = missing.len();
        while !missing.is_empty() {
            let enough = enough.filter(|_| missing.len() < all);
            let soon = enough.map_or(until, |enough| until.min(start.saturating_add(enough)));
            let Some(item) = self.wait(soon) else {
                return if soon < until { Ok(Met::Some) } else { Err(self.absent(&missing)) };
            };
            match &item {
                Item::Refused => self.net.check_terms()?,
                Item::Event { event, .. } => match event {
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

    /// The address it listens at.
    pub fn address(&self) -> SocketAddr {
        self.net.address()
    }

    /// Refused connections so far.
    pub fn counters(&self) -> &Counters {
        &self.net.counters
    }

    /// The next item, or `None` at time `until`.
    fn wait(&mut self, until: Duration) -> Option<Item> {
        loop {
            if !self.stop_sent && self.interrupt.load(Ordering::Relaxed) {
                self.stop_sent = true;
                return Some(Event::Stop.into());
            }
            let left = until.saturating_sub(self.now());
            match self.events.recv_timeout(left.min(POLL)) {
                Ok(item) => return Some(item),
                Err(RecvTimeoutError::Timeout) if left > POLL => {}
                Err(_) => return None,
            }
        }
    }

    /// The error for neighbours that did not connect.
    fn absent(&self, missing: &BTreeSet<usize>) -> Error {
        let away = self.net.neighbours().filter(|n| missing.contains(&n.node));
        let names: Vec<&str> = away.map(|neighbour| neighbour.name.as_str()).collect();
        let names = names.join(", ");
        match self.net.reasons(missing) {
            Some(why) => Error::new(Kind::Refused, "peers/refused", why)
                .hint("compare the rosters: each must list the other's key and links"),
            None => {
                let message = format!("{names} did not connect in time");
                Error::new(Kind::Peer, "peers/absent", message)
                    .hint("start them, check addresses and firewalls (UDP), or raise --deadline")
            }
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
                Item::Event { event, .. } => return Some(event),
                // It was logged; the neighbour may come back with the right terms.
                Item::Refused => {}
            }
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sign(&self, bytes: &[u8]) -> Signature {
        self.key.sign(bytes)
    }

    fn secret(&self, node: usize) -> Option<[u8; 32]> {
        self.members.get(node).and_then(|other| self.key.shared(other))
    }

    fn verify(&self, node: usize, bytes: &[u8], signature: &Signature) -> bool {
        let signature = iroh::Signature::from_bytes(signature);
        self.members.get(node).is_some_and(|key| key.verify(bytes, &signature).is_ok())
    }
}

impl Drop for Iroh {
    /// Waits for sent frames to arrive, up to a time limit.
    fn drop(&mut self) {
        if let (Some(stop), Some(thread)) = (self.stop.take(), self.thread.take()) {
            // The thread may have ended already.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}
