//! The network side of the wire, on its own thread.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use iroh::endpoint::{
    Accepting, Connection, ConnectionError, Incoming, IncomingAddr, QuicTransportConfig, presets,
};
use iroh::{Endpoint, EndpointAddr, RelayMode, RelayUrl};
use lopa::engine::Event;
use lopa::engine::dial::{Connected, Dialling, Role};
use lopa::error::{Error, Kind, Result};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use crate::found::{self, Progress};
use crate::hello::Hello;
use crate::keys::Keys;
use crate::link::{End, Item, QUEUE, Stream, read, swap_keys, write};
use crate::log::{Level, Log};
use crate::place::{Counters, Neighbour, Place, Reasons};

/// The application protocol; QUIC's handshake fails with any other.
const ALPN: &[u8] = b"lopa/1";

/// Time limit of a caller from its first packet to its hello.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time limit of a call, until the other end's hello.
const CALL: Duration = Duration::from_secs(20);
/// A connection is lost after this long without a packet.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Time limit for sent frames to arrive when the wire is closed.
const CLOSING: Duration = Duration::from_secs(10);
/// Limit on connections whose hello has not arrived; beyond it, the oldest is dropped.
const HALF_OPEN: usize = 256;

// Error codes that inform the other end why a connection was closed.
const DONE: u32 = 0;
const STRANGER: u32 = 1;
const DIFFERS: u32 = 2;
const BROKEN: u32 = 3;
const DUPLICATE: u32 = 4;

/// The endpoint, and a slot for each neighbour.
pub struct Net {
    endpoint: Endpoint,
    node: usize,
    start: Instant,
    /// URLs of relays.
    pub(crate) relays: Vec<RelayUrl>,
    /// This node's first message.
    pub(crate) hello: Hello,
    /// Whether it only checks links.
    pub(crate) checks: bool,
    /// Whether neighbours can call this node.
    pub(crate) callable: bool,
    keys: Keys,
    max_frame: usize,
    /// The neighbours.
    pub(crate) slots: Vec<Slot>,
    events: Sender<Item>,
    log: Log,
    reasons: Reasons,
    /// Refused connections so far.
    pub counters: Counters,
}

/// A neighbour and the link to it, if there is one.
pub(crate) struct Slot {
    pub(crate) neighbour: Neighbour,
    progress: Mutex<Progress>, // of a check
    line: Mutex<Line>,
    changed: Notify,        // the line
    places: Arc<Semaphore>, // in the queue of incoming frames
}

/// The link to a neighbour, and the calls to it.
struct Line {
    live: Option<Live>,
    dialling: Dialling,
}

struct Live {
    connection: Connection,
    connected: Connected,
    queue: mpsc::Sender<Vec<u8>>,
    writer: JoinHandle<Result<(), End>>,
}

impl Slot {
    /// What a check has found out so far.
    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("no thread panics while holding it")
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("no thread panics while holding it")
    }
}

/// An unpredictable number, from the seeds of the standard library's hash tables.
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// An unpredictable number in 0..1.
fn jitter() -> f64 {
    random() as f64 / u64::MAX as f64
}

