//! Handles the events of a wire, and replies to them.

use super::broadcast::Held;
use super::frame::{AUTHOR, Frame, FrameResult, Kind, author, is_finite};
use super::link::WINDOW;
use super::settings::Note;
use super::status::{END, Status};
use super::{Peers, Place};
use crate::engine::refusal::Refusal;
use crate::engine::wire::{Event, Wire};
use crate::error::{Error, Kind as ErrorKind};

/// What a peer answers to one that is in an earlier run.
const ANSWER: Status =
    Status { durable: 0, yours: 0, asks: false, done: false, knows: false, settled: false };

fn is_answer(frame: Frame) -> bool {
    frame.kind == Kind::Status && Status::read(frame.payload) == Some(ANSWER)
}

impl<W: Wire> Peers<W> {
    /// Handles an event of the wire. No frame ends a peer.
    pub(super) fn receive(&mut self, event: Event) {
        match event {
            Event::Stop => self.stopped = true,
            Event::Down(peer) => drop(self.down.insert(peer)),
            Event::Up(peer) => {
                self.down.remove(&peer);
                if let Some(at) = self.link_to(peer) {
                    self.send_status(at, true);
                }
            }
            Event::Frame(peer, bytes) => self.on_frame(peer, &bytes),
        }
    }

    pub(super) fn link_to(&self, peer: usize) -> Option<usize> {
        self.links.iter().position(|link| link.peer == peer)
    }

    fn on_frame(&mut self, peer: usize, bytes: &[u8]) {
        let frame = Frame::read(bytes, &self.run);
        let link = self.link_to(peer);
        if self.leaves() && peer < self.nodes {
            if let Ok(frame) = Frame::read(bytes, &self.first_run())
                && frame.kind == Kind::Statement
            {
                if let Some(at) = link {
                    self.links[at].heard = self.wire.now();
                }
                if let Err(refusal) = self.on_statement(peer, frame.payload, bytes) {
                    self.report(peer, refusal);
                }
                return;
            }
            match self.on_over(bytes) {
                Ok(false) => {}
                Ok(true) => return,
                Err(refusal) => return self.report(peer, refusal),
            }
            if frame == Err(Refusal::OtherRun) {
                return self.on_other_chapter(peer, &bytes[8..24]);
            }
        }
        if let (Ok(_), Some(at)) = (frame, link) {
            self.links[at].heard = self.wire.now();
            self.links[at].bypassed = false;
        }
        let handled = match (frame, link) {
            (Err(refusal), _) => Err(refusal),
            (Ok(frame), _) if frame.place.job != self.job && peer < self.nodes => {
                self.on_other_job(peer, frame.place.job);
                Ok(())
            }
            // A late answer to what this peer asked in an earlier run, in which it was a neighbour: it says nothing.
            (Ok(frame), None) if peer < self.nodes && is_answer(frame) => Ok(()),
            // A node that was left out has no links; the sender may not know that it was.
            (Ok(_), None) if peer < self.nodes && !self.is_member() => {
                self.on_other_chapter(peer, &bytes[8..24]);
                Ok(())
            }
            (Ok(_), None) => Err(Refusal::Stranger),
            (Ok(frame), Some(at)) => match frame.kind {
                Kind::Status => match Status::read(frame.payload) {
                    Some(status) => {
                        self.on_status(at, frame.place, status, false);
                        Ok(())
                    }
                    None => Err(Refusal::Shape),
                },
                Kind::Ended => self.on_ended(at, frame.payload, bytes),
                Kind::Forwarded => self.on_forwarded(at, frame.payload, bytes),
                Kind::Progress => self.on_progress(at, frame.payload),
                Kind::Statement => Err(Refusal::Kind),
                // This peer has its result, and its neighbours have everything they need.
                _ if self.done => Ok(()),
                Kind::Notice => self.on_notice(at, frame.payload, bytes),
                Kind::Data | Kind::Overflow => self.on_data(at, frame, bytes, false),
                Kind::Broadcast => self.on_broadcast(at, frame, bytes),
            },
        };
        if let Err(refusal) = handled {
            self.report(peer, refusal);
        }
    }

