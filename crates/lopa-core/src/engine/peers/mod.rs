//! Independent peers: one node per process, on separate machines, over any [`Wire`].
//!
//! **Steps.** All peers make the same calls ([`Transport::exchange`], [`Transport::all`]) in the
//! same order. A call's index in its run is its *step*, which identifies a frame. An exchange sends
//! each neighbour a message; bytes for all are broadcast: every peer relays those that are new to
//! it.
//!
//! **What is kept.** A peer is *durable* up to the step that its last checkpoint resumes from. It
//! keeps each frame sent to a neighbour until the neighbour is durable beyond that step, and each
//! frame received until it is itself durable beyond it. Checkpoints contain both logs. Hence a
//! restarted peer replays from its own checkpoint with messages that its neighbours send again;
//! they drop duplicates; no other peer rolls back, however many peers crash at once.
//!
//! **Retransmission.** A wire may lose, duplicate, delay and reorder frames. There are no
//! acknowledgements: a peer that lacks a frame requests it, at intervals and whenever a connection
//! opens, by a status that names its step. The neighbour then resends the frames it keeps from that
//! step on, at most [`link::WINDOW`] steps. A status also contains the step up to which its sender
//! is durable, so that the receiver can discard earlier frames.
//!
//! **Silent neighbours.** A peer waits until the deadline, stops as soon as a connection is lost, or
//! skips the link in that exchange: see [`Policy`]. Both ends skip a link or neither does; `decide.rs`
//! has the protocol.
//!
//! **Members that leave.** A peer that is silent for long may be left out, if more than half agree on it, and may come
//! back: see `chapters.rs`.
//!
//! **Progress.** At intervals peers state how far they are and which neighbour is silent, so that each
//! can name the peer for which a run waits: `progress.rs`.
//!
//! **Trust.** The wire authenticates neighbours; a neighbour's statements about itself affect only
//! its own link. Frames that nodes pass on are signed by their authors, and are accepted only with
//! that signature. A frame is held until its step is reached, and is used, relayed and saved only
//! if it has the kind and shape of this peer's own frame there. A neighbour's claims about this
//! peer's past are checked against this peer's own records. Any other frame is refused, its sender
//! or its author is named once per reason, and the peer keeps waiting for a valid one, until the
//! deadline.
//!
//! **Checkpoints.** [`Independent::mark`] sets the step that the next checkpoint resumes from,
//! [`Independent::save`] returns the logs to store with it. Only when it is on disk
//! ([`Independent::kept`]) does the peer announce that it is durable and discard frames that
//! neither it nor a neighbour needs.
//!
//! **The end.** A peer that has everything its result needs on disk is durable up to [`status::END`]
//! and waits until all its neighbours are, or all members where some may be left out; only then does it begin the next run. After the last run
//! it stays, at most until the deadline, to answer neighbours whose results are not on disk yet.

mod agreement;
mod broadcast;
mod chapters;
mod decide;
mod decisions;
mod ended;
mod forward;
mod frame;
mod journal;
mod lifecycle;
mod link;
mod progress;
mod receive;
mod settings;
mod status;

use super::refusal::Refusal;
pub use chapters::NEXT as NEXT_CHAPTER;
pub(crate) use frame::is_finite;
pub use frame::{Frame, Kind as FrameKind, Place};
pub use journal::{FileJournal, Journal};
pub use progress::{Cause, Connection, Picture, Sight, Waits};
pub use settings::{Note, Policy, Settings};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::transport::{Accepts, Independent, Limits, Messages, Parcel, Round, Transport};
use super::wire::Wire;
use crate::error::{Error, Kind, Result};
use crate::store::bytes::Hash;
use broadcast::{Broadcasts, Held, broadcast, said};
use chapters::Chapters;
use ended::Ended;
use forward::Forwarded;
use frame::{FrameResult, run_id, signed};
use link::Link;
use progress::Progress;

