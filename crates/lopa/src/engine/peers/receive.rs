//! What a wire brings, and what is said in return.

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
        let at = |peers: &Self, peer| peers.links.iter().position(|link| link.peer == peer);
        match event {
            Event::Stop => self.stopped = true,
            Event::Down(peer) => {
                if let Some(at) = at(self, peer) {
                    self.links[at].lost = true;
                }
            }
            Event::Up(peer) => {
                if let Some(at) = at(self, peer) {
                    self.links[at].lost = false;
                    self.tell(at, true);
                }
            }
            Event::Frame(peer, bytes) => {
                let Some(at) = at(self, peer) else {
                    self.note(peer, Refusal::Stranger);
                    return Ok(());
                };
                return self.take(at, bytes);
            }
        }
        Ok(())
    }

    fn take(&mut self, at: usize, bytes: Vec<u8>) -> Result<()> {
        let peer = self.links[at].peer;
        let refused = match Frame::read(&bytes, &self.run) {
            Err(refusal) => Some(refusal),
            Ok(frame) if frame.kind == Kind::Status => match Status::read(frame.payload) {
                Some(status) => return self.heed(at, frame.place, status),
                None => Some(Refusal::Shape),
            },
            Ok(frame) if frame.place.job != self.job => {
                return self.elsewhere(at, frame.place.job);
            }
            Ok(frame) => match frame.kind {
                Kind::Notice => self.heed_notice(at, frame.payload, &bytes).err(),
                Kind::Data | Kind::Status => self.take_data(at, frame, &bytes).err(),
                Kind::Flood => self.take_flood(at, frame, &bytes).err(),
            },
        };
        if let Some(refusal) = refused {
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

    /// A neighbour is in another run of the experiment.
    fn elsewhere(&mut self, at: usize, job: u32) -> Result<()> {
        if job < self.job {
            self.tell(at, false);
            return Ok(());
        }
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
        if place.job != self.job {
            return self.elsewhere(at, place.job);
        }
        if status.yours > self.durable {
            return Err(self.gone(at));
        }
        let link = &mut self.links[at];
        link.step = place.step;
        link.durable = link.durable.max(status.durable);
        link.done |= status.done;
        self.trim();
        if status.asks {
            self.answer(at, place.step);
        }
        Ok(())
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

    /// Tells a neighbour where this peer is, and whether it lacks something.
    pub(super) fn tell(&mut self, at: usize, asks: bool) {
        let link = &self.links[at];
        let (durable, yours, done) = (self.durable, link.durable, self.done);
        let status = Status { durable, yours, asks, done };
        let frame = self.frame(Kind::Status, 1, &status.to_bytes());
        self.wire.send(link.peer, &frame);
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
