//! The network side of the wire, on its own thread.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use iroh::endpoint::{
    Accepting, Connection, ConnectionError, Incoming, IncomingAddr, QuicTransportConfig, presets,
};
use iroh::{Endpoint, EndpointAddr, RelayMode, RelayUrl};
use lopa::engine::Event;
use lopa::error::{Error, Kind, Result};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::hello::Hello;
use crate::link::{End, Item, QUEUE, Stream, read, write};
use crate::log::Log;
use crate::wire::{Counters, Neighbour, Place, Reasons};

/// The application protocol; QUIC's handshake fails with any other.
const ALPN: &[u8] = b"lopa/1";

/// Time limit from the first packet to the other end's hello.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// A connection is lost after this long without a packet.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Time limit for sent frames to arrive when the wire is closed.
const CLOSING: Duration = Duration::from_secs(3);
/// How long the node with the larger number waits before its first call.
const FIRST_CALL: Duration = Duration::from_millis(200);
/// Pause between attempts to reach a neighbour: the first and the longest, before jitter.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Limit on connections whose hello has not arrived; further callers are ignored.
const HALF_OPEN: usize = 64;

// Error codes that tell the other end why a connection was closed.
const DONE: u32 = 0;
const STRANGER: u32 = 1;
const DIFFERS: u32 = 2;
const BROKEN: u32 = 3;
const DUPLICATE: u32 = 4;

/// The endpoint, and a slot for each neighbour.
pub struct Net {
    endpoint: Endpoint,
    node: usize,
    relays: Vec<RelayUrl>,
    hello: Hello,
    max_frame: usize,
    slots: Vec<Slot>,
    half_open: Arc<Semaphore>,
    events: Sender<Item>,
    log: Log,
    reasons: Reasons,
    /// Refused connections so far.
    pub counters: Counters,
}

/// A neighbour and the link to it, if there is one.
struct Slot {
    neighbour: Neighbour,
    live: Mutex<Option<Live>>,
    changed: Notify,
    places: Arc<Semaphore>, // in the queue of incoming frames
}

struct Live {
    connection: Connection,
    session: u64,     // of the neighbour's process
    by_smaller: bool, // whether the node with the smaller number opened it
    queue: mpsc::Sender<Vec<u8>>,
    writer: JoinHandle<std::result::Result<(), End>>,
}

/// An unpredictable number, from the seeds of the standard library's hash tables.
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}

impl Net {
    /// Binds the endpoint.
    pub async fn bind(place: Place, hello: Hello, log: Log, events: Sender<Item>) -> Result<Net> {
        let Place { key, node, listen, relays, neighbours, most, .. } = place;
        let relays: Vec<RelayUrl> = relays.iter().map(|url| relay(url)).collect::<Result<_>>()?;
        let mode = match relays.is_empty() {
            true => RelayMode::Disabled,
            false => RelayMode::custom(relays.clone()),
        };
        let cannot = |why: String| {
            Error::config("peers/listen", format!("cannot listen at {listen}: {why}"))
                .at("--listen")
                .hint("name a free address of this host, such as `0.0.0.0:4800`")
        };
        let builder = Endpoint::builder(presets::Minimal)
            .secret_key(key.secret())
            .alpns(vec![ALPN.to_vec()])
            .relay_mode(mode)
            .transport_config(transport(most))
            .clear_ip_transports()
            .bind_addr(listen)
            .map_err(|error| cannot(error.to_string()))?;
        let endpoint = builder.bind().await.map_err(|error| cannot(error.to_string()))?;
        let reasons = Mutex::new(vec![None; neighbours.len()]);
        let slot = |neighbour| Slot {
            neighbour,
            live: Mutex::new(None),
            changed: Notify::new(),
            places: Arc::new(Semaphore::new(QUEUE)),
        };
        let slots = neighbours.into_iter().map(slot).collect();
        let (half_open, counters) = (Arc::new(Semaphore::new(HALF_OPEN)), Counters::default());
        Ok(Net {
            endpoint,
            node,
            relays,
            hello,
            max_frame: most,
            slots,
            half_open,
            events,
            log,
            reasons,
            counters,
        })
    }