/// A node of a run whose other nodes are peers behind a wire.
pub struct Peers<W: Wire> {
    wire: W,
    me: usize,
    nodes: usize,
    members: Vec<usize>, // of this run, in order: a rank is an index in them
    chapters: Chapters,
    run: [u8; 16],
    settings: Settings,
    notify: Box<dyn FnMut(Note) + Send>,
    refused: BTreeSet<(usize, Refusal)>, // refusals already reported
    down: BTreeSet<usize>,               // peers without a connection
    job: u32,
    step: u64,    // of the current call
    mark: u64,    // the step that the next checkpoint resumes from
    durable: u64, // the step that the last checkpoint resumes from, or the end
    links: Vec<Link>,
    broadcasts: Broadcasts,
    limits: Limits,
    round: Round,
    scalar: usize,                                  // bytes per scalar in this exchange
    lengths: Vec<usize>,                            // of the messages of this exchange, by link
    relayed: BTreeMap<(usize, usize), u64>,         // the last notice relayed for each link
    forwarded: BTreeMap<(usize, usize), Forwarded>, // by sender and receiver
    start: u64, // of this node in the run, where links may be skipped: each restart adds 1
    numbered: u64, // frames since then that others relay once each
    ended: Ended,
    past: (u32, Vec<Vec<u8>>), // the previous run, and all nodes' statements that they ended it
    answered: BTreeMap<(usize, bool), (u64, Duration)>, // for which step and when, by peer and path
    settling: bool,            // whether this is an exchange
    skip_at: Duration,         // when links to silent neighbours are skipped
    probe_at: Duration,        // when silent neighbours are asked for a reply
    done: bool,                // whether the run's result is on disk
    stopped: bool,
    progress: Progress,
}

impl<W: Wire> Peers<W> {
    /// Node `me` out of `nodes`, in the run identified by `run` (see
    /// `Experiment::identity` of the crate `lopa`); `notify` receives notes for the user.
    pub fn new(
        wire: W,
        (me, nodes): (usize, usize),
        run: &Hash,
        settings: Settings,
        notify: Box<dyn FnMut(Note) + Send>,
    ) -> Peers<W> {
        Peers {
            wire,
            me,
            nodes,
            members: (0..nodes).collect(),
            chapters: Chapters::new(nodes, run_id(run)),
            run: run_id(run),
            settings,
            notify,
            refused: BTreeSet::new(),
            down: BTreeSet::new(),
            job: 0,
            step: 0,
            mark: 0,
            durable: 0,
            links: Vec::new(),
            broadcasts: Broadcasts::new(nodes, &[]),
            limits: Limits::default(),
            round: Round::default(),
            scalar: 0,
            lengths: Vec::new(),
            relayed: BTreeMap::new(),
            forwarded: BTreeMap::new(),
            start: 0,
            numbered: 0,
            ended: Ended::default(),
            past: (0, Vec::new()),
            answered: BTreeMap::new(),
            settling: false,
            skip_at: Duration::ZERO,
            probe_at: Duration::ZERO,
            done: false,
            stopped: false,
            progress: Progress::default(),
        }
    }

    /// Bytes of frames kept for neighbours and for a restart.
    pub fn bytes(&self) -> usize {
        self.broadcasts.bytes() + self.links.iter().map(Link::bytes).sum::<usize>()
    }

    /// The rank of a node, if it is a member.
    fn rank_of(&self, node: usize) -> Option<usize> {
        self.members.iter().position(|&member| member == node)
    }

    fn place(&self) -> Place {
        let Round { k, e } = self.round;
        Place { job: self.job, step: self.step, k, e: e as u32 }
    }

    fn frame(&self, kind: FrameKind, scalar: usize, payload: &[u8]) -> Vec<u8> {
        let frame = Frame { kind, scalar: scalar as u8, place: self.place(), payload };
        frame.to_bytes(&self.run, |bytes| self.wire.sign(bytes))
    }

