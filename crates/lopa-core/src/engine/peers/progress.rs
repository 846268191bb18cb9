//! How far all peers are, and for which of them the run waits.
//!
//! At intervals each peer that is watched states how far it is: its iteration, whether it waits, and which of
//! its neighbours is silent. It signs the statement and sends it with its other frames; its neighbours pass it on
//! with theirs, each newer one once per link. So a peer's statement reaches all others as long as there is a
//! path. Next to a statement that is passed on stands its age, because peers have no common clock.
//!
//! A peer that waits looks for the cause in the statements of all peers that are *live*: whose last
//! statement is recent. If a live peer states that a neighbour is silent, the run waits for that neighbour; if the
//! neighbour has made a statement since then, the link between the two is cut. If no live peer is without a neighbour, the run waits
//! for a peer that computes: the last of the chain of those who wait for each other.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Peers;
use super::frame::{FrameResult, Kind};
use crate::engine::refusal::Refusal;
use crate::engine::wire::{Signature, Wire};
use crate::store::bytes::{Reader, Writer};

/// A neighbour is silent that was not heard for this many intervals between two requests.
const SILENT: u32 = 3;

/// Statements may be older by this many intervals for each link on their path.
const PER_LINK: u32 = 2;

/// Bytes of a statement before its signature.
const CONTENT: usize = 10 * 8;

/// Bytes of a signed statement.
const SIGNED: usize = CONTENT + size_of::<Signature>();

/// Bytes of a statement that is passed on: its age in milliseconds precedes it.
const ENTRY: usize = 8 + SIGNED;

/// How many statements are passed on in one frame.
const ENTRIES: usize = 128;

/// Precedes what is signed, so that a statement's signature is none of a frame.
const CONTEXT: &[u8] = b"lopa progress";

/// A peer's statement about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Statement {
    node: usize,
    /// Larger in each later one: the time of the node's start, and the number since then.
    number: (u64, u64),
    job: u32,
    k: u64,
    /// The peer whose frame it lacks, if it waits.
    lacks: Option<usize>,
    /// The neighbour that has been silent for longest, if any is.
    silent: Option<Silent>,
    rows: Option<u64>,
    done: bool,
}

/// A silent neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Silent {
    node: usize,
    since: Duration,
    connected: bool,
}

impl Statement {
    fn to_bytes(self) -> Vec<u8> {
        let mut out = Writer::default();
        // 0 is none.
        let node = |node: Option<usize>| node.map_or(0, |node| node as u64 + 1);
        let silent = self.silent.map(|silent| silent.node);
        let since = self.silent.map_or(0, |silent| silent.since.as_millis() as u64);
        let connected = self.silent.is_some_and(|silent| silent.connected);
        let rows = self.rows.map_or(0, |rows| rows.saturating_add(1));
        let flags = u64::from(self.done) | u64::from(connected) << 1;
        let (start, number) = self.number;
        [self.node as u64, start, number, u64::from(self.job), self.k, node(self.lacks)]
            .into_iter()
            .chain([node(silent), since, rows, flags])
            .for_each(|value| out.u64(value));
        out.done()
    }

    /// Decodes a statement; `None` if it is malformed.
    fn read(bytes: &[u8], nodes: usize) -> Option<Statement> {
        let mut bytes = Reader::new(bytes);
        let mut word = || bytes.u64();
        let node = |word: u64| usize::try_from(word).ok().filter(|&node| node < nodes);
        let optional = |word: u64| match word.checked_sub(1) {
            None => Some(None),
            Some(word) => node(word).map(Some),
        };
        let me = node(word()?)?;
        let number = (word()?, word()?);
        let job = u32::try_from(word()?).ok()?;
        let k = word()?;
        let lacks = optional(word()?)?;
        let (silent, since) = (optional(word()?)?, Duration::from_millis(word()?));
        let rows = word()?.checked_sub(1);
        let flags = word()?;
        bytes.end()?;
        let (done, connected) = (flags & 1 != 0, flags & 2 != 0);
        let sound = match silent {
            Some(node) => node != me,
            None => since.is_zero() && !connected,
        };
        let sound = sound && flags < 4 && lacks != Some(me);
        let silent = silent.map(|node| Silent { node, since, connected });
        sound.then_some(Statement { node: me, number, job, k, lacks, silent, rows, done })
    }
}

