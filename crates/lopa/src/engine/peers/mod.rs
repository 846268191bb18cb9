//! Independent peers: one node each, on machines of their own, over any [`Wire`].
//!
//! All peers make the same calls in the same order; the how manieth call it is is its *step*. Each
//! keeps what it sent to a neighbour in a step until the neighbour is durable beyond it, and what
//! came in until it is durable itself. Hence a peer that comes back goes on from its own checkpoint
//! and is sent again what it needs; what it repeats is dropped; nobody else goes back.
//!
//! Who lacks something asks for it: after a while, and whenever a way to a neighbour opens. A wire
//! may lose, double, delay and reorder frames as it likes.

mod decide;
mod flood;
mod frame;
mod journal;
mod keep;
mod link;
mod receive;
mod settings;
mod status;

pub use frame::{Frame, Kind as FrameKind, Place, Refusal};
pub use journal::{FileJournal, Journal};
pub use settings::{Note, Policy, Settings};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::transport::{Independent, Parcel, Round, Transport};
use super::wire::Wire;
use crate::error::{Error, Kind, Result};
use crate::store::bytes::Hash;
use flood::{Floods, saying};
use frame::{is_finite, short};
use link::Link;

/// A node of a run whose other nodes are peers behind a wire.
pub struct Peers<W: Wire> {
    wire: W,
    me: usize,
    nodes: usize,
    run: [u8; 16],
    settings: Settings,
    told: Box<dyn FnMut(Note) + Send>,
    noted: BTreeSet<(usize, Refusal)>,
    down: BTreeSet<usize>, // to whom the way is gone
    job: u32,
    step: u64,    // of the call under way
    mark: u64,    // the step that a checkpoint would go on from
    durable: u64, // the step that the last checkpoint goes on from, or the end
    links: Vec<Link>,
    floods: Floods,
    longest: Longest,
    round: Round,
    relayed: BTreeMap<(usize, usize), u64>, // the last notice of each link that was passed on
    notices: u64,
    cautious: bool,      // whether an earlier life may have decided on what comes next
    impatient: Duration, // when links whose neighbours are silent are left out
    done: bool,          // whether the run's result is on disk
    stopped: bool,
}

/// What a neighbour may send at most, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Longest {
    /// In an exchange.
    pub message: usize,
    /// To all.
    pub saying: usize,
}

impl<W: Wire> Peers<W> {
    /// Node `me` of so many, in a run that `run` tells from all others (see
    /// [`crate::experiment::Experiment::identity`]); `told` hears what its user should know.
    pub fn new(
        wire: W,
        (me, nodes): (usize, usize),
        run: &Hash,
        settings: Settings,
        told: Box<dyn FnMut(Note) + Send>,
    ) -> Peers<W> {
        Peers {
            wire,
            me,
            nodes,
            run: short(run),
            settings,
            told,
            noted: BTreeSet::new(),
            down: BTreeSet::new(),
            job: 0,
            step: 0,
            mark: 0,
            durable: 0,
            links: Vec::new(),
            floods: Floods::new(nodes),
            longest: Longest::default(),
            round: Round::default(),
            relayed: BTreeMap::new(),
            notices: 0,
            cautious: false,
            impatient: Duration::ZERO,
            done: false,
            stopped: false,
        }
    }

    /// Bytes of frames that are kept for neighbours and for a restart.
    pub fn bytes(&self) -> usize {
        self.floods.bytes() + self.links.iter().map(Link::bytes).sum::<usize>()
    }

    fn place(&self) -> Place {
        let Round { k, e, .. } = self.round;
        Place { job: self.job, step: self.step, k, e: e as u32 }
    }

    fn frame(&self, kind: FrameKind, scalar: usize, payload: &[u8]) -> Vec<u8> {
        Frame { kind, scalar: scalar as u8, place: self.place(), payload }.to_bytes(&self.run)
    }

