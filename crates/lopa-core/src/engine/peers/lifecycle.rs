//! Checkpoints of a peer, resuming from them, and leaving when no neighbour needs it any more.

use std::time::Duration;

use super::chapters::NEXT;
use super::decisions::Run;
use super::journal::{Turn, last_start, start_record};
use super::link::{Link, WINDOW};
use super::settings::Policy;
use super::status::END;
use super::{Broadcasts, Ended, Peers};
use crate::engine::chapter::Chapter;
use crate::engine::transport::{Begin, Independent, Round};
use crate::engine::wire::Wire;
use crate::error::{Error, Kind, Result};
use crate::store::bytes::{Reader, Writer};

/// How long a peer stays for a silent neighbour when all others are known to be done: the last
/// message may be lost, or the link may be cut for a while.
const GRACE: Duration = Duration::from_secs(120);

/// For how many intervals between two requests a peer that needs nothing any more stays for a silent
/// neighbour that may still need its last message.
const COURTESY: u32 = 8;

impl<W: Wire> Independent for Peers<W> {
    fn begin(&mut self, Begin { job, mixing, kept, held, lacks, limits }: Begin) -> Result<()> {
        self.load_chapters()?;
        let (chapter, run) = self.chapters.of(job);
        (self.members, self.run) = (chapter.members.clone(), run);
        let mut graph = vec![Vec::new(); self.nodes];
        for (&node, row) in self.members.iter().zip(mixing.rows()) {
            let row = row.iter().map(|&(rank, _)| self.members[rank]);
            graph[node] = row.filter(|&other| other != node).collect();
        }
        let neighbours = graph[self.me].clone();
        self.past = (self.job, self.ended.frames().cloned().collect());
        self.answered.clear();
        (self.job, self.round) = (job, Round::default());
        (self.step, self.mark, self.durable) = (0, 0, 0);
        self.broadcasts = Broadcasts::new(self.nodes, &self.members);
        self.links = neighbours.iter().map(|&peer| Link::new(peer)).collect();
        self.limits = limits;
        self.progress.measure(&graph, self.me);
        self.begin_chapter(held, lacks);
        self.relayed.clear();
        self.forwarded.clear();
        (self.start, self.numbered) = (0, 0);
        self.ended = Ended::default();
        self.done = false;
        let resumed = kept.is_some();
        if let Some(kept) = kept {
            let fits = self.restore(kept).is_some();
            let peers: Vec<usize> = self.links.iter().map(|link| link.peer).collect();
            if !fits || peers != neighbours {
                return Err(wrong_checkpoint());
            }
        }
        let now = self.wire.now();
        self.links.iter_mut().for_each(|link| link.heard = now);
        self.read_journal(resumed)?;
        self.request_all();
        Ok(())
    }

    fn pass(&mut self, begin: Begin) -> Result<()> {
        self.begin(begin)?;
        (self.durable, self.done) = (END, true);
        self.end_own(true);
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
        for (at, link) in self.links.iter().enumerate() {
            // The other end sends its decisions on later steps again.
            let until = if self.follows(at) { self.step } else { u64::MAX };
            link.save(self.mark, until, &mut out);
        }
        self.broadcasts.save(&mut out);
        out.u64(self.start);
        out.u64(u64::from(self.past.0));
        out.u64(self.past.1.len() as u64);
        self.past.1.iter().for_each(|frame| out.bytes(frame));
        out.done()
    }

    fn wants_checkpoint(&self) -> bool {
        // After a restart from before the cut, frames of a neighbour that stays out of reach would have
        // to come over other nodes.
        let cut = |link: &Link| {
            let since = link.decided.skipped_since(self.step);
            since.is_some_and(|since| since > self.mark && since + WINDOW < self.step)
        };
        self.links.iter().any(cut)
    }

    fn kept(&mut self) -> Result<()> {
        self.durable = self.mark;
        self.links.iter_mut().for_each(|link| (link.noted, link.bound) = (None, false));
        if let Policy::SkipLink { journal, .. } = &mut self.settings.policy {
            journal.clear()?;
        }
        self.trim();
        (0..self.links.len()).for_each(|at| self.send_status(at, false));
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.durable = END;
        self.end_own(false);
        self.request_all();
        let waiting = |link: &Link| (!link.ended()).then_some(link.peer);
        let waited = self.wait(|peers| match peers.informs_all() {
            true if peers.is_passed() => Ok(None),
            // In a later run, this peer informs the others that all have ended this one.
            true => Ok(peers.not_ended(false)),
            false => Ok(peers.links.iter().find_map(waiting)),
        });
        match waited {
            // The run is over for all that stay: they agreed to begin the next one without a node.
            Err(error) if error.id == NEXT && self.chapters.is_over(self.job) => Ok(()),
            waited => waited,
        }
    }

    fn linger(&mut self) -> Result<()> {
        self.done = true;
        self.end_own(true);
        self.request_all();
        self.tell_askers();
        let waited = loop {
            let waited = self.wait(|peers| {
                peers.release();
                Ok(peers.not_done().or_else(|| peers.unaware()))
            });
            // Others agree on what does not concern this peer any more.
            if waited.as_ref().err().is_none_or(|error| error.id != NEXT) {
                break waited;
            }
        };
        (0..self.links.len()).for_each(|at| self.send_status(at, false));
        match waited {
            // This peer has its results; it stayed only for the others.
            Err(error) if error.kind == Kind::Peer => Ok(()),
            waited => waited,
        }
    }