/// A statement that was checked.
#[derive(Debug)]
struct Known {
    statement: Statement,
    /// It with its signature.
    bytes: Vec<u8>,
    /// When it was made, and when it arrived, on this peer's clock.
    made: Duration,
    came: Duration,
}

/// What a peer knows of all peers.
#[derive(Default)]
pub struct Progress {
    known: BTreeMap<usize, Known>,
    passed: BTreeMap<(usize, usize), (u64, u64)>, // the last number at a neighbour, by it and author
    distances: Vec<u32>,                          // to all nodes, in links
    next: Duration,                               // when statements are sent again
    count: u64,                                   // own statements
    waiting: Option<(usize, Duration)>,           // for which peer, and since when
    watcher: Option<Watcher>,
}

/// Receives pictures, at intervals.
struct Watcher {
    start: u64,
    rows: Option<u64>,
    notify: Box<dyn FnMut(Picture) + Send>,
}

/// The cause of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The peer is silent, and there is no connection to it.
    Lost,
    /// The peer is silent, but its connection is open: it computes, or hangs.
    Silent,
    /// The peer is live, but its neighbour `reporter` does not receive from it.
    Cut,
    /// The peer is live, and computes.
    Computes,
}

/// For which peer the run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// The peer.
    pub peer: usize,
    /// How long it has been silent.
    pub silent: Duration,
    /// Why.
    pub cause: Cause,
    /// The peer that states it.
    pub reporter: usize,
    /// How many live peers wait, with the one that reports it.
    pub waiting: usize,
    /// How many peers are live.
    pub live: usize,
}

/// How far all peers are, as one of them sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The index of the run in the experiment.
    pub job: u32,
    /// This peer's iteration.
    pub k: u64,
    /// For which peer this one waits, if it waits.
    pub waits: Option<Waits>,
    /// All peers, in their order.
    pub nodes: Vec<Sight>,
}

/// The link to a peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connection {
    /// The peer is no neighbour.
    #[default]
    None,
    /// It is connected.
    Up,
    /// It is connected, but skipped at the moment.
    Skipped,
    /// It is not connected.
    Down,
}

/// One peer, as another one sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sight {
    /// Its last known iteration in the present run.
    pub k: Option<u64>,
    /// How long ago it sent the last frame that is known.
    pub silent: Option<Duration>,
    /// The link to it.
    pub link: Connection,
    /// Its training rows, if it states them.
    pub rows: Option<u64>,
    /// Whether its results are on disk.
    pub done: bool,
    /// Whether it has left: the others go on without it.
    pub left: bool,
}

impl Progress {
    /// Sets the distances of all nodes from `me`, by their neighbours.
    pub fn measure(&mut self, graph: &[Vec<usize>], me: usize) {
        self.distances = vec![u32::MAX; graph.len()];
        self.distances[me] = 0;
        let mut next = VecDeque::from([me]);
        while let Some(node) = next.pop_front() {
            for &other in &graph[node] {
                if self.distances[other] == u32::MAX {
                    self.distances[other] = self.distances[node] + 1;
                    next.push_back(other);
                }
            }
        }
    }

    /// Forgets all statements: other nodes are members now.
    pub fn forget(&mut self) {
        self.known.clear();
        self.passed.clear();
        self.waiting = None;
    }
}