    /// Whether a node signed a frame.
    fn check_author(&self, node: usize, bytes: &[u8]) -> FrameResult {
        let by = |(what, signature)| self.wire.verify(node, what, signature);
        signed(bytes).is_some_and(by).then_some(()).ok_or(Refusal::Signature)
    }

    /// Handles events until `missing` names no node.
    fn wait(&mut self, missing: impl Fn(&mut Self) -> Result<Option<usize>>) -> Result<()> {
        self.catch_up();
        let deadline = self.wire.now().saturating_add(self.settings.deadline);
        let mut next_request = self.wire.now() + self.settings.resend;
        loop {
            let missing = missing(self)?;
            self.note_waiting(missing);
            self.attend(missing.is_some())?;
            let peer = match missing {
                Some(peer) => peer,
                None if !self.is_bound() => return Ok(()),
                None => self.awaited(),
            };
            self.send_progress();
            if self.stopped {
                return Err(stopped());
            }
            if matches!(self.settings.policy, Policy::Stop)
                && let Some(gone) = self.links.iter().find(|link| self.is_lost(link))
            {
                return Err(self.lost(gone.peer, "the connection is lost"));
            }
            let now = self.wire.now();
            if now >= deadline {
                return Err(self.lost(peer, "the deadline has passed"));
            }
            if now >= next_request {
                self.request_all();
                next_request = now + self.settings.resend;
            }
            let mut until = next_request.min(deadline);
            if self.skip_at > now {
                until = until.min(self.skip_at);
            }
            if let Some(event) = self.wire.next(until) {
                self.receive(event);
            }
        }
    }

    /// Whether the connection to a neighbour that is still needed is lost.
    fn is_lost(&self, link: &Link) -> bool {
        self.down.contains(&link.peer) && !link.ended()
    }

    fn lost(&self, peer: usize, why: &str) -> Error {
        if let Some(claims) = self.links.iter().find(|link| link.claimed == Some(self.step)) {
            return self.gone(claims.peer);
        }
        let Round { k, .. } = self.round;
        let refused = self.refused.iter().filter(|(of, _)| *of == peer);
        let refused: Vec<_> = refused.map(|(_, why)| why.text()).collect();
        let refused = match refused.is_empty() {
            true => String::new(),
            false => format!("; frames of it were refused: {}", refused.join(", ")),
        };
        let obstacle = self.chapters.agreement.obstacle.as_ref();
        let obstacle = obstacle.map_or(String::new(), |why| format!("; {why}"));
        let message = format!("node {peer} is missing in iteration {k}: {why}{refused}{obstacle}");
        Error::new(Kind::Peer, "peers/lost", message)
            .hint("restart it, then this node with the same command: the run resumes from here")
    }

    /// Sends this node's message to its neighbours.
    fn send_all(&mut self, out: &[Parcel]) -> Result<()> {
        for Parcel { rank, bytes, finite } in out {
            let kind = if *finite { FrameKind::Data } else { FrameKind::Overflow };
            let frame = self.frame(kind, self.scalar, bytes);
            let peer = self.members[*rank];
            let at = self.links.iter().position(|link| link.peer == peer);
            let at = at.ok_or_else(|| {
                self.replay_error("a message is addressed to a node that is not a neighbour")
            })?;
            // A follower sends only in reply, so that its message acknowledges the other end's.
            let replies = self.follows(at);
            match self.links[at].send(self.step, frame) {
                Ok(Some(frame)) if !replies => self.wire.send(peer, frame),
                Ok(_) => continue,
                Err(_) => {
                    return Err(self.replay_error("a message differs from the one sent before"));
                }
            }
            if self.links[at].bypassed && self.must_arrive(at, self.step) {
                self.forward_sent(at);
            }
        }
        Ok(())
    }

