//! Checkpoints of a peer, resuming from them, and leaving when no neighbour needs it any more.

use super::journal::Skip;
use super::link::Link;
use super::settings::Policy;
use super::status::END;
use super::{Broadcasts, Peers};
use crate::engine::transport::{Begin, Independent, Round};
use crate::engine::wire::Wire;
use crate::error::{Error, Kind, Result};
use crate::store::bytes::{Reader, Writer};

impl<W: Wire> Independent for Peers<W> {
    fn begin(&mut self, Begin { job, mixing, kept, limits }: Begin) -> Result<()> {
        let row = mixing.row(self.me).iter().map(|&(j, _)| j);
        let neighbours: Vec<usize> = row.filter(|&j| j != self.me).collect();
        (self.job, self.round) = (job, Round::default());
        (self.step, self.mark, self.durable) = (0, 0, 0);
        self.broadcasts = Broadcasts::new(self.nodes);
        self.links = neighbours.iter().map(|&peer| Link::new(peer)).collect();
        self.limits = limits;
        self.relayed.clear();
        self.recovering = kept.is_some();
        self.done = false;
        if let Some(kept) = kept {
            let fits = self.restore(kept).is_some();
            let peers: Vec<usize> = self.links.iter().map(|link| link.peer).collect();
            if !fits || peers != neighbours {
                return Err(wrong_checkpoint());
            }
        }
        self.replay_skips()?;
        self.request_all();
        Ok(())
    }

    fn pass(&mut self, begin: Begin) -> Result<()> {
        self.begin(begin)?;
        (self.durable, self.done) = (END, true);
        (0..self.links.len()).for_each(|at| self.send_status(at, false));
        Ok(())
    }

    fn mark(&mut self) {
        self.mark = self.step;
    }

    fn save(&self, complete: bool) -> Vec<u8> {
        let mut out = Writer::default();
        let durable = if complete { END } else { self.mark };
        [self.me as u64, self.mark, durable].into_iter().for_each(|value| out.u64(value));
        out.u64(self.links.len() as u64);
        self.links.iter().for_each(|link| link.save(self.mark, &mut out));
        self.broadcasts.save(&mut out);
        out.done()
    }

    fn kept(&mut self) -> Result<()> {
        self.durable = self.mark;
        self.recovering = false;
        if let Policy::SkipLink { journal, .. } = &mut self.settings.policy {
            journal.clear()?;
        }
        self.trim();
        (0..self.links.len()).for_each(|at| self.send_status(at, false));
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.durable = END;
        self.request_all();
        let waiting = |link: &Link| (!link.ended()).then_some(link.peer);
        self.wait(|peers| Ok(peers.links.iter().find_map(waiting)))
    }

    fn linger(&mut self) -> Result<()> {
        self.done = true;
        self.request_all();
        let waiting = |link: &Link| (!link.done).then_some(link.peer);
        match self.wait(|peers| Ok(peers.links.iter().find_map(waiting))) {
            // This peer has its results; it stayed only for the others.
            Err(error) if error.kind == Kind::Peer => Ok(()),
            waited => waited,
        }
    }

    fn stopped(&self) -> bool {
        self.stopped
    }
}

impl<W: Wire> Peers<W> {
    fn restore(&mut self, kept: &[u8]) -> Option<()> {
        let mut bytes = Reader::new(kept);
        if bytes.u64()? != self.me as u64 {
            return None;
        }
        (self.mark, self.durable) = (bytes.u64()?, bytes.u64()?);
        self.step = self.mark;
        let links = 0..bytes.u64()?;
        self.links = links.map(|_| Link::restore(&mut bytes)).collect::<Option<_>>()?;
        self.broadcasts = Broadcasts::restore(self.nodes, &mut bytes)?;
        bytes.end()
    }

    /// Skips again what this peer skipped before it crashed.
    fn replay_skips(&mut self) -> Result<()> {
        let Policy::SkipLink { journal, .. } = &mut self.settings.policy else { return Ok(()) };
        if !self.recovering {
            // The run starts from its beginning: old records are not of this run.
            journal.clear()?;
        }
        for Skip { job, step, peer } in Skip::all(&journal.read()?) {
            let link = self.links.iter_mut().find(|link| link.peer == peer);
            if let Some(link) = link.filter(|_| job == self.job && step >= self.mark) {
                link.decided.insert(step, false);
            }
        }
        Ok(())
    }
}

fn wrong_checkpoint() -> Error {
    let message = "the checkpoint belongs to another node or another network";
    Error::storage("storage/checkpoint", message).hint("give every node its own folder")
}
