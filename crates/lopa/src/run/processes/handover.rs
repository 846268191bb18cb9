//! How a node that comes back gets its state.
//!
//! It starts anew, as nodes do at the start of a run, at another point: x is that of its lowest-numbered neighbour that has its
//! state, at the cut; θ and v are those of its own last state, or start values if it has none. A common θ is the neighbour's as well.
//! Estimates, averages, tables and step sizes begin anew, and what refers to all nodes is made again by all of them.
//!
//! What is common to all nodes, how far the run is and when it is measured, each member sends; the neighbours add their points. These
//! are the first broadcasts of the chapter: signed by their authors, passed on, checked before they are used, and kept until all have
//! saved their states. A node that has the common part refuses any other; one that comes back takes it only if all say the same.

use super::{misfit, own_nodes};
use crate::engine::messages::Tally;
use crate::engine::{Chapter, Node, Progress, Refusal, Transport};
use crate::error::{Error, Kind, Result};
use crate::math::real::Real;
use crate::problem::At;
use crate::problem::derivative::Counts;
use crate::problem::scope::Scope;
use crate::run::checkpoint::{self, State};
use crate::run::ending::Ending;
use crate::run::world::Job;
use crate::store::bytes::{Hash, Reader, Writer};

/// What is common to all nodes at a cut.
#[derive(Debug, Clone, PartialEq)]
struct Common {
    progress: Progress,
    /// The state of the ending, for the members of the chapter.
    ending: Vec<u8>,
    /// Iterations between two checkpoints.
    every: u64,
}

impl Common {
    fn to_bytes(&self) -> Vec<u8> {
        let Progress { k, exchanges, floats, bytes, .. } = self.progress;
        let mut out = Writer::default();
        [k, exchanges, floats, bytes, self.every].into_iter().for_each(|value| out.u64(value));
        out.raw(&self.ending);
        out.done()
    }

    fn read(bytes: &[u8]) -> Option<Common> {
        let mut bytes = Reader::new(bytes);
        let [k, exchanges, floats, sent, every] = [(); 5].map(|()| bytes.count());
        let (k, exchanges, floats) = (k?, exchanges?, floats?);
        // Messages are not counted where nodes may be left out.
        let progress = Progress { k, exchanges, floats, bytes: sent?, tally: Tally::default() };
        let every = every?.max(1);
        Some(Common { progress, every, ending: bytes.rest().to_vec() })
    }
}

/// The point of a node that helps another, where it is common.
struct Given<T> {
    x: Vec<T>,
    theta: Vec<T>,
}