impl Net {
    /// Binds the endpoint; one that only checks links answers no other calls.
    pub async fn bind(
        place: Place,
        hello: Hello,
        log: Log,
        events: Sender<Item>,
        checks: bool,
    ) -> Result<Net> {
        let Place { key, node, listen, callable, relays, neighbours, keys, most, .. } = place;
        let relays: Vec<RelayUrl> = relays.iter().map(|url| relay(url)).collect::<Result<_>>()?;
        let mode = match relays.is_empty() {
            true => RelayMode::Disabled,
            false => RelayMode::custom(relays.clone()),
        };
        let both = vec![ALPN.to_vec(), found::ALPN.to_vec()];
        let cannot = |why: String| {
            Error::config("peers/listen", format!("cannot listen at {listen}: {why}"))
                .at("--listen")
                .hint("name a free address of this host, such as `0.0.0.0:4800`")
        };
        let builder = Endpoint::builder(presets::Minimal)
            .secret_key(key.secret())
            .alpns(if checks { vec![found::ALPN.to_vec()] } else { both })
            .relay_mode(mode)
            .transport_config(transport(most))
            .clear_ip_transports()
            .bind_addr(listen)
            .map_err(|error| cannot(error.to_string()))?;
        let endpoint = builder.bind().await.map_err(|error| cannot(error.to_string()))?;
        let reasons = Mutex::new(vec![None; neighbours.len()]);
        let slot = |neighbour: Neighbour| Slot {
            line: Mutex::new(Line {
                live: None,
                dialling: Dialling::new(Role::of(node, neighbour.node, callable), Duration::ZERO),
            }),
            neighbour,
            progress: Mutex::default(),
            changed: Notify::new(),
            places: Arc::new(Semaphore::new(QUEUE)),
        };
        let slots = neighbours.into_iter().map(slot).collect();
        let counters = Counters::default();
        Ok(Net {
            endpoint,
            node,
            start: Instant::now(),
            relays,
            hello,
            checks,
            callable,
            keys,
            max_frame: most,
            slots,
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
        if let Some(slot) = slot
            && let Some(live) = &slot.line().live
        {
            // A full queue means a slow reader; callers retransmit.
            let _ = live.queue.try_send(frame);
        }
    }

    /// Calls and answers until the wire is closed, then closes all links.
    pub async fn serve(self: Arc<Net>, stopped: oneshot::Receiver<()>) {
        for at in 0..self.slots.len() {
            if self.can_call(&self.slots[at].neighbour) {
                tokio::spawn(self.clone().dial(at));
            }
        }
        tokio::select! {
            () = self.clone().answer() => {}
            _ = stopped => {}
        }
        for slot in &self.slots {
            let live = slot.line().live.take();
            if let Some(Live { connection, queue, writer, .. }) = live {
                drop(queue);
                let _ = timeout(CLOSING, writer).await;
                connection.close(DONE.into(), b"done");
            }
        }
        self.close().await;
    }

    /// Closes the endpoint.
    pub(crate) async fn close(&self) {
        let _ = timeout(CLOSING, self.endpoint.close()).await;
    }

    /// Whether this node can call a neighbour: the roster has an address of it, or a relay.
    pub(crate) fn can_call(&self, neighbour: &Neighbour) -> bool {
        !neighbour.addresses.is_empty() || !self.relays.is_empty()
    }

    /// The number of neighbours.
    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Calls a neighbour whenever that is due.
    async fn dial(self: Arc<Net>, at: usize) {
        let slot = &self.slots[at];
        loop {
            let changed = slot.changed.notified();
            let due = slot.line().dialling.due();
            let left = due.map(|due| due.saturating_sub(self.now()));
            match left {
                None => changed.await,
                Some(left) if !left.is_zero() => drop(timeout(left, changed).await),
                Some(_) => {
                    slot.line().dialling.called();
                    // Not abandoned when a link comes up in the meantime: see `dial.rs`.
                    if let Ok(Ok((stream, theirs))) = timeout(CALL, self.call(at)).await {
                        self.clone().install(at, stream, theirs, true);
                    }
                    slot.line().dialling.answered(self.now(), jitter());
                }
            }
        }
    }

    /// Tries to connect to a neighbour.
    pub(crate) async fn connect(&self, at: usize, alpn: &[u8]) -> Result<Connection, End> {
        let Neighbour { key, addresses, .. } = &self.slots[at].neighbour;
        let mut address = EndpointAddr::new(*key);
        for named in addresses {
            for found in tokio::net::lookup_host(named).await.into_iter().flatten() {
                address = address.with_ip_addr(found);
            }
        }
        for url in &self.relays {
            address = address.with_relay_url(url.clone());
        }
        let connection = self.endpoint.connect(address, alpn).await;
        connection.map_err(|error| End::Gone(error.to_string()))
    }

    /// Tries to call a neighbour.
    async fn call(&self, at: usize) -> Result<(Stream, Hello), End> {
        let name = &self.slots[at].neighbour.name;
        let connection = self.connect(at, ALPN).await?;
        let opened = Stream::open(connection.clone(), &self.hello).await;
        if let Some(ConnectionError::ApplicationClosed(close)) = connection.close_reason()
            && close.error_code == STRANGER.into()
        {
            let why = format!("{name} does not know our key as a neighbour's");
            self.log.once(name, "refused us", &why);
            self.set_reason(at, Some(why));
        }
        opened
    }

    /// Answers callers.
    pub(crate) async fn answer(self: Arc<Net>) {
        let mut half_open: VecDeque<AbortHandle> = VecDeque::new();
        while let Some(incoming) = self.endpoint.accept().await {
            half_open.retain(|caller| !caller.is_finished());
            // Under load, a caller must first prove that it receives packets at its address.
            let direct = matches!(incoming.remote_addr(), IncomingAddr::Ip(_));
            let busy = half_open.len() > HALF_OPEN / 2;
            if busy && direct && !incoming.remote_addr_validated() {
                let _ = incoming.retry();
                continue;
            }
            // The oldest one is dropped: a neighbour needs only a few round trips.
            if half_open.len() >= HALF_OPEN
                && let Some(oldest) = half_open.pop_front()
            {
                oldest.abort();
                self.counters.dropped.fetch_add(1, Ordering::Relaxed);
                let text = format!("more than {HALF_OPEN} callers at a time: dropping the slowest");
                self.log.once("callers", "too many", &text);
            }
            let net = self.clone();
            let caller = tokio::spawn(async move {
                let from = host(&incoming);
                if !matches!(timeout(HANDSHAKE, net.clone().greet(incoming)).await, Ok(true)) {
                    net.counters.dropped.fetch_add(1, Ordering::Relaxed);
                    let text = format!("dropped a caller at {from}: it did not identify itself");
                    net.log.once("callers", &from, &text);
                }
            });
            half_open.push_back(caller.abort_handle());
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
            self.log.once("strangers", &key.to_string(), &text);
            connection.close(STRANGER.into(), b"your key is not a neighbour's");
            return true;
        };
        if connection.alpn() == found::ALPN {
            tokio::spawn(async move { self.answer_check(at, connection).await });
            return true;
        }
        match Stream::accept(connection.clone(), &self.hello).await {
            Ok((stream, theirs)) => self.install(at, stream, theirs, false),
            Err(End::Broke(why)) => self.broke(at, &connection, &why),
            Err(End::Gone(_) | End::Left) => return false,
        }
        true
    }

    /// Starts using a stream, unless the terms differ or there is a link already.
    fn install(self: Arc<Net>, at: usize, stream: Stream, theirs: Hello, dialled: bool) {
        let slot = &self.slots[at];
        let Neighbour { node, name, .. } = &slot.neighbour;
        if let Some(what) = self.hello.differs(&theirs) {
            let which = self.hello.can_say_which(&theirs);
            tokio::spawn(self.clone().part(at, stream, (what, which), dialled));
            return;
        }
        let Stream { connection, out, into } = stream;
        let by_smaller = dialled == (self.node < *node);
        let connected = Connected { session: theirs.session, by_smaller };
        let mut line = slot.line();
        if let Some(old) = &line.live {
            if !old.connected.gives_way_to(connected) {
                connection.close(DUPLICATE.into(), b"there is a link already");
                return;
            }
            old.connection.close(DUPLICATE.into(), b"a newer link");
            let _ = self.events.send(Event::Down(*node).into());
        }
        self.set_reason(at, None);
        self.log.say(Level::Info, &format!("link to {name} is up"));
        let _ = self.events.send(Event::Up(*node).into());
        let (queue, queued) = mpsc::channel(QUEUE);
        let writer = tokio::spawn(write(out, queued));
        let reader = read(into, *node, self.max_frame, slot.places.clone(), self.events.clone());
        line.live = Some(Live { connection: connection.clone(), connected, queue, writer });
        line.dialling.up(self.now());
        slot.changed.notify_waiters();
        drop(line);
        let net = self.clone();
        tokio::spawn(async move {
            let end = reader.await;
            net.lost(at, &connection, end);
        });
    }

    /// Refuses a neighbour with other terms: the reason names the difference, if possible by the
    /// keys of the experiment.
    async fn part(
        self: Arc<Net>,
        at: usize,
        mut stream: Stream,
        (mut what, which): (String, bool),
        dialled: bool,
    ) {
        let name = &self.slots[at].neighbour.name;
        if which {
            // One that sends no keys is refused without them.
            let theirs = timeout(HANDSHAKE, swap_keys(&mut stream, &self.keys, dialled)).await;
            if let Ok(Ok(theirs)) = theirs {
                let keys = self.keys.differ(&theirs);
                let same = || "no key differs, so what files contain does".into();
                what = format!("{what}: {}", keys.unwrap_or_else(same));
            }
        }
        self.counters.broken.fetch_add(1, Ordering::Relaxed);
        self.log.once(name, &what, &format!("refused {name}: {what}"));
        self.set_reason(at, Some(format!("{name} differs: {what}")));
        let _ = self.events.send(Item::Refused);
        // The caller closes the connection when it has read our terms; if not, we do.
        if !dialled {
            let _ = timeout(HANDSHAKE, stream.connection.closed()).await;
        }
        stream.connection.close(DIFFERS.into(), b"other terms");
    }

    /// Cleans up after a link that ended.
    fn lost(&self, at: usize, connection: &Connection, end: End) {
        let slot = &self.slots[at];
        let Neighbour { node, name, .. } = &slot.neighbour;
        if let End::Broke(why) = &end {
            self.broke(at, connection, why);
        }
        connection.close(DONE.into(), b"the stream ended");
        let mut line = slot.line();
        let ours = |live: &Live| live.connection.stable_id() == connection.stable_id();
        if line.live.as_ref().is_some_and(ours) {
            line.live = None;
            line.dialling.down(self.now(), jitter());
            match end {
                End::Left => self.log.say(Level::Info, &format!("{name} has left")),
                End::Gone(why) | End::Broke(why) => {
                    self.log.say(Level::Warning, &format!("link to {name} is down: {why}"));
                }
            }
            let _ = self.events.send(Event::Down(*node).into());
            slot.changed.notify_waiters();
        }
    }

    /// Closes the connection of a neighbour that violated the protocol.
    fn broke(&self, at: usize, connection: &Connection, why: &str) {
        self.counters.broken.fetch_add(1, Ordering::Relaxed);
        let name = &self.slots[at].neighbour.name;
        self.log.once(name, why, &format!("refused {name}: {why}"));
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