    /// The address it listens at.
    pub fn address(&self) -> SocketAddr {
        let bound = self.endpoint.bound_sockets().into_iter().next();
        bound.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into())
    }

    /// The neighbours.
    pub fn neighbours(&self) -> impl Iterator<Item = &Neighbour> {
        self.slots.iter().map(|slot| &slot.neighbour)
    }

    /// Why there are no links to some neighbours, as far as known.
    pub fn reasons(&self, nodes: &BTreeSet<usize>) -> Option<String> {
        let reasons = self.reasons.lock().expect("no thread panics while holding it");
        let known = self.slots.iter().zip(reasons.iter());
        let of = known.filter(|(slot, _)| nodes.contains(&slot.neighbour.node));
        let found: Vec<&str> = of.filter_map(|(_, reason)| reason.as_deref()).collect();
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// Fails if a neighbour has other terms.
    pub fn check_terms(&self) -> Result<()> {
        let all = self.neighbours().map(|neighbour| neighbour.node).collect();
        match self.reasons(&all) {
            None => Ok(()),
            Some(why) => Err(Error::new(Kind::Refused, "peers/other-terms", why)
                .hint("all nodes need the same lopa, experiment file, overrides and roster")),
        }
    }

    /// Queues a frame; drops it if there is no link or the queue is full.
    pub fn send(&self, to: usize, frame: Vec<u8>) {
        let slot = self.slots.iter().find(|slot| slot.neighbour.node == to);
        let live = slot.map(|slot| slot.live.lock().expect("no thread panics while holding it"));
        if let Some(Some(live)) = live.as_deref() {
            // A full queue means a slow reader; callers retransmit.
            let _ = live.queue.try_send(frame);
        }
    }

    /// Calls and answers until told to stop, then closes all links.
    pub async fn serve(self: Arc<Net>, stopped: oneshot::Receiver<()>) {
        for at in 0..self.slots.len() {
            if !self.slots[at].neighbour.addresses.is_empty() || !self.relays.is_empty() {
                tokio::spawn(self.clone().dial(at));
            }
        }
        tokio::select! {
            () = self.clone().answer() => {}
            _ = stopped => {}
        }
        for slot in &self.slots {
            let live = slot.live.lock().expect("no thread panics while holding it").take();
            if let Some(Live { connection, queue, writer, .. }) = live {
                drop(queue);
                let _ = timeout(CLOSING, writer).await;
                connection.close(DONE.into(), b"done");
            }
        }
        let _ = timeout(CLOSING, self.endpoint.close()).await;
    }

    /// Calls a neighbour whenever there is no link to it.
    async fn dial(self: Arc<Net>, at: usize) {
        let slot = &self.slots[at];
        let mut pause = BACK_OFF.0;
        if self.node > slot.neighbour.node {
            // If both start at once, the node with the smaller number calls.
            let _ = timeout(FIRST_CALL, slot.changed.notified()).await;
        }
        loop {
            let changed = slot.changed.notified();
            if slot.live.lock().expect("no thread panics while holding it").is_some() {
                changed.await;
                pause = BACK_OFF.0;
                continue;
            }
            tokio::select! {
                // The neighbour called meanwhile.
                () = changed => continue,
                called = timeout(HANDSHAKE, self.call(at)) => {
                    if let Ok(Ok((stream, theirs))) = called {
                        self.clone().install(at, stream, theirs, true);
                    }
                }
            }
            // 50 to 100 % of the pause, so that nodes do not keep calling in step.
            let share = 0.5 + 0.5 * (random() as f64 / u64::MAX as f64);
            let _ = timeout(pause.mul_f64(share), slot.changed.notified()).await;
            pause = (2 * pause).min(BACK_OFF.1);
        }
    }

    /// Tries to call a neighbour.
    async fn call(&self, at: usize) -> std::result::Result<(Stream, Hello), End> {
        let Neighbour { name, key, addresses, .. } = &self.slots[at].neighbour;
        let mut address = EndpointAddr::new(*key);
        for named in addresses {
            for found in tokio::net::lookup_host(named).await.into_iter().flatten() {
                address = address.with_ip_addr(found);
            }
        }
        for url in &self.relays {
            address = address.with_relay_url(url.clone());
        }
        let connection = self.endpoint.connect(address, ALPN).await;
        let connection = connection.map_err(|error| End::Gone(error.to_string()))?;
        let opened = Stream::open(connection.clone(), &self.hello).await;
        if let Some(ConnectionError::ApplicationClosed(close)) = connection.close_reason()
            && close.error_code == STRANGER.into()
        {
            let why = format!("{name} does not know our key as a neighbour's");
            self.log.once(&format!("refused by {name}"), &why);
            self.set_reason(at, Some(why));
        }
        opened
    }

    /// Answers callers.
    async fn answer(self: Arc<Net>) {
        while let Some(incoming) = self.endpoint.accept().await {
            let Ok(permit) = self.half_open.clone().try_acquire_owned() else {
                self.counters.dropped.fetch_add(1, Ordering::Relaxed);
                let text = format!("more than {HALF_OPEN} callers at a time: ignoring some");
                self.log.once("half-open", &text);
                incoming.ignore();
                continue;
            };
            // Under load, a caller must first prove that it receives packets at its address.
            let direct = matches!(incoming.remote_addr(), IncomingAddr::Ip(_));
            let busy = self.half_open.available_permits() < HALF_OPEN / 2;
            if busy && direct && !incoming.remote_addr_validated() {
                let _ = incoming.retry();
                continue;
            }
            let net = self.clone();
            tokio::spawn(async move {
                let from = host(&incoming);
                if !matches!(timeout(HANDSHAKE, net.clone().greet(incoming)).await, Ok(true)) {
                    net.counters.dropped.fetch_add(1, Ordering::Relaxed);
                    let text = format!("dropped a caller at {from}: it did not identify itself");
                    net.log.once(&format!("caller {from}"), &text);
                }
                drop(permit);
            });
        }
    }

    /// Accepts or refuses a caller; returns false if it never completed the handshake.
    async fn greet(self: Arc<Net>, incoming: Incoming) -> bool {
        let from = host(&incoming);
        let accepting: Option<Accepting> = incoming.accept().ok();
        let Some(accepting) = accepting else { return false };
        let Ok(connection) = accepting.await else { return false };
        let key = connection.remote_id();
        let Some(at) = self.slots.iter().position(|slot| slot.neighbour.key == key) else {
            self.counters.strangers.fetch_add(1, Ordering::Relaxed);
            let text = format!("refused a stranger at {from}: {key} is not a neighbour's key");
            self.log.once(&format!("stranger {key}"), &text);
            connection.close(STRANGER.into(), b"your key is not a neighbour's");
            return true;
        };
        match Stream::accept(connection.clone(), &self.hello).await {
            Ok((stream, theirs)) => self.install(at, stream, theirs, false),
            Err(End::Broke(why)) => self.broke(at, &connection, &why),
            Err(End::Gone(_)) => return false,
        }
        true
    }

    /// Starts using a stream, unless the terms differ or there is a link already.
    fn install(self: Arc<Net>, at: usize, stream: Stream, theirs: Hello, dialled: bool) {
        let Stream { connection, out, into } = stream;
        let slot = &self.slots[at];
        let Neighbour { node, name, .. } = &slot.neighbour;
        if let Some(what) = self.hello.differs(&theirs) {
            self.counters.broken.fetch_add(1, Ordering::Relaxed);
            self.log.once(&format!("terms {name} {what}"), &format!("refused {name}: {what}"));
            self.set_reason(at, Some(format!("{name} differs: {what}")));
            let _ = self.events.send(Item::Refused);
            // The caller closes the connection when it has read our terms; if not, we do.
            tokio::spawn(async move {
                let _out = out;
                if !dialled {
                    let _ = timeout(HANDSHAKE, connection.closed()).await;
                }
                connection.close(DIFFERS.into(), b"other terms");
            });
            return;
        }
        let by_smaller = dialled == (self.node < *node);
        let mut live = slot.live.lock().expect("no thread panics while holding it");
        if let Some(old) = &*live {
            // Both ends keep the same one of two: that of a new process, or else the one opened by
            // the node with the smaller number.
            if old.session == theirs.session && (old.by_smaller || !by_smaller) {
                connection.close(DUPLICATE.into(), b"there is a link already");
                return;
            }
            old.connection.close(DUPLICATE.into(), b"a newer link");
            let _ = self.events.send(Event::Down(*node).into());
        }
        self.set_reason(at, None);
        self.log.say(&format!("link to {name} is up"));
        let _ = self.events.send(Event::Up(*node).into());
        let (queue, queued) = mpsc::channel(QUEUE);
        let writer = tokio::spawn(write(out, queued));
        let session = theirs.session;
        let reader = read(into, *node, self.max_frame, slot.places.clone(), self.events.clone());
        *live = Some(Live { connection: connection.clone(), session, by_smaller, queue, writer });
        slot.changed.notify_waiters();
        drop(live);
        let net = self.clone();
        tokio::spawn(async move {
            let end = reader.await;
            net.lost(at, &connection, end);
        });
    }

    /// Cleans up after a link that ended.
    fn lost(&self, at: usize, connection: &Connection, end: End) {
        let slot = &self.slots[at];
        let Neighbour { node, name, .. } = &slot.neighbour;
        if let End::Broke(why) = &end {
            self.broke(at, connection, why);
        }
        connection.close(DONE.into(), b"the stream ended");
        let mut live = slot.live.lock().expect("no thread panics while holding it");
        let ours = |live: &Live| live.connection.stable_id() == connection.stable_id();
        if live.as_ref().is_some_and(ours) {
            *live = None;
            let (End::Gone(why) | End::Broke(why)) = end;
            self.log.say(&format!("link to {name} is down: {why}"));
            let _ = self.events.send(Event::Down(*node).into());
            slot.changed.notify_waiters();
        }
    }

    /// Closes the connection of a neighbour that violated the protocol.
    fn broke(&self, at: usize, connection: &Connection, why: &str) {
        self.counters.broken.fetch_add(1, Ordering::Relaxed);
        let name = &self.slots[at].neighbour.name;
        self.log.once(&format!("broke {name} {why}"), &format!("refused {name}: {why}"));
        connection.close(BROKEN.into(), why.as_bytes());
    }

    fn set_reason(&self, at: usize, why: Option<String>) {
        self.reasons.lock().expect("no thread panics while holding it")[at] = why;
    }
}

/// Limits of a connection: one stream, no datagrams, and windows of two frames.
fn transport(max_frame: usize) -> QuicTransportConfig {
    let window = u32::try_from(2 * max_frame).unwrap_or(u32::MAX / 2).max(1 << 16);
    QuicTransportConfig::builder()
        .max_concurrent_bidi_streams(1u32.into())
        .max_concurrent_uni_streams(0u32.into())
        .stream_receive_window(window.into())
        .receive_window(window.into())
        .send_window(u64::from(window))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IDLE_TIMEOUT.try_into().ok())
        .keep_alive_interval(KEEP_ALIVE)
        .build()
}

fn relay(url: &str) -> Result<RelayUrl> {
    url.parse().map_err(|error| {
        Error::config("roster/bad-relay", format!("`{url}` is not the URL of a relay: {error}"))
    })
}

/// A caller's address without the port, which is new each time.
fn host(incoming: &Incoming) -> String {
    match incoming.remote_addr() {
        IncomingAddr::Ip(address) => address.ip().to_string(),
        IncomingAddr::Relay { url, .. } => url.to_string(),
        other => format!("{other:?}"),
    }
}