    /// Handles a neighbour's message, which came over the link or was `forwarded` by other nodes.
    pub(super) fn on_data(
        &mut self,
        at: usize,
        frame: Frame,
        bytes: &[u8],
        forwarded: bool,
    ) -> FrameResult {
        let (scalar, step) = (usize::from(frame.scalar), frame.place.step);
        let whole = [1, 4, 8].contains(&scalar) && frame.payload.len().is_multiple_of(scalar);
        if !whole || frame.payload.len() > self.limits.message {
            return Err(Refusal::Shape);
        }
        // A diverging node marks its frames: an unmarked value that is not finite is refused.
        if frame.kind == Kind::Data && !is_finite(scalar, frame.payload) {
            return Err(Refusal::NotFinite);
        }
        if !self.needs(step)? {
            return Ok(());
        }
        self.links[at].silent &= forwarded;
        self.links[at].receive(step, bytes, self.step)
    }

    fn on_broadcast(&mut self, at: usize, frame: Frame, bytes: &[u8]) -> FrameResult {
        if frame.payload.len() > self.limits.broadcast.saturating_add(AUTHOR) {
            return Err(Refusal::Shape);
        }
        let (author, _) = author(frame.payload, self.nodes).ok_or(Refusal::Shape)?;
        self.rank_of(author).ok_or(Refusal::Stranger)?;
        let step = frame.place.step;
        let known = self.broadcasts.get(step, author);
        if !self.needs(step)? || known.is_some_and(|known| known == bytes) {
            return Ok(());
        }
        let differs = known.is_some();
        self.check_author(author, bytes)?;
        if differs {
            self.report(author, Refusal::Equivocation);
        } else if step < self.step {
            self.report(author, Refusal::Step);
        } else {
            let from = self.links[at].peer;
            let held = Held { author, from, frame: bytes.to_vec() };
            self.broadcasts.hold(step, held, self.step);
        }
        Ok(())
    }

    /// Sends a frame over all links but one.
    pub(super) fn relay(&mut self, but: Option<usize>, bytes: &[u8]) {
        for (at, link) in self.links.iter().enumerate() {
            if Some(at) != but {
                self.wire.send(link.peer, bytes);
            }
        }
    }

    /// Whether frames of a step may still be needed; an error if it is too far ahead.
    fn needs(&self, step: u64) -> FrameResult<bool> {
        if step >= self.step.saturating_add(WINDOW) {
            return Err(Refusal::Future);
        }
        Ok(step >= self.mark)
    }

    /// Handles a peer that is in another run of the experiment.
    fn on_other_job(&mut self, peer: usize, job: u32) {
        if job < self.job {
            // It waits for this peer to end that run; a status from a later run shows that it has.
            if self.may_answer((peer, false), 0) {
                let status = self.frame(Kind::Status, 1, &ANSWER.to_bytes());
                self.wire.send(peer, &status);
                self.send_past(peer, job);
            }
            return;
        }
        let Some(at) = self.link_to(peer) else { return };
        // A peer begins the next run only when all its neighbours are durable to the end.
        if self.durable != END {
            return self.dispute(at);
        }
        self.links[at].durable = END;
        let link = &mut self.links[at];
        (link.done, link.knows, link.settled) = (true, true, true);
    }

    /// Informs a peer that is still in an earlier run which nodes have ended it.
    fn send_past(&mut self, peer: usize, job: u32) {
        if !self.skips() {
            return;
        }
        let own = self.word(job, true);
        self.wire.send(peer, &own);
        if self.past.0 == job {
            for frame in &self.past.1 {
                self.wire.send(peer, frame);
            }
        }
    }

    /// Refuses a neighbour's claim about this peer's past. If it is true, this peer's checkpoints
    /// are lost, and it waits in vain.
    fn dispute(&mut self, at: usize) {
        self.links[at].claimed = Some(self.step);
        self.report(self.links[at].peer, Refusal::Past);
    }

    /// Handles a neighbour's status, which came over the link or was `forwarded` by other nodes.
    pub(super) fn on_status(&mut self, at: usize, place: Place, status: Status, forwarded: bool) {
        if status.yours > self.durable {
            return self.dispute(at);
        }
        let link = &mut self.links[at];
        link.step = place.step;
        link.durable = link.durable.max(status.durable);
        link.done |= status.done;
        link.knows |= status.knows;
        link.settled |= status.settled;
        // An answer: frames pass in both directions.
        link.silent &= status.asks || forwarded;
        let peer = link.peer;
        self.trim();
        // A neighbour that is done stays until it receives that this peer is.
        let stays = self.done && status.done && !status.settled;
        if (status.asks || stays) && self.may_answer((peer, forwarded), place.step) {
            match status.asks {
                true if forwarded => self.resend_forwarded(at, place.step),
                true => self.resend(at, place.step),
                false => self.send_status(at, false),
            }
        }
    }