impl<W: Wire> Peers<W> {
    /// Passes pictures of all peers to `notify`, and statements of this one to the others, each once per
    /// interval between two requests. `start` is larger at each later start of this node; `rows` are its
    /// training rows.
    pub fn watch(&mut self, start: u64, rows: Option<u64>, notify: Box<dyn FnMut(Picture) + Send>) {
        self.progress.watcher = Some(Watcher { start, rows, notify });
    }

    /// The number of this node's start, which is larger at each later one.
    pub(super) fn start_number(&self) -> u64 {
        self.progress.watcher.as_ref().map_or(0, |watcher| watcher.start)
    }

    /// Records for which peer this one waits.
    pub(super) fn note_waiting(&mut self, peer: Option<usize>) {
        let now = self.wire.now();
        let since = self.progress.waiting.map(|(_, since)| since);
        self.progress.waiting = peer.map(|peer| (peer, since.unwrap_or(now)));
    }

    /// Sends statements and passes on a picture, if they are due.
    pub(super) fn send_progress(&mut self) {
        let now = self.wire.now();
        if now < self.progress.next {
            return;
        }
        self.progress.next = now.saturating_add(self.settings.resend);
        if let Some(mut watcher) = self.progress.watcher.take() {
            self.state(&watcher, now);
            (watcher.notify)(self.picture(now));
            self.progress.watcher = Some(watcher);
        }
        for at in 0..self.links.len() {
            self.pass_progress(at, now);
        }
    }

    /// Makes this peer's own statement.
    fn state(&mut self, watcher: &Watcher, now: Duration) {
        self.progress.count += 1;
        let statement = Statement {
            node: self.me,
            number: (watcher.start, self.progress.count),
            job: self.job,
            k: self.round.k,
            lacks: self.lacks(now),
            silent: self.silent(now),
            rows: watcher.rows,
            done: self.done,
        };
        let mut bytes = statement.to_bytes();
        let signature = self.wire.sign(&self.signed_statement(&bytes));
        bytes.extend_from_slice(&signature);
        self.progress.known.insert(self.me, Known { statement, bytes, made: now, came: now });
    }

    fn signed_statement(&self, bytes: &[u8]) -> Vec<u8> {
        [CONTEXT, &self.run, bytes].concat()
    }

    /// The peer whose frame this one lacks, if it has waited for a while.
    fn lacks(&self, now: Duration) -> Option<usize> {
        let (peer, since) = self.progress.waiting?;
        (now.saturating_sub(since) >= self.settings.resend).then_some(peer)
    }

    /// The neighbour that has been silent for longest, if any is.
    fn silent(&self, now: Duration) -> Option<Silent> {
        let least = self.settings.resend.saturating_mul(SILENT);
        let silent = |link: &super::Link| {
            let since = now.saturating_sub(link.heard);
            let connected = !self.down.contains(&link.peer);
            (since > least && !link.ended() && !link.done).then_some(Silent {
                node: link.peer,
                since,
                connected,
            })
        };
        self.links.iter().filter_map(silent).max_by_key(|silent| silent.since)
    }

    /// Sends a neighbour the statements that it has not sent or received.
    fn pass_progress(&mut self, at: usize, now: Duration) {
        let peer = self.links[at].peer;
        let Progress { known, passed, .. } = &mut self.progress;
        let mut entries = Vec::new();
        for (&node, Known { statement, bytes, made, .. }) in known.iter() {
            let last = passed.entry((peer, node)).or_default();
            if node != peer && *last < statement.number {
                *last = statement.number;
                let age = now.saturating_sub(*made).as_millis() as u64;
                entries.push([&age.to_le_bytes()[..], bytes].concat());
            }
        }
        for entries in entries.chunks(ENTRIES) {
            let frame = self.frame(Kind::Progress, 1, &entries.concat());
            self.wire.send(peer, &frame);
        }
    }