    /// Waits until nobody is missing.
    fn wait(&mut self, missing: impl Fn(&mut Self) -> Result<Option<usize>>) -> Result<()> {
        self.catch_up();
        let end = self.wire.now().saturating_add(self.settings.deadline);
        let mut again = self.wire.now() + self.settings.resend;
        while let Some(peer) = missing(self)? {
            if self.stopped {
                return Err(stopped());
            }
            if matches!(self.settings.policy, Policy::Stop)
                && let Some(gone) = self.links.iter().find(|link| self.is_lost(link))
            {
                return Err(self.lost(gone.peer, "the way to it is gone"));
            }
            let now = self.wire.now();
            if now >= end {
                return Err(self.lost(peer, "the deadline has passed"));
            }
            if now >= again {
                self.ask();
                again = now + self.settings.resend;
            }
            let mut until = again.min(end);
            if self.impatient > now {
                until = until.min(self.impatient);
            }
            if let Some(event) = self.wire.next(until) {
                self.receive(event)?;
            }
        }
        Ok(())
    }

    /// Whether the way to a neighbour that is needed is gone.
    fn is_lost(&self, link: &Link) -> bool {
        self.down.contains(&link.peer) && !link.ended()
    }

    fn lost(&self, peer: usize, why: &str) -> Error {
        let Round { k, .. } = self.round;
        let message = format!("node {peer} is missing in iteration {k}: {why}");
        Error::new(Kind::Peer, "peers/lost", message)
            .hint("start it again, then this node with the same command: it goes on from here")
    }

    /// Sends this node's message to its neighbours.
    fn send_all(&mut self, out: &[Parcel]) -> Result<()> {
        let Round { k, e, scalar } = self.round;
        // With one node, all neighbours are sent the same.
        if out.first().is_some_and(|parcel| !is_finite(scalar, &parcel.bytes)) {
            let message = format!(
                "node {} would send what is not a finite number in iteration {k}, exchange {e}",
                self.me
            );
            return Err(Error::new(Kind::Run, "peers/not-finite", message)
                .hint("the run diverges: take smaller steps"));
        }
        for Parcel { rank, bytes } in out {
            let frame = self.frame(FrameKind::Data, scalar, bytes);
            let at = self.links.iter().position(|link| link.peer == *rank);
            let at = at.ok_or_else(|| self.misuse("a message to nobody who is a neighbour"))?;
            // Who does not decide on a link answers, so that an answer says: I have yours.
            let answers = self.follows(at);
            match self.links[at].send(self.step, frame) {
                Ok(Some(frame)) if !answers => self.wire.send(*rank, frame),
                Ok(_) => {}
                Err(_) => return Err(self.misuse("what is sent is not what was sent before")),
            }
        }
        Ok(())
    }

    /// Something that cannot be if all peers run the same program on the same kind of machine.
    fn misuse(&self, what: &str) -> Error {
        let message = format!("node {}, iteration {}: {what}", self.me, self.round.k);
        Error::new(Kind::Run, "peers/replay", message)
            .hint("a node must go on with the same build of lopa on the same kind of machine")
    }
}

/// The error of a node that was asked to stop.
pub(crate) fn stopped() -> Error {
    Error::new(Kind::Peer, "peers/stopped", "this node was asked to stop")
        .hint("the same command goes on from here")
}

impl<W: Wire> Transport for Peers<W> {
    fn rank(&self) -> usize {
        self.me
    }

    fn size(&self) -> usize {
        self.nodes
    }

    fn exchange(
        &mut self,
        round: Round,
        out: &[Parcel],
        into: &mut [Parcel],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        self.round = round;
        self.send_all(out)?;
        meanwhile();
        self.settle(out.first().map_or(0, |parcel| parcel.bytes.len()))?;
        for parcel in into {
            self.fetch(parcel, out);
        }
        self.step += 1;
        Ok(())
    }

    fn all(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>> {
        let step = self.step;
        let frame = self.frame(FrameKind::Flood, 1, &saying(self.me, ours));
        if self.floods.learn(step, &frame, step).is_err() {
            return Err(self.misuse("what is said to all is not what was said before"));
        }
        for link in &self.links {
            self.wire.send(link.peer, &frame);
        }
        self.wait(|peers| Ok(peers.floods.missing(step)))?;
        self.step += 1;
        Ok(self.floods.everybody(step))
    }

    fn gather(&mut self, ours: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.all(ours)?;
        Ok(if self.me == 0 { all } else { Vec::new() })
    }

    fn independent(&mut self) -> Option<&mut dyn Independent> {
        Some(self)
    }
}
