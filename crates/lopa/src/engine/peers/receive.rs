//! Handles what a wire delivers, and replies to it.

use std::time::Duration;

use super::frame::{Frame, FrameResult, Kind, Refusal, is_finite};
use super::link::{Link, WINDOW};
use super::settings::Note;
use super::status::{END, Status};
use super::{Peers, Place};
use crate::engine::wire::{Event, Wire};
use crate::error::{Error, Kind as ErrorKind, Result};

impl<W: Wire> Peers<W> {
    /// Handles an event of the wire.
    pub(super) fn receive(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Stop => self.stopped = true,
            Event::Down(peer) => drop(self.down.insert(peer)),
            Event::Up(peer) => {
                self.down.remove(&peer);
                if let Some(at) = self.link_to(peer) {
                    self.send_status(at, true);
                }
            }
            Event::Frame(peer, bytes) => return self.on_frame(peer, bytes),
        }
        Ok(())
    }

    fn link_to(&self, peer: usize) -> Option<usize> {
        self.links.iter().position(|link| link.peer == peer)
    }

    fn on_frame(&mut self, peer: usize, bytes: Vec<u8>) -> Result<()> {
        let frame = Frame::read(&bytes, &self.run);
        let link = self.link_to(peer);
        if let (Ok(_), Some(at)) = (frame, link) {
            self.links[at].heard = self.wire.now();
        }
        let handled = match (frame, link) {
            (Err(refusal), _) => Err(refusal),
            (Ok(frame), _) if frame.place.job != self.job && peer < self.nodes => {
                return self.on_other_job(peer, frame.place.job);
            }
            (Ok(_), None) => Err(Refusal::Stranger),
            (Ok(frame), Some(at)) => match frame.kind {
                Kind::Status => match Status::read(frame.payload) {
                    Some(status) => return self.on_status(at, frame.place, status),
                    None => Err(Refusal::Shape),
                },
                Kind::Ended => self.on_ended(at, frame.payload),
                // This peer has its result, and its neighbours have everything they need.
                _ if self.done => Ok(()),
                Kind::Notice => self.on_notice(at, frame.payload, &bytes),
                Kind::Data | Kind::Overflow => self.on_data(at, frame, &bytes),
                Kind::Broadcast => self.on_broadcast(at, frame, &bytes),
            },
        };
        if let Err(refusal) = handled {
            self.report(peer, refusal);
        }
        Ok(())
    }

    fn on_data(&mut self, at: usize, frame: Frame, bytes: &[u8]) -> FrameResult {
        let (scalar, step) = (usize::from(frame.scalar), frame.place.step);
        let whole = [1, 4, 8].contains(&scalar) && frame.payload.len().is_multiple_of(scalar);
        if !whole || frame.payload.len() > self.limits.message {
            return Err(Refusal::Shape);
        }
        // Whoever diverges says so: a value that is not finite by mistake disturbs nobody.
        if frame.kind == Kind::Data && !is_finite(scalar, frame.payload) {
            return Err(Refusal::NotFinite);
        }
        if !self.needs(step)? {
            return Ok(());
        }
        self.links[at].silent = false;
        self.links[at].receive(step, bytes.to_vec()).map(|_| ())
    }

    fn on_broadcast(&mut self, at: usize, frame: Frame, bytes: &[u8]) -> FrameResult {
        if frame.payload.len() > self.limits.broadcast {
            return Err(Refusal::Shape);
        }
        let step = frame.place.step;
        if self.needs(step)? && self.broadcasts.insert(step, bytes, self.step)? {
            self.relay(at, bytes);
        }
        Ok(())
    }

    /// Sends what arrived over one link over all others.
    pub(super) fn relay(&mut self, at: usize, bytes: &[u8]) {
        for (other, link) in self.links.iter().enumerate() {
            if other != at {
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
    fn on_other_job(&mut self, peer: usize, job: u32) -> Result<()> {
        if job < self.job {
            // It waits for this peer to end that run; a status from a later run says so.
            self.send_status_to(peer, Status::default());
            return Ok(());
        }
        let Some(at) = self.link_to(peer) else { return Ok(()) };
        if self.durable != END {
            return Err(self.gone(at));
        }
        // A peer begins the next run only when all its neighbours are durable to the end.
        self.links[at].durable = END;
        (self.links[at].done, self.links[at].knows) = (true, true);
        if self.skips() {
            // Then all nodes are.
            (0..self.nodes).for_each(|node| self.ended.add(node, true));
            self.note_ended();
        }
        Ok(())
    }

    /// Handles a neighbour's status.
    fn on_status(&mut self, at: usize, place: Place, status: Status) -> Result<()> {
        if status.yours > self.durable {
            return Err(self.gone(at));
        }
        let skips = self.skips();
        let link = &mut self.links[at];
        link.step = place.step;
        link.durable = link.durable.max(status.durable);
        link.done |= status.done;
        // Where links may be skipped, `ended.rs` tells who knows of everybody.
        link.knows |= status.knows && !skips;
        // An answer: frames pass in both directions.
        link.silent &= status.asks;
        if link.ended() {
            self.ended.add(link.peer, link.done);
        }
        self.trim();
        if status.asks && !self.resent_recently(at, place.step) {
            self.resend(at, place.step);
        } else if self.done && status.done && !status.knows {
            // It stays until it hears that.
            self.send_status(at, false);
        }
        Ok(())
    }

    /// Whether a neighbour was just sent all that: it may have asked several times.
    fn resent_recently(&mut self, at: usize, step: u64) -> bool {
        let now = self.wire.now();
        let link = &mut self.links[at];
        let recent = |(last, then): (u64, Duration)| {
            last == step && now < then.saturating_add(self.settings.resend / 2)
        };
        let resent = link.resent.is_some_and(recent);
        if !resent {
            link.resent = Some((step, now));
        }
        resent
    }

    /// Sends again what a neighbour at a step may lack.
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

    /// Asks all neighbours for what is missing.
    pub(super) fn request_all(&mut self) {
        (0..self.links.len()).for_each(|at| self.send_status(at, true));
        self.broadcast_notices();
    }

    /// Asks neighbours at once that are known to be ahead, as they are after a restart.
    pub(super) fn catch_up(&mut self) {
        for at in 0..self.links.len() {
            if self.links[at].is_ahead(self.step) {
                self.send_status(at, true);
            }
        }
    }

    /// Sends a neighbour this peer's status; `asks` if it lacks something.
    pub(super) fn send_status(&mut self, at: usize, asks: bool) {
        let Link { peer, durable: yours, done: knows, .. } = self.links[at];
        let status = Status { durable: self.durable, yours, asks, done: self.done, knows };
        if asks {
            self.links[at].requested = self.step.saturating_add(WINDOW);
        }
        self.send_status_to(peer, status);
        self.send_ended(peer);
    }

    fn send_status_to(&mut self, peer: usize, status: Status) {
        let frame = self.frame(Kind::Status, 1, &status.to_bytes());
        self.wire.send(peer, &frame);
    }

    /// Discards what neither this peer nor its neighbours need again.
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

    fn gone(&self, at: usize) -> Error {
        let peer = self.links[at].peer;
        let message = format!(
            "node {peer} has discarded messages that node {} needs and had reported as saved",
            self.me
        );
        Error::new(ErrorKind::Peer, "peers/gone", message).hint(
            "this node's checkpoints are lost or outdated: restore them, or restart all nodes with \
             `--resume never`",
        )
    }
}