    /// Handles the statements that a neighbour passes on. Any that this peer cannot use it does not pass on.
    pub(super) fn on_progress(&mut self, at: usize, payload: &[u8]) -> FrameResult {
        if !payload.len().is_multiple_of(ENTRY) || payload.len() > ENTRIES * ENTRY {
            return Err(Refusal::Shape);
        }
        let (now, peer) = (self.wire.now(), self.links[at].peer);
        for entry in payload.chunks_exact(ENTRY) {
            let (age, bytes) = entry.split_first_chunk().ok_or(Refusal::Shape)?;
            let age = Duration::from_millis(u64::from_le_bytes(*age));
            let (content, signature) = bytes.split_last_chunk().ok_or(Refusal::Shape)?;
            let statement = Statement::read(content, self.nodes).ok_or(Refusal::Shape)?;
            let Statement { node, number, .. } = statement;
            let passed = self.progress.passed.entry((peer, node)).or_default();
            *passed = number.max(*passed);
            // A peer that makes statements without end is not heard more often than others.
            let soon = self.settings.resend / 2;
            let known = self.progress.known.get(&node);
            let is_new = known.is_none_or(|known| {
                known.statement.number < number && now >= known.came.saturating_add(soon)
            });
            if node == self.me || !is_new {
                continue;
            }
            if !self.wire.verify(node, &self.signed_statement(content), signature) {
                return Err(Refusal::Signature);
            }
            let made = now.saturating_sub(age);
            let known = Known { statement, bytes: bytes.to_vec(), made, came: now };
            self.progress.known.insert(node, known);
        }
        Ok(())
    }

    /// How long ago a peer sent the last frame that is known.
    pub(super) fn age(&self, node: usize, now: Duration) -> Option<Duration> {
        let stated = self.progress.known.get(&node).map(|known| now.saturating_sub(known.made));
        let heard = self.links.iter().find(|link| link.peer == node);
        let heard = heard.map(|link| now.saturating_sub(link.heard));
        if node == self.me {
            return Some(Duration::ZERO);
        }
        stated.into_iter().chain(heard).min()
    }

    /// Whether a peer is live, as far as known.
    fn is_live(&self, node: usize, now: Duration) -> bool {
        let distance = self.progress.distances.get(node).copied().unwrap_or(u32::MAX);
        let intervals = distance.saturating_mul(PER_LINK).saturating_add(SILENT);
        let most = self.settings.resend.saturating_mul(intervals);
        self.age(node, now).is_some_and(|age| age <= most)
    }

    /// The silent neighbour that a peer stated last, and for how long it has been silent by now.
    fn stated_silence(&self, reporter: usize, now: Duration) -> Option<Silent> {
        if reporter == self.me {
            return self.silent(now);
        }
        let known = self.progress.known.get(&reporter)?;
        let silent = known.statement.silent?;
        let since = silent.since.saturating_add(now.saturating_sub(known.made));
        // This peer is not silent, whatever others receive of it.
        (silent.node != self.me).then_some(Silent { since, ..silent })
    }

    /// Whether a peer made a statement after it fell silent: then it lives, and a link is cut.
    fn spoke_since(&self, silent: &Silent, now: Duration) -> bool {
        let slack = self.settings.resend / 2;
        self.age(silent.node, now).is_some_and(|age| age.saturating_add(slack) < silent.since)
    }

