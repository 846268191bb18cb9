//! A check of all links before a run: who can be reached and how, how fast, and on which terms.
//!
//! A check is a conversation of its own, under its own application protocol: it neither needs nor
//! disturbs a link. Nodes that run answer it, and so do nodes that check at the same time. The caller
//! sends its hello; the other end answers with its own and whether it is only checking; then the
//! caller sends its clock a few times, and each time receives the other's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use iroh::endpoint::{Connection, RecvStream, SendStream};
use lopa::error::Result;
use tokio::time::{sleep, timeout};

use crate::found::{ALPN, Found, Progress, Reach};
use crate::hello::Hello;
use crate::link::{End, read_hello};
use crate::log::Log;
use crate::net::{self, Net};
use crate::place::{Place, no_runtime};

/// How often the clocks are compared; the quickest answer counts.
const PINGS: usize = 5;
/// Limit on the clocks that one caller may ask for.
const MOST: usize = 64;
/// How long a relayed connection may take to become a direct one.
const SETTLE: Duration = Duration::from_secs(4);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(15);

/// A neighbour, and what a check found out about it or why it found nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Its addresses in the roster.
    pub addresses: Vec<String>,
    /// The result.
    pub found: std::result::Result<Found, String>,
}

/// Checks the links to all neighbours, at most for `patience`; `interrupt` ends it early.
pub fn check(
    place: Place,
    patience: Duration,
    log: Log,
    interrupt: &Arc<AtomicBool>,
) -> Result<Vec<Checked>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| no_runtime(&error))?;
    runtime.block_on(async {
        let (events, _unused) = mpsc::channel();
        let hello = Hello::new(place.terms.clone(), net::random());
        let net = Arc::new(Net::bind(place, hello, log, events, true).await?);
        let answering = tokio::spawn(net.clone().answer());
        let asking: Vec<_> = (0..net.count())
            .filter(|&at| net.can_call(&net.slots[at].neighbour))
            .map(|at| tokio::spawn(net.clone().ask_again(at)))
            .collect();
        let until = Instant::now() + patience;
        while Instant::now() < until && !interrupt.load(Ordering::Relaxed) && !net.is_checked() {
            sleep(PAUSE / 5).await;
        }
        asking.iter().for_each(tokio::task::JoinHandle::abort);
        answering.abort();
        let found = (0..net.count()).map(|at| net.checked(at)).collect();
        net.close().await;
        Ok(found)
    })
}