    /// Whether a peer may be answered now: it was not answered just before, or has advanced so far
    /// that it needs further frames. More requests do not get more answers.
    pub(super) fn may_answer(&mut self, peer: (usize, bool), step: u64) -> bool {
        let now = self.wire.now();
        let may = self.answered.get(&peer).is_none_or(|&(last, then)| {
            step >= last.saturating_add(WINDOW)
                || now >= then.saturating_add(self.settings.resend / 2)
        });
        if may {
            self.answered.insert(peer, (step, now));
        }
        may
    }

    /// Resends the frames that a neighbour at a step may lack.
    fn resend(&mut self, at: usize, step: u64) {
        let (now, follows) = (self.step, self.follows(at));
        let link = &self.links[at];
        for (sent, frame) in link.sent_since(step) {
            // A follower's message acknowledges the decider's.
            if !follows || sent < now || link.received(sent).is_some() {
                self.wire.send(link.peer, frame);
            }
        }
        for frame in self.broadcasts.frames(step, step.saturating_add(WINDOW)) {
            self.wire.send(link.peer, frame);
        }
        self.send_notice(at, step);
        self.send_status(at, false);
    }

    /// Requests missing frames from all neighbours.
    pub(super) fn request_all(&mut self) {
        (0..self.links.len()).for_each(|at| self.send_status(at, true));
        self.broadcast_notices();
        self.request_forwarded();
    }

    /// Sends requests at once to neighbours that are known to be ahead, as after a restart.
    pub(super) fn catch_up(&mut self) {
        for at in 0..self.links.len() {
            if self.links[at].is_ahead(self.step) {
                self.send_status(at, true);
            }
        }
    }

    /// Sends a neighbour this peer's status; `asks` if it lacks something.
    pub(super) fn send_status(&mut self, at: usize, asks: bool) {
        let (peer, frame) = (self.links[at].peer, self.status_frame(at, asks));
        if asks {
            self.links[at].requested = self.step.saturating_add(WINDOW);
        }
        self.wire.send(peer, &frame);
        self.send_ended(peer);
    }

    /// This peer's status for a neighbour.
    pub(super) fn status_frame(&self, at: usize, asks: bool) -> Vec<u8> {
        let yours = self.links[at].durable;
        let (knows, settled) = (self.knows(at), self.is_settled_with(at));
        let status = Status { durable: self.durable, yours, asks, done: self.done, knows, settled };
        self.frame(Kind::Status, 1, &status.to_bytes())
    }

    /// Whether this peer has received that a neighbour's result is on disk; where links may be
    /// skipped, that all results are: a neighbour leaves when all nodes have all statements.
    fn knows(&self, at: usize) -> bool {
        if self.skips() { self.not_ended(true).is_none() } else { self.links[at].done }
    }

    /// Whether this peer needs nothing of a neighbour any more.
    pub(super) fn is_settled_with(&self, at: usize) -> bool {
        self.done && self.knows(at) && self.links[at].knows
    }

    /// Discards frames that neither this peer nor its neighbours need again.
    pub(super) fn trim(&mut self) {
        let mark = self.mark;
        self.links.iter_mut().for_each(|link| link.trim(mark));
        let neighbours = self.links.iter().map(|link| link.durable).min().unwrap_or(END);
        self.broadcasts.trim(neighbours.min(mark));
    }

    /// Reports a refused frame, once per peer and reason.
    pub(super) fn report(&mut self, peer: usize, why: Refusal) {
        if self.refused.insert((peer, why)) {
            (self.notify)(Note::Refused { peer, why });
        }
    }

    /// The error of a peer that waited in vain, with the reason from its neighbour.
    pub(super) fn gone(&self, peer: usize) -> Error {
        let message = format!(
            "node {peer} says that it has discarded messages that node {} needs and had reported as \
             saved",
            self.me
        );
        Error::new(ErrorKind::Peer, "peers/gone", message).hint(
            "if this node's checkpoints are lost or outdated, restore them, or restart all nodes with \
             `--resume never`; if not, that node is wrong",
        )
    }
}