impl Job<'_> {
    /// Hands a node that comes back what it needs, at the beginning of a chapter; returns the state that this node
    /// continues from.
    pub fn hand_over<T: Real>(
        &self,
        kept: Option<State>,
        chapters: &[Chapter],
        node: &mut Node<T>,
        transport: &mut dyn Transport,
    ) -> Result<Option<State>> {
        let at = Chapter::of(chapters, self.number);
        let chapter = chapters.get(at).filter(|chapter| chapter.from.job == self.number);
        let chapter = chapter.filter(|chapter| !chapter.back.is_empty());
        let Some((chapter, k)) = chapter.and_then(|chapter| Some((chapter, chapter.from.k?)))
        else {
            return Ok(kept);
        };
        if kept.as_ref().is_some_and(|state| state.chapter == at as u64) {
            return Ok(kept);
        }
        let me = own_nodes(self.setup.experiment.network.nodes, transport).start;
        let back = chapter.back(me).is_some();
        let (ours, told) = match kept.as_ref().filter(|_| !back) {
            Some(state) => {
                let common = self.common(state, chapters, node).ok_or_else(misfit)?.to_bytes();
                (Some(common.clone()), self.told(common, state, me, node).ok_or_else(misfit)?)
            }
            None => (None, Vec::new()),
        };
        let At { x, theta } = node.algorithm.at();
        let lengths = [x.len(), self.common_theta(theta).len()];
        let accepts = |rank: usize, bytes: &[u8]| {
            let author = self.setup.world.node_at(rank);
            if chapter.back(author).is_some() {
                return if bytes.is_empty() { Ok(()) } else { Err(Refusal::Shape) };
            }
            let (common, given) =
                self.read_told::<T>(bytes, author, lengths).ok_or(Refusal::Shape)?;
            match &ours {
                Some(ours) if common != ours => return Err(Refusal::Differs),
                Some(_) => {}
                None => self.check_common(common, k, node).ok_or(Refusal::Shape)?,
            }
            let finite = |values: &Vec<T>| values.iter().all(|value| value.is_finite());
            match given.iter().all(|Given { x, theta }| finite(x) && finite(theta)) {
                true => Ok(()),
                false => Err(Refusal::NotFinite),
            }
        };
        let all = transport.all(&told, &accepts)?;
        match back {
            true => self.take_over(kept, (me, at), &all, node, lengths).map(Some),
            false => Ok(kept),
        }
    }

    /// θ, if all nodes have the same.
    fn common_theta<'t, T>(&self, theta: &'t [T]) -> &'t [T] {
        match self.setup.experiment.scope {
            Scope::Personal => &[],
            Scope::Global => theta,
        }
    }

    /// Whether a node hands its point to another.
    fn helps(&self, node: usize) -> bool {
        let part = self.setup.world.parts.last();
        part.is_some_and(|part| part.back.iter().any(|back| back.x_of == Some(node)))
    }

    /// The places of the members of a chapter in an earlier one; a node that was not there has that of the neighbour that
    /// helped it.
    pub fn places(&self, before: &Chapter, now: &Chapter) -> Vec<usize> {
        let place = |node: usize| before.members.iter().position(|&known| known == node);
        let part = self.setup.world.parts.last();
        let helper = |node: usize| {
            let back = part.and_then(|part| part.back.iter().find(|back| back.node == node));
            back.and_then(|back| place(back.x_of?))
        };
        let places = now.members.iter().map(|&node| place(node).or_else(|| helper(node)));
        places.map(|place| place.unwrap_or(0)).collect()
    }

    /// What is common to all nodes, from a state at the cut, as it is after the members have changed.
    fn common<T: Real>(
        &self,
        state: &State,
        chapters: &[Chapter],
        node: &Node<T>,
    ) -> Option<Common> {
        let (mut ending, every) = self.read_record(&state.record, node)?;
        let before = chapters.get(usize::try_from(state.chapter).ok()?)?;
        ending.regroup(&self.places(before, &chapters[Chapter::of(chapters, self.number)]));
        let mut out = Writer::default();
        ending.save(&mut out);
        Some(Common { progress: state.progress, ending: out.done(), every })
    }

    /// The state of the ending, and the iterations between two checkpoints, from a record where nodes may be left out.
    fn read_record<T: Real>(&self, record: &[u8], node: &Node<T>) -> Option<(Ending<'_>, u64)> {
        let mut bytes = Reader::new(record);
        let mut ending = Ending::new(self, node);
        ending.restore(&mut bytes)?;
        bytes.f64()?;
        let every = bytes.u64()?;
        bytes.end()?;
        Some((ending, every))
    }

    /// The record of a node that comes back.
    fn record(&self, common: &Common) -> Vec<u8> {
        let mut out = Writer::default();
        out.raw(&common.ending);
        out.f64(0.0);
        out.u64(common.every);
        out.done()
    }

    /// Whether what others say is common can be used.
    fn check_common<T: Real>(&self, bytes: &[u8], k: u64, node: &Node<T>) -> Option<()> {
        let common = Common::read(bytes).filter(|common| common.progress.k == k)?;
        self.read_record(&self.record(&common), node).map(|_| ())
    }

    /// What a node that has its state sends the others: the common part, and its point if it helps one.
    fn told<T: Real>(
        &self,
        common: Vec<u8>,
        state: &State,
        me: usize,
        node: &mut Node<T>,
    ) -> Option<Vec<u8>> {
        let mut out = Writer::default();
        out.bytes(&common);
        if self.helps(me) {
            checkpoint::restore(node, state.nodes.first()?)?;
            let At { x, theta } = node.algorithm.at();
            out.reals(x);
            out.reals(self.common_theta(theta));
        }
        Some(out.done())
    }

    /// The parts of it; `None` if it is malformed.
    fn read_told<'b, T: Real>(
        &self,
        bytes: &'b [u8],
        author: usize,
        [n, p]: [usize; 2],
    ) -> Option<(&'b [u8], Option<Given<T>>)> {
        let mut bytes = Reader::new(bytes);
        let common = bytes.bytes()?;
        let given = match self.helps(author) {
            true => {
                let (x, theta): (Vec<T>, Vec<T>) = (bytes.reals()?, bytes.reals()?);
                let fits = x.len() == n && theta.len() == p;
                Some(Some(Given { x, theta }).filter(|_| fits)?)
            }
            false => None,
        };
        bytes.end()?;
        Some((common, given))
    }

    /// The state of a node that comes back, from what the others told and its own last state.
    fn take_over<T: Real>(
        &self,
        own: Option<State>,
        (me, at): (usize, usize),
        told: &[Vec<u8>],
        node: &mut Node<T>,
        lengths: [usize; 2],
    ) -> Result<State> {
        let part = self.setup.world.parts.last().ok_or_else(misfit)?;
        let helper = part.back.iter().find(|back| back.node == me).and_then(|back| back.x_of);
        // Nodes that come back themselves have nothing to tell.
        let told = part.members.iter().zip(told).filter(|(_, bytes)| !bytes.is_empty());
        let (mut common, mut given): (Option<&[u8]>, Option<Given<T>>) = (None, None);
        for (&author, bytes) in told {
            let (said, point) = self.read_told::<T>(bytes, author, lengths).ok_or_else(misfit)?;
            if *common.get_or_insert(said) != said {
                return Err(disagree(me));
            }
            given = if helper == Some(author) { point } else { given };
        }
        let common = common.and_then(Common::read).ok_or_else(misfit)?;
        let Given { x, theta: common_theta } = given.ok_or_else(misfit)?;
        let p = node.algorithm.at().theta.len();
        let (mut trail, mut counts, mut v) = (Hash::default(), Counts::default(), None);
        if let Some(state) = &own {
            let bytes = state.nodes.first().ok_or_else(misfit)?;
            (trail, _) = checkpoint::restore(node, bytes).ok_or_else(misfit)?;
            counts = node.oracle.counts();
            let known = node.algorithm.variables().into_iter();
            v = known.filter(|(name, _)| *name == "v").map(|(_, v)| v.to_vec()).next();
        }
        let v = v.filter(|v| v.len() == p).unwrap_or_else(|| vec![T::zero(); p]);
        let theta = match self.setup.experiment.scope {
            Scope::Personal => node.algorithm.at().theta.to_vec(),
            Scope::Global => common_theta,
        };
        let parts = self.setup.parts_of::<T>(me..me + 1)?.each;
        let method = &*self.algorithm.choice.build;
        let mut begun = self.setup.nodes_at(parts, me, method, Some([&x[..], &theta, &v]))?;
        let begun = begun.first_mut().ok_or_else(misfit)?;
        counts += begun.oracle.counts();
        begun.oracle.count_from(counts);
        Ok(State {
            progress: common.progress,
            serial: own.as_ref().map_or(0, |own| own.serial + 1),
            seconds: own.as_ref().map_or(0.0, |own| own.seconds),
            record: self.record(&common),
            nodes: vec![checkpoint::save(begun, &trail, &[])],
            links: Vec::new(),
            chapter: at as u64 - 1,
        })
    }
}

/// The error of a node to which others say different things.
fn disagree(me: usize) -> Error {
    let message = format!(
        "node {me} cannot come back: the others say different things of how far the run is"
    );
    Error::new(Kind::Peer, "peers/handover", message)
        .hint("one of them is wrong: the others name it in their logs; without it, the same command asks again")
}
