//! What a wire brings, and what is said in return.

use std::time::Duration;

use super::frame::{Frame, Kind, Refusal, Taken, is_finite};
use super::link::WINDOW;
use super::settings::Note;
use super::status::{END, Status};
use super::{Peers, Place};
use crate::engine::wire::{Event, Wire};
use crate::error::{Error, Kind as Trouble, Result};

impl<W: Wire> Peers<W> {
    /// Takes in what the wire brings.
    pub(super) fn receive(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Stop => self.stopped = true,
            Event::Down(peer) => drop(self.down.insert(peer)),
            Event::Up(peer) => {
                self.down.remove(&peer);
                if let Some(at) = self.link_to(peer) {
                    self.tell(at, true);
                }
            }
            Event::Frame(peer, bytes) => return self.take(peer, bytes),
        }
        Ok(())
    }

    fn link_to(&self, peer: usize) -> Option<usize> {
        self.links.iter().position(|link| link.peer == peer)
    }

    fn take(&mut self, peer: usize, bytes: Vec<u8>) -> Result<()> {
        let taken = Frame::read(&bytes, &self.run);
        let link = self.link_to(peer);
        let refused = match (taken, link) {
            (Err(refusal), _) => Err(refusal),
            (Ok(frame), _) if frame.place.job != self.job => {
                return self.elsewhere(peer, frame.place.job);
            }
            (Ok(_), None) => Err(Refusal::Stranger),
            (Ok(frame), Some(at)) => match frame.kind {
                Kind::Status => match Status::read(frame.payload) {
                    Some(status) => return self.heed(at, frame.place, status),
                    None => Err(Refusal::Shape),
                },
                // Whose result is on disk needs nothing any more, and its neighbours have it all.
                _ if self.done => Ok(()),
                Kind::Notice => self.heed_notice(at, frame.payload, &bytes),
                Kind::Data => self.take_data(at, frame, &bytes),
                Kind::Flood => self.take_flood(at, frame, &bytes),
            },
        };
        if let Err(refusal) = refused {
            self.note(peer, refusal);
        }
        Ok(())
    }

    fn take_data(&mut self, at: usize, frame: Frame, bytes: &[u8]) -> Taken {
        let (scalar, step) = (usize::from(frame.scalar), frame.place.step);
        let whole = [4, 8].contains(&scalar) && frame.payload.len().is_multiple_of(scalar);
        if !whole || frame.payload.len() > self.longest.message {
            return Err(Refusal::Shape);
        }
        if !is_finite(scalar, frame.payload) {
            return Err(Refusal::NotFinite);
        }
        if !self.takes(step)? {
            return Ok(());
        }
        self.links[at].receive(step, bytes.to_vec()).map(|_| ())
    }

    fn take_flood(&mut self, at: usize, frame: Frame, bytes: &[u8]) -> Taken {
        if frame.payload.len() > self.longest.saying {
            return Err(Refusal::Shape);
        }
        let step = frame.place.step;
        if self.takes(step)? && self.floods.learn(step, bytes, self.step)? {
            self.pass_on(at, bytes);
        }
        Ok(())
    }

    /// Sends what came over one link over all others.
    pub(super) fn pass_on(&mut self, at: usize, bytes: &[u8]) {
        for (other, link) in self.links.iter().enumerate() {
            if other != at {
                self.wire.send(link.peer, bytes);
            }
        }
    }

    /// Whether a frame of a step may be needed.
    fn takes(&self, step: u64) -> Taken<bool> {
        if step >= self.step.saturating_add(WINDOW) {
            return Err(Refusal::Future);
        }
        Ok(step >= self.mark)
    }

    /// A neighbour of this run, or of another with another network, is in another one.
    fn elsewhere(&mut self, peer: usize, job: u32) -> Result<()> {
        if job < self.job {
            // It waits for this peer's end, which was before this run.
            self.tell_peer(peer, Status { durable: 0, yours: 0, asks: false, done: false });
            return Ok(());
        }
        let Some(at) = self.link_to(peer) else { return Ok(()) };
        if self.durable != END {
            return Err(self.gone(at));
        }
        // Nobody goes on before all neighbours are durable to the end.
        self.links[at].durable = END;
        self.links[at].done = true;
        Ok(())
    }

    /// What a neighbour says of itself.
    fn heed(&mut self, at: usize, place: Place, status: Status) -> Result<()> {
        if status.yours > self.durable {
            return Err(self.gone(at));
        }
        let link = &mut self.links[at];
        link.step = place.step;
        link.durable = link.durable.max(status.durable);
        link.done |= status.done;
        self.trim();
        if status.asks && !self.just_resent(at, place.step) {
            self.answer(at, place.step);
        }
        Ok(())
    }

    /// Whether a neighbour was sent all that a moment ago: it may have asked several times.
    fn just_resent(&mut self, at: usize, step: u64) -> bool {
        let now = self.wire.now();
        let link = &mut self.links[at];
        let just = |(last, then): (u64, Duration)| {
            last == step && now < then.saturating_add(self.settings.resend / 2)
        };
        let resent = link.resent.is_some_and(just);
        if !resent {
            link.resent = Some((step, now));
        }
        resent
    }

    /// Sends again what a neighbour in a step may lack.
    fn answer(&mut self, at: usize, step: u64) {
        let (now, answers) = (self.step, self.follows(at));
        let link = &self.links[at];
        for (there, frame) in link.again(step) {
            // Who does not decide on a link says by an answer that it has what it answers.
            if !answers || there < now || link.heard(there).is_some() {
                self.wire.send(link.peer, frame);
            }
        }
        for frame in self.floods.again(step, step.saturating_add(WINDOW)) {
            self.wire.send(link.peer, frame);
        }
        self.remind(at, step);
        self.tell(at, false);
    }

    /// Asks all neighbours for what is missing.
    pub(super) fn ask(&mut self) {
        (0..self.links.len()).for_each(|at| self.tell(at, true));
        self.flood_notices();
    }

    /// Asks those at once that are known to be ahead: a peer that came back has much to catch up with.
    pub(super) fn catch_up(&mut self) {
        for at in 0..self.links.len() {
            if self.links[at].is_ahead(self.step) {
                self.tell(at, true);
            }
        }
    }

    /// Tells a neighbour where this peer is, and whether it lacks something.
    pub(super) fn tell(&mut self, at: usize, asks: bool) {
        let (peer, yours) = (self.links[at].peer, self.links[at].durable);
        let status = Status { durable: self.durable, yours, asks, done: self.done };
        if asks {
            self.links[at].asked = self.step.saturating_add(WINDOW);
        }
        self.tell_peer(peer, status);
    }

    fn tell_peer(&mut self, peer: usize, status: Status) {
        let frame = self.frame(Kind::Status, 1, &status.to_bytes());
        self.wire.send(peer, &frame);
    }

    /// Forgets what neither this peer nor its neighbours will need again.
    pub(super) fn trim(&mut self) {
        let mark = self.mark;
        self.links.iter_mut().for_each(|link| link.trim(mark));
        let least = self.links.iter().map(|link| link.durable).min().unwrap_or(END);
        self.floods.trim(least.min(mark));
    }

    /// Says once that frames of a peer are refused, and why.
    pub(super) fn note(&mut self, peer: usize, why: Refusal) {
        if self.noted.insert((peer, why)) {
            (self.told)(Note::Refused { peer, why });
        }
    }

    fn gone(&self, at: usize) -> Error {
        let peer = self.links[at].peer;
        let message = format!(
            "node {peer} no longer has what this node needs: it was told that node {} had kept it",
            self.me
        );
        Error::new(Trouble::Peer, "peers/gone", message).hint(
            "this node's checkpoints are lost or are not its newest: put them back, or let all \
             nodes start anew with `--resume never`",
        )
    }
}