    /// For which peer this one waits, if it waits.
    fn waits(&self, now: Duration) -> Option<Waits> {
        let lacks = self.lacks(now)?;
        let known = |node: usize| self.progress.known.get(&node);
        let mut live: Vec<usize> =
            self.members.iter().copied().filter(|&node| self.is_live(node, now)).collect();
        let stated = |&reporter: &usize| Some((reporter, self.stated_silence(reporter, now)?));
        let silent: Vec<(usize, Silent)> = live.iter().filter_map(stated).collect();
        let is_gone = |node: usize| {
            silent.iter().any(|(_, silent)| silent.node == node && !self.spoke_since(silent, now))
        };
        live.retain(|&node| !is_gone(node));
        let waits = |node: &&usize| match **node == self.me {
            true => true,
            false => known(**node).is_some_and(|known| known.statement.lacks.is_some()),
        };
        let (waiting, count) = (live.iter().filter(waits).count(), live.len());
        let silent = silent.iter().filter(|(reporter, _)| live.contains(reporter));
        let silent = silent.map(|&(reporter, Silent { node, since, connected })| {
            let cause = match (live.contains(&node), connected) {
                (true, _) => Cause::Cut,
                (false, true) => Cause::Silent,
                (false, false) => Cause::Lost,
            };
            Waits { peer: node, silent: since, cause, reporter, waiting, live: count }
        });
        // Peers that are gone explain more than links that are cut.
        let worst = silent.max_by_key(|waits| (waits.cause != Cause::Cut, waits.silent));
        worst.or_else(|| {
            let (mut peer, mut reporter) = (lacks, self.me);
            for _ in 0..self.nodes {
                let next = known(peer).and_then(|known| known.statement.lacks);
                let Some(next) = next.filter(|&next| next != self.me) else { break };
                (peer, reporter) = (next, peer);
            }
            let silent = self.age(peer, now).unwrap_or(now);
            let cause = Cause::Computes;
            Some(Waits { peer, silent, cause, reporter, waiting, live: count })
        })
    }

    fn picture(&self, now: Duration) -> Picture {
        let sight = |node: usize| {
            let known = self.progress.known.get(&node).map(|known| known.statement);
            let link = self.links.iter().find(|link| link.peer == node);
            let connection = match link {
                None => Connection::None,
                Some(_) if self.down.contains(&node) => Connection::Down,
                Some(link) if link.silent => Connection::Skipped,
                Some(_) => Connection::Up,
            };
            let stated = known.filter(|stated| stated.job == self.job).map(|stated| stated.k);
            let k = if node == self.me { Some(self.round.k) } else { stated };
            let done = known.is_some_and(|stated| stated.done) || link.is_some_and(|l| l.done);
            let rows = known.and_then(|stated| stated.rows);
            let left = !self.members.contains(&node);
            Sight { k, silent: self.age(node, now), link: connection, rows, done, left }
        };
        let nodes = (0..self.nodes).map(sight).collect();
        Picture { job: self.job, k: self.round.k, waits: self.waits(now), nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::random::{Purpose, Stream};

    #[test]
    fn statements_are_read_as_they_were_written_and_others_are_refused() {
        let mut refused = 0;
        for seed in 0..300 {
            let mut stream = Stream::new(seed, Purpose::Tuning, 9);
            let nodes = 2 + stream.below(6);
            let node = stream.below(nodes);
            let mut other = || Some((node + 1 + stream.below(nodes - 1)) % nodes);
            let (lacks, neighbour) = (other().filter(|_| seed % 2 == 0), other());
            let silent = neighbour.filter(|_| seed % 3 == 0).map(|node| Silent {
                node,
                since: Duration::from_millis(stream.below(1 << 30) as u64),
                connected: seed % 4 == 0,
            });
            let statement = Statement {
                node,
                number: (stream.below(9) as u64, stream.below(9) as u64),
                job: stream.below(9) as u32,
                k: stream.below(1 << 30) as u64,
                lacks,
                silent,
                rows: (seed % 5 == 0).then_some(seed),
                done: seed % 7 == 0,
            };
            let mut bytes = statement.to_bytes();
            assert_eq!(bytes.len(), CONTENT);
            assert_eq!(Statement::read(&bytes, nodes), Some(statement));
            assert!(Statement::read(&bytes[1..], nodes).is_none());
            let (at, bit) = (stream.below(CONTENT), stream.below(8));
            bytes[at] ^= 1 << bit;
            match Statement::read(&bytes, nodes) {
                None => refused += 1,
                Some(other) => assert_ne!(other, statement, "seed {seed}"),
            }
        }
        assert!(refused > 50, "{refused}");
    }
}