    fn skips(&self) -> bool {
        Peers::skips(self)
    }

    fn stopped(&self) -> bool {
        self.stopped
    }

    fn node(&self) -> usize {
        self.me
    }

    fn chapters(&mut self) -> Result<Vec<Chapter>> {
        self.load_chapters()?;
        Ok(self.chapters.all.clone())
    }

    fn leaves(&self) -> bool {
        Peers::leaves(self)
    }

    fn come_back(&mut self, job: u32, held: &[u64]) -> Result<bool> {
        self.ask_to_come_back(job, held)
    }

    fn note_checkpoint(&mut self, k: u64) {
        self.chapters.keep(k);
    }
}

impl<W: Wire> Peers<W> {
    /// A node whose result is not on disk, as far as known: a neighbour, or any where links may be
    /// skipped.
    fn not_done(&self) -> Option<usize> {
        match self.skips() {
            true => self.not_ended(true),
            false => {
                let waits = |link: &&Link| !link.done && !self.is_away(link);
                self.links.iter().find(waits).map(|link| link.peer)
            }
        }
    }

    /// Whether members may be left out, and go on from the end of this run: they have agreed on it, or a neighbour
    /// has received that all have ended.
    fn is_passed(&self) -> bool {
        let over = self.chapters.is_over(self.job) || self.links.iter().any(|link| link.done);
        self.leaves() && over
    }

    /// Whether a neighbour has been silent for so long that others would be left to go on without it.
    fn is_away(&self, link: &Link) -> bool {
        let since = self.wire.now().saturating_sub(link.heard);
        matches!(self.settings.policy, Policy::Leave { silence, .. } if since >= silence)
    }

    /// Informs neighbours of which this peer needs nothing any more, once and at once.
    fn release(&mut self) {
        for at in 0..self.links.len() {
            if !self.links[at].released && self.is_settled_with(at) {
                self.links[at].released = true;
                self.send_status(at, false);
            }
        }
    }

    /// A neighbour that may not have received that this peer is done, or that this peer knows the
    /// same of it. One that has been silent for long is gone, or cut off for longer than any node
    /// waits.
    fn unaware(&self) -> Option<usize> {
        let now = self.wire.now();
        let longest = |link: &Link| match link.knows {
            false => GRACE,
            true => self.settings.resend.saturating_mul(COURTESY).min(GRACE),
        };
        let waits = |link: &&Link| !link.settled && now < link.heard.saturating_add(longest(link));
        self.links.iter().find(waits).map(|link| link.peer)
    }

    fn restore(&mut self, kept: &[u8]) -> Option<()> {
        let mut bytes = Reader::new(kept);
        if bytes.u64()? != self.me as u64 {
            return None;
        }
        (self.mark, self.durable) = (bytes.u64()?, bytes.u64()?);
        self.step = self.mark;
        let links = 0..bytes.u64()?;
        self.links = links.map(|_| Link::restore(&mut bytes)).collect::<Option<_>>()?;
        self.broadcasts = Broadcasts::restore(self.nodes, &self.members, &mut bytes)?;
        self.start = bytes.u64()?;
        let job = u32::try_from(bytes.u64()?).ok()?;
        let past = 0..bytes.u64()?;
        let past = past.map(|_| bytes.bytes().map(<[u8]>::to_vec)).collect::<Option<_>>()?;
        self.past = (job, past);
        bytes.end()
    }

    /// Repeats the decisions that this peer made before it crashed.
    fn read_journal(&mut self, resumed: bool) -> Result<()> {
        let Policy::SkipLink { journal, .. } = &mut self.settings.policy else { return Ok(()) };
        if !resumed {
            // The run starts from its beginning: old records do not belong to it.
            journal.clear()?;
        }
        let records = journal.read()?;
        if resumed {
            // The checkpoint has the start at which it was written, the journal those since.
            let last = self.start.max(last_start(&records, self.job));
            self.start = last.saturating_add(1);
            journal.append(&start_record(self.job, self.start))?;
        }
        let turns = Turn::all(&records);
        for link in &mut self.links {
            let ours = |turn: &&Turn| {
                (turn.job, turn.peer) == (self.job, link.peer) && turn.step >= self.mark
            };
            let turns: Vec<&Turn> = turns.iter().filter(ours).collect();
            for (at, turn) in turns.iter().enumerate() {
                match turns.get(at + 1) {
                    // The checkpoint's content agrees.
                    Some(next) => {
                        let Turn { step: from, used, .. } = **turn;
                        let _ = link.decided.add(Run { from, to: next.step, used });
                    }
                    None => (link.noted, link.bound) = (Some(turn.used), true),
                }
            }
        }
        Ok(())
    }
}

fn wrong_checkpoint() -> Error {
    let message = "the checkpoint belongs to another node or another network";
    Error::storage("storage/checkpoint", message).hint("give every node its own folder")
}