impl Net {
    /// Asks a neighbour until it answers.
    async fn ask_again(self: Arc<Net>, at: usize) {
        loop {
            let asked = timeout(ATTEMPT, self.ask(at)).await;
            let asked = asked.unwrap_or_else(|_| Err(End::Gone("it does not answer".into())));
            match asked {
                Ok(found) => return self.note_answer(at, found),
                Err(End::Gone(why) | End::Broke(why)) => self.note_silence(at, why),
                Err(End::Left) => self.note_silence(at, "it closed the connection".into()),
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks a neighbour once.
    async fn ask(&self, at: usize) -> std::result::Result<Found, End> {
        let connection = self.connect(at, ALPN).await?;
        let gone = |error: &dyn std::fmt::Display| End::Gone(error.to_string());
        let (mut out, mut into) = connection.open_bi().await.map_err(|error| gone(&error))?;
        out.write_all(&self.hello.to_bytes()).await.map_err(|error| gone(&error))?;
        let theirs = read_hello(&mut into).await?;
        let mut checking = [0];
        into.read_exact(&mut checking).await.map_err(|error| gone(&error))?;
        let start = Instant::now();
        while !matches!(reach(&connection), Some(Reach::Direct(_))) && start.elapsed() < SETTLE {
            if self.relays.is_empty() {
                break;
            }
            sleep(PAUSE / 5).await;
        }
        let mut best: Option<(Duration, f64)> = None;
        for _ in 0..PINGS {
            let (sent, before) = (Instant::now(), clock());
            out.write_all(&before.to_le_bytes()).await.map_err(|error| gone(&error))?;
            let mut theirs = [0; 8];
            into.read_exact(&mut theirs).await.map_err(|error| gone(&error))?;
            let round_trip = sent.elapsed();
            let middle = before as f64 + round_trip.as_micros() as f64 / 2.0;
            let ahead = (u64::from_le_bytes(theirs) as f64 - middle) / 1e6;
            if best.is_none_or(|(least, _)| round_trip < least) {
                best = Some((round_trip, ahead));
            }
        }
        let _ = out.finish();
        let (round_trip, clock) = best.unwrap_or_default();
        let reach = reach(&connection).ok_or_else(|| End::Gone("the connection is lost".into()))?;
        connection.close(0u32.into(), b"checked");
        Ok(self.found(&theirs, reach, (round_trip, clock), checking == [1]))
    }

    /// Answers a neighbour that checks.
    pub(crate) async fn answer_check(&self, at: usize, connection: Connection) {
        // One at a time: more questions do not get more answers.
        if std::mem::replace(&mut self.slots[at].progress().busy, true) {
            return connection.close(0u32.into(), b"one check at a time");
        }
        let answered = timeout(ATTEMPT, self.talk(at, &connection)).await;
        if !matches!(answered, Ok(Ok(()))) {
            self.note_silence(at, "its check did not end".into());
        }
        connection.close(0u32.into(), b"checked");
        self.slots[at].progress().busy = false;
    }

    async fn talk(&self, at: usize, connection: &Connection) -> std::result::Result<(), End> {
        let gone = |error: &dyn std::fmt::Display| End::Gone(error.to_string());
        let streams: (SendStream, RecvStream) =
            connection.accept_bi().await.map_err(|error| gone(&error))?;
        let (mut out, mut into) = streams;
        let theirs = read_hello(&mut into).await?;
        let mut ours = self.hello.to_bytes();
        ours.push(u8::from(self.checks));
        out.write_all(&ours).await.map_err(|error| gone(&error))?;
        let mut told = None;
        for _ in 0..MOST {
            let mut sent = [0; 8];
            if into.read_exact(&mut sent).await.is_err() {
                break;
            }
            let now = clock();
            out.write_all(&now.to_le_bytes()).await.map_err(|error| gone(&error))?;
            let paths = connection.paths();
            let round_trip = paths.iter().find(|path| path.is_selected()).map(|path| path.rtt());
            let round_trip = round_trip.unwrap_or_default();
            let ahead = (u64::from_le_bytes(sent) as f64 - now as f64) / 1e6;
            let clock = ahead + round_trip.as_secs_f64() / 2.0;
            // The path is gone when the caller has closed the connection.
            told = reach(connection).map(|reach| (reach, (round_trip, clock))).or(told);
        }
        // Only now: the caller needs no more answers.
        if let Some((reach, times)) = told {
            self.note_question(at, self.found(&theirs, reach, times, true));
        }
        Ok(())
    }

    fn found(&self, theirs: &Hello, reach: Reach, times: (Duration, f64), checking: bool) -> Found {
        let (round_trip, clock) = times;
        let differs = self.hello.differs(theirs);
        Found { reach, round_trip, clock, lopa: theirs.version(), differs, checking }
    }
}

/// The path that a connection uses now.
fn reach(connection: &Connection) -> Option<Reach> {
    let paths = connection.paths();
    let path = paths.iter().find(|path| path.is_selected())?;
    Some(match path.remote_addr() {
        iroh::TransportAddr::Ip(address) => Reach::Direct(address.to_string()),
        iroh::TransportAddr::Relay(url) => Reach::Relayed(url.to_string()),
        other => Reach::Direct(format!("{other:?}")),
    })
}

/// This host's clock, in microseconds.
fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Net {
    fn is_checked(&self) -> bool {
        let over = |can_call, progress: &Progress| progress.is_over(can_call, self.callable);
        self.slots.iter().all(|slot| over(self.can_call(&slot.neighbour), &slot.progress()))
    }

    fn note_answer(&self, at: usize, found: Found) {
        self.slots[at].progress().answered = Some(found);
    }

    fn note_question(&self, at: usize, found: Found) {
        self.slots[at].progress().asked = Some(found);
    }

    fn note_silence(&self, at: usize, why: String) {
        self.slots[at].progress().why = Some(why);
    }

    fn checked(&self, at: usize) -> Checked {
        let neighbour = &self.slots[at].neighbour;
        let mut progress = self.slots[at].progress();
        let found = progress.answered.take().or_else(|| progress.asked.take());
        let why = progress.why.take().unwrap_or_else(|| "it has not called".into());
        let (name, addresses) = (neighbour.name.clone(), neighbour.addresses.clone());
        Checked { name, addresses, found: found.ok_or(why) }
    }
}