    /// Checks the broadcasts held of this step, and relays those that are accepted.
    fn admit(&mut self, accepts: Accepts) {
        for Held { author, from, frame } in self.broadcasts.take(self.step) {
            // Its own broadcast is already stored.
            let Some(rank) = self.rank_of(author) else { continue };
            match accepts(rank, said(&frame)) {
                _ if author == self.me => {}
                Ok(()) => {
                    let at = self.links.iter().position(|link| link.peer == from);
                    self.relay(at, &frame);
                    self.broadcasts.accept(self.step, author, frame);
                }
                Err(why) => self.report(author, why),
            }
        }
    }

    /// Moves to the next step; frames still held for this one are discarded.
    fn pass_step(&mut self) {
        let step = self.step;
        for at in 0..self.links.len() {
            // A link that is skipped may have delivered too late.
            if self.links[at].discard(step) && self.links[at].idle {
                self.report(self.links[at].peer, Refusal::Step);
            }
        }
        for held in self.broadcasts.take(step) {
            self.report(held.author, Refusal::Step);
        }
        self.step += 1;
        self.send_progress();
    }

    /// The error for a state that is impossible if all peers run the same program on the same kind
    /// of machine.
    fn replay_error(&self, what: &str) -> Error {
        let message = format!("node {}, iteration {}: {what}", self.me, self.round.k);
        Error::new(Kind::Run, "peers/replay", message)
            .hint("resume a node with the same build of lopa on the same kind of machine")
    }
}

/// The error of a node that was asked to stop.
pub fn stopped() -> Error {
    Error::new(Kind::Peer, "peers/stopped", "this node was asked to stop")
        .hint("the same command resumes from here")
}

impl<W: Wire> Transport for Peers<W> {
    fn rank(&self) -> usize {
        self.rank_of(self.me).unwrap_or(0)
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn secret(&self, rank: usize) -> Option<[u8; 32]> {
        self.wire.secret(self.members[rank])
    }

    fn exchange(
        &mut self,
        round: Round,
        scalar: usize,
        out: &[Parcel],
        into: &mut [Parcel],
        accepts: Messages,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        (self.round, self.scalar) = (round, scalar);
        // Not every link is used in every round.
        for link in &mut self.links {
            link.idle = into.iter().all(|parcel| self.members[parcel.rank] != link.peer);
        }
        self.send_all(out)?;
        meanwhile();
        self.lengths.clear();
        let members = &self.members;
        let length = |link: &Link| into.iter().find(|from| members[from.rank] == link.peer);
        let length = |link: &Link| length(link).map_or(0, |parcel| parcel.bytes.len());
        self.lengths.extend(self.links.iter().map(length));
        self.settle(accepts)?;
        for parcel in into {
            self.fetch(parcel, out);
        }
        self.pass_step();
        Ok(())
    }

    fn all(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>> {
        let step = self.step;
        self.links.iter_mut().for_each(|link| link.idle = false);
        let frame = self.frame(FrameKind::Broadcast, 1, &broadcast(self.me, ours));
        if self.broadcasts.get(step, self.me).is_some_and(|before| *before != frame) {
            return Err(self.replay_error("a broadcast differs from the one sent before"));
        }
        self.broadcasts.recheck(step);
        self.relay(None, &frame);
        self.broadcasts.accept(step, self.me, frame);
        self.wait(|peers| {
            peers.admit(accepts);
            Ok(peers.broadcasts.missing(step))
        })?;
        // No message is expected here, and no honest neighbour sends one.
        self.links.iter_mut().for_each(|link| link.idle = true);
        self.pass_step();
        Ok(self.broadcasts.contents(step))
    }

    fn gather(&mut self, ours: &[u8], accepts: Accepts) -> Result<Vec<Vec<u8>>> {
        let all = self.all(ours, accepts)?;
        Ok(if self.rank() == 0 { all } else { Vec::new() })
    }

    fn independent(&mut self) -> Option<&mut dyn Independent> {
        Some(self)
    }
}
